internal import CImprintKernels
internal import ImprintCore

/// A matrix product Y = X·W of a convolution with W and X in bfloat16, and sums in float32.
///
/// Each number is rounded to the nearest bfloat16 number (8 bits of precision). Two neighbours of a row of X form a pair of 32 bits, because
/// an instruction adds the products of two pairs to a float.
struct BFloat16Product {
    /// The length of a row of X.
    private let inner: Int
    /// The number of columns of W.
    private let columns: Int
    private let blockRows: Int
    /// Whether W is the transpose of the layer's weights.
    private let transposed: Bool

    /// The product of a forward pass: W is the layer's weights [kernel height · kernel width · input channels, output channels].
    init(_ layer: Convolution, over input: TensorShape) {
        inner = ConvolutionProduct.rowLength(layer, over: input)
        columns = layer.outputChannels
        blockRows = ConvolutionProduct.blockRows(layer, over: input)
        transposed = false
    }

    /// The product of the gradient with respect to the input: W is the transpose of the layer's weights.
    init(transposing layer: Convolution, over input: TensorShape) {
        inner = layer.outputChannels
        columns = ConvolutionProduct.rowLength(layer, over: input)
        blockRows = ConvolutionProduct.blockRows(layer, over: input)
        transposed = true
    }

    /// Whether the kernel can compute the forward product of a convolution.
    static func isPossible(_ layer: Convolution) -> Bool {
        ConvolutionProduct.fitsPanels(layer) && fitsVectors(columns: layer.outputChannels)
    }

    /// Whether the kernel can multiply a matrix W with some columns: the last panel, too, needs vectors of 16 columns.
    private static func fitsVectors(columns: Int) -> Bool {
        GEMM.Panels.range(GEMM.Panels.count(columns: columns) - 1, columns: columns).count >= 16
    }

    /// Whether the kernel can compute this product.
    var isPossible: Bool { Self.fitsVectors(columns: columns) }

    /// The number of bfloat16 numbers of a row of X or a column of W: whole pairs.
    private var pairedLength: Int { roundedUp(inner, to: 2) }

    /// The size of the packed weights.
    var packedByteCount: Int { pairedLength * columns * MemoryLayout<UInt16>.stride }

    /// The size of the rows of X in bfloat16.
    func scratchByteCount(workers: Int) -> Int {
        max(workers, ConvolutionProduct.fewestBlocks) * blockRows * pairedLength * MemoryLayout<UInt16>.stride
    }

    /// Packs the layer's weights, scaled by a factor per output channel, into panels of pairs.
    /// - Parameter factors: nil for 1, and if the product is transposed.
    func pack(
        _ weight: UnsafePointer<Float>, times factors: UnsafePointer<Float>? = nil,
        into panels: UnsafeMutableRawPointer, worker: Worker
    ) {
        precondition(factors == nil || !transposed, "the columns of a transposed matrix cannot be scaled")
        let panels = panels.assumingMemoryBound(to: UInt16.self)
        worker.forEachChunk(GEMM.Panels.count(columns: columns)) { panel in
            let range = GEMM.Panels.range(panel, columns: columns)
            let target = panels + range.lowerBound * pairedLength
            if transposed {
                imprint_pack_transposed_bfloat16(
                    weight + range.lowerBound * inner, inner, inner, range.count, target)
            } else {
                imprint_pack_bfloat16(
                    weight + range.lowerBound, columns, factors.map { $0 + range.lowerBound }, inner, range.count,
                    target)
            }
        }
    }

    /// Rounds rows of X.
    func round(_ x: GEMM.Matrix, rows: Int, into result: UnsafeMutablePointer<UInt16>) {
        imprint_to_bfloat16(x.values, x.stride, rows, inner, result, pairedLength)
    }

    /// The rows of X from a row on.
    func rows(_ x: UnsafeMutablePointer<UInt16>, from row: Int) -> UnsafeMutablePointer<UInt16> {
        x + row * pairedLength
    }

