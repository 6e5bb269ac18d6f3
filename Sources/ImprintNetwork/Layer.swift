package import ImprintCore

/// A layer's description and its arithmetic.
///
/// A layer is a small value: sizes and options, which the model file stores. It holds no tensors. Parameters, activations and scratch memory
/// belong to an `ExecutionPlan`, so `forward` and `backward` are plain functions over buffers. Activations are NHWC float32:
/// [N, H, W, C], the channels of a pixel next to each other.
///
/// To use a layer of your own, conform to this protocol and register the type before you train with it or load a model that contains it:
///
/// ```swift
/// LayerRegistry.register(Scale.self)
/// ```
///
/// docs/adding-a-layer.md explains each step with an example.
public protocol Layer: Codable, Hashable, Sendable {
    /// The name of this kind in a stored description, such as "convolution"; never change it.
    static var kind: String { get }

    /// The shape of the output for inputs of these shapes.
    ///
    /// Check all stored properties here: descriptions also come from files.
    /// - Throws: `NetworkError` if the layer cannot take the inputs or a property is out of range.
    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape

    /// The parameters of this layer for inputs of these shapes, in the order in which `LayerContext.parameters` has them.
    func parameters(for inputs: [TensorShape]) -> [ParameterDescription]

    /// Which activations of the forward pass `backward` reads; the plan keeps only these. Default: the inputs.
    var backwardReads: BackwardReads { get }

    /// Whether the output may share memory with the first input. Default: `never`.
    var inPlace: InPlace { get }

    /// The number of multiply-accumulate operations for one image by the layer's formula, whatever the algorithm. Default: 0.
    func multiplications(for inputs: [TensorShape]) -> Int

    /// The memory that the layer needs besides its activations. Default: none.
    func memory(_ request: MemoryRequest) -> LayerMemory

    /// Computes the output from the inputs for the first `batch` images.
    ///
    /// All threads of the plan call this at the same time, each with a context of its own. Divide the work with
    /// `LayerContext.parallelFor(_:_:)`; `Worker` describes the rules.
    func forward(_ context: LayerContext, batch: Int)

    /// Computes the gradients of the inputs and parameters from the gradient of the output for the first `batch` images.
    ///
    /// Overwrites every gradient that is not nil.
    func backward(_ context: LayerContext, batch: Int)
}

extension Layer {
    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] { [] }
    public var backwardReads: BackwardReads { .inputs }
    public var inPlace: InPlace { .never }
    public func multiplications(for inputs: [TensorShape]) -> Int { 0 }
    public func memory(_ request: MemoryRequest) -> LayerMemory { LayerMemory() }
}

/// The activations that a layer's backward pass reads.
public struct BackwardReads: OptionSet, Sendable {
    /// The set's bits.
    public let rawValue: Int
    /// Makes the set of these bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// The values of the inputs.
    public static let inputs = BackwardReads(rawValue: 1)
    /// The values of the output.
    public static let output = BackwardReads(rawValue: 2)
}

/// Whether a layer's output may share memory with its first input.
public enum InPlace: Sendable {
    /// The output needs memory of its own.
    case never
    /// The output may overwrite the input, and the input's gradient may overwrite the output's gradient.
    case overwriting
    /// The output has the same values as the input, in another shape.
    case view
}

/// What a plan tells a layer that asks for memory.
public struct MemoryRequest {
    /// The shapes of the inputs.
    public let inputs: [TensorShape]
    /// The shape of the output.
    public let output: TensorShape
    /// The largest number of images at once.
    public let batch: Int
    /// Whether there will be a backward pass.
    public let training: Bool
    /// Whether a pass may run before `LayerKernel.packWeights`.
    package let delaysPacking: Bool
    /// The threads that share the work.
    package let workers: Workers
    /// The algorithm that the plan chose.
    package let algorithm: Algorithm
}

/// The memory that a layer needs besides its activations, in bytes.
public struct LayerMemory {
    /// Memory that keeps its content from the forward to the backward pass.
    public var saved = 0
    /// Memory during a single pass.
    public var scratch = 0
    /// Memory that keeps the result of `LayerKernel.transformWeights`.
    package var transformedWeights = 0
    /// Memory that keeps the result of `LayerKernel.packWeights`.
    package var packedWeights = 0

    /// Makes a request for memory.
    public init(saved: Int = 0, scratch: Int = 0) {
        self.saved = saved
        self.scratch = scratch
    }

    package init(saved: Int = 0, scratch: Int = 0, transformedWeights: Int, packedWeights: Int = 0) {
        self.saved = saved
        self.scratch = scratch
        self.transformedWeights = transformedWeights
        self.packedWeights = packedWeights
    }
}

