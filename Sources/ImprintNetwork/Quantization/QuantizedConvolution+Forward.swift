internal import CImprintKernels
internal import ImprintCore

extension QuantizedConvolution {
    /// Some rows of the output of an image.
    private struct Block {
        let image: Int
        let rows: Range<Int>
        /// The input of the first window, from which windows follow with the steps of the padded image.
        let x: UnsafePointer<UInt8>
        /// The output of the rows.
        var target: imprint_int8_output
    }

    /// The smallest number of windows per block, several tiles of the kernel.
    private static let fewestWindows = 48
    /// The smallest average number of windows per block if more blocks divide the work evenly among the threads.
    private static let minimumSharedWindows = 24
    /// The number of windows per block with a smooth activation, whose float32 sums stay in cache.
    private static let curveWindows = 96

    /// The number of output rows per block, whose input or output stays in cache.
    private func blockRows(_ image: PaddedImage) -> Int {
        let (height, width) = (Int(image.window.output_height), Int(image.window.output_width))
        if isDepthwise { return min(max((1 << 15) / (width * channels), 4), height) }
        if layer.curve != nil { return min(max(Self.curveWindows / width, 1), height) }
        let rows = (1 << 16) / (Int(image.window.stride_height) * image.rowStep)
        return min(max(rows, (Self.fewestWindows + width - 1) / width), height)
    }

    /// The number of blocks of an image; a few more than necessary if the threads then have the same number of chunks.
    private func blockCount(_ image: PaddedImage, batch: Int, threads: Int) -> Int {
        let (height, width) = (Int(image.window.output_height), Int(image.window.output_width))
        let rows = blockRows(image)
        let fewest = (height + rows - 1) / rows
        guard fewest * batch < 4 * threads else { return fewest }
        let most = isDepthwise ? height / 2 : height * width / Self.minimumSharedWindows
        return (fewest...max(fewest, min(most, height))).first {
            $0 * batch * partCount(blocks: $0 * batch, threads: threads) % threads == 0
        } ?? fewest
    }

    /// The number of parts of the output channels that threads share, if there are few blocks.
    private func partCount(blocks: Int, threads: Int) -> Int {
        guard threads > 1, layer.curve == nil, !isDepthwise else { return 1 }
        return min((4 * threads + blocks - 1) / blocks, panelCount)
    }

    /// The size of the copied input of a block.
    private func copyByteCount(_ image: PaddedImage) -> Int {
        guard image.isCopy else { return 0 }
        let rows =
            (blockRows(image) - 1) * Int(image.window.stride_height)
            + (convolution.kernelSize.height - 1) * convolution.dilation.height + 1
        return roundedUp(rows * image.rowStep, to: 64)
    }

    /// The number of float32 sums of a block that a smooth activation follows before they become uint8.
    private func sumCount(_ image: PaddedImage) -> Int {
        layer.curve == nil || output == nil ? 0 : blockRows(image) * Int(image.window.output_width) * channels
    }

    /// The size of a worker's scratch memory: the float32 sums and the copied input of a block.
    func scratchByteCount(_ image: PaddedImage) -> Int {
        roundedUp(sumCount(image) * MemoryLayout<Float>.stride, to: 64) + copyByteCount(image)
    }

    func forward(_ context: LayerContext, batch: Int) {
        let image = paddedImage(over: context.input.shape)
        let constants = constants(context, image)
        let height = context.output.shape.height
        let threads = context.worker.threadPool.count
        let blocks = blockCount(image, batch: batch, threads: threads)
        let parts = partCount(blocks: batch * blocks, threads: threads)
        context.worker.forEachChunk(batch * blocks * parts) { index in
            let (block, part) = index.quotientAndRemainder(dividingBy: parts)
            let (number, blockOfImage) = block.quotientAndRemainder(dividingBy: blocks)
            let rows = chunkRange(blockOfImage, of: blocks, total: height)
            let own = self.block(rows, of: number, image, constants, context)
            if isDepthwise {
                convolveChannels(own, image, context)
            } else {
                multiply(own, chunkRange(part, of: parts, total: panelCount), image, constants, context)
            }
        }
    }

