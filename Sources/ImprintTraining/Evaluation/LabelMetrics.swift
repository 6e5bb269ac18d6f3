internal import ImprintModel

extension Evaluation {
    /// How one label fared, against all others.
    public struct LabelMetrics: Codable, Hashable, Sendable {
        /// The label.
        public let label: String
        /// The share of images given this label that bear it; nil if none was given it.
        public let precision: Double?
        /// The share of images bearing this label that were given it; nil if none bears it.
        public let recall: Double?
        /// 2·right / (given + borne), the harmonic mean of precision and recall; nil if none bears it or was given it.
        public let f1: Double?
        /// The area under the curve that `Evaluation.rocCurve(of:)` gives; nil if all images bear it, or none.
        public let auc: Double?
        /// The mean of the precisions at each confidence, weighted by how much recall grows there; nil if none bears it.
        public let averagePrecision: Double?
        /// How many images bear it.
        public let count: Int

        private enum CodingKeys: String, CodingKey {
            case label, precision, recall, f1, auc, averagePrecision, count
        }

        /// Writes all keys, `null` if there is no value.
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

    /// Means over labels, each counting the same, whatever the number of its images.
    public struct MacroAverages: Codable, Hashable, Sendable {
        /// The mean precision.
        public let precision: Double
        /// The mean recall.
        public let recall: Double
        /// The mean F1.
        public let f1: Double
    }

    /// What can be counted of a label.
    private struct Counts {
        var right = 0
        var given = 0
        var borne = 0

        var precision: Double? { quotient(right, given) }
        var recall: Double? { quotient(right, borne) }
        var f1: Double? { quotient(2 * right, given + borne) }

        private func quotient(_ count: Int, _ total: Int) -> Double? {
            total > 0 ? Double(count) / Double(total) : nil
        }
    }

    private var counts: [Counts] {
        var counts = Array(repeating: Counts(), count: labels.count)
        for result in results {
            let predicted = result.predicted
            counts[result.label].borne += 1
            counts[predicted].given += 1
            if predicted == result.label { counts[predicted].right += 1 }
        }
        return counts
    }

    /// Precision, recall, F1, area under the ROC curve and average precision of every label.
    public var perLabel: [LabelMetrics] {
        counts.enumerated().map { place, counts in
            let ranking = Ranking(results, label: place)
            return LabelMetrics(
                label: labels[place], precision: counts.precision, recall: counts.recall, f1: counts.f1,
                auc: ranking.auc, averagePrecision: ranking.averagePrecision, count: counts.borne)
        }
    }

    /// Precision, recall and F1, averaged over the labels that some image bears or was given.
    ///
    /// What does not exist for one of them counts as 0, as with scikit-learn's `zero_division=0`. All are 0 where there are
    /// no images.
    public var macroAverages: MacroAverages {
        let seen = counts.filter { $0.borne + $0.given > 0 }
        func mean(_ value: (Counts) -> Double?) -> Double { seen.map { value($0) ?? 0 }.mean ?? 0 }
        return MacroAverages(precision: mean(\.precision), recall: mean(\.recall), f1: mean(\.f1))
    }

    /// The mean recall of the labels that some image bears: an accuracy in which each label counts the same.
    ///
    /// It is 0 if there are no images.
    public var balancedAccuracy: Double { counts.compactMap(\.recall).mean ?? 0 }

    /// The area under the ROC curve of the second of two labels; `nil` for other numbers of labels, or where a label has no
    /// images.
    public var auc: Double? { labels.count == 2 ? Ranking(results, label: 1).auc : nil }
}

extension [Double] {
    fileprivate var mean: Double? { isEmpty ? nil : reduce(0, +) / Double(count) }
}
