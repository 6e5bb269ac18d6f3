internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

struct EvaluateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "evaluate", abstract: "Evaluate a model on labelled or annotated photos.",
        discussion: """
            Examples:
              imprint evaluate m.imprint test.csv
              imprint evaluate m.imprint photos --unknown others
              imprint evaluate logos.imprint --annotations boxes.json --report r.html
            """)

    @Argument(help: "The model file.")
    var model: String

    @Argument(
        help: ArgumentHelp(
            "The photos: a folder with one sub-folder per label, or a CSV or JSON list. With --annotations: the folder of the photos, if they "
                + "are not beside the annotations."))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "The bounding boxes of photos, to evaluate a detector: a file or folder in COCO, Create ML, YOLO or Pascal VOC format. From "
                + "data.yaml, evaluate reads test or, without it, val.",
            valueName: "file"))
    var annotations: String?

    @Flag(help: "Show the worst mistakes; with --json, the prediction for every photo.")
    var images = false

    @Option(help: ArgumentHelp("An HTML report of the evaluation to write.", valueName: "file.html"))
    var report: String?

    @OptionGroup var unknownPhotos: UnknownPhotosOption

    @OptionGroup var classifierOptions: ClassifierOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, data, annotations].compactMap { $0 })
        if data == nil && annotations == nil {
            throw ValidationError("There are no photos. Name a folder or list of photos, or --annotations FILE.")
        }
        if annotations != nil {
            if unknownPhotos.unknown != nil {
                throw ValidationError("--unknown is not available with --annotations. Leave out one of them.")
            }
        }
        try checkOutputs(
            [report].compactMap { $0 }.map { OutputFile(option: "--report", path: $0, kind: .evaluationReport) },
            inputs: [("the model", model)]
                + [classifierOptions.personalization].compactMap { $0 }.map { ("the personalization", $0) }
                + [annotations].compactMap { $0 }.map { ("the annotations", $0) })
    }

    func run() throws {
        if let report { try AtomicFile.checkWritable(URL(filePath: report)) }
        let classifier = try classifierOptions.classifier(model, threads: 1)
        let unknown = try unknownPhotos.photos(for: classifier, model)
        try hinting({ hint(after: $0, of: classifier) }) {
            if let annotations {
                try runDetector(classifier, annotations)
            } else {
                try runClassifier(classifier, data ?? "", unknown: unknown)
            }
        }
    }

    /// Returns the option that helps after an error: other subcommands lack it, or the error has other causes there.
    private func hint(after error: any Error, of classifier: ImageClassifier) -> String? {
        switch error {
        case ImprintError.labelMismatch where classifierOptions.personalization == nil:
            "If a personalization added the labels, pass it with --personalization."
        case ImageError.noLabelFolders where classifier.model.head.locatesObjects:
            "For photos with boxes, --annotations names a file or folder of boxes instead of labels."
        default: nil
        }
    }

    /// Evaluates a model on labelled photos.
    /// - Parameter files: Photos that show none of the labels; nil without --unknown.
    private func runClassifier(_ classifier: ImageClassifier, _ data: String, unknown files: [URL]?) throws {
        let folder = try labelledPhotos(at: URL(filePath: data), minimumLabels: 1, knownLabels: classifier.labels)
        try unknownPhotos.check(files, folder)
        if classifier.model.isMultiLabel || (folder.isMultiLabel && !classifier.confidencesSumToOne) {
            return try runMultiLabel(classifier, folder)
        }
        var bar = ProgressBar()
        defer { bar.clear() }
        let evaluation = try classifier.evaluate(on: folder, threads: common.threadCount) { done in
            bar.draw("evaluating", done: done, of: folder.items.count)
        }
        bar.clear()
        let unknown = try unknownPhotos.acceptance(of: files, by: classifier, threads: common.threadCount)
        for image in evaluation.skipped { Terminal.warn("Skipped: \(image.reason)") }
        if common.json {
            if images {
                for result in evaluation.results { try Terminal.emit(ImageLine(result, labels: evaluation.labels)) }
            }
            try Terminal.emit(MergedLine(EvaluationLine(evaluation, unknown: unknown), PrecisionLine(classifier)))
        } else {
            let table = EvaluationTable(evaluation)
            let parts = [table.text] + (images ? [table.worstMistakes(10)] : []) + [unknown?.text].compactMap { $0 }
            try Terminal.show(parts.joined(separator: "\n\n"))
        }
        try writeReport(of: .singleLabel(evaluation), classifier)
    }
}

