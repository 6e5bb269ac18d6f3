/// What a typed model sees in an image: one label and how sure it is.
public struct TypedObservation<Label: RawRepresentable<String> & CaseIterable & Hashable & Sendable>: Hashable, Sendable
{
    /// The label.
    public let label: Label
    /// The observation as the classifier made it, with what its confidence is worth and where the mark is.
    public let observation: Classification

    /// The probability that the network gives the label, 0…1.
    public var confidence: Float { observation.confidence }

    /// Makes it of a classifier's observation.
    /// - Throws: `TypedModelError.otherLabels` if its label is none of `Label`.
    public init(_ observation: Classification) throws(TypedModelError) {
        guard let label = Label(rawValue: observation.label) else {
            throw .otherLabels(
                model: "the classifier", type: "\(Label.self)", missing: [], unknown: [observation.label])
        }
        self.label = label
        self.observation = observation
    }
}
