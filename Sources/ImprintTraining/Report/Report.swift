public import Foundation
public import Imprint
package import ImprintCore
public import ImprintModel

/// An HTML report of a training run: metrics, training curves, mistakes, the data set and the command that repeats the run.
///
/// The page is one self-contained file with thumbnails of the photos, without scripts, external fonts or other network requests. docs/how-to/report.md
/// explains how to read it.
///
/// ```swift
/// let evaluation = try classifier.evaluate(on: ImageFolder(at: photos))
/// try Report(classifier, evaluation: .singleLabel(evaluation)).write(to: URL(filePath: "report.html"))
/// ```
public struct Report: Sendable {
    /// The HTML of the page.
    public let html: String

    /// Creates the page for a classifier or detector with its personalization, and reads the photos that it shows.
    ///
    /// The page shows an error message instead of an unreadable photo.
    /// - Parameters:
    ///   - classifier: The classifier or detector.
    ///   - evaluation: The evaluation on photos that the model was not trained on. That of a classifier must have the labels of `classifier`.
    ///     The page has a confusion matrix and a reliability diagram only for `ModelEvaluation.singleLabel(_:)`. The page lists mistakes,
    ///     except for `ModelEvaluation.multiLabel(_:)`.
    ///   - audit: The audit of the data set.
    ///   - command: The command line that repeats the run.
    ///   - remark: A note about the command.
    ///   - seconds: The training time in seconds.
    ///   - threads: The number of threads.
    /// - Throws: `NetworkError` if there is not enough memory to apply the personalization.
    public init(
        _ classifier: ImageClassifier, evaluation: ModelEvaluation? = nil, audit: Audit? = nil,
        command: String? = nil, remark: String? = nil, seconds: Double? = nil, threads: Int = 1
    ) throws {
        try self.init(
            classifier, kind: .trainingReport, evaluation: evaluation, audit: audit, command: command, remark: remark,
            seconds: seconds, workers: Workers(threads))
    }

    /// Creates the page of the given kind for a classifier or detector with its personalization.
    /// - Throws: `NetworkError` if there is not enough memory to apply the personalization.
    package init(
        _ classifier: ImageClassifier, kind: OutputFile.Page, evaluation: ModelEvaluation?, audit: Audit? = nil,
        command: String? = nil, remark: String? = nil, seconds: Double? = nil, workers: Workers
    ) throws {
        let model = try classifier.personalization.map { try classifier.model.personalized(with: $0) }
        self.init(
            model ?? classifier.model, kind: kind, evaluation: evaluation, audit: audit, command: command,
            remark: remark, seconds: seconds, workers: workers)
    }

    /// Creates the page for a trained model, and reads the photos that it shows.
    ///
    /// The page shows an error message instead of an unreadable photo.
    /// - Parameters:
    ///   - model: The model.
    ///   - evaluation: The evaluation on photos that the model was not trained on. That of a classifier must have the labels of `model`. A
    ///     personalization can add labels, so pass a personalized classifier instead of its model. The page has a confusion matrix and a
    ///     reliability diagram only for `ModelEvaluation.singleLabel(_:)`. The page lists mistakes, except for
    ///     `ModelEvaluation.multiLabel(_:)`.
    ///   - audit: The audit of the data set.
    ///   - command: The command line that repeats the run.
    ///   - remark: A note about the command.
    ///   - seconds: The training time in seconds.
    ///   - threads: The number of threads.
    public init(
        _ model: ModelFile, evaluation: ModelEvaluation? = nil, audit: Audit? = nil,
        command: String? = nil, remark: String? = nil, seconds: Double? = nil, threads: Int = 1
    ) {
        self.init(
            model, evaluation: evaluation, audit: audit, command: command, remark: remark, seconds: seconds,
            workers: Workers(threads))
    }

