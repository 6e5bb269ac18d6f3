internal import CImprintKernels
internal import ImprintCore

/// Local response normalization (LRN) across neighbouring channels.
///
/// y = x / d^`beta` with d = `bias` + `alpha` / `size` · Σ x². For channel c, the sum covers the existing channels from
/// c − ⌊(size − 1) / 2⌋ to c + ⌈(size − 1) / 2⌉.
///
/// Input and output: [batch, height, width, channels].
///
/// Backward: dx = dy / d^beta − 2 · alpha / size · beta · x · Σ dy · x / d^(beta + 1), summed over the channels whose d includes
/// this channel.
///
/// Source: Krizhevsky et al., "ImageNet classification", 2012; ONNX, LRN.
public struct LocalResponseNormalization: Layer, LayerKernel {
    public static let kind = "localResponseNormalization"
    /// The number of channels in each sum, ≥ 1.
    public let size: Int
    /// The weight of the mean square, ≥ 0.
    public let alpha: Float
    /// The exponent, ≥ 0.
    public let beta: Float
    /// The term added to the weighted mean square, > 0.
    public let bias: Float

    /// Creates the layer.
    public init(size: Int, alpha: Float = 1e-4, beta: Float = 0.75, bias: Float = 1) {
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.bias = bias
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let name = "LocalResponseNormalization"
        try check(name, "size", size, size >= 1, "at least 1")
        try check(name, "alpha", alpha, alpha >= 0 && alpha.isFinite, "at least 0")
        try check(name, "beta", beta, beta >= 0 && beta.isFinite, "at least 0")
        try check(name, "bias", bias, bias.isNormal && bias > 0, "a positive number")
        return try onlyInput(name, inputs)
    }

    package var gradientMayReplaceInput: Bool { true }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(
            scratch: request.workers.count * scratchCount(request.output.channels) * MemoryLayout<Float>.stride)
    }

    /// The number of floats of scratch memory per worker.
    private func scratchCount(_ channels: Int) -> Int { roundedUp(3 * channels, to: 16) }

    private func response(_ channels: Int) -> imprint_response {
        imprint_response(
            channels: channels, before: min((size - 1) / 2, channels - 1), after: min(size / 2, channels - 1),
            factor: alpha / Float(size), beta: beta, bias: bias)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        var response = response(context.output.shape.channels)
        forEachRow(context, batch) { start, rows, scratch in
            imprint_response_forward(
                &response, context.input.values + start, context.output.values + start, rows, scratch)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        var response = response(context.output.shape.channels)
        forEachRow(context, batch) { start, rows, scratch in
            imprint_response_backward(
                &response, context.input.values + start, context.outputGradient + start, dx + start, rows, scratch)
        }
    }

    private func forEachRow(
        _ context: LayerContext, _ batch: Int, _ body: (Int, Int, UnsafeMutablePointer<Float>) -> Void
    ) {
        let channels = context.output.shape.channels
        let scratch =
            context.scratch.assumingMemoryBound(to: Float.self) + context.worker.index * scratchCount(channels)
        // Powers take longer to compute than sums, so chunks are smaller.
        forEachRows(batch * context.output.shape.pixels, 8 * channels, context.worker) { rows in
            body(rows.lowerBound * channels, rows.count, scratch)
        }
    }
}
