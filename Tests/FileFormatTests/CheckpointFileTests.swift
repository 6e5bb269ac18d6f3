import Foundation
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

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
}
