import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@Suite("Starting point") struct StartingPointTests {
    @Test("A base with other labels gets a new head, and head-only training changes only the head")
    func head() throws {
        let base = try withImages(perLabel: 8) { try train($0, quickTraining(epochs: 2)) }
        try withImages(["down", "left", "up"], perLabel: 8) { folder in
            var counts = (trained: 0, all: 0)
            var recipe: TrainingRecipe?
            let tuned = try train(
                folder, quickTraining(epochs: 2) { $0.start = .base(base, trainableLayers: .head) },
                onEvent: {
                    guard case .started(let start) = $0 else { return }
                    counts = (start.trainableParameterCount, start.parameterCount)
                    recipe = start.recipe
                })
            #expect(recipe == .head)
            #expect(Report(base).html.contains(TrainingRecipe.fromScratch.summary))
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
            let initial = try Parameters(tuned.network, seed: 0)
            #expect(head != initial["head.weight"])
            let classifications = try ImageClassifier(tuned).classify(RasterImage(width: 16, height: 16))
            #expect(Set(classifications.map(\.label)) == ["down", "left", "up"])
        }
    }

    @Test("With the same labels training continues from the base's head, and can train all layers")
    func all() throws {
        try withImages(perLabel: 8) { folder in
            let base = try train(folder, quickTraining(epochs: 2))
            let before = try base.parameters.copy()
            func tuned(learningRate: Float) throws -> ModelFile {
                try train(
                    folder,
                    quickTraining(epochs: 1) {
                        $0.start = .base(base, trainableLayers: .all)
                        $0.learningRate = learningRate
                    })
            }
            let unchanged = try tuned(learningRate: 0)
            let moved = try tuned(learningRate: 0.01)
            for entry in base.parameters.layout.entries {
                // Training does not change the base.
                #expect(base.parameters[entry.name] == before[entry.name])
                #expect(unchanged.parameters[entry.name] == before[entry.name], "\(entry.name)")
                // The batch-norm statistics come from the base.
                let hasMoved = moved.parameters[entry.name] != before[entry.name]
                #expect(hasMoved == (entry.parameter.role != .statistic), "\(entry.name)")
            }
        }
    }

    @Test("A model contains the digest of its base") func lineage() throws {
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let url = scratch.appending(path: "base.imprint")
                let digest = try train(folder, quickTraining(epochs: 1)).write(to: url)
                let base = try ModelFile(contentsOf: url)
                let tuned = try train(folder, quickTraining(epochs: 1) { $0.start = .base(base) })
                #expect(tuned.base == digest)
                // The digest of a base that was never saved is the digest that its file would have.
                let again = try train(folder, quickTraining(epochs: 1) { $0.start = .base(tuned) })
                #expect(try again.base == tuned.write(to: url))
            }
        }
    }

    @Test("A head with concat pooling is new, and its maxima start with the initial scale")
    func concatPooling() throws {
        try withImages(perLabel: 4) { folder in
            // At 16x16 pixels LogoNet's last feature map has a single element, whose maximum equals the mean, so the size is 32.
            let base = try train(folder, quickTraining(epochs: 1) { $0.inputSize = 32 })
            func tuned(_ base: ModelFile, rate: Float) throws -> ModelFile {
                try train(
                    folder,
                    quickTraining(epochs: 1) {
                        $0.start = .base(base, trainableLayers: .all)
                        $0.poolsMaximum = true
                        $0.learningRate = rate
                    })
            }
            let unchanged = try tuned(base, rate: 0)
            #expect(unchanged.network.headChannels == base.network.headChannels.map { 2 * $0 })
            for entry in base.parameters.layout.entries where entry.node != base.network.denseHeadName {
                #expect(unchanged.parameters[entry.name] == base.parameters[entry.name], "\(entry.name)")
            }
            let scale = try #require(try base.network.withConcatPooling()?.scaleName)
            #expect(Set(try #require(unchanged.parameters[scale])) == [Network.initialMaximumScale])
            let moved = try tuned(base, rate: 0.01)
            #expect(moved.parameters[scale] != unchanged.parameters[scale])
            #expect(throws: ImprintError.noAveragePooling(network: moved.network.name)) { try tuned(moved, rate: 0) }
        }
    }

    @Test("Settings that the start would ignore are rejected by name") func ignoredSettings() throws {
        try withImages(perLabel: 2) { folder in
            func expectError(
                _ name: String, _ start: ClassifierConfiguration.Start,
                _ change: (inout ClassifierConfiguration) -> Void
            ) {
                var configuration = quickTraining { $0.start = start }
                change(&configuration)
                let error = #expect(throws: ImprintError.self) { try train(folder, configuration) }
                guard case .invalidSetting(name, _, _) = error else {
                    Issue.record("\(name): \(String(describing: error))")
                    return
                }
            }
            let base = ClassifierConfiguration.Start.base(try .builtInBase())
            for start in [base, .builtInBase] {
                expectError("inputSize", start) { $0.inputSize = 32 }
                expectError("cropAndScale", start) { $0.cropAndScale = .scaleFit }
            }
            let network = ClassifierConfiguration.Start.network("logonet", width: 0.125)
            expectError("poolsMaximum", network) { $0.poolsMaximum = true }
            expectError("fineTuning", network) { $0.fineTuning.layerDecay = 0.9 }
        }
    }

    @Test("A base that does not end in a dense layer is rejected") func noHead() throws {
        var builder = NetworkBuilder(name: "headless", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 2, kernelSize: 3), named: "conv")
        builder.add(GlobalAveragePool())
        let network = try builder.network()
        let base = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withImages(perLabel: 2) { folder in
            #expect(throws: ImprintError.noHead(network: "headless")) {
                try train(folder, quickTraining { $0.start = .base(base) })
            }
        }
    }
}
