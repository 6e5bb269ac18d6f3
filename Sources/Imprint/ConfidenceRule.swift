internal import ImprintModel

/// Which observations are believed; where none is, an image shows none of the labels.
///
/// ```swift
/// let rule = ConfidenceRule(threshold: .ofLabel)
/// try rule.check(classifier)
/// let seen = try classifier.classify(photo).filter(rule.accepts)
/// ```
public struct ConfidenceRule: Hashable, Sendable {
    /// The least confidence.
    public enum Threshold: Hashable, Sendable {
        /// This one for every label, 0…1.
        case confidence(Float)
        /// Each label's own, from the model's training record.
        case ofLabel
    }

    /// The least confidence.
    public var threshold: Threshold
    /// The least precision at the operating point that a label's curve is looked at, 0…1; `nil` for any.
    public var minimumPrecision: Double?
    /// The least recall there, 0…1; `nil` for any.
    public var minimumRecall: Double?

    /// Makes a rule; without arguments every observation is accepted.
    public init(
        threshold: Threshold = .confidence(0), minimumPrecision: Double? = nil, minimumRecall: Double? = nil
    ) {
        self.threshold = threshold
        self.minimumPrecision = minimumPrecision
        self.minimumRecall = minimumRecall
    }

    /// Whether an observation of a classifier fulfils all of the rule.
    ///
    /// The confidence must reach the threshold, and that of an operating point of its label: with a minimum of precision
    /// alone the point of the lowest threshold that is so precise, with a minimum of recall the point of the highest
    /// threshold that recalls so much. With both, that point must also be precise enough
    /// (`Classification.hasMinimumPrecision(_:forRecall:)`).
    public func accepts(_ observation: Classification) -> Bool {
        let reaches =
            switch threshold {
            case .confidence(let least): observation.confidence >= least
            case .ofLabel: observation.reachesThreshold ?? false
            }
        guard reaches else { return false }
        if let minimumRecall {
            return observation.hasMinimumPrecision(minimumPrecision ?? 0, forRecall: minimumRecall)
        }
        return minimumPrecision.map { observation.hasMinimumRecall(0, forPrecision: $0) } ?? true
    }

    /// Checks that the classifier knows what the rule needs of each of its labels; of those that a personalization adds nothing was
    /// measured.
    /// - Throws: `ImprintError.missingMetric` if it does not, `invalidSetting` where a number is none of 0…1.
    public func check(_ classifier: ImageClassifier) throws(ImprintError) {
        if case .confidence(let least) = threshold { try Self.check(Double(least), "threshold") }
        try minimumPrecision.map { value throws(ImprintError) in try Self.check(value, "minimumPrecision") }
        try minimumRecall.map { value throws(ImprintError) in try Self.check(value, "minimumRecall") }
        let weights = classifier.weights
        func require(_ what: String, _ isKnown: (String) -> Bool) throws(ImprintError) {
            let labels = classifier.labels.filter { !isKnown($0) }
            guard labels.isEmpty else { throw .missingMetric(what, labels: labels) }
        }
        if threshold == .ofLabel {
            try require("threshold") { weights.training?.thresholds?[$0] != nil }
        }
        if minimumPrecision != nil || minimumRecall != nil {
            try require("precision–recall curve") { weights.training?.precisionRecall[$0]?.isEmpty == false }
        }
    }

    private static func check(_ value: Double, _ name: String) throws(ImprintError) {
        guard (0...1).contains(value) else {
            throw .invalidSetting(name: name, found: "\(value)", expected: "a number from 0 to 1")
        }
    }
}
