internal import ImprintNetwork

extension LogisticRegression.Head {
    /// Returns `RecipeDecision.Evidence.evidenceSpread`, averaged over photos.
    ///
    /// The evidence of a cell with the features m is (m − μ) · (w − w̄): its share of the logit of the predicted label (class activation
    /// mapping). w are the weights of the label, μ the mean of the features over all training photos, and w̄ the mean of the weights over
    /// all labels.
    ///
    /// Source: Zhou et al., "Learning deep features for discriminative localization", 2016.
    /// - Parameters:
    ///   - maps: The feature maps, [photos, cells, channels].
    ///   - cells: The number of cells of a photo.
    ///   - means: μ, [channels].
    func evidenceSpread(maps: [Float], cells: Int, means: [Float]) -> Double {
        let (channels, labels) = (means.count, bias.count)
        let photos = maps.count / (cells * channels)
        guard photos > 0 else { return 0 }
        let meanWeights = (0..<channels).map { channel in
            (0..<labels).reduce(0) { $0 + weights[channel * labels + $1] } / Float(labels)
        }
        var total: Double = 0
        for photo in 0..<photos {
            // [cells, labels]: the evidence for every label.
            var evidence = [Float](repeating: 0, count: cells * labels)
            for cell in 0..<cells {
                let start = (photo * cells + cell) * channels
                for channel in 0..<channels {
                    let value = maps[start + channel] - means[channel]
                    for label in 0..<labels {
                        evidence[cell * labels + label] +=
                            value * (weights[channel * labels + label] - meanWeights[channel])
                    }
                }
            }
            let sums = (0..<labels).map { label in
                (0..<cells).reduce(0) { $0 + evidence[$1 * labels + label] } / Float(cells) + bias[label]
            }
            let predicted = sums.indices.max { sums[$0] < sums[$1] } ?? 0
            let values = (0..<cells).map { Double(evidence[$0 * labels + predicted]) }
            let mean = values.reduce(0, +) / Double(cells)
            let variance = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(cells)
            total += mean / max(variance.squareRoot(), 1e-9)
        }
        return total / Double(photos)
    }
}

extension ClassifierConfiguration.StartingPoint.Part {
    /// The part before the final global average, which computes the last feature map; nil if there is no such average.
    func beforePooling() throws -> Self? {
        guard let network = try network.beforeGlobalAverage() else { return nil }
        let parameters = try Parameters(ParameterLayout(network))
        parameters.load(from: self.parameters)
        return Self(network: network, parameters: parameters)
    }
}
