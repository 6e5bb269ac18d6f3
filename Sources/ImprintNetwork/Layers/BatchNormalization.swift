internal import CImprintKernels
internal import ImprintCore

/// Batch normalisation, y = scale · (x − mean) / √(variance + ε) + shift, channel by channel.
///
/// In training mean and (biased) variance are those of the batch over N, H and W, and the running statistics follow:
/// running ← (1 − momentum) · running + momentum · batch, with the unbiased variance, as PyTorch does. In prediction,
/// and where the layer is frozen or `usesRunningStatistics`, the running statistics take their place.
/// scale starts at 1, shift and running mean at 0, running variance at 1 (Ioffe and Szegedy, "Batch normalization", 2015).
///
/// Backward with n = N·H·W, x̂ = (x − mean) / √(variance + ε):
/// dshift = Σ dy, dscale = Σ dy·x̂, dx = scale / √(variance + ε) · (dy − dshift / n − x̂ · dscale / n); with running
/// statistics dx = scale / √(variance + ε) · dy.
public struct BatchNormalization: Layer {
    public static let kind = "batchNormalization"
    /// The share of the new batch in the running statistics, 0…1.
    public let momentum: Float
    /// What is added to the variance, ε > 0.
    public let epsilon: Float
    /// Whether training too normalises with the running statistics and leaves them as they are.
    public let usesRunningStatistics: Bool

    /// Makes the layer.
    public init(momentum: Float = 0.1, epsilon: Float = 1e-5, usesRunningStatistics: Bool = false) {
        self.momentum = momentum
        self.epsilon = epsilon
        self.usesRunningStatistics = usesRunningStatistics
    }

    public func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape {
        try check("BatchNormalization", "momentum", momentum, (0...1).contains(momentum), "between 0 and 1")
        try check("BatchNormalization", "epsilon", epsilon, epsilon > 0 && epsilon.isFinite, "a positive number")
        return try onlyInput("BatchNormalization", inputs)
    }

    public func parameters(for inputs: [Shape]) -> [ParameterDescription] {
        func vector(_ name: String, _ role: ParameterDescription.Role, _ value: Float) -> ParameterDescription {
            ParameterDescription(
                name: name, shape: [inputs[0].channels], role: role, initializer: .constant(value))
        }
        return [
            vector("scale", .bias, 1), vector("shift", .bias, 0),
            vector("runningMean", .statistic, 0), vector("runningVariance", .statistic, 1),
        ]
    }

