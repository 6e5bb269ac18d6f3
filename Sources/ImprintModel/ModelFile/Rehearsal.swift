internal import ImprintNetwork

/// Replay features of some training photos, which prevent catastrophic forgetting during personalization.
///
/// A feature is an input of the network's head: a vector of `channels` values for each photo. For a logo detector, each photo has a feature
/// for each of the `positions` with the highest logits. The model file contains these features instead of the photos.
public struct Rehearsal: Sendable, Equatable {
    /// The features, [photos, positions, channels].
    public let features: [Float]
    /// The number of positions with features in each photo.
    public let positions: Int
    /// The number of values of a feature.
    public let channels: Int
    /// The label of each photo, as an index of the model's labels.
    public let labels: [Int]

    /// Creates replay features.
    /// - Parameters:
    ///   - features: Finite values, [photos, positions, channels].
    ///   - positions: The number of positions with features in each photo.
    ///   - labels: The label of each photo, as an index of the model's labels.
    public init(features: [Float], positions: Int = 1, labels: [Int]) {
        precondition(positions >= 1 && !labels.isEmpty, "there must be at least one photo and one position")
        precondition(
            features.count.isMultiple(of: labels.count * positions),
            "\(features.count) values are not the features of \(labels.count) photos")
        self.features = features
        self.positions = positions
        self.labels = labels
        channels = features.count / (labels.count * positions)
    }

    /// The name of the tensor in a model file; parameters of layers never have this name.
    static let tensorName = "imprint.rehearsal"

    /// Returns the first mismatch between the features and a model; nil if they fit.
    func problem(_ network: Network, _ modelLabels: [String]) -> String? {
        guard let channels = network.headChannels else { return "the network has no head to personalize" }
        if self.channels != channels {
            return "features of \(self.channels) values for a head with \(channels) input channels"
        }
        if let label = labels.first(where: { !modelLabels.indices.contains($0) }) {
            return "a photo has label \(label) of \(modelLabels.count)"
        }
        return features.allSatisfy(\.isFinite) ? nil : "a feature that is not a finite number"
    }
}

extension Rehearsal {
    /// The tensor of a model file: float16, or float32 if a value is beyond the range of float16.
    var tensor: Safetensors.Tensor {
        Safetensors.Tensor(
            name: Self.tensorName, shape: [labels.count, positions, channels], values: features,
            precision: features.allSatisfy { abs($0) <= 65504 } ? .float16 : .float32)
    }

    /// Creates replay features from a model file.
    /// - Parameters:
    ///   - labels: The labels in its metadata.
    ///   - tensor: The tensor of the features; nil if the file has none.
    init(labels: [Int], _ tensor: (values: [Float], shape: [Int])?) throws(ModelFileError.Problem) {
        guard let (values, shape) = tensor else {
            throw ModelFileError.Problem.invalidMetadata(key: Self.tensorName, reason: "its tensor is missing")
        }
        guard shape.count == 3, shape[0] == labels.count, shape.allSatisfy({ $0 >= 1 }) else {
            throw ModelFileError.Problem.invalidMetadata(
                key: Self.tensorName, reason: "a tensor of shape \(shape) for \(labels.count) photos")
        }
        self.init(features: values, positions: shape[1], labels: labels)
    }
}
