internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

extension Report {
    /// The maximum number of mistakes that the page of a cross-validation shows.
    private static let mistakeLimit = 24

    /// Creates the page of a cross-validation, and reads the photos that it shows.
    ///
    /// It has the metrics of the folds and of the pooled predictions, but neither training curves nor saliency maps, which belong to one
    /// model. For multi-label models and detectors on annotated photos, it omits the confusion matrix, the reliability diagram and the
    /// mistakes.
    /// - Parameters:
    ///   - result: The result, with at least one finished fold.
    ///   - command: The command line that repeats the run.
    ///   - threads: The number of threads.
    public init(_ result: CrossValidationResult, command: String? = nil, threads: Int = 1) {
        var parts: [(id: String, title: String, html: String)] = [("folds", "Folds", Self.folds(result))]
        switch result.pooled {
        case .singleLabel(let evaluation, _):
            parts += [
                (
                    "confusion", "Confusion matrix",
                    ConfusionTable.html(labels: evaluation.labels, matrix: evaluation.confusion)
                ),
                (
                    "labels", "Results by label",
                    LabelMetricsTable.html(evaluation)
                        + LabelMetricsTable.curves(
                            evaluation.precisionRecall, thresholds: evaluation.thresholds, labels: evaluation.labels)
                ),
                ("reliability", "Reliability", ReliabilityDiagram.html(evaluation, calibration: nil)),
                ("mistakes", "Mistakes", Self.mistakes(evaluation, Workers(threads))),
            ]
        case .multiLabel(let evaluation, _):
            // The models have different thresholds; the curves show those with the highest F1 on the pooled predictions.
            let best = MultiLabelEvaluation(labels: evaluation.labels, results: evaluation.results, skipped: [])
            parts.append(
                (
                    "labels", "Results by label",
                    LabelMetricsTable.html(evaluation)
                        + LabelMetricsTable.curves(
                            best.precisionRecall, thresholds: best.thresholdsByLabel, labels: best.labels)
                ))
        case .detection(let evaluation, _):
            parts.append(
                (
                    "labels", "Results by label",
                    LabelMetricsTable.html(evaluation)
                        + LabelMetricsTable.curves(
                            evaluation.metrics.precisionRecall, thresholds: [:], labels: evaluation.metrics.labels,
                            threshold: nil)
                ))
        }
        parts.append(("repeat", "Repeat this run", command.map { "<pre>\(escaped($0))</pre>" } ?? ""))
        let sections = parts.filter { !$0.html.isEmpty }
        let labels = result.pooled.evaluation.labels
        let name = labels.count <= 6 ? labels.joined(separator: ", ") : "\(labels.count) labels"
        html =
            Page(
                title: "Cross-validation: \(name)", kind: .crossValidationReport,
                header: Self.header(result, name: name, links: sections.map { ($0.id, $0.title) }),
                body: sections.map { Page.section($0.title, id: $0.id, $0.html) }.joined(separator: "\n")
            ).html
    }

    /// The metric in the header of the page.
    private struct Score {
        let estimate: CrossValidationResult.Estimate?
        /// The rest of a sentence that begins with the value.
        let meaning: String

        init(_ pooled: PooledEvaluation) {
            let predictions = groupedCount(pooled.evaluation.imageCount, "prediction")
            switch pooled {
            case .singleLabel(_, let metrics):
                estimate = metrics?.accuracy
                meaning = "of \(predictions) are correct"
            case .multiLabel(_, let metrics):
                estimate = metrics?.meanAveragePrecision
                meaning = "mean average precision (mAP) of \(predictions)"
            case .detection(let evaluation, let metrics):
                estimate = metrics?.meanAveragePrecision50
                meaning =
                    "mean average precision (mAP@.5) of \(groupedCount(evaluation.metrics.objectCount, "object")) in "
                    + groupedCount(evaluation.metrics.photoCount, "photo")
            }
        }
    }

    private static func header(
        _ result: CrossValidationResult, name: String, links: [(id: String, title: String)]
    ) -> String {
        let score = Score(result.pooled)
        let seeds = Set(result.folds.map(\.seed)).count
        let number = score.estimate.map { estimate in
            """
            <div><p class="score">\(percent(estimate.value))</p>
            <p>\(score.meaning)<br>\
            <span class="more">95 % confidence interval: \(interval(estimate.interval)), a bootstrap over \
            \(groupedCount(result.groups, "group")) of photos</span></p></div>
            """
        }
        var facts = [("folds", grouped(result.folds.count))]
        if seeds > 1 { facts.append(("seeds", grouped(seeds))) }
        for (over, value) in result.pooled.deviations {
            facts.append(("standard deviation over \(over)", percent(value)))
        }
        let skipped = result.pooled.evaluation.skipped.count
        if skipped > 0 { facts.append(("unreadable photos", grouped(skipped))) }
        facts.append(("training time", clockTime(result.folds.reduce(0) { $0 + $1.seconds })))
        let links = links.map { "<li><a href=\"#\($0.id)\">\(escaped($0.title))</a></li>" }
        return """
            <header>
            <p class="kind">Cross-validation\(result.isComplete ? "" : ", incomplete")</p>
            <h1>\(isolated(name))</h1>
            <div class="head">
            \(number ?? "")
            <dl>\(facts.map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }.joined())</dl>
            </div>
            <nav aria-label="Sections of this page"><ul>\(links.joined())</ul></nav>
            </header>
            """
    }

    private static func interval(_ range: ClosedRange<Double>) -> String {
        "\(percent(range.lowerBound)) to \(percent(range.upperBound))"
    }

