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

    /// A number that increases with every change, also across runs.
    private(set) var version = 0
    private(set) var stage = Stage.none
    /// The current activity, or the reason of the end.
    private(set) var message = ""
    private(set) var points: [Point] = []

    /// The comparison of the base models, or nil if there is none.
    private(set) var comparison: BaseComparison?

    /// Begins the next run.
    mutating func begin(_ message: String) {
        change { ($0.stage, $0.message, $0.points, $0.comparison) = (.running, message, [], nil) }
    }

    /// Sets the current activity.
    mutating func note(_ message: String) { change { $0.message = message } }

    mutating func add(_ point: Point) { change { $0.points.append(point) } }

    mutating func end(_ stage: Stage, _ message: String, _ comparison: BaseComparison? = nil) {
        change { ($0.stage, $0.message, $0.comparison) = (stage, message, comparison) }
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

    private enum CodingKeys: String, CodingKey { case version, stage, message, points, comparison }
}
