internal import CImprintKernels
internal import ImprintCore

/// A fully connected layer, y = x·W + b, over each pixel's channels (a vector has one pixel).
///
/// x [N, inputs], W [inputs, outputs], b [outputs], y [N, outputs]. W starts uniform within ±1/√inputs, b at 0.
/// Backward: dx = dy·Wᵀ, dW = xᵀ·dy, db = Σ dy.
public struct Dense: Layer {
    public static let kind = "dense"
    /// The number of results.
    public let outputChannels: Int
    /// Whether b is there.
    public let hasBias: Bool

    /// Makes the layer.
    public init(outputChannels: Int, hasBias: Bool = true) {
        self.outputChannels = outputChannels
        self.hasBias = hasBias
    }

    public func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape {
        let input = try onlyInput("Dense", inputs)
        try check("Dense", "outputChannels", outputChannels, outputChannels >= 1, "at least 1")
        guard input.pixels == 1 else {
            throw .inputShape(
                layer: "Dense", found: inputs, reason: "it takes a vector; put Flatten or a global pool before it")
        }
        return Shape(channels: outputChannels)
    }

    public func parameters(for inputs: [Shape]) -> [ParameterDescription] {
        let weight = ParameterDescription(
            name: "weight", shape: [inputs[0].channels, outputChannels], role: .weight,
            initializer: .leCunUniform(fanIn: inputs[0].channels))
        let bias = ParameterDescription(
            name: "bias", shape: [outputChannels], role: .bias, initializer: .constant(0))
        return hasBias ? [weight, bias] : [weight]
    }

    public func algorithm(for inputs: [Shape]) -> Algorithm { .matrixProduct }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(scratch: ChannelReduction.scratchByteCount(channels: outputChannels))
    }

    /// Large weights are split over the workers by columns, in parts that do not depend on their number.
    private func columnParts(_ inputChannels: Int) -> Int {
        inputChannels * outputChannels < 1 << 18 ? 1 : min(4, outputChannels / 16 + 1)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let inputChannels = context.input.shape.channels
        let y = context.output.values
        let parts = columnParts(inputChannels)
        context.worker.forEach(parts) { part in
            let columns = chunkRange(part, of: parts, total: outputChannels)
            if hasBias {
                let bias = context.parameters[1] + columns.lowerBound
                for image in 0..<batch {
                    (y + image * outputChannels + columns.lowerBound).update(from: bias, count: columns.count)
                }
            }
            GEMM.multiply(
                rows: batch, columns: columns.count, inner: inputChannels,
                GEMM.Matrix(context.input.values, stride: inputChannels),
                GEMM.Matrix(context.parameters[0] + columns.lowerBound, stride: outputChannels),
                into: y + columns.lowerBound, stride: outputChannels, accumulating: hasBias)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let inputChannels = context.input.shape.channels
        let dy = context.outputGradient
        let parts = columnParts(inputChannels)
        if let dx = context.input.gradient {
            context.worker.forEach(parts) { part in
                let rows = chunkRange(part, of: parts, total: inputChannels)
                GEMM.multiply(
                    rows: batch, columns: rows.count, inner: outputChannels,
                    GEMM.Matrix(dy, stride: outputChannels),
                    GEMM.Matrix(
                        context.parameters[0] + rows.lowerBound * outputChannels, stride: outputChannels
                    ).transpose,
                    into: dx + rows.lowerBound, stride: inputChannels)
            }
        }
        if let dWeight = context.parameterGradients[0] {
            context.worker.forEach(parts) { part in
                let columns = chunkRange(part, of: parts, total: outputChannels)
                GEMM.multiply(
                    rows: inputChannels, columns: columns.count, inner: batch,
                    GEMM.Matrix(context.input.values, stride: inputChannels).transpose,
                    GEMM.Matrix(dy + columns.lowerBound, stride: outputChannels),
                    into: dWeight + columns.lowerBound, stride: outputChannels)
            }
        }
        if hasBias, let dBias = context.parameterGradients[1] {
            context.sumOverRows(dy, rows: batch, channels: outputChannels, into: dBias)
        }
    }
}

extension LayerContext {
    /// result[c] = Σ over the rows of values[r][c]; uses the scratch memory.
    func sumOverRows(
        _ values: UnsafePointer<Float>, rows: Int, channels: Int, into result: UnsafeMutablePointer<Float>
    ) {
        let sums = ChannelReduction(channels: channels, rows: rows).run(scratch: scratch, worker: worker) {
            rows, sums in
            imprint_channel_sums(values + rows.lowerBound * channels, sums, rows.count, channels)
        }
        worker.alone { for channel in 0..<channels { result[channel] = Float(sums[channel]) } }
    }
}
