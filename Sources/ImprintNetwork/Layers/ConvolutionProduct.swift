internal import CImprintKernels
internal import ImprintCore

/// A convolution as a matrix product (im2col and GEMM), Y = X·W with one row of X per window.
///
/// X is [output pixels, kernel height · kernel width · input channels]. Backward, dW = Xᵀ·dY, and dx adds up the rows of dY·Wᵀ at
/// their windows (col2im). For a pointwise convolution the input itself is X; otherwise windows are copied in blocks of rows that
/// stay in cache.
struct ConvolutionProduct {
    let layer: Convolution
    let context: LayerContext
    let window: imprint_window
    let inputChannels: Int
    let outputChannels: Int
    /// The length of a row of X: kernel height · kernel width · input channels of one group.
    let rowLength: Int
    let weightCount: Int
    private let blockRows: Int
    private let minimumBlocks: Int
    let columns: UnsafeMutablePointer<Float>
    /// Whether windows are copied.
    var copies: Bool { context.algorithm == .im2col }
    var pixels: Int { context.output.shape.pixels }

    init(_ layer: Convolution, _ context: LayerContext) {
        self.layer = layer
        self.context = context
        window = layer.window.kernelWindow(over: context.input.shape)
        inputChannels = context.input.shape.channels / layer.groups
        outputChannels = layer.outputChannels / layer.groups
        rowLength = Self.rowLength(layer, over: context.input.shape)
        weightCount = rowLength * layer.outputChannels
        blockRows = Self.blockRows(layer, over: context.input.shape)
        minimumBlocks = Self.minimumBlocks(layer, over: context.input.shape)
        columns =
            context.scratch.assumingMemoryBound(to: Float.self)
            + Self.windowOffset(layer, context, workers: context.worker.threadPool.count)
    }

    static func rowLength(_ layer: Convolution, over input: TensorShape) -> Int {
        layer.kernelSize.height * layer.kernelSize.width * (input.channels / layer.groups)
    }

    /// The number of windows per block: small enough for X and Y to stay in cache, large enough for an efficient matrix product.
    static func blockRows(_ layer: Convolution, over input: TensorShape) -> Int {
        let length = rowLength(layer, over: input)
        return min(max((1 << 17) / (length + layer.outputChannels / layer.groups), 128), 1024)
    }

    /// The number of output blocks of a forward pass over `rows` windows.
    private static func outputBlockCount(_ layer: Convolution, over input: TensorShape, rows: Int) -> Int {
        rounded(
            (rows + blockRows(layer, over: input) - 1) / blockRows(layer, over: input),
            atLeast: minimumBlocks(layer, over: input))
    }

    /// Rounds small block counts up to a multiple of four, which two or four threads share evenly.
    private static func rounded(_ blocks: Int, atLeast minimum: Int) -> Int {
        let blocks = max(blocks, minimum)
        return (fewestBlocks...16).contains(blocks) ? roundedUp(blocks, to: 4) : blocks
    }

    /// The minimum number of blocks: threads share the rows of an image if there are too few panels of output channels to share.
    private static func minimumBlocks(_ layer: Convolution, over input: TensorShape) -> Int {
        let window = layer.window.kernelWindow(over: input)
        let rows = Int(window.output_height * window.output_width)
        return rows >= minimumSharedRows && GEMM.Panels.count(columns: layer.outputChannels) < fewestPanels
            ? fewestBlocks : 1
    }

    /// The minimum number of panels of output channels that threads share evenly enough.
    private static let fewestPanels = 4
    /// The minimum number of rows of an image for sharing its rows instead of the output channels.
    private static let minimumSharedRows = 96

    // Matrix products must have the same rows for any number of processes, unless their bits do not depend on the other rows
    // (`GEMM.rowsAreIndependent`).

