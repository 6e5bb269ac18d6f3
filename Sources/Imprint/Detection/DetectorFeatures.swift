internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Computes the features at the positions of a photo that score highest, for logo detectors.
///
/// One thread at a time uses it.
final class DetectorFeatures {
    /// Of how many places features are kept: those that a change of the head may bring to the top.
    static let places = 24

    private let scanner: PyramidScanner
    private let detector: DetectorHead
    /// The head: [channels, marks], and [marks].
    private let weight: [Float]
    private let bias: [Float]

    private struct Place {
        var score: Float
        var features: [Float]
    }

    init(_ weights: ModelFile, _ detector: DetectorHead) throws {
        guard let parts = try weights.network.splitAtHead(), let head = parts.head.nodes.first?.name,
            let weight = weights.parameters["\(head).weight"]
        else { throw ImprintError.noHead(network: weights.network.name) }
        let parameters = try Parameters(ParameterLayout(parts.features))
        parameters.load(from: weights.parameters)
        self.weight = weight
        self.detector = detector
        bias = weights.parameters["\(head).bias"] ?? detector.marks.map { _ in 0 }
        scanner = PyramidScanner(
            parts.features, parameters: parameters, preprocessing: weights.preprocessing, detector: detector)
    }

    /// The features of the likeliest places, the likeliest first, [places, channels]; the last one again where there are fewer.
    func features(of picture: RasterImage) throws -> [Float] {
        var found: [Place] = []
        try scanner.forEachLevel(of: picture) { map, _ in
            let scores = self.scores(map)
            for row in 0..<map.shape.height {
                for column in 0..<map.shape.width where isPeak(scores, map.shape, row, column) {
                    let start = (row * map.shape.width + column) * map.shape.channels
                    found.append(
                        Place(
                            score: scores[row * map.shape.width + column],
                            features: Array(map.values[start..<(start + map.shape.channels)])))
                }
            }
        }
        found.sort { $0.score > $1.score }
        guard let last = found.prefix(Self.places).last else {
            preconditionFailure("every map has a highest place")
        }
        let kept = found.prefix(Self.places).map(\.features)
        return Array((kept + (kept.count..<Self.places).map { _ in last.features }).joined())
    }

    /// The highest logit of each mark, of features [places, channels].
    func highest(_ features: [Float]) -> [Float] {
        let channels = weight.count / bias.count
        var highest = [Float](repeating: -.infinity, count: bias.count)
        for place in 0..<(features.count / channels) {
            let logits = features.withUnsafeBufferPointer { self.logits($0, at: place * channels) }
            for mark in highest.indices { highest[mark] = max(highest[mark], logits[mark]) }
        }
        return highest
    }

    /// The logits of the marks, of the features of one place.
    private func logits(_ values: UnsafeBufferPointer<Float>, at start: Int) -> [Float] {
        var logits = bias
        for channel in 0..<(weight.count / bias.count) {
            let value = values[start + channel]
            for mark in logits.indices { logits[mark] += value * weight[channel * logits.count + mark] }
        }
        return logits
    }

    /// For each place of a map how likely it shows the likeliest mark, [rows, columns].
    private func scores(_ map: PyramidScanner.Map) -> [Float] {
        (0..<map.shape.pixels).map { place in
            let logits = self.logits(UnsafeBufferPointer(map.values), at: place * map.shape.channels)
            return zip(detector.marks, logits).map { $0.slope * $1 + $0.offset }.max() ?? 0
        }
    }

    /// Whether no neighbour is higher.
    private func isPeak(_ scores: [Float], _ shape: TensorShape, _ row: Int, _ column: Int) -> Bool {
        [(-1, 0), (1, 0), (0, -1), (0, 1)].allSatisfy { dy, dx in
            let (y, x) = (row + dy, column + dx)
            guard (0..<shape.height).contains(y), (0..<shape.width).contains(x) else { return true }
            return scores[y * shape.width + x] <= scores[row * shape.width + column]
        }
    }
}