    /// Returns a block, after its input has been copied if necessary.
    private func block(
        _ rows: Range<Int>, of number: Int, _ image: PaddedImage, _ constants: Constants, _ context: LayerContext
    ) -> Block {
        let scratch = context.scratch + context.worker.index * scratchByteCount(image)
        let (input, output) = (context.input.shape, context.output.shape)
        let x = context.input.bytes + number * input.count
        let firstRow = rows.lowerBound * Int(image.window.stride_height)
        var start = x + firstRow * image.rowStep
        if image.isCopy {
            let sums = roundedUp(sumCount(image) * MemoryLayout<Float>.stride, to: 64)
            start = (scratch + sums).assumingMemoryBound(to: UInt8.self)
            var padding = imprint_uint8_padding(
                height: input.height, width: input.width, channels: input.channels, padded_channels: image.channels,
                top: Int(image.window.padding_top), left: Int(image.window.padding_left),
                right: Int(image.window.padding_right), zero_points: constants.zeroPoints)
            let count =
                (rows.count - 1) * Int(image.window.stride_height)
                + (convolution.kernelSize.height - 1) * convolution.dilation.height + 1
            imprint_pad_uint8(x, &padding, firstRow, count, start)
        }
        let offset = number * output.count + rows.lowerBound * output.width * channels
        let target = imprint_int8_output(
            factors: constants.factors, bias: constants.bias, floor: constants.floor, ceiling: constants.ceiling,
            shortcut: shortcut == nil ? nil : UnsafePointer(context.inputs[1].bytes + offset),
            shortcut_factors: constants.shortcutFactors,
            bytes: sumsQuantization == nil ? nil : context.output.bytes + offset,
            floats: sumsQuantization != nil
                ? nil
                : self.output == nil
                    ? context.output.values + offset : scratch.assumingMemoryBound(to: Float.self))
        return Block(image: number, rows: rows, x: start, target: target)
    }

    /// Computes the output channels of some panels.
    private func multiply(
        _ block: Block, _ panels: Range<Int>, _ image: PaddedImage, _ constants: Constants, _ context: LayerContext
    ) {
        let window = image.window
        var windows = imprint_int8_windows(
            x: block.x, width: Int(window.output_width), row_step: Int(window.stride_height) * image.rowStep,
            column_step: Int(window.stride_width) * image.channels, taps: constants.taps, tap_count: tapCount,
            tap_bytes: (convolution.dilation.width == 1 ? convolution.kernelSize.width : 1) * image.channels)
        let packed = UnsafePointer(context.packedWeights.assumingMemoryBound(to: Int8.self))
        let count = block.rows.count * Int(window.output_width)
        var target = block.target
        for panel in panels {
            imprint_int8_product(
                &windows, 0, count, packed + panel * Self.panelColumns * inner(image), panel * Self.panelColumns,
                channels, &target)
        }
        guard let curve = layer.curve, let sums = target.floats else { return }
        curve.apply(to: sums, count: count * channels)
        guard let values = outputValues else { return }
        let first = block.image * context.output.shape.pixels + block.rows.lowerBound * Int(window.output_width)
        imprint_quantize(
            sums, values.inverseScales, values.zeroPoints, count, channels, context.output.bytes + first * channels)
    }

    private func convolveChannels(_ block: Block, _ image: PaddedImage, _ context: LayerContext) {
        let weights = UnsafePointer(context.packedWeights.assumingMemoryBound(to: Int8.self))
        var (depthwise, target) = (depthwise(image, x: block.x, weights: weights), block.target)
        imprint_int8_depthwise_forward(&depthwise, 0, block.rows.count, &target)
    }

    func depthwise(
        _ image: PaddedImage, x: UnsafePointer<UInt8>?, weights: UnsafePointer<Int8>?
    ) -> imprint_int8_depthwise {
        let window = image.window
        return imprint_int8_depthwise(
            x: x, weights: weights, channels: channels, output_width: window.output_width,
            kernel_height: window.kernel_height, kernel_width: window.kernel_width,
            stride_height: window.stride_height, stride_width: window.stride_width,
            dilation_height: window.dilation_height, dilation_width: window.dilation_width,
            row_step: Int(window.stride_height) * image.rowStep, column_step: Int(window.stride_width) * image.channels,
            tap_row_step: Int(window.dilation_height) * image.rowStep,
            tap_column_step: Int(window.dilation_width) * image.channels, is_uint8: sumsQuantization == nil ? 0 : 1)
    }
}
