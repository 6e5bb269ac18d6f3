internal import CImprintKernels
internal import ImprintCore

/// The matrix product of a convolution with weights and windows in bfloat16, and sums in float32.
///
/// Each number is rounded to the nearest bfloat16 number (8 bits of precision). Two neighbours of a row of X form a pair of 32 bits, because
/// an instruction adds the products of two pairs to a float.
struct BFloat16Product {
    private let layer: Convolution
    private let rowLength: Int
    private let blockRows: Int

    init(_ layer: Convolution, over input: TensorShape) {
        self.layer = layer
        rowLength = ConvolutionProduct.rowLength(layer, over: input)
        blockRows = ConvolutionProduct.blockRows(layer, over: input)
    }

    /// Whether the kernel can compute a convolution: the last panel of weights, too, needs vectors of 16 outputs.
    static func isPossible(_ layer: Convolution) -> Bool {
        let columns = layer.outputChannels
        let last = GEMM.Panels.range(GEMM.Panels.count(columns: columns) - 1, columns: columns)
        return ConvolutionProduct.fitsPanels(layer) && last.count >= 16
    }

    /// The number of bfloat16 numbers of a row of X or a column of W: whole pairs.
    private var pairedLength: Int { roundedUp(rowLength, to: 2) }

    /// The size of the packed weights.
    var packedByteCount: Int { pairedLength * layer.outputChannels * MemoryLayout<UInt16>.stride }

    /// The size of the windows in bfloat16.
    func scratchByteCount(workers: Int) -> Int {
        max(workers, ConvolutionProduct.fewestBlocks) * blockRows * pairedLength * MemoryLayout<UInt16>.stride
    }

    /// Packs the layer's weights, scaled by a factor per output channel, into panels of pairs.
    func pack(
        _ weight: UnsafePointer<Float>, times factors: UnsafePointer<Float>?, into panels: UnsafeMutableRawPointer,
        worker: Worker
    ) {
        let (columns, panels) = (layer.outputChannels, panels.assumingMemoryBound(to: UInt16.self))
        worker.forEachChunk(GEMM.Panels.count(columns: columns)) { panel in
            let range = GEMM.Panels.range(panel, columns: columns)
            imprint_pack_bfloat16(
                weight + range.lowerBound, columns, factors.map { $0 + range.lowerBound }, rowLength, range.count,
                panels + range.lowerBound * pairedLength)
        }
    }

    /// Rounds rows of X.
    func round(_ x: GEMM.Matrix, rows: Int, into result: UnsafeMutablePointer<UInt16>) {
        imprint_to_bfloat16(x.values, x.stride, rows, rowLength, result, pairedLength)
    }

    /// The rows of X from a row on.
    func rows(_ x: UnsafeMutablePointer<UInt16>, from row: Int) -> UnsafeMutablePointer<UInt16> {
        x + row * pairedLength
    }

    /// The memory for the windows of a worker's block.
    func block(_ x: UnsafeMutablePointer<UInt16>, of worker: Worker) -> UnsafeMutablePointer<UInt16> {
        rows(x, from: worker.index * blockRows)
    }

    /// Computes the columns of Y = X·W that belong to a panel, and applies `clamp` to them.
    func multiply(
        _ x: UnsafePointer<UInt16>, rows: Int, panel: Int, of panels: UnsafePointer<UInt16>,
        into y: UnsafeMutablePointer<Float>, clamp: Epilogue.Clamp
    ) {
        let columns = GEMM.Panels.range(panel, columns: layer.outputChannels)
        var finish = imprint_bias_clamp(
            bias: clamp.bias.map { $0 + columns.lowerBound }, floor: clamp.floor, ceiling: clamp.ceiling)
        imprint_multiply_panel_bfloat16(
            x, pairedLength, panels + columns.lowerBound * pairedLength, rowLength, columns.count,
            y + columns.lowerBound, layer.outputChannels, rows, &finish)
    }
}

extension ConvolutionProduct {
    /// Multiplies with packed weights in bfloat16.
    func forward(
        _ panels: UnsafePointer<UInt16>, _ all: Range<Int>, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let product = BFloat16Product(layer, over: context.input.shape)
        let windowCount = Self.windowCount(
            layer, over: context.input.shape, algorithm: context.algorithm, workers: context.worker.threadPool.count)
        let x = UnsafeMutableRawPointer(columns + windowCount).assumingMemoryBound(to: UInt16.self)
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
}
