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
            var recipe: TrainingKind?
            let tuned = try train(
                folder, quickTraining(epochs: 2) { $0.start = .base(base, trainableLayers: .head) },
                onEvent: {
                    guard case .started(let start) = $0 else { return }
                    counts = (start.trainableParameterCount, start.parameterCount)
                    recipe = start.kind
                })
            #expect(recipe == .head)
            #expect(Report(base).html.contains(TrainingKind.fromScratch.summary))
            #expect(Report(tuned).html.contains(TrainingKind.head.summary))
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
                #expect(tuned.baseDigest == digest)
                // The digest of a base that was never saved is the digest that its file would have.
                let again = try train(folder, quickTraining(epochs: 1) { $0.start = .base(tuned) })
                #expect(try again.baseDigest == tuned.write(to: url))
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
            let own = try ownNetwork()
            let untrained = ClassifierConfiguration.Start.untrained(
                own, preprocessing: Preprocessing(width: 16, height: 16))
            expectError("inputSize", untrained) { $0.inputSize = 32 }
            expectError("cropAndScale", untrained) { $0.cropAndScale = .scaleFit }
            expectError("poolsMaximum", untrained) { $0.poolsMaximum = true }
            expectError("fineTuning", untrained) { $0.fineTuning.layerDecay = 0.9 }
            var invalid = Preprocessing(width: 16, height: 16)
            invalid.scale = [0, 0, 0]
            for preprocessing in [Preprocessing(width: 32, height: 16), invalid] {
                expectError("preprocessing", .untrained(own, preprocessing: preprocessing)) { _ in }
            }
        }
    }

    /// Returns a network for 16x16 pixels.
    private func ownNetwork(outputs: Int = 2, kernelSize: Int = 3, endsInSoftmax: Bool = true) throws -> Network {
        var builder = NetworkBuilder(name: "own", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 8, kernelSize: Size2D(kernelSize)), named: "conv")
        builder.add(ReLU())
        builder.add(MaxPool(kernelSize: 2))
        builder.add(Flatten())
        builder.add(Dense(outputChannels: outputs), named: "head")
        if endsInSoftmax { builder.add(Softmax()) }
        return try builder.network()
    }

    @Test(
        "A network of an app is trained from random parameters, with a head for the labels",
        arguments: [(2, true), (7, true), (2, false)])
    func untrained(outputs: Int, endsInSoftmax: Bool) throws {
        let network = try ownNetwork(outputs: outputs, endsInSoftmax: endsInSoftmax)
        let preprocessing = Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit)
        try withImages(perLabel: 4) { folder in
            var recipe: TrainingKind?
            let model = try train(
                folder, quickTraining(epochs: 1) { $0.start = .untrained(network, preprocessing: preprocessing) },
                onEvent: { if case .started(let start) = $0 { recipe = start.kind } })
            #expect(recipe == .fromScratch && model.baseDigest == nil && model.training?.trainableLayers == nil)
            #expect(model.network.output == TensorShape(channels: 2) && model.network.nodes.last?.layer is Softmax)
            #expect((model.network == network) == (outputs == 2 && endsInSoftmax))
            #expect(model.preprocessing == preprocessing)
            let photo = folder.appending(path: "left/0.png")
            let confidences = try ImageClassifier(model).classify(photo).map(\.confidence)
            #expect(confidences.count == 2 && confidences.allSatisfy(\.isFinite))
        }
    }

    @Test("A run on a network of an app resumes only with the same network and preprocessing") func resumesUntrained()
        throws
    {
        let preprocessing = Preprocessing(width: 16, height: 16)
        var darker = preprocessing
        darker.mean = [0, 0, 0]
        let network = try ownNetwork()
        func configuration(_ network: Network, _ preprocessing: Preprocessing, epochs: Int) -> ClassifierConfiguration {
            quickTraining(epochs: epochs) { $0.start = .untrained(network, preprocessing: preprocessing) }
        }
        try withImages(perLabel: 4) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName).path
                _ = try train(folder, configuration(network, preprocessing, epochs: 1), checkpoints: options)
                for (other, pixels) in [(try ownNetwork(kernelSize: 5), preprocessing), (network, darker)] {
                    let error = #expect(throws: ImprintError.self) {
                        try train(folder, configuration(other, pixels, epochs: 2), checkpoints: options)
                    }
                    guard case .checkpointMismatch(file, "network", _, _) = error else {
                        Issue.record("\(String(describing: error))")
                        continue
                    }
                }
                let resumed = try train(folder, configuration(network, preprocessing, epochs: 2), checkpoints: options)
                #expect(resumed.training?.history.count == 2)
            }
        }
    }

    @Test("A base or a network of an app that does not end in a dense layer is rejected") func noHead() throws {
        var builder = NetworkBuilder(name: "headless", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 2, kernelSize: 3), named: "conv")
        builder.add(GlobalAveragePool())
        let network = try builder.network()
        let base = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withImages(perLabel: 2) { folder in
            let preprocessing = base.preprocessing
            for start in [.base(base), .untrained(network, preprocessing: preprocessing)]
                as [ClassifierConfiguration.Start]
            {
                #expect(throws: ImprintError.noHead(network: "headless")) {
                    try train(folder, quickTraining { $0.start = start })
                }
            }
        }
    }
}
