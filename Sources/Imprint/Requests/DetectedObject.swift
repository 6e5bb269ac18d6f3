public import ImprintImages

/// An object that a detector found in an image: its label, its confidence and its bounding box.
///
/// The JSON encoding has the keys `label`, `confidence` and `box`.
public struct DetectedObject: Codable, Hashable, Sendable {
    /// The label of the object.
    public let label: String
    /// The probability that the box shows the object, 0…1.
    public let confidence: Float
    /// The bounding box, relative to the upright image.
    public let box: NormalizedRectangle

    /// Creates a detected object.
    public init(label: String, confidence: Float, box: NormalizedRectangle) {
        (self.label, self.confidence, self.box) = (label, confidence, box)
    }
}
