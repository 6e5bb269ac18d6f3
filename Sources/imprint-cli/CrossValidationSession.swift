internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintInterop
internal import ImprintTraining

/// Runs a cross-validation from start to finish: progress, interruption, results, predictions and report.
struct CrossValidationSession {
    let options: TrainingRunOptions
    let folder: ImageFolder
    /// The command that repeats the run, for the report.
    let command: [String]

    /// Runs the cross-validation, and prints a row for each fold and the pooled metrics.
    /// - Throws: `ExitCode` 130 after an interruption; the errors of training.
    func run(_ validation: CrossValidation) async throws {
        var monitor = CrossValidationMonitor(json: options.common.json)
        defer { monitor.clear() }
        // While photos are compared, there is nothing to save, so Ctrl-C ends the process.
        let interrupt = Interrupt()
        var finished: CrossValidationResult?
        for try await event in validation.start(shouldStop: { Interrupt.isRequested }) {
            if case .started = event { interrupt.begin() }
            if case .finished(let result) = event { finished = result }
            try monitor.show(event)
        }
        guard let result = finished else { throw ExitCode.failure }
        interrupt.end()
        try writeFiles(result)
        guard result.isComplete else {
            Terminal.note(
                "Interrupted after \(result.folds.count == 1 ? "1 fold" : "\(result.folds.count) folds")."
                    + (options.crossValidation.keep.map { " They are in \($0); repeat the command to continue." } ?? "")
            )
            throw Interrupt.exitCode
        }
    }

    private func writeFiles(_ result: CrossValidationResult) throws {
        guard !result.folds.isEmpty else { return }
        if let predictions = options.crossValidation.predictions {
            let path = vacantPath(predictions, .predictionTable)
            try AtomicFile.write(Array(PredictionTable(result, folder).csv.utf8), to: URL(filePath: path))
            Terminal.note("Wrote \(path).")
        }
        if let report = options.report {
            let path = vacantPath(report, .trainingReport)
            let page = Report(
                result, command: command.map(shellQuoted).joined(separator: " "), threads: options.common.threadCount)
            try page.write(to: URL(filePath: path))
            Terminal.note("Wrote \(path).")
        }
    }
}

/// The predictions of a cross-validation as CSV (RFC 4180).
struct PredictionTable {
    let csv: String

    /// - Parameter folder: The photos, to which the paths are relative.
    init(_ result: CrossValidationResult, _ folder: ImageFolder) {
        let labels = result.evaluation.labels
        var lines = [OutputKind.predictionTableHeader + labels.map(Self.quoted).joined(separator: ",")]
        for fold in result.folds {
            for photo in fold.evaluation.results {
                let path = folder.path(of: ImageFolder.Item(url: photo.url, label: photo.label))
                let fields =
                    ["\(fold.seed)", "\(fold.number)", Self.quoted(path)]
                    + [Self.quoted(labels[photo.label]), Self.quoted(labels[photo.predicted])]
                    + [photo.isCorrect ? "1" : "0"] + photo.confidences.map { "\($0)" }
                lines.append(fields.joined(separator: ","))
            }
        }
        csv = lines.joined(separator: "\r\n") + "\r\n"
    }

    /// Returns a field, quoted if it has a comma, a quotation mark or a line break.
    private static func quoted(_ field: String) -> String {
        field.unicodeScalars.contains { ",\"\r\n".unicodeScalars.contains($0) }
            ? "\"" + field.replacing("\"", with: "\"\"") + "\"" : field
    }
}
