import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of runs that cannot resume, because their settings or photos do not match the checkpoint.
@Suite("Mismatched runs") struct MismatchedRunTests {
    @Test("A checkpoint with other settings is rejected, and the error names the setting")
    func otherSettings() throws {
        try withImages(["left", "right", "up"], perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: "checkpoint.safetensors").path
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                func expectError(_ setting: String, _ change: (inout ClassifierConfiguration) -> Void) {
                    let error = #expect(throws: ImprintError.self) {
                        try train(folder, quickTraining(epochs: 2, change: change), checkpoints: options)
                    }
                    guard case .checkpointMismatch(file, setting, _, _) = error else {
                        Issue.record("\(setting): \(String(describing: error))")
                        return
                    }
                }
                expectError("seed") { $0.seed = 1 }
                expectError("batch size") { $0.batchSize = 3 }
                expectError("learning rate") { $0.learningRate = 0.5 }
                expectError("learning rate") { $0.learningRate = nil }
                expectError("augmentation") { $0.augmentation = Augmentation([.blur]) }
                expectError("EMA decay") { $0.emaDecay = 0.9 }
                expectError("uses mixed precision") { $0.usesMixedPrecision = true }
                expectError("class weights") { $0.classWeights = .automatic }
                expectError("input size") { $0.inputSize = 32 }
                expectError("network") { $0.start = .network("logonet", width: 0.25) }
                expectError("validation") { $0.validation = .fraction(0.5) }
                try FileManager.default.removeItem(at: folder.appending(path: "up"))
                expectError("labels") { _ in }
                // Settings that do not affect the steps may change.
                _ = try withImages(["left", "right", "up"], perLabel: 4) { same in
                    try train(
                        same,
                        quickTraining(epochs: 2) {
                            $0.threads = 2
                            $0.memoryLimit = 0
                            $0.patience = 5
                        }, checkpoints: options)
                }
            }
        }
    }

    @Test("A run does not resume without an optional hyperparameter that its checkpoint has")
    func missingSettings() throws {
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                func configuration(emaDecay: Float?, clipping: Float?, epochs: Int) -> ClassifierConfiguration {
                    quickTraining(epochs: epochs) {
                        $0.emaDecay = emaDecay
                        $0.gradientClipping = clipping
                    }
                }
                func expectError(
                    _ setting: String, expected: String, _ configuration: ClassifierConfiguration
                ) {
                    #expect(
                        throws: ImprintError.checkpointMismatch(
                            file: file.path, setting: setting, found: "none", expected: expected)
                    ) { try train(folder, configuration, checkpoints: options) }
                }
                _ = try train(folder, configuration(emaDecay: 0.9, clipping: 5, epochs: 1), checkpoints: options)
                expectError("EMA decay", expected: "0.9", configuration(emaDecay: nil, clipping: 5, epochs: 2))
                expectError(
                    "gradient clipping", expected: "5.0", configuration(emaDecay: 0.9, clipping: nil, epochs: 2))
                // A hyperparameter that this version does not know.
                let checkpoint = try Checkpoint(contentsOf: file)
                try Checkpoint(
                    network: checkpoint.network, labels: checkpoint.labels,
                    settings: checkpoint.settings.merging(["mixup": "0.2"]) { $1 }, images: checkpoint.images,
                    state: checkpoint.state
                ).write(to: file)
                expectError("mixup", expected: "0.2", configuration(emaDecay: 0.9, clipping: 5, epochs: 2))
            }
        }
    }

    @Test("A checkpoint without a recipe is rejected before the photos are measured") func withoutRecipe() throws {
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                let base = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                var events = 0
                func expectError(_ setting: String, found: String, expected: String) {
                    #expect(
                        throws: ImprintError.checkpointMismatch(
                            file: file.path, setting: setting, found: found, expected: expected)
                    ) {
                        try train(
                            folder, quickTraining { $0.start = .pretrained(base) }, checkpoints: options,
                            onEvent: { _ in events += 1 })
                    }
                }
                expectError("network", found: "base logonet with recipe auto", expected: "logonet, width 0.125")
                // Only detectors have this setting.
                let checkpoint = try Checkpoint(contentsOf: file)
                try Checkpoint(
                    network: checkpoint.network, labels: checkpoint.labels,
                    settings: checkpoint.settings.merging(["backgrounds": "none"]) { $1 }, images: checkpoint.images,
                    state: checkpoint.state
                ).write(to: file)
                expectError("kind of model", found: "a classifier", expected: "a detector")
                #expect(events == 0)
            }
        }
    }

    @Test("A run does not resume if all of its validation images are missing") func renamedImages() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let configuration = quickTraining(epochs: 2) { $0.validation = .fraction(0.25) }
                let options = CheckpointOptions(folder: scratch, resumes: true)
                _ = try train(folder, configuration, checkpoints: options)
                let checkpoint = try Checkpoint(contentsOf: scratch.appending(path: CheckpointOptions.fileName))
                for path in checkpoint.images.validation {
                    let file = folder.appending(path: path)
                    try FileManager.default.moveItem(at: file, to: file.appendingPathExtension("png"))
                }
                #expect(throws: ImprintError.missingValidationPhotos(count: 4)) {
                    try train(folder, configuration, checkpoints: options)
                }
            }
        }
    }
}
