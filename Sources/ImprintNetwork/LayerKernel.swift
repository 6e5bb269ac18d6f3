/// The implementation of one operation of an execution plan: a layer, or several fused layers.
///
/// A plan can run every `Layer`. A layer of this module also conforms to this protocol if it uses features that the public protocol does
/// not have: packed weights, recorded moments or a choice of algorithms.
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

    /// Whether the gradient of the first input may overwrite the values of that input, element by element.
    ///
    /// It must be false unless `inPlace` is `never`.
    var gradientMayReplaceInput: Bool { get }

    /// Whether the kernel reads `LayerContext.inputMoments` in training.
    var readsMoments: Bool { get }

    /// Returns the largest number of blocks that the kernel records in `LayerContext.outputMoments`; nil if it does not record moments.
    func momentBlocks(_ request: MemoryRequest) -> Int?

    /// Returns the algorithm for inputs of these shapes.
    /// - Parameter batch: The batch size of a plan for prediction; nil in training.
    func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm

    /// Returns the precision of the products; rounding and sums may be more precise.
    func precision(_ request: MemoryRequest) -> Precision

    /// Precomputes weight transforms. Runs before a forward pass if the parameters have changed.
    func transformWeights(_ context: LayerContext)

    /// Packs the weights into the layout that matrix products read fastest. Runs after `transformWeights`, before the same pass or the
    /// next one.
    func packWeights(_ context: LayerContext)
}

extension LayerKernel {
    package var gradientMayReplaceInput: Bool { false }
    package var readsMoments: Bool { false }
    package func momentBlocks(_ request: MemoryRequest) -> Int? { nil }
    package func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm { .direct }
    package func precision(_ request: MemoryRequest) -> Precision { .float32 }
    package func transformWeights(_ context: LayerContext) {}
    package func packWeights(_ context: LayerContext) {}
}

/// Runs a layer that conforms only to the public protocol.
struct PlainKernel: LayerKernel {
    let layer: any Layer

    var backwardReads: BackwardReads { layer.backwardReads }
    var inPlace: InPlace { layer.inPlace }
    func multiplications(for inputs: [TensorShape]) -> Int { layer.multiplications(for: inputs) }
    func memory(_ request: MemoryRequest) -> LayerMemory { layer.memory(request) }
    func forward(_ context: LayerContext, batch: Int) { layer.forward(context, batch: batch) }
    func backward(_ context: LayerContext, batch: Int) {
        layer.backward(context, batch: batch)
        guard context.part.count > 1 else { return }
        // The layer does not know of the other processes. The order of its own additions may depend on the size of its batch.
        let parameters = layer.parameters(for: context.inputs.map(\.shape))
        for (gradient, parameter) in zip(context.parameterGradients, parameters) {
            if let gradient { context.allReduce(gradient, count: parameter.count) }
        }
    }
}

extension Layer {
    /// The kernel that runs this layer.
    var kernel: any LayerKernel { self as? any LayerKernel ?? PlainKernel(layer: self) }
}

/// The algorithm of an operation, chosen when a plan is compiled.
package enum Algorithm: String, Codable, Sendable {
    /// A loop without an intermediate matrix.
    case direct
    /// A matrix product that reads the activation without a copy.
    case matrixProduct
    /// Blocks of windows copied into the rows of a matrix, then multiplied.
    case im2col
    /// Winograd F(4x4, 3x3): transformed 4x4 tiles and 36 matrix products.
    case winograd

    /// Whether one product of matrices computes the operation.
    var isMatrixProduct: Bool { self == .matrixProduct || self == .im2col }
}

/// The state from which a layer derives its random stream for each step, node and image.
final class Randomness {
    let seed: UInt64
    var step = 0

    init(seed: UInt64) { self.seed = seed }
}

/// Whether the layers of a plan have packed their current weights.
final class PackingState {
    var isDone = false
}
