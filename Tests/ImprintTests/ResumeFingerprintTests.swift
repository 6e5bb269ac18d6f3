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
        "The error about a checkpoint of other files describes them without digests",
        arguments: [
            ("artwork", "a (0123456789ab) of A", "a (ba9876543210) of A", otherFiles("artwork")),
            ("boxes", "0123456789ab", "ba9876543210", otherFiles("boxes")),
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
