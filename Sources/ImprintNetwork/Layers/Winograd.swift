internal import CImprintKernels
internal import ImprintCore

/// A 3x3 convolution of stride 1 by Winograd's minimal filtering F(4x4, 3x3): a quarter of the multiplications.
///
/// Each tile of 4x4 results comes from a window d of 6x6 numbers. With V = BᵀdB, U = GgGᵀ and M = Σ V·U over the input
/// channels, number by number of the 36, y = AᵀMA: the sums over the channels of many tiles are 36 products of matrices
/// [tiles, inputs]·[inputs, outputs]. Backward, dM = A·dy·Aᵀ, dU = Vᵀ·dM and dg = Gᵀ·dU·G are the exact adjoint; the
/// gradient of the input is a convolution itself, of dy with the kernel turned by half a circle (Lavin and Gray,
/// "Fast algorithms for convolutional neural networks", 2016).
///
/// Tiles are taken in blocks so small that V and M stay in a core's cache. Where U is larger than that cache, all
/// threads share V and dM, and each takes some of the output channels, a panel, at a time.
struct Winograd {
    /// How many tiles a block has, about.
    private static let tilesPerBlock = 56
    /// The size of U, in numbers, from which the threads share V instead of repeating all of U for each block.
    private static let sharedWeights = 1 << 20
    /// How many numbers V and dM have at most where the threads share them.
    private static let sharedTiles = 1 << 23
    /// A tile's numbers of V, U or M.
    static let points = 36

    /// The weights that a pass convolves with.
    private enum Kernels {
        case plain(UnsafePointer<Float>, times: UnsafePointer<Float>?)
        /// Those of the convolution whose gradient this one is, [3, 3, outputs, inputs].
        case turned(UnsafePointer<Float>)
        case transformed(UnsafePointer<Float>)
    }

    let tiles: imprint_tiles
    var inputs: Int { Int(tiles.channels) }
    var outputs: Int { Int(tiles.output_channels) }
    /// Rows of tiles in a block.
    private let blockRows: Int
    var blockTiles: Int { blockRows * Int(tiles.tile_columns) }

