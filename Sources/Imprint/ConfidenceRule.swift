internal import ImprintCore
internal import ImprintModel

/// A rule that accepts or rejects classifications by confidence, precision and recall.
///
/// If a rule rejects every classification of an image, treat the image as showing none of the labels.
///
/// ```swift
/// let rule = ConfidenceRule(threshold: .perLabel)
/// try rule.check(classifier)
/// let accepted = try classifier.classify(photo).filter(rule.accepts)
/// ```
public struct ConfidenceRule: Hashable, Sendable {
    /// A minimum confidence.
    public enum Threshold: Hashable, Sendable {
        /// The same threshold for every label, 0…1.
        case confidence(Float)
        /// The threshold of each label in the model's training record.
        case perLabel
    }

    /// The minimum confidence.
    public var threshold: Threshold
    /// The minimum precision at the operating point of the label, 0…1; nil for no minimum.
    public var minimumPrecision: Double?
    /// The minimum recall at the operating point of the label, 0…1; nil for no minimum.
    public var minimumRecall: Double?

    /// Creates a rule; without arguments, the rule accepts every classification.
    public init(
        threshold: Threshold = .confidence(0), minimumPrecision: Double? = nil, minimumRecall: Double? = nil
    ) {
        self.threshold = threshold
        self.minimumPrecision = minimumPrecision
        self.minimumRecall = minimumRecall
    }

    /// Returns whether a classification meets every requirement of the rule.
    ///
    /// The confidence must reach both the threshold of the rule and the threshold of the label's operating point:
    ///
    /// - With only a minimum precision, the operating point is the lowest threshold with at least this precision.
    /// - With only a minimum recall, it is the highest threshold with at least this recall.
    /// - With both, it is the highest threshold with at least this recall, and its precision must reach the minimum, as in
    ///   `Classification.hasMinimumPrecision(_:forRecall:)`.
    public func accepts(_ classification: Classification) -> Bool {
        let reaches =
            switch threshold {
            case .confidence(let minimum): classification.confidence >= minimum
            case .perLabel: classification.reachesThreshold ?? false
            }
        guard reaches else { return false }
        if let minimumRecall {
            return classification.hasMinimumPrecision(minimumPrecision ?? 0, forRecall: minimumRecall)
        }
        return minimumPrecision.map { classification.hasMinimumRecall(0, forPrecision: $0) } ?? true
    }

    /// Checks that a classifier has the metrics that the rule needs, for each of its labels.
    ///
    /// Labels that a personalization added do not have metrics, and neither do models without a training record, such as imported ones.
    /// - Throws: `ImprintError.missingMetric` if a metric is missing, `ImprintError.invalidSetting` if a value of the rule is not in 0…1.
    public func check(_ classifier: ImageClassifier) throws(ImprintError) {
        if case .confidence(let minimum) = threshold { try Self.check(Double(minimum), "threshold") }
        try minimumPrecision.map { value throws(ImprintError) in try Self.check(value, "minimumPrecision") }
        try minimumRecall.map { value throws(ImprintError) in try Self.check(value, "minimumRecall") }
        let model = classifier.model
        func require(_ metric: String, _ isKnown: (String) -> Bool) throws(ImprintError) {
            let labels = model.labels.filter { !isKnown($0) }
            guard labels.isEmpty else {
                throw .missingMetric(
                    metric, labels: labels,
                    reason: model.training == nil ? .noTrainingRecord : .noValidationPhotos)
            }
            let added = (classifier.personalization?.addedLabels ?? []).filter { !isKnown($0) }
            guard added.isEmpty else {
                throw .missingMetric(metric, labels: added, reason: .addedByPersonalization)
            }
        }
        if threshold == .perLabel {
            try require("threshold") { model.training?.thresholds?[$0] != nil }
        }
        if minimumPrecision != nil || minimumRecall != nil {
            try require("precision–recall curve") { model.training?.precisionRecall[$0]?.isEmpty == false }
        }
    }

    private static func check(_ value: Double, _ name: String) throws(ImprintError) {
        guard (0...1).contains(value) else {
            throw .invalidSetting(name: name, found: messageText(value), expected: "a number from 0 to 1")
        }
    }
}