    /// The maximum number of output blocks in which a pass records moments.
    static func momentBlocks(_ layer: Convolution, over input: TensorShape, batch: Int, pixels: Int) -> Int {
        RowBlocks.maximumCount(
            batch: batch, rowsPerImage: pixels, blockRows: blockRows(layer, over: input),
            rounding: { rounded($0, atLeast: minimumBlocks(layer, over: input)) })
    }

    /// The output blocks of a forward pass with packed weights.
    enum OutputBlocks {
        /// Blocks that do not depend on the number of processes, and in which a pass can record moments.
        case units(RowBlocks)
        /// Blocks of equal size.
        case equal(count: Int, rows: Int)

        var count: Int {
            switch self {
            case .units(let blocks): blocks.count
            case .equal(let count, _): count
            }
        }

        subscript(block: Int) -> Range<Int> {
            switch self {
            case .units(let blocks): blocks[block]
            case .equal(let count, let rows): chunkRange(block, of: count, total: rows)
            }
        }
    }

    /// The output blocks of a forward pass with packed weights over some windows.
    func outputBlocks(_ all: Range<Int>) -> OutputBlocks {
        context.outputMoments == nil && rowsAreIndependent
            ? .equal(count: outputBlockCount(rows: all.count), rows: all.count) : .units(rowBlocks)
    }

    private var rowsAreIndependent: Bool { GEMM.rowsAreIndependent(columns: outputChannels) }

    /// The blocks that do not depend on the number of processes.
    var rowBlocks: RowBlocks {
        RowBlocks(
            context.part, rowsPerImage: pixels, blockRows: blockRows,
            rounding: { Self.rounded($0, atLeast: minimumBlocks) })
    }

    /// The number of output pixels of all processes, on which the choice of an algorithm depends.
    var totalRows: Int { context.part.total * pixels }
    /// Whether there are few blocks, so that the threads share the output channels instead.
    var sharesChannels: Bool { outputBlockCount(rows: totalRows) < Self.fewestBlocks }

    private func outputBlockCount(rows: Int) -> Int {
        Self.outputBlockCount(layer, over: context.input.shape, rows: rows)
    }

    /// The minimum number of blocks for sharing blocks among threads; with fewer, threads share the output channels instead.
    static let fewestBlocks = 4
    /// The minimum number of rows for which packing the weights into panels pays off.
    static let rowsForPanels = 2048

    /// Whether the weights can be packed into panels.
    static func fitsPanels(_ layer: Convolution) -> Bool { layer.groups == 1 }

    /// Packs the layer's weights, scaled by a factor per output channel, into panels.
    static func copy(
        _ layer: Convolution, _ weight: UnsafePointer<Float>, times factors: UnsafePointer<Float>? = nil,
        over input: TensorShape, into panels: UnsafeMutablePointer<Float>, worker: Worker
    ) {
        let (inner, columns) = (rowLength(layer, over: input), layer.outputChannels)
        worker.forEachChunk(GEMM.Panels.count(columns: columns)) { panel in
            let range = GEMM.Panels.range(panel, columns: columns)
            _ = GEMM.Panel(
                copying: range, of: GEMM.Matrix(weight, stride: columns), times: factors, inner: inner,
                to: panels + range.lowerBound * inner)
        }
    }

    /// The number of floats of scratch memory: windows, and panels of the weights or buffers for dW.
    static func scratchCount(
        _ layer: Convolution, over input: TensorShape, algorithm: Algorithm, batch: Int, workers: Int, training: Bool,
        usesBFloat16: Bool
    ) -> Int {
        let windows = windowCount(layer, over: input, algorithm: algorithm, workers: workers)
        guard training else { return windows }
        let shared = algorithm == .im2col ? sharedRows(layer, over: input, batch: batch) : 0
        let rounded = usesBFloat16 ? bfloat16RowsCount(layer, over: input, workers: workers) : 0
        return max(windows + rounded, shared * rowLength(layer, over: input))
            + weightScratchCount(layer, over: input, copies: algorithm == .im2col, workers: workers)
    }

