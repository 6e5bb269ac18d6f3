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
    /// It has the metrics of the folds and of the pooled predictions, but neither training curves nor saliency maps, which belong to one model.
    /// - Parameters:
    ///   - result: The result, with at least one finished fold.
    ///   - command: The command line that repeats the run.
    ///   - threads: The number of threads.
    public init(_ result: CrossValidationResult, command: String? = nil, threads: Int = 1) {
        let evaluation = result.evaluation
        let parts: [(id: String, title: String, html: String)] = [
            ("folds", "Folds", Self.folds(result)),
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
            ("mistakes", "Mistakes", Self.mistakes(result, Workers(threads))),
            ("repeat", "Repeat this run", command.map { "<pre>\(escaped($0))</pre>" } ?? ""),
        ]
        let sections = parts.filter { !$0.html.isEmpty }
        let name =
            evaluation.labels.count <= 6
            ? evaluation.labels.joined(separator: ", ") : "\(evaluation.labels.count) labels"
        html =
            Page(
                title: "Cross-validation: \(name)", kind: .trainingReport,
                header: Self.header(result, name: name, links: sections.map { ($0.id, $0.title) }),
                body: sections.map { Page.section($0.title, id: $0.id, $0.html) }.joined(separator: "\n")
            ).html
    }

    private static func header(
        _ result: CrossValidationResult, name: String, links: [(id: String, title: String)]
    ) -> String {
        let seeds = Set(result.folds.map(\.seed)).count
        let number = result.metrics.map { metrics in
            """
            <div><p class="score">\(percent(metrics.accuracy.value))</p>
            <p>of \(counted(result.evaluation.results.count, "prediction")) are correct<br>\
            <span class="more">95 % confidence interval: \(percent(metrics.accuracy.interval.lowerBound)) to \
            \(percent(metrics.accuracy.interval.upperBound)), a bootstrap over \(counted(result.groups, "group")) of photos</span></p></div>
            """
        }
        var facts = [("folds", grouped(result.folds.count))]
        if seeds > 1 { facts.append(("seeds", grouped(seeds))) }
        if let deviation = result.metrics?.foldDeviation {
            facts.append(("standard deviation over folds", percent(deviation)))
        }
        if let deviation = result.metrics?.seedDeviation {
            facts.append(("standard deviation over seeds", percent(deviation)))
        }
        if !result.evaluation.skipped.isEmpty {
            facts.append(("unreadable photos", grouped(result.evaluation.skipped.count)))
        }
        facts.append(("training time", clockTime(result.folds.reduce(0) { $0 + $1.seconds })))
        let links = links.map { "<li><a href=\"#\($0.id)\">\(escaped($0.title))</a></li>" }
        return """
            <header>
            <p class="kind">Cross-validation\(result.isComplete ? "" : ", interrupted")</p>
            <h1>\(isolated(name))</h1>
            <div class="head">
            \(number ?? "")
            <dl>\(facts.map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }.joined())</dl>
            </div>
            <nav aria-label="Sections of this page"><ul>\(links.joined())</ul></nav>
            </header>
            """
    }

    private static func folds(_ result: CrossValidationResult) -> String {
        func row(_ name: String, _ cells: [String]) -> String {
            "<tr><th scope=\"row\">\(name)</th>\(cells.map { "<td>\($0)</td>" }.joined())</tr>"
        }
        func interval(_ range: ClosedRange<Double>) -> String {
            "\(percent(range.lowerBound)) to \(percent(range.upperBound))"
        }
        func number(_ value: Double) -> String { String(format: "%.4f", value) }
        let showsSeeds = Set(result.folds.map(\.seed)).count > 1
        let rows = result.folds.map { fold in
            let evaluation = fold.evaluation
            return row(
                showsSeeds ? "\(fold.seed)/\(fold.number)" : "\(fold.number)",
                [
                    grouped(evaluation.results.count), percent(evaluation.accuracy),
                    interval(evaluation.accuracyInterval), number(evaluation.logLoss),
                    percent(evaluation.calibrationError), evaluation.auc.map(number) ?? "–",
                ])
        }
        let pooled = result.metrics.map { metrics in
            row(
                "all",
                [
                    grouped(result.evaluation.results.count), percent(metrics.accuracy.value),
                    interval(metrics.accuracy.interval), number(metrics.logLoss.value),
                    percent(metrics.calibrationError.value), metrics.auc.map { number($0.value) } ?? "–",
                ])
        }
        let table = """
            <table class="numbers">
            <thead><tr><th scope="col">\(showsSeeds ? "seed/fold" : "fold")</th><th scope="col">photos</th>\
            <th scope="col">accuracy</th><th scope="col">95 % interval</th><th scope="col">log loss</th><th scope="col">ECE</th>\
            <th scope="col">AUC</th></tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            <tfoot>\(pooled ?? "")</tfoot>
            </table>
            """
        return Page.scrollBox("Folds", table)
            + "\n<p class=\"more\">The intervals of the folds (Wilson) treat photos as independent; that of all folds is a bootstrap over "
            + "groups of near-duplicates and bursts.</p>"
    }

    /// Returns the most confident mistakes.
    private static func mistakes(_ result: CrossValidationResult, _ workers: Workers) -> String {
        let (evaluation, labels) = (result.evaluation, result.evaluation.labels)
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
            <p>\(grouped(count)) of \(counted(evaluation.results.count, "prediction")) \(count == 1 ? "is" : "are") wrong. These are \
            the most confident ones.</p>
            <div class="gallery">
            \(figures.joined(separator: "\n"))
            </div>
            """
    }
}
