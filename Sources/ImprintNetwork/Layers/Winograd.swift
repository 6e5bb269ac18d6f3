internal import CImprintKernels
internal import ImprintCore

/// A 3x3 convolution with stride 1 by Winograd's minimal filtering F(4x4, 3x3), which needs a quarter of the multiplications.
///
/// Each tile of 4x4 outputs depends on a 6x6 input window d. With V = BᵀdB, U = GgGᵀ for the kernel g, and M = Σ V ⊙ U over the input
/// channels, y = AᵀMA. For many tiles, the sums over channels are 36 matrix products [tiles, inputs]·[inputs, outputs]. Backward,
/// dM = A·dy·Aᵀ, dU = Vᵀ·dM and dg = Gᵀ·dU·G are the exact adjoint; the input gradient is the convolution of dy with the kernel rotated
/// by 180 degrees.
///
/// Tiles are processed in blocks small enough for V and M to stay in a core's cache. If U is larger than that cache, all threads share V
/// and dM, and each thread processes panels of output channels.
///
/// Source: Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016.
struct Winograd {
    /// The approximate number of tiles per block.
    private static let tilesPerBlock = 56
    /// The minimum number of tiles of a block that is made smaller so that all threads have work.
    private static let fewestTilesPerBlock = 9
    /// The minimum number of elements of U for which the threads share V, instead of each thread reading all of U for each block.
    private static let sharedWeights = 1 << 20
    /// The maximum number of elements of shared V and dM.
    static let sharedTiles = 1 << 23
    /// The number of elements of V, U or M per tile and channel.
    static let points = 36

    /// The weights of a pass.
    private enum Kernels {
        case plain(UnsafePointer<Float>, times: UnsafePointer<Float>?)
        /// The weights [3, 3, outputs, inputs], before rotation, of the convolution for which the pass computes the input gradient.
        case rotated(UnsafePointer<Float>)
        case transformed(UnsafePointer<Float>)
    }

    let tiles: imprint_tiles
    var inputs: Int { Int(tiles.channels) }
    var outputs: Int { Int(tiles.output_channels) }
    /// The number of rows of tiles per block.
    private let blockRows: Int
    var blockTiles: Int { blockRows * Int(tiles.tile_columns) }

    /// Whether Winograd is the faster algorithm for a convolution; docs/explanation/engine.md has the measurements behind the rule.
    static func isWorthwhile(_ layer: Convolution, over input: TensorShape, predicting batch: Int?) -> Bool {
        let window = layer.window.kernelWindow(over: input)
        guard
            layer.kernelSize == 3 && layer.stride == 1 && layer.dilation == 1 && layer.groups == 1
                && (0...2).contains(window.padding_top) && (0...2).contains(window.padding_left)
        else { return false }
        // For smaller sizes, the transforms cost more than the products that they save.
        guard
            min(input.channels, layer.outputChannels) >= 16 && min(window.output_height, window.output_width) >= 3
        else { return false }
        // U is four times as large as the weights, which makes reading it too expensive for a few tiles.
        let tilesPerImage = Int((window.output_height + 3) / 4 * ((window.output_width + 3) / 4))
        let isLarge = input.channels * layer.outputChannels >= 1 << 17
        return batch.map { $0 * tilesPerImage >= 8 || !isLarge } ?? true
    }

    init(_ layer: Convolution, over input: TensorShape) {
        let window = layer.window.kernelWindow(over: input)
        self.init(
            imprint_tiles(
                height: window.height, width: window.width, channels: window.channels,
                output_height: window.output_height, output_width: window.output_width,
                output_channels: Int32(layer.outputChannels), padding_top: window.padding_top,
                padding_left: window.padding_left, tile_rows: (window.output_height + 3) / 4,
                tile_columns: (window.output_width + 3) / 4))
    }

    private init(_ tiles: imprint_tiles) {
        self.tiles = tiles
        blockRows = max(1, Self.tilesPerBlock / Int(tiles.tile_columns))
    }

    /// The convolution that computes dx from dy.
    private var rotated: Winograd {
        Winograd(
            imprint_tiles(
                height: tiles.output_height, width: tiles.output_width, channels: tiles.output_channels,
                output_height: tiles.height, output_width: tiles.width, output_channels: tiles.channels,
                padding_top: 2 - tiles.padding_top, padding_left: 2 - tiles.padding_left,
                tile_rows: (tiles.height + 3) / 4, tile_columns: (tiles.width + 3) / 4))
    }

