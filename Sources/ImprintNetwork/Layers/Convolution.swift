internal import CImprintKernels
internal import ImprintCore

/// Convolution, y[n, i, j, o] = b[o] + Σ x[n, i·stride + p·dilation − top, j·stride + q·dilation − left, c] · W[p, q, c, o].
///
/// x [N, H, W, inputs], W [kernel height, kernel width, inputs / groups, outputs], b [outputs],
/// y [N, ⌊(H + padding − e) / stride⌋ + 1, …, outputs] with e = (kernel − 1) · dilation + 1. With groups, the outputs of
/// group g see the inputs of group g alone; as many groups as inputs and outputs make it depthwise.
/// W starts normal with variance 2 / fan-in (He), b at 0.
///
/// Each window is a row of a matrix X of [pixels, kernel · inputs], so that y = X·W; backward dW = Xᵀ·dy, and
/// dx gathers the rows of dy·Wᵀ where the windows lay. X exists in blocks of rows that stay in cache.
public struct Convolution: Layer {
    public static let kind = "convolution"
    /// The number of channels of the result.
    public let outputChannels: Int
    /// The kernel's height and width.
    public let kernelSize: Size
    /// The step from window to window.
    public let stride: Size
    /// The border around the image, filled with zeros.
    public let padding: Padding
    /// The distance between neighbouring taps of the kernel.
    public let dilation: Size
    /// Into how many independent parts inputs and outputs are divided.
    public let groups: Int
    /// Whether b is there; superfluous before a batch normalisation.
    public let hasBias: Bool

    /// Makes the layer.
    public init(
        outputChannels: Int, kernelSize: Size, stride: Size = 1, padding: Padding = .valid, dilation: Size = 1,
        groups: Int = 1, hasBias: Bool = true
    ) {
        self.outputChannels = outputChannels
        self.kernelSize = kernelSize
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        self.hasBias = hasBias
    }

    var window: Window { Window(kernel: kernelSize, stride: stride, dilation: dilation, padding: padding) }

    public func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape {
        let input = try onlyInput("Convolution", inputs)
        try check("Convolution", "outputChannels", outputChannels, outputChannels >= 1, "at least 1")
        let divides = groups >= 1 && input.channels % groups == 0 && outputChannels % groups == 0
        try check(
            "Convolution", "groups", groups, divides,
            "a divisor of the \(input.channels) input and \(outputChannels) output channels")
        return try window.outputShape("Convolution", over: input, channels: outputChannels)
    }

    public func parameters(for inputs: [Shape]) -> [ParameterDescription] {
        let inputChannels = inputs[0].channels / groups
        let weight = ParameterDescription(
            name: "weight", shape: [kernelSize.height, kernelSize.width, inputChannels, outputChannels],
            role: .weight, initializer: .heNormal(fanIn: kernelSize.height * kernelSize.width * inputChannels))
        let bias = ParameterDescription(
            name: "bias", shape: [outputChannels], role: .bias, initializer: .constant(0))
        return hasBias ? [weight, bias] : [weight]
    }

    public func algorithm(for inputs: [Shape]) -> Algorithm {
        if groups > 1 && groups == inputs[0].channels && groups == outputChannels { return .direct }
        let isPointwise =
            kernelSize == 1 && stride == 1 && groups == 1
            && (padding == .valid || padding == .same || padding == .all(0))
        return isPointwise ? .matrixProduct : .im2col
    }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let sizes = Sizes(self, input: request.inputs[0], output: request.output)
        let columns = request.algorithm == .im2col ? request.workers.count * sizes.blockRows * sizes.rowLength : 0
        let weights = request.training ? Sizes.weightParts * sizes.weightCount : 0
        return LayerMemory(
            scratch: max(
                (columns + weights) * MemoryLayout<Float>.stride,
                ChannelReduction.scratchByteCount(channels: outputChannels)))
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let bias = hasBias ? context.parameters[1] : nil
        if context.algorithm == .direct {
            let window = window.kernelWindow(over: context.input.shape)
            context.forEachImage(batch) { image in
                withUnsafePointer(to: window) {
                    imprint_depthwise_forward(
                        $0, context.input.at(image), context.parameters[0], bias, context.output.at(image))
                }
            }
            return
        }
        let product = ConvolutionProduct(self, context)
        product.forEachBlock(of: 0..<(batch * context.output.shape.pixels)) { rows in
            if let bias {
                imprint_broadcast_row(
                    bias, context.output.values + rows.lowerBound * outputChannels, rows.count, outputChannels)
            }
            for group in 0..<groups { product.forward(rows, group: group, accumulating: hasBias) }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let dy = context.outputGradient
        if hasBias, let dBias = context.parameterGradients[1] {
            context.sumOverRows(
                dy, rows: batch * context.output.shape.pixels, channels: outputChannels, into: dBias)
        }
        if context.algorithm == .direct {
            backwardDepthwise(context, batch: batch)
        } else {
            let product = ConvolutionProduct(self, context)
            if let dWeight = context.parameterGradients[0] { product.backwardWeight(dWeight, batch: batch) }
            if let dx = context.input.gradient { product.backwardInput(dx, batch: batch) }
        }
    }

