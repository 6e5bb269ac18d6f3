/// What an execution plan runs: a layer, or several that are fused into one operation.
///
/// Every `Layer` can be run. A layer of this module conforms to this protocol too if it is faster with more than a public layer can ask for:
/// packed weights, recorded moments, a choice of algorithms.
package protocol LayerKernel: Sendable {
    /// See `Layer.backwardReads`.
    var backwardReads: BackwardReads { get }
    /// See `Layer.inPlace`.
    var inPlace: InPlace { get }
    /// See `Layer.multiplications(for:)`.
    func multiplications(for inputs: [TensorShape]) -> Int
    /// See `Layer.memory(_:)`.
    func memory(_ request: MemoryRequest) -> LayerMemory
    /// See `Layer.forward(_:batch:)`.
    func forward(_ context: LayerContext, batch: Int)
    /// See `Layer.backward(_:batch:)`.
    func backward(_ context: LayerContext, batch: Int)

    /// Whether the gradient of the first input may overwrite that input's values, element by element; not together with an `inPlace` other
    /// than `never`.
    var gradientMayReplaceInput: Bool { get }

    /// Whether training reads the moments of the first input, `LayerContext.inputMoments`.
    var readsMoments: Bool { get }

    /// The largest number of blocks that the layer records in `LayerContext.outputMoments`; nil if it records none.
    func momentBlocks(_ request: MemoryRequest) -> Int?

    /// The algorithm for inputs of these shapes.
    /// - Parameter batch: The largest number of images predicted at once; nil in training.
    func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm

    /// Precomputes weight transforms; runs before a forward pass whenever the parameters have changed.
    func transformWeights(_ context: LayerContext)

    /// Packs the weights into the order that passes read fastest; runs after `transformWeights`, before the same pass or the next one.
    func packWeights(_ context: LayerContext)
}

extension LayerKernel {
    package var gradientMayReplaceInput: Bool { false }
    package var readsMoments: Bool { false }
    package func momentBlocks(_ request: MemoryRequest) -> Int? { nil }
    package func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm { .direct }
    package func transformWeights(_ context: LayerContext) {}
    package func packWeights(_ context: LayerContext) {}
}

/// Runs a layer that has only the public requirements.
struct PlainKernel: LayerKernel {
    let layer: any Layer

    var backwardReads: BackwardReads { layer.backwardReads }
    var inPlace: InPlace { layer.inPlace }
    func multiplications(for inputs: [TensorShape]) -> Int { layer.multiplications(for: inputs) }
    func memory(_ request: MemoryRequest) -> LayerMemory { layer.memory(request) }
    func forward(_ context: LayerContext, batch: Int) { layer.forward(context, batch: batch) }
    func backward(_ context: LayerContext, batch: Int) { layer.backward(context, batch: batch) }
}

extension Layer {
    /// What runs this layer.
    var kernel: any LayerKernel { self as? any LayerKernel ?? PlainKernel(layer: self) }
}

/// The way in which a layer computes its output; chosen when a plan is compiled.
package enum Algorithm: String, Codable, Sendable {
    /// A loop of the layer's own.
    case direct
    /// A matrix product over the activation in place, without a copy.
    case matrixProduct
    /// Windows copied into the rows of a matrix, block by block, then a matrix product.
    case im2col
    /// Winograd's minimal filtering of 4x4 tiles, then 36 matrix products.
    case winograd
}

/// The source of a layer's random numbers: one stream for each step, node and image.
final class Randomness {
    let seed: UInt64
    var step = 0

    init(seed: UInt64) { self.seed = seed }
}

/// Whether the layers of a plan have packed the current parameters.
final class PackingState {
    var isDone = false
}
