import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintModel

@Suite("Checkpoint file") struct CheckpointFileTests {
    @Test(
        "A checkpoint keeps the number of optimizer steps, which older checkpoints do not have",
        arguments: [nil, 5] as [Int?])
    func optimizerSteps(steps: Int?) throws {
        var builder = NetworkBuilder(name: "line", input: TensorShape(channels: 1))
        builder.add(Dense(outputChannels: 1), named: "line")
        let network = try builder.network()
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "checkpoint.safetensors")
            try Checkpoint(
                network: network, labels: [], settings: [:],
                images: .init(digests: [], training: [], validation: [], leakage: nil),
                state: TrainingState(
                    progress: TrainingProgress(learningRate: 0.1, plannedRounds: 1), parameters: [1, 2],
                    optimizer: ["firstMoments": [3, 4], "secondMoments": [5, 6]], optimizerSteps: steps)
            ).write(to: file)
            #expect(try Checkpoint(contentsOf: file).state.optimizerSteps == steps)
        }
    }

    @Test(
        "A checkpoint keeps the images of its best parameters, and one with an impossible count of them is rejected",
        arguments: [7, -1, Int.max])
    func imagesOfBest(count: Int) throws {
        var builder = NetworkBuilder(name: "line", input: TensorShape(channels: 1))
        builder.add(Dense(outputChannels: 1), named: "line")
        let network = try builder.network()
        var images = Checkpoint.Images(
            digests: ["a"], training: ["b"], validation: ["c"], leakage: nil,
            identities: String(repeating: "0", count: 32))
        images.trainingCounts = ["left": count]
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "checkpoint.safetensors")
            try Checkpoint(
                network: network, labels: [], settings: [:],
                images: .init(digests: [], training: [], validation: [], leakage: nil), imagesOfBest: images,
                state: TrainingState(
                    progress: TrainingProgress(learningRate: 0.1, plannedRounds: 1), parameters: [1, 2],
                    optimizer: ["velocities": [3, 4]])
            ).write(to: file)
            if count == 7 {
                #expect(try Checkpoint(contentsOf: file).imagesOfBest == images)
            } else {
                let error = #expect(throws: ModelFileError.self) { try Checkpoint(contentsOf: file) }
                #expect("\(try #require(error))".contains("imprint.imagesOfBest: found the count \(count)"))
            }
        }
    }

    /// Returns images with an identity for each, which depends on its path and a number.
    private func images(
        _ training: [String], _ validation: [String], edited: Set<String> = [], hasIdentities: Bool = true
    ) -> Checkpoint.Images {
        let identities = (training + validation).map { path in
            String(path.utf8.reduce(UInt64(edited.contains(path) ? 2 : 1) << 60) { $0 &+ UInt64($1) }, radix: 16)
        }
        return Checkpoint.Images(
            digests: ["a", "b"], training: training, validation: validation, leakage: ["pairs": 3],
            identities: hasIdentities ? identities.joined() : nil)
    }

    @Test("The images of the best parameters are stored as the difference to the images of the run, without loss")
    func imagesDifference() throws {
        let run = images(["a", "b", "c", "\u{e9}"], ["d", "e"])
        let withoutIdentities = images(run.training, run.validation, hasIdentities: false)
        let cases = [
            run, images([], []), images(["x"], ["y", "z"]), images(["a", "b", "new", "c"], ["e"]),
            images(["d", "c", "b", "a"], ["e"]), images(["a", "b"], ["a", "d"]), images(["e\u{301}", "a"], []),
            images(["a", "b", "c"], ["d"], edited: ["b", "d"]), images(["a", "x"], ["d"], hasIdentities: false),
        ]
        for expected in cases {
            for base in [run, withoutIdentities] {
                let text = try json(ImagesDifference(expected, from: base))
                let stored = try JSONDecoder().decode(ImagesDifference.self, from: Data(text.utf8))
                let found = try #require(stored.images(from: base))
                // As bytes, because paths that differ only in their Unicode normalization are equal strings.
                #expect(try Array(json(found).utf8) == Array(json(expected).utf8))
            }
        }
    }

    @Test("The images of the best parameters take little space if the run has most of them")
    func sizeOfImagesDifference() throws {
        let paths = (0..<10_000).map { "a long name of a folder/\($0).jpg" }
        let text = try json(ImagesDifference(images(paths, []), from: images(["new"] + paths.dropFirst(2), [paths[0]])))
        #expect(text.utf8.count < 1000)
    }

    @Test(
        "A difference that does not fit the images of the run is rejected",
        arguments: [
            ("[{\"count\":3,\"first\":0}]", 0), ("[{\"count\":1,\"first\":3}]", 0), ("[{\"count\":1,\"first\":-1}]", 0),
            ("[{\"count\":-1,\"first\":1}]", 0), ("[{\"count\":9223372036854775807,\"first\":1}]", 0),
            ("[{\"count\":2,\"first\":0},{\"count\":1,\"first\":0}]", 0), ("[]", 1), ("[]", -1),
        ])
    func invalidDifference(segments: String, trainingImages: Int) throws {
        let text = #"{"digests":[],"paths":[],"segments":SEGMENTS,"trainingImages":COUNT}"#
            .replacing("SEGMENTS", with: segments).replacing("COUNT", with: "\(trainingImages)")
        let difference = try JSONDecoder().decode(ImagesDifference.self, from: Data(text.utf8))
        #expect(difference.images(from: images(["a"], ["b"])) == nil)
    }
}
