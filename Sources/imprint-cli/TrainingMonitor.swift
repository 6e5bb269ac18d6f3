internal import Foundation
internal import Imprint
internal import ImprintFormats
internal import ImprintImages

/// Shows a training run: a progress bar where somebody watches, a line per epoch, or JSON.
struct TrainingMonitor {
    private let epochs: Int
    private let json: Bool
    private let clock = ContinuousClock()
    private let start: ContinuousClock.Instant
    private var trainingStart: ContinuousClock.Instant?
    private var imagesPerEpoch = 0
    private var started: TrainingStart?
    private var bar = ProgressBar()

    init(epochs: Int, json: Bool) {
        self.epochs = epochs
        self.json = json
        start = clock.now
    }

    mutating func show(_ event: TrainingEvent) {
        switch event {
        case .comparing(let done, let total): bar.draw("comparing", done: done, of: total)
        case .reading(let done, let total): bar.draw("reading", done: done, of: total)
        case .started(let event): show(event)
        case .step(let step): show(step)
        case .lost(let image):
            bar.clear()
            Terminal.note("Can no longer be read: \(image.reason)")
        case .epoch(let metrics, let seconds): show(metrics, seconds)
        }
    }

    /// Removes the progress bar, so that what follows has lines of its own.
    mutating func clear() { bar.clear() }

    private mutating func show(_ event: TrainingStart) {
        bar.clear()
        started = event
        trainingStart = clock.now
        Terminal.note(
            "Read \(event.trainingImages + event.validationImages) images of \(event.labels.count) labels "
                + "(\(event.labels.joined(separator: ", "))): \(event.trainingImages) to train on, "
                + "\(event.validationImages) to validate on.")
        for image in event.skipped { Terminal.note("Skipped: \(image.reason)") }
        if let leakage = event.leakage { show(leakage) }
        if event.validationImages == 0 {
            Terminal.note("There are no images to validate on, so the accuracy is that on the training images.")
        } else if !event.labelsWithoutValidation.isEmpty {
            Terminal.note(
                "No image of \(event.labelsWithoutValidation.joined(separator: ", ")) is among those to validate on, so the "
                    + "validation accuracy says nothing of it.")
        }
        let parameters =
            event.trainedCount == event.parameterCount
            ? "\(event.parameterCount) parameters" : "\(event.trainedCount) of \(event.parameterCount) parameters"
        Terminal.note("Training \(event.network), \(parameters), for \(epochs == 1 ? "1 epoch" : "\(epochs) epochs").")
    }

    private func show(_ leakage: TrainingStart.Leakage) {
        switch leakage {
        case .avoided(let images, let total, _) where images > 0:
            Terminal.note(
                "Copies, near-duplicates and bursts are kept on one side of the split; at random, \(images) of \(total) images to "
                    + "validate on would show what images to train on show.")
        case .found(let images, let total) where images > 0:
            Terminal.note(
                "Warning: \(images) of \(total) images to validate on are copies, near-duplicates or of one burst with images to "
                    + "train on, so the validation accuracy is too good; imprint audit --validation shows them.")
        case .avoided, .found: break
        }
    }

    private mutating func show(_ step: TrainingStep) {
        imagesPerEpoch = step.imagesPerEpoch
        guard Terminal.isInteractive, let trainingStart else { return }
        let seen = (step.epoch - 1) * step.imagesPerEpoch + step.imagesSeen
        let rate = Double(seen) / max((clock.now - trainingStart).seconds, 1e-9)
        let left = Double(epochs * step.imagesPerEpoch - seen) / rate
        bar.draw(
            "epoch \(step.epoch)/\(epochs)", share: Double(step.imagesSeen) / Double(step.imagesPerEpoch),
            "\(step.imagesSeen)/\(step.imagesPerEpoch)  \(Int(rate)) images/s  loss \(format(step.loss))  "
                + "accuracy \(Terminal.percent(step.accuracy))  \(Terminal.duration(left)) left")
    }

    private mutating func show(_ metrics: EpochMetrics, _ seconds: Double) {
        bar.clear()
        if json {
            // Standard output may be closed by whoever reads it; training goes on.
            try? Terminal.emit(EpochLine(metrics, seconds))
            return
        }
        var line =
            "epoch \(metrics.epoch)/\(epochs)  loss \(format(metrics.loss))  accuracy \(Terminal.percent(metrics.accuracy))"
        if let loss = metrics.validationLoss, let accuracy = metrics.validationAccuracy {
            line += "  validation loss \(format(loss))  accuracy \(Terminal.percent(accuracy))"
        }
        let rate = Double(imagesPerEpoch) / max(seconds, 1e-9)
        Terminal.note(line + String(format: "  %.1f s  %.0f images/s", seconds, rate))
    }

    mutating func finish(_ weights: WeightsFile, output: String) throws {
        guard let started, let record = weights.training else { return }
        let line = FinishedLine(
            accuracy: record.accuracy ?? 0, epochs: record.history.count, seconds: (clock.now - start).seconds,
            images: started.trainingImages + started.validationImages, output: output,
            stopped: record.history.count < epochs, trainingImages: started.trainingImages,
            validationImages: started.validationImages,
            leaked: started.leakage?.leaked, leaksAvoided: started.leakage?.avoided,
            skipped: started.skipped.map(SkippedLine.init))
        if json {
            try Terminal.emit(line)
        } else {
            let measured = started.validationImages > 0 ? "validation" : "training"
            Terminal.note(
                "Wrote \(output): accuracy \(Terminal.percent(line.accuracy)) on the \(measured) images, "
                    + "\(line.epochs == 1 ? "1 epoch" : "\(line.epochs) epochs") in \(Terminal.duration(line.seconds))."
            )
        }
    }

    private func format(_ loss: Float) -> String { String(format: "%.4f", loss) }
}

private struct EpochLine: Encodable {
    let event = "epoch"
    let metrics: EpochMetrics
    let seconds: Double

    init(_ metrics: EpochMetrics, _ seconds: Double) {
        self.metrics = metrics
        self.seconds = seconds
    }

    private enum Key: String, CodingKey { case event, seconds }

    func encode(to encoder: any Encoder) throws {
        try metrics.encode(to: encoder)
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(event, forKey: .event)
        try values.encode(seconds, forKey: .seconds)
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let accuracy: Float
    let epochs: Int
    let seconds: Double
    let images: Int
    let output: String
    let stopped: Bool
    let trainingImages: Int
    let validationImages: Int
    let leaked: Int?
    let leaksAvoided: Int?
    let skipped: [SkippedLine]
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
