internal import CImprintKernels

/// Nearest-neighbour upsampling.
///
/// y[n, i, j, c] = x[n, ⌊i / factor.height⌋, ⌊j / factor.width⌋, c]
///
/// Input: [batch, height, width, channels]. Output: [batch, height · factor.height, width · factor.width, channels].
///
/// Backward: the gradient of a pixel is the sum over its copies.
public struct UpsampleNearest: Layer {
    public static let kind = "upsampleNearest"
    /// The number of copies of each row and column.
    public let factor: Size2D

    /// Creates the layer.
    public init(factor: Size2D) { self.factor = factor }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let input = try onlyInput("UpsampleNearest", inputs)
        let limit = 1 << 15
        let isValid = (1...limit).contains(factor.height) && (1...limit).contains(factor.width)
        try check("UpsampleNearest", "factor", factor, isValid, "at least 1x1 and at most \(limit)x\(limit)")
        return TensorShape(
            height: input.height * factor.height, width: input.width * factor.width, channels: input.channels)
    }

    public var backwardReads: BackwardReads { [] }

    public func forward(_ context: LayerContext, batch: Int) {
        forEachLine(context, batch) { from, to in
            let (x, y) = (context.input.values + from, context.output.values + to)
            let (channels, width) = (context.input.shape.channels, context.output.shape.width)
            for column in 0..<context.input.shape.width {
                imprint_broadcast_row(
                    x + column * channels, y + column * factor.width * channels, factor.width, channels)
            }
            for copy in 1..<max(factor.height, 1) {
                (y + copy * width * channels).update(from: y, count: width * channels)
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        forEachLine(context, batch) { from, to in
            let (dx, dy) = (dx + from, context.outputGradient + to)
            let (channels, width) = (context.input.shape.channels, context.input.shape.width)
            let step = factor.width * channels
            imprint_copy_columns(dy, step, dx, channels, width, channels)
            for copy in 1..<(factor.height * factor.width) {
                let (row, column) = copy.quotientAndRemainder(dividingBy: factor.width)
                imprint_add_columns(
                    dy + row * width * step + column * channels, step, dx, channels, width, channels)
            }
        }
    }

    /// Calls `body` with the offsets of each row of x and of its first copy in y.
    private func forEachLine(_ context: LayerContext, _ batch: Int, _ body: (_ from: Int, _ to: Int) -> Void) {
        let (from, to) = (context.input.shape, context.output.shape)
        let lines = batch * from.height
        let width = to.width * to.channels * factor.height
        forEachRows(lines, width, context.worker) { lines in
            for line in lines { body(line * from.width * from.channels, line * width) }
        }
    }
}
