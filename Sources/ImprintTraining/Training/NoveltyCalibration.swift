internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

extension NoveltyRule {
    /// The minimum number of photos that a threshold is calibrated on: with fewer, a share such as 95 % is not measurable.
    static let minimumCount = 20

    /// Fits a rule to features of photos.
    ///
    /// The threshold is the smallest distance that accepts the given share of the validation photos. If there are fewer than 20 of them, it
    /// also counts the training photos, each compared with the mean of the other photos of its label (leave-one-out).
    /// - Parameters:
    ///   - training: The features of the training photos from which the means are computed, with the indices of their labels.
    ///   - validation: The features of validation photos.
    ///   - acceptance: The share of photos to accept, more than 0 and at most 1.
    /// - Returns: The rule, or nil if no label has a mean, or if there are fewer than 20 photos to calibrate the threshold on.
    static func fitted(
        training: [(label: Int, features: [Float])], validation: [[Float]], acceptance: Double = defaultAcceptance
    ) -> NoveltyRule? {
        var groups: [Int: (sum: [Double], count: Int)] = [:]
        for photo in training {
            var group = groups[photo.label] ?? (photo.features.map { _ in 0 }, 0)
            for (channel, value) in photo.features.enumerated() { group.sum[channel] += Double(value) }
            group.count += 1
            groups[photo.label] = group
        }
        let labels = groups.keys.sorted().filter { length(groups[$0]?.sum ?? []) > 0 }
        guard !labels.isEmpty else { return nil }
        let means = labels.flatMap { label in
            let sum = groups[label]?.sum ?? []
            let length = length(sum)
            return sum.map { Float($0 / length) }
        }
        // The threshold is set below: distances do not depend on it.
        let rule = NoveltyRule(labels: labels, means: means, threshold: 1, acceptance: acceptance, images: 1)
        var distances = validation.compactMap { rule.distances(of: $0).min() }
        if distances.count < minimumCount {
            distances += training.compactMap { photo in
                guard let index = labels.firstIndex(of: photo.label), let group = groups[photo.label] else {
                    return nil
                }
                var others = rule.distances(of: photo.features)
                others.remove(at: index)
                if group.count > 1 {
                    others.append(distance(photo.features, toMeanWithout: photo.features, of: group.sum))
                }
                return others.min()
            }
        }
        guard distances.count >= minimumCount else { return nil }
        let rank = Int((acceptance * Double(distances.count) - 1e-9).rounded(.up))
        let threshold = Float(distances.sorted()[max(rank, 1) - 1])
        return NoveltyRule(
            labels: labels, means: means, threshold: max(threshold.nextUp, minimumThreshold), acceptance: acceptance,
            images: distances.count)
    }

    private static func length(_ values: [Double]) -> Double {
        values.reduce(0) { $0 + $1 * $1 }.squareRoot()
    }

    /// Returns the cosine distance of a feature from the mean of the other features in a sum.
    private static func distance(_ feature: [Float], toMeanWithout own: [Float], of sum: [Double]) -> Double {
        let rest = zip(sum, own).map { $0 - Double($1) }
        let lengths = length(rest) * length(feature.map(Double.init))
        guard lengths > 0 else { return 1 }
        return max(1 - zip(rest, feature).reduce(0) { $0 + $1.0 * Double($1.1) } / lengths, 0)
    }
}

extension ModelFile {
    /// The maximum number of validation photos that a threshold is calibrated on.
    private static let maximumValidationCount = 1024

    /// Returns the novelty rule of a model that was just trained, or nil if the network has no dense head.
    ///
    /// The means are computed from at most 512 training photos, or 8 per label, balanced over the labels. If the model has rehearsal
    /// features, the method uses them, because they are the features of the same photos.
    /// - Parameters:
    ///   - training: The training photos.
    ///   - validation: The validation photos.
    ///   - seed: The random seed of the sample of photos.
    ///   - workers: The threads that compute features; the rule does not depend on them.
    func fittedNoveltyRule(
        training: [TrainingPhoto], validation: [TrainingPhoto], seed: UInt64, workers: Workers
    ) throws -> NoveltyRule? {
        guard head.seesWholeImage, network.denseHeadName != nil, let channels = network.headChannels else { return nil }
        let count = max(512, 8 * labels.count)
        let sample = ModelFile.balancedSample(training.map(\.label), count: count, seed: seed).map { training[$0] }
        let features: [(label: Int, features: [Float])]
        if let rehearsal, rehearsal.positions == 1, rehearsal.labels == sample.map(\.label) {
            features = rehearsal.labels.enumerated().map { index, label in
                (label, Array(rehearsal.features[(index * channels)..<((index + 1) * channels)]))
            }
        } else {
            features = try headFeatures(of: sample, workers: workers)
        }
        guard features.allSatisfy({ $0.features.count == channels }) else { return nil }
        var stream = RandomStream(seed: seed, "novelty")
        let chosen = stream.permutation(of: validation.count).prefix(ModelFile.maximumValidationCount).sorted()
        let calibration = try headFeatures(of: chosen.map { validation[$0] }, workers: workers)
        return NoveltyRule.fitted(training: features, validation: calibration.map(\.features))
    }
}
