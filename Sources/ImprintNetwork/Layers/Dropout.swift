internal import CImprintKernels

/// Dropout.
///
/// In training, y = mask · x / (1 − `rate`) for each element, with mask = 0 with probability `rate`, otherwise 1. In prediction, and if
/// the layer is frozen, y = x. The plan's seed, the node, the step and the image determine the mask.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Srivastava et al., "Dropout", 2014.
public struct Dropout: Layer {
    public static let kind = "dropout"
    /// The probability that an element is dropped, 0 ≤ `rate` < 1.
    public let rate: Float

    /// Creates the layer.
    public init(rate: Float = 0.5) { self.rate = rate }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try check("Dropout", "rate", rate, rate >= 0 && rate < 1, "at least 0 and less than 1")
        return try onlyInput("Dropout", inputs)
    }

    public var backwardReads: BackwardReads { [] }
    public var inPlace: InPlace { .overwriting }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(saved: request.training ? request.batch * request.output.count : 0)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let count = context.output.shape.count
        guard context.training && !context.frozen else {
            return context.copy(context.input.values, to: context.output.values, count: batch * count)
        }
        let keep = context.saved.assumingMemoryBound(to: UInt8.self)
        context.worker.forEachChunk(batch) { image in
            let start = image * count
            var random = context.randomNumbers("dropout", image: image)
            for i in start..<(start + count) { keep[i] = random.uniform() < rate ? 0 : 1 }
            imprint_masked_scale(
                context.input.values + start, keep + start, 1 / (1 - rate), context.output.values + start, count)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let count = batch * context.output.shape.count
        guard !context.frozen else {
            return context.copy(context.outputGradient, to: dx, count: count)
        }
        let keep = context.saved.assumingMemoryBound(to: UInt8.self)
        context.parallelFor(count) { range in
            let start = range.lowerBound
            imprint_masked_scale(
                context.outputGradient + start, keep + start, 1 / (1 - rate), dx + start, range.count)
        }
    }
}
