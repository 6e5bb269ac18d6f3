internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// Shows a training run: a progress bar in a terminal, a line per epoch, or JSON.
struct TrainingMonitor {
    private let plannedEpochs: Int
    private let patience: Int?
    private let json: Bool
    private let savesCheckpoints: Bool
    /// Whether the command has estimated the accuracy by cross-validation.
    private let isCrossValidated: Bool
    /// The options of the base model; nil for a detector.
    private let base: TrainingBaseOptions?
    /// The labels of a detector's logos; nil for a classifier.
    private let logos: [String]?
    private var pace = TrainingPace()
    private var imagesPerEpoch = 0
    private var started: TrainingStart?
    /// The best round so far whose validation result is comparable.
    private var bestRound: EpochMetrics?
    /// The validation accuracy of the fitted head, which the best round must reach; nil without a fitted head, or after a change of the photos.
    private var startAccuracy: Float?
    private var bar = ProgressBar()

    init(
        epochs: Int, patience: Int?, json: Bool, savesCheckpoints: Bool, isCrossValidated: Bool,
        base: TrainingBaseOptions?, logos: [String]?
    ) {
        self.base = base
        self.logos = logos
        self.savesCheckpoints = savesCheckpoints
        self.isCrossValidated = isCrossValidated
        plannedEpochs = epochs
        self.patience = patience
        self.json = json
    }

    mutating func show(_ event: TrainingEvent) {
        switch event {
        case .comparing(let done, let total): bar.draw("comparing", done: done, of: total)
        case .reading(let done, let total): bar.draw("reading", done: done, of: total)
        case .computingFeatures(let done, let total): bar.draw("features", done: done, of: total)
        case .started(let event): show(event)
        case .searching(let done, let total): bar.draw("learning rate", done: done, of: total)
        case .learningRate(let search): show(search)
        case .batch(let batch): show(batch)
        case .scanning(let done, let total): bar.draw("scanning", done: done, of: total)
        case .unreadable(let image):
            bar.clear()
            Terminal.warn("A photo has become unreadable: \(image.reason)")
        case .epoch(let metrics, let seconds): show(metrics, seconds)
        case .checkpointFailed(let error):
            bar.clear()
            Terminal.warn("Error: \("\(error)".sentence) Training continues.")
        case .checkpoint: break
        case .finished: bar.clear()
        }
    }

    /// Removes the progress bar before other lines.
    mutating func clear() { bar.clear() }

    private mutating func show(_ event: TrainingStart) {
        bar.clear()
        started = event
        startAccuracy = event.startAccuracy
        let imageCount = event.trainingImages + event.validationImages
        Terminal.note(
            imageCount == 0
                ? "There are no photos; all training images are composites of the artwork."
                : "Read \(photoSummary(imageCount, event.labels, logos: logos)): "
                    + "\(event.trainingImages) for training, \(event.validationImages) for validation.")
        Terminal.detail("Labels: \(shown(event.labels.filter { logos?.contains($0) ?? true })).")
        for image in event.skipped { Terminal.warn("Skipped: \(image.reason)") }
        if let leakage = event.leakage { show(leakage) }
        if event.validationImages == 0 {
            Terminal.note("There is no validation set; the reported accuracy is the training accuracy.")
        } else {
            warn(labelsWithoutValidation: event.labelsWithoutValidation)
        }
        let parameters =
            event.trainableParameterCount == event.parameterCount
            ? "\(event.parameterCount) parameters"
            : "\(event.trainableParameterCount) of \(event.parameterCount) parameters"
        if let decision = event.decision {
            Terminal.note("Recipe: \(decision).")
        } else if event.kind == .builtInBase, let reason = base?.reasonForBuiltInBase {
            Terminal.note("Recipe: fine-tune all layers of the base model that comes with Imprint, \(reason).")
        }
        Terminal.note("\(event.kind.summary): \(event.network), \(parameters), \(count(epochs)).")
        if event.decision?.evidence?.showsSmallObjects == true {
            Terminal.note(
                "Only a small part of each photo shows its label, and the accuracy is low. If the label is a logo, a detector is probably "
                    + "more accurate: imprint train-detector --artwork LABEL=FILE --photos FOLDER --output FILE. LABEL is the sub-folder with "
                    + "photos of the logo.")
        }
        // Without --base, training starts from an installed base model if there is one.
        if event.kind == .builtInBase, let base, base.base == nil {
            Terminal.note(
                "For ordinary photos, a pretrained base model is probably far more accurate: imprint models install efficientnet-lite0"
            )
        }
        if let resumed = event.resumed { show(resumed) }
        if let progress = event.replacedProgress {
            Terminal.warn(
                "This run replaces the checkpoint of a finished run (\(progress)); --resume would continue that run.")
        }
        if patience != nil && event.validationImages == 0 {
            Terminal.warn("Without a validation set, --patience has no effect.")
        }
    }

