internal import CImprintKernels
internal import ImprintCore

extension Winograd {
    /// Computes dw = Gᵀ(VᵀdM)G, summed over all tiles.
    func backwardWeight(_ context: LayerContext, _ dw: UnsafeMutablePointer<Float>, batch: Int) {
        let (x, dy) = (context.input.values, context.outputGradient)
        let scratch = context.scratch.assumingMemoryBound(to: Float.self)
        if sharesTiles {
            backwardWeightSharingTiles(x, dy, into: dw, batch: batch, worker: context.worker, scratch: scratch)
        } else {
            backwardWeightInParts(x, dy, into: dw, batch: batch, worker: context.worker, scratch: scratch)
        }
    }

    func weightScratch(batch: Int, workers: Int) -> Int {
        guard sharesTiles else {
            return weightParts * transformedCount + workers * (count(blockTiles, inputs) + count(blockTiles, outputs))
        }
        let tiles = groupBlocks(batch) * blockTiles
        return count(tiles, inputs) + count(tiles, outputs) + transformedCount
    }

    private func backwardWeightInParts(
        _ x: UnsafePointer<Float>, _ dy: UnsafePointer<Float>, into dw: UnsafeMutablePointer<Float>, batch: Int,
        worker: Worker, scratch: UnsafeMutablePointer<Float>
    ) {
        let blocks = blockCount(batch: batch)
        let parts = min(weightParts, blocks)
        let scratchPerWorker = count(blockTiles, inputs) + count(blockTiles, outputs)
        let v = scratch + weightParts * transformedCount + worker.index * scratchPerWorker
        let dm = v + count(blockTiles, inputs)
        worker.forEachChunk(parts) { part in
            let du = scratch + part * transformedCount
            let range = chunkRange(part, of: parts, total: blocks)
            for block in range {
                let rows = tileRows(block, batch: batch)
                transformInput(x, rows, into: v, stride(blockTiles, inputs))
                transformGradient(dy, rows, into: dm, stride(blockTiles, outputs))
                for panel in 0..<panelCount {
                    accumulate(
                        v, stride(blockTiles, inputs), dm, stride(blockTiles, outputs), tiles: tileCount(rows), panel,
                        into: du, isFirst: block == range.lowerBound)
                }
            }
        }
        for part in 1..<max(parts, 1) {
            addRows(
                scratch + part * transformedCount, to: scratch, count: 1, countPerImage: transformedCount,
                worker: worker)
        }
        worker.forEachChunk(panelCount) { panel in transformBack(scratch, panel, into: dw) }
    }

    private func backwardWeightSharingTiles(
        _ x: UnsafePointer<Float>, _ dy: UnsafePointer<Float>, into dw: UnsafeMutablePointer<Float>, batch: Int,
        worker: Worker, scratch: UnsafeMutablePointer<Float>
    ) {
        let blocks = blockCount(batch: batch)
        let tiles = groupBlocks(batch) * blockTiles
        let (v, dm) = (scratch, scratch + count(tiles, inputs))
        let du = dm + count(tiles, outputs)
        forEachGroup(batch) { group in
            worker.forEachChunk(group.count) { index in
                let rows = tileRows(group.lowerBound + index, batch: batch)
                transformInput(x, rows, into: v + index * blockTiles * inputs, stride(tiles, inputs))
                transformGradient(dy, rows, into: dm + index * blockTiles * outputs, stride(tiles, outputs))
            }
            let first = tileRows(group.lowerBound, batch: batch).lowerBound
            let end = tileRows(group.upperBound - 1, batch: batch).upperBound
            worker.forEachChunk(panelCount) { panel in
                accumulate(
                    v, stride(tiles, inputs), dm, stride(tiles, outputs), tiles: tileCount(first..<end), panel,
                    into: du, isFirst: group.lowerBound == 0)
                if group.upperBound == blocks { transformBack(du, panel, into: dw) }
            }
        }
    }

    /// Adds VᵀdM to dU for the output channels of one panel.
    private func accumulate(
        _ v: UnsafePointer<Float>, _ vStride: Int, _ dm: UnsafePointer<Float>, _ dmStride: Int, tiles: Int,
        _ panel: Int, into du: UnsafeMutablePointer<Float>, isFirst: Bool
    ) {
        let channels = panelRange(panel)
        let du = du + panel * panelWeights
        for point in 0..<Self.points {
            GEMM.multiply(
                rows: inputs, columns: channels.count, inner: tiles,
                GEMM.Matrix(v + point * vStride, stride: inputs).transpose,
                GEMM.Matrix(dm + point * dmStride + channels.lowerBound, stride: outputs),
                into: du + point * stride(inputs, channels.count), stride: channels.count, accumulating: !isFirst)
        }
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
}
