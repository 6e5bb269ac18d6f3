import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintTraining

/// Tests of detector runs that are stopped while they scan photos, and of the detections from which they resume.
@Suite("Stopped scans of a detector run", .timeLimit(.minutes(10))) struct DetectorStopTests {
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
                    annotations: annotations, configuration: configuration,
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

    @Test("If the first of several processes stops in a scan, all end after the same portion, and the run resumes")
    func stopOfSeveralProcesses() async throws {
        try await withTemporaryFolder { folder in
            let annotations = try annotatedFramesAndDiscs(in: folder.appending(path: "photos"), count: 40, seed: 1)
            @Sendable func run(
                _ group: ProcessGroup?, _ checkpoints: CheckpointOptions? = nil, stops: Bool = false
            ) throws -> (model: Data, portions: [Int]) {
                var configuration = boxConfiguration(steps: 2)
                configuration.threads = 1
                configuration.processes = group
                // Each of two processes scans more photos than a portion has.
                configuration.validation = .fraction(0.6)
                var portions: [Int] = []
                do {
                    let result = try DetectorTrainer(
                        annotations: annotations, configuration: configuration,
                        checkpoints: checkpoints
                    ).train(
                        onEvent: { if case .scanning(let done, _) = $0 { portions.append(done) } },
                        shouldStop: { stops && !portions.isEmpty && group?.isFirst ?? true })
                    return (try bytes(of: result.model), portions)
                } catch ImprintError.stoppedTooEarly {
                    return (Data(), portions)
                }
            }
            let checkpoints = CheckpointOptions(
                folder: folder.appending(path: "run"), interval: .seconds(1000), resumes: true)
            let stopped = try await inProcesses(2) { try run($0, checkpoints, stops: true) }
            #expect(stopped.map(\.portions) == [[8], [8]])
            #expect(stopped.allSatisfy { $0.model.isEmpty })
            let expected = try run(nil).model
            let resumed = try await inProcesses(2) { try run($0, checkpoints).model }
            #expect(resumed == [expected, expected])
        }
    }

    @Test(
        "Detections of a checkpoint that are damaged or in missing photos are rejected",
        arguments: [
            (#"{"mined":[],"found":[]}"#, nil), (#"{"mined":[]}"#, "damaged"), ("", "damaged"),
            (#"{"mined":[DETECTION],"found":[]}"#, "a detection is in photo 3, but there are 3 such photos"),
            (#"{"mined":[],"found":[DETECTION]}"#, "a detection is in photo 3, but there are 2 such photos"),
        ] as [(String, String?)])
    func damagedState(text: String, expected: String?) throws {
        let detection = DetectorPatches.Detection(
            imageIndex: 3, peak: PyramidScanner.Peak(score: 1, x: 2, y: 3, side: 96))
        let json = String(decoding: try JSONEncoder().encode(detection), as: UTF8.self)
        let state = Result { () throws(TrainingStateError) in
            try DetectorObjective.State.decoded(text.replacing("DETECTION", with: json), negatives: 3, positives: 2)
        }
        switch state {
        case .success: #expect(expected == nil)
        case .failure(let error): #expect(expected.map(error.reason.contains) == true, "\(error.reason)")
        }
    }
}
