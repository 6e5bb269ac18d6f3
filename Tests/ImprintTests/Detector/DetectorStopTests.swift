import Foundation
import Imprint
import ImprintImages
import ImprintModel
import TestSupport
import Testing

@testable import ImprintTraining

/// Tests of detector runs that are stopped while they scan photos.
@Suite("Stopped scans of a detector run", .timeLimit(.minutes(5))) struct DetectorStopTests {
    @Test(
        "A run that is stopped in hard-negative mining or validation ends after a portion, and resumes bitwise identically",
        arguments: [true, false])
    func stop(isMining: Bool) throws {
        try withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder.appending(path: "photos"), count: 40, seed: 1)
            func run(
                _ checkpoints: CheckpointOptions?, onEvent: @escaping (TrainingEvent) -> Void = { _ in },
                shouldStop: @escaping () -> Bool = { false }
            ) throws -> TrainingResult {
                var configuration = boxConfiguration(steps: 2)
                configuration.threads = 1
                configuration.validation = .fraction(0.4)
                return try DetectorTrainer(
                    artwork: [:], photos: nil, annotations: annotations, configuration: configuration,
                    checkpoints: checkpoints
                ).train(onEvent: onEvent, shouldStop: shouldStop)
            }
            let checkpoints = CheckpointOptions(
                folder: folder.appending(path: "run"), interval: .seconds(1000), resumes: true)
            // The validation of the first phase is the first scan, and the next scan mines hard negatives for the second phase.
            var phases = 0
            var portions: [Int] = []
            var stopped: TrainingResult?
            do {
                stopped = try run(
                    checkpoints,
                    onEvent: { event in
                        if case .epoch = event { phases += 1 }
                        if case .scanning(let done, _) = event, phases == (isMining ? 1 : 0) { portions.append(done) }
                    }, shouldStop: { !portions.isEmpty })
            } catch ImprintError.stoppedTooEarly {}
            if isMining {
                // The model of the first phase is validated again.
                #expect(stopped?.ending == .stopped && stopped?.model.training?.history.count == 1)
                #expect(portions.prefix(2) == [8, 8])
            } else {
                #expect(stopped == nil && portions == [8])
            }
            let resumed = try run(checkpoints)
            #expect(resumed.ending == .completed)
            #expect(try bytes(of: resumed.model) == bytes(of: run(nil).model))
        }
    }
}
