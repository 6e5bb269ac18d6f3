#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The loss of a network that says for each place of a patch whether a mark is there.
///
/// With m the logits of a mark over the C places of a patch, s = log Σ exp m − ln 2, y = 1 where the patch shows the mark, near the places
/// within 0.72 places of its centre, far those beyond 1.6 places, and softplus(x) = log(1 + eˣ):
///
/// softplus(s) − y·s + y · (½ · mean over near of softplus(−m) + ½ · softplus(log Σ_far exp m) + mean over far of softplus(m)),
///
/// summed over marks and averaged over the batch. The first term asks whether the mark is somewhere (as a maximum would, but smooth), the
/// others if it is.
package struct HeatMapLoss: Sendable {
    /// What a patch shows.
    package struct Target: Sendable, Hashable {
        /// Which mark.
        package var mark: Int
        /// Where its centre is, counted in places from that of the first.
        package var row: Float
        package var column: Float

        /// Makes a target.
        package init(mark: Int, row: Float, column: Float) {
            (self.mark, self.row, self.column) = (mark, row, column)
        }
    }

    private static let near: Float = 0.72
    private static let far: Float = 1.6

    /// The shape of the logits of one patch, [rows, columns, marks].
    package let shape: TensorShape

    /// Makes the loss for logits of a shape.
    package init(_ shape: TensorShape) { self.shape = shape }

    /// Computes the mean loss of a batch and its gradient.
    /// - Parameters:
    ///   - logits: [N, rows, columns, marks].
    ///   - targets: What each of the N patches shows; nil if it shows no mark.
    ///   - gradient: As `logits`, overwritten.
    /// - Returns: The loss, and how many patches are on the right side: s > 0 for the mark, and for no mark if there is none.
    package func callAsFunction(
        logits: UnsafeMutableBufferPointer<Float>, targets: [Target?], gradient: UnsafeMutableBufferPointer<Float>
    ) -> (loss: Float, correct: Int) {
        precondition(
            logits.count == targets.count * shape.count, "\(logits.count) logits are not [\(targets.count), \(shape)]")
        precondition(gradient.count == logits.count, "the gradient has another size than the logits")
        var loss: Double = 0
        var correct = 0
        for (patch, target) in targets.enumerated() {
            var isCorrect = true
            for mark in 0..<shape.channels {
                let own = target.flatMap { $0.mark == mark ? $0 : nil }
                let map = Map(shape: shape, start: patch * shape.count + mark)
                let (part, score) = add(map, logits, own, gradient, scale: 1 / Float(targets.count))
                loss += Double(part)
                isCorrect = isCorrect && (score > 0) == (own != nil)
            }
            if isCorrect { correct += 1 }
        }
        return (Float(loss / Double(max(targets.count, 1))), correct)
    }

    /// The places of one map in the buffers.
    private struct Map {
        let shape: TensorShape
        let start: Int
        var count: Int { shape.pixels }
        func index(_ place: Int) -> Int { start + place * shape.channels }
    }

    private func add(
        _ map: Map, _ logits: UnsafeMutableBufferPointer<Float>, _ target: Target?,
        _ gradient: UnsafeMutableBufferPointer<Float>, scale: Float
    ) -> (loss: Float, score: Float) {
        let all = Array(0..<map.count)
        let whole = logSumExp(all.lazy.map { logits[map.index($0)] })
        let score = whole - logf(2)
        let share = sigmoid(score) - (target == nil ? 0 : 1)
        for place in all { gradient[map.index(place)] = scale * share * expf(logits[map.index(place)] - whole) }
        var loss = softplus(score) - (target == nil ? 0 : score)
        guard let target else { return (loss, score) }

        let distances = all.map { place in
            hypotf(Float(place / shape.width) - target.row, Float(place % shape.width) - target.column)
        }
        let near = all.filter { distances[$0] <= Self.near }
        let far = all.filter { distances[$0] > Self.far }
        for place in near {
            let logit = logits[map.index(place)]
            let weight = 0.5 / Float(near.count)
            loss += weight * softplus(-logit)
            gradient[map.index(place)] -= scale * weight * sigmoid(-logit)
        }
        guard !far.isEmpty else { return (loss, score) }
        let beyond = logSumExp(far.lazy.map { logits[map.index($0)] })
        loss += 0.5 * softplus(beyond)
        for place in far {
            let logit = logits[map.index(place)]
            let weight = 1 / Float(far.count)
            loss += weight * softplus(logit)
            gradient[map.index(place)] +=
                scale * (0.5 * sigmoid(beyond) * expf(logit - beyond) + weight * sigmoid(logit))
        }
        return (loss, score)
    }
}

private func logSumExp(_ values: some Sequence<Float>) -> Float {
    let greatest = values.max() ?? 0
    return greatest + logf(values.reduce(0) { $0 + expf($1 - greatest) })
}

private func sigmoid(_ x: Float) -> Float { x >= 0 ? 1 / (1 + expf(-x)) : expf(x) / (1 + expf(x)) }

private func softplus(_ x: Float) -> Float { max(x, 0) + log1pf(expf(-abs(x))) }
