public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintModel
internal import ImprintTraining

/// The options of transfer learning: the base model and its fine-tuning.
struct TrainingBaseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The base model to fine-tune: a file, a name from imprint models list, or built-in for the one that comes with Imprint. It gets a "
                + "new head. (default: the first installed one, otherwise built-in; none with --network, --width, --input-size or "
                + "--crop-and-scale)",
            valueName: "model"))
    var base: String?

    @Option(
        help: ArgumentHelp(
            "The recipe for a pretrained base model: auto measures the photos and chooses; head trains only the head; fine-tune trains all "
                + "layers; manual uses the hyperparameters as they are. A recipe keeps the hyperparameters whose options are given. (default: auto, "
                + "or manual with --unfreeze)",
            valueName: "recipe"))
    var recipe: RecipeArgument?

    @Option(
        help: ArgumentHelp(
            "The trainable layers of the base model: head; all; head-first, to train the head before all layers; or gradual, to unfreeze "
                + "one block of layers after another. (default: as the recipe chooses; with --recipe manual head, or all without --base)",
            valueName: "layers"))
    var unfreeze: FineTuning.TrainableLayers?

    @Option(
        help: ArgumentHelp(
            "Layer-wise learning-rate decay: the learning rate of a block of layers is the next block's rate times this factor. (default: as "
                + "the recipe chooses; otherwise \(FineTuning().layerDecay))", valueName: "factor"))
    var layerDecay: Float?

    @Option(
        help: ArgumentHelp(
            "The number of epochs of each stage of head-first and gradual, except the last stage. (default: \(FineTuning().stageEpochs))",
            valueName: "epochs"))
    var stageEpochs: Int?

    @Flag(
        help:
            "Use the statistics of each batch in batch normalization instead of the base model's running statistics."
    )
    var batchStatistics = false

    @Flag(
        help:
            "Concatenate global average and max pooling before the head, for objects that are small in the photos."
    )
    var poolMaximum = false

    func validate() throws {
        try requirePaths([base].compactMap { $0 })
        var hyperparameters = ClassifierHyperparameters()
        set(&hyperparameters)
        try require(hyperparameters.problem)
        if unfreeze != nil, let recipe, recipe != .manual {
            throw ValidationError(
                "--recipe \(recipe.rawValue) chooses the trainable layers. Leave out --unfreeze, or add --recipe manual."
            )
        }
        let trainsOnlyHead = trainsOnlyHead
        if trainsOnlyHead && (layerDecay != nil || batchStatistics) {
            throw ValidationError(
                "--layer-decay and --batch-statistics apply to layers before the head, which are frozen. Add --unfreeze all, "
                    + "head-first or gradual.")
        }
        if stageEpochs != nil && unfreeze != .headFirst && unfreeze != .gradual {
            throw ValidationError(
                "--stage-epochs needs several stages, but there is only one. Add --unfreeze head-first or gradual.")
        }
    }

    /// The recipe for a pretrained base model, or nil if the hyperparameters are used as they are.
    private var chosenRecipe: ClassifierRecipe? {
        switch recipe {
        case nil: unfreeze == nil ? .automatic : nil
        case .auto: .automatic
        case .head: .head
        case .fineTune: .fineTuning
        case .manual: nil
        }
    }

    /// Why the automatic recipe fine-tunes the base model that comes with Imprint, as the end of a sentence; nil with another recipe.
    var reasonForBuiltInBase: String? {
        guard chosenRecipe == .automatic else { return nil }
        return base == nil ? "because a pretrained base model is not installed" : "as requested"
    }

    /// The name of the base model: as given, otherwise the first installed base model or the one that comes with Imprint.
    func name() throws -> String { try base ?? BaseModels().first?.name ?? builtInBaseName }

    /// The trainable layers without a recipe.
    private var trainableLayers: FineTuning.TrainableLayers { unfreeze ?? (base == nil ? .all : .head) }

    /// Whether all layers before the head are frozen.
    private var trainsOnlyHead: Bool { chosenRecipe.map { $0 == .head } ?? (trainableLayers == .head) }

    /// The names of the fine-tuning options that are set.
    private var fineTuningOptions: [String] {
        [
            ("--recipe", recipe != nil && recipe != .manual), ("--unfreeze", unfreeze != nil),
            ("--layer-decay", layerDecay != nil),
            ("--stage-epochs", stageEpochs != nil), ("--batch-statistics", batchStatistics),
            ("--pool-maximum", poolMaximum),
        ].filter(\.1).map(\.0)
    }

    /// Checks that no fine-tuning option is set, for a run without a base model.
    func requireNone() throws {
        guard fineTuningOptions.isEmpty else {
            throw ValidationError(
                "\(fineTuningOptions.joined(separator: ", ")): there is no base model to fine-tune. Name one with --base, or leave out "
                    + "--network, --width, --input-size and --crop-and-scale to use the one that comes with Imprint."
            )
        }
    }

    /// Sets the base model and fine-tuning hyperparameters of a configuration.
    func apply(to configuration: inout ClassifierConfiguration) throws {
        if let chosenRecipe {
            // Without an installed base model, the library uses the one that comes with Imprint.
            if base == nil, chosenRecipe == .automatic {
                if let model = try installedModel() { configuration.start = .pretrained(model) }
            } else if base == builtInBaseName, chosenRecipe == .automatic,
                !FileManager.default.fileExists(atPath: builtInBaseName)
            {
                // The recipe measures features of photos; the base model that comes with Imprint has learned only drawings.
                configuration.start = .builtInBase
            } else {
                configuration.start = .pretrained(try baseModel(), recipe: chosenRecipe)
            }
        } else {
            configuration.start = .base(try baseModel(), trainableLayers: trainableLayers)
        }
        set(&configuration.hyperparameters)
    }

    /// Returns the base model that is named; otherwise the first installed one, or the one that comes with Imprint.
    private func baseModel() throws -> ModelFile {
        if let base { return try imprint_cli.baseModel(base) }
        return try installedModel() ?? .builtInBase()
    }

    /// Returns the first installed base model that can be used, with a warning about each one before it; nil without one.
    private func installedModel() throws -> ModelFile? {
        try BaseModels().firstModel { base, error in
            Terminal.warn("Training does not use the base model \(base.name): \(error)")
        }?.model
    }

    private func set(_ values: inout ClassifierHyperparameters) {
        if let layerDecay { values.fineTuning.layerDecay = layerDecay }
        if let stageEpochs { values.fineTuning.stageEpochs = stageEpochs }
        values.fineTuning.freezesStatistics = !batchStatistics
        values.poolsMaximum = poolMaximum
    }

    /// The command-line arguments that set the same options.
    var arguments: [String] {
        option("--base", base) + option("--recipe", recipe?.rawValue) + option("--unfreeze", unfreeze?.rawValue)
            + option("--layer-decay", layerDecay)
            + option("--stage-epochs", stageEpochs) + flag("--batch-statistics", batchStatistics)
            + flag("--pool-maximum", poolMaximum)
    }
}

/// The value of --recipe.
enum RecipeArgument: String, ExpressibleByArgument, CaseIterable {
    case auto, head
    case fineTune = "fine-tune"
    case manual
}

extension FineTuning.TrainableLayers: ExpressibleByArgument {}