    private static func folds(_ result: CrossValidationResult) -> String {
        let showsSeeds = Set(result.folds.map(\.seed)).count > 1
        func row(_ name: String, _ count: Int, _ cells: [String]) -> String {
            "<tr><th scope=\"row\">\(name)</th>\(([grouped(count)] + cells).map { "<td>\($0)</td>" }.joined())</tr>"
        }
        let rows = result.folds.map { fold in
            row(
                showsSeeds ? "\(fold.seed)/\(fold.number)" : "\(fold.number)", fold.result.imageCount,
                cells(fold.result))
        }
        let pooled = cells(result.pooled).map { row("all", result.pooled.evaluation.imageCount, $0) }
        let (metrics, note): ([String], String) =
            switch result.pooled {
            case .singleLabel:
                (
                    ["accuracy", "95 % interval", "log loss", "ECE", "AUC"],
                    "The intervals of the folds (Wilson) treat photos as independent; the interval of all folds is a bootstrap over groups of "
                        + "near-duplicates and bursts."
                )
            case .multiLabel:
                (
                    ["mAP", "95 % interval", "micro F1", "macro F1"],
                    "The intervals of the folds treat photos as independent; the interval of all folds is a bootstrap over groups of "
                        + "near-duplicates and bursts. F1 uses the thresholds of each fold's model."
                )
            case .detection:
                (
                    ["mAP@.5", "95 % interval", "mAP@.5:.95", "precision", "recall"],
                    "The intervals of the folds treat photos as independent; the interval of all folds is a bootstrap over groups of "
                        + "near-duplicates and bursts. Precision and recall use the thresholds of each fold's model."
                )
            }
        let heads = ([showsSeeds ? "seed/fold" : "fold", "photos"] + metrics).map { "<th scope=\"col\">\($0)</th>" }
        let table = """
            <table class="numbers">
            <thead><tr>\(heads.joined())</tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            <tfoot>\(pooled ?? "")</tfoot>
            </table>
            """
        return Page.scrollBox("Folds", table) + "\n<p class=\"more\">\(note)</p>"
    }

    private static func number(_ value: Double) -> String { String(format: "%.4f", value) }

    /// Returns the metrics of a fold.
    private static func cells(_ evaluation: ModelEvaluation) -> [String] {
        switch evaluation {
        case .singleLabel(let evaluation):
            [
                percent(evaluation.accuracy), interval(evaluation.accuracyInterval), number(evaluation.logLoss),
                percent(evaluation.calibrationError), evaluation.auc.map(number) ?? "–",
            ]
        case .multiLabel(let evaluation):
            [
                percent(evaluation.meanAveragePrecision),
                evaluation.meanAveragePrecisionInterval().map(interval) ?? "–", percent(evaluation.microF1),
                percent(evaluation.macroF1),
            ]
        case .detection(let evaluation):
            [
                percent(evaluation.metrics.meanAveragePrecision50),
                evaluation.metrics.meanAveragePrecision50Interval().map(interval) ?? "–",
                percent(evaluation.metrics.meanAveragePrecision), percent(evaluation.operatingPoint.total.precision),
                percent(evaluation.operatingPoint.total.recall),
            ]
        }
    }

    /// Returns the metrics of all folds, or nil if no fold is finished.
    private static func cells(_ pooled: PooledEvaluation) -> [String]? {
        switch pooled {
        case .singleLabel(_, let metrics):
            metrics.map { metrics in
                [
                    percent(metrics.accuracy.value), interval(metrics.accuracy.interval),
                    number(metrics.logLoss.value), percent(metrics.calibrationError.value),
                    metrics.auc.map { number($0.value) } ?? "–",
                ]
            }
        case .multiLabel(_, let metrics):
            metrics.map { metrics in
                [
                    percent(metrics.meanAveragePrecision?.value),
                    metrics.meanAveragePrecision.map { interval($0.interval) } ?? "–", percent(metrics.microF1.value),
                    percent(metrics.macroF1.value),
                ]
            }
        case .detection(_, let metrics):
            metrics.map { metrics in
                [
                    percent(metrics.meanAveragePrecision50?.value),
                    metrics.meanAveragePrecision50.map { interval($0.interval) } ?? "–",
                    percent(metrics.meanAveragePrecision), percent(metrics.precision?.value),
                    percent(metrics.recall?.value),
                ]
            }
        }
    }

    /// Returns the most confident mistakes.
    private static func mistakes(_ evaluation: Evaluation, _ workers: Workers) -> String {
        let labels = evaluation.labels
        let shown = evaluation.worstMistakes(mistakeLimit)
        guard !shown.isEmpty else { return "<p>No mistakes.</p>" }
        let thumbnails = workers.parallelMap(shown.count) { index in
            Result { () throws(ImageError) in try Thumbnail(of: shown[index].url) }
        }
        let figures = zip(shown, thumbnails).map { mistake, thumbnail in
            let name = mistake.url.lastPathComponent
            let content =
                switch thumbnail {
                case .success(let image): image.html(alternative: name)
                case .failure(let error): "<div class=\"missing\">\(isolated("\(error)"))</div>"
                }
            let confidence = wholePercent(Double(mistake.confidences[mistake.predicted]))
            return """
                <figure>\(content)<figcaption><p><strong>\(isolated(labels[mistake.label]))</strong>, misclassified as \
                <strong>\(isolated(labels[mistake.predicted]))</strong> (\(confidence))</p>\
                <p class="file">\(isolated(name))</p></figcaption></figure>
                """
        }
        let count = evaluation.results.count { !$0.isCorrect }
        return """
            <p>\(grouped(count)) of \(groupedCount(evaluation.results.count, "prediction")) \(count == 1 ? "is" : "are") wrong. These are \
            the most confident ones.</p>
            <div class="gallery">
            \(figures.joined(separator: "\n"))
            </div>
            """
    }
}
