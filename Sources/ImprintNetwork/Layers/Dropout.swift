internal import CImprintKernels
internal import ImprintCore

/// Dropout: in training each number is set to 0 with probability `rate`, the others are multiplied by 1 / (1 − `rate`).
///
/// In prediction, and where the layer is frozen, y = x. Masks are drawn for each step and image from the plan's seed
/// (Srivastava et al., "Dropout", JMLR 2014).
public struct Dropout: Layer {
    public static let kind = "dropout"
    /// The share of numbers that are dropped, 0 ≤ `rate` < 1.
    public let rate: Float

    /// Makes the layer.
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
        context.worker.forEachClaimed(batch) { image in
            let place = image * count
            var stream = RandomStream(
                seed: context.randomness.seed, "dropout", context.nodeIndex, context.randomness.step, image)
            for i in place..<(place + count) { keep[i] = stream.chance(rate) ? 0 : 1 }
            imprint_masked_scale(
                context.input.values + place, keep + place, 1 / (1 - rate), context.output.values + place, count)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let count = batch * context.output.shape.count
        guard !context.frozen else {
            return context.copy(context.outputGradient, to: dx, count: count)
        }
        let keep = context.saved.assumingMemoryBound(to: UInt8.self)
        forEachRange(count, context.worker) { range in
            let place = range.lowerBound
            imprint_masked_scale(
                context.outputGradient + place, keep + place, 1 / (1 - rate), dx + place, range.count)
        }
    }
}