    /// The number of floats of scratch memory.
    func scratchCount(batch: Int, workers: Int, training: Bool) -> Int {
        let forward = forwardScratch(batch: batch, workers: workers)
        guard training else { return forward }
        return max(
            forward, inputGradientScratchCount(batch: batch, workers: workers),
            weightScratch(batch: batch, workers: workers))
    }

    /// The number of floats of scratch memory of `backwardInput`.
    func inputGradientScratchCount(batch: Int, workers: Int) -> Int {
        rotated.forwardScratch(batch: batch, workers: workers)
    }

    // MARK: Forward

    /// Computes y = x ∗ weights, and calls `finish` for each completed block of output pixels.
    func forward(
        _ context: LayerContext, _ weights: ConvolutionWeights, batch: Int,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let kernels: Kernels =
            switch weights {
            case .plain(let weight): .plain(weight, times: nil)
            case .scaled(let weight, let factors): .plain(weight, times: factors)
            case .packedWeights(let u): .transformed(u)
            case .packedBFloat16: preconditionFailure("Winograd has no bfloat16 products")
            }
        convolve(
            context.input.values, kernels, into: context.output.values, batch: batch, context,
            isRecording: context.outputMoments != nil, finish)
    }

    /// Computes dx = dy ∗ rotated weights.
    func backwardInput(_ context: LayerContext, _ dx: UnsafeMutablePointer<Float>, batch: Int) {
        rotated.convolve(
            context.outputGradient, .rotated(context.parameters[0]), into: dx, batch: batch, context,
            isRecording: false
        ) { _, _ in }
    }

    private func convolve(
        _ x: UnsafePointer<Float>, _ kernels: Kernels, into y: UnsafeMutablePointer<Float>, batch: Int,
        _ context: LayerContext, isRecording: Bool, _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let worker = context.worker
        let scratch = context.scratch.assumingMemoryBound(to: Float.self)
        let products = scratch + worker.index * count(blockTiles, panelWidth)
        let rest = scratch + worker.threadPool.count * count(blockTiles, panelWidth)
        // Blocks within units of the batch: moments can then be recorded while a block is in the cache. Larger blocks are more efficient if the
        // units are small, or if no moments are recorded, but possible only if the bits of a row do not depend on the others.
        let units = momentBlocks(context.part)
        let rowsAreIndependent =
            GEMM.unpackedRowsAreIndependent(columns: panelRange(panelCount - 1).count)
            && blockTiles * panelWidth * inputs <= GEMM.maximumUnpackedMultiplications
        let crossesUnits = rowsAreIndependent && (!isRecording || units.rowsPerUnit < blockRows)
        let rows = batch * Int(tiles.tile_rows)
        let blocks: Blocks =
            crossesUnits
            ? .even(count: evenBlockCount(rows: rows, threads: worker.threadPool.activeCount), rows: rows)
            : .units(units)
        let isSeparate = isRecording && crossesUnits
        let finishBlock = isSeparate ? { _, _ in } : finish
        if sharesTiles {
            convolveSharingTiles(x, kernels, into: y, blocks, worker, products, rest, finishBlock)
        } else {
            convolveInBlocks(x, kernels, into: y, blocks, worker, products, rest, finishBlock)
        }
        if isSeparate { worker.forEachChunk(units.count) { block in finish(pixels(units[block]), block) } }
    }

    /// The blocks of rows of tiles of a pass.
    private enum Blocks {
        /// Blocks that do not depend on the number of processes, and in which a pass can record moments.
        case units(RowBlocks)
        /// Blocks of about the same number of rows.
        case even(count: Int, rows: Int)

        var count: Int {
            switch self {
            case .units(let blocks): blocks.count
            case .even(let count, _): count
            }
        }

        subscript(block: Int) -> Range<Int> {
            switch self {
            case .units(let blocks): blocks[block]
            case .even(let count, let rows): chunkRange(block, of: count, total: rows)
            }
        }
    }

    /// Returns the number of blocks in which a pass computes rows of tiles whose bits do not depend on the blocks.
    ///
    /// A single image of 24x24 pixels would be one block, so a second thread would be idle. Smaller blocks balance the threads, although each
    /// block reads all of U.
    func evenBlockCount(rows: Int, threads: Int) -> Int {
        let fewest = fixedBlockCount(0..<rows)
        guard !sharesTiles, threads > 1, fewest < 4 * threads else { return fewest }
        let columns = Int(tiles.tile_columns)
        let rowsPerBlock = max(
            (rows + roundedUp(fewest, to: threads) - 1) / roundedUp(fewest, to: threads),
            (Self.fewestTilesPerBlock + columns - 1) / columns)
        return max(fewest, (rows + rowsPerBlock - 1) / rowsPerBlock)
    }