    private func backwardDepthwise(_ context: LayerContext, batch: Int) {
        let window = window.kernelWindow(over: context.input.shape)
        let dy = context.outputGradient
        let outputCount = context.output.shape.count
        if let dWeight = context.parameterGradients[0] {
            let count = kernelSize.height * kernelSize.width * outputChannels
            sumOfParts(context, batch: batch, count: count, into: dWeight) { images, sum in
                sum.update(repeating: 0, count: count)
                for image in images {
                    withUnsafePointer(to: window) {
                        imprint_depthwise_backward_weight($0, context.input.at(image), dy + image * outputCount, sum)
                    }
                }
            }
        }
        if let dx = context.input.gradient {
            context.forEachImage(batch) { image in
                withUnsafePointer(to: window) {
                    imprint_depthwise_backward_input(
                        $0, dy + image * outputCount, context.parameters[0], dx + image * context.input.shape.count)
                }
            }
        }
    }
}

/// dWeight = the sum over fixed parts of the batch, each summed by one worker, added in their order.
private func sumOfParts(
    _ context: LayerContext, batch: Int, count: Int, into dWeight: UnsafeMutablePointer<Float>,
    _ sum: (_ images: Range<Int>, _ result: UnsafeMutablePointer<Float>) -> Void
) {
    let parts = min(Sizes.weightParts, batch)
    let partial = context.scratch.assumingMemoryBound(to: Float.self)
    context.worker.forEach(parts) { part in
        // The first part's sum begins in the result itself.
        sum(chunkRange(part, of: parts, total: batch), part == 0 ? dWeight : partial + part * count)
    }
    for part in 0..<parts where part > 0 {
        addRows(partial + part * count, to: dWeight, count: 1, countPerImage: count, worker: context.worker)
    }
}

/// The sizes that a convolution's matrix products have.
private struct Sizes {
    /// Into how many parts a batch is divided for the gradient of the weights; fixed, whatever the number of workers.
    static let weightParts = 4

    let inputChannels: Int
    let outputChannels: Int
    /// The length of a window's row: kernel height · kernel width · inputs of one group.
    let rowLength: Int
    let weightCount: Int
    /// How many windows are copied at once: few enough for the cache, enough for the matrix product.
    let blockRows: Int

    init(_ layer: Convolution, input: Shape, output: Shape) {
        inputChannels = input.channels / layer.groups
        outputChannels = output.channels / layer.groups
        rowLength = layer.kernelSize.height * layer.kernelSize.width * inputChannels
        weightCount = rowLength * output.channels
        blockRows = min(max((1 << 17) / rowLength, 256), 2048)
    }
}

/// A convolution as products of matrices whose rows are windows; a pointwise convolution's windows lie in memory already.
private struct ConvolutionProduct {
    private let layer: Convolution
    private let context: LayerContext
    private let window: imprint_window
    private let sizes: Sizes
    private let columns: UnsafeMutablePointer<Float>
    private var copies: Bool { context.algorithm == .im2col }
    private var pixels: Int { context.output.shape.pixels }

    init(_ layer: Convolution, _ context: LayerContext) {
        self.layer = layer
        self.context = context
        window = layer.window.kernelWindow(over: context.input.shape)
        sizes = Sizes(layer, input: context.input.shape, output: context.output.shape)
        let weights = context.training ? Sizes.weightParts * sizes.weightCount : 0
        columns = context.scratch.assumingMemoryBound(to: Float.self) + weights
    }

    /// Runs `body(rows)` over blocks of the output pixels `rows`, shared among the workers.
    func forEachBlock(of rows: Range<Int>, _ body: (Range<Int>) -> Void) {
        let blocks = (rows.count + sizes.blockRows - 1) / sizes.blockRows
        context.worker.forEach(blocks) { block in body(self.block(block, of: rows)) }
    }

    /// y = X·W (+ y, which then holds the bias) for some output pixels of one group.
    func forward(_ rows: Range<Int>, group: Int, accumulating: Bool) {
        GEMM.multiply(
            rows: rows.count, columns: sizes.outputChannels, inner: sizes.rowLength,
            windows(rows, group: group), weight(group),
            into: context.output.values + rows.lowerBound * layer.outputChannels + group * sizes.outputChannels,
            stride: layer.outputChannels, accumulating: accumulating)
    }

