import Foundation
import Imprint
import ImprintModel
import ImprintNetwork
import Testing

@testable import ImprintTraining

/// The errors about checkpoints of runs with other settings or files.
@Suite struct ResumeFingerprintTests {
    private static let file = URL(filePath: "/run/checkpoint.safetensors")

    private static func otherFiles(_ input: String) -> ImprintError {
        .checkpointOfOtherFiles(file: file.path, input: input)
    }

    private static func mismatch(_ setting: String, found: String, expected: String) -> ImprintError {
        .checkpointMismatch(file: file.path, setting: setting, found: found, expected: expected)
    }

    @Test(
        "The error about another setting describes its name and values in words",
        arguments: [
            ("validation", "automatic", "fraction(0.3)", "validation: it was automatic and is now 0.3 of the photos"),
            ("is multi label", "none", "yes", "several labels per photo: it was no and is now yes"),
            ("uses mixed precision", "yes", "none", "mixed precision: it was yes and is now no"),
            ("keeps groups together", "yes", "no", "keeping near-duplicates together: it was yes and is now no"),
            (
                "artwork", "cross of A; ring of B", " of A; ring of B",
                "artwork: it was cross of A; ring of B and is now no artwork of A; ring of B"
            ),
            ("fine tuning.layer decay", "1.0", "0.5", "layer decay of the fine-tuning: it was 1.0 and is now 0.5"),
            ("labels", "Other, A", "Other, A\u{200B}", #"labels: it was Other, A and is now Other, A\u{200B}"#),
            ("EMA decay", "0.9", "none", "EMA decay: it was 0.9 and is now none"),
        ])
    func texts(setting: String, earlier: String, value: String, text: String) {
        let error = Self.mismatch(setting, found: value, expected: earlier)
        #expect("\(error)".contains("with another setting of \(text). Set it back"), "\(error)")
        let ofFolds = CrossValidationError.otherSettings(
            folder: "folds", setting: setting, found: value, expected: earlier)
        #expect("\(ofFolds)".contains("with another setting of \(text). Set it back"), "\(ofFolds)")
    }

    @Test("The error about other photos explains how photos are identified if none is the same", arguments: [0, 3])
    func otherPhotos(kept: Int) {
        let error = ImprintError.checkpointOfOtherPhotos(file: Self.file.path, kept: kept, of: 8)
        #expect("\(error)".contains("To resume, use the same folder or list") == (kept == 0))
    }

    @Test(
        "The error about a checkpoint of other files describes them without digests",
        arguments: [
            ("artwork", "a (0123456789ab) of A", "a (ba9876543210) of A", otherFiles("artwork")),
            ("boxes", "0123456789ab", "ba9876543210", otherFiles("photos or their boxes")),
            (
                "network", "base 0123456789ab with head trained", "base ba9876543210 with head trained",
                otherFiles("base model")
            ),
            (
                "artwork", "a (0123456789ab) of A", "b (ba9876543210) of A",
                mismatch("artwork", found: "b of A", expected: "a of A")
            ),
            ("boxes", "0123456789ab", nil, mismatch("boxes", found: "none", expected: "set")),
            (
                "network", "base 0123456789ab with head trained", "base 0123456789ab with all trained",
                mismatch("network", found: "base with all trained", expected: "base with head trained")
            ),
            // A number of twelve digits is not a digest.
            (
                "seed", "111111111111", "222222222222",
                mismatch("seed", found: "222222222222", expected: "111111111111")
            ),
        ] as [(String, String, String?, ImprintError)])
    func differences(setting: String, earlier: String, value: String?, expected: ImprintError) throws {
        var builder = NetworkBuilder(name: "line", input: TensorShape(channels: 1))
        builder.add(Dense(outputChannels: 1), named: "line")
        let network = try builder.network()
        let checkpoint = Checkpoint(
            network: network, labels: [], settings: [setting: earlier],
            images: .init(digests: [], training: [], validation: [], leakage: nil),
            state: TrainingState(
                progress: TrainingProgress(learningRate: 0.1, plannedRounds: 1), parameters: [1, 2], optimizer: [:]))
        #expect(throws: expected) {
            try checkpoint.checkFits(
                network, labels: [], settings: value.map { [setting: $0] } ?? [:], file: Self.file)
        }
    }
}
