internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// Shows a training run: a progress bar where somebody watches, a line per epoch, or JSON.
struct TrainingMonitor {
    private let plannedEpochs: Int
    private let patience: Int?
    private let json: Bool
    private let savesCheckpoints: Bool
    private var pace = TrainingPace()
    private var imagesPerEpoch = 0
    private var started: TrainingStart?
    private var leastLoss = Float.infinity
    private var bar = ProgressBar()

    init(epochs: Int, patience: Int?, json: Bool, savesCheckpoints: Bool) {
        self.savesCheckpoints = savesCheckpoints
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
        case .lost(let image):
            bar.clear()
            Terminal.warn("Can no longer be read: \(image.reason)")
        case .epoch(let metrics, let seconds): show(metrics, seconds)
        case .checkpointFailed(let error):
            bar.clear()
            Terminal.warn("Error: \(error). Training goes on.")
        case .checkpoint, .finished: break
        }
    }

    /// Removes the progress bar, so that what follows has lines of its own.
    mutating func clear() { bar.clear() }

    private mutating func show(_ event: TrainingStart) {
        bar.clear()
        started = event
        Terminal.note(
            "Read \(event.trainingImages + event.validationImages) images of \(event.labels.count) labels "
                + "(\(shown(event.labels))): \(event.trainingImages) to train on, "
                + "\(event.validationImages) to validate on.")
        for image in event.skipped { Terminal.warn("Skipped: \(image.reason)") }
        if let leakage = event.leakage { show(leakage) }
        if event.validationImages == 0 {
            Terminal.note("There are no images to validate on, so the accuracy is that on the training images.")
        } else if !event.labelsWithoutValidation.isEmpty {
            Terminal.note(
                "No image of \(shown(event.labelsWithoutValidation)) is among those to validate on, so the "
                    + "validation accuracy says nothing of it.")
        }
        let parameters =
            event.trainedCount == event.parameterCount
            ? "\(event.parameterCount) parameters" : "\(event.trainedCount) of \(event.parameterCount) parameters"
        Terminal.note("Recipe: \(event.recipe.summary), for \(event.recipe.reason).")
        Terminal.note("Training \(event.network), \(parameters), for \(count(epochs)).")
        if let resumed = event.resumed { show(resumed) }
        if event.replacesCheckpoint {
            Terminal.note(
                "This run takes the place of one that has ended in the folder for checkpoints; --resume would go on from it."
            )
        }
        if patience != nil && event.validationImages == 0 {
            Terminal.warn("Without images to validate on, --patience has no effect.")
        }
    }

    private var epochs: Int { started?.epochs ?? plannedEpochs }

    private mutating func show(_ resumed: TrainingStart.Resumption) {
        let done = resumed.history.count
        let seen = resumed.imagesSeen > 0 ? " and \(resumed.imagesSeen) images of the next" : ""
        Terminal.note("Resumed after \(count(done))\(seen).")
        leastLoss = resumed.hasSameImages ? resumed.history.compactMap(\.validationLoss).min() ?? .infinity : .infinity
        if done < epochs && !resumed.hasSameImages {
            Terminal.note("The photos are not those of before: the epoch begins anew, and the best is looked for anew.")
        }
        if done >= epochs {
            let recipe = started?.recipe
            let isWhole = recipe == .artworkAlone || recipe == .artworkAndPhotos
            Terminal.note("All epochs are done\(isWhole ? "" : "; to go further, raise --epochs above \(done)").")
        }
    }

    private mutating func show(_ search: LearningRateSearch) {
        bar.clear()
        if let rate = search.learningRate { Terminal.note("Found a learning rate of \(rate).") }
    }

    private func count(_ epochs: Int) -> String { epochs == 1 ? "1 epoch" : "\(epochs) epochs" }

    private func show(_ leakage: TrainingStart.Leakage) {
        switch leakage {
        case .avoided(let images, let total, _) where images > 0:
            Terminal.note(
                "Copies, near-duplicates and bursts are kept on one side of the split; at random, \(images) of \(total) images to "
                    + "validate on would show what images to train on show.")
        case .found(let images, let total) where images > 0:
            Terminal.warn(
                "Warning: \(images) of \(total) images to validate on are copies, near-duplicates or of one burst with images to "
                    + "train on, so the validation accuracy is too good; imprint audit --validation shows them.")
        case .avoided, .found: break
        }
    }

    private mutating func show(_ batch: TrainingBatch) {
        imagesPerEpoch = batch.imagesPerEpoch
        pace.take(batch)
        guard Terminal.isInteractive else { return }
        let left = pace.secondsLeft.map { "\(clockTime($0)) left" } ?? "…"
        bar.draw(
            "epoch \(batch.epoch)/\(batch.epochs)", share: Double(batch.imagesSeen) / Double(batch.imagesPerEpoch),
            "\(batch.imagesSeen)/\(batch.imagesPerEpoch)", left, "loss \(format(batch.loss))",
            pace.imagesPerSecond.map { "\(Int($0)) images/s" } ?? "…", "accuracy \(Terminal.percent(batch.accuracy))")
    }

    private mutating func show(_ metrics: EpochMetrics, _ seconds: Double) {
        bar.clear()
        if json {
            // Training continues even if the line cannot be written.
            try? Terminal.report(EpochLine(metrics, seconds))
            return
        }
        var line =
            "epoch \(metrics.epoch)/\(epochs)  loss \(format(metrics.loss))  accuracy \(Terminal.percent(metrics.accuracy))"
        if let loss = metrics.validationLoss, let accuracy = metrics.validationAccuracy {
            line += "  validation loss \(format(loss))  accuracy \(Terminal.percent(accuracy))"
        }
        let rate = Double(imagesPerEpoch) / max(seconds, 1e-9)
        line += String(format: "  %.1f s  %.0f images/s", seconds, rate)
        Terminal.note((line, nil), (isBest(metrics) ? "  best" : "", .good))
    }

    /// Whether the validation loss is the least up to here.
    private mutating func isBest(_ metrics: EpochMetrics) -> Bool {
        guard let loss = metrics.validationLoss, loss < leastLoss else { return false }
        leastLoss = loss
        return true
    }

    mutating func finish(_ result: TrainingResult, output: String) throws {
        guard let started, let record = result.weights.training else { return }
        let line = FinishedLine(
            accuracy: record.accuracy ?? 0, epochs: record.history.count, seconds: result.seconds,
            images: started.trainingImages + started.validationImages, output: output, ending: result.ending,
            stopped: result.ending == .stopped || result.ending == .photosLost, keptEpoch: record.kept?.epoch ?? 0,
            trainingImages: started.trainingImages, validationImages: started.validationImages,
            leaked: started.leakage?.leaked, leaksAvoided: started.leakage?.avoided,
            calibration: record.calibration, skipped: started.skipped.map(SkippedLine.init),
            lost: result.lost.map(SkippedLine.init))
        if json {
            try Terminal.report(line)
        } else {
            let measured = started.validationImages > 0 ? "validation" : "training"
            Terminal.note(
                ("Wrote \(output)", .bold),
                (
                    ": accuracy \(Terminal.percent(line.accuracy)) on the \(measured) images, "
                        + "\(count(line.epochs)) in \(clockTime(line.seconds)).", nil
                ))
        }
        show(result.ending, done: line.epochs, kept: line.keptEpoch, output)
        if let reason = result.photosLost {
            Terminal.warn(
                "Error: training ended early because too few photos are left: \(reason) \(output) is the model after epoch "
                    + "\(line.keptEpoch) of \(epochs). Put the photos back and "
                    + (savesCheckpoints
                        ? "continue with --resume." : "train again; --checkpoint saves runs so that they can continue.")
            )
        }
        if !json, let evaluation = result.evaluation { Terminal.noteLines("\n" + summary(evaluation, record)) }
    }

    private func summary(_ evaluation: Evaluation, _ record: TrainingRecord) -> String {
        let table = EvaluationTable(evaluation)
        guard let calibration = record.calibration else { return table.text }
        let rises = calibration.errorAfter > calibration.errorBefore
        return table.text
            + "\n\nConfidences are calibrated: on the images to validate on, their error was "
            + "\(Terminal.percent(calibration.errorBefore)) and is \(Terminal.percent(calibration.errorAfter))"
            + (rises ? ", since so few images do not show how sure one may be of new ones." : ".")
    }

    private func show(_ ending: TrainingResult.Ending, done: Int, kept: Int, _ output: String) {
        let best = kept < done ? "; \(output) is the model after epoch \(kept), the best" : ""
        switch ending {
        case .completed: if kept < done { Terminal.note("Epoch \(kept) had the least validation loss and is kept.") }
        case .noImprovement:
            Terminal.note("Ended after \(count(done)): no lesser validation loss for \(count(done - kept))\(best).")
        case .timeLimit: Terminal.note("Ended after \(count(done)), as the time is up\(best).")
        case .stopped: Terminal.note("Stopped early; \(output) is the model after epoch \(kept) of \(epochs).")
        case .photosLost: break
        }
    }

    private func format(_ loss: Float) -> String { String(format: "%.4f", loss) }
}

