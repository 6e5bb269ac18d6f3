internal import CImprintKernels
internal import ImprintCore

extension Winograd {
    /// Computes dw = Gᵀ(VᵀdM)G, summed over all tiles.
    func backwardWeight(_ context: LayerContext, _ dw: UnsafeMutablePointer<Float>) {
        if sharesTiles {
            backwardWeightSharingTiles(context, into: dw)
        } else {
            backwardWeightInParts(context, into: dw)
        }
    }

    func weightScratch(batch: Int, workers: Int) -> Int {
        guard sharesTiles else {
            return ImageSum.scratchCount(weightCount, workers: workers) + workers * scratchPerThread
        }
        let groups = LeafGroups(self, BatchPart(wholeBatch: batch))
        return count(groups.capacity, inputs) + count(groups.capacity, outputs)
            + (1 + groups.levels) * transformedCount + workers * ImageSum.bufferCount(inputs * panelWidth)
    }

    private var weightCount: Int { 9 * inputs * outputs }

    /// The number of floats of dU, V and dM of a block.
    private var scratchPerThread: Int { transformedCount + count(blockTiles, inputs) + count(blockTiles, outputs) }

    /// Each thread sums all elements of dU over some images, and transforms the sum back before adding it to others, because dw is smaller.
    private func backwardWeightInParts(_ context: LayerContext, into dw: UnsafeMutablePointer<Float>) {
        let (x, dy, worker) = (context.input.values, context.outputGradient, context.worker)
        let scratch = context.scratch.assumingMemoryBound(to: Float.self)
        let (vStride, dmStride) = (stride(blockTiles, inputs), stride(blockTiles, outputs))
        let du =
            scratch + ImageSum.scratchCount(weightCount, workers: worker.threadPool.count)
            + worker.index * scratchPerThread
        let v = du + transformedCount
        let dm = v + count(blockTiles, inputs)
        ImageSum.run(context.part, count: weightCount, into: dw, scratch: scratch, worker: worker) { images, sum in
            let all = tileRows(of: images)
            for block in 0..<fixedBlockCount(all) {
                let rows = tileRows(block, of: all)
                transformInput(x, rows, into: v, vStride)
                transformGradient(dy, rows, into: dm, dmStride)
                for panel in 0..<panelCount {
                    for point in 0..<Self.points {
                        accumulate(
                            v + point * vStride, dm + point * dmStride, tiles: tileCount(rows), panelRange(panel),
                            into: du + offset(panel, point), isFirst: block == 0)
                    }
                }
            }
            for panel in 0..<panelCount { transformBack(du, panel, into: sum) }
        }
        context.allReduceInBackground(dw, count: weightCount)
    }

    /// Shares V and dM of several leaves among the threads: each thread sums a panel of one of the 36 matrices dU over these images.
    private func backwardWeightSharingTiles(_ context: LayerContext, into dw: UnsafeMutablePointer<Float>) {
        let (x, dy, worker) = (context.input.values, context.outputGradient, context.worker)
        let scratch = context.scratch.assumingMemoryBound(to: Float.self)
        let groups = LeafGroups(self, context.part)
        let (vStride, dmStride) = (stride(groups.capacity, inputs), stride(groups.capacity, outputs))
        let (v, dm) = (scratch, scratch + count(groups.capacity, inputs))
        let du = dm + count(groups.capacity, outputs)
        let rest = du + transformedCount
        let buffers =
            rest + groups.levels * transformedCount + worker.index * ImageSum.bufferCount(inputs * panelWidth)
        for group in 0..<groups.count {
            let leaves = groups.leaves(group)
            let sum = ImageSum.buffer(group, result: du, buffers: rest, count: transformedCount)
            let all = tileRows(of: groups.images(group))
            let pieces = groups.pieces(all)
            for index in 0..<pieces {
                let piece = groups.piece(index, of: all)
                worker.forEachChunk(fixedBlockCount(piece)) { block in
                    let rows = tileRows(block, of: piece)
                    let first = tileCount(piece.lowerBound..<rows.lowerBound)
                    transformInput(x, rows, into: v + first * inputs, vStride)
                    transformGradient(dy, rows, into: dm + first * outputs, dmStride)
                }
                worker.forEachChunk(panelCount * Self.points) { chunk in
                    let (panel, point) = chunk.quotientAndRemainder(dividingBy: Self.points)
                    let channels = panelRange(panel)
                    let elements = offset(panel, point)..<(offset(panel, point) + inputs * channels.count)
                    for (position, leaf) in leaves.enumerated() {
                        let target = ImageSum.buffer(
                            position, result: sum + elements.lowerBound, buffers: buffers, count: elements.count)
                        // With several pieces, there is only one leaf. A leaf has at least four images, or is the whole batch.
                        let rows = tileRows(of: groups.tree.images(leaf)).clamped(to: piece)
                        let first = tileCount(piece.lowerBound..<rows.lowerBound)
                        accumulate(
                            v + point * vStride + first * inputs, dm + point * dmStride + first * outputs,
                            tiles: tileCount(rows), channels, into: target, isFirst: index == 0)
                        ImageSum.addCompleteSubtrees(
                            after: position, 0..<elements.count, result: sum + elements.lowerBound, buffers: buffers,
                            stride: elements.count)
                    }
                    guard index == pieces - 1 else { return }
                    ImageSum.addCompleteSubtrees(
                        after: group, elements, result: du, buffers: rest, stride: transformedCount)
                }
            }
        }
        context.allReduce(du, count: transformedCount)
        worker.forEachChunk(panelCount) { panel in transformBack(du, panel, into: dw) }
    }

