public import ImprintModel

extension Evaluation {
    /// One point of a ROC curve.
    public struct ROCPoint: Codable, Hashable, Sendable {
        /// The minimum confidence of a positive prediction; infinite at the first point, which has no positive predictions.
        public let threshold: Double
        /// The fraction of images of other labels that are predicted positive.
        public let falsePositiveRate: Double
        /// The fraction of images of the label that are predicted positive.
        public let truePositiveRate: Double
    }

    /// Returns the ROC curve of a label, from (0, 0) to (1, 1); nil if all images have the label, or none.
    ///
    /// Each distinct confidence is a threshold, in descending order, as in scikit-learn's `roc_curve` with `drop_intermediate=False`.
    /// The area under the curve is the probability that an image of the label gets a higher confidence than another image; ties count
    /// half (Mann and Whitney, 1947).
    public func rocCurve(of label: String) -> [ROCPoint]? { Ranking(results, label: index(of: label)).rocCurve }

    /// Returns the precision–recall curve of a label, by ascending thresholds; nil if no image has the label.
    ///
    /// Each distinct confidence is a threshold, as in scikit-learn's `precision_recall_curve`, but without the point (1, 0) at its end.
    public func precisionRecallCurve(of label: String) -> [TrainingRecord.PrecisionRecallPoint]? {
        Ranking(results, label: index(of: label)).precisionRecallCurve
    }

    private func index(of label: String) -> Int {
        guard let index = labels.firstIndex(of: label) else {
            preconditionFailure("\(label.debugDescription) is not a label of the evaluation")
        }
        return index
    }
}

/// The images by descending confidence in one label, from which curves and areas are computed.
struct Ranking {
    /// The counts of positive predictions at one threshold.
    struct Step {
        /// The minimum confidence of a positive prediction.
        let threshold: Float
        let truePositives: Int
        let falsePositives: Int
    }

    /// One step for each distinct confidence, in descending order; the last step has all images.
    let steps: [Step]
    /// The number of images with the label.
    let positives: Int
    /// The number of images without the label.
    let negatives: Int

    init(_ results: [Evaluation.Result], label: Int) {
        self.init(results.map { ($0.confidences[label], $0.label == label) })
    }

    /// - Parameter images: The confidence of each image in the label, and whether it has the label.
    init(_ images: [(confidence: Float, isPositive: Bool)]) {
        let sorted =
            images
            .sorted { $0.confidence > $1.confidence }
        var steps: [Step] = []
        var (truePositives, falsePositives) = (0, 0)
        for (index, image) in sorted.enumerated() {
            if image.isPositive { truePositives += 1 } else { falsePositives += 1 }
            // Images with equal confidences share a step.
            if index + 1 == sorted.count || sorted[index + 1].confidence != image.confidence {
                steps.append(
                    Step(threshold: image.confidence, truePositives: truePositives, falsePositives: falsePositives))
            }
        }
        self.steps = steps
        (positives, negatives) = (truePositives, falsePositives)
    }

    var rocCurve: [Evaluation.ROCPoint]? {
        guard positives > 0 && negatives > 0 else { return nil }
        let origin = Evaluation.ROCPoint(threshold: .infinity, falsePositiveRate: 0, truePositiveRate: 0)
        return [origin]
            + steps.map { step in
                Evaluation.ROCPoint(
                    threshold: Double(step.threshold),
                    falsePositiveRate: Double(step.falsePositives) / Double(negatives),
                    truePositiveRate: Double(step.truePositives) / Double(positives))
            }
    }

    var auc: Double? {
        guard positives > 0 && negatives > 0 else { return nil }
        var (truePositives, falsePositives, area) = (0, 0, 0.0)
        for step in steps {
            area += Double(step.falsePositives - falsePositives) * Double(step.truePositives + truePositives) / 2
            (truePositives, falsePositives) = (step.truePositives, step.falsePositives)
        }
        return area / (Double(positives) * Double(negatives))
    }

    var precisionRecallCurve: [TrainingRecord.PrecisionRecallPoint]? {
        guard positives > 0 else { return nil }
        return steps.reversed().map { step in
            TrainingRecord.PrecisionRecallPoint(
                threshold: Double(step.threshold),
                precision: Double(step.truePositives) / Double(step.truePositives + step.falsePositives),
                recall: Double(step.truePositives) / Double(positives))
        }
    }

    var averagePrecision: Double? {
        guard positives > 0 else { return nil }
        var (truePositives, sum) = (0, 0.0)
        for step in steps {
            let predicted = step.truePositives + step.falsePositives
            sum += Double(step.truePositives - truePositives) * Double(step.truePositives) / Double(predicted)
            truePositives = step.truePositives
        }
        return sum / Double(positives)
    }
}
