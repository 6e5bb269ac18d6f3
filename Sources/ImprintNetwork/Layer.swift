public import ImprintCore

/// A layer's description, and the arithmetic that goes with it.
///
/// A layer is a small value without numbers of its own: sizes and options, stored in the weights file. Its parameters,
/// activations and scratch memory belong to the caller (a `Plan`), so `forward` and `backward` are plain functions
/// over buffers. Each kind lives in one file of the folder Layers: description, shapes, forward, backward.
public protocol Layer: Codable, Hashable, Sendable {
    /// The name of this kind in a stored description, such as "convolution".
    static var kind: String { get }

    /// The shape of the result for inputs of these shapes.
    /// - Throws: `NetworkError` where the layer cannot take them or a property is out of range.
    func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape

    /// The parameters of this layer for inputs of these shapes, in the order in which `LayerContext` passes them.
    func parameters(for inputs: [Shape]) -> [ParameterDescription]

    /// What the backward pass reads again of the forward pass's activations.
    var backwardReads: BackwardReads { get }

    /// Whether the result may take the place of the first input in memory.
    var inPlace: InPlace { get }

    /// Whether the gradient of the first input may overwrite that input's values, number by number; not together with
    /// an `inPlace` other than `never`.
    var gradientMayReplaceInput: Bool { get }

    /// Whether the layer asks for the moments of its first input, `LayerContext.inputMoments`, in training.
    var readsMoments: Bool { get }

    /// How many blocks the layer records at most in `LayerContext.outputMoments`; `nil` where it records none.
    func momentBlocks(_ request: MemoryRequest) -> Int?

    /// The way in which this layer computes its result for inputs of these shapes.
    /// - Parameter batch: how many images at most are predicted at once; `nil` in training.
    func algorithm(for inputs: [Shape], predicting batch: Int?) -> Algorithm

    /// How many multiplications, each with an addition, the layer's formula takes for one image, whatever the algorithm; 0
    /// where it has no sums of products.
    func multiplications(for inputs: [Shape]) -> Int

    /// How much memory the layer needs beside its activations.
    func memory(_ request: MemoryRequest) -> LayerMemory

    /// Makes the little that only depends on the parameters; called before a forward pass whenever they have changed.
    func prepare(_ context: LayerContext)

    /// Puts the parameters into the order that passes read fastest; called after `prepare`, before the same pass or the next one.
    func arrange(_ context: LayerContext)

    /// Computes the output from the inputs for the first `batch` images.
    ///
    /// Every thread of the plan calls this at the same time with a context of its own: see `Worker`.
    func forward(_ context: LayerContext, batch: Int)

    /// Computes the gradients of the inputs and parameters from the gradient of the output for the first `batch`
    /// images.
    ///
    /// Overwrites every gradient that is asked for (`nil` where it is not).
    func backward(_ context: LayerContext, batch: Int)
}

extension Layer {
    public func parameters(for inputs: [Shape]) -> [ParameterDescription] { [] }
    public var backwardReads: BackwardReads { .inputs }
    public var inPlace: InPlace { .never }
    public var gradientMayReplaceInput: Bool { false }
    public var readsMoments: Bool { false }
    public func momentBlocks(_ request: MemoryRequest) -> Int? { nil }
    public func algorithm(for inputs: [Shape], predicting batch: Int?) -> Algorithm { .direct }
    public func multiplications(for inputs: [Shape]) -> Int { 0 }
    public func prepare(_ context: LayerContext) {}
    public func arrange(_ context: LayerContext) {}
    public func memory(_ request: MemoryRequest) -> LayerMemory { LayerMemory() }
}

/// What a layer's backward pass reads again.
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

/// Whether a layer's result may take its first input's place in memory.
public enum InPlace: Sendable {
    /// The result needs memory of its own.
    case never
    /// The result may overwrite the input, and the input's gradient the result's.
    case overwriting
    /// The result has the very numbers of the input, seen in another shape.
    case view
}

/// The way in which a layer computes its result; chosen when a plan is compiled.
public enum Algorithm: String, Codable, Sendable {
    /// A loop of the layer's own.
    case direct
    /// A matrix product over the activation as it lies in memory, without a copy.
    case matrixProduct
    /// Windows copied into the rows of a matrix, block by block, then a matrix product.
    case im2col
    /// Winograd's minimal filtering of 4x4 tiles, then 36 matrix products.
    case winograd
}