    /// The blocks in which a pass records moments.
    func momentBlocks(_ part: BatchPart) -> RowBlocks {
        RowBlocks(part, rowsPerImage: Int(tiles.tile_rows), blockRows: blockRows)
    }

    /// The maximum number of blocks in which a pass records moments.
    func momentBlocks(batch: Int) -> Int {
        RowBlocks.maximumCount(batch: batch, rowsPerImage: Int(tiles.tile_rows), blockRows: blockRows)
    }

    private func forwardScratch(batch: Int, workers: Int) -> Int {
        let products = workers * count(blockTiles, panelWidth)
        return sharesTiles
            ? products + count(groupBlocks(momentBlocks(batch: batch)) * blockTiles, inputs) + workers * panelWeights
            : products + transformedCount + workers * count(blockTiles, inputs)
    }

    private func convolveInBlocks(
        _ x: UnsafePointer<Float>, _ kernels: Kernels, into y: UnsafeMutablePointer<Float>, _ blocks: Blocks,
        _ worker: Worker, _ products: UnsafeMutablePointer<Float>, _ scratch: UnsafeMutablePointer<Float>,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        var u = UnsafePointer(scratch)
        if case .transformed(let transformed) = kernels {
            u = transformed
        } else {
            transform(kernels, into: scratch, worker: worker)
        }
        let v = scratch + transformedCount + worker.index * count(blockTiles, inputs)
        worker.forEachChunk(blocks.count) { block in
            let rows = blocks[block]
            transformInput(x, rows, into: v, stride(blockTiles, inputs))
            for panel in 0..<panelCount {
                multiply(v, stride(blockTiles, inputs), u + panel * panelWeights, panel, rows, products, into: y)
            }
            finish(pixels(rows), block)
        }
    }

    private func convolveSharingTiles(
        _ x: UnsafePointer<Float>, _ kernels: Kernels, into y: UnsafeMutablePointer<Float>, _ blocks: Blocks,
        _ worker: Worker, _ products: UnsafeMutablePointer<Float>, _ scratch: UnsafeMutablePointer<Float>,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let tiles = groupBlocks(blocks.count) * blockTiles
        let v = scratch
        let panelBuffer = scratch + count(tiles, inputs) + worker.index * panelWeights
        forEachGroup(blocks.count) { group in
            worker.forEachChunk(group.count) { index in
                let rows = blocks[group.lowerBound + index]
                transformInput(x, rows, into: v + index * blockTiles * inputs, stride(tiles, inputs))
            }
            worker.forEachChunk(panelCount) { panel in
                var u = UnsafePointer(panelBuffer)
                if case .transformed(let transformed) = kernels {
                    u = transformed + panel * panelWeights
                } else {
                    transform(kernels, panel: panel, into: panelBuffer)
                }
                for (index, block) in group.enumerated() {
                    multiply(
                        v + index * blockTiles * inputs, stride(tiles, inputs), u, panel,
                        blocks[block], products, into: y)
                }
            }
            worker.forEachChunk(group.count) { index in
                let block = group.lowerBound + index
                finish(pixels(blocks[block]), block)
            }
        }
    }

    /// Computes the output channels of one panel for some rows of tiles: M = V·U, y = AᵀMA.
    private func multiply(
        _ v: UnsafePointer<Float>, _ vStride: Int, _ u: UnsafePointer<Float>, _ panel: Int, _ rows: Range<Int>,
        _ products: UnsafeMutablePointer<Float>, into y: UnsafeMutablePointer<Float>
    ) {
        guard !rows.isEmpty else { return }
        let channels = panelRange(panel)
        let mStride = stride(blockTiles, channels.count)
        for point in 0..<Self.points {
            GEMM.multiply(
                rows: tileCount(rows), columns: channels.count, inner: inputs,
                GEMM.Matrix(v + point * vStride, stride: inputs),
                GEMM.Matrix(u + point * stride(inputs, channels.count), stride: channels.count),
                into: products + point * mStride, stride: channels.count)
        }
        withUnsafePointer(to: tiles) {
            imprint_winograd_output(
                $0, products, mStride, channels.lowerBound, channels.count, rows.lowerBound, rows.count, y)
        }
    }

