internal import CImprintKernels
internal import ImprintCore

/// A convolution as a product of matrices, y = X·W with a row of X for each window.
///
/// X is [pixels, kernel · inputs]; backward, dW = Xᵀ·dy, and dx gathers the rows of dy·Wᵀ where the windows lay. The
/// windows of a pointwise convolution lie in memory as they are needed; others are copied in blocks of rows that stay in
/// cache.
struct ConvolutionProduct {
    private let layer: Convolution
    private let context: LayerContext
    private let window: imprint_window
    private let inputChannels: Int
    private let outputChannels: Int
    /// The length of a window's row: kernel height · kernel width · inputs of one group.
    private let rowLength: Int
    private let weightCount: Int
    private let blockRows: Int
    private let columns: UnsafeMutablePointer<Float>
    private var copies: Bool { context.algorithm == .im2col }
    private var pixels: Int { context.output.shape.pixels }

    init(_ layer: Convolution, _ context: LayerContext) {
        self.layer = layer
        self.context = context
        window = layer.window.kernelWindow(over: context.input.shape)
        inputChannels = context.input.shape.channels / layer.groups
        outputChannels = layer.outputChannels / layer.groups
        rowLength = Self.rowLength(layer, over: context.input.shape)
        weightCount = rowLength * layer.outputChannels
        blockRows = Self.blockRows(layer, over: context.input.shape)
        // What the backward pass adds up lies before them; a convolution without one has no room for it.
        columns =
            context.scratch.assumingMemoryBound(to: Float.self)
            + (context.output.gradient == nil ? 0 : (weightParts - 1) * weightCount)
    }

    private static func rowLength(_ layer: Convolution, over input: Shape) -> Int {
        layer.kernelSize.height * layer.kernelSize.width * (input.channels / layer.groups)
    }

    /// How many windows are taken at once: few enough for X and y to stay in cache, enough for the matrix product.
    private static func blockRows(_ layer: Convolution, over input: Shape) -> Int {
        let length = rowLength(layer, over: input)
        let products = length * (layer.outputChannels / layer.groups)
        if GEMM.asksForMemory(columns: layer.outputChannels / layer.groups) {
            return min(max(2 * GEMM.unpackedProducts / products, 256), 4096)
        }
        if let rows = GEMM.pieceLength(productsPerStep: products, atLeast: 32) { return min(rows, 1024) }
        return min(max((1 << 17) / (length + layer.outputChannels), 256), 1024)
    }

    /// How many blocks a forward pass over so many windows finishes.
    static func blockCount(_ layer: Convolution, over input: Shape, rows: Int) -> Int {
        blocks(rows, of: blockRows(layer, over: input))
    }

    private static func blocks(_ rows: Int, of size: Int) -> Int { (rows + size - 1) / size }

    /// How many numbers of scratch memory the passes take.
    static func scratchCount(
        _ layer: Convolution, over input: Shape, algorithm: Algorithm, workers: Int, training: Bool
    ) -> Int {
        let length = rowLength(layer, over: input)
        let columns = algorithm == .im2col ? workers * blockRows(layer, over: input) * length : 0
        // The transposed weights for dx, or the parts of dW.
        return columns + (training ? (weightParts - 1) * length * layer.outputChannels : 0)
    }

    func forward(_ weights: ConvolutionWeights, batch: Int, _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void) {
        guard case .plain(let weight) = weights else { preconditionFailure("transformed weights are Winograd's") }
        let all = 0..<(batch * pixels)
        context.worker.forEach(blockCount(all)) { index in
            let rows = block(index, of: all)
            for group in 0..<layer.groups {
                GEMM.multiply(
                    rows: rows.count, columns: outputChannels, inner: rowLength,
                    windows(rows, group: group), columns(weight, of: group),
                    into: context.output.values + rows.lowerBound * layer.outputChannels + group * outputChannels,
                    stride: layer.outputChannels)
            }
            finish(rows, index)
        }
    }

    /// The gradient of the weights, dW = Xᵀ·dy.
    func backwardWeight(_ dWeight: UnsafeMutablePointer<Float>, batch: Int) {
        guard copies || weightCount < 1 << 16 else { return backwardLargeWeight(dWeight, batch: batch) }
        sumOfParts(context, batch: batch, count: weightCount, into: dWeight) { images, sum in
            let all = (images.lowerBound * pixels)..<(images.upperBound * pixels)
            for index in 0..<blockCount(all) {
                let rows = block(index, of: all)
                for group in 0..<layer.groups {
                    GEMM.multiply(
                        rows: rowLength, columns: outputChannels, inner: rows.count,
                        windows(rows, group: group).transpose, outputGradient(rows, group: group),
                        into: sum + group * outputChannels, stride: layer.outputChannels, accumulating: index > 0)
                }
            }
        }
    }