/// What a plan tells a layer that asks for memory.
public struct MemoryRequest {
    /// The shapes of the inputs.
    public let inputs: [Shape]
    /// The shape of the output.
    public let output: Shape
    /// The largest number of images at once.
    public let batch: Int
    /// Whether there will be a backward pass.
    public let training: Bool
    /// Whether there may be a pass before `arrange`.
    public let delaysArrangement: Bool
    /// The threads that will share the work.
    public let workers: Workers
    /// The algorithm that the plan chose.
    public let algorithm: Algorithm
}

/// The memory that a layer needs beside its activations, in bytes.
public struct LayerMemory {
    /// Memory that keeps its content from the forward to the backward pass.
    public var saved = 0
    /// Memory during a single pass.
    public var scratch = 0
    /// Memory that keeps what `prepare` made of the parameters.
    public var prepared = 0
    /// Memory that keeps what `arrange` made of the parameters.
    public var arranged = 0
}

/// One activation in a plan's arena: NHWC, for as many images as the plan's batch.
public struct Activation {
    let values: UnsafeMutablePointer<Float>
    /// Where its gradient goes; `nil` where nothing needs it.
    let gradient: UnsafeMutablePointer<Float>?
    let shape: Shape
}

/// The buffers that one layer of a plan works on and the thread that does, put together once when the plan is compiled.
public struct LayerContext {
    let inputs: [Activation]
    let output: Activation
    /// What the maker of the first input recorded of it; `nil` where it records nothing or the layer does not ask.
    let inputMoments: Moments?
    /// Where the layer has to record moments of its output; `nil` where no one reads them.
    let outputMoments: Moments?
    /// In the order of `Layer.parameters(for:)`.
    let parameters: [UnsafeMutablePointer<Float>]
    /// As `parameters`; `nil` for statistics and where the layer is frozen.
    let parameterGradients: [UnsafeMutablePointer<Float>?]
    let saved: UnsafeMutableRawPointer
    let scratch: UnsafeMutableRawPointer
    let prepared: UnsafeMutableRawPointer
    let arranged: UnsafeMutableRawPointer
    let algorithm: Algorithm
    /// The member of the plan's team that this context belongs to.
    var worker: Worker
    let training: Bool
    /// The place in its network of the node whose result this is.
    let place: Int
    /// Frozen layers keep their parameters and statistics.
    let frozen: Bool
    let randomness: Randomness
    let arrangement: Arrangement

    /// A context for each member of a team.
    func forEachMember(of team: Team) -> [LayerContext] {
        (0..<team.count).map { index in
            var context = self
            context.worker = Worker(team: team, index: index)
            return context
        }
    }

    /// The first input's activation.
    var input: Activation { inputs[0] }
    /// The gradient that the caller passes to `backward`.
    var outputGradient: UnsafeMutablePointer<Float> { output.gradient! }
}

/// Where a layer's random numbers come from: one stream for each step, node and image.
final class Randomness {
    let seed: UInt64
    var step = 0

    init(seed: UInt64) { self.seed = seed }
}

/// Whether the layers of a plan have arranged the parameters as they are.
final class Arrangement {
    var isDone = false
}

/// One tensor of numbers that belongs to a layer.
public struct ParameterDescription: Hashable, Sendable {
    /// What a parameter is for; decides on its gradient and on weight decay.
    public enum Role: String, Codable, Sendable {
        /// Trained, with weight decay.
        case weight
        /// Trained, without weight decay: biases and the scales and shifts of norms.
        case bias
        /// Not trained by gradients: running means and variances.
        case statistic
    }

    /// The values that a parameter starts from.
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
    /// The values it starts from.
    public let initializer: Initializer

    /// The number of values.
    public var count: Int { shape.reduce(1, *) }
}

/// Checks that a layer has exactly one input.
func onlyInput(_ layer: String, _ inputs: [Shape]) throws(NetworkError) -> Shape {
    guard inputs.count == 1 else { throw .inputCount(layer: layer, expected: "one input", found: inputs.count) }
    return inputs[0]
}

/// Checks that a layer has at least two inputs.
func severalInputs(_ layer: String, _ inputs: [Shape]) throws(NetworkError) -> [Shape] {
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
