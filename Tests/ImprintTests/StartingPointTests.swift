import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@Suite("Starting point") struct StartingPointTests {
    @Test("A base with other labels gets a new head; nothing else changes where the head is trained") func head() throws
    {
        let base = try withPictures(perLabel: 8) { try train($0, quickTraining(epochs: 2)) }
        try withPictures(["down", "left", "up"], perLabel: 8) { folder in
            var counts = (trained: 0, all: 0)
            var recipe: TrainingRecipe?
            let tuned = try train(
                folder, quickTraining(epochs: 2) { $0.start = .base(base, trains: .head) },
                onEvent: {
                    guard case .started(let start) = $0 else { return }
                    counts = (start.trainedCount, start.parameterCount)
                    recipe = start.recipe
                })
            #expect(recipe == .head)
            #expect(Report(base).html.contains(TrainingRecipe.wholePhotos.summary))
            #expect(Report(tuned).html.contains(TrainingRecipe.head.summary))
            #expect(counts.trained == 32 * 3 + 3)
            #expect(counts.all == tuned.parameters.layout.trainableCount)
            #expect(tuned.labels == ["down", "left", "up"])
            #expect(tuned.network.output.channels == 3)
            #expect(tuned.preprocessing == base.preprocessing)
            for entry in base.parameters.layout.entries where entry.node != "head" {
                #expect(tuned.parameters[entry.name] == base.parameters[entry.name], "\(entry.name)")
            }
            let head = try #require(tuned.parameters["head.weight"])
            #expect(head.count == 3 * 32)
            let drawn = try Parameters(tuned.network, seed: 0)
            #expect(head != drawn["head.weight"])
            let observations = try ImageClassifier(tuned).classify(RasterImage(width: 16, height: 16))
            #expect(Set(observations.map(\.label)) == ["down", "left", "up"])
        }
    }

    @Test("The same labels go on from the head that was; all layers are trained where that is asked for") func all()
        throws
    {
        try withPictures(perLabel: 8) { folder in
            let base = try train(folder, quickTraining(epochs: 2))
            let before = try base.parameters.copy()
            func tuned(learningRate: Float) throws -> ModelFile {
                try train(
                    folder,
                    quickTraining(epochs: 1) {
                        $0.start = .base(base, trains: .all)
                        $0.learningRate = learningRate
                    })
            }
            let still = try tuned(learningRate: 0)
            let moved = try tuned(learningRate: 0.01)
            for entry in base.parameters.layout.entries {
                // The base is a value: training from it leaves it as it was.
                #expect(base.parameters[entry.name] == before[entry.name])
                #expect(still.parameters[entry.name] == before[entry.name], "\(entry.name)")
                // Statistics stay those of the base.
                let hasMoved = moved.parameters[entry.name] != before[entry.name]
                #expect(hasMoved == (entry.parameter.role != .statistic), "\(entry.name)")
            }
        }
    }

    @Test("A run names the base that it began from") func lineage() throws {
        try withPictures(perLabel: 4) { folder in
            try withTemporaryFolder { place in
                let url = place.appending(path: "base.imprint")
                let digest = try train(folder, quickTraining(epochs: 1)).write(to: url)
                let base = try ModelFile(contentsOf: url)
                let tuned = try train(folder, quickTraining(epochs: 1) { $0.start = .base(base) })
                #expect(tuned.base == digest)
                // A base that was never written is named as its file would be.
                let again = try train(folder, quickTraining(epochs: 1) { $0.start = .base(tuned) })
                #expect(try again.base == tuned.write(to: url))
            }
        }
    }

    @Test("A head with maxima is new, and begins with factors that make them as large as means") func maxima() throws {
        try withPictures(perLabel: 4) { folder in
            // Of 16 pixels a side LogoNet's last map has one place, of which maximum and mean are the same.
            let base = try train(folder, quickTraining(epochs: 1) { $0.inputSize = 32 })
            func tuned(_ base: ModelFile, rate: Float) throws -> ModelFile {
                try train(
                    folder,
                    quickTraining(epochs: 1) {
                        $0.start = .base(base, trains: .all)
                        $0.poolsMaximum = true
                        $0.learningRate = rate
                    })
            }
            let still = try tuned(base, rate: 0)
            #expect(still.network.headChannels == base.network.headChannels.map { 2 * $0 })
            for entry in base.parameters.layout.entries where entry.node != base.network.headName {
                #expect(still.parameters[entry.name] == base.parameters[entry.name], "\(entry.name)")
            }
            let factors = try #require(try base.network.poolingMaximum()?.factors)
            #expect(Set(try #require(still.parameters[factors])) == [Network.maximumFactor])
            let moved = try tuned(base, rate: 0.01)
            #expect(moved.parameters[factors] != still.parameters[factors])
            #expect(throws: ImprintError.noAveragePooling(network: moved.network.name)) { try tuned(moved, rate: 0) }
        }
    }

    @Test("A base without a dense layer at its end is refused") func noHead() throws {
        var builder = NetworkBuilder(name: "headless", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 2, kernelSize: 3), named: "conv")
        builder.add(GlobalAveragePool())
        let network = try builder.network()
        let base = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withPictures(perLabel: 2) { folder in
            #expect(throws: ImprintError.noHead(network: "headless")) {
                try train(folder, quickTraining { $0.start = .base(base) })
            }
        }
    }
}
