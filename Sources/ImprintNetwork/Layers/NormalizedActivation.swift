internal import CImprintKernels
internal import ImprintCore

/// Batch normalization fused with the addition of a shortcut, an activation and 2x2 max pooling.
///
/// z = pool(clamp(scale · (x − mean) / √(variance + ε) + shift + shortcut))
///
/// The shortcut, the activation and the pooling are each optional; a shortcut cannot be combined with pooling. A plan replaces the separate layers
/// of the network by this kernel, which reads x once, writes z once and stores no values in between. The backward pass recomputes from x
/// which values the activation passes (with a shortcut, it reads them from z). With g the gradient that the activation passes, dscale,
/// dshift and dx are the same as in `BatchNormalization` for dy = g, and the shortcut's gradient is g.
struct NormalizedActivation: LayerKernel {
    private let normalization: BatchNormalization
    private let hasShortcut: Bool
    private let activation: ClampActivation
    /// Whether 2x2 max pooling follows.
    private let isPooled: Bool

    init(
        _ normalization: BatchNormalization, hasShortcut: Bool = false, activation: ClampActivation = .none,
        isPooled: Bool = false
    ) {
        precondition(!(hasShortcut && isPooled), "a shortcut cannot be combined with pooling")
        self.normalization = normalization
        self.hasShortcut = hasShortcut
        self.activation = activation
        self.isPooled = isPooled
    }

    var backwardReads: BackwardReads { readsOutput ? [.inputs, .output] : .inputs }
    var inPlace: InPlace { .never }
    var gradientMayReplaceInput: Bool { true }
    var readsMoments: Bool { !normalization.usesRunningStatistics }
    private var readsOutput: Bool { hasShortcut && activation != .none }

    func multiplications(for inputs: [TensorShape]) -> Int { 0 }

    func memory(_ request: MemoryRequest) -> LayerMemory {
        let channels = request.inputs[0].channels
        return LayerMemory(
            saved: Coefficients.byteCount(channels) + (isPooled ? request.batch * request.output.count : 0),
            scratch: max(
                ChannelReduction.scratchByteCount(channels: 2 * channels),
                Moments.byteCount(
                    channels: channels,
                    blocks: RowBlocks.maximumCount(
                        batch: request.batch, rowsPerImage: request.inputs[0].pixels,
                        blockRows: Self.blockRows(channels)))))
    }

    /// The number of rows per block, small enough for the cache, if the producer of x does not record moments.
    private static func blockRows(_ channels: Int) -> Int { max(32, (1 << 14) / channels) }

    private func usesBatch(_ context: LayerContext) -> Bool {
        context.training && !context.frozen && !normalization.usesRunningStatistics
    }

    func forward(_ context: LayerContext, batch: Int) {
        let rows = batch * context.input.shape.pixels
        let moments = usesBatch(context) ? context.inputMoments ?? record(context) : nil
        if let moments { context.allGather(moments) }
        updateCoefficients(context, moments, rows: context.part.total * context.input.shape.pixels)

        let channels = context.input.shape.channels
        var terms = terms(context)
        if isPooled {
            let choice = choice(context)
            forEachLine(context, batch) { line in
                imprint_normalization_forward_pooled(
                    &terms, context.input.values + line.input, context.input.shape.width,
                    context.output.values + line.output, choice + line.output)
            }
        } else {
            forEachRows(rows, channels, context.worker) { range in
                let start = range.lowerBound * channels
                imprint_normalization_forward(
                    &terms, context.input.values + start, hasShortcut ? context.inputs[1].values + start : nil,
                    context.output.values + start, range.count)
            }
        }
    }

    /// Computes the moments of x in a separate pass.
    private func record(_ context: LayerContext) -> Moments {
        let channels = context.input.shape.channels
        let blocks = RowBlocks(
            context.part, rowsPerImage: context.input.shape.pixels, blockRows: Self.blockRows(channels))
        let moments = Moments(context.scratch, channels: channels, blocks: blocks.total)
        if context.worker.index == 0 { moments.begin(blocks: blocks.total) }
        context.worker.forEachChunk(blocks.count) { block in
            let rows = blocks[block]
            moments.record(
                context.input.values + rows.lowerBound * channels, rows: rows.count, block: blocks.first + block)
        }
        return moments
    }

    /// Computes factor and offset from the batch statistics, which also update the running statistics, or from the running statistics.
    private func updateCoefficients(_ context: LayerContext, _ moments: Moments?, rows: Int) {
        let channels = context.input.shape.channels
        let row = Coefficients(context)
        let (scale, shift) = (context.parameters[0], context.parameters[1])
        let (runningMean, runningVariance) = (context.parameters[2], context.parameters[3])
        let momentum = normalization.momentum
        let unbiased = Float(rows) / Float(max(rows - 1, 1))
        let parts = (channels + 63) / 64
        context.worker.forEachChunk(parts) { part in
            let part = chunkRange(part, of: parts, total: channels)
            moments?.merge(part, mean: row.mean, variance: row.inverse)
            for channel in part {
                if moments != nil {
                    let (mean, variance) = (row.mean[channel], row.inverse[channel])
                    runningMean[channel] += momentum * (mean - runningMean[channel])
                    runningVariance[channel] += momentum * (variance * unbiased - runningVariance[channel])
                } else {
                    row.mean[channel] = runningMean[channel]
                    row.inverse[channel] = runningVariance[channel]
                }
                row.inverse[channel] = 1 / (row.inverse[channel] + normalization.epsilon).squareRoot()
                row.factor[channel] = scale[channel] * row.inverse[channel]
                row.offset[channel] = shift[channel] - row.mean[channel] * row.factor[channel]
            }
        }
    }

