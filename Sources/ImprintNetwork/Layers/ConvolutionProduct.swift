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

    private static func rowLength(_ layer: Convolution, over input: TensorShape) -> Int {
        layer.kernelSize.height * layer.kernelSize.width * (input.channels / layer.groups)
    }

    /// How many windows are taken at once: few enough for X and y to stay in cache, enough for the matrix product.
    private static func blockRows(_ layer: Convolution, over input: TensorShape) -> Int {
        let length = rowLength(layer, over: input)
        return min(max((1 << 17) / (length + layer.outputChannels / layer.groups), 128), 1024)
    }

    /// How many blocks a forward pass over so many windows finishes.
    static func blockCount(_ layer: Convolution, over input: TensorShape, rows: Int) -> Int {
        blocks(rows, of: blockRows(layer, over: input))
    }

    /// Few blocks come in multiples of four, so that two or four threads have the same share.
    private static func blocks(_ rows: Int, of size: Int) -> Int {
        let blocks = (rows + size - 1) / size
        return (fewestBlocks...16).contains(blocks) ? roundedUp(blocks, to: 4) : blocks
    }

    /// The fewest blocks that are shared among threads as they are; of fewer, each thread takes some channels of all.
    private static let fewestBlocks = 4
    /// How many rows repay a copy of the weights as panels.
    private static let rowsForPanels = 2048

    /// Whether the weights can be cut into panels.
    static func fitsPanels(_ layer: Convolution) -> Bool { layer.groups == 1 }

    /// Copies weights as the layer has them, times a factor for each channel, into panels.
    static func copy(
        _ layer: Convolution, _ weight: UnsafePointer<Float>, times factors: UnsafePointer<Float>? = nil,
        over input: TensorShape, into panels: UnsafeMutablePointer<Float>, worker: Worker
    ) {
        let (inner, columns) = (rowLength(layer, over: input), layer.outputChannels)
        worker.forEachClaimed(GEMM.Panels.count(columns: columns)) { panel in
            let range = GEMM.Panels.range(panel, columns: columns)
            _ = GEMM.Panel(
                copying: range, of: GEMM.Matrix(weight, stride: columns), times: factors, inner: inner,
                to: panels + range.lowerBound * inner)
        }
    }

    /// How many numbers of scratch memory the passes take: windows, and panels of the weights or the parts of dW.
    static func scratchCount(
        _ layer: Convolution, over input: TensorShape, algorithm: Algorithm, workers: Int, training: Bool
    ) -> Int {
        let length = rowLength(layer, over: input)
        return windowCount(layer, over: input, algorithm: algorithm, workers: workers)
            + (training ? (weightParts - 1) * length * layer.outputChannels : 0)
    }

    /// How many numbers the windows are that are there at the same time.
    private static func windowCount(
        _ layer: Convolution, over input: TensorShape, algorithm: Algorithm, workers: Int
    ) -> Int {
        let blocks = max(workers, fewestBlocks)
        return algorithm == .im2col ? blocks * blockRows(layer, over: input) * rowLength(layer, over: input) : 0
    }

    /// How many numbers of scratch memory a pass over so many windows takes with `ConvolutionWeights.scaled`.
    static func scaledScratchCount(
        _ layer: Convolution, over input: TensorShape, algorithm: Algorithm, workers: Int, rows: Int
    ) -> Int {
        let columns =
            blockCount(layer, over: input, rows: rows) < fewestBlocks
            ? workers * GEMM.Panels.widest(columns: layer.outputChannels) : layer.outputChannels
        return windowCount(layer, over: input, algorithm: algorithm, workers: workers)
            + rowLength(layer, over: input) * columns
    }

    /// - Parameter finish: Is called for each block of y's pixels once they are there and `clamp` has been done to them.
    func forward(
        _ weights: ConvolutionWeights, batch: Int, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let all = 0..<(batch * pixels)
        switch weights {
        case .packedWeights(let panels): forward(UnsafePointer(panels), all, clamp, finish)
        case .plain(let weight):
            guard Self.fitsPanels(layer) && all.count >= Self.rowsForPanels else {
                return forward(plain: weight, all, clamp, finish)
            }
            forward(copying: weight, to: context.scratch.assumingMemoryBound(to: Float.self), all, clamp, finish)
        case .scaled(let weight, let factors):
            let room =
                columns
                + Self.windowCount(
                    layer, over: context.input.shape, algorithm: context.algorithm,
                    workers: context.worker.threadPool.count)
            guard blockCount(all) < Self.fewestBlocks else {
                return forward(copying: weight, times: factors, to: room, all, clamp, finish)
            }
            // A panel is used once, so it need not leave the cache.
            let own = room + context.worker.index * GEMM.Panels.widest(columns: outputChannels) * rowLength
            forward(all, clamp, finish) { panel in
                GEMM.Panel(
                    copying: GEMM.Panels.range(panel, columns: outputChannels), of: columns(weight, of: 0),
                    times: factors, inner: rowLength, to: own)
            }
        }
    }

    private func forward(
        copying weight: UnsafePointer<Float>, times factors: UnsafePointer<Float>? = nil,
        to copy: UnsafeMutablePointer<Float>, _ all: Range<Int>, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        Self.copy(layer, weight, times: factors, over: context.input.shape, into: copy, worker: context.worker)
        forward(UnsafePointer(copy), all, clamp, finish)
    }

    private func forward(
        _ panels: UnsafePointer<Float>, _ all: Range<Int>, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let panels = GEMM.Panels(values: panels, inner: rowLength, columns: outputChannels)
        forward(all, clamp, finish) { panel in panels[panel] }
    }

    private func forward(
        plain weight: UnsafePointer<Float>, _ all: Range<Int>, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let epilogue = Epilogue(bias: clamp.bias, floor: clamp.floor, ceiling: clamp.ceiling)
        context.worker.forEachClaimed(blockCount(all)) { index in
            let rows = block(index, of: all)
            for group in 0..<layer.groups {
                GEMM.multiply(
                    rows: rows.count, columns: outputChannels, inner: rowLength,
                    windows(rows, group: group, in: columnBlock), columns(weight, of: group),
                    into: context.output.values + rows.lowerBound * layer.outputChannels + group * outputChannels,
                    stride: layer.outputChannels)
            }
            epilogue.apply(to: context.output.values, rows, channels: layer.outputChannels)
            finish(rows, index)
        }
    }

    /// - Parameter panel: Gives a panel of the weights, until it is called again by the same thread.
    private func forward(
        _ all: Range<Int>, _ clamp: Epilogue.Clamp, _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void,
        _ panel: (Int) -> GEMM.Panel
    ) {
        let (blocks, panelCount) = (blockCount(all), GEMM.Panels.count(columns: outputChannels))
        func multiply(_ rows: Range<Int>, _ x: GEMM.Matrix, _ panel: GEMM.Panel) {
            GEMM.multiply(
                rows: rows.count, x, panel, into: context.output.values + rows.lowerBound * outputChannels,
                stride: outputChannels, clamp: clamp)
        }
        guard blocks < Self.fewestBlocks else {
            context.worker.forEachClaimed(blocks) { index in
                let rows = block(index, of: all)
                let x = windows(rows, group: 0, in: columnBlock)
                for place in 0..<panelCount { multiply(rows, x, panel(place)) }
                finish(rows, index)
            }
            return
        }
        if copies {
            context.worker.forEachClaimed(blocks) { index in
                let rows = block(index, of: all)
                _ = windows(rows, group: 0, in: columns + rows.lowerBound * rowLength)
            }
        }
        let x = GEMM.Matrix(
            copies ? UnsafePointer(columns) : UnsafePointer(context.input.values), stride: rowLength)
        context.worker.forEachClaimed(panelCount) { place in multiply(all, x, panel(place)) }
        context.worker.forEachClaimed(blocks) { index in finish(block(index, of: all), index) }
    }

    /// The gradient of the weights, dW = Xᵀ·dy.
    func backwardWeight(_ dWeight: UnsafeMutablePointer<Float>, batch: Int) {
        guard copies || weightCount < 1 << 16 else { return backwardLargeWeight(dWeight, batch: batch) }
        sumOfParts(context, batch: batch, count: weightCount, into: dWeight) { images, sum in
            let all = (images.lowerBound * pixels)..<(images.upperBound * pixels)
            for index in 0..<blockCount(all) {
                let rows = block(index, of: all)
                for group in 0..<layer.groups {
                    let x = windows(rows, group: group, in: columnBlock)
                    forEachPiece(of: rows) { piece in
                        let start = (piece.lowerBound - rows.lowerBound) * rowLength
                        GEMM.multiply(
                            rows: rowLength, columns: outputChannels, inner: piece.count,
                            GEMM.Matrix(x.values + start, stride: rowLength).transpose,
                            outputGradient(piece, group: group), into: sum + group * outputChannels,
                            stride: layer.outputChannels, accumulating: piece.lowerBound > all.lowerBound)
                    }
                }
            }
        }
    }

    /// dW of a pointwise convolution with many weights: each worker takes some rows of dW, so there is nothing to add.
    private func backwardLargeWeight(_ dWeight: UnsafeMutablePointer<Float>, batch: Int) {
        context.worker.forEachClaimed(weightParts) { part in
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
        let all = 0..<(batch * pixels)
        let panels = transposedPanels(rows: all.count)
        func multiply(_ rows: Range<Int>, group: Int, into result: UnsafeMutablePointer<Float>) {
            let dy = outputGradient(rows, group: group)
            if let panels {
                for panel in 0..<GEMM.Panels.count(columns: rowLength) {
                    GEMM.multiply(rows: rows.count, dy, panels[panel], into: result, stride: rowLength)
                }
            } else {
                GEMM.multiply(
                    rows: rows.count, columns: rowLength, inner: outputChannels, dy,
                    columns(context.parameters[0], of: group).transpose, into: result, stride: rowLength)
            }
        }
        guard copies else {
            context.worker.forEachClaimed(blockCount(all)) { index in
                let rows = block(index, of: all)
                multiply(rows, group: 0, into: dx + rows.lowerBound * rowLength)
            }
            return
        }
        // Windows overlap, so an image belongs to one worker; small images go together to make a matrix of some size.
        let count = context.input.shape.count
        let images = max(1, 256 / pixels)
        let chunks = (batch + images - 1) / images
        context.worker.forEachClaimed(chunks) { chunk in
            let images = chunkRange(chunk, of: chunks, total: batch)
            (dx + images.lowerBound * count).update(repeating: 0, count: images.count * count)
            let all = (images.lowerBound * pixels)..<(images.upperBound * pixels)
            for index in 0..<blockCount(all) {
                let rows = block(index, of: all)
                for group in 0..<layer.groups {
                    let dColumns = columnBlock
                    multiply(rows, group: group, into: dColumns)
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

    /// Wᵀ in panels, where so many rows of dy repay the copy.
    private func transposedPanels(rows: Int) -> GEMM.Panels? {
        guard layer.groups == 1 && rows >= Self.rowsForPanels else { return nil }
        let copy = context.scratch.assumingMemoryBound(to: Float.self)
        context.worker.forEachClaimed(GEMM.Panels.count(columns: rowLength)) { panel in
            let range = GEMM.Panels.range(panel, columns: rowLength)
            _ = GEMM.Panel(
                copying: range, of: columns(context.parameters[0], of: 0).transpose, inner: outputChannels,
                to: copy + range.lowerBound * outputChannels)
        }
        return GEMM.Panels(values: copy, inner: outputChannels, columns: rowLength)
    }

    /// Runs `body` over pieces of some rows that OpenBLAS takes without packing, or over all at once.
    private func forEachPiece(of rows: Range<Int>, _ body: (Range<Int>) -> Void) {
        let length = GEMM.pieceLength(productsPerStep: rowLength * outputChannels, atLeast: 32) ?? rows.count
        for start in stride(from: rows.lowerBound, to: rows.upperBound, by: length) {
            body(start..<min(start + length, rows.upperBound))
        }
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
    private func windows(
        _ rows: Range<Int>, group: Int, in block: UnsafeMutablePointer<Float>
    ) -> GEMM.Matrix {
        guard copies else {
            return GEMM.Matrix(context.input.values + rows.lowerBound * rowLength, stride: rowLength)
        }
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