    func transformInput(
        _ x: UnsafePointer<Float>, _ rows: Range<Int>, into v: UnsafeMutablePointer<Float>, _ stride: Int
    ) {
        withUnsafePointer(to: tiles) { imprint_winograd_input($0, x, rows.lowerBound, rows.count, v, stride) }
    }

    // MARK: Weights

    /// The number of elements of the transformed weights.
    var transformedCount: Int { panelCount * panelWeights }

    /// Computes U = GgGᵀ from the layer's weights, scaled by a factor per output channel, for reuse in later passes.
    func transform(
        _ weight: UnsafePointer<Float>, times factors: UnsafePointer<Float>?, into u: UnsafeMutablePointer<Float>,
        worker: Worker
    ) {
        transform(.plain(weight, times: factors), into: u, worker: worker)
    }

    private func transform(_ kernels: Kernels, into u: UnsafeMutablePointer<Float>, worker: Worker) {
        worker.forEachChunk(panelCount) { panel in transform(kernels, panel: panel, into: u + panel * panelWeights) }
    }

    private func transform(_ kernels: Kernels, panel: Int, into u: UnsafeMutablePointer<Float>) {
        let channels = panelRange(panel)
        let stride = stride(inputs, channels.count)
        switch kernels {
        case .plain(let w, let factors):
            imprint_winograd_weights(w, factors, inputs, outputs, channels.lowerBound, channels.count, u, stride)
        case .rotated(let w):
            imprint_winograd_rotated_weights(w, outputs, inputs, channels.lowerBound, channels.count, u, stride)
        case .transformed: preconditionFailure("the weights are already transformed")
        }
    }

    // MARK: Blocks, groups and panels

    /// Whether the threads share V and dM, because U is too large to be read for each block.
    var sharesTiles: Bool { Self.points * inputs * outputs > Self.sharedWeights }

    /// Returns the rows of tiles of a block of `rows`.
    func tileRows(_ block: Int, of rows: Range<Int>) -> Range<Int> {
        let first = rows.lowerBound + block * blockRows
        return first..<min(first + blockRows, rows.upperBound)
    }

    /// The number of blocks of some rows of tiles, for any number of threads.
    func fixedBlockCount(_ rows: Range<Int>) -> Int { (rows.count + blockRows - 1) / blockRows }

    func tileCount(_ rows: Range<Int>) -> Int { rows.count * Int(tiles.tile_columns) }

    /// The output pixels that rows of tiles cover, counted over all images.
    private func pixels(_ rows: Range<Int>) -> Range<Int> { pixel(rows.lowerBound)..<pixel(rows.upperBound) }

    private func pixel(_ row: Int) -> Int {
        let (image, inside) = row.quotientAndRemainder(dividingBy: Int(tiles.tile_rows))
        return (image * Int(tiles.output_height) + 4 * inside) * Int(tiles.output_width)
    }

    /// The number of blocks per group, which exist at the same time if the threads share them.
    private func groupBlocks(_ blocks: Int) -> Int {
        let fitting = Self.sharedTiles / (Self.points * blockTiles * max(inputs, outputs))
        return min(blocks, max(1, fitting))
    }

    private func forEachGroup(_ blocks: Int, _ body: (_ blocks: Range<Int>) -> Void) {
        let size = groupBlocks(blocks)
        for first in Swift.stride(from: 0, to: blocks, by: size) { body(first..<min(first + size, blocks)) }
    }

    /// The number of output channels per panel; the last panel may have fewer.
    var panelWidth: Int {
        let widest = max(16, min(128, GEMM.maximumUnpackedMultiplications / (blockTiles * inputs) / 16 * 16))
        let panels = (outputs + widest - 1) / widest
        return min(outputs, roundedUp((outputs + panels - 1) / panels, to: 16))
    }

    var panelCount: Int { (outputs + panelWidth - 1) / panelWidth }

    /// The number of elements of a panel's transformed weights.
    var panelWeights: Int { count(inputs, panelWidth) }

    func panelRange(_ panel: Int) -> Range<Int> {
        (panel * panelWidth)..<min((panel + 1) * panelWidth, outputs)
    }

    /// The distance between two of the 36 matrices; not a power of two, which would map all of them to the same cache sets.
    func stride(_ rows: Int, _ columns: Int) -> Int { roundedUp(rows * columns, to: 16) + 16 }

    /// The number of floats that 36 matrices occupy.
    func count(_ rows: Int, _ columns: Int) -> Int { Self.points * stride(rows, columns) }
}
