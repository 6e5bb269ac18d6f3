internal import ImprintCore

extension ConvolutionProduct {
    /// The minimum number of weights for which the threads share the elements of dW instead of the images.
    private static let manyWeights = 1 << 16

    /// Whether the threads share the elements of dW.
    private static func sharesWeights(_ layer: Convolution, over input: TensorShape) -> Bool {
        layer.groups == 1 && rowLength(layer, over: input) * layer.outputChannels >= manyWeights
    }

    /// The number of floats of the buffers for dW, or of the packed weights, which use the same memory in other passes.
    static func weightScratchCount(_ layer: Convolution, over input: TensorShape, copies: Bool, workers: Int) -> Int {
        let length = rowLength(layer, over: input)
        let count = length * layer.outputChannels
        guard sharesWeights(layer, over: input) else {
            return max(count, ImageSum.scratchCount(count, workers: workers))
        }
        return max(
            count,
            copies
                ? ImageSum.bufferCount(count)
                : workers * WeightPanels(rows: length, columns: layer.outputChannels).floatsPerThread)
    }

    /// The number of windows that exist at the same time if the threads share the elements of dW.
    static func sharedRows(_ layer: Convolution, over input: TensorShape, batch: Int) -> Int {
        guard sharesWeights(layer, over: input) else { return 0 }
        let window = layer.window.kernelWindow(over: input)
        return min(
            batch * Int(window.output_height * window.output_width), sharedBlocks * blockRows(layer, over: input))
    }

    /// The maximum number of blocks of shared windows.
    private static let sharedBlocks = 16

