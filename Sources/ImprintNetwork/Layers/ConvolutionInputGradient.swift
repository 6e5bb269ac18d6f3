internal import CImprintKernels
internal import ImprintCore

extension ConvolutionProduct {
    /// Computes dX = dY·Wᵀ and adds its rows into dx at their windows.
    func backwardInput(_ dx: UnsafeMutablePointer<Float>) {
        let bfloat16 = packedTransposeInBFloat16()
        let panels = bfloat16 == nil ? transposedPanels(rows: totalRows) : nil
        func multiply(_ rows: Range<Int>, group: Int, into result: UnsafeMutablePointer<Float>) {
            let dy = outputGradient(rows, group: group)
            if let bfloat16 {
                let x = bfloat16.block(bfloat16Rows, of: context.worker)
                bfloat16.round(dy, rows: rows.count, into: x)
                for panel in 0..<GEMM.Panels.count(columns: rowLength) {
                    bfloat16.multiply(
                        x, rows: rows.count, panel: panel,
                        of: UnsafePointer(context.scratch.assumingMemoryBound(to: UInt16.self)), into: result)
                }
            } else if let panels {
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
            let blocks = rowBlocks
            context.worker.forEachChunk(blocks.count) { index in
                let rows = blocks[index]
                if !rows.isEmpty { multiply(rows, group: 0, into: dx + rows.lowerBound * rowLength) }
            }
            return
        }
        // Windows overlap, so one worker computes an image; small images are combined into larger matrices.
        let count = context.input.shape.count
        let chunks = RowBlocks(context.part, rowsPerImage: 1, blockRows: max(1, 256 / pixels))
        context.worker.forEachChunk(chunks.count) { chunk in
            let images = chunks[chunk]
            (dx + images.lowerBound * count).update(repeating: 0, count: images.count * count)
            let all = (images.lowerBound * pixels)..<(images.upperBound * pixels)
            for index in 0..<blockCount(all) {
                let rows = block(index, of: all)
                for group in 0..<layer.groups {
                    let dColumns = columnBlock
                    multiply(rows, group: group, into: dColumns)
                    forEachImage(in: rows) { image, first, count, offset in
                        withUnsafePointer(to: window) {
                            imprint_col2im(
                                $0, dColumns + offset * rowLength, group * inputChannels, inputChannels, first, count,
                                dx + image * context.input.shape.count)
                        }
                    }
                }
            }
        }
    }

    /// Packs Wᵀ into panels; returns nil if `rows` rows of dY are too few for packing to pay off.
    private func transposedPanels(rows: Int) -> GEMM.Panels? {
        guard Self.fitsPanels(layer) && rows >= Self.rowsForPanels else { return nil }
        let copy = context.scratch.assumingMemoryBound(to: Float.self)
        context.worker.forEachChunk(GEMM.Panels.count(columns: rowLength)) { panel in
            let range = GEMM.Panels.range(panel, columns: rowLength)
            _ = GEMM.Panel(
                copying: range, of: columns(context.parameters[0], of: 0).transpose, inner: outputChannels,
                to: copy + range.lowerBound * outputChannels)
        }
        return GEMM.Panels(values: copy, inner: outputChannels, columns: rowLength)
    }

    /// Packs Wᵀ in bfloat16 at the start of the scratch memory; returns nil if the gradient of the input is computed in float32.
    private func packedTransposeInBFloat16() -> BFloat16Product? {
        let product = BFloat16Product(transposing: layer, over: context.input.shape)
        guard usesBFloat16 && product.isPossible else { return nil }
        product.pack(context.parameters[0], into: context.scratch, worker: context.worker)
        return product
    }
}
