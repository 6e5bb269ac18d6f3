internal import Foundation

extension LabelMetricsTable {
    /// Returns the table of a detector: average precisions, precision and recall at the thresholds, and the number of objects.
    static func html(_ evaluation: DetectionEvaluation) -> String {
        let (metrics, point) = (evaluation.metrics, evaluation.operatingPoint)
        func row(_ head: String, _ label: [Double?], _ counts: DetectionMetrics.Counts, objects: Int) -> String {
            let values = label + [counts.precision, counts.recall]
            return "<tr><th scope=\"row\">\(head)</th>" + values.map { "<td>\(percent($0))</td>" }.joined()
                + [counts.truePositives, counts.falsePositives, counts.falseNegatives, objects]
                .map { "<td>\(grouped($0))</td>" }.joined() + "</tr>"
        }
        let rows = zip(metrics.perLabel, point.perLabel).map { label, counts in
            row(
                isolated(label.label), [label.averagePrecision50, label.averagePrecision], counts,
                objects: label.objectCount)
        }
        let total = row(
            "all labels", [metrics.meanAveragePrecision50, metrics.meanAveragePrecision], point.total,
            objects: metrics.objectCount)
        let heads = ["label", "AP@.5", "AP@.5:.95", "precision", "recall", "found", "false", "missed", "objects"]
            .map { "<th scope=\"col\">\($0)</th>" }
        let table = """
            <table class="numbers">
            <thead><tr>\(heads.joined())</tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            <tfoot>\(total)</tfoot>
            </table>
            """
        let empty = point.falsePositivesPerEmptyPhoto.map {
            " Photos without objects have \(String(format: "%.2f", $0)) false positives on average."
        }
        return Page.scrollBox("Results by label", table)
            + "\n<p class=\"more\">AP@.5: the average precision of boxes that overlap an object with an IoU of at least .5. AP@.5:.95: the mean "
            + "over the IoU thresholds .50, .55 … .95. Precision, recall and the counts use the thresholds of the model and an IoU "
            + "of .5.\(empty ?? "")</p>"
    }
}
