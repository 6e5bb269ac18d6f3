public import ImprintImages
public import ImprintModel

/// A prediction for one label of an image: the label, its confidence and, for logo detectors, a bounding box.
///
/// `ImageClassifier` returns one classification per label, sorted by confidence. Its classifications also carry metrics from the model's
/// validation set: a precision–recall curve and a threshold for the label.
///
/// Two classifications are equal if their labels and confidences are equal. The JSON encoding has the keys `label` and `confidence`.
public struct Classification: Codable, Sendable {
    /// The label: the name of the folder with its training photos.
    public let label: String
    /// The predicted probability of the label, 0…1.
    ///
    /// See `ImageClassifier.confidencesSumToOne` for how the confidences of different labels relate.
    public let confidence: Float
    /// The precision–recall curve of the label on the validation set, by ascending threshold; empty if the model has none.
    public private(set) var precisionRecallCurve: [TrainingRecord.PrecisionRecallPoint] = []
    /// The bounding box of the logo; nil for classifiers of whole images, and for the label of images without a logo.
    public private(set) var box: NormalizedRectangle?
    /// The confidence threshold of the label from `TrainingRecord.thresholds`; nil if the model has none.
    public private(set) var threshold: Double?

    /// Creates a classification.
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
    /// Returns whether the labels and confidences are equal.
    public static func == (left: Classification, right: Classification) -> Bool {
        left.label == right.label && left.confidence == right.confidence
    }

    /// Hashes the label and the confidence.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(label)
        hasher.combine(confidence)
    }
}

// MARK: Operating points

extension Classification {
    /// Whether the confidence reaches the threshold of the label; nil if the model has no threshold for it.
    ///
    /// If no classification of an image reaches its threshold, treat the image as showing none of the labels.
    public var reachesThreshold: Bool? { threshold.map { Double(confidence) >= $0 } }

    /// Returns whether the classification meets a minimum precision at the operating point for the given recall.
    ///
    /// The operating point is the highest threshold of the curve at which the recall is at least `recall`. The result is true if the
    /// precision there is at least `minimumPrecision` and the confidence reaches the threshold. It is false if the curve is empty or does
    /// not contain such a point. The method corresponds to Vision's method of the same name.
    public func hasMinimumPrecision(_ minimumPrecision: Double, forRecall recall: Double) -> Bool {
        let candidates = precisionRecallCurve.filter { $0.recall >= recall }
        guard let point = candidates.max(by: { $0.threshold < $1.threshold }) else { return false }
        return point.precision >= minimumPrecision && Double(confidence) >= point.threshold
    }

    /// Returns whether the classification meets a minimum recall at the operating point for the given precision.
    ///
    /// The operating point is the lowest threshold of the curve at which the precision is at least `precision`. The result is true if the
    /// recall there is at least `minimumRecall` and the confidence reaches the threshold. It is false if the curve is empty or does not
    /// contain such a point. The method corresponds to Vision's method of the same name.
    public func hasMinimumRecall(_ minimumRecall: Double, forPrecision precision: Double) -> Bool {
        let candidates = precisionRecallCurve.filter { $0.precision >= precision }
        guard let point = candidates.min(by: { $0.threshold < $1.threshold }) else { return false }
        return point.recall >= minimumRecall && Double(confidence) >= point.threshold
    }

    /// Returns a copy with another confidence.
    func with(confidence: Float) -> Classification {
        Classification(
            label: label, confidence: confidence, precisionRecallCurve: precisionRecallCurve, threshold: threshold,
            box: box)
    }

    /// Sorts classifications by descending confidence; classifications of equal confidence keep their order.
    package static func ranked(_ classifications: [Classification]) -> [Classification] {
        classifications.enumerated().sorted { ($1.element.confidence, $0.offset) < ($0.element.confidence, $1.offset) }
            .map(\.element)
    }
}
