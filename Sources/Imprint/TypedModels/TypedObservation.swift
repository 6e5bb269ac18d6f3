/// A prediction of a typed model for one label of an image.
public struct TypedObservation<Label: RawRepresentable<String> & CaseIterable & Hashable & Sendable>: Hashable, Sendable
{
    /// The label.
    public let label: Label
    /// The observation of the classifier, with its precision–recall curve, threshold and bounding box.
    public let observation: Classification

    /// The predicted probability of the label, 0…1.
    public var confidence: Float { observation.confidence }

    /// Creates a typed observation from an observation of a classifier.
    /// - Throws: `TypedModelError.labelMismatch` if its label is not one of `Label`.
    public init(_ observation: Classification) throws(TypedModelError) {
        guard let label = Label(rawValue: observation.label) else {
            throw .labelMismatch(
                model: "the classifier", type: "\(Label.self)", missing: [], unknown: [observation.label])
        }
        self.label = label
        self.observation = observation
    }
}
