public import Foundation
package import ImprintCore
public import ImprintModel

/// A page about a training run: how well the model does and where it fails, its curves, its photos and how to repeat it.
///
/// One HTML file that needs nothing else, the photos in it included: no scripts, no fonts, no network. Light and dark follow
/// the reader's system. docs/report.md tells how to read it.
///
/// ```swift
/// let evaluation = try classifier.evaluate(on: ImageFolder(at: photos))
/// try Report(classifier.weights, evaluation: evaluation).write(to: URL(filePath: "report.html"))
/// ```
public struct Report: Sendable {
    /// The page.
    public let html: String

    /// Makes the page for a trained model; reads the photos that it shows.
    ///
    /// A photo that cannot be read any more leaves a place that says why.
    /// - Parameters:
    ///   - weights: The model.
    ///   - evaluation: What the model says of photos that it was not trained on, by the labels of `weights`. Without it, the
    ///     page has no confusion matrix, no reliability and no mistakes.
    ///   - audit: What is remarkable about the data set.
    ///   - command: The command line that repeats the run.
    ///   - remark: What is to be said of that command.
    ///   - seconds: How long training took.
    ///   - threads: The number of threads that share the work.
    public init(
        _ weights: ModelFile, evaluation: Evaluation? = nil, audit: Audit? = nil, command: String? = nil,
        remark: String? = nil, seconds: Double? = nil, threads: Int = 1
    ) {
        self.init(
            weights, evaluation: evaluation, audit: audit, command: command, remark: remark, seconds: seconds,
            workers: Workers(threads))
    }

    package init(
        _ weights: ModelFile, evaluation: Evaluation? = nil, audit: Audit? = nil, command: String? = nil,
        remark: String? = nil, seconds: Double? = nil, workers: Workers
    ) {
        precondition(
            evaluation.map { $0.labels == weights.labels } ?? true,
            "the evaluation is one of the labels \(evaluation?.labels ?? []), the model has \(weights.labels)")
        let record = weights.training
        var labels = ""
        if let evaluation { labels += LabelMetricsTable.html(evaluation) }
        labels += LabelMetricsTable.curves(
            evaluation?.precisionRecall ?? record?.precisionRecall ?? [:],
            thresholds: record?.thresholds ?? evaluation?.thresholds ?? [:], labels: weights.labels)
        let sections = [
            Section("curves", "Training curves", TrainingCurves.html(record?.history ?? [], kept: record?.kept)),
            Section(
                "confusion", "Confusion matrix",
                evaluation.map { ConfusionTable.html(labels: $0.labels, matrix: $0.confusion) } ?? ""),
            Section("labels", "Results by label", labels),
            Section(
                "reliability", "Reliability",
                evaluation.map { ReliabilityDiagram.html($0, calibration: record?.calibration) } ?? ""),
            Section(
                "mistakes", "Mistakes", evaluation.map { Gallery(weights, workers: workers).html($0) } ?? ""),
            Section(
                "photos", "Data set",
                DataSection.html(
                    record, labels: weights.labels, marks: weights.detector?.marks.map(\.label) ?? [], audit: audit)),
            Section("settings", "Settings", Page.table(Self.settings(weights))),
            Section(
                "repeat", "Repeat this run",
                command.map { command in
                    "<pre>\(escaped(command))</pre>" + (remark.map { "\n<p>\(escaped($0))</p>" } ?? "")
                } ?? ""),
        ].filter { !$0.html.isEmpty }
        let name = Self.name(weights)
        html =
            Page(
                title: "\(weights.network.name): \(name)", kind: .trainingReport,
                header: ReportHead(
                    weights, name: name, evaluation: evaluation, seconds: seconds,
                    links: sections.map { ($0.id, $0.title) }
                ).html,
                body: sections.map { Page.section($0.title, id: $0.id, $0.html) }.joined(separator: "\n")
            ).html
    }

