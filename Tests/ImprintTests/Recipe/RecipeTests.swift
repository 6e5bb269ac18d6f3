import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@Suite("Recipes of pretrained base models") struct RecipeTests {
    /// Returns a base model that distinguishes up from down.
    private func base() throws -> ModelFile {
        try withImages(["down", "up"], perLabel: 8, seed: 1) {
            try train($0, quickTraining(epochs: 2) { $0.inputSize = 32 })
        }
    }

    private func configuration(
        _ base: ModelFile, _ recipe: ClassifierRecipe, change: (inout ClassifierConfiguration) -> Void = { _ in }
    ) -> ClassifierConfiguration {
        var configuration = ClassifierConfiguration()
        configuration.start = .pretrained(base, recipe: recipe)
        configuration.threads = 1
        configuration.batchSize = 8
        change(&configuration)
        return configuration
    }

    /// Trains, and returns the model with the start of the run.
    private func trained(
        _ folder: URL, _ configuration: ClassifierConfiguration, checkpoints: CheckpointOptions? = nil,
        shouldStop: @escaping () -> Bool = { false }
    ) throws -> (model: ModelFile, start: TrainingStart) {
        var started: TrainingStart?
        let model = try train(
            folder, configuration, checkpoints: checkpoints, shouldStop: shouldStop,
            onEvent: { if case .started(let start) = $0 { started = start } })
        return (model, try #require(started))
    }

    private func hyperparameters(of model: ModelFile) -> ClassifierHyperparameters? {
        guard case .classifier(let values) = model.training?.hyperparameters else { return nil }
        return values
    }

    @Test("With few photos, the automatic recipe fits only the head, and is right on the photos") func automatic()
        throws
    {
        let base = try base()
        try withImages(perLabel: 12) { folder in
            let (model, start) = try trained(folder, configuration(base, .automatic))
            let decision = try #require(start.decision)
            #expect(decision.recipe == .head)
            #expect(decision.reason.contains("fewer than 100 training photos"))
            #expect(start.kind == .head)
            #expect(model.training?.accuracy ?? 0 > 0.9)
            for entry in base.parameters.layout.entries where entry.node != base.network.denseHeadName {
                #expect(model.parameters[entry.name] == base.parameters[entry.name], "\(entry.name)")
            }
        }
    }

    @Test("Fine-tuning starts from the fitted head and changes all layers") func fineTuning() throws {
        let base = try base()
        try withImages(perLabel: 12) { folder in
            let (model, start) = try trained(folder, configuration(base, .fineTuning))
            #expect(start.decision?.recipe == .fineTuning)
            #expect(start.epochs == 8)
            #expect(model.training?.trainableLayers == .all)
            let values = try #require(hyperparameters(of: model))
            #expect(values.augmentation.kinds.contains(.rotate))
            #expect(model.parameters["conv1.weight"] != base.parameters["conv1.weight"])
            #expect(model.training?.history.first?.accuracy ?? 0 > 0.7)
        }
    }

    @Test("The fitted head is kept if fine-tuning makes it worse on the validation set") func keepsHead() throws {
        let base = try base()
        try withImages(perLabel: 30) { folder in
            var starts: Set<Float?> = []
            let model = try train(
                folder,
                configuration(base, .fineTuning) {
                    $0.validation = .fraction(0.5)
                    $0.epochs = 1
                    // Mirrored photos have the wrong label, and the steps are too long.
                    $0.augmentation = Augmentation([.flip])
                    $0.learningRate = 0.1
                }, onEvent: { if case .batch(let batch) = $0 { starts.insert(batch.startAccuracy) } })
            let record = try #require(model.training)
            #expect(record.keepsInitialParameters && record.history.count == 1 && starts == [record.startAccuracy])
            let tuned = try #require(record.history[0].validationAccuracy)
            #expect(try #require(record.accuracy) > tuned && record.accuracy == record.startAccuracy)
            #expect(model.parameters["conv1.weight"] == base.parameters["conv1.weight"])
        }
    }

    @Test("With one photo per label, nothing is held out, and the head is fitted") func onePhotoPerLabel() throws {
        let base = try base()
        try withImages(perLabel: 1) { folder in
            let decision = try #require(try trained(folder, configuration(base, .automatic)).start.decision)
            #expect(decision.recipe == .head && decision.evidence?.heldOutPhotos == 0)
            #expect(decision.reason.contains("each label has only one photo"))
        }
    }

    @Test(
        "Recipes use batches of 16 photos for training and a larger validation set",
        arguments: [ClassifierRecipe.head, .fineTuning])
    func batchSize(_ recipe: ClassifierRecipe) throws {
        let base = try base()
        try withImages(perLabel: 40) { folder in
            let (model, start) = try trained(
                folder,
                configuration(base, recipe) {
                    $0.batchSize = ClassifierHyperparameters().batchSize
                    $0.validation = .fraction(0.5)
                    $0.epochs = 1
                })
            #expect(start.validationImages > 32)
            let values = try #require(hyperparameters(of: model))
            #expect(values.batchSize == 16)
            #expect(values.optimizer == (recipe == .head ? .sgd : .adamW))
        }
    }

    @Test("Mirrored photos of left and right look like the other label, so they are not used") func direction() throws {
        let base = try base()
        try withImages(perLabel: 30) { folder in
            let evidence = try #require(try trained(folder, configuration(base, .head)).start.decision?.evidence)
            #expect(evidence.headAccuracy > 0.8)
            #expect(evidence.mirroredAccuracy < 0.5)
            #expect(evidence.dependsOnDirection)
        }
        try withImages(["down", "up"], perLabel: 30) { folder in
            let evidence = try #require(try trained(folder, configuration(base, .head)).start.decision?.evidence)
            #expect(!evidence.dependsOnDirection)
        }
    }

    @Test("Hyperparameters that are set are respected") func overrides() throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            let (model, start) = try trained(
                folder,
                configuration(base, .fineTuning) {
                    $0.epochs = 2
                    $0.augmentation = Augmentation([.noise])
                    $0.fineTuning.layerDecay = 0.5
                })
            let values = try #require(hyperparameters(of: model))
            #expect(values.epochs == 2 && start.decision?.epochs == 2)
            #expect(values.augmentation.kinds == [.noise])
            #expect(start.decision?.augmentation == values.augmentation)
            #expect(values.fineTuning.layerDecay == 0.5)
        }
    }

    @Test("Fixed hyperparameters keep their default values") func fixedDefaults() throws {
        let base = try base()
        let defaults = ClassifierHyperparameters()
        try withImages(perLabel: 8) { folder in
            let (model, start) = try trained(
                folder,
                configuration(base, .fineTuning) {
                    $0.hyperparameters = defaults
                    $0.fixedHyperparameters = Set(RecipeHyperparameter.allCases)
                    $0.validation = .none
                })
            var expected = defaults
            expected.validation = .none
            #expect(hyperparameters(of: model) == expected)
            #expect(start.decision?.epochs == defaults.epochs)
            #expect(start.decision?.augmentation == Augmentation.none)
        }
        // The recipe head accepts that no data augmentation is given.
        try withImages(perLabel: 4) { folder in
            let (_, start) = try trained(
                folder, configuration(base, .head) { $0.fixedHyperparameters = [.augmentation] })
            #expect(start.decision?.recipe == .head)
        }
    }

    @Test("The recipe head keeps the fitted head for any given learning rate, epochs and EMA decay, and names them")
    func headIgnoresSteps() throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            let expected = try train(folder, configuration(base, .head))
            let (model, start) = try trained(
                folder,
                configuration(base, .head) { ($0.learningRate, $0.epochs, $0.emaDecay) = (0.5, 3, 0.9) })
            #expect(start.epochs == 1)
            #expect(start.decision?.reason.hasSuffix("ignores: epochs, learning rate, EMA decay") == true)
            #expect(try bytes(of: model) == bytes(of: expected))
        }
    }

    @Test("The recipe head weights the labels as the training record states") func weightedHead() throws {
        let base = try base()
        try withImages(perLabel: 12) { folder in
            for index in 4..<12 {
                try FileManager.default.removeItem(at: folder.appending(path: "right/\(index).png"))
            }
            let plain = try train(folder, configuration(base, .head))
            let weighted = try train(folder, configuration(base, .head) { $0.classWeights = .automatic })
            let weights = try #require(weighted.training?.classWeights)
            #expect(weights.count == 2 && abs((weights["right"] ?? 0) - 2) < 1e-5)
            let head = try #require(weighted.network.denseHeadName)
            let (bias, plainBias) = (weighted.parameters["\(head).bias"], plain.parameters["\(head).bias"])
            #expect(bias != nil && bias != plainBias)
        }
    }

    @Test("The recipe head with data augmentation is an error") func augmentedHead() throws {
        let base = try base()
        try withImages(perLabel: 4) { folder in
            let error = #expect(throws: ImprintError.self) {
                try train(folder, configuration(base, .head) { $0.augmentation = Augmentation([.flip]) })
            }
            let text = "\(try #require(error))"
            #expect(text.contains("expected none for the recipe head"))
        }
    }

    @Test("The model is bitwise equal for any number of threads", arguments: [ClassifierRecipe.head, .fineTuning])
    func threads(recipe: ClassifierRecipe) throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            let models = try [1, 3].map { threads in
                try train(folder, configuration(base, recipe) { ($0.threads, $0.epochs) = (threads, 2) })
            }
            #expect(try bytes(of: models[0]) == bytes(of: models[1]))
        }
    }

    @Test("An interrupted run resumes with its recipe, without measuring again, to the same model") func resume() throws
    {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            let tuned = configuration(base, .fineTuning) { $0.epochs = 3 }
            let whole = try train(folder, tuned)
            try withTemporaryFolder { checkpoints in
                var options = CheckpointOptions(folder: checkpoints, interval: .zero)
                var steps = 0
                _ = try? trained(folder, tuned, checkpoints: options) {
                    steps += 1
                    return steps > 6
                }
                options.resumes = true
                let automatic = configuration(base, .automatic) { $0.epochs = 3 }
                var measured = false
                let resumed = try train(
                    folder, automatic, checkpoints: options,
                    onEvent: { if case .computingFeatures = $0 { measured = true } })
                #expect(!measured)
                #expect(try bytes(of: resumed) == bytes(of: whole))
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, configuration(base, .head), checkpoints: options)
                }
                #expect("\(try #require(error))".contains("recipe"))
            }
        }
    }

    @Test(
        "A checkpoint that a new run must not replace is reported before the photos are measured",
        arguments: [true, false])
    func unusableCheckpoint(isDamaged: Bool) throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { checkpoints in
                let tuned = configuration(base, .fineTuning) { $0.epochs = 3 }
                var options = CheckpointOptions(folder: checkpoints, interval: .zero)
                var steps = 0
                _ = try? trained(folder, tuned, checkpoints: options) {
                    steps += 1
                    return steps > 6
                }
                if isDamaged {
                    let file = checkpoints.appending(path: CheckpointOptions.fileName)
                    try Data(contentsOf: file).dropLast(4).write(to: file)
                    options.resumes = true
                }
                var events = 0
                let error = #expect(throws: ImprintError.self) {
                    try train(folder, tuned, checkpoints: options, onEvent: { _ in events += 1 })
                }
                #expect(events == 0)
                switch error {
                case .unfinishedCheckpoint?: #expect(!isDamaged)
                case .unusableCheckpoint?: #expect(isDamaged)
                default: Issue.record("unexpected: \(String(describing: error))")
                }
            }
        }
    }

    @Test("A finished fine-tuning run continues with more epochs, and keeps the other hyperparameters of its recipe")
    func longerFineTuning() throws {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { checkpoints in
                // With 16 steps per epoch, a new run of 8 epochs would have a higher EMA decay than one of 2 epochs.
                func tuned(epochs: Int) -> ClassifierConfiguration {
                    configuration(base, .fineTuning) { ($0.epochs, $0.batchSize) = (epochs, 1) }
                }
                var options = CheckpointOptions(folder: checkpoints, interval: .zero)
                let first = try train(folder, tuned(epochs: 2), checkpoints: options)
                options.resumes = true
                for epochs in [8, 9] {
                    let (model, start) = try trained(folder, tuned(epochs: epochs), checkpoints: options)
                    #expect(start.epochs == epochs && start.decision?.epochs == epochs)
                    #expect(start.resumed?.history.isEmpty == false)
                    #expect(model.training?.history.count == epochs)
                    var expected = try #require(hyperparameters(of: first))
                    expected.epochs = epochs
                    #expect(hyperparameters(of: model) == expected)
                }
            }
        }
    }

    @Test("A finished run of the recipe head resumes with more epochs, which it does not need") func longerHead() throws
    {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { checkpoints in
                var options = CheckpointOptions(folder: checkpoints, interval: .zero)
                let first = try train(folder, configuration(base, .head), checkpoints: options)
                options.resumes = true
                let (model, start) = try trained(
                    folder, configuration(base, .head) { $0.epochs = 3 }, checkpoints: options)
                #expect(start.resumed != nil)
                for entry in first.parameters.layout.entries {
                    #expect(model.parameters[entry.name] == first.parameters[entry.name], "\(entry.name)")
                }
            }
        }
    }

    @Test("A time limit that passes while photos are measured is an error with the expected time") func timeLimit()
        throws
    {
        let base = try base()
        try withImages(perLabel: 16) { folder in
            let error = #expect(throws: ImprintError.self) {
                try train(folder, configuration(base, .automatic) { $0.timeLimit = .nanoseconds(1) })
            }
            let text = "\(try #require(error))"
            #expect(text.contains("the time limit of 1 s was reached before the photos were measured"))
        }
    }

    @Test("A run that is stopped while photos are measured ends with an error and no checkpoint") func stopped() throws
    {
        let base = try base()
        try withImages(perLabel: 8) { folder in
            #expect(throws: ImprintError.stoppedTooEarly(checkpoint: nil)) {
                try trained(folder, configuration(base, .automatic), shouldStop: { true })
            }
        }
    }

    @Test(
        "A head without a bias gets one, also for the labels of the base model",
        arguments: [ClassifierRecipe.head, .fineTuning], [["left", "right"], ["down", "up"]])
    func bias(recipe: ClassifierRecipe, labels: [String]) throws {
        var builder = NetworkBuilder(name: "unbiased", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 4, kernelSize: 8, stride: 8))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2, hasBias: false), named: "head")
        builder.add(Softmax())
        let network = try builder.network()
        let base = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["left", "right"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withImages(labels, perLabel: 4) { folder in
            let model = try train(folder, configuration(base, recipe) { $0.epochs = 1 })
            let bias = try #require(model.parameters["head.bias"])
            #expect(bias.count == 2 && bias != [0, 0])
            #expect(try ImageClassifier(model).classify(folder.appending(path: "\(labels[0])/0.png")).count == 2)
        }
    }

    @Test("A base model without a dense head gets one, and a network without any head is refused") func heads() throws {
        var builder = NetworkBuilder(name: "headless", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 2, kernelSize: 3), named: "conv")
        builder.add(GlobalAveragePool())
        let network = try builder.network()
        let headless = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withImages(perLabel: 4) { folder in
            #expect(throws: ImprintError.noHead(network: "headless")) {
                try train(folder, configuration(headless, .automatic))
            }
        }
    }
}
