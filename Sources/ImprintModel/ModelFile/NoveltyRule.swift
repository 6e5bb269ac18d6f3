internal import CImprintKernels
internal import Foundation
internal import ImprintNetwork

/// A rule that rejects images that differ too much from the training photos; a classifier then returns no label.
///
/// A feature is the input of the network's head. The rule stores the mean feature of each label, and measures the cosine distance of an
/// image's feature to the nearest mean. Training calibrates the threshold so that the rule accepts a given share of photos of the known
/// labels. It fixes the share of known photos that the rule accepts, but not the share of unknown ones.
///
/// ```swift
/// if let novelty = try classifier.novelty(of: .file(photo)), novelty > 1 { print("none of these") }
/// ```
///
/// Source: Lee et al., "A simple unified framework for detecting out-of-distribution samples and adversarial attacks",
/// 2018, which uses a covariance instead of the cosine distance.
public struct NoveltyRule: Sendable, Equatable {
    /// The share of photos of known labels that the rule accepts by default.
    public static let defaultAcceptance = 0.95
    /// The minimum threshold; a smaller one could make a novelty infinite.
    package static let minimumThreshold: Float = 1e-6

    /// The labels that have a mean, as ascending indices into the model's labels.
    ///
    /// The rule never rejects an image whose best label has no mean, such as a label that a personalization added.
    public let labels: [Int]
    /// The mean features, [labels, channels], each of length 1 and rounded to float16.
    public let means: [Float]
    /// The number of values of a feature.
    public let channels: Int
    /// The cosine distance up to which images are accepted, at least 1e-6.
    public let threshold: Float
    /// The share of photos that the threshold was calibrated to accept, more than 0 and at most 1.
    public let acceptance: Double
    /// The number of photos that the threshold was calibrated on.
    public let images: Int

    /// Creates a rule.
    /// - Parameters:
    ///   - labels: The labels with a mean, as ascending indices of the model's labels.
    ///   - means: The mean features, [labels, channels], each of length 1; they are rounded to float16.
    ///   - threshold: The cosine distance up to which images are accepted.
    ///   - acceptance: The share of photos that the threshold was calibrated to accept.
    ///   - images: The number of photos that the threshold was calibrated on.
    public init(
        labels: [Int], means: [Float], threshold: Float, acceptance: Double = defaultAcceptance, images: Int
    ) {
        precondition(
            !labels.isEmpty && !means.isEmpty && means.count.isMultiple(of: labels.count),
            "\(means.count) values are not the mean features of \(labels.count) labels")
        self.labels = labels
        self.means = roundedToFloat16(means)
        channels = means.count / labels.count
        self.threshold = threshold
        self.acceptance = acceptance
        self.images = images
    }

    /// Returns the cosine distance from a feature to the mean of each label, 0…2, in the order of `labels`; 1 for a feature of zeros.
    ///
    /// The order of the sums is fixed, so the result does not depend on threads or on the processor.
    package func distances(of feature: [Float]) -> [Double] {
        precondition(feature.count == channels, "a feature has \(feature.count) values, expected \(channels)")
        let length = feature.reduce(0.0) { $0 + Double($1) * Double($1) }.squareRoot()
        guard length > 0 else { return labels.map { _ in 1 } }
        return feature.withUnsafeBufferPointer { feature in
            means.withUnsafeBufferPointer { means in
                labels.indices.map { label in
                    var product = 0.0
                    let start = label * channels
                    for channel in 0..<channels { product += Double(means[start + channel]) * Double(feature[channel]) }
                    return max(1 - product / length, 0)
                }
            }
        }
    }

    /// Returns the novelty of an image: its distance to the nearest mean, divided by the threshold.
    ///
    /// - Parameter feature: The input of the head for the image.
    /// - Returns: 0 or more; the rule rejects the image if it is more than 1.
    package func novelty(of feature: [Float]) -> Float {
        Float(distances(of: feature).min() ?? 0) / threshold
    }

    /// Returns whether a rule rejects an image with this novelty; false if the novelty is nil, because it is unknown.
    package static func rejects(_ novelty: Float?) -> Bool { (novelty ?? 0) > 1 }

    /// The metadata key in a model file.
    static let key = "imprint.novelty"

    /// Returns the first mismatch between the rule and a model, or nil if they fit.
    func problem(_ network: Network, _ head: ModelHead, labelCount: Int) -> String? {
        guard head.seesWholeImage, network.denseHeadName != nil, let channels = network.headChannels else {
            return "the network has no dense layer as its head"
        }
        if self.channels != channels {
            return "means of \(self.channels) values for a head with \(channels) input channels"
        }
        if let label = labels.first(where: { !(0..<labelCount).contains($0) }) {
            return "a mean of label \(label) of \(labelCount)"
        }
        return valueProblem
    }

    /// The first value that is out of range, or nil if there is none.
    private var valueProblem: String? {
        if zip(labels, labels.dropFirst()).contains(where: { $0 >= $1 }) { return "labels that are not ascending" }
        guard threshold.isFinite, threshold >= Self.minimumThreshold else {
            return "a threshold of \(threshold), expected at least \(Self.minimumThreshold)"
        }
        guard acceptance > 0, acceptance <= 1 else {
            return "an acceptance of \(acceptance), expected more than 0 and at most 1"
        }
        guard images >= 1 else { return "a calibration on \(images) images, expected at least 1" }
        for label in labels.indices {
            let mean = means[(label * channels)..<((label + 1) * channels)]
            let length = mean.reduce(0.0) { $0 + Double($1) * Double($1) }.squareRoot()
            guard abs(length - 1) <= 0.01 else { return "a mean of length \(length), expected 1" }
        }
        return nil
    }
}

extension NoveltyRule: Codable {
    private enum CodingKeys: String, CodingKey {
        case labels, means, threshold, acceptance, images
    }

    /// Encodes the rule as in a model file: the means are the base64 text of little-endian float16 values.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(labels, forKey: .labels)
        var halves = [UInt16](repeating: 0, count: means.count)
        _ = imprint_float32_to_float16(means, &halves, halves.count)
        let bytes = halves.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        try container.encode(Data(bytes), forKey: .means)
        try container.encode(threshold, forKey: .threshold)
        try container.encode(acceptance, forKey: .acceptance)
        try container.encode(images, forKey: .images)
    }

    /// Decodes the rule of a model file.
    /// - Throws: `DecodingError` if a value is missing or out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let labels = try container.decode([Int].self, forKey: .labels)
        let bytes = [UInt8](try container.decode(Data.self, forKey: .means))
        guard !labels.isEmpty, !bytes.isEmpty, bytes.count.isMultiple(of: 2),
            (bytes.count / 2).isMultiple(of: labels.count)
        else {
            throw DecodingError.dataCorruptedError(
                forKey: .means, in: container,
                debugDescription: "found \(bytes.count) bytes, expected the mean features of \(labels.count) labels")
        }
        let halves = stride(from: 0, to: bytes.count, by: 2).map { UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8 }
        var values = [Float](repeating: 0, count: halves.count)
        imprint_float16_to_float32(halves, &values, halves.count)
        guard values.allSatisfy(\.isFinite) else {
            throw DecodingError.dataCorruptedError(
                forKey: .means, in: container, debugDescription: "a mean that is not a finite number")
        }
        self.init(
            labels: labels, means: values, threshold: try container.decode(Float.self, forKey: .threshold),
            acceptance: try container.decode(Double.self, forKey: .acceptance),
            images: try container.decode(Int.self, forKey: .images))
    }
}
