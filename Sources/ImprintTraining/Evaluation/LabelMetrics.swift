internal import ImprintModel

extension Evaluation {
    /// The metrics of one label, one-vs-rest.
    public struct LabelMetrics: Codable, Hashable, Sendable {
        /// The label.
        public let label: String
        /// The fraction of images classified as this label that have it; nil if no image was classified as it.
        public let precision: Double?
        /// The fraction of images with this label that were classified as it; nil if no image has it.
        public let recall: Double?
        /// The harmonic mean of precision and recall; nil if no image has the label or was classified as it.
        public let f1: Double?
        /// The area under `Evaluation.rocCurve(of:)`; nil if all images have the label, or none.
        public let auc: Double?
        /// The mean of the precisions at all thresholds, weighted by the increase in recall; nil if no image has the label.
        public let averagePrecision: Double?
        /// The number of images with the label.
        public let count: Int

        private enum CodingKeys: String, CodingKey {
            case label, precision, recall, f1, auc, averagePrecision, count
        }

        /// Writes all keys, with `null` for nil.
        public func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encode(label, forKey: .label)
            try values.encode(precision, forKey: .precision)
            try values.encode(recall, forKey: .recall)
            try values.encode(f1, forKey: .f1)
            try values.encode(auc, forKey: .auc)
            try values.encode(averagePrecision, forKey: .averagePrecision)
            try values.encode(count, forKey: .count)
        }
    }

    /// Unweighted means over the labels.
    public struct MacroAverages: Codable, Hashable, Sendable {
        /// The mean precision.
        public let precision: Double
        /// The mean recall.
        public let recall: Double
        /// The mean F1.
        public let f1: Double
    }

    /// The counts of a label.
    private struct Counts {
        var truePositives = 0
        /// The number of images classified as the label.
        var predicted = 0
        /// The number of images with the label.
        var actual = 0

        var precision: Double? { quotient(truePositives, predicted) }
        var recall: Double? { quotient(truePositives, actual) }
        var f1: Double? { quotient(2 * truePositives, predicted + actual) }

        private func quotient(_ count: Int, _ total: Int) -> Double? {
            total > 0 ? Double(count) / Double(total) : nil
        }
    }

    private var counts: [Counts] {
        var counts = Array(repeating: Counts(), count: labels.count)
        for result in results {
            let predicted = result.predicted
            counts[result.label].actual += 1
            counts[predicted].predicted += 1
            if predicted == result.label { counts[predicted].truePositives += 1 }
        }
        return counts
    }

    /// Precision, recall, F1, area under the ROC curve and average precision of every label.
    public var perLabel: [LabelMetrics] {
        counts.enumerated().map { index, counts in
            let ranking = Ranking(results, label: index)
            return LabelMetrics(
                label: labels[index], precision: counts.precision, recall: counts.recall, f1: counts.f1,
                auc: ranking.auc, averagePrecision: ranking.averagePrecision, count: counts.actual)
        }
    }

    /// The means of precision, recall and F1 over the labels that an image has or was classified as.
    ///
    /// Undefined values count as 0, as with scikit-learn's `zero_division=0`. All means are 0 if there are no images.
    public var macroAverages: MacroAverages {
        let seen = counts.filter { $0.actual + $0.predicted > 0 }
        func mean(_ value: (Counts) -> Double?) -> Double { seen.map { value($0) ?? 0 }.mean ?? 0 }
        return MacroAverages(precision: mean(\.precision), recall: mean(\.recall), f1: mean(\.f1))
    }

    /// The mean recall of the labels that have images; 0 if there are no images.
    public var balancedAccuracy: Double { counts.compactMap(\.recall).mean ?? 0 }

    /// The area under the ROC curve of the second of two labels; nil for other numbers of labels, or if a label has no images.
    public var auc: Double? { labels.count == 2 ? Ranking(results, label: 1).auc : nil }
}

extension [Double] {
    /// The mean, or nil if there are no values.
    var mean: Double? { isEmpty ? nil : reduce(0, +) / Double(count) }
}
