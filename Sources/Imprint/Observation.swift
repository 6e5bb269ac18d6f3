/// What a classifier sees in an image: one label and how sure it is.
public struct Observation: Hashable, Codable, Sendable {
    /// The label, as the folder of its photos was named.
    public let label: String
    /// The probability that the network gives it, 0…1; over all labels the confidences add up to 1.
    public let confidence: Float

    /// Makes an observation.
    public init(label: String, confidence: Float) {
        self.label = label
        self.confidence = confidence
    }
}
