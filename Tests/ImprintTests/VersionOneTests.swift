import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Files that version 1 wrote; Fixtures/Version1/README.md has the commands.
@Suite("Files of version 1") struct VersionOneTests {
    private static let folder = packageFolder.appending(path: "Tests/ImprintTests/Fixtures/Version1")
    private static let photo = folder.appending(path: "photos/disc/0.png")

    /// Checks the confidence in "disc" that version 1 printed for a photo.
    private func check(_ classifier: ImageClassifier, _ confidence: Float) throws {
        let found = try classifier.classify(Self.photo)
        #expect(found.map(\.label) == ["disc", "plain"])
        #expect(abs(found[0].confidence - confidence) < 1e-3, "\(found)")
    }

    @Test(
        "A model gives the confidences that version 1 printed",
        arguments: [
            ("classifier", 0.8633), ("classifier-float16", 0.8633), ("classifier-int8", 0.8636),
            ("detector-int8", 0.7027),
        ] as [(String, Float)])
    func models(name: String, confidence: Float) throws {
        try check(ImageClassifier(contentsOf: Self.folder.appending(path: "\(name).imprint")), confidence)
    }

    @Test(
        "A personalization gives the confidences that version 1 printed",
        arguments: [
            ("classifier", "classifier-personalization", 0.9015), ("classifier", "classifier-adapters", 0.9577),
            ("detector-int8", "detector-personalization", 0.8308),
        ] as [(String, String, Float)])
    func personalizations(model: String, name: String, confidence: Float) throws {
        let classifier = try ImageClassifier(contentsOf: Self.folder.appending(path: "\(model).imprint"))
        let personalization = try Personalization(contentsOf: Self.folder.appending(path: "\(name).imprint"))
        try check(classifier.personalized(with: personalization), confidence)
    }

    @Test("Training resumes from a classifier's checkpoint") func classifierCheckpoint() throws {
        let fixture = Self.folder.appending(path: "classifier-checkpoint.safetensors")
        let history = try Checkpoint(contentsOf: fixture).state.progress.history
        try #require(history.count == 22)
        var configuration = ClassifierConfiguration()
        configuration.start = .network("lenet", width: 0.25)
        configuration.inputSize = 16
        configuration.seed = 1
        configuration.rehearsalImages = 8
        configuration.emaDecay = 0.9
        configuration.epochs = 30
        configuration.validation = .fraction(0.25)
        try withTemporaryFolder { run in
            try FileManager.default.copyItem(at: fixture, to: run.appending(path: "checkpoint.safetensors"))
            var resumption: TrainingStart.Resumption?
            let model = try train(
                Self.folder.appending(path: "photos"), configuration,
                checkpoints: CheckpointOptions(folder: run, resumes: true),
                onEvent: { if case .started(let start) = $0 { resumption = start.resumed } })
            #expect(resumption?.hasSameImages == true && resumption?.history == history)
            #expect(model.training?.history.count == 30)
            #expect(try Array(#require(model.training?.history.prefix(22))) == history)
        }
    }

    /// Covers only reading: the fixture has zeros instead of the tensors, so training cannot resume from it.
    @Test("A detector's checkpoint is read: both moments of AdamW, the hard negatives and the progress")
    func detectorCheckpoint() throws {
        try withTemporaryFolder { folder in
            let header = try Data(contentsOf: Self.folder.appending(path: "detector-checkpoint-header.json"))
            let padding = Data(repeating: UInt8(ascii: " "), count: (8 - header.count % 8) % 8)
            var bytes = withUnsafeBytes(of: UInt64(header.count + padding.count).littleEndian) { Data($0) }
            bytes += header + padding + Data(count: 6_588_372)
            let file = folder.appending(path: "checkpoint.safetensors")
            try bytes.write(to: file)
            let checkpoint = try Checkpoint(contentsOf: file)
            #expect(checkpoint.labels == ["disc", "plain"] && checkpoint.isVersionOne)
            #expect(checkpoint.state.progress.history.count == 1 && checkpoint.state.progress.plannedRounds == 4)
            let trainable = ParameterLayout(checkpoint.network).trainableCount
            #expect(
                checkpoint.state.optimizer.mapValues(\.count) == [
                    "firstMoments": trainable, "secondMoments": trainable,
                ])
            #expect(try #require(checkpoint.state.objective).contains("mined"))
        }
    }
}
