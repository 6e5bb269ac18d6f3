internal import Foundation
internal import Imprint
internal import ImprintSynthesis
internal import ImprintTraining

/// The progress of a training run, as the page shows it.
struct TrainingStatus: Encodable, Sendable {
    /// A point of the training curves.
    struct Point: Encodable, Sendable {
        /// The number of finished steps or epochs.
        let step: Int
        /// The total number of steps or epochs.
        let steps: Int
        let loss: Float
        /// The accuracy on the examples, 0…1.
        let accuracy: Float
    }

    /// The state of the training run.
    enum Stage: String, Encodable, Sendable {
        case none, running, learned, stopped, failed
        /// A base model is installed, but there are not enough examples to train.
        case installed
    }

    /// A panel of the page.
    enum Panel: String, Encodable, Sendable { case teach, annotate, logo, photos }

    /// A number that increases with every change, also across runs.
    private(set) var version = 0
    private(set) var stage = Stage.none
    /// The current activity, or the reason for the end.
    private(set) var message = ""
    private(set) var points: [Point] = []
    /// The finished fraction of the run, 0…1; nil if it is unknown.
    private(set) var fraction: Double?
    /// The title of the contact sheet of the images that the run learns from; nil without one.
    private(set) var sheet: String?

    /// The panel of the page that shows the run.
    private(set) var panel = Panel.teach
    /// Whether the run can end early with a model.
    private(set) var canKeepBest = false
    /// Whether the last part of the run has begun, which shows no progress.
    private var isCompleting = false

    /// Whether the points of the training curves are measured on the validation set.
    private(set) var validates = false

    /// The comparison of the base models, or nil if there is none.
    private(set) var comparison: BaseComparison?

    /// Begins the next run.
    /// - Parameter panel: The panel of the page that shows the run; nil for the current one.
    mutating func begin(_ message: String, panel: Panel? = nil) {
        change { ($0.stage, $0.message, $0.points, $0.comparison) = (.running, message, [], nil) }
        (fraction, sheet, canKeepBest, isCompleting, validates) = (nil, nil, false, false, false)
        self.panel = panel ?? self.panel
    }

    /// Sets the current activity, except in the last part of a run.
    mutating func note(_ message: String) {
        guard !isCompleting else { return }
        change { $0.message = message }
    }

    /// Begins the last part of a run, which cannot end early, or sets its activity.
    mutating func complete(_ message: String) {
        // The time of the last part is not known.
        (canKeepBest, isCompleting, fraction) = (false, true, nil)
        change { $0.message = message }
    }

    mutating func add(_ point: Point) { change { $0.points.append(point) } }

    mutating func end(_ stage: Stage, _ message: String, _ comparison: BaseComparison? = nil) {
        change { ($0.stage, $0.message, $0.comparison) = (stage, message, comparison) }
        canKeepBest = false
        if stage == .none { (points, fraction, sheet) = ([], nil, nil) }
    }

    private mutating func change(_ body: (inout TrainingStatus) -> Void) {
        version += 1
        body(&self)
    }

    /// Updates the status with an event from training a new model.
    mutating func update(with event: TrainingEvent) {
        switch event {
        case .comparing(let done, let total): note("Comparing examples: \(done) of \(total)")
        case .reading(let done, let total): note("Reading examples: \(done) of \(total)")
        case .computingFeatures(let done, let total): note("Computing features: \(done) of \(total) examples")
        case .started(let start):
            epochs = start.epochs
            note("Training \(start.trainableParameterCount) parameters on \(start.trainingImages) examples")
        case .batch(let batch): note("Epoch \(batch.epoch) of \(batch.epochs)")
        case .epoch(let metrics, _):
            add(Point(step: metrics.epoch, steps: epochs, loss: metrics.loss, accuracy: metrics.accuracy))
        default: break
        }
    }

    /// The number of epochs of a new model.
    private var epochs = 0

    /// Updates the status with the progress of a personalization.
    mutating func update(with progress: PersonalizationProgress) {
        switch progress {
        case .extractedFeatures(let done, let total): note("Computing features: \(done) of \(total) examples")
        case .step(let step):
            message = "Step \(step.step) of \(step.steps)"
            add(Point(step: step.step, steps: step.steps, loss: step.loss, accuracy: step.accuracy))
        }
    }

    /// Updates the status with an event from training a detector.
    mutating func updateDetector(with event: TrainingEvent) {
        switch event {
        case .comparing(let done, let total): note("Comparing photos: \(done) of \(total)")
        case .reading(let done, let total): note("Reading photos: \(done) of \(total)")
        case .started(let start): note("Training \(start.trainableParameterCount) parameters")
        case .batch(let batch):
            if !isCompleting { fraction = batch.fractionOfRun }
            note("Phase \(batch.epoch) of \(batch.epochs): \(percentOfEpoch(batch)) %")
            let step = Int(100 * batch.fractionOfRun)
            guard step > points.last?.step ?? 0, batch.loss.isFinite else { return }
            add(Point(step: step, steps: 100, loss: batch.loss, accuracy: batch.accuracy))
        case .scanning(let done, let total): note("Scanning photos: \(done) of \(total)")
        case .epoch: change { $0.canKeepBest = !$0.isCompleting }
        case .unreadable(let photo): note("\(photo.reason)")
        default: break
        }
    }

    /// Updates the status with an event from training a classifier on photos.
    mutating func updatePhotos(with event: TrainingEvent) {
        switch event {
        case .comparing(let done, let total): note("Comparing photos: \(done) of \(total)")
        case .reading(let done, let total): note("Reading photos: \(done) of \(total)")
        case .computingFeatures(let done, let total): note("Computing features: \(done) of \(total) photos")
        case .started(let start):
            epochs = start.epochs
            validates = start.validationImages > 0
            note("Training \(start.trainableParameterCount) parameters on \(start.trainingImages) photos")
        case .searching(let done, let total): note("Searching for a learning rate: step \(done) of \(total)")
        case .batch(let batch):
            if !isCompleting { fraction = batch.fractionOfRun }
            note("Epoch \(batch.epoch) of \(batch.epochs): \(percentOfEpoch(batch)) %")
        case .epoch(let metrics, _):
            canKeepBest = metrics.epoch < epochs && !isCompleting
            add(
                Point(
                    step: metrics.epoch, steps: epochs, loss: metrics.validationLoss ?? metrics.loss,
                    accuracy: metrics.validationAccuracy ?? metrics.accuracy))
        case .unreadable(let photo): note("\(photo.reason)")
        default: break
        }
    }

    private func percentOfEpoch(_ batch: TrainingBatch) -> Int { 100 * batch.imagesSeen / max(batch.imagesPerEpoch, 1) }

    /// Sets the title of the contact sheet.
    mutating func show(sheet title: String) { change { $0.sheet = title } }

    private enum CodingKeys: String, CodingKey {
        case version, stage, message, points, comparison, fraction, sheet, panel, canKeepBest, validates
    }
}