private struct EpochLine: Encodable {
    let event = "epoch"
    let epoch: Int
    let loss: Float
    let accuracy: Float
    @NullIfMissing var validationLoss: Float?
    @NullIfMissing var validationAccuracy: Float?
    let learningRate: Float
    let seconds: Double

    init(_ metrics: EpochMetrics, _ seconds: Double) {
        epoch = metrics.epoch
        loss = metrics.loss
        accuracy = metrics.accuracy
        validationLoss = metrics.validationLoss
        validationAccuracy = metrics.validationAccuracy
        learningRate = metrics.learningRate
        self.seconds = seconds
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let accuracy: Float
    let epochs: Int
    let seconds: Double
    let images: Int
    let output: String
    let ending: TrainingResult.Ending
    let stopped: Bool
    let keptEpoch: Int
    let trainingImages: Int
    let validationImages: Int
    let leaked: Int?
    let leaksAvoided: Int?
    let calibration: Calibration?
    let skipped: [SkippedLine]
    let lost: [SkippedLine]
}

extension TrainingStart.Leakage {
    /// How many images to validate on show what images to train on show.
    fileprivate var leaked: Int {
        if case .found(let images, _) = self { images } else { 0 }
    }

    /// How many would have in a split at random; `nil` without a split.
    fileprivate var avoided: Int? {
        if case .avoided(let images, _, _) = self { images } else { nil }
    }
}

/// An image that could not be read, for JSON.
struct SkippedLine: Encodable {
    let file: String
    let reason: String

    init(_ image: SkippedImage) {
        file = image.url.path(percentEncoded: false)
        reason = "\(image.reason)"
    }
}
