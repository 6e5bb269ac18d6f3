/// The predictions of multi-label models in one repeat with their groups, for metrics in which each group has a weight.
struct GroupedMultiLabelPredictions: WeightedPredictions {
    /// The metrics of weighted predictions.
    struct Metrics {
        /// The mean average precision, or nil unless a photo with a weight has a label.
        var meanAveragePrecision: Double?
        var microF1 = 0.0
        var macroF1 = 0.0
    }

    /// A photo in the ranking of a label.
    private struct Entry {
        let group: Int
        let isPositive: Bool
        /// Whether the photo is predicted to have the label.
        let isPredicted: Bool
        /// Whether it is the last of the photos with its confidence.
        let endsStep: Bool
    }

    private let groups: Set<Int>
    /// The photos by descending confidence in each label.
    private let rankings: [[Entry]]

    /// - Parameter groups: The group of each result of the evaluation.
    init(_ evaluation: MultiLabelEvaluation, groups: [Int]) {
        let results = evaluation.results
        self.groups = Set(groups)
        rankings = evaluation.labels.indices.map { label in
            let order = results.indices.sorted { results[$0].confidences[label] > results[$1].confidences[label] }
            return order.enumerated().map { position, index in
                Entry(
                    group: groups[index], isPositive: results[index].labels.contains(label),
                    isPredicted: evaluation.predicted[index].contains(label),
                    endsStep: position + 1 == order.count
                        || results[order[position + 1]].confidences[label] != results[index].confidences[label])
            }
        }
    }

    func metrics(weights: [Int]) -> Metrics? {
        guard groups.contains(where: { weights[$0] > 0 }) else { return nil }
        let counts = rankings.map { Counts($0, weights) }
        return Metrics(
            meanAveragePrecision: counts.compactMap(\.averagePrecision).mean,
            microF1: Self.f1(hits: counts.reduce(0) { $0 + $1.hits }, of: counts.reduce(0) { $0 + $1.marked }) ?? 0,
            macroF1: counts.compactMap { Self.f1(hits: $0.hits, of: $0.marked) }.mean ?? 0)
    }

    static func mean(_ metrics: [Metrics]) -> Metrics {
        Metrics(
            meanAveragePrecision: metrics.compactMap(\.meanAveragePrecision).mean,
            microF1: metrics.map(\.microF1).mean ?? 0, macroF1: metrics.map(\.macroF1).mean ?? 0)
    }

    private static func f1(hits: Int, of marked: Int) -> Double? {
        marked > 0 ? Double(2 * hits) / Double(marked) : nil
    }

    /// The weighted counts of a label.
    private struct Counts {
        /// The number of photos that have the label and are predicted to have it.
        var hits = 0
        /// The number of photos with the label, plus the number of those that are predicted to have it.
        var marked = 0
        /// The average precision, or nil if no photo has the label.
        let averagePrecision: Double?

        init(_ ranking: [Entry], _ weights: [Int]) {
            var (positives, positivesBefore, total, sum) = (0, 0, 0, 0.0)
            for entry in ranking {
                let weight = weights[entry.group]
                total += weight
                if entry.isPositive { positives += weight }
                if entry.isPredicted { marked += weight }
                if entry.isPositive && entry.isPredicted { hits += weight }
                guard entry.endsStep, positives > positivesBefore else { continue }
                sum += Double(positives - positivesBefore) * Double(positives) / Double(total)
                positivesBefore = positives
            }
            marked += positives
            averagePrecision = positives > 0 ? sum / Double(positives) : nil
        }
    }
}