/// One activation: [N, H, W, C], for as many images as the plan's batch.
public struct Activation {
    /// The values.
    public let values: UnsafeMutablePointer<Float>
    /// The gradient of the loss with respect to the values; nil if nothing needs it.
    public let gradient: UnsafeMutablePointer<Float>?
    /// The shape for one image.
    public let shape: TensorShape
}

/// The buffers that one layer of a plan works on, and the thread that does; the plan makes them once when it is compiled.
public struct LayerContext {
    /// The inputs, in the order of the node's inputs.
    public let inputs: [Activation]
    /// The output.
    public let output: Activation
    /// The moments that the producer of the first input recorded; nil if it records none or the layer does not ask.
    let inputMoments: Moments?
    /// Where the layer records the moments of its output; nil if no layer reads them.
    let outputMoments: Moments?
    /// The parameters, in the order of `Layer.parameters(for:)`.
    public let parameters: [UnsafeMutablePointer<Float>]
    /// The gradients of the parameters, in the same order; nil for statistics and if the layer is frozen.
    public let parameterGradients: [UnsafeMutablePointer<Float>?]
    /// Memory that keeps its content from the forward to the backward pass: `LayerMemory.saved` bytes.
    public let saved: UnsafeMutableRawPointer
    /// Memory during a single pass: `LayerMemory.scratch` bytes, shared by all threads.
    public let scratch: UnsafeMutableRawPointer
    let transformedWeights: UnsafeMutableRawPointer
    let packedWeights: UnsafeMutableRawPointer
    let algorithm: Algorithm
    /// The thread that runs the layer.
    public internal(set) var worker: Worker
    /// Whether the plan trains: dropout and batch statistics depend on it.
    public let training: Bool
    /// The index in its network of the node that produces the output.
    let nodeIndex: Int
    /// Whether the layer keeps its parameters and statistics.
    public let frozen: Bool
    let randomness: Randomness
    let packingState: PackingState

    /// A context for each thread of a pool.
    func forEachThread(of threadPool: ThreadPool) -> [LayerContext] {
        (0..<threadPool.count).map { index in
            var context = self
            context.worker = Worker(threadPool: threadPool, index: index)
            return context
        }
    }

    /// The first input.
    public var input: Activation { inputs[0] }
    /// The gradient of the loss with respect to the output; only in `backward`.
    public var outputGradient: UnsafeMutablePointer<Float> { output.gradient! }

    /// Divides `count` independent elements into ranges that the threads share; returns when all are done.
    public func parallelFor(_ count: Int, _ body: (Range<Int>) -> Void) { forEachRange(count, worker, body) }
}

/// One tensor of parameters of a layer.
public struct ParameterDescription: Hashable, Sendable {
    /// What a parameter is for; decides on its gradient and on weight decay.
    public enum Role: String, Codable, Sendable {
        /// Trained, with weight decay.
        case weight
        /// Trained, without weight decay: biases and the scales and shifts of normalization layers.
        case bias
        /// Not trained by gradients: running means and variances.
        case statistic
    }

    /// How a parameter is initialized.
    public enum Initializer: Hashable, Sendable {
        /// Every value the same.
        case constant(Float)
        /// Normal with mean 0 and variance 2 / `fanIn` (He et al., "Delving deep into rectifiers", 2015).
        case heNormal(fanIn: Int)
        /// Uniform between −1 / √`fanIn` and 1 / √`fanIn` (LeCun et al., "Efficient BackProp", 1998).
        case leCunUniform(fanIn: Int)
    }

    /// The name inside the layer, such as "weight".
    public let name: String
    /// The lengths of the axes, the fastest last.
    public let shape: [Int]
    /// What it is for.
    public let role: Role
    /// How it is initialized.
    public let initializer: Initializer

    /// Describes a parameter.
    public init(name: String, shape: [Int], role: Role, initializer: Initializer) {
        self.name = name
        self.shape = shape
        self.role = role
        self.initializer = initializer
    }

    /// The number of values.
    public var count: Int { shape.reduce(1, *) }
}

/// Checks that a layer has exactly one input.
func onlyInput(_ layer: String, _ inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
    guard inputs.count == 1 else { throw .inputCount(layer: layer, expected: "one input", found: inputs.count) }
    return inputs[0]
}

/// Checks that a layer has at least two inputs.
func severalInputs(_ layer: String, _ inputs: [TensorShape]) throws(NetworkError) -> [TensorShape] {
    guard inputs.count >= 2 else {
        throw .inputCount(layer: layer, expected: "two or more inputs", found: inputs.count)
    }
    return inputs
}

/// Checks that a property is in its range.
func check<Value>(
    _ layer: String, _ property: String, _ value: Value, _ isValid: Bool, _ expected: String
) throws(NetworkError) {
    guard isValid else {
        throw .invalidProperty(layer: layer, property: property, found: "\(value)", expected: expected)
    }
}