    /// Whether a convolution is computed so: docs/engine.md has the measurements behind the rule.
    static func isWorthwhile(_ layer: Convolution, over input: TensorShape, predicting batch: Int?) -> Bool {
        let window = layer.window.kernelWindow(over: input)
        guard
            layer.kernelSize == 3 && layer.stride == 1 && layer.dilation == 1 && layer.groups == 1
                && (0...2).contains(window.padding_top) && (0...2).contains(window.padding_left)
        else { return false }
        // Below, the transforms cost more than the products that they save.
        guard
            min(input.channels, layer.outputChannels) >= 16 && min(window.output_height, window.output_width) >= 3
        else { return false }
        // U is four times as large as the weights: for a few tiles it costs more to read.
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

    /// The convolution of dy that gives dx.
    private var turned: Winograd {
        Winograd(
            imprint_tiles(
                height: tiles.output_height, width: tiles.output_width, channels: tiles.output_channels,
                output_height: tiles.height, output_width: tiles.width, output_channels: tiles.channels,
                padding_top: 2 - tiles.padding_top, padding_left: 2 - tiles.padding_left,
                tile_rows: (tiles.height + 3) / 4, tile_columns: (tiles.width + 3) / 4))
    }

    /// How many numbers of scratch memory the passes take.
    func scratchCount(batch: Int, workers: Int, training: Bool) -> Int {
        let forward = forwardScratch(batch: batch, workers: workers)
        guard training else { return forward }
        return max(
            forward, turned.forwardScratch(batch: batch, workers: workers),
            weightScratch(batch: batch, workers: workers))
    }

    // MARK: Forward

    /// y = x convolved with the weights; `finish` is called for each block of y's pixels once they are there.
    func forward(
        _ context: LayerContext, _ weights: ConvolutionWeights, batch: Int,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let kernels: Kernels =
            switch weights {
            case .plain(let weight): .plain(weight, times: nil)
            case .scaled(let weight, let factors): .plain(weight, times: factors)
            case .packedWeights(let u): .transformed(u)
            }
        convolve(context.input.values, kernels, into: context.output.values, batch: batch, context, finish)
    }

    /// dx = dy convolved with the turned weights.
    func backwardInput(_ context: LayerContext, _ dx: UnsafeMutablePointer<Float>, batch: Int) {
        turned.convolve(
            context.outputGradient, .turned(context.parameters[0]), into: dx, batch: batch, context
        ) { _, _ in }
    }

    private func convolve(
        _ x: UnsafePointer<Float>, _ kernels: Kernels, into y: UnsafeMutablePointer<Float>, batch: Int,
        _ context: LayerContext, _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let worker = context.worker
        let scratch = context.scratch.assumingMemoryBound(to: Float.self)
        let products = scratch + worker.index * count(blockTiles, panelWidth)
        let rest = scratch + worker.threadPool.count * count(blockTiles, panelWidth)
        if sharesTiles {
            convolveSharingTiles(x, kernels, into: y, batch: batch, worker, products, rest, finish)
        } else {
            convolveInBlocks(x, kernels, into: y, batch: batch, worker, products, rest, finish)
        }
    }

    private func forwardScratch(batch: Int, workers: Int) -> Int {
        let products = workers * count(blockTiles, panelWidth)
        return sharesTiles
            ? products + count(groupBlocks(batch) * blockTiles, inputs) + workers * panelWeights
            : products + transformedCount + workers * count(blockTiles, inputs)
    }

    private func convolveInBlocks(
        _ x: UnsafePointer<Float>, _ kernels: Kernels, into y: UnsafeMutablePointer<Float>, batch: Int,
        _ worker: Worker, _ products: UnsafeMutablePointer<Float>, _ scratch: UnsafeMutablePointer<Float>,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        var u = UnsafePointer(scratch)
        if case .transformed(let made) = kernels {
            u = made
        } else {
            transform(kernels, into: scratch, worker: worker)
        }
        let v = scratch + transformedCount + worker.index * count(blockTiles, inputs)
        worker.forEachClaimed(blockCount(batch: batch)) { block in
            let rows = tileRows(block, batch: batch)
            transformInput(x, rows, into: v, stride(blockTiles, inputs))
            for panel in 0..<panelCount {
                multiply(v, stride(blockTiles, inputs), u + panel * panelWeights, panel, rows, products, into: y)
            }
            finish(pixels(rows), block)
        }
    }

    private func convolveSharingTiles(
        _ x: UnsafePointer<Float>, _ kernels: Kernels, into y: UnsafeMutablePointer<Float>, batch: Int,
        _ worker: Worker, _ products: UnsafeMutablePointer<Float>, _ scratch: UnsafeMutablePointer<Float>,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let tiles = groupBlocks(batch) * blockTiles
        let v = scratch
        let own = scratch + count(tiles, inputs) + worker.index * panelWeights
        forEachGroup(batch) { group in
            worker.forEachClaimed(group.count) { place in
                let rows = tileRows(group.lowerBound + place, batch: batch)
                transformInput(x, rows, into: v + place * blockTiles * inputs, stride(tiles, inputs))
            }
            worker.forEachClaimed(panelCount) { panel in
                var u = UnsafePointer(own)
                if case .transformed(let made) = kernels {
                    u = made + panel * panelWeights
                } else {
                    transform(kernels, panel: panel, into: own)
                }
                for (place, block) in group.enumerated() {
                    multiply(
                        v + place * blockTiles * inputs, stride(tiles, inputs), u, panel,
                        tileRows(block, batch: batch), products, into: y)
                }
            }
            worker.forEachClaimed(group.count) { place in
                let block = group.lowerBound + place
                finish(pixels(tileRows(block, batch: batch)), block)
            }
        }
    }

    /// y's channels of one panel in some rows of tiles: M = V·U, y = AᵀMA.
    private func multiply(
        _ v: UnsafePointer<Float>, _ vStride: Int, _ u: UnsafePointer<Float>, _ panel: Int, _ rows: Range<Int>,
        _ products: UnsafeMutablePointer<Float>, into y: UnsafeMutablePointer<Float>
    ) {
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

    /// How many numbers the transformed weights are.
    var transformedCount: Int { panelCount * panelWeights }

    /// U = GgGᵀ of weights as the layer has them, times a factor for each output, for any number of passes.
    func transform(
        _ weight: UnsafePointer<Float>, times factors: UnsafePointer<Float>?, into u: UnsafeMutablePointer<Float>,
        worker: Worker
    ) {
        transform(.plain(weight, times: factors), into: u, worker: worker)
    }

    private func transform(_ kernels: Kernels, into u: UnsafeMutablePointer<Float>, worker: Worker) {
        worker.forEachClaimed(panelCount) { panel in transform(kernels, panel: panel, into: u + panel * panelWeights) }
    }

    private func transform(_ kernels: Kernels, panel: Int, into u: UnsafeMutablePointer<Float>) {
        let channels = panelRange(panel)
        let stride = stride(inputs, channels.count)
        switch kernels {
        case .plain(let w, let factors):
            imprint_winograd_weights(w, factors, inputs, outputs, channels.lowerBound, channels.count, u, stride)
        case .turned(let w):
            imprint_winograd_turned_weights(w, outputs, inputs, channels.lowerBound, channels.count, u, stride)
        case .transformed: preconditionFailure("the weights are transformed already")
        }
    }

    // MARK: Blocks, groups and panels

    /// Whether the threads share V and dM, since U is too large to be read again for each block.
    var sharesTiles: Bool { Self.points * inputs * outputs > Self.sharedWeights }

    /// How many blocks a pass finishes.
    func blockCount(batch: Int) -> Int { (batch * Int(tiles.tile_rows) + blockRows - 1) / blockRows }

    func tileRows(_ block: Int, batch: Int) -> Range<Int> {
        (block * blockRows)..<min((block + 1) * blockRows, batch * Int(tiles.tile_rows))
    }

    func tileCount(_ rows: Range<Int>) -> Int { rows.count * Int(tiles.tile_columns) }

    /// The pixels of the result that rows of tiles make up, counted through all images.
    private func pixels(_ rows: Range<Int>) -> Range<Int> { pixel(rows.lowerBound)..<pixel(rows.upperBound) }

    private func pixel(_ row: Int) -> Int {
        let (image, inside) = row.quotientAndRemainder(dividingBy: Int(tiles.tile_rows))
        return (image * Int(tiles.output_height) + 4 * inside) * Int(tiles.output_width)
    }

    /// How many blocks exist at the same time where the threads share them.
    func groupBlocks(_ batch: Int) -> Int {
        let fitting = Self.sharedTiles / (Self.points * blockTiles * max(inputs, outputs))
        return min(blockCount(batch: batch), max(1, fitting))
    }

    func forEachGroup(_ batch: Int, _ body: (_ blocks: Range<Int>) -> Void) {
        let (blocks, size) = (blockCount(batch: batch), groupBlocks(batch))
        for first in Swift.stride(from: 0, to: blocks, by: size) { body(first..<min(first + size, blocks)) }
    }

    /// How many channels a panel has, but for the last one.
    private var panelWidth: Int {
        let widest = max(16, min(128, GEMM.unpackedProducts / (blockTiles * inputs) / 16 * 16))
        let panels = (outputs + widest - 1) / widest
        return min(outputs, roundedUp((outputs + panels - 1) / panels, to: 16))
    }

    var panelCount: Int { (outputs + panelWidth - 1) / panelWidth }

    /// How many numbers the transformed weights of a panel are.
    var panelWeights: Int { count(inputs, panelWidth) }

    func panelRange(_ panel: Int) -> Range<Int> {
        (panel * panelWidth)..<min((panel + 1) * panelWidth, outputs)
    }

    /// The distance between two of 36 matrices; not a power of two, which would put all of them into the same lines of a
    /// cache.
    func stride(_ rows: Int, _ columns: Int) -> Int { roundedUp(rows * columns, to: 16) + 16 }

    /// How many numbers 36 matrices take.
    func count(_ rows: Int, _ columns: Int) -> Int { Self.points * stride(rows, columns) }
}