    /// dW of a pointwise convolution with many weights: each worker takes some rows of dW, so there is nothing to add.
    private func backwardLargeWeight(_ dWeight: UnsafeMutablePointer<Float>, batch: Int) {
        context.worker.forEach(weightParts) { part in
            let rows = chunkRange(part, of: weightParts, total: rowLength)
            GEMM.multiply(
                rows: rows.count, columns: outputChannels, inner: batch * pixels,
                GEMM.Matrix(context.input.values + rows.lowerBound, stride: rowLength).transpose,
                outputGradient(0..<(batch * pixels), group: 0),
                into: dWeight + rows.lowerBound * outputChannels, stride: outputChannels)
        }
    }

    /// dX = dy·Wᵀ, gathered into dx where the windows lay.
    func backwardInput(_ dx: UnsafeMutablePointer<Float>, batch: Int) {
        if copiesWeight { copyWeight() }
        guard copies else {
            let all = 0..<(batch * pixels)
            context.worker.forEach(blockCount(all)) { index in
                let rows = block(index, of: all)
                GEMM.multiply(
                    rows: rows.count, columns: rowLength, inner: outputChannels, outputGradient(rows, group: 0),
                    transposedWeight(0), into: dx + rows.lowerBound * rowLength,
                    stride: rowLength)
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
            for index in 0..<blockCount(all) {
                let rows = block(index, of: all)
                for group in 0..<layer.groups {
                    let dColumns = columnBlock
                    GEMM.multiply(
                        rows: rows.count, columns: rowLength, inner: outputChannels,
                        outputGradient(rows, group: group), transposedWeight(group),
                        into: dColumns, stride: rowLength)
                    forEachImage(in: rows) { image, first, count, place in
                        withUnsafePointer(to: window) {
                            imprint_col2im(
                                $0, dColumns + place * rowLength, group * inputChannels, inputChannels, first, count,
                                dx + image * context.input.shape.count)
                        }
                    }
                }
            }
        }
    }

    /// Whether Wᵀ is copied for dx: OpenBLAS is slow at transposing small matrices.
    private var copiesWeight: Bool { layer.groups == 1 && weightCount <= 1 << 15 }

    /// Wᵀ of a group.
    private func transposedWeight(_ group: Int) -> GEMM.Matrix {
        copiesWeight
            ? GEMM.Matrix(context.scratch.assumingMemoryBound(to: Float.self), stride: rowLength)
            : columns(context.parameters[0], of: group).transpose
    }

    private func copyWeight() {
        let copy = context.scratch.assumingMemoryBound(to: Float.self)
        context.worker.alone { imprint_transpose(context.parameters[0], copy, rowLength, outputChannels) }
    }

    private func blockCount(_ rows: Range<Int>) -> Int { Self.blocks(rows.count, of: blockRows) }

    private func block(_ block: Int, of rows: Range<Int>) -> Range<Int> {
        let part = chunkRange(block, of: blockCount(rows), total: rows.count)
        return (rows.lowerBound + part.lowerBound)..<(rows.lowerBound + part.upperBound)
    }

    private var columnBlock: UnsafeMutablePointer<Float> {
        columns + context.worker.index * blockRows * rowLength
    }

    /// The windows of some output pixels as a matrix [pixels, kernel · inputs of the group].
    private func windows(_ rows: Range<Int>, group: Int) -> GEMM.Matrix {
        guard copies else {
            return GEMM.Matrix(context.input.values + rows.lowerBound * rowLength, stride: rowLength)
        }
        let block = columnBlock
        forEachImage(in: rows) { image, first, count, place in
            withUnsafePointer(to: window) {
                imprint_im2col(
                    $0, context.input.at(image), group * inputChannels, inputChannels, first, count,
                    block + place * rowLength)
            }
        }
        return GEMM.Matrix(block, stride: rowLength)
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

    /// The columns of W that belong to a group.
    private func columns(_ weight: UnsafePointer<Float>, of group: Int) -> GEMM.Matrix {
        GEMM.Matrix(weight + group * outputChannels, stride: layer.outputChannels)
    }

    private func outputGradient(_ rows: Range<Int>, group: Int) -> GEMM.Matrix {
        GEMM.Matrix(
            context.outputGradient + rows.lowerBound * layer.outputChannels + group * outputChannels,
            stride: layer.outputChannels)
    }
}
