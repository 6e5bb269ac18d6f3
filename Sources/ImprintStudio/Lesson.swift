internal import Foundation
internal import Imprint
internal import ImprintSynthesis
internal import ImprintTraining

/// A lesson up to now, as the page shows it.
struct Lesson: Encodable, Sendable {
    /// A point of the curves.
    struct Point: Encodable, Sendable {
        /// How many steps, or epochs, are done.
        let step: Int
        /// How many there are to be.
        let steps: Int
        let loss: Float
        /// The share of the examples that is judged rightly, 0…1.
        let accuracy: Float
    }

    /// How far it has come.
    enum Stage: String, Encodable, Sendable {
        case none, running, learned, stopped, failed
    }

    /// Rises with every change, from one lesson to the next too.
    private(set) var version = 0
    private(set) var stage = Stage.none
    /// What happens, or why it ended.
    private(set) var message = ""
    private(set) var points: [Point] = []

    /// Begins the next one.
    mutating func begin() { change { ($0.stage, $0.message, $0.points) = (.running, "Looking at the examples …", []) } }

    /// Says what happens now.
    mutating func note(_ message: String) { change { $0.message = message } }

    mutating func add(_ point: Point) { change { $0.points.append(point) } }

    mutating func end(_ stage: Stage, _ message: String) { change { ($0.stage, $0.message) = (stage, message) } }

    private mutating func change(_ body: (inout Lesson) -> Void) {
        version += 1
        body(&self)
    }

    /// Takes what a new model's training told.
    mutating func take(_ event: TrainingEvent) {
        switch event {
        case .comparing(let done, let total): note("Comparing examples: \(done) of \(total)")
        case .reading(let done, let total): note("Reading examples: \(done) of \(total)")
        case .started(let start): note("Training \(start.trainedCount) numbers on \(start.trainingImages) examples")
        case .batch(let batch): note("Epoch \(batch.epoch) of \(batch.epochs)")
        case .epoch(let metrics, _):
            add(Point(step: metrics.epoch, steps: epochs, loss: metrics.loss, accuracy: metrics.accuracy))
        default: break
        }
    }

    /// How many epochs a new model's training has.
    var epochs = 0

    /// Takes what personalizing told.
    mutating func take(_ progress: PersonalizationProgress) {
        switch progress {
        case .looked(let done, let total): note("Looking at the examples: \(done) of \(total)")
        case .step(let step):
            message = "Step \(step.step) of \(step.steps)"
            add(Point(step: step.step, steps: step.steps, loss: step.loss, accuracy: step.accuracy))
        }
    }

    private enum CodingKeys: String, CodingKey { case version, stage, message, points }
}