    /// Writes the page to a file.
    /// - Throws: `FileError` if it cannot be written.
    public func write(to url: URL) throws { try AtomicFile.write(Array(html.utf8), to: url) }

    private struct Section {
        let id: String
        let title: String
        let html: String

        init(_ id: String, _ title: String, _ html: String) { (self.id, self.title, self.html) = (id, title, html) }
    }

    /// The labels, or how many there are.
    private static func name(_ weights: ModelFile) -> String {
        weights.labels.count <= 6 ? weights.labels.joined(separator: ", ") : "\(weights.labels.count) labels"
    }

    private static func calibration(_ weights: ModelFile) -> String {
        if let detector = weights.detector {
            let curves = detector.marks.map { mark in
                (detector.marks.count > 1 ? "\(mark.label): " : "")
                    + "slope \(compact(Double(mark.slope), digits: 3)), offset \(compact(Double(mark.offset), digits: 3))"
            }
            return "logistic, \(curves.joined(separator: "; "))"
        }
        return weights.training?.calibration.map { "temperature \(compact($0.temperature, digits: 4))" } ?? "none"
    }

    private static func fineTuning(_ record: TrainingRecord) -> [(String, String)] {
        var rows: [(String, String)] = []
        if let trains = record.trains { rows.append(("trained of the base", trains.rawValue)) }
        if let fineTuning = record.fineTuning {
            rows += [
                ("layer decay", "\(fineTuning.layerDecay)"), ("epochs of a stage", "\(fineTuning.stageEpochs)"),
                ("statistics of norms", fineTuning.keepsStatistics ? "kept" : "of the batch"),
            ]
        }
        return rows
    }

    /// The hyperparameters, in words.
    private static func settings(_ record: TrainingRecord) -> [(String, String)] {
        switch record.hyperparameters {
        case .classifier(let values):
            let rate = record.foundLearningRate ?? values.learningRate
            return [
                ("batch size", "\(values.batchSize)"), ("learning rate", rate.map { "\($0)" } ?? "auto"),
                ("momentum", "\(values.momentum)"), ("weight decay", "\(values.weightDecay)"),
                ("label smoothing", "\(values.labelSmoothing)"),
                (
                    "augmentation",
                    values.augmentation.names.isEmpty ? "none" : values.augmentation.names.joined(separator: ",")
                ), ("class weights", values.labelWeights.rawValue),
                ("average", values.averageDecay.map { "\($0)" } ?? "none"),
            ]
        case .detector(let values):
            let optimizer = values.optimizer
            return [
                ("batch size", "\(values.batchSize)"),
                (
                    "optimizer",
                    "AdamW, β \(optimizer.beta1) and \(optimizer.beta2), weight decay \(optimizer.weightDecay); learning rates as the curve shows"
                ), ("average", "\(values.averageDecay)"),
            ]
        }
    }

    private static func settings(_ weights: ModelFile) -> [(String, String)] {
        let input = weights.preprocessing
        let recipe = weights.recipe.map { [("recipe", $0.summary)] } ?? []
        var rows =
            recipe + [
                (
                    "network",
                    "\(weights.network.name), \(counted(weights.parameters.layout.trainableCount, "parameter"))"
                ),
                (
                    "input",
                    "\(input.width)x\(input.height) pixels, \(input.channels == 1 ? "grey" : "colour"), \(input.cropAndScale.rawValue)"
                ),
            ]
        if let record = weights.training {
            rows.append(
                (
                    "epochs",
                    "\(record.history.count) of \(record.epochs)"
                        + (record.keptEpoch.map { ", epoch \($0) is kept" } ?? "")
                ))
            rows += settings(record)
            rows += fineTuning(record)
            rows += [
                ("calibration", calibration(weights)),
                ("seed", "\(record.seed)"), ("data set", record.dataDigest ?? "unknown"),
            ]
        }
        if let base = weights.base { rows.append(("base", base)) }
        if let digest = weights.digest { rows.append(("weights", digest)) }
        return rows
    }
}
