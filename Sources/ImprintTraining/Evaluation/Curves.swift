public import ImprintModel

extension Evaluation {
    /// One point of a ROC curve.
    public struct ROCPoint: Codable, Hashable, Sendable {
        /// The least confidence that counts as a hit; infinite at the first point, where nothing is one.
        public let threshold: Double
        /// The share of hits among the images that do not bear the label.
        public let falsePositiveRate: Double
        /// The share of hits among the images that bear the label.
        public let truePositiveRate: Double
    }

    /// The ROC curve of a label, from no hits to nothing but hits; nil if all images bear it, or none.
    ///
    /// Every confidence that was given is a threshold once, from high to low, as in scikit-learn's `roc_curve` with
    /// `drop_intermediate=False`. The area under it is the chance that an image of the label is given more confidence in it
    /// than one of another label, ties counting half (Mann and Whitney, 1947).
    public func rocCurve(of label: String) -> [ROCPoint]? { Ranking(results, label: place(of: label)).rocCurve }

    /// The precision–recall curve of a label, by rising thresholds; nil if no image bears it.
    ///
    /// Every confidence that was given is a threshold once, as in scikit-learn's `precision_recall_curve`; the point (1, 0)
    /// without a threshold that this adds at the end is left out.
    public func precisionRecallCurve(of label: String) -> [TrainingRecord.PrecisionRecallPoint]? {
        Ranking(results, label: place(of: label)).precisionRecallCurve
    }

    private func place(of label: String) -> Int {
        guard let place = labels.firstIndex(of: label) else {
            preconditionFailure("\(label.debugDescription) is none of the evaluation's labels")
        }
        return place
    }
}

/// The images by falling confidence in one label: what curves and areas are made of.
struct Ranking {
    /// What is a hit where `threshold` is the least confidence that counts as one.
    struct Step {
        let threshold: Float
        /// The hits that bear the label, and those that do not.
        let right: Int
        let wrong: Int
    }

    /// One step for each confidence that was given, from high to low; the last has all images.
    let steps: [Step]
    /// How many images bear the label, and how many do not.
    let positives: Int
    let negatives: Int

    init(_ results: [Evaluation.Result], label: Int) {
        let sorted = results.map { (confidence: $0.confidences[label], isPositive: $0.label == label) }
            .sorted { $0.confidence > $1.confidence }
        var steps: [Step] = []
        var (right, wrong) = (0, 0)
        for (place, image) in sorted.enumerated() {
            if image.isPositive { right += 1 } else { wrong += 1 }
            // Images with equal confidences are hits together.
            if place + 1 == sorted.count || sorted[place + 1].confidence != image.confidence {
                steps.append(Step(threshold: image.confidence, right: right, wrong: wrong))
            }
        }
        self.steps = steps
        (positives, negatives) = (right, wrong)
    }

    var rocCurve: [Evaluation.ROCPoint]? {
        guard positives > 0 && negatives > 0 else { return nil }
        let none = Evaluation.ROCPoint(threshold: .infinity, falsePositiveRate: 0, truePositiveRate: 0)
        return [none]
            + steps.map { step in
                Evaluation.ROCPoint(
                    threshold: Double(step.threshold), falsePositiveRate: Double(step.wrong) / Double(negatives),
                    truePositiveRate: Double(step.right) / Double(positives))
            }
    }

    var auc: Double? {
        guard positives > 0 && negatives > 0 else { return nil }
        var (right, wrong, area) = (0, 0, 0.0)
        for step in steps {
            area += Double(step.wrong - wrong) * Double(step.right + right) / 2
            (right, wrong) = (step.right, step.wrong)
        }
        return area / (Double(positives) * Double(negatives))
    }

    var precisionRecallCurve: [TrainingRecord.PrecisionRecallPoint]? {
        guard positives > 0 else { return nil }
        return steps.reversed().map { step in
            TrainingRecord.PrecisionRecallPoint(
                threshold: Double(step.threshold), precision: Double(step.right) / Double(step.right + step.wrong),
                recall: Double(step.right) / Double(positives))
        }
    }

    var averagePrecision: Double? {
        guard positives > 0 else { return nil }
        var (right, sum) = (0, 0.0)
        for step in steps {
            sum += Double(step.right - right) * Double(step.right) / Double(step.right + step.wrong)
            right = step.right
        }
        return sum / Double(positives)
    }
}