    private func warn(labelsWithoutValidation labels: [String]) {
        let known = labels.filter { logos?.contains($0) ?? true }
        if !known.isEmpty {
            Terminal.warn(
                "The validation set has no photo of \(TextTable.list(known)), so the validation accuracy does not include this label."
            )
        }
        if known.count < labels.count {
            Terminal.warn(
                "The validation set has no photo without a logo, so the validation accuracy does not include such photos."
            )
        }
    }

    private var epochs: Int { started?.epochs ?? plannedEpochs }

    private mutating func show(_ resumed: TrainingStart.Resumption) {
        let done = resumed.history.count
        let seen = resumed.imagesSeen > 0 ? " and \(counted(resumed.imagesSeen, trainingItem)) of the next" : ""
        Terminal.note("Resumed after \(count(done))\(seen).")
        bestRound = nil
        for metrics in resumed.history.dropFirst(started?.incomparableEpochs ?? 0) { _ = isBest(metrics) }
        if !resumed.hasSameImages {
            Terminal.warn(
                "The photos have changed since the checkpoint (\(resumed.changeDescription)): the \(unit) starts again, and the best "
                    + "\(unit) is chosen only from this one and later ones.")
        }
        if done >= epochs {
            let advice =
                isDetector || started?.decision?.recipe == .head
                ? "" : "; to train longer, raise --epochs above \(done)"
            Terminal.note("All \(unit)s are done\(advice).")
        }
    }

    private mutating func show(_ search: LearningRateSearch) {
        bar.clear()
        if let rate = search.learningRate { Terminal.note("Found a learning rate of \(rate).") }
        if search.endedEarly {
            Terminal.warn(
                "The time limit ended the learning-rate range test, so the learning rate is too low. Raise --time-limit or set "
                    + "--learning-rate.")
        }
    }

    private var isDetector: Bool { started?.kind.trainsDetector ?? false }
    private var unit: String { started?.kind.unit ?? "epoch" }
    private func count(_ epochs: Int) -> String { counted(epochs, unit) }
    /// Formats an epoch of the run; without the number of epochs if a resumed run has fewer.
    private func position(_ epoch: Int) -> String { "\(unit) \(epoch)" + (epoch > epochs ? "" : " of \(epochs)") }
    /// The word for an item of the training set, which may be a composite for a detector.
    private var trainingItem: String { isDetector ? "image" : "photo" }

    private func show(_ leakage: TrainingStart.Leakage) {
        switch leakage {
        case .avoided(let images, let total, _) where images > 0:
            Terminal.note(
                "Near-duplicates and bursts stay together in the dataset split; in a random split, \(images) of \(total) validation photos "
                    + "would resemble training photos.")
        case .found(let images, let total) where images > 0:
            Terminal.warn(
                "Warning: \(images) of \(total) validation photos \(images == 1 ? "is a near-duplicate" : "are near-duplicates") of training "
                    + "photos or of the same burst, so the "
                    + "validation accuracy is too high; imprint audit --validation lists them.")
        case .avoided, .found: break
        }
    }

