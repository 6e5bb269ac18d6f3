internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintLive
internal import ImprintModel
internal import ImprintTraining

/// Runs a trainer from start to finish: progress, interruption, model file and report.
struct TrainingSession {
    let options: TrainingRunOptions
    /// The training photos; nil for artwork only.
    let photos: (any TrainingSource)?
    let validationFolder: URL?
    /// The labels of a detector's logos; nil for a classifier.
    var logos: [String]?
    /// The options of the base model; nil for a detector.
    var base: TrainingBaseOptions?
    /// The command that repeats the run, for the report.
    let command: [String]

    /// Runs the trainer, and writes the model and the report.
    /// - Throws: `ExitCode` 130 after an interruption, if the model or a checkpoint is saved; `ExitCode` 1 if too few photos are readable at
    ///   the end, training diverged, the last checkpoint could not be saved, the model or the report could only be saved elsewhere, or the
    ///   model lacks features of training photos; the errors of training.
    func run(_ trainer: any BlockingTrainer, epochs: Int, patience: Int? = nil) async throws {
        if let ignored = photos?.ignored, let note = noteOnIgnored(ignored) { Terminal.warn(note) }
        let live = options.watch && TrainingProcesses.isFirst ? try await LiveServer(port: options.port) : nil
        if let live { Terminal.always("Watch the run at \(live.url)") }
        var monitor = TrainingMonitor(
            epochs: epochs, patience: patience, json: options.common.json,
            savesCheckpoints: options.checkpoint != nil, isCrossValidated: options.crossValidation.folds != nil,
            base: base, logos: logos)
        do {
            try await train(trainer, &monitor, live)
        } catch {
            monitor.clear()
            await live?.finish(error is ExitCode ? nil : error)
            if case ImprintError.stoppedTooEarly(_?) = error {
                Terminal.fail("Error: \(error)")
                if let hint = hint(for: error) { Terminal.fail("  \(hint)") }
                throw Interrupt.exitCode
            }
            throw error
        }
        await live?.finish()
    }

    private func train(
        _ trainer: any BlockingTrainer, _ monitor: inout TrainingMonitor, _ live: LiveServer?
    ) async throws {
        // While photos are read, there is nothing to save, so Ctrl-C ends the process.
        let interrupt = Interrupt()
        var result: TrainingResult?
        var resumed: TrainingStart.Resumption?
        // The first process decides for all.
        let isFirst = TrainingProcesses.isFirst
        for try await event in trainer.start(shouldStop: { isFirst && Interrupt.isRequested }) {
            if case .started(let start) = event {
                interrupt.begin()
                resumed = start.resumed
                if options.resume && start.resumed == nil {
                    Terminal.note("There is no checkpoint in \(options.checkpoint ?? "") yet; starting a new run.")
                }
            }
            if case .finished(let finished) = event { result = finished }
            monitor.show(event)
            live?.show(event)
        }
        guard let result else { throw ExitCode.failure }
        guard isFirst else { return }
        guard let chosenOutput = options.output else { preconditionFailure("a training run must have an output file") }
        var model = result.model
        options.details.apply(to: &model)
        let output: WrittenResult<String>
        do {
            let completion = completion(of: result, resumed) { ownRunState(of: $0, model) }
            output = try writeResult(to: chosenOutput, .model, completion: completion) { try model.write(to: $0) }
        } catch {
            // The last state of a diverged run is not saved.
            if let checkpoint = options.checkpoint, result.checkpointFailure == nil, result.divergence == nil {
                Terminal.note(
                    "The run is saved in \(checkpoint). Run again with --resume to write the model. If \(chosenOutput) is the model of "
                        + "another run, move it away first: the resumed run does not replace it.")
            }
            throw error
        }
        interrupt.end()
        try monitor.finish(result, output: output.path)
        // With folds, the report describes the cross-validation.
        var isElsewhere = output.isElsewhere
        if let report = options.report, options.crossValidation.folds == nil {
            // On a separate thread, because the threads of Swift concurrency serve the page of --watch.
            let isReportElsewhere = try await onDedicatedThread { [resumed] in try write(report, of: result, resumed) }
            isElsewhere = isElsewhere || isReportElsewhere
        }
        if isElsewhere { throw ExitCode.failure }
        if result.ending == .stopped { throw Interrupt.exitCode }
        if result.photoError != nil || result.divergence != nil || result.checkpointFailure != nil
            || result.featureFailure != nil
        {
            throw ExitCode.failure
        }
    }

    /// Returns the state of the run of the model at `url`; nil if it is not a model as training writes it.
    ///
    /// Models that quantize, export or merge have made from the model of a run have its record, too.
    private func ownRunState(of url: URL, _ model: ModelFile) -> String? {
        guard let earlier = try? ModelFile(contentsOf: url), earlier.storage == model.storage,
            earlier.baseDigest == model.baseDigest, earlier.categories == model.categories
        else { return nil }
        return earlier.training?.runState
    }

    /// Returns how far a run came.
    ///
    /// If it ended early, or was resumed and trained no further epoch, its files replace only files of the same run after the same or fewer
    /// epochs.
    /// - Parameter runState: Returns the state of the run of a file (`TrainingRecord.runState`); nil if the file does not have it.
    private func completion(
        of result: TrainingResult, _ resumed: TrainingStart.Resumption?, runState: @escaping (URL) -> String?
    ) -> Completion {
        let record = result.model.training
        let job: String
        if result.ending.isEarly {
            job = "a run that ended early"
        } else if let resumed, resumed.history.count == record?.history.count {
            job = "a resumed run that had nothing left to train"
        } else {
            return .complete
        }
        return .ownFilesOnly(job: job) { file in
            guard let record, let earlier = runState(file) else { return false }
            return record.continues(runState: earlier)
        }
    }

    /// Writes the report.
    /// - Returns: Whether it could not be written to the chosen path, so that it is in another folder.
    private func write(
        _ report: String, of result: TrainingResult, _ resumed: TrainingStart.Resumption?
    ) throws -> Bool {
        var bar = ProgressBar()
        defer { bar.clear() }
        let workers = Workers(options.common.threadCount)
        var audit: Audit?
        // Unreadable photos cannot be audited.
        if let photos, result.photoError == nil {
            let validation = try validationFolder.map { try validationPhotos(at: $0, for: photos, logos: logos) }
            let total = photos.items.count + (validation?.items.count ?? 0)
            audit = Audit(photos, validation: validation, workers: workers) {
                bar.draw("auditing", done: $0, of: total)
            }
        }
        let page = Report(
            result.model, evaluation: result.modelEvaluation, audit: audit,
            command: command.map(shellQuoted).joined(separator: " "),
            remark: result.isRepeatable
                ? nil
                : "This run had a time limit, stopped before its last epoch, could not read a photo, or resumed from a checkpoint "
                    + "with other photos, another number of epochs or a lower patience. Running the command again may "
                    + "give a different model.",
            seconds: result.seconds, workers: workers)
        bar.clear()
        let completion = completion(of: result, resumed) { ImprintModel.OutputFile.runState(ofReport: $0) }
        let file = try writeResult(to: report, options.reportKind, completion: completion) { try page.write(to: $0) }
        return file.isElsewhere
    }
}

/// Returns a note about the ignored files of a data set, or nil without any.
func noteOnIgnored(_ files: [URL]) -> String? {
    guard let first = files.first.map({ visible($0.displayPath) }) else { return nil }
    return files.count == 1
        ? "Ignored 1 file that is not an image, or that is not in the folder of a label: \(first)."
        : "Ignored \(files.count) files that are not images, or that are not in the folder of a label, such as \(first)."
}
