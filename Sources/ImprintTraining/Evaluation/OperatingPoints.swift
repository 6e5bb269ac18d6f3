public import ImprintModel

extension Evaluation {
    /// The precision–recall curve of every label that has images, as a training record stores it.
    ///
    /// It has at most 100 points of `precisionRecallCurve(of:)`, spread evenly over the recall, including both ends.
    public var precisionRecall: [String: [TrainingRecord.PrecisionRecallPoint]] {
        byLabel(\.storedCurve)
    }

    /// For every label that has images, the confidence threshold with the highest F1, or the highest of them if there are several.
    ///
    /// All values between two neighbouring confidences give the same predictions. The threshold is the middle of this gap, or of the
    /// gap to 0 below the lowest confidence.
    public var thresholds: [String: Double] { byLabel(\.threshold) }

    private func byLabel<Value>(_ value: (Ranking) -> Value?) -> [String: Value] {
        Dictionary(
            uniqueKeysWithValues: labels.enumerated().compactMap { index, label in
                value(Ranking(results, label: index)).map { (label, $0) }
            })
    }
}

extension Ranking {
    /// At most 100 points of the precision–recall curve, or nil without positive images.
    var storedCurve: [TrainingRecord.PrecisionRecallPoint]? { precisionRecallCurve.map { thinned($0, to: 100) } }

    /// The threshold with the highest F1, or nil without positive images.
    var threshold: Double? {
        func f1(_ step: Step) -> Double {
            2 * Double(step.truePositives) / Double(positives + step.truePositives + step.falsePositives)
        }
        // Steps begin with the highest threshold, and `max` returns the first of equal elements.
        guard positives > 0, let best = steps.indices.max(by: { f1(steps[$0]) < f1(steps[$1]) }) else { return nil }
        let below = best + 1 < steps.count ? Double(steps[best + 1].threshold) : 0
        return (Double(steps[best].threshold) + below) / 2
    }
}

/// Returns at most `limit` points of a curve by ascending thresholds.
///
/// These are the first point and, for each of evenly spaced recalls, the point with the highest threshold that reaches it.
func thinned(
    _ curve: [TrainingRecord.PrecisionRecallPoint], to limit: Int
) -> [TrainingRecord.PrecisionRecallPoint] {
    guard curve.count > limit, let first = curve.first, let last = curve.last else { return curve }
    let intervals = limit - 2
    var kept = [0]
    var index = 0
    for step in 0...intervals {
        // The last step uses the exact recall of the curve's end.
        let recall =
            step == intervals
            ? last.recall : first.recall - (first.recall - last.recall) * Double(step) / Double(intervals)
        while index + 1 < curve.count && curve[index + 1].recall >= recall { index += 1 }
        if kept.last != index { kept.append(index) }
    }
    return kept.map { curve[$0] }
}