    private mutating func show(_ batch: TrainingBatch) {
        imagesPerEpoch = batch.imagesPerEpoch
        startAccuracy = batch.startAccuracy
        pace.record(batch)
        guard Terminal.isInteractive, Terminal.verbosity > .quiet else { return }
        let left = pace.secondsLeft.map { "\(clockTime($0)) left" } ?? "…"
        bar.draw(
            "\(unit) \(batch.epoch)/\(batch.epochs)", fraction: Double(batch.imagesSeen) / Double(batch.imagesPerEpoch),
            "\(batch.imagesSeen)/\(batch.imagesPerEpoch)", left, "loss \(format(batch.loss))",
            pace.imagesPerSecond.map { "\(Int($0)) images/s" } ?? "…", "accuracy \(Terminal.percent(batch.accuracy))")
    }

    private mutating func show(_ metrics: EpochMetrics, _ seconds: Double) {
        bar.clear()
        if json {
            // Training continues even if the line cannot be written.
            try? Terminal.report(TrainingEpochLine(metrics, seconds))
            return
        }
        var line =
            "\(unit) \(metrics.epoch)/\(epochs)  loss \(format(metrics.loss))  accuracy \(Terminal.percent(metrics.accuracy))"
        if let loss = metrics.validationLoss, let accuracy = metrics.validationAccuracy {
            line += "  validation loss \(format(loss))  accuracy \(Terminal.percent(accuracy))"
            if let precision = metrics.validationAveragePrecision { line += "  mAP@.5:.95 \(format(precision))" }
        }
        line += String(format: "  %.1f s", seconds)
        // The head is trained on features that were computed before, so images per second would not measure the speed of training.
        if started?.kind != .head {
            line += String(format: "  %.0f images/s", Double(imagesPerEpoch) / max(seconds, 1e-9))
        }
        if Terminal.verbosity == .verbose { line += String(format: "  learning rate %.3g", metrics.learningRate) }
        Terminal.note((line, nil), (isBest(metrics) ? "  best" : "", .good))
    }

    /// Whether the validation result is the best so far.
    private mutating func isBest(_ metrics: EpochMetrics) -> Bool {
        guard metrics.validationLoss != nil, metrics.isAsAccurate(asStart: startAccuracy),
            bestRound.flatMap(metrics.isBetter) ?? true
        else { return false }
        bestRound = metrics
        return true
    }

    mutating func finish(_ result: TrainingResult, output: String) throws {
        guard let started, let record = result.model.training else { return }
        let line = TrainingFinishedLine(
            accuracy: record.accuracy ?? 0, epochs: record.history.count, seconds: result.seconds,
            images: started.trainingImages + started.validationImages, output: output, ending: result.ending,
            stopped: result.ending.isEarly,
            keptEpoch: record.bestEpochMetrics?.epoch ?? 0,
            trainingImages: started.trainingImages, validationImages: started.validationImages,
            leaked: started.leakage?.leaked, leaksAvoided: started.leakage?.avoided,
            recipe: started.decision?.recipe.rawValue, recipeReason: started.decision?.reason,
            changedPhotos: started.resumed.flatMap { $0.hasSameImages ? nil : ChangedPhotosLine($0) },
            calibration: record.calibration, skipped: started.skipped.map(SkippedLine.init),
            lost: result.unreadable.map(SkippedLine.init))
        if json {
            try Terminal.report(line)
        } else {
            let measured = started.validationImages > 0 ? "validation photo" : "training \(trainingItem)"
            Terminal.note(
                ("Wrote \(output)", .bold),
                (
                    ": accuracy \(Terminal.percent(line.accuracy)) on the \(measured)s, "
                        + "\(count(line.epochs)) in \(clockTime(line.seconds)).", nil
                ))
        }
        let hasAveragePrecision = record.history.contains { $0.validationAveragePrecision != nil }
        let criterion = hasAveragePrecision ? "highest mAP@.5:.95" : "lowest validation loss"
        show(result.ending, done: line.epochs, kept: line.keptEpoch, criterion, output)
        if let reason = result.photoError {
            Terminal.warn(
                "Error: training ended early because too few photos are left: \(reason) \(output) is "
                    + "\(description(ofModel: line.keptEpoch)). Put the photos back and "
                    + (savesCheckpoints
                        ? "continue with --resume." : "train again; with --checkpoint, --resume can continue a run.")
            )
        }
        if let error = result.divergence {
            Terminal.warn("Error: \("\(error)".sentence) \(output) is \(description(ofModel: line.keptEpoch)).")
        }
        if let reason = result.featureFailure {
            let effect =
                result.model.rehearsal == nil
                ? "has no features of its training photos to replay, so imprint personalize may make it forget"
                : "does not recognize photos that are unlike the training photos"
            Terminal.warn(
                "Error: \(output) \(effect): \(reason)" + (savesCheckpoints ? " Then run again with --resume." : ""))
        }
        if result.photoError == nil { warnAboutUncalibrated(result.uncalibratedLabels, trainsLonger: true) }
        if !json, let evaluation = result.multiLabelEvaluation {
            Terminal.noteLines("\n" + MultiLabelTable(evaluation).text)
        }
        if !json, let evaluation = result.evaluation { Terminal.noteLines("\n" + summary(evaluation, record)) }
        if !json, started.trainingImages > 0, started.validationImages == 0, !isCrossValidated {
            let folds = min(5, record.trainingImages.values.min() ?? 0)
            Terminal.note(
                "Without a validation set, the accuracy on new photos is unknown"
                    + (folds < 2 ? "." : "; --folds \(folds) estimates it by cross-validation."))
        }
    }

