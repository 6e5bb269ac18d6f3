import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of training only the head, on features that are computed once.
@Suite("Features") struct FeatureLoaderTests {
    private func base(_ network: String = "logonet") throws -> ModelFile {
        try withImages(perLabel: 8, seed: 1) {
            try train($0, quickTraining(epochs: 2) { $0.start = .network(network, width: 0.125) })
        }
    }

    /// Trains the head like `ClassifierTrainer`, but runs the whole network in every step.
    private func trainWithoutFeatures(
        _ base: ModelFile, _ folder: URL, _ configuration: ClassifierConfiguration
    ) throws -> (parameters: Parameters, losses: [Float]) {
        let images = try ImageFolder(at: folder)
        let loader = try BatchLoader(
            items: images.items, labels: images.labels, preprocessing: base.preprocessing,
            batchSize: configuration.batchSize, shuffles: true, seed: configuration.seed, workers: Workers(1))
        let network = try base.network.logits()
        let parameters = try base.parameters.copy()
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: configuration.batchSize, mode: .training,
                frozen: Set(network.nodes.map(\.name)).subtracting(["head"])))
        let optimizer = try SGD(
            SGD.Options(
                momentum: configuration.momentum, nesterov: true, weightDecay: configuration.weightDecay),
            for: parameters.layout)
        let steps = (loader.count + configuration.batchSize - 1) / configuration.batchSize
        let schedule = LearningRateSchedule(configuration.schedule, warmUpSteps: steps)
        let loss = SoftmaxCrossEntropy(labelSmoothing: configuration.labelSmoothing)
        var losses: [Float] = []
        for epoch in 0..<configuration.epochs {
            var sum: Float = 0
            try loader.forEachBatch(epoch: epoch, onUnreadable: { _ in }) { batch in
                batch.write(to: plan.input)
                plan.forward(count: batch.count)
                let count = batch.count * network.output.channels
                sum +=
                    Float(batch.count)
                    * loss(
                        logits: UnsafeMutableBufferPointer(rebasing: plan.output[..<count]), targets: batch.labels,
                        gradient: UnsafeMutableBufferPointer(rebasing: plan.outputGradient[..<count])
                    ).loss
                plan.backward(count: batch.count)
                let factor = schedule.factor(at: epoch * steps + batch.index, of: configuration.epochs * steps)
                optimizer.step(plan, learningRate: try #require(configuration.learningRate) * factor)
            }
            losses.append(sum / Float(loader.count))
        }
        return (parameters, losses)
    }

    @Test(
        "Training on cached features equals training with all layers frozen except the head",
        arguments: ["logonet", "lenet"])
    func equivalence(network: String) throws {
        let base = try base(network)
        try withImages(perLabel: 9) { folder in
            let configuration = quickTraining(epochs: 6) {
                $0.start = .base(base)
                $0.batchSize = 5
                $0.labelSmoothing = 0.1
                $0.learningRate = 0.1
            }
            var computed: [[Int]] = []
            let found = try train(
                folder, configuration,
                onEvent: { if case .computingFeatures(let done, let total) = $0 { computed.append([done, total]) } })
            // Features are computed once per image, for any number of epochs.
            #expect(computed == [[5, 18], [10, 18], [15, 18], [18, 18]])
            let expected = try trainWithoutFeatures(base, folder, configuration)
            for entry in base.parameters.layout.entries {
                let (one, other) = (found.parameters[entry.name] ?? [], expected.parameters[entry.name] ?? [])
                let isHead = entry.node == "head"
                #expect(one.count == other.count && (one != base.parameters[entry.name]) == isHead, "\(entry.name)")
                for (one, other) in zip(one, other) {
                    #expect(isHead ? abs(one - other) < 1e-4 : one == other, "\(entry.name)")
                }
            }
            let losses = try #require(found.training).history.map(\.loss)
            for (one, other) in zip(losses, expected.losses) { #expect(abs(one - other) < 1e-4) }
        }
    }

    @Test("Augmented images have different features in every epoch, so features are not cached")
    func augmented() throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            var computed = 0
            let model = try train(
                folder,
                quickTraining(epochs: 2) {
                    $0.start = .base(base)
                    $0.augmentation = Augmentation([.noise])
                }, onEvent: { if case .computingFeatures = $0 { computed += 1 } })
            #expect(computed == 0)
            #expect(model.parameters["conv1.weight"] == base.parameters["conv1.weight"])
            #expect(model.parameters["head.weight"] != base.parameters["head.weight"])
        }
    }

    @Test("Cached features support validation, class weights, EMA, calibration and the learning-rate range test")
    func options() throws {
        let base = try base()
        try withImages(["down", "left", "up"], perLabel: 16) { folder in
            let configuration = quickTraining(epochs: 30) {
                $0.start = .base(base)
                $0.validation = .fraction(0.25)
                $0.learningRate = nil
                $0.emaDecay = 0.9
                $0.classWeights = .automatic
                $0.patience = 10
            }
            var result: TrainingResult?
            var total = 0
            let model = try train(
                folder, configuration,
                onEvent: { event in
                    if case .computingFeatures(_, let all) = event { total = all }
                    if case .finished(let finished) = event { result = finished }
                })
            #expect(total == 48)
            let evaluation = try #require(result?.evaluation)
            #expect(evaluation.results.count == 12)
            #expect(model.training?.calibration != nil && model.training?.classWeights?.count == 3)
            // The evaluation on features equals the predictions of the whole model.
            let classifier = try ImageClassifier(model)
            for result in evaluation.results {
                for classification in try classifier.classify(result.url) {
                    let label = try #require(model.labels.firstIndex(of: classification.label))
                    #expect(abs(classification.confidence - result.confidences[label]) < 1e-3)
                }
            }
            #expect(evaluation.accuracy > 0.6, "chance is a third")
        }
    }

    @Test("An image that disappears before its features are computed is skipped and reported") func skipped() throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            let missing = folder.appending(path: "left/3.png")
            var start: TrainingStart?
            let model = try train(
                folder,
                quickTraining(epochs: 2) {
                    $0.start = .base(base)
                    // No cache: images are read again.
                    $0.memoryLimit = 0
                },
                onEvent: { event in
                    if case .reading(16, 16) = event { try? FileManager.default.removeItem(at: missing) }
                    if case .started(let event) = event { start = event }
                })
            #expect(start?.trainingImages == 15)
            #expect(start?.skipped.map(\.url.lastPathComponent) == ["3.png"])
            #expect(model.training?.trainingImages == ["left": 7, "right": 8])
        }
    }

    @Test("A base model with features that are not finite is an error, not a divergence of training") func overflow()
        throws
    {
        let base = try base("lenet")
        let bias = try #require(base.parameters["dense1.bias"])
        base.parameters["dense1.bias"] = Array(repeating: .infinity, count: bias.count)
        try withImages(perLabel: 8) { folder in
            let error = #expect(throws: ImprintError.self) {
                try train(folder, quickTraining(epochs: 2) { $0.start = .base(base) })
            }
            guard case .nonFiniteOutput = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("Training can be stopped while features are computed") func stopped() throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            var computed = 0
            #expect(throws: ImprintError.stoppedTooEarly(checkpoint: nil)) {
                try train(
                    folder, quickTraining(epochs: 2) { $0.start = .base(base) }, shouldStop: { computed == 1 },
                    onEvent: { if case .computingFeatures = $0 { computed += 1 } })
            }
            #expect(computed == 1)
        }
    }
}
