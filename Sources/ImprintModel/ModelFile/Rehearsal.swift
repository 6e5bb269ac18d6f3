internal import ImprintNetwork

/// Features of some photos that a model was trained on, which keep it from forgetting while it is tuned to one person.
///
/// A feature is the input of the network's head: for each photo a vector of `channels` values; for a logo detector, one for
/// each of `places` that are most like a mark. No photo can be made of it but what its labels need.
public struct Rehearsal: Sendable, Equatable {
    /// The features, [photos, places, channels].
    public let features: [Float]
    /// How many places of a photo have features.
    public let places: Int
    /// How many numbers a feature has.
    public let channels: Int
    /// For each photo the place of its label in the model's labels.
    public let labels: [Int]

    /// Puts features together.
    /// - Parameter features: Finite numbers, [photos, places, channels].
    public init(features: [Float], places: Int = 1, labels: [Int]) {
        precondition(places >= 1 && !labels.isEmpty, "there are no features of no photos")
        precondition(
            features.count.isMultiple(of: labels.count * places),
            "\(features.count) numbers are not the features of \(labels.count) photos")
        self.features = features
        self.places = places
        self.labels = labels
        channels = features.count / (labels.count * places)
    }

    /// The name of the tensor in a model file; no layer has a parameter of this name.
    static let tensorName = "imprint.rehearsal"

    /// What is wrong with them for a model; nil if nothing is.
    func problem(_ network: Network, _ modelLabels: [String]) -> String? {
        guard let channels = network.headChannels else { return "the network has no head that could be tuned" }
        if self.channels != channels { return "features of \(self.channels) numbers for a head that reads \(channels)" }
        if let label = labels.first(where: { !modelLabels.indices.contains($0) }) {
            return "a photo has label \(label) of \(modelLabels.count)"
        }
        return features.allSatisfy(\.isFinite) ? nil : "a feature that is not a finite number"
    }
}

extension Rehearsal {
    /// In float16, which is more than enough, unless a feature is too large for it.
    var tensor: Safetensors.Tensor {
        Safetensors.Tensor(
            name: Self.tensorName, shape: [labels.count, places, channels], values: features,
            precision: features.allSatisfy { abs($0) <= 65504 } ? .float16 : .float32)
    }

    /// - Parameter tensor: What a model file has; nil if it has none.
    init(labels: [Int], _ tensor: (values: [Float], shape: [Int])?) throws(ModelFileError.Problem) {
        guard let (values, shape) = tensor else {
            throw ModelFileError.Problem.invalidMetadata(key: Self.tensorName, reason: "its tensor is missing")
        }
        guard shape.count == 3, shape[0] == labels.count, shape.allSatisfy({ $0 >= 1 }) else {
            throw ModelFileError.Problem.invalidMetadata(
                key: Self.tensorName, reason: "a tensor of shape \(shape) for \(labels.count) photos")
        }
        self.init(features: values, places: shape[1], labels: labels)
    }
}
