public import ImprintImages
public import ImprintModel

/// What a classifier sees in an image: one label and how sure it is.
///
/// Observations are equal where label and confidence are, and as JSON they are `{"label", "confidence"}`. One that a
/// classifier made also knows what its confidence is worth, from the images that the model was validated on.
public struct Classification: Codable, Sendable {
    /// The label, as the folder of its photos was named.
    public let label: String
    /// The probability that the network gives it, 0…1; over all labels the confidences add up to 1.
    public let confidence: Float
    /// The precision–recall curve of the label on the validation images, by rising thresholds; empty if there is none.
    public private(set) var precisionRecallCurve: [TrainingRecord.PrecisionRecallPoint] = []
    /// The bounding box of the logo; nil for models without a detector head and for the label without a logo.
    public private(set) var box: NormalizedRectangle?
    /// The label's own threshold, as `TrainingRecord.thresholds` has it; nil if the model has none.
    public private(set) var threshold: Double?

    /// Makes an observation.
    public init(
        label: String, confidence: Float, precisionRecallCurve: [TrainingRecord.PrecisionRecallPoint] = [],
        threshold: Double? = nil, box: NormalizedRectangle? = nil
    ) {
        self.label = label
        self.confidence = confidence
        self.precisionRecallCurve = precisionRecallCurve
        self.threshold = threshold
        self.box = box
    }

    private enum CodingKeys: String, CodingKey {
        case label, confidence
    }
}

extension Classification: Hashable {
    /// Whether label and confidence are the same.
    public static func == (left: Classification, right: Classification) -> Bool {
        left.label == right.label && left.confidence == right.confidence
    }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(label)
        hasher.combine(confidence)
    }
}

// MARK: What a confidence is worth

extension Classification {
    /// Whether the confidence reaches the label's own threshold; nil if the model has none.
    ///
    /// An image none of whose observations does shows none of the labels.
    public var reachesThreshold: Bool? { threshold.map { Double(confidence) >= $0 } }

    /// Whether the model knows the label's precision–recall curve.
    public var hasPrecisionRecallCurve: Bool { !precisionRecallCurve.isEmpty }

    /// Whether the confidence is one at which the label was recalled to at least `recall`, if that is precise enough.
    ///
    /// The operating point is that of the highest threshold at which the recall is at least `recall`: its precision must be
    /// at least `minimumPrecision`, and the confidence must reach its threshold. False if there is no such point or no
    /// curve. Vision's method of the same name.
    public func hasMinimumPrecision(_ minimumPrecision: Double, forRecall recall: Double) -> Bool {
        let reaching = precisionRecallCurve.filter { $0.recall >= recall }
        guard let point = reaching.max(by: { $0.threshold < $1.threshold }) else { return false }
        return point.precision >= minimumPrecision && Double(confidence) >= point.threshold
    }

    /// Whether the confidence is one at which the label was precise to at least `precision`, if enough is recalled there.
    ///
    /// The operating point is that of the lowest threshold at which the precision is at least `precision`: its recall must be
    /// at least `minimumRecall`, and the confidence must reach its threshold. False if there is no such point or no
    /// curve. Vision's method of the same name.
    public func hasMinimumRecall(_ minimumRecall: Double, forPrecision precision: Double) -> Bool {
        let reaching = precisionRecallCurve.filter { $0.precision >= precision }
        guard let point = reaching.min(by: { $0.threshold < $1.threshold }) else { return false }
        return point.recall >= minimumRecall && Double(confidence) >= point.threshold
    }

    /// The same with another confidence.
    func with(confidence: Float) -> Classification {
        Classification(
            label: label, confidence: confidence, precisionRecallCurve: precisionRecallCurve, threshold: threshold,
            box: box)
    }

    /// Observations, one for each label in the order of the labels, best first; of equal confidences the first label.
    package static func ranked(_ observations: [Classification]) -> [Classification] {
        observations.enumerated().sorted { ($1.element.confidence, $0.offset) < ($0.element.confidence, $1.offset) }
            .map(\.element)
    }
}