    /// Mean and 1 / √(variance + ε) are saved; sums in parts and three rows of coefficients are scratch.
    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let channels = request.output.channels
        return LayerMemory(
            saved: 2 * channels * MemoryLayout<Float>.stride,
            scratch: 2 * ChannelReduction.scratchByteCount(channels: channels)
                + 3 * channels * MemoryLayout<Float>.stride)
    }

    private func usesBatch(_ context: LayerContext) -> Bool {
        context.training && !context.frozen && !usesRunningStatistics
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let channels = context.input.shape.channels
        let rows = batch * context.input.shape.pixels
        let (scale, shift) = (context.parameters[0], context.parameters[1])
        let (mean, inverse) = statistics(context)
        if usesBatch(context) { measure(context, rows: rows) }
        let (factor, offset, _) = coefficients(context)
        context.worker.alone {
            for channel in 0..<channels {
                if !usesBatch(context) {
                    mean[channel] = context.parameters[2][channel]
                    inverse[channel] = 1 / (context.parameters[3][channel] + epsilon).squareRoot()
                }
                factor[channel] = scale[channel] * inverse[channel]
                offset[channel] = shift[channel] - mean[channel] * factor[channel]
            }
        }
        forEachRows(rows, channels, context.worker) { range in
            let start = range.lowerBound * channels
            imprint_scale_shift(
                context.input.values + start, factor, offset, context.output.values + start, range.count, channels)
        }
    }

    /// Takes mean and variance of the batch, in two passes for accuracy, and moves the running statistics.
    private func measure(_ context: LayerContext, rows: Int) {
        let channels = context.input.shape.channels
        let (mean, inverse) = statistics(context)
        let (runningMean, runningVariance) = (context.parameters[2], context.parameters[3])
        let x = context.input.values
        let reduction = ChannelReduction(channels: channels, rows: rows)
        let sums = reduction.run(scratch: context.scratch, worker: context.worker) { range, sums in
            imprint_channel_sums(x + range.lowerBound * channels, sums, range.count, channels)
        }
        context.worker.alone {
            for channel in 0..<channels { mean[channel] = Float(sums[channel] / Double(rows)) }
        }
        let squares = reduction.run(scratch: context.scratch, worker: context.worker) { range, sums in
            imprint_channel_squares(x + range.lowerBound * channels, mean, sums, range.count, channels)
        }
        let unbiased = Float(rows) / Float(max(rows - 1, 1))
        context.worker.alone {
            for channel in 0..<channels {
                let variance = Float(squares[channel] / Double(rows))
                inverse[channel] = 1 / (variance + epsilon).squareRoot()
                runningMean[channel] += momentum * (mean[channel] - runningMean[channel])
                runningVariance[channel] += momentum * (variance * unbiased - runningVariance[channel])
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let channels = context.input.shape.channels
        let rows = batch * context.input.shape.pixels
        let (mean, inverse) = statistics(context)
        let (x, dy) = (context.input.values, context.outputGradient)
        let reduction = ChannelReduction(channels: channels, rows: rows)
        let dShift = reduction.run(scratch: context.scratch, worker: context.worker) { range, sums in
            imprint_channel_sums(dy + range.lowerBound * channels, sums, range.count, channels)
        }
        let second = context.scratch + ChannelReduction.scratchByteCount(channels: channels)
        let products = reduction.run(scratch: second, worker: context.worker) { range, sums in
            let start = range.lowerBound * channels
            imprint_channel_products(x + start, mean, dy + start, sums, range.count, channels)
        }
        if let dScale = context.parameterGradients[0], let dBias = context.parameterGradients[1] {
            context.worker.alone {
                for channel in 0..<channels {
                    dScale[channel] = Float(products[channel]) * inverse[channel]
                    dBias[channel] = Float(dShift[channel])
                }
            }
        }
        guard let dx = context.input.gradient else { return }
        // dx = a·dy + b·x + k
        let (a, b, k) = coefficients(context)
        context.worker.alone {
            for channel in 0..<channels {
                a[channel] = context.parameters[0][channel] * inverse[channel]
                if usesBatch(context) {
                    let slope = Float(products[channel] / Double(rows)) * inverse[channel] * inverse[channel]
                    b[channel] = -a[channel] * slope
                    k[channel] = a[channel] * (slope * mean[channel] - Float(dShift[channel] / Double(rows)))
                } else {
                    b[channel] = 0
                    k[channel] = 0
                }
            }
        }
        forEachRows(rows, channels, context.worker) { range in
            let start = range.lowerBound * channels
            imprint_batch_norm_backward(x + start, dy + start, a, b, k, dx + start, range.count, channels)
        }
    }

    private func statistics(
        _ context: LayerContext
    ) -> (mean: UnsafeMutablePointer<Float>, inverse: UnsafeMutablePointer<Float>) {
        let base = context.saved.assumingMemoryBound(to: Float.self)
        return (base, base + context.input.shape.channels)
    }

    /// Three rows behind the sums in the scratch memory.
    private func coefficients(
        _ context: LayerContext
    ) -> (UnsafeMutablePointer<Float>, UnsafeMutablePointer<Float>, UnsafeMutablePointer<Float>) {
        let channels = context.input.shape.channels
        let base = (context.scratch + 2 * ChannelReduction.scratchByteCount(channels: channels))
            .assumingMemoryBound(to: Float.self)
        return (base, base + channels, base + 2 * channels)
    }
}

/// Runs `body` over the rows of a [rows, channels] matrix in chunks that are worth a thread.
private func forEachRows(_ rows: Int, _ channels: Int, _ worker: Worker, _ body: (Range<Int>) -> Void) {
    let chunks = min(rows, max(1, rows * channels / (1 << 18)))
    worker.forEach(chunks) { chunk in body(chunkRange(chunk, of: chunks, total: rows)) }
}
