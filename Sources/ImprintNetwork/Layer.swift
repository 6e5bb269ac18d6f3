package import ImprintCore

/// A layer: its description and its computation.
///
/// A layer is a small value with sizes and options, which the model file stores. It does not hold tensors. Parameters, activations and
/// scratch memory belong to an `ExecutionPlan`; `forward` and `backward` are functions over its buffers. Activations are NHWC float32:
/// [N, H, W, C], with the channels of a pixel contiguous in memory.
///
/// To write a custom layer, conform to this protocol and register the type before you train with it or load a model that contains it:
///
/// ```swift
/// LayerRegistry.register(Scale.self)
/// ```
///
/// docs/how-to/adding-a-layer.md explains each step with an example.
public protocol Layer: Codable, Hashable, Sendable {
    /// The name of this kind of layer in the model file, such as "convolution". Never change it.
    static var kind: String { get }

    /// Returns the shape of the output for inputs of these shapes.
    ///
    /// Check all stored properties here, because descriptions also come from files.
    /// - Throws: `NetworkError` if the layer cannot take the inputs or a property is out of range.
    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape

    /// Returns the parameters of this layer for inputs of these shapes, in the order of `LayerContext.parameters`.
    func parameters(for inputs: [TensorShape]) -> [ParameterDescription]

    /// The activations of the forward pass that `backward` reads. The plan keeps only these. Default: the inputs.
    var backwardReads: BackwardReads { get }

    /// Whether the output may share memory with the first input. Default: `never`.
    var inPlace: InPlace { get }

    /// Returns the number of multiply-accumulate operations (MACs) per image by the layer's formula, independent of the algorithm.
    ///
    /// A MAC is one multiplication and its addition, so it counts as two floating-point operations (FLOP). Default: 0.
    func multiplications(for inputs: [TensorShape]) -> Int

    /// Returns the memory that the layer needs besides its activations. Default: none.
    func memory(_ request: MemoryRequest) -> LayerMemory

    /// Computes the output from the inputs for the first `batch` images.
    ///
    /// All threads of the plan call this method at the same time, each with its own context. Divide the work with
    /// `LayerContext.parallelFor(_:_:)`; `Worker` describes the rules.
    func forward(_ context: LayerContext, batch: Int)

    /// Computes the gradients of the inputs and parameters from the gradient of the output for the first `batch` images.
    ///
    /// Overwrite every gradient that is not nil. All threads call this method at the same time, as they do `forward`.
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
    /// The bits of the set.
    public let rawValue: Int
    /// Creates a set from its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// The values of the inputs.
    public static let inputs = BackwardReads(rawValue: 1)
    /// The values of the output.
    public static let output = BackwardReads(rawValue: 2)
}

/// Whether a layer's output may share memory with its first input.
///
/// The plan shares the memory only if the input and the output have the same number of values.
public enum InPlace: Sendable {
    /// The output must not share memory with the input.
    case never
    /// The output may overwrite the first input, and the gradient of the first input may overwrite the output's gradient.
    ///
    /// So compute the gradients of parameters and of other inputs before that of the first input.
    case overwriting
    /// The output has the same values as the input, in another shape.
    case view
}

/// The properties of a plan that determine how much memory a layer needs.
public struct MemoryRequest {
    /// The shapes of the inputs.
    public let inputs: [TensorShape]
    /// The shape of the output.
    public let output: TensorShape
    /// The largest number of images per pass.
    public let batch: Int
    /// Whether the plan runs backward passes.
    public let training: Bool
    /// Whether the first pass may run before `LayerKernel.packWeights`.
    package let delaysPacking: Bool
    /// Whether products of convolutions use bfloat16.
    package var usesBFloat16 = false
    /// The threads that share the work.
    package let workers: Workers
    /// The algorithm that the plan chose.
    package let algorithm: Algorithm
}

/// The memory that a layer needs besides its activations, in bytes.
public struct LayerMemory {
    /// Memory that keeps its content from the forward to the backward pass.
    public var saved = 0
    /// Memory for one call of `Layer.forward(_:batch:)` or `Layer.backward(_:batch:)`.
    public var scratch = 0
    /// Memory for the result of `LayerKernel.transformWeights`.
    package var transformedWeights = 0
    /// Memory for the result of `LayerKernel.packWeights`.
    package var packedWeights = 0

