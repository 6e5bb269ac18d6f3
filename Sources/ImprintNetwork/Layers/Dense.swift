internal import CImprintKernels
internal import ImprintCore

/// Fully connected (linear) layer.
///
/// y = x·W + b
///
/// Input: [batch, 1, 1, input channels]. Output: [batch, 1, 1, output channels].
///
/// Parameters:
/// - `weight` W: [input channels, output channels], initialized uniformly within ±1 / √(input channels).
/// - `bias` b: [output channels], initialized to 0; without weight decay.
///
/// Backward: dx = dy·Wᵀ, dW = xᵀ·dy, db = Σ dy.
public struct Dense: Layer, LayerKernel {
    public static let kind = "dense"
    /// The number of output channels.
    public let outputChannels: Int
    /// Whether the layer has a bias.
    public let hasBias: Bool

    /// Creates the layer.
    public init(outputChannels: Int, hasBias: Bool = true) {
        self.outputChannels = outputChannels
        self.hasBias = hasBias
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let input = try onlyInput("Dense", inputs)
        try check("Dense", "outputChannels", outputChannels, outputChannels >= 1, "at least 1")
        guard input.pixels == 1 else {
            throw .inputShape(
                layer: "Dense", found: inputs,
                reason: "the input must be a vector; add Flatten or a global pool before it")
        }
        return TensorShape(channels: outputChannels)
    }

    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        let weight = ParameterDescription(
            name: "weight", shape: [inputs[0].channels, outputChannels], role: .weight,
            initializer: .leCunUniform(fanIn: inputs[0].channels))
        let bias = ParameterDescription(
            name: "bias", shape: [outputChannels], role: .bias, initializer: .constant(0))
        return hasBias ? [weight, bias] : [weight]
    }

    public func multiplications(for inputs: [TensorShape]) -> Int { inputs[0].channels * outputChannels }

    package func algorithm(for inputs: [TensorShape], predicting batch: Int?) -> Algorithm { .matrixProduct }

    /// Scratch memory for xᵀ and yᵀ, or for dxᵀ.
    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let images = min(request.batch, Self.manyImages - 1)
        let transposed = images * (outputChannels + request.inputs[0].channels)
        return LayerMemory(
            scratch: max(
                transposed * MemoryLayout<Float>.stride,
                request.training ? ChannelReduction.scratchByteCount(channels: outputChannels) : 0))
    }

    // For small batches, OpenBLAS is faster with the weights as the first operand: yᵀ = Wᵀ·xᵀ and dxᵀ = W·dyᵀ.
    // From this batch size on, the order makes no difference, and transposing would only cost time.
    private static let manyImages = 128

    // If several processes share the batch, each one computes all images, because the bits of a matrix product can depend on the number of its
    // rows. The alternative is to add the gradients of the weights of all processes, but these have more values than the activations.

    public func forward(_ context: LayerContext, batch: Int) {
        let inputChannels = context.input.shape.channels
        let (weight, bias) = (context.parameters[0], hasBias ? context.parameters[1] : nil)
        let x = context.ofAllImages(context.input.values, count: inputChannels, slot: 0)
        let batch = context.part.total
        let transposedX = context.scratch.assumingMemoryBound(to: Float.self)
        let transposedY = transposedX + inputChannels * batch
        let isTransposed = batch < Self.manyImages
        if isTransposed {
            context.worker.onFirstThread { imprint_transpose(x, inputChannels, transposedX, batch, inputChannels) }
        }
        let parts = parts(of: outputChannels, inputChannels)
        context.worker.forEachChunk(parts) { part in
            let outputs = chunkRange(part, of: parts, total: outputChannels)
            let y = context.output.values + outputs.lowerBound
            guard isTransposed else {
                GEMM.multiply(
                    rows: batch, columns: outputs.count, inner: inputChannels, GEMM.Matrix(x, stride: inputChannels),
                    GEMM.Matrix(weight + outputs.lowerBound, stride: outputChannels), into: y, stride: outputChannels)
                if let bias { add(bias, to: context.output.values, outputs, batch: batch) }
                return
            }
            let result = transposedY + outputs.lowerBound * batch
            forEachPiece(of: 0..<inputChannels, products: batch * outputs.count) { inputs in
                GEMM.multiply(
                    rows: outputs.count, columns: batch, inner: inputs.count,
                    GEMM.Matrix(
                        weight + inputs.lowerBound * outputChannels + outputs.lowerBound, stride: outputChannels
                    ).transpose,
                    GEMM.Matrix(transposedX + inputs.lowerBound * batch, stride: batch),
                    into: result, stride: batch, accumulating: inputs.lowerBound > 0)
            }
            transpose(result, count: outputs.count, into: y, stride: outputChannels, batch: batch)
            if let bias { add(bias, to: context.output.values, outputs, batch: batch) }
        }
        context.keepOwnImages(context.output.values, count: outputChannels)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let inputChannels = context.input.shape.channels
        let weight = context.parameters[0]
        let batch = context.part.total
        let dy = GEMM.Matrix(
            context.ofAllImages(context.outputGradient, count: outputChannels, slot: 1), stride: outputChannels)
        let x = context.parameterGradients[0].map { _ in
            context.ofAllImages(context.input.values, count: inputChannels, slot: 0)
        }
        let transposedDX = context.scratch.assumingMemoryBound(to: Float.self)
        let isTransposed = batch < Self.manyImages
        let parts = parts(of: inputChannels, inputChannels)
        context.worker.forEachChunk(parts) { part in
            let all = chunkRange(part, of: parts, total: inputChannels)
            forEachPiece(of: all, products: batch * outputChannels) { inputs in
                let start = inputs.lowerBound * outputChannels
                let rows = GEMM.Matrix(weight + start, stride: outputChannels)
                if let dx = context.input.gradient.map({ $0 + inputs.lowerBound }) {
                    if isTransposed {
                        let result = transposedDX + inputs.lowerBound * batch
                        GEMM.multiply(
                            rows: inputs.count, columns: batch, inner: outputChannels, rows, dy.transpose, into: result,
                            stride: batch)
                        transpose(result, count: inputs.count, into: dx, stride: inputChannels, batch: batch)
                    } else {
                        GEMM.multiply(
                            rows: batch, columns: inputs.count, inner: outputChannels, dy, rows.transpose, into: dx,
                            stride: inputChannels)
                    }
                }
                if let x, let dWeight = context.parameterGradients[0] {
                    GEMM.multiply(
                        rows: inputs.count, columns: outputChannels, inner: batch,
                        GEMM.Matrix(x + inputs.lowerBound, stride: inputChannels).transpose, dy,
                        into: dWeight + start, stride: outputChannels)
                }
            }
        }
        if let dx = context.input.gradient { context.keepOwnImages(dx, count: inputChannels) }
        if hasBias, let dBias = context.parameterGradients[1] {
            context.sumOverRows(context.outputGradient, channels: outputChannels, into: dBias)
        }
    }

    /// Writes y[n][c] = values[c][n] for all images n.
    private func transpose(
        _ values: UnsafePointer<Float>, count: Int, into y: UnsafeMutablePointer<Float>, stride: Int, batch: Int
    ) {
        for image in 0..<batch {
            let row = y + image * stride
            for channel in 0..<count { row[channel] = values[channel * batch + image] }
        }
    }

    private func add(
        _ bias: UnsafePointer<Float>, to y: UnsafeMutablePointer<Float>, _ outputs: Range<Int>, batch: Int
    ) {
        for image in 0..<batch {
            let row = y + image * outputChannels
            for output in outputs { row[output] += bias[output] }
        }
    }

    /// The number of parts that an axis of large weights is divided into; independent of the number of threads.
    private func parts(of length: Int, _ inputChannels: Int) -> Int {
        let weights = inputChannels * outputChannels
        return weights < 1 << 18 ? 1 : min(16, weights >> 16, length / 16 + 1)
    }

    /// Runs `body` over pieces of the weights' rows that OpenBLAS multiplies without packing, or over all rows at once.
    private func forEachPiece(of rows: Range<Int>, products: Int, _ body: (Range<Int>) -> Void) {
        let length = GEMM.blockLength(multiplicationsPerRow: products, minimum: 16) ?? rows.count
        for start in stride(from: rows.lowerBound, to: rows.upperBound, by: length) {
            body(start..<min(start + length, rows.upperBound))
        }
    }
}

extension LayerContext {
    /// Computes result[c] = Σ values[r][c] over the rows r of all images; uses the scratch memory.
    func sumOverRows(
        _ values: UnsafePointer<Float>, rowsPerImage: Int = 1, channels: Int,
        into result: UnsafeMutablePointer<Float>
    ) {
        let reduction = ChannelReduction(channels: channels, rowsPerImage: rowsPerImage)
        let sums = reduction.runByChannels(self) { rows, part, sums in
            imprint_channel_sums(
                values + rows.lowerBound * channels + part.lowerBound, channels, sums, rows.count, part.count)
        }
        worker.onFirstThread { for channel in 0..<channels { result[channel] = Float(sums[channel]) } }
    }
}
