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
    let photos: any TrainingSource
    /// The command that repeats the run, for the report.
    let command: [String]
    /// The base model or the network of a classifier, as a sentence; nil for a detector.
    var startingPoint: String?
    /// The labels of a detector's logos; nil for a classifier.
    var logos: [String]?

    /// How a complete cross-validation ended.
    struct Outcome {
        /// Whether all files are where the options say, also those of the kept folds.
        var hasAllFiles = true
        /// The first error of writing results to standard output.
        var outputError: (any Error)?

        /// Reports results that could not be written; call it after the model is trained and written.
        /// - Throws: The error of standard output; `ExitCode` 1 if a file is not where the options say.
        func check() throws {
            if let outputError { throw outputError }
            if !hasAllFiles { throw ExitCode.failure }
        }
    }

    /// Runs the cross-validation, and prints a row for each fold and the pooled metrics.
    /// - Throws: `ExitCode` 130 after an interruption, or 1 if a file is not there; the errors of training, after the results of the folds that
    ///   were finished before; for an interrupted run, also the error of standard output.
    func run(_ validation: CrossValidation) async throws -> Outcome {
        var monitor = CrossValidationMonitor(json: options.common.json, startingPoint: startingPoint, logos: logos)
        defer { monitor.clear() }
        // While photos are compared, there is nothing to save, so Ctrl-C ends the process.
        let interrupt = Interrupt()
        var finished: CrossValidationResult?
        var failure: (any Error)?
        var hasAllFiles = true
        do {
            for try await event in validation.start(shouldStop: { Interrupt.isRequested }) {
                if case .started = event { interrupt.begin() }
                if case .finished(let result) = event { finished = result }
                if case .foldNotSaved = event { hasAllFiles = false }
                monitor.show(event)
            }
        } catch {
            failure = error
        }
        guard let result = finished else { throw failure ?? ExitCode.failure }
        interrupt.end()
        do {
            hasAllFiles = try writeFiles(result) && hasAllFiles
        } catch {
            guard failure != nil else { throw error }
            Terminal.fail("\(error)")
        }
        guard !result.isComplete else {
            if let failure { throw failure }
            return Outcome(hasAllFiles: hasAllFiles, outputError: monitor.outputError)
        }
        Terminal.note(
            (failure == nil ? "Interrupted" : "Failed")
                + " after \(counted(result.folds.count, "fold"))."
                + (options.crossValidation.keep.map { folder in
                    (result.folds.isEmpty ? " To continue" : " To continue with the finished folds in \(folder)")
                        + ", \(failure == nil ? "" : "fix the error and ")repeat the command."
                } ?? ""))
        throw failure ?? monitor.outputError ?? (hasAllFiles ? Interrupt.exitCode : ExitCode.failure)
    }

    /// Writes the predictions and the report.
    /// - Returns: Whether all of them are in the chosen folders.
    private func writeFiles(_ result: CrossValidationResult) throws -> Bool {
        guard !result.folds.isEmpty else { return true }
        var hasAllFiles = true
        func write(_ chosenPath: String, _ kind: OutputKind, _ write: (URL) throws -> Void) throws {
            let file = try writeResult(to: chosenPath, kind, write)
            Terminal.note("Wrote \(file.path).")
            if file.isElsewhere { hasAllFiles = false }
        }
        if let predictions = options.crossValidation.predictions, canWrite(predictions, result) {
            let table = Array(PredictionTable(result, photos).csv.utf8)
            try write(predictions, .predictionTable) { try AtomicFile.write(table, to: $0) }
        }
        if let report = options.report, canWrite(report, result) {
            let page = Report(
                result, command: command.map(shellQuoted).joined(separator: " "), threads: options.common.threadCount)
            try write(report, options.reportKind) { try page.write(to: $0) }
        }
        return hasAllFiles
    }

    /// Whether to write a file: the results of an interrupted or failed run do not replace earlier ones, which may be complete.
    private func canWrite(_ path: String, _ result: CrossValidationResult) -> Bool {
        guard !result.isComplete, FileManager.default.fileExists(atPath: path) else { return true }
        Terminal.warn("Did not replace \(path), because the cross-validation is not complete.")
        return false
    }
}

/// The predictions of a cross-validation as CSV (RFC 4180), with rows that end in a line feed.
///
/// Semicolons separate the labels of a photo, as in a list of photos.
struct PredictionTable {
    let csv: String

    /// - Parameter photos: The photos, whose paths the table contains.
    init(_ result: CrossValidationResult, _ photos: any TrainingSource) {
        let (labels, paths) = (result.pooled.evaluation.labels, photos.pathsByURL)
        func names(_ indices: [Int]) -> String { indices.map { labels[$0] }.joined(separator: ";") }
        var rows = [OutputKind.predictionTableHeader + csvRow(labels)]
        for fold in result.folds {
            for photo in fold.result.predictions {
                rows.append(
                    csvRow(
                        [
                            "\(fold.seed)", "\(fold.number)", paths[photo.url] ?? photo.url.displayPath,
                            names(photo.labels), names(photo.predicted), photo.labels == photo.predicted ? "1" : "0",
                        ] + photo.confidences.map { "\($0)" }))
            }
        }
        csv = rows.map { $0 + "\n" }.joined()
    }
}
