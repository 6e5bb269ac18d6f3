internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// A feature extractor for logo detectors: it computes the features at the positions of an image with the highest scores.
///
/// It is not thread-safe.
final class DetectorFeatures {
    /// The number of positions per image.
    ///
    /// Personalization of the head may change which position scores highest, so features of several candidates are kept.
    static let positions = 24

    private let scanner: PyramidScanner
    private let detector: DetectorHead
    private let networkName: String
    /// The weights of the head, [channels, logos].
    private let weight: [Float]
    /// The biases of the head, [logos].
    private let bias: [Float]

    private struct Candidate {
        var score: Float
        var features: [Float]
    }

    /// - Parameter shapes: The number of image shapes whose plans are cached.
    init(_ model: ModelFile, _ detector: DetectorHead, shapes: Int) throws {
        guard let parts = try model.network.splitAtHead(), let head = parts.head.nodes.first?.name,
            let weight = model.parameters["\(head).weight"]
        else { throw ImprintError.noHead(network: model.network.name) }
        let parameters = try Parameters(ParameterLayout(parts.features))
        parameters.load(from: model.parameters)
        self.weight = weight
        self.detector = detector
        networkName = model.network.name
        bias = model.parameters["\(head).bias"] ?? detector.logos.map { _ in 0 }
        scanner = PyramidScanner(
            parts.features, parameters: parameters, preprocessing: model.preprocessing, detector: detector,
            shapes: shapes)
    }

    /// Computes the features at the local maxima with the highest scores, over all levels of the image pyramid.
    /// - Returns: The features by descending score, [positions, channels]; the last maximum is repeated if there are fewer than `positions`.
    /// - Throws: `ImprintError.nonFiniteOutput` if a score is not finite, `ImprintError.unsupportedImageSize` if the network does not accept a
    ///   pyramid level, `ImprintError.outOfMemory`.
    func features(of image: RasterImage) throws -> [Float] {
        var candidates: [Candidate] = []
        try scanner.forEachLevel(of: image) { map, _ throws(ImprintError) in
            let scores = self.scores(map)
            // Activations can overflow even though the parameters are finite.
            guard scores.allSatisfy(\.isFinite) else { throw .nonFiniteOutput(network: networkName) }
            for row in 0..<map.shape.height {
                for column in 0..<map.shape.width where isPeak(scores, map.shape, row, column) {
                    let start = (row * map.shape.width + column) * map.shape.channels
                    candidates.append(
                        Candidate(
                            score: scores[row * map.shape.width + column],
                            features: Array(map.values[start..<(start + map.shape.channels)])))
                }
            }
        }
        candidates.sort { $0.score > $1.score }
        guard let last = candidates.prefix(Self.positions).last else {
            preconditionFailure("every map has a maximum")
        }
        let kept = candidates.prefix(Self.positions).map(\.features)
        return Array((kept + (kept.count..<Self.positions).map { _ in last.features }).joined())
    }

    /// Returns the maximum logit of each logo over the positions of features, [positions, channels].
    func maximumLogits(_ features: [Float]) -> [Float] {
        let channels = weight.count / bias.count
        var maxima = [Float](repeating: -.infinity, count: bias.count)
        for position in 0..<(features.count / channels) {
            let logits = features.withUnsafeBufferPointer { self.logits($0, at: position * channels) }
            for logo in maxima.indices { maxima[logo] = max(maxima[logo], logits[logo]) }
        }
        return maxima
    }

    /// Computes the logits of the logos from the features that start at `start`.
    private func logits(_ values: UnsafeBufferPointer<Float>, at start: Int) -> [Float] {
        var logits = bias
        for channel in 0..<(weight.count / bias.count) {
            let value = values[start + channel]
            for logo in logits.indices { logits[logo] += value * weight[channel * logits.count + logo] }
        }
        return logits
    }

    /// Returns the highest calibrated logit at each position of a map, [rows, columns].
    private func scores(_ map: AnySizeNetwork.Map) -> [Float] {
        (0..<map.shape.pixels).map { position in
            let logits = self.logits(UnsafeBufferPointer(map.values), at: position * map.shape.channels)
            return zip(detector.logos, logits).map { $0.slope * $1 + $0.offset }.max() ?? 0
        }
    }

    /// Returns whether no neighbour of a position has a higher score.
    private func isPeak(_ scores: [Float], _ shape: TensorShape, _ row: Int, _ column: Int) -> Bool {
        [(-1, 0), (1, 0), (0, -1), (0, 1)].allSatisfy { dy, dx in
            let (y, x) = (row + dy, column + dx)
            guard (0..<shape.height).contains(y), (0..<shape.width).contains(x) else { return true }
            return scores[y * shape.width + x] <= scores[row * shape.width + column]
        }
    }
}