    func backward(_ context: LayerContext, batch: Int) {
        let rows = batch * context.input.shape.pixels
        if usesBatch(context) || context.parameterGradients.contains(where: { $0 != nil }) {
            combine(context, sums(context), rows: context.part.total * context.input.shape.pixels)
        } else {
            combine(context, nil, rows: rows)
        }

        let channels = context.input.shape.channels
        let (x, dx, dz) = (context.input.values, context.input.gradient, context.outputGradient)
        let dShortcut = hasShortcut ? context.inputs[1].gradient : nil
        var terms = terms(context)
        if isPooled {
            guard let dx else { return }
            let choice = choice(context)
            let shape = context.input.shape
            forEachLine(context, batch) { line in
                imprint_normalization_backward_pooled(
                    &terms, x + line.input, shape.width, choice + line.output, dz + line.output, dx + line.input)
                if line.isLast && shape.height % 2 != 0 {
                    let rest = line.input + 2 * shape.width * channels
                    imprint_normalization_backward_unpooled(&terms, x + rest, dx + rest, shape.width)
                }
            }
        } else if dx != nil || dShortcut != nil {
            let z = readsOutput ? context.output.values : nil
            forEachRows(rows, channels, context.worker) { range in
                let start = range.lowerBound * channels
                imprint_normalization_backward(
                    &terms, x + start, z.map { $0 + start }, dz + start, dx.map { $0 + start },
                    dShortcut.map { $0 + start }, range.count)
            }
        }
    }

    /// Computes Σ g for each channel, followed by Σ g · (x − mean) for each channel.
    private func sums(_ context: LayerContext) -> UnsafePointer<Double> {
        let shape = context.input.shape
        let (x, dz) = (context.input.values, context.outputGradient)
        var terms = terms(context)
        let reduction = ChannelReduction(
            channels: 2 * shape.channels, rowsPerImage: isPooled ? context.output.shape.height : shape.pixels)
        return reduction.run(context) { range, sums in
            sums.update(repeating: 0, count: 2 * shape.channels)
            if isPooled {
                for line in range {
                    let line = Line(line, context)
                    imprint_normalization_sums_pooled(
                        &terms, x + line.input, shape.width, choice(context) + line.output, dz + line.output, sums)
                }
            } else {
                let start = range.lowerBound * shape.channels
                imprint_normalization_sums(
                    &terms, x + start, readsOutput ? context.output.values + start : nil, dz + start, sums,
                    range.count)
            }
        }
    }

    /// Computes the gradients of the parameters and the coefficients of dx = a·g + b·x + k.
    private func combine(_ context: LayerContext, _ sums: UnsafePointer<Double>?, rows: Int) {
        let channels = context.input.shape.channels
        let row = Coefficients(context)
        let (dScale, dShift) = (context.parameterGradients[0], context.parameterGradients[1])
        let throughStatistics = usesBatch(context)
        context.worker.onFirstThread {
            for channel in 0..<channels {
                let inverse = row.inverse[channel]
                let (sum, product) = sums.map { ($0[channel], $0[channels + channel]) } ?? (0, 0)
                dScale?[channel] = Float(product) * inverse
                dShift?[channel] = Float(sum)
                // a = scale · inverse, which is `factor`.
                let a = row.factor[channel]
                let slope = throughStatistics ? Float(product / Double(rows)) * inverse * inverse : 0
                row.b[channel] = -a * slope
                row.k[channel] =
                    throughStatistics ? a * (slope * row.mean[channel] - Float(sum / Double(rows))) : 0
            }
        }
    }

    private func terms(_ context: LayerContext) -> imprint_normalization {
        let row = Coefficients(context)
        return imprint_normalization(
            mean: row.mean, factor: row.factor, offset: row.offset, a: row.factor, b: row.b, k: row.k,
            floor: activation.floor, ceiling: activation.ceiling,
            channels: context.input.shape.channels)
    }

    /// The index of the maximum in its 2x2 window, for each element of a pooled output.
    private func choice(_ context: LayerContext) -> UnsafeMutablePointer<UInt8> {
        (context.saved + Coefficients.byteCount(context.input.shape.channels)).assumingMemoryBound(to: UInt8.self)
    }
}

/// Coefficients per channel, which the forward pass saves for the backward pass.
private struct Coefficients {
    let mean, inverse, factor, offset, b, k: UnsafeMutablePointer<Float>

    init(_ context: LayerContext) {
        let channels = context.input.shape.channels
        let base = context.saved.assumingMemoryBound(to: Float.self)
        (mean, inverse, factor) = (base, base + channels, base + 2 * channels)
        (offset, b, k) = (base + 3 * channels, base + 4 * channels, base + 5 * channels)
    }

    static func byteCount(_ channels: Int) -> Int { 6 * channels * MemoryLayout<Float>.stride }
}

/// The offsets of a row of a pooled output and of the two rows of x that it pools.
private struct Line {
    let input: Int
    let output: Int
    /// Whether it is the last row of its image.
    let isLast: Bool

    init(_ line: Int, _ context: LayerContext) {
        let (from, to) = (context.input.shape, context.output.shape)
        let (image, y) = line.quotientAndRemainder(dividingBy: to.height)
        input = image * from.count + 2 * y * from.width * from.channels
        output = line * to.width * to.channels
        isLast = y == to.height - 1
    }
}

/// Runs `body` over the rows of a pooled output, shared among threads.
private func forEachLine(_ context: LayerContext, _ batch: Int, _ body: (Line) -> Void) {
    let lines = batch * context.output.shape.height
    forEachRows(lines, 2 * context.input.shape.width * context.input.shape.channels, context.worker) { range in
        for line in range { body(Line(line, context)) }
    }
}
