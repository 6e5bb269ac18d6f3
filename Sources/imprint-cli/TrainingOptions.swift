internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// The training options of `imprint train`, which make a `ClassifierConfiguration`.
///
/// A new hyperparameter needs three things in one of the groups: an option, a line in `set(_:)` that sets the property, and a term of `arguments`
/// that repeats the option. If the option does not have the property's name, `require(_:)` in DatasetOptions.swift needs the name.
struct TrainingOptions: ParsableArguments {
    @OptionGroup(title: "Data")
    var dataset: DatasetOptions

    @OptionGroup(title: "Length of training")
    var length: TrainingLengthOptions

    @OptionGroup(title: "Optimization and loss")
    var optimization: OptimizationOptions

    @OptionGroup(title: "New network")
    var network: NetworkOptions

    @OptionGroup(title: "Base model and fine-tuning")
    var baseOptions: TrainingBaseOptions

    @Option(
        help: AugmentationList.help(
            "Data augmentation of the training photos", note: "(default: as the recipe chooses; otherwise none)"))
    var augment: AugmentationList?

    func validate() throws {
        let hyperparameters = try hyperparameters()
        try require(hyperparameters.problem)
        try check(isMultiLabel: optimization.multiLabel)
        guard baseOptions.recipe != .head || hyperparameters.augmentation == .none else {
            throw ValidationError(
                "--recipe head trains the head on features that are computed once, without data augmentation. Leave out --augment, or "
                    + "choose --recipe fine-tune or manual.")
        }
        guard network.buildsNetwork else { return }
        guard baseOptions.base == nil else {
            throw ValidationError(
                "--base brings its own network and preprocessing. Leave out --network, --width, --input-size and "
                    + "--crop-and-scale.")
        }
        try baseOptions.requireNone()
    }

    /// Checks that training uses the options.
    /// - Parameter isMultiLabel: Whether the model is multi-label, because of an option or of the photos.
    func check(isMultiLabel: Bool) throws {
        guard isMultiLabel, dataset.rehearsal > 0, dataset.rehearsal != ClassifierHyperparameters().rehearsalImages
        else { return }
        throw ValidationError(
            "--rehearsal stores features for imprint personalize, which does not support multi-label models. Leave it out."
        )
    }

    private func hyperparameters() throws -> ClassifierHyperparameters {
        var values = ClassifierHyperparameters()
        values.validation = try dataset.validationRule().rule
        values.keepsGroupsTogether = !dataset.randomSplit
        values.rehearsalImages = dataset.rehearsal
        values.seed = dataset.seed
        try length.set(&values)
        optimization.set(&values)
        network.set(&values)
        if let augment { values.augmentation = try augment.augmentation() }
        return values
    }

    /// The hyperparameters whose options are given, so that a recipe does not set them.
    private var fixedHyperparameters: Set<RecipeHyperparameter> {
        let options: [(hyperparameter: RecipeHyperparameter, isGiven: Bool)] = [
            (.epochs, length.epochs != nil), (.batchSize, optimization.batchSize != nil),
            (.augmentation, augment != nil),
            (.learningRate, optimization.learningRate != nil), (.layerDecay, baseOptions.layerDecay != nil),
            (.labelSmoothing, optimization.labelSmoothing != nil),
            (.gradientClipping, optimization.gradientClipping != nil),
            (.emaDecay, optimization.average != nil),
        ]
        return Set(options.filter(\.isGiven).map(\.hyperparameter))
    }

    /// The configuration of a classifier.
    func configuration(threads: Int) throws -> ClassifierConfiguration {
        var configuration = ClassifierConfiguration()
        configuration.hyperparameters = try hyperparameters()
        configuration.fixedHyperparameters = fixedHyperparameters
        if network.buildsNetwork {
            configuration.start = .network(network.name, width: network.width ?? 1)
        } else {
            try baseOptions.apply(to: &configuration)
        }
        configuration.validationFolder = dataset.validationFolder
        configuration.threads = threads
        configuration.storagePrecision = dataset.precision
        configuration.memoryLimit = try dataset.memory?.byteCount()
        return configuration
    }

    /// The base model, or the network that is trained from scratch, as a sentence.
    func startingPoint() throws -> String {
        guard !network.buildsNetwork else { return "Network: \(network.name), trained from scratch." }
        let name = try baseOptions.name()
        return "Base model: \(visible(name))\(name == builtInBaseName ? ", which comes with Imprint" : "")."
    }

    /// The command-line arguments that repeat the run, without options that do not change the result.
    var arguments: [String] {
        dataset.arguments + baseOptions.arguments + network.arguments + option("--augment", augment?.description)
            + length.arguments + optimization.arguments
    }
}