    /// Computes the gradient of the weights, dW = Xᵀ·dY.
    func backwardWeight(_ dWeight: UnsafeMutablePointer<Float>, batch: Int) {
        defer { context.allReduceInBackground(dWeight, count: weightCount) }
        let scratch = context.scratch.assumingMemoryBound(to: Float.self)
        if Self.sharesWeights(layer, over: context.input.shape) {
            return copies
                ? backwardWeightSharingWindows(dWeight, scratch, batch: batch)
                : backwardWeightInPanels(dWeight, scratch)
        }
        ImageSum.run(
            context.part, count: weightCount, into: dWeight, scratch: scratch, worker: context.worker
        ) { images, sum in
            let all = rows(of: images)
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

    /// Computes dW of a pointwise convolution with many weights: each thread sums a panel of dW over the batch.
    private func backwardWeightInPanels(
        _ dWeight: UnsafeMutablePointer<Float>, _ scratch: UnsafeMutablePointer<Float>
    ) {
        let panels = WeightPanels(rows: rowLength, columns: outputChannels)
        panels.sum(context.part, into: dWeight, scratch: scratch, worker: context.worker) {
            images, part, channels, sum in
            let rows = rows(of: images)
            multiply(
                context.input.values + rows.lowerBound * rowLength, part, channels, rows, into: sum,
                stride: channels.count, accumulating: false)
        }
    }

    /// Computes dW of a convolution with many weights: the threads share the windows of each leaf of the sum.
    private func backwardWeightSharingWindows(
        _ dWeight: UnsafeMutablePointer<Float>, _ scratch: UnsafeMutablePointer<Float>, batch: Int
    ) {
        let panels = WeightPanels(rows: rowLength, columns: outputChannels)
        let capacity = Self.sharedRows(layer, over: context.input.shape, batch: batch)
        // A leaf of this tree is not empty, because it has at least four images, or is the whole batch.
        let tree = ImageSum(leaves: ImageSum.leavesPerThread(batch: context.part.total), of: context.part)
        for leaf in 0..<tree.leaves {
            let all = rows(of: tree.images(leaf))
            let sum = ImageSum.buffer(leaf, result: dWeight, buffers: scratch, count: weightCount)
            let pieces = (all.count + capacity - 1) / capacity
            for piece in 0..<pieces {
                let part = chunkRange(piece, of: pieces, total: all.count)
                let rows = (all.lowerBound + part.lowerBound)..<(all.lowerBound + part.upperBound)
                context.worker.forEachChunk(blockCount(rows)) { index in
                    let some = block(index, of: rows)
                    _ = windows(some, group: 0, in: columns + (some.lowerBound - rows.lowerBound) * rowLength)
                }
                context.worker.forEachChunk(panels.count) { index in
                    let (part, channels) = panels[index]
                    multiply(
                        columns, part, channels, rows,
                        into: sum + part.lowerBound * outputChannels + channels.lowerBound, stride: outputChannels,
                        accumulating: piece > 0)
                    guard piece == pieces - 1 else { return }
                    for row in part {
                        let start = row * outputChannels
                        ImageSum.addCompleteSubtrees(
                            after: leaf, (start + channels.lowerBound)..<(start + channels.upperBound),
                            result: dWeight, buffers: scratch, stride: weightCount)
                    }
                }
            }
        }
    }

    /// Computes a panel of dW over some output pixels.
    /// - Parameter x: The windows of these pixels.
    private func multiply(
        _ x: UnsafePointer<Float>, _ part: Range<Int>, _ channels: Range<Int>, _ rows: Range<Int>,
        into sum: UnsafeMutablePointer<Float>, stride: Int, accumulating: Bool
    ) {
        GEMM.multiply(
            rows: part.count, columns: channels.count, inner: rows.count,
            GEMM.Matrix(x + part.lowerBound, stride: rowLength).transpose,
            GEMM.Matrix(
                context.outputGradient + rows.lowerBound * outputChannels + channels.lowerBound,
                stride: outputChannels), into: sum, stride: stride, accumulating: accumulating)
    }

    /// The output pixels of some images.
    private func rows(of images: Range<Int>) -> Range<Int> {
        (images.lowerBound * pixels)..<(images.upperBound * pixels)
    }
}

/// The panels of a gradient dW [rows, columns]; a thread computes a panel at once.
///
/// A panel and its buffers fit into the cache of most cores. It has at most 256 columns and usually about as many rows, because a matrix product
/// packs both of its operands.
struct WeightPanels {
    private static let widest = 256
    /// The number of elements of a panel of a small and of a large matrix; a small one has smaller panels for more threads.
    private static let (smallPanel, largePanel) = (1 << 14, 1 << 16)
    /// The minimum number of elements of a large matrix.
    private static let large = 1 << 18

    let rows: Int
    let columns: Int
    private let down: Int
    private let across: Int

    init(rows: Int, columns: Int) {
        (self.rows, self.columns) = (rows, columns)
        across = (columns + Self.widest - 1) / Self.widest
        let elements = rows * columns < Self.large ? Self.smallPanel : Self.largePanel
        down = max(1, rows * columns / across / elements)
    }

    var count: Int { down * across }

    /// The largest number of elements of a panel and of its buffers (`ImageSum.bufferCount`).
    var floatsPerThread: Int {
        let count = ((rows + down - 1) / down) * ((columns + across - 1) / across)
        return count + ImageSum.bufferCount(count)
    }

    subscript(panel: Int) -> (rows: Range<Int>, columns: Range<Int>) {
        let (row, column) = panel.quotientAndRemainder(dividingBy: across)
        return (chunkRange(row, of: down, total: rows), chunkRange(column, of: across, total: columns))
    }

    /// Computes dW as a sum over the images of a batch.
    /// - Parameters:
    ///   - scratch: Memory for `floatsPerThread` floats for each thread.
    ///   - sum: Writes a panel [rows, columns] of the sum over some images.
    func sum(
        _ part: BatchPart, into dWeight: UnsafeMutablePointer<Float>, scratch: UnsafeMutablePointer<Float>,
        worker: Worker,
        _ sum: (
            _ images: Range<Int>, _ rows: Range<Int>, _ columns: Range<Int>, _ panel: UnsafeMutablePointer<Float>
        ) -> Void
    ) {
        let panel = scratch + worker.index * floatsPerThread
        worker.forEachChunk(count) { index in
            let (rows, columns) = self[index]
            let count = rows.count * columns.count
            ImageSum.run(part, count: count, into: panel, buffers: panel + count) { images, target in
                sum(images, rows, columns, target)
            }
            for row in 0..<rows.count {
                (dWeight + (rows.lowerBound + row) * self.columns + columns.lowerBound).update(
                    from: panel + row * columns.count, count: columns.count)
            }
        }
    }
}