    /// The memory for the rows of a worker's block.
    func block(_ x: UnsafeMutablePointer<UInt16>, of worker: Worker) -> UnsafeMutablePointer<UInt16> {
        rows(x, from: worker.index * blockRows)
    }

    /// Computes the columns of Y = X·W that belong to a panel, and applies `clamp` to them.
    func multiply(
        _ x: UnsafePointer<UInt16>, rows: Int, panel: Int, of panels: UnsafePointer<UInt16>,
        into y: UnsafeMutablePointer<Float>, clamp: Epilogue.Clamp = .none
    ) {
        let range = GEMM.Panels.range(panel, columns: columns)
        var finish = imprint_bias_clamp(
            bias: clamp.bias.map { $0 + range.lowerBound }, floor: clamp.floor, ceiling: clamp.ceiling)
        imprint_multiply_panel_bfloat16(
            x, pairedLength, panels + range.lowerBound * pairedLength, inner, range.count,
            y + range.lowerBound, columns, rows, &finish)
    }
}

extension ConvolutionProduct {
    /// Multiplies with packed weights in bfloat16.
    func forward(
        _ panels: UnsafePointer<UInt16>, _ all: Range<Int>, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let product = BFloat16Product(layer, over: context.input.shape)
        let x = bfloat16Rows
        let (blocks, panelCount) = (outputBlocks(all), GEMM.Panels.count(columns: outputChannels))
        func multiply(_ rows: Range<Int>, _ x: UnsafePointer<UInt16>, panel: Int) {
            product.multiply(
                x, rows: rows.count, panel: panel, of: panels,
                into: context.output.values + rows.lowerBound * outputChannels, clamp: clamp)
        }
        guard sharesChannels else {
            let own = product.block(x, of: context.worker)
            context.worker.forEachChunk(blocks.count) { index in
                let rows = blocks[index]
                product.round(windows(rows, group: 0, in: columnBlock), rows: rows.count, into: own)
                for panel in 0..<panelCount { multiply(rows, own, panel: panel) }
                finish(rows, index)
            }
            return
        }
        context.worker.forEachChunk(blockCount(all)) { index in
            let rows = block(index, of: all)
            product.round(
                windows(rows, group: 0, in: columnBlock), rows: rows.count, into: product.rows(x, from: rows.lowerBound)
            )
        }
        context.worker.forEachChunk(panelCount) { panel in multiply(all, x, panel: panel) }
        context.worker.forEachChunk(blocks.count) { index in finish(blocks[index], index) }
    }

    /// The memory for rows of X in bfloat16, after the windows.
    var bfloat16Rows: UnsafeMutablePointer<UInt16> {
        let windowCount = Self.windowCount(
            layer, over: context.input.shape, algorithm: context.algorithm, workers: context.worker.threadPool.count)
        return UnsafeMutableRawPointer(columns + windowCount).assumingMemoryBound(to: UInt16.self)
    }

    /// The minimum number of rows for which packing the weights of a training step in bfloat16 pays off.
    private static let rowsForBFloat16 = 128

    /// Whether a training step over `rows` windows packs its weights in bfloat16, if the plan uses bfloat16.
    static func fitsBFloat16(_ layer: Convolution, rows: Int) -> Bool {
        rows >= rowsForBFloat16 && BFloat16Product.isPossible(layer)
    }

    /// Whether this training step packs its weights in bfloat16.
    var usesBFloat16: Bool { context.usesBFloat16 && Self.fitsBFloat16(layer, rows: totalRows) }

    /// The number of floats that hold the rows in bfloat16 of a training step.
    static func bfloat16RowsCount(_ layer: Convolution, over input: TensorShape, workers: Int) -> Int {
        guard BFloat16Product.isPossible(layer) else { return 0 }
        let byteCount = max(
            BFloat16Product(layer, over: input).scratchByteCount(workers: workers),
            BFloat16Product(transposing: layer, over: input).scratchByteCount(workers: workers))
        return (byteCount + 3) / MemoryLayout<Float>.stride
    }
}
