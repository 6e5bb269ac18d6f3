/// A prediction of a typed model for one label of an image.
public struct TypedClassification<Label>: Hashable, Sendable
where Label: RawRepresentable<String> & CaseIterable & Hashable & Sendable {
    /// The label.
    public let label: Label
    /// The untyped classification, with its precision–recall curve, threshold and bounding box.
    public let classification: Classification

    /// The predicted probability of the label, 0…1.
    public var confidence: Float { classification.confidence }

    /// Creates a typed classification from an untyped one.
    /// - Throws: `TypedModelError.labelMismatch` if its label is not one of `Label`.
    public init(_ classification: Classification) throws(TypedModelError) {
        guard let label = Label(rawValue: classification.label) else {
            throw .labelMismatch(
                model: "the classifier", type: "\(Label.self)", missing: [], unknown: [classification.label])
        }
        self.label = label
        self.classification = classification
    }
}