    /// Adds VᵀdM to some output channels of one of the 36 matrices dU.
    private func accumulate(
        _ v: UnsafePointer<Float>, _ dm: UnsafePointer<Float>, tiles: Int, _ channels: Range<Int>,
        into du: UnsafeMutablePointer<Float>, isFirst: Bool
    ) {
        GEMM.multiply(
            rows: inputs, columns: channels.count, inner: tiles, GEMM.Matrix(v, stride: inputs).transpose,
            GEMM.Matrix(dm + channels.lowerBound, stride: outputs), into: du, stride: channels.count,
            accumulating: !isFirst)
    }

    private func transformGradient(
        _ dy: UnsafePointer<Float>, _ rows: Range<Int>, into dm: UnsafeMutablePointer<Float>, _ stride: Int
    ) {
        withUnsafePointer(to: tiles) {
            imprint_winograd_output_gradient($0, dy, rows.lowerBound, rows.count, dm, stride)
        }
    }

    private func transformBack(_ du: UnsafePointer<Float>, _ panel: Int, into dw: UnsafeMutablePointer<Float>) {
        let channels = panelRange(panel)
        imprint_winograd_weights_gradient(
            du + panel * panelWeights, stride(inputs, channels.count), inputs, outputs, channels.lowerBound,
            channels.count, dw)
    }

    /// The index of the first element of a panel of one of the 36 matrices dU.
    private func offset(_ panel: Int, _ point: Int) -> Int {
        panel * panelWeights + point * stride(inputs, panelRange(panel).count)
    }

    /// The rows of tiles of some images.
    fileprivate func tileRows(of images: Range<Int>) -> Range<Int> {
        (images.lowerBound * Int(tiles.tile_rows))..<(images.upperBound * Int(tiles.tile_rows))
    }

    /// The groups of leaves whose V and dM exist at the same time.
    fileprivate struct LeafGroups {
        let tree: ImageSum
        /// The number of leaves of a group, a power of two.
        private let size: Int
        /// The maximum number of tiles, and of rows of tiles, that exist at the same time; smaller batches do not have more.
        let capacity: Int
        private let capacityRows: Int

        init(_ winograd: Winograd, _ part: BatchPart) {
            let leaves = ImageSum.leavesPerThread(batch: part.total)
            tree = ImageSum(leaves: leaves, of: part)
            let columns = Int(winograd.tiles.tile_columns)
            let perRow = Winograd.points * max(winograd.inputs, winograd.outputs) * columns
            let fitting = max(1, Winograd.sharedTiles / perRow)
            let rowsPerImage = Int(winograd.tiles.tile_rows)
            var size = tree.leaves
            while size > 1, (part.total * size + leaves - 1) / leaves * rowsPerImage > fitting { size /= 2 }
            self.size = size
            capacityRows = min(part.images.count * rowsPerImage, fitting)
            capacity = capacityRows * columns
        }

        var count: Int { tree.leaves / size }
        /// The number of buffers for sums of groups.
        var levels: Int { count.trailingZeroBitCount }

        func leaves(_ group: Int) -> Range<Int> { (group * size)..<((group + 1) * size) }

        func images(_ group: Int) -> Range<Int> {
            let leaves = leaves(group)
            return tree.images(leaves.lowerBound).lowerBound..<tree.images(leaves.upperBound - 1).upperBound
        }

        /// The number of pieces of a group's rows of tiles: one, or more if a single leaf does not fit.
        func pieces(_ rows: Range<Int>) -> Int { max(1, (rows.count + capacityRows - 1) / capacityRows) }

        func piece(_ index: Int, of rows: Range<Int>) -> Range<Int> {
            let part = chunkRange(index, of: pieces(rows), total: rows.count)
            return (rows.lowerBound + part.lowerBound)..<(rows.lowerBound + part.upperBound)
        }
    }
}