    /// The gradient of the weights, dW = Xᵀ·dy.
    func backwardWeight(_ dWeight: UnsafeMutablePointer<Float>, batch: Int) {
        sumOfParts(context, batch: batch, count: sizes.weightCount, into: dWeight) { images, sum in
            let rows = (images.lowerBound * pixels)..<(images.upperBound * pixels)
            for block in 0..<blockCount(rows) {
                let rows = self.block(block, of: rows)
                for group in 0..<layer.groups {
                    GEMM.multiply(
                        rows: sizes.rowLength, columns: sizes.outputChannels, inner: rows.count,
                        windows(rows, group: group).transpose, outputGradient(rows, group: group),
                        into: sum + group * sizes.outputChannels, stride: layer.outputChannels,
                        accumulating: block > 0)
                }
            }
        }
    }

    /// dX = dy·Wᵀ, gathered into dx where the windows lay.
    func backwardInput(_ dx: UnsafeMutablePointer<Float>, batch: Int) {
        guard copies else {
            forEachBlock(of: 0..<(batch * pixels)) { rows in
                GEMM.multiply(
                    rows: rows.count, columns: sizes.rowLength, inner: sizes.outputChannels,
                    outputGradient(rows, group: 0), weight(0).transpose,
                    into: dx + rows.lowerBound * sizes.rowLength, stride: sizes.rowLength)
            }
            return
        }
        // Windows overlap, so an image belongs to one worker; small images go together to make a matrix of some size.
        let count = context.input.shape.count
        let images = max(1, 256 / pixels)
        let chunks = (batch + images - 1) / images
        context.worker.forEach(chunks) { chunk in
            let images = chunkRange(chunk, of: chunks, total: batch)
            (dx + images.lowerBound * count).update(repeating: 0, count: images.count * count)
            let all = (images.lowerBound * pixels)..<(images.upperBound * pixels)
            for block in 0..<blockCount(all) {
                let rows = self.block(block, of: all)
                for group in 0..<layer.groups {
                    let dColumns = columnBlock
                    GEMM.multiply(
                        rows: rows.count, columns: sizes.rowLength, inner: sizes.outputChannels,
                        outputGradient(rows, group: group), weight(group).transpose,
                        into: dColumns, stride: sizes.rowLength)
                    forEachImage(in: rows) { image, first, count, place in
                        withUnsafePointer(to: window) {
                            imprint_col2im(
                                $0, dColumns + place * sizes.rowLength, group * sizes.inputChannels,
                                sizes.inputChannels, first, count, dx + image * context.input.shape.count)
                        }
                    }
                }
            }
        }
    }

    private func blockCount(_ rows: Range<Int>) -> Int { (rows.count + sizes.blockRows - 1) / sizes.blockRows }

    private func block(_ block: Int, of rows: Range<Int>) -> Range<Int> {
        let start = rows.lowerBound + block * sizes.blockRows
        return start..<min(start + sizes.blockRows, rows.upperBound)
    }

    private var columnBlock: UnsafeMutablePointer<Float> {
        columns + context.worker.index * sizes.blockRows * sizes.rowLength
    }

    /// The windows of some output pixels as a matrix [pixels, kernel · inputs of the group].
    private func windows(_ rows: Range<Int>, group: Int) -> GEMM.Matrix {
        guard copies else {
            return GEMM.Matrix(context.input.values + rows.lowerBound * sizes.rowLength, stride: sizes.rowLength)
        }
        let block = columnBlock
        forEachImage(in: rows) { image, first, count, place in
            withUnsafePointer(to: window) {
                imprint_im2col(
                    $0, context.input.at(image), group * sizes.inputChannels, sizes.inputChannels, first, count,
                    block + place * sizes.rowLength)
            }
        }
        return GEMM.Matrix(block, stride: sizes.rowLength)
    }

    /// Calls `body(image, first pixel in it, pixels, place among the rows)` for each image that `rows` touch.
    private func forEachImage(in rows: Range<Int>, _ body: (Int, Int, Int, Int) -> Void) {
        var row = rows.lowerBound
        while row < rows.upperBound {
            let image = row / pixels
            let end = min((image + 1) * pixels, rows.upperBound)
            body(image, row - image * pixels, end - row, row - rows.lowerBound)
            row = end
        }
    }

    private func weight(_ group: Int) -> GEMM.Matrix {
        GEMM.Matrix(context.parameters[0] + group * sizes.outputChannels, stride: layer.outputChannels)
    }

    private func outputGradient(_ rows: Range<Int>, group: Int) -> GEMM.Matrix {
        GEMM.Matrix(
            context.outputGradient + rows.lowerBound * layer.outputChannels + group * sizes.outputChannels,
            stride: layer.outputChannels)
    }
}