    private func summary(_ evaluation: Evaluation, _ record: TrainingRecord) -> String {
        let table = EvaluationTable(evaluation)
        guard let calibration = record.calibration else { return table.text }
        let rises = calibration.errorAfter > calibration.errorBefore
        return table.text
            + "\n\nConfidences are calibrated: their expected calibration error (ECE) on the validation set was "
            + "\(Terminal.percent(calibration.errorBefore)) and is \(Terminal.percent(calibration.errorAfter))"
            + (rises ? "; with so few validation photos, it is uncertain. Add photos." : ".")
    }

    private func show(_ ending: TrainingResult.Ending, done: Int, kept: Int, _ criterion: String, _ output: String) {
        guard kept > 0 else {
            Terminal.note(
                (ending == .completed ? "" : "Stopped after \(count(done)). ")
                    + "Kept the fitted head: fine-tuning was less accurate on the validation set.")
            return
        }
        let best = kept < done ? "; \(output) is the model after \(unit) \(kept), the best" : ""
        switch ending {
        case .completed:
            if kept < done { Terminal.note("The model is from \(unit) \(kept), with the \(criterion).") }
        case .noImprovement:
            Terminal.note(
                "Stopped early after \(count(done)): no improvement in validation loss for \(count(done - kept))\(best)."
            )
        case .timeLimit: Terminal.note("Stopped after \(count(done)): the time limit was reached\(best).")
        case .stopped: Terminal.note("Interrupted; \(output) is the model after \(position(kept)).")
        case .tooFewReadablePhotos, .diverged: break
        }
    }

    /// Describes the model of a run that ended early.
    /// - Parameter kept: The epoch of its parameters, or 0 for those before fine-tuning.
    private func description(ofModel kept: Int) -> String {
        kept > 0 ? "the model after \(position(kept))" : "the model before fine-tuning"
    }

    private func format(_ value: Float) -> String { String(format: "%.4f", value) }
}

extension TrainingStart.Leakage {
    /// The number of validation images that resemble training images.
    fileprivate var leaked: Int {
        if case .found(let images, _) = self { images } else { 0 }
    }

    /// The number of validation images that would resemble training images in a random split; nil without a split.
    fileprivate var avoided: Int? {
        if case .avoided(let images, _, _) = self { images } else { nil }
    }
}

/// Warns about labels of a detector whose confidences are not calibrated.
/// - Parameter trainsLonger: Whether more epochs may help.
func warnAboutUncalibrated(_ labels: [String], trainsLonger: Bool) {
    guard !labels.isEmpty else { return }
    Terminal.warn(
        "The confidences of \(shown(labels)) are not calibrated: the detector did not find these objects in the photos, or all photos show "
            + "them. Add photos with and without them\(trainsLonger ? ", add --artwork, or train with more --epochs" : ", or add --artwork")."
    )
}
