public import ImprintModel

extension Evaluation {
    /// The precision–recall curve of every label that some image bears, as a training record stores it: at most 100 points of
    /// `precisionRecallCurve(of:)`, spread evenly over the recall, with both ends.
    public var precisionRecall: [String: [TrainingRecord.PrecisionRecallPoint]] {
        byLabel { ranking in ranking.precisionRecallCurve.map { thinned($0, to: 100) } }
    }

    /// For every label that some image bears, the least confidence from which on it is best believed: that of the highest F1
    /// on the exact precision–recall curve, of equal ones the highest.
    ///
    /// Any number above the next lower confidence that was given makes the same hits. The threshold is in the middle of that
    /// gap (of that to 0 if there is no lower one), equally far from what is to be a hit and what is not.
    public var thresholds: [String: Double] { byLabel(\.threshold) }

    private func byLabel<Value>(_ value: (Ranking) -> Value?) -> [String: Value] {
        Dictionary(
            uniqueKeysWithValues: labels.enumerated().compactMap { place, label in
                value(Ranking(results, label: place)).map { (label, $0) }
            })
    }
}

extension Ranking {
    fileprivate var threshold: Double? {
        func f1(_ step: Step) -> Double { 2 * Double(step.right) / Double(positives + step.right + step.wrong) }
        // Steps begin with the highest threshold, and the first of equals is the one that `max` gives.
        guard positives > 0, let best = steps.indices.max(by: { f1(steps[$0]) < f1(steps[$1]) }) else { return nil }
        let below = best + 1 < steps.count ? Double(steps[best + 1].threshold) : 0
        return (Double(steps[best].threshold) + below) / 2
    }
}

/// At most `limit` points of a curve by rising thresholds: the first one, and for each of evenly spread recalls the one with
/// the highest threshold that reaches it.
private func thinned(
    _ curve: [TrainingRecord.PrecisionRecallPoint], to limit: Int
) -> [TrainingRecord.PrecisionRecallPoint] {
    guard curve.count > limit, let first = curve.first, let last = curve.last else { return curve }
    let intervals = limit - 2
    var kept = [0]
    var place = 0
    for step in 0...intervals {
        // The last one is written so that it is exactly the recall of the curve's end.
        let recall =
            step == intervals
            ? last.recall : first.recall - (first.recall - last.recall) * Double(step) / Double(intervals)
        while place + 1 < curve.count && curve[place + 1].recall >= recall { place += 1 }
        if kept.last != place { kept.append(place) }
    }
    return kept.map { curve[$0] }
}