    package init(
        _ model: ModelFile, kind: OutputFile.Page = .trainingReport,
        evaluation modelEvaluation: ModelEvaluation? = nil, audit: Audit? = nil,
        command: String? = nil, remark: String? = nil, seconds: Double? = nil, workers: Workers
    ) {
        let (evaluation, multiLabel, detection) = (
            modelEvaluation?.singleLabel, modelEvaluation?.multiLabel, modelEvaluation?.detection
        )
        let evaluated = evaluation?.labels ?? multiLabel?.labels
        precondition(
            evaluated.map { $0 == model.labels } ?? true,
            "the evaluation has the labels \(evaluated ?? []), the model has \(model.labels)")
        let record = model.training
        // A record that describes another model does not have the metrics of this one.
        let ownRecord = record?.trainedModel == nil ? record : nil
        var labels = ""
        if let evaluation { labels += LabelMetricsTable.html(evaluation) }
        if let multiLabel { labels += LabelMetricsTable.html(multiLabel) }
        if let detection { labels += LabelMetricsTable.html(detection) }
        // Empty for pooled detections of several models, whose curves have no rings.
        let modelThresholds = detection?.thresholdsByLabel ?? record?.thresholds
        let ring: String? =
            if let modelThresholds {
                modelThresholds.isEmpty ? nil : "the threshold of the model"
            } else {
                "the threshold with the highest F1"
            }
        labels += LabelMetricsTable.curves(
            detection?.metrics.precisionRecall ?? evaluation?.precisionRecall ?? multiLabel?.precisionRecall
                ?? ownRecord?.precisionRecall ?? [:],
            thresholds: modelThresholds ?? evaluation?.thresholds ?? [:], labels: model.labels, threshold: ring)
        let sections = [
            Section(
                "curves", "Training curves\(record?.owner ?? "")",
                TrainingCurves.html(record?.history ?? [], record: record, unit: record?.unit ?? "epoch")),
            Section(
                "confusion", "Confusion matrix",
                evaluation.map { ConfusionTable.html(labels: $0.labels, matrix: $0.confusion) } ?? ""),
            Section("labels", "Results by label", labels),
            Section(
                "reliability", "Reliability",
                evaluation.map { ReliabilityDiagram.html($0, calibration: record?.calibration) } ?? ""),
            Section(
                "mistakes", "Mistakes",
                evaluation.map { Gallery(model, workers: workers).html($0) }
                    ?? detection.map { DetectionGallery($0, workers: workers).html() } ?? ""),
            Section(
                "photos", "Data set",
                DataSection.html(
                    record, labels: model.labels, logos: model.head.logos.map(\.label), audit: audit)),
            Section("settings", "Settings", Page.table(Self.settings(model))),
            Section(
                "repeat", "Repeat this run",
                command.map { command in
                    "<pre>\(escaped(command))</pre>" + (remark.map { "\n<p>\(escaped($0))</p>" } ?? "")
                } ?? ""),
        ].filter { !$0.html.isEmpty }
        let name = Self.name(model)
        html =
            Page(
                title: "\(model.network.name): \(name)", kind: kind,
                run: kind == .trainingReport ? record?.runState : nil,
                header: ReportHead(
                    model, kind: kind, name: name, evaluation: modelEvaluation, seconds: seconds,
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

    /// Returns the labels, or their number if there are many.
    private static func name(_ model: ModelFile) -> String {
        model.labels.count <= 6 ? model.labels.joined(separator: ", ") : "\(model.labels.count) labels"
    }

    private static func calibration(_ model: ModelFile) -> String {
        switch model.head {
        case .softmax, .sigmoid:
            return model.training?.calibration.map { "temperature \(compact($0.temperature, digits: 4))" } ?? "none"
        case .centerPoints, .anchors: return "none"
        case .detector(let detector):
            let curves = detector.logos.map { logo in
                (detector.logos.count > 1 ? "\(logo.label): " : "")
                    + "slope \(compact(Double(logo.slope), digits: 3)), offset \(compact(Double(logo.offset), digits: 3))"
            }
            return "Platt scaling, \(curves.joined(separator: "; "))"
        }
    }

    /// Returns the names and values of all hyperparameters that the training used.
    private static func settings(_ record: TrainingRecord) -> [(String, String)] {
        let (optimizer, texts): (String, [HyperparameterText]) =
            switch record.hyperparameters {
            case .classifier(let values):
                (
                    values.optimizer == .adamW ? "AdamW" : "SGD with Nesterov momentum",
                    HyperparameterText.list(values).filter { $0.property != "optimizer" }
                )
            case .detector(let values):
                ("AdamW; see the training curves for the learning rates", HyperparameterText.list(values))
            }
        let used = texts.filter { $0.property != "fineTuning" || record.fineTuning != nil }
        let foundRate = record.foundLearningRate.map { "\($0)" }
        return [("optimizer", optimizer)]
            + used.map { ($0.name, $0.property == "learningRate" ? foundRate ?? $0.value : $0.value) }
    }

    /// Returns the progress of the run, such as "3 of 20 epochs; the model is from epoch 2".
    private static func progress(_ record: TrainingRecord) -> String {
        progressText(record.history.count, of: record.epochs, record.unit)
            + (record.keepsInitialParameters
                ? "; the model is the fitted head, because fine-tuning was less accurate on the validation set"
                : record.keptEpoch.map { "; the model is from \(record.unit) \($0)" } ?? "")
    }

    private static func settings(_ model: ModelFile) -> [(String, String)] {
        let input = model.preprocessing
        let recipe = model.trainingKind.map { [("recipe", $0.summary)] } ?? []
        var rows =
            recipe + [
                (
                    "network",
                    "\(model.network.name), \(groupedCount(model.parameters.layout.trainableCount, "parameter"))"
                ),
                (
                    "input",
                    "\(input.width)x\(input.height) pixels, \(input.channels == 1 ? "grey" : "colour"), \(input.cropAndScale.rawValue)"
                ),
            ]
        if let record = model.training {
            rows.append(("training\(record.owner)", progress(record)))
            if let layers = record.trainableLayers { rows.append(("trainable layers", layers.rawValue)) }
            rows += settings(record)
            rows += [("calibration", calibration(model)), ("data set digest", record.dataDigest ?? "unknown")]
        }
        if let digest = model.baseDigest { rows.append(("base model digest", digest)) }
        if let digest = model.digest { rows.append(("model digest", digest)) }
        return rows
    }
}
