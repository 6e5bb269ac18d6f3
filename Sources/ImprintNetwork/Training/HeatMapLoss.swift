#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The loss of a logo detector, whose output is a heat map of logits for each logo and, with box regression, the values of `BoxCode`.
///
/// loss = presence + y · (½ · near + ½ · farMaximum + far + ¼ · box), summed over logos and averaged over the batch, with
///
/// - presence = softplus(s) − y·s, the binary cross-entropy of whether the patch shows the logo,
/// - near = the mean of softplus(−m) over the near positions, which pulls the logits at the logo's centre up,
/// - farMaximum = softplus(log Σ exp m over the far positions), which pushes the largest far logit down,
/// - far = the mean of softplus(m) over the far positions, which pushes all far logits down,
/// - box = the mean over the near positions of Σ smoothL1(tᵢ − t*ᵢ), with the predicted values t and those of the true box t*; 0 if the box is
///   unknown. smoothL1(x) = x² / 2β if |x| < β and otherwise |x| − β / 2, with β = 0.1.
///
/// Here m are the logits of a logo over the positions of a patch, s = log Σ exp m − ln 2 is a smooth maximum of all logits, y is 1 if
/// the patch shows the logo and otherwise 0, and softplus(x) = log(1 + eˣ). Near positions lie within `nearDistance` of the centre of a
/// logo, far positions beyond `farDistance` of all of them. All terms exclude the positions of a crowd, except the near positions of a logo
/// that is not ignored. docs/explanation/detection.md describes the training.
package struct HeatMapLoss: Sendable {
    /// A logo that a patch shows.
    package struct Target: Sendable, Hashable {
        /// The index of the logo.
        package var logo: Int
        /// The row of its centre in positions, 0 at the first position.
        package var row: Float
        /// The column of its centre in positions, 0 at the first position.
        package var column: Float
        /// The bounding box; nil if it is unknown.
        package var box: BoxCode.Box?
        /// Whether the logo is too large, too small or too close to the edge for this patch.
        ///
        /// The near and far terms exclude its positions. If all objects of a logo are ignored, the loss skips the heat map of this
        /// logo.
        package var isIgnored: Bool
        /// Whether the box is around a crowd, in which the logo may be anywhere.
        ///
        /// The loss excludes the positions in and close to the box. Positions outside of it are background.
        package var isCrowd: Bool

        /// Creates a target.
        package init(
            logo: Int, row: Float, column: Float, box: BoxCode.Box? = nil, isIgnored: Bool = false,
            isCrowd: Bool = false
        ) {
            (self.logo, self.row, self.column, self.box, self.isIgnored) = (logo, row, column, box, isIgnored)
            self.isCrowd = isCrowd
        }
    }

    /// The largest distance of a near position from the logo's centre, in positions.
    ///
    /// It is a little more than √½, so every centre in the map has at least one near position.
    private static let nearDistance: Float = 0.72
    /// The distance from the logo's centre beyond which a position is far, in positions.
    ///
    /// A logo is about 2 to 4 positions wide, so it also covers positions between the two distances. Only the presence term includes these
    /// positions.
    private static let farDistance: Float = 1.6

    /// The weight of the box loss.
    private static let boxWeight: Float = 0.25
    /// The error at which the box loss changes from quadratic to linear.
    private static let boxBeta: Float = 0.1

    /// The shape of the output for one patch, [rows, columns, logos], or [rows, columns, logos + 4] with box regression.
    package let shape: TensorShape
    /// The number of logos.
    private let logos: Int
    /// The typical size of a logo in positions, for `BoxCode`; nil without box regression.
    private let boxSize: Float?

    /// Creates the loss for outputs of a shape.
    /// - Parameter boxSize: The typical size of a logo in positions if the last four channels describe boxes; nil without box regression.
    package init(_ shape: TensorShape, boxSize: Float? = nil) {
        (self.shape, self.boxSize) = (shape, boxSize)
        logos = shape.channels - (boxSize == nil ? 0 : BoxCode.count)
        precondition(logos > 0, "\(shape.channels) channels leave none for the logos")
    }

    /// Computes the mean loss of a batch and its gradient.
    /// - Parameters:
    ///   - logits: The output of the network, [batch, rows, columns, channels].
    ///   - targets: The logos in each patch of the batch.
    ///   - gradient: [batch, rows, columns, channels], overwritten.
    /// - Returns: The mean loss and the number of correct patches, for which s > 0 for exactly the logos that the patch shows.
    package func callAsFunction(
        logits: UnsafeMutableBufferPointer<Float>, targets: [[Target]], gradient: UnsafeMutableBufferPointer<Float>
    ) -> (loss: Float, correct: Int) {
        precondition(
            logits.count == targets.count * shape.count,
            "there are \(logits.count) logits, expected [\(targets.count), \(shape)]")
        precondition(gradient.count == logits.count, "the gradient and the logits must have the same size")
        var loss: Double = 0
        var correct = 0
        let scale = 1 / Float(targets.count)
        gradient.update(repeating: 0)
        for (patch, targets) in targets.enumerated() {
            var isCorrect = true
            for logo in 0..<logos {
                let matches = targets.filter { $0.logo == logo && !$0.isCrowd }
                // If all objects of a logo are ignored, the logo is neither present nor absent.
                guard matches.isEmpty || matches.contains(where: { !$0.isIgnored }) else { continue }
                let crowds = targets.filter { $0.logo == logo && $0.isCrowd }.compactMap(\.box)
                let positions = positions(outside: crowds, matches)
                guard !positions.isEmpty else { continue }
                let map = Map(shape: shape, start: patch * shape.count + logo)
                let (part, score) = add(map, positions, logits, matches, gradient, scale: scale)
                loss += Double(part)
                isCorrect = isCorrect && (score > 0) == !matches.isEmpty
            }
            if isCorrect { correct += 1 }
            for target in targets where !target.isIgnored && !target.isCrowd {
                guard let box = target.box else { continue }
                loss += Double(addBox(box, target, logits, gradient, start: patch * shape.count, scale: scale))
            }
        }
        return (Float(loss / Double(max(targets.count, 1))), correct)
    }

    /// The heat map of one logo in one patch of a buffer.
    private struct Map {
        let shape: TensorShape
        let start: Int
        func index(_ position: Int) -> Int { start + position * shape.channels }
    }

    /// Returns the positions that the loss includes: all outside of crowds, and the near positions of logos that are not ignored.
    private func positions(outside crowds: [BoxCode.Box], _ targets: [Target]) -> [Int] {
        let all = Array(0..<shape.pixels)
        guard !crowds.isEmpty else { return all }
        let distances = targets.filter { !$0.isIgnored }.map(distances)
        return all.filter { position in
            let (row, column) = (Float(position / shape.width), Float(position % shape.width))
            return distances.contains { $0[position] <= Self.nearDistance }
                || crowds.allSatisfy { box in
                    let dy = max(abs(row - box.row) - box.height / 2, 0)
                    let dx = max(abs(column - box.column) - box.width / 2, 0)
                    return hypotf(dx, dy) > Self.nearDistance
                }
        }
    }

    /// Adds the gradient of one heat map over the included positions, and returns its loss and s.
    private func add(
        _ map: Map, _ all: [Int], _ logits: UnsafeMutableBufferPointer<Float>, _ targets: [Target],
        _ gradient: UnsafeMutableBufferPointer<Float>, scale: Float
    ) -> (loss: Float, score: Float) {
        // presence
        let logSum = logSumExp(all.lazy.map { logits[map.index($0)] })
        let score = logSum - logf(2)
        let slope = sigmoid(score) - (targets.isEmpty ? 0 : 1)
        for position in all {
            gradient[map.index(position)] = scale * slope * expf(logits[map.index(position)] - logSum)
        }
        var loss = softplus(score) - (targets.isEmpty ? 0 : score)
        guard !targets.isEmpty else { return (loss, score) }

        let distances = targets.map { (isIgnored: $0.isIgnored, values: self.distances(from: $0)) }
        let near = all.filter { position in
            distances.contains { !$0.isIgnored && $0.values[position] <= Self.nearDistance }
        }
        let far = all.filter { position in distances.allSatisfy { $0.values[position] > Self.farDistance } }
        // near
        for position in near {
            let logit = logits[map.index(position)]
            let weight = 0.5 / Float(near.count)
            loss += weight * softplus(-logit)
            gradient[map.index(position)] -= scale * weight * sigmoid(-logit)
        }
        guard !far.isEmpty else { return (loss, score) }
        // farMaximum and far
        let farLogSum = logSumExp(far.lazy.map { logits[map.index($0)] })
        loss += 0.5 * softplus(farLogSum)
        for position in far {
            let logit = logits[map.index(position)]
            let weight = 1 / Float(far.count)
            loss += weight * softplus(logit)
            gradient[map.index(position)] +=
                scale * (0.5 * sigmoid(farLogSum) * expf(logit - farLogSum) + weight * sigmoid(logit))
        }
        return (loss, score)
    }

    /// Adds the gradient of the box loss of one patch, and returns the weighted loss.
    private func addBox(
        _ box: BoxCode.Box, _ target: Target, _ outputs: UnsafeMutableBufferPointer<Float>,
        _ gradient: UnsafeMutableBufferPointer<Float>, start: Int, scale: Float
    ) -> Float {
        guard let boxSize else { return 0 }
        let distances = distances(from: target)
        let near = distances.indices.filter { distances[$0] <= Self.nearDistance }
        let weight = Self.boxWeight / Float(max(near.count, 1))
        var loss: Float = 0
        for position in near {
            let truth = box.values(row: position / shape.width, column: position % shape.width, size: boxSize)
            for (index, value) in truth.enumerated() {
                let element = start + position * shape.channels + logos + index
                let error = outputs[element] - value
                let isSmall = abs(error) < Self.boxBeta
                loss += weight * (isSmall ? error * error / (2 * Self.boxBeta) : abs(error) - Self.boxBeta / 2)
                gradient[element] += scale * weight * (isSmall ? error / Self.boxBeta : error < 0 ? -1 : 1)
            }
        }
        return loss
    }

    /// Returns the distance of each position from the centre of a logo, in positions.
    private func distances(from target: Target) -> [Float] {
        (0..<shape.pixels).map { position in
            hypotf(Float(position / shape.width) - target.row, Float(position % shape.width) - target.column)
        }
    }
}

private func logSumExp(_ values: some Sequence<Float>) -> Float {
    let maximum = values.max() ?? 0
    return maximum + logf(values.reduce(0) { $0 + expf($1 - maximum) })
}

private func sigmoid(_ x: Float) -> Float { x >= 0 ? 1 / (1 + expf(-x)) : expf(x) / (1 + expf(x)) }

private func softplus(_ x: Float) -> Float { max(x, 0) + log1pf(expf(-abs(x))) }
