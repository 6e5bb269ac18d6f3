internal import Foundation
internal import ImprintFormats

/// What the report derives from an evaluation.
enum ReportMeasures {
    /// The Wilson score interval of a share, with a confidence of 95 %.
    ///
    /// With p = hits/count, z = 1.96 and n = count: (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n). It stays within
    /// 0…1 and means something for few images too (Wilson, "Probable inference, the law of succession, and statistical
    /// inference", 1927).
    static func wilsonInterval(hits: Int, of count: Int) -> ClosedRange<Double> {
        guard count > 0 else { return 0...1 }
        let (share, number, z) = (Double(hits) / Double(count), Double(count), 1.959964)
        let middle = share + z * z / (2 * number)
        let spread = z * (share * (1 - share) / number + z * z / (4 * number * number)).squareRoot()
        let whole = 1 + z * z / number
        // At the ends exactly, which rounding would miss.
        return (hits == 0 ? 0 : (middle - spread) / whole)...(hits == count ? 1 : (middle + spread) / whole)
    }

    /// The harmonic mean of precision and recall; `nil` where one is unknown, 0 where both are 0.
    static func f1(_ precision: Double?, _ recall: Double?) -> Double? {
        guard let precision, let recall else { return nil }
        return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0
    }

    /// The point of a precision–recall curve with the highest F1, the first of several.
    static func bestPoint(
        _ curve: [TrainingRecord.PrecisionRecallPoint]
    ) -> TrainingRecord.PrecisionRecallPoint? {
        var best: (point: TrainingRecord.PrecisionRecallPoint, f1: Double)?
        for point in curve {
            let f1 = f1(point.precision, point.recall) ?? 0
            if f1 > best?.f1 ?? -1 { best = (point, f1) }
        }
        return best?.point
    }

    /// The images whose best label was given a similar confidence.
    struct ReliabilityBin {
        /// The confidences that belong to it.
        let range: Range<Double>
        /// How many images.
        var count = 0
        /// How many of these were right.
        var right = 0
        /// The sum of their confidences.
        var confidence = 0.0

        var accuracy: Double { Double(right) / Double(max(count, 1)) }
        var meanConfidence: Double { confidence / Double(max(count, 1)) }
    }

    /// Ten bins of equal width over the confidence in the best label.
    static func reliability(_ results: [Evaluation.Result]) -> [ReliabilityBin] {
        var bins = (0..<10).map { ReliabilityBin(range: Double($0) / 10..<Double($0 + 1) / 10) }
        for result in results {
            let confidence = Double(result.confidences[result.predicted])
            guard confidence.isFinite else { continue }
            let bin = min(max(Int(confidence * 10), 0), 9)
            bins[bin].count += 1
            bins[bin].right += result.predicted == result.label ? 1 : 0
            bins[bin].confidence += confidence
        }
        return bins
    }

    /// The expected calibration error: the mean distance of confidence and accuracy over the bins, weighted by their counts.
    static func calibrationError(_ bins: [ReliabilityBin]) -> Double {
        let count = bins.reduce(0) { $0 + $1.count }
        let sum = bins.reduce(0.0) { $0 + abs($1.confidence - Double($1.right)) }
        return count > 0 ? sum / Double(count) : 0
    }

    /// The wrong results, those first of which the classifier was most certain.
    static func worstMistakes(_ results: [Evaluation.Result], limit: Int) -> [Evaluation.Result] {
        let wrong = results.filter { $0.predicted != $0.label }
        return sorted(wrong) { $0 > $1 }.prefix(limit).map { $0 }
    }

    /// The results that the classifier was least certain of.
    static func leastCertain(_ results: [Evaluation.Result], limit: Int) -> [Evaluation.Result] {
        sorted(results) { $0 < $1 }.prefix(limit).map { $0 }
    }

    /// By the confidence in the best label; equal ones stay in order.
    private static func sorted(
        _ results: [Evaluation.Result], by precedes: (Float, Float) -> Bool
    ) -> [Evaluation.Result] {
        results.map { ($0, $0.confidences[$0.predicted]) }.enumerated().sorted {
            $0.element.1 == $1.element.1 ? $0.offset < $1.offset : precedes($0.element.1, $1.element.1)
        }.map(\.element.0)
    }
}