    /// Creates a memory requirement.
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

/// An activation [N, H, W, C]; N is the batch size of the plan.
public struct Activation {
    /// The values.
    public let values: UnsafeMutablePointer<Float>
    /// The gradient of the loss with respect to the values; nil if it is not needed.
    public let gradient: UnsafeMutablePointer<Float>?
    /// The shape of one image.
    public let shape: TensorShape
}

/// The buffers of one layer of a plan, created when the plan is compiled, and the thread that runs the layer.
public struct LayerContext {
    /// The inputs, in the order of the node's inputs.
    public let inputs: [Activation]
    /// The output.
    public let output: Activation
    /// The moments of the first input; nil if its producer does not record them or the layer does not read them.
    let inputMoments: Moments?
    /// The moments of the output, which the layer records; nil if no layer reads them.
    let outputMoments: Moments?
    /// The parameters, in the order of `Layer.parameters(for:)`.
    public let parameters: [UnsafeMutablePointer<Float>]
    /// The gradients of the parameters, in the same order; nil for statistics and if the layer is frozen.
    public let parameterGradients: [UnsafeMutablePointer<Float>?]
    /// Memory that keeps its content from the forward to the backward pass: `LayerMemory.saved` bytes, aligned to 64 bytes.
    public let saved: UnsafeMutableRawPointer
    /// Memory for one call of `forward` or `backward`: `LayerMemory.scratch` bytes, aligned to 64 bytes.
    ///
    /// All threads share it, and so do all layers of the plan. Its content is undefined at the start of a call.
    public let scratch: UnsafeMutableRawPointer
    let transformedWeights: UnsafeMutableRawPointer
    let packedWeights: UnsafeMutableRawPointer
    let algorithm: Algorithm
    /// The thread that runs the layer.
    public internal(set) var worker: Worker
    /// Whether the plan is compiled for training, which affects dropout and batch normalization.
    public let training: Bool
    /// The index in `Network.nodes` of the node that produces the output.
    let nodeIndex: Int
    /// Whether the layer is frozen: its parameters and statistics do not change.
    public let frozen: Bool
    /// Whether products of convolutions use bfloat16.
    let usesBFloat16: Bool
    let randomness: Randomness
    let packingState: PackingState
    let currentBatch: CurrentBatch

    /// Returns a copy of the context for each thread of the pool.
    func copies(for threadPool: ThreadPool) -> [LayerContext] {
        (0..<threadPool.count).map { index in
            var context = self
            context.worker = Worker(threadPool: threadPool, index: index)
            return context
        }
    }

    /// The first input.
    public var input: Activation { inputs[0] }
    /// The gradient of the loss with respect to the output; available only in `backward`.
    public var outputGradient: UnsafeMutablePointer<Float> { output.gradient! }

    /// Calls `body` for ranges of `0..<count`, which the threads share, and returns when all ranges are done.
    public func parallelFor(_ count: Int, _ body: (Range<Int>) -> Void) { worker.parallelFor(count, body) }
}

/// The description of a parameter tensor of a layer.
public struct ParameterDescription: Hashable, Sendable {
    /// The role of a parameter, which determines whether it has a gradient and weight decay.
    public enum Role: String, Codable, Sendable {
        /// Trained, with weight decay.
        case weight
        /// Trained, without weight decay: biases, and also the scales and shifts of normalization layers.
        case bias
        /// Not trained by gradients: running means and variances.
        case statistic
    }

    /// The initialization of a parameter.
    public enum Initializer: Hashable, Sendable {
        /// The same value for all elements.
        case constant(Float)
        /// Normal with mean 0 and variance 2 / `fanIn` (He et al., "Delving deep into rectifiers", 2015).
        case heNormal(fanIn: Int)
        /// Uniform between −1 / √`fanIn` and 1 / √`fanIn` (LeCun et al., "Efficient BackProp", 1998).
        case leCunUniform(fanIn: Int)
        /// Uniform in a range a…b: w = a + (b − a) · u, with u uniform in [0, 1).
        ///
        /// Glorot's initialization, for example, has b = √(6 / (inputs + outputs)) and a = −b (Glorot and Bengio, "Understanding the difficulty of
        /// training deep feedforward neural networks", 2010).
        case uniform(ClosedRange<Float>)
        /// Normal: w = mean + σ · n, with the standard deviation σ ≥ 0, and n of mean 0, variance 1 and −6 ≤ n ≤ 6.
        case normal(mean: Float = 0, standardDeviation: Float)
    }

    /// The name within the layer, such as "weight": unique in the layer, and without full stops.
    public let name: String
    /// The lengths of the axes; the last axis is contiguous in memory.
    public let shape: [Int]
    /// The role of the parameter.
    public let role: Role
    /// The initialization.
    public let initializer: Initializer

    /// Creates the description of a parameter.
    public init(name: String, shape: [Int], role: Role, initializer: Initializer) {
        self.name = name
        self.shape = shape
        self.role = role
        self.initializer = initializer
    }

    /// The number of values.
    public var count: Int { shape.reduce(1, *) }
}

/// Returns the only input of a layer, or throws an error if there is not exactly one.
func onlyInput(_ layer: String, _ inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
    guard inputs.count == 1 else { throw .inputCount(layer: layer, expected: "one input", found: inputs.count) }
    return inputs[0]
}

/// Returns the inputs of a layer, or throws an error if there are fewer than two.
func severalInputs(_ layer: String, _ inputs: [TensorShape]) throws(NetworkError) -> [TensorShape] {
    guard inputs.count >= 2 else {
        throw .inputCount(layer: layer, expected: "two or more inputs", found: inputs.count)
    }
    return inputs
}

/// Throws an error unless a property is valid.
func check<Value>(
    _ layer: String, _ property: String, _ value: Value, _ isValid: Bool, _ expected: String
) throws(NetworkError) {
    guard isValid else {
        throw .invalidProperty(layer: layer, property: property, found: messageText(value), expected: expected)
    }
}
