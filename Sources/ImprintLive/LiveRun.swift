internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// The current state of a training run, rendered as a part of a page.
struct LiveRun {
    /// The number of events so far; pages use it to request only changes.
    private(set) var version = 0
    /// Whether the run has ended.
    private(set) var isFinished = false
    private let clock = ContinuousClock()
    private let startInstant: ContinuousClock.Instant
    private var phase = "Starting …"
    private var start: TrainingStart?
    private var batch: TrainingBatch?
    private var history: [EpochMetrics] = []
    /// The validation accuracy of the fitted head, which the best epoch must reach; nil if it does not count.
    private var startAccuracy: Float?
    private var notes: [String] = []
    private var result: TrainingResult?
    private var pace = TrainingPace()

    init() { startInstant = clock.now }

    /// Handles the next event.
    mutating func take(_ event: TrainingEvent) {
        version += 1
        switch event {
        case .comparing(let done, let total): phase = "Comparing photos: \(done) of \(total)"
        case .reading(let done, let total): phase = "Reading photos: \(done) of \(total)"
        case .computingFeatures(let done, let total): phase = "Computing features: \(done) of \(total) photos"
        case .started(let start): take(start)
        case .searching(let done, let total): phase = "Searching for a learning rate: step \(done) of at most \(total)"
        case .learningRate(let search):
            if let rate = search.learningRate { notes.append("Found a learning rate of \(rate).") }
        case .batch(let batch):
            self.batch = batch
            startAccuracy = batch.startAccuracy
            phase = "\(unit.capitalized) \(batch.epoch) of \(batch.epochs)"
            pace.record(batch)
        case .scanning(let done, let total): phase = "Scanning photos: \(done) of \(total)"
        case .unreadable(let image): notes.append("A photo became unreadable: \(image.reason)")
        case .epoch(let metrics, _): history.append(metrics)
        case .checkpoint: break
        case .checkpointFailed(let error): notes.append("\(error)")
        case .finished(let result):
            self.result = result
            let problem: (any Error)? = result.divergence ?? result.photoError
            if let problem { notes.append("\(problem)") }
            phase = problem == nil ? "Finished" : "Ended early"
        }
    }

    /// Records the end of the run, with an error if it failed.
    mutating func end(_ error: (any Error)?) {
        version += 1
        isFinished = true
        if let error {
            phase = "Ended with an error"
            notes.append("\(error)")
        }
    }

    private var unit: String { start?.kind.unit ?? "epoch" }

    private mutating func take(_ start: TrainingStart) {
        self.start = start
        startAccuracy = start.startAccuracy
        history = start.resumed?.history ?? []
        phase = "Starting training"
        if !start.skipped.isEmpty {
            notes.append(
                "\(counted(start.skipped.count, "photo")) \(start.skipped.count == 1 ? "is" : "are") unreadable; the first: "
                    + "\(start.skipped[0].reason)"
            )
        }
        if let resumed = start.resumed, !resumed.hasSameImages {
            notes.append("The photos have changed since the checkpoint: \(resumed.changeDescription).")
        }
    }
}

// MARK: HTML

extension LiveRun {
    /// The title of the window.
    var title: String {
        guard let start, !isFinished else { return phase }
        return "\(phase) · \(start.network)"
    }

    /// The progress of the run, which changes with every batch.
    var head: String {
        let labels = start.map {
            $0.labels.count <= 6 ? $0.labels.joined(separator: ", ") : "\($0.labels.count) labels"
        }
        let kind =
            start.map { "Training \(escaped($0.network)), \($0.trainableParameterCount) parameters" } ?? "Training"
        let notes = notes.suffix(20).map { "<li>\(escaped($0))</li>" }
        return """
            <header>
            <p class="kind">\(kind)</p>
            <h1>\(escaped(labels ?? phase))</h1>
            <div class="head">\(score)<dl>\(facts.map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }.joined())</dl></div>
            \(progress)
            </header>
            \(notes.isEmpty ? "" : "<ul class=\"notes\">\(notes.joined())</ul>")
            """
    }

    /// The version of `body`, which changes with every epoch and at the end.
    var bodyVersion: Int { history.count + (result == nil ? 0 : 1) }

    /// The training curves and, at the end, the confusion matrix.
    var body: String {
        Page.section(
            "Training curves", id: "curves",
            TrainingCurves.html(
                history, record: result?.model.training, incomparable: incomparableEpochs,
                startAccuracy: startAccuracy, unit: unit))
            + confusion
    }

    private var incomparableEpochs: Int { start?.incomparableEpochs ?? 0 }

    /// The best epoch so far or, at the end, the epoch of the model; nil without a validation result.
    private var best: EpochMetrics? {
        guard let record = result?.model.training else {
            return TrainingCurves.bestEpoch(history.dropFirst(incomparableEpochs), startAccuracy: startAccuracy)
        }
        return record.bestEpochMetrics.flatMap { $0.validationLoss == nil ? nil : $0 }
    }

    private var score: String {
        guard let last = result?.model.training?.bestEpochMetrics ?? history.last else { return "" }
        var (accuracy, photos) =
            last.validationAccuracy.map { ($0, "the validation photos") } ?? (last.accuracy, "the training photos")
        var time = "after \(unit) \(last.epoch)"
        if let record = result?.model.training, record.keepsInitialParameters, let startAccuracy = record.startAccuracy
        {
            (accuracy, photos, time) = (
                startAccuracy, "the validation photos", "by the fitted head, before fine-tuning"
            )
        }
        return """
            <div><p class="score">\(String(format: "%.1f %%", accuracy * 100))</p>
            <p>of \(photos) classified correctly<br><span class="more">\(time)</span></p></div>
            """
    }

    private var facts: [(String, String)] {
        var facts: [(String, String)] = []
        if let start {
            facts.append(("training photos", "\(start.trainingImages)"))
            if start.validationImages > 0 { facts.append(("validation photos", "\(start.validationImages)")) }
        }
        if let best { facts.append(("best \(unit)", "\(best.epoch)")) }
        if let batch, !isFinished {
            facts.append(("loss", String(format: "%.4f", batch.loss)))
            if let rate = pace.imagesPerSecond, let left = pace.secondsLeft {
                facts += [("images per second", "\(Int(rate))"), ("time left", clockTime(left))]
            }
        }
        facts.append(("time", clockTime((clock.now - startInstant).seconds)))
        return facts
    }

    private var progress: String {
        let value = isFinished && result != nil ? 1 : pace.fractionCompleted
        return """
            <p role="status" class="phase">\(escaped(phase))</p>
            <progress max="1" value="\(String(format: "%.4f", value))" aria-label="Progress">\(Int(value * 100)) %</progress>
            """
    }

    private var confusion: String {
        guard let evaluation = result?.evaluation else { return "" }
        return Page.section(
            "Confusion matrix", id: "confusion",
            ConfusionTable.html(labels: evaluation.labels, matrix: evaluation.confusion))
    }
}