    /// The number of floats of all windows that exist at the same time.
    static func windowCount(
        _ layer: Convolution, over input: TensorShape, algorithm: Algorithm, workers: Int
    ) -> Int {
        let blocks = max(workers, fewestBlocks)
        return algorithm == .im2col ? blocks * blockRows(layer, over: input) * rowLength(layer, over: input) : 0
    }

    /// The number of floats of scratch memory of a pass over `rows` windows with `ConvolutionWeights.scaled`.
    static func scaledScratchCount(
        _ layer: Convolution, over input: TensorShape, algorithm: Algorithm, workers: Int, rows: Int
    ) -> Int {
        let columns =
            outputBlockCount(layer, over: input, rows: rows) < fewestBlocks
            ? workers * GEMM.Panels.maximumWidth(columns: layer.outputChannels) : layer.outputChannels
        return windowCount(layer, over: input, algorithm: algorithm, workers: workers)
            + rowLength(layer, over: input) * columns
    }

    /// Computes the output.
    /// - Parameter finish: Called for each block of output pixels after `clamp` has been applied to it.
    func forward(
        _ weights: ConvolutionWeights, batch: Int, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let all = 0..<(batch * pixels)
        switch weights {
        case .packedWeights(let panels): forward(UnsafePointer(panels), all, clamp, finish)
        case .packedBFloat16(let panels): forward(panels, all, clamp, finish)
        case .plain(let weight):
            if usesBFloat16 {
                let panels = context.scratch
                BFloat16Product(layer, over: context.input.shape).pack(weight, into: panels, worker: context.worker)
                return forward(UnsafePointer(panels.assumingMemoryBound(to: UInt16.self)), all, clamp, finish)
            }
            guard Self.fitsPanels(layer) && totalRows >= Self.rowsForPanels else {
                return forward(plain: weight, clamp, finish)
            }
            forward(copying: weight, to: context.scratch.assumingMemoryBound(to: Float.self), all, clamp, finish)
        case .scaled(let weight, let factors):
            let packed =
                columns
                + Self.windowCount(
                    layer, over: context.input.shape, algorithm: context.algorithm,
                    workers: context.worker.threadPool.count)
            guard sharesChannels else {
                return forward(copying: weight, times: factors, to: packed, all, clamp, finish)
            }
            // Each panel is used once, so one buffer per worker stays in cache.
            let panelWidth = GEMM.Panels.maximumWidth(columns: outputChannels)
            let panelBuffer = packed + context.worker.index * panelWidth * rowLength
            forward(all, clamp, finish) { panel in
                GEMM.Panel(
                    copying: GEMM.Panels.range(panel, columns: outputChannels), of: columns(weight, of: 0),
                    times: factors, inner: rowLength, to: panelBuffer)
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
        plain weight: UnsafePointer<Float>, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        let epilogue = Epilogue(bias: clamp.bias, floor: clamp.floor, ceiling: clamp.ceiling)
        let blocks = rowBlocks
        context.worker.forEachChunk(blocks.count) { index in
            let rows = blocks[index]
            for group in 0..<layer.groups where !rows.isEmpty {
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

    /// Multiplies with packed weights.
    /// - Parameter panel: Returns a panel of the weights, valid until the same thread calls it again.
    private func forward(
        _ all: Range<Int>, _ clamp: Epilogue.Clamp, _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void,
        _ panel: (Int) -> GEMM.Panel
    ) {
        let (blocks, panelCount) = (outputBlocks(all), GEMM.Panels.count(columns: outputChannels))
        func multiply(_ rows: Range<Int>, _ x: GEMM.Matrix, _ panel: GEMM.Panel) {
            GEMM.multiply(
                rows: rows.count, x, panel, into: context.output.values + rows.lowerBound * outputChannels,
                stride: outputChannels, clamp: clamp)
        }
        guard sharesChannels else {
            context.worker.forEachChunk(blocks.count) { index in
                let rows = blocks[index]
                let x = windows(rows, group: 0, in: columnBlock)
                for panelIndex in 0..<panelCount { multiply(rows, x, panel(panelIndex)) }
                finish(rows, index)
            }
            return
        }
        if copies {
            context.worker.forEachChunk(blockCount(all)) { index in
                let rows = block(index, of: all)
                _ = windows(rows, group: 0, in: columns + rows.lowerBound * rowLength)
            }
        }
        let x = GEMM.Matrix(
            copies ? UnsafePointer(columns) : UnsafePointer(context.input.values), stride: rowLength)
        context.worker.forEachChunk(panelCount) { panelIndex in
            let panel = panel(panelIndex)
            guard !rowsAreIndependent else { return multiply(all, x, panel) }
            for index in 0..<blocks.count {
                let rows = blocks[index]
                let first = GEMM.Matrix(x.values + rows.lowerBound * rowLength, stride: rowLength)
                if !rows.isEmpty { multiply(rows, first, panel) }
            }
        }
        context.worker.forEachChunk(blocks.count) { index in finish(blocks[index], index) }
    }

    /// Runs `body` over pieces of `rows` that OpenBLAS multiplies without packing, or over all rows at once.
    func forEachPiece(of rows: Range<Int>, _ body: (Range<Int>) -> Void) {
        let length = GEMM.blockLength(multiplicationsPerRow: rowLength * outputChannels, minimum: 32) ?? rows.count
        for start in stride(from: rows.lowerBound, to: rows.upperBound, by: length) {
            body(start..<min(start + length, rows.upperBound))
        }
    }

    func blockCount(_ rows: Range<Int>) -> Int { Self.rounded((rows.count + blockRows - 1) / blockRows, atLeast: 0) }

    func block(_ block: Int, of rows: Range<Int>) -> Range<Int> {
        let part = chunkRange(block, of: blockCount(rows), total: rows.count)
        return (rows.lowerBound + part.lowerBound)..<(rows.lowerBound + part.upperBound)
    }

    var columnBlock: UnsafeMutablePointer<Float> {
        columns + context.worker.index * blockRows * rowLength
    }

    /// The windows of some output pixels as a matrix [pixels, kernel height · kernel width · input channels of the group].
    func windows(
        _ rows: Range<Int>, group: Int, in block: UnsafeMutablePointer<Float>
    ) -> GEMM.Matrix {
        guard copies else {
            return GEMM.Matrix(context.input.values + rows.lowerBound * rowLength, stride: rowLength)
        }
        forEachImage(in: rows) { image, first, count, offset in
            withUnsafePointer(to: window) {
                imprint_im2col(
                    $0, context.input.at(image), group * inputChannels, inputChannels, first, count,
                    block + offset * rowLength)
            }
        }
        return GEMM.Matrix(block, stride: rowLength)
    }

    /// Calls `body(image, first pixel of the image, pixel count, offset from the first row)` for each image that `rows` overlap.
    func forEachImage(in rows: Range<Int>, _ body: (Int, Int, Int, Int) -> Void) {
        var row = rows.lowerBound
        while row < rows.upperBound {
            let image = row / pixels
            let end = min((image + 1) * pixels, rows.upperBound)
            body(image, row - image * pixels, end - row, row - rows.lowerBound)
            row = end
        }
    }

    /// The columns of W that belong to a group.
    func columns(_ weight: UnsafePointer<Float>, of group: Int) -> GEMM.Matrix {
        GEMM.Matrix(weight + group * outputChannels, stride: layer.outputChannels)
    }

    func outputGradient(_ rows: Range<Int>, group: Int) -> GEMM.Matrix {
        GEMM.Matrix(
            context.outputGradient + rows.lowerBound * layer.outputChannels + group * outputChannels,
            stride: layer.outputChannels)
    }
}
