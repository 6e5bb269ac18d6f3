import ImprintNetwork
import Testing

@testable import ImprintStudio
@testable import ImprintTraining

/// The progress of a training run, without a browser.
@Suite("Status of a training run") struct TrainingStatusTests {
    /// A step in the second of three phases, which has most of the images.
    private let batch = TrainingBatch(
        epoch: 2, epochs: 3, imagesSeen: 20, imagesPerEpoch: 80, imagesSeenInRun: 30, imagesPerRun: 100, loss: 1,
        accuracy: 0.5)
    private let epoch = EpochMetrics(epoch: 1, loss: 1, accuracy: 0.5, learningRate: 1e-3)
    private let start = TrainingStart(
        kind: .artwork, labels: [], trainingImages: 0, validationImages: 0, labelsWithoutValidation: [], skipped: [],
        network: "", parameterCount: 0, trainableParameterCount: 0, epochs: 3, resumed: nil, replacesCheckpoint: false,
        leakage: nil, decision: nil)

    @Test("Phases with more images have a larger share of the progress") func fraction() {
        var status = TrainingStatus()
        status.begin("Preparing …", panel: .logo)
        status.updateDetector(with: .batch(batch))
        #expect(status.fraction == 0.3 && status.message == "Phase 2 of 3: 25 %")
    }

    @Test(
        "While a run completes, progress does not replace its message, and it cannot end early",
        arguments: [true, false])
    func completing(isDetector: Bool) {
        var status = TrainingStatus()
        func update(with event: TrainingEvent) {
            if isDetector { status.updateDetector(with: event) } else { status.updatePhotos(with: event) }
        }
        status.begin("Preparing …", panel: .photos)
        update(with: .started(start))
        update(with: .epoch(epoch, seconds: 1))
        #expect(status.canKeepBest)
        status.complete("Completing the best model so far …")
        update(with: .batch(batch))
        update(with: .epoch(epoch, seconds: 1))
        #expect(status.message == "Completing the best model so far …" && !status.canKeepBest)
        #expect(status.fraction == nil)
        status.complete("Writing the report …")
        #expect(status.message == "Writing the report …")
        status.begin("Preparing …")
        update(with: .batch(batch))
        #expect(status.message.hasSuffix("2 of 3: 25 %"))
    }
}