extension EvaluateCommand {
    /// Writes the report, if there is a path for it.
    ///
    /// Call it after printing the results, so that they are not lost if the report cannot be written.
    /// - Throws: `ExitCode` 1 if the report could only be saved in another folder; the errors of making and writing it.
    func writeReport(of evaluation: ModelEvaluation, _ classifier: ImageClassifier) throws {
        guard let report else { return }
        let command =
            ["imprint", "evaluate", self.model] + [data].compactMap { $0 } + option("--annotations", annotations)
            + option("--personalization", classifierOptions.personalization)
            + flag("--mirror", classifierOptions.mirror)
            + option("--precision", classifierOptions.precisionOptions.precision?.rawValue)
        let page = try Report(
            classifier, kind: .evaluationReport, evaluation: evaluation,
            command: command.map(shellQuoted).joined(separator: " "), workers: Workers(common.threadCount))
        let file = try writeResult(to: report, .evaluationReport) { try page.write(to: $0) }
        Terminal.note("Wrote \(file.path).")
        if file.isElsewhere { throw ExitCode.failure }
    }
}

/// The precision of the predictions that were evaluated.
struct PrecisionLine: Encodable {
    let numericPrecision: Precision

    init(_ classifier: ImageClassifier) { numericPrecision = classifier.precision }
}

private struct ImageLine: Encodable {
    let event = "image"
    let file: String
    let label: String
    let predicted: String
    let correct: Bool
    let classifications: [Classification]

    private enum CodingKeys: String, CodingKey {
        case event, file, label, predicted, correct
        case classifications = "observations"
    }

    init(_ result: Evaluation.Result, labels: [String]) {
        file = result.url.path(percentEncoded: false)
        label = labels[result.label]
        predicted = labels[result.predicted]
        correct = result.isCorrect
        classifications = result.classifications(labels: labels)
    }
}

private struct EvaluationLine: Encodable {
    let accuracy: Double
    let accuracyInterval: [Double]
    /// `null` for up to five labels.
    @NullIfMissing var top5: Double?
    let macroPrecision: Double
    let macroRecall: Double
    let macroF1: Double
    let balancedAccuracy: Double
    let logLoss: Double
    let calibrationError: Double
    let images: Int
    let labels: [String]
    let confusion: [[Int]]
    let perLabel: [Evaluation.LabelMetrics]
    /// `null` unless there are two labels and images of both.
    @NullIfMissing var auc: Double?
    let skipped: [SkippedLine]
    /// Only with --unknown.
    let unknown: UnknownLine?

    init(_ evaluation: Evaluation, unknown: UnknownLine?) {
        self.unknown = unknown
        accuracy = evaluation.accuracy
        accuracyInterval = [evaluation.accuracyInterval.lowerBound, evaluation.accuracyInterval.upperBound]
        top5 = evaluation.labels.count > 5 ? evaluation.topAccuracy(5) : nil
        let averages = evaluation.macroAverages
        macroPrecision = averages.precision
        macroRecall = averages.recall
        macroF1 = averages.f1
        balancedAccuracy = evaluation.balancedAccuracy
        logLoss = evaluation.logLoss
        calibrationError = evaluation.calibrationError
        images = evaluation.results.count
        labels = evaluation.labels
        confusion = evaluation.confusion
        perLabel = evaluation.perLabel
        auc = evaluation.labels.count == 2 ? evaluation.auc : nil
        skipped = evaluation.skipped.map(SkippedLine.init)
    }
}
