internal import Foundation
internal import ImprintCore
internal import ImprintTraining

/// Formats a cross-validation as text: a row of at most 80 columns for each fold and for all folds, and the pooled metrics.
enum CrossValidationTable {
    /// Returns the header of the table.
    static func header(_ evaluation: ModelEvaluation) -> String {
        switch evaluation {
        case .singleLabel:
            row("fold", "photos", ["accuracy", "95 % interval", "log loss", "ECE", "AUC"], "time")
        case .multiLabel: row("fold", "photos", ["mAP", "micro F1", "macro F1"], "time")
        case .detection: row("fold", "photos", ["mAP@.5", "mAP@.5:.95", "precision", "recall"], "time")
        }
    }

    /// Returns the row of a fold.
    static func row(_ fold: CrossValidationFold, showsSeeds: Bool) -> String {
        let metrics =
            switch fold.result {
            case .singleLabel(let evaluation):
                [
                    Terminal.percent(evaluation.accuracy), text(evaluation.accuracyInterval),
                    number(evaluation.logLoss), Terminal.percent(evaluation.calibrationError),
                    number(evaluation.auc),
                ]
            case .multiLabel(let evaluation):
                [
                    number(evaluation.meanAveragePrecision), Terminal.percent(evaluation.microF1),
                    Terminal.percent(evaluation.macroF1),
                ]
            case .detection(let evaluation):
                [
                    number(evaluation.metrics.meanAveragePrecision50), number(evaluation.metrics.meanAveragePrecision),
                    LabelTable.share(evaluation.operatingPoint.total.precision),
                    LabelTable.share(evaluation.operatingPoint.total.recall),
                ]
            }
        return row(
            showsSeeds ? "\(fold.seed)/\(fold.number)" : "\(fold.number)", "\(fold.result.imageCount)", metrics,
            fold.wasRestored ? "kept" : clockTime(fold.seconds))
    }

    /// Returns the row of all folds and the pooled metrics with their intervals, or nil if no fold is finished.
    static func summary(_ result: CrossValidationResult) -> String? {
        switch result.pooled {
        case .singleLabel(_, let metrics): metrics.map { summary(result, $0) }
        case .multiLabel(_, let metrics): metrics.map { summary(result, $0) }
        case .detection(_, let metrics): metrics.map { summary(result, $0) }
        }
    }

    private static func summary(
        _ result: CrossValidationResult, _ metrics: CrossValidationResult.Metrics
    ) -> String {
        let all = [
            Terminal.percent(metrics.accuracy.value), text(metrics.accuracy.interval), number(metrics.logLoss.value),
            Terminal.percent(metrics.calibrationError.value), number(metrics.auc?.value),
        ]
        var lines = [
            row(result, all), "",
            "accuracy \(Terminal.percent(metrics.accuracy.value)) (95 % interval \(text(metrics.accuracy.interval))), \(pooling(result))",
            "log loss \(number(metrics.logLoss)), "
                + "ECE \(Terminal.percent(metrics.calibrationError.value)) (\(text(metrics.calibrationError.interval)))"
                + (metrics.auc.map { ", AUC \(number($0))" } ?? ""),
        ]
        lines += deviationLine(result, of: "accuracy") { Terminal.percent($0) }
        return lines.joined(separator: "\n")
    }

    private static func summary(
        _ result: CrossValidationResult, _ metrics: CrossValidationResult.MultiLabelMetrics
    ) -> String {
        let all = [
            number(metrics.meanAveragePrecision?.value), Terminal.percent(metrics.microF1.value),
            Terminal.percent(metrics.macroF1.value),
        ]
        let precision =
            metrics.meanAveragePrecision.map { "\(number($0.value)) (95 % interval \(range($0.interval)))" }
            ?? "–"
        var lines = [
            row(result, all), "",
            "mAP \(precision), micro F1 \(Terminal.percent(metrics.microF1.value)) (\(text(metrics.microF1.interval))), \(pooling(result))",
        ]
        lines += deviationLine(result, of: "mAP") { number($0) }
        return lines.joined(separator: "\n")
    }

    private static func summary(
        _ result: CrossValidationResult, _ metrics: CrossValidationResult.DetectorMetrics
    ) -> String {
        let all = [
            number(metrics.meanAveragePrecision50?.value), number(metrics.meanAveragePrecision),
            LabelTable.share(metrics.precision?.value), LabelTable.share(metrics.recall?.value),
        ]
        func share(_ estimate: CrossValidationResult.Estimate?) -> String {
            estimate.map { "\(Terminal.percent($0.value)) (\(text($0.interval)))" } ?? "–"
        }
        var lines = [
            row(result, all), "",
            "mAP@.5 "
                + (metrics.meanAveragePrecision50.map { "\(number($0.value)) (95 % interval \(range($0.interval)))" }
                    ?? "–")
                + ", \(pooling(result))",
            "precision \(share(metrics.precision)), recall \(share(metrics.recall))",
        ]
        lines += deviationLine(result, of: "mAP@.5") { number($0) }
        return lines.joined(separator: "\n")
    }

    /// Returns a line with the standard deviations of a metric over folds and seeds; none if there are too few of them.
    private static func deviationLine(
        _ result: CrossValidationResult, of metric: String, _ format: (Double) -> String
    ) -> [String] {
        let deviations = result.pooled.deviations.map { "\(format($0.value)) over \($0.over)" }
        guard !deviations.isEmpty else { return [] }
        return ["standard deviation of the \(metric): " + deviations.joined(separator: ", ")]
    }

    /// Returns the row of all folds.
    private static func row(_ result: CrossValidationResult, _ metrics: [String]) -> String {
        row(
            "all", "\(result.pooled.evaluation.imageCount)", metrics,
            clockTime(result.folds.reduce(0) { $0 + $1.seconds }))
    }

    private static func pooling(_ result: CrossValidationResult) -> String {
        let repeats = Set(result.folds.map(\.seed)).count
        let folds = counted(result.folds.count, "fold")
        return "pooled over \(folds)" + (repeats > 1 ? " of \(repeats) seeds" : "")
            + "; bootstrap over \(counted(result.groups, "group")) of photos"
    }

    private static func text(_ interval: ClosedRange<Double>) -> String {
        String(format: "%.1f to %.1f %%", interval.lowerBound * 100, interval.upperBound * 100)
    }

    private static func range(_ interval: ClosedRange<Double>) -> String {
        "\(number(interval.lowerBound)) to \(number(interval.upperBound))"
    }

    private static func number(_ value: Double?) -> String { value.map { String(format: "%.4f", $0) } ?? "–" }

    private static func number(_ estimate: CrossValidationResult.Estimate) -> String {
        "\(number(estimate.value)) (\(range(estimate.interval)))"
    }

    /// Formats a row of the table, which is 80 columns wide for models with one label per photo.
    private static func row(_ fold: String, _ photos: String, _ metrics: [String], _ time: String) -> String {
        let widths =
            switch metrics.count {
            case 5: [8, 8, 10, 17, 10, 9, 9, 9]
            case 4: [8, 8, 10, 12, 11, 10, 9]
            default: [8, 8, 10, 10, 10, 9]
            }
        return zip([fold, photos] + metrics + [time], widths).map { cell, width in
            String(repeating: " ", count: max(width - cell.count, 1)) + cell
        }.joined()
    }
}
