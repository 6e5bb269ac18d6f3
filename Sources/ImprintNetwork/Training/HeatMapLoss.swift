#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The loss of a logo detector, whose output is a heat map of logits for each logo.
///
/// softplus(s) − y·s + y · (½ · mean over near of softplus(−m) + ½ · softplus(log Σ_far exp m) + mean over far of softplus(m)),
///
/// summed over logos and averaged over the batch. Here m are the logits of a logo over the cells of a patch, s = log Σ exp m − ln 2,
/// y = 1 if the patch shows the logo, otherwise 0, near are the cells within a distance of 0.72 cells of the logo's centre, far the cells
/// beyond 1.6 cells, and softplus(x) = log(1 + eˣ).
///
/// The first two terms are the binary cross-entropy of the presence of the logo, with s as a smooth maximum of the logits. The other terms
/// train its position.
package struct HeatMapLoss: Sendable {
    /// The logo that a patch shows.
    package struct Target: Sendable, Hashable {
        /// The index of the logo.
        package var logo: Int
        /// The row of its centre in cells, 0 at the centre of the first cell.
        package var row: Float
        /// The column of its centre in cells, 0 at the centre of the first cell.
        package var column: Float

        /// Creates a target.
        package init(logo: Int, row: Float, column: Float) {
            (self.logo, self.row, self.column) = (logo, row, column)
        }
    }

    private static let near: Float = 0.72
    private static let far: Float = 1.6

    /// The shape of the logits of one patch, [rows, columns, logos].
    package let shape: TensorShape

    /// Creates the loss for logits of a shape.
    package init(_ shape: TensorShape) { self.shape = shape }

    /// Computes the mean loss of a batch and its gradient.
    /// - Parameters:
    ///   - logits: [batch, rows, columns, logos].
    ///   - targets: The logo in each patch of the batch; nil without a logo.
    ///   - gradient: [batch, rows, columns, logos], overwritten.
    /// - Returns: The mean loss and the number of correct patches, for which s > 0 for exactly the logo that the patch shows.
    package func callAsFunction(
        logits: UnsafeMutableBufferPointer<Float>, targets: [Target?], gradient: UnsafeMutableBufferPointer<Float>
    ) -> (loss: Float, correct: Int) {
        precondition(
            logits.count == targets.count * shape.count,
            "there are \(logits.count) logits, expected [\(targets.count), \(shape)]")
        precondition(gradient.count == logits.count, "the gradient and the logits must have the same size")
        var loss: Double = 0
        var correct = 0
        for (patch, target) in targets.enumerated() {
            var isCorrect = true
            for logo in 0..<shape.channels {
                let match = target.flatMap { $0.logo == logo ? $0 : nil }
                let map = Map(shape: shape, start: patch * shape.count + logo)
                let (part, score) = add(map, logits, match, gradient, scale: 1 / Float(targets.count))
                loss += Double(part)
                isCorrect = isCorrect && (score > 0) == (match != nil)
            }
            if isCorrect { correct += 1 }
        }
        return (Float(loss / Double(max(targets.count, 1))), correct)
    }

    /// The heat map of one logo in one patch of a buffer.
    private struct Map {
        let shape: TensorShape
        let start: Int
        var count: Int { shape.pixels }
        func index(_ cell: Int) -> Int { start + cell * shape.channels }
    }

    /// Adds the gradient of one heat map, and returns its loss and s.
    private func add(
        _ map: Map, _ logits: UnsafeMutableBufferPointer<Float>, _ target: Target?,
        _ gradient: UnsafeMutableBufferPointer<Float>, scale: Float
    ) -> (loss: Float, score: Float) {
        let all = Array(0..<map.count)
        let whole = logSumExp(all.lazy.map { logits[map.index($0)] })
        let score = whole - logf(2)
        let share = sigmoid(score) - (target == nil ? 0 : 1)
        for cell in all { gradient[map.index(cell)] = scale * share * expf(logits[map.index(cell)] - whole) }
        var loss = softplus(score) - (target == nil ? 0 : score)
        guard let target else { return (loss, score) }

        let distances = all.map { cell in
            hypotf(Float(cell / shape.width) - target.row, Float(cell % shape.width) - target.column)
        }
        let near = all.filter { distances[$0] <= Self.near }
        let far = all.filter { distances[$0] > Self.far }
        for cell in near {
            let logit = logits[map.index(cell)]
            let weight = 0.5 / Float(near.count)
            loss += weight * softplus(-logit)
            gradient[map.index(cell)] -= scale * weight * sigmoid(-logit)
        }
        guard !far.isEmpty else { return (loss, score) }
        let beyond = logSumExp(far.lazy.map { logits[map.index($0)] })
        loss += 0.5 * softplus(beyond)
        for cell in far {
            let logit = logits[map.index(cell)]
            let weight = 1 / Float(far.count)
            loss += weight * softplus(logit)
            gradient[map.index(cell)] +=
                scale * (0.5 * sigmoid(beyond) * expf(logit - beyond) + weight * sigmoid(logit))
        }
        return (loss, score)
    }
}

private func logSumExp(_ values: some Sequence<Float>) -> Float {
    let maximum = values.max() ?? 0
    return maximum + logf(values.reduce(0) { $0 + expf($1 - maximum) })
}

private func sigmoid(_ x: Float) -> Float { x >= 0 ? 1 / (1 + expf(-x)) : expf(x) / (1 + expf(x)) }

private func softplus(_ x: Float) -> Float { max(x, 0) + log1pf(expf(-abs(x))) }
