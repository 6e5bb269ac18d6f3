public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// The training options of `imprint train`, which make a `ClassifierConfiguration`.
///
/// A new hyperparameter needs three things here: an option, a line in `hyperparameters()` that sets the property, and a term of `arguments` that
/// repeats the option. If the option does not have the property's name, `require(_:)` in DatasetOptions.swift needs the name.
struct TrainingOptions: ParsableArguments {
    /// The default hyperparameters.
    private static let defaults = ClassifierHyperparameters()

    @OptionGroup var dataset: DatasetOptions

    @Option(
        help: ArgumentHelp(
            "The maximum number of epochs; the model file stores the epoch with the lowest validation loss. Raise it with --resume to train "
                + "longer. (default: as the recipe chooses; otherwise \(Self.defaults.epochs))"))
    var epochs: Int?

    @Option(
        help: ArgumentHelp(
            "The batch size: the number of photos in a training step. (default: as the recipe chooses; otherwise "
                + "\(Self.defaults.batchSize))"))
    var batchSize: Int?

    @Option(
        help: ArgumentHelp(
            "The peak of the learning-rate schedule (warm-up of one epoch, then cosine decay), or auto to find it by a learning-rate range "
                + "test. (default: as the recipe chooses; otherwise \(Self.defaults.learningRate.map { "\($0)" } ?? "auto"))",
            valueName: "rate"))
    var learningRate: LearningRate?

    @Option(help: "Early stopping: the number of epochs without an improvement in validation loss. (default: off)")
    var patience: Int?

    @Option(help: TimeLimit.help(written: "the best model so far"))
    var timeLimit: TimeLimit?

    @Option(help: "The height and width of the network's input, in pixels. (default: as in the network)")
    var inputSize: Int?

    @Option(
        help: ArgumentHelp(
            "Train this network from scratch: \(Network.readyMadeNames.joined(separator: ", ")). (default: \(Self.defaultNetwork), if "
                + "--width, --input-size or --crop-and-scale is given)"))
    var network: String?

    @Option(help: "A factor on the network's channels. (default: 1)")
    var width: Double?

    @OptionGroup var baseOptions: TrainingBaseOptions

    @Option(
        help: AugmentationList.help(
            "Data augmentation of the training photos", note: "(default: as the recipe chooses; otherwise none)"))
    var augment: AugmentationList?

    @Option(help: "How a photo is fitted into the network's input. (default: center-crop)")
    var cropAndScale: CropAndScale?

    @Option(
        help: ArgumentHelp(
            "Label smoothing: the fraction of each target that is spread over all labels. (default: as the recipe chooses; otherwise "
                + "\(Self.defaults.labelSmoothing))"))
    var labelSmoothing: Float?

    @Flag(
        help:
            "Train a multi-label model, which predicts each label on its own; the default if photos of a list have several labels or none."
    )
    var multiLabel = false

    @Option(help: "Class weights: none, or auto to weight labels in inverse proportion to their number of photos.")
    var classWeights = Self.defaults.classWeights

    @Option(
        help: ArgumentHelp(
            "Gradient clipping: the maximum Euclidean norm of the gradient, such as 5. (default: as the recipe chooses; otherwise "
                + "no clipping)",
            valueName: "norm"))
    var gradientClipping: Float?

    @Option(
        help: ArgumentHelp(
            "The decay of an exponential moving average (EMA) of the parameters, such as 0.99. (default: as the recipe "
                + "chooses; otherwise no average)",
            valueName: "decay"))
    var average: Float?

    @Flag(help: "Do not calibrate confidences on the validation set.")
    var noCalibration = false

    private static let defaultNetwork = "logonet"

    func validate() throws {
        let hyperparameters = try hyperparameters()
        try require(hyperparameters.problem)
        guard baseOptions.recipe != .head || hyperparameters.augmentation == .none else {
            throw ValidationError(
                "--recipe head trains the head on features that are computed once, without data augmentation; leave out --augment, or "
                    + "choose --recipe fine-tune or manual.")
        }
        guard buildsNetwork else { return }
        guard baseOptions.base == nil else {
            throw ValidationError(
                "--base brings its own network and preprocessing; leave out --network, --width, --input-size and "
                    + "--crop-and-scale.")
        }
        try baseOptions.requireNone()
        do {
            _ = try Network.named(
                network ?? Self.defaultNetwork, labels: 2, inputSize: inputSize, width: width ?? 1)
        } catch NetworkError.invalidProperty(_, let property, let found, let expected) {
            let option = property == "inputSize" ? "--input-size" : "--\(property)"
            throw ValidationError("\(option) is \(found), expected \(expected).")
        } catch {
            throw ValidationError("\(error).")
        }
    }

    /// Whether the options ask for a new network, which is trained from scratch.
    private var buildsNetwork: Bool { network != nil || width != nil || inputSize != nil || cropAndScale != nil }

    private func hyperparameters() throws -> ClassifierHyperparameters {
        var values = ClassifierHyperparameters()
        values.validation = try dataset.validationRule().rule
        values.keepsGroupsTogether = !dataset.randomSplit
        values.rehearsalImages = dataset.rehearsal
        values.seed = dataset.seed
        if let epochs { values.epochs = epochs }
        if let batchSize { values.batchSize = batchSize }
        if let learningRate { values.learningRate = learningRate.rate }
        values.patience = patience
        values.timeLimit = try timeLimit?.duration()
        if let labelSmoothing { values.labelSmoothing = labelSmoothing }
        values.classWeights = classWeights
        values.isMultiLabel = multiLabel
        values.emaDecay = average
        values.gradientClipping = gradientClipping
        values.calibrates = !noCalibration
        values.inputSize = inputSize
        if let cropAndScale { values.cropAndScale = cropAndScale }
        if let augment { values.augmentation = try augment.augmentation() }
        return values
    }

    /// The hyperparameters whose options are given, so that a recipe does not set them.
    private var fixedHyperparameters: Set<RecipeHyperparameter> {
        let options: [(hyperparameter: RecipeHyperparameter, isGiven: Bool)] = [
            (.epochs, epochs != nil), (.batchSize, batchSize != nil), (.augmentation, augment != nil),
            (.learningRate, learningRate != nil), (.layerDecay, baseOptions.layerDecay != nil),
            (.labelSmoothing, labelSmoothing != nil), (.gradientClipping, gradientClipping != nil),
            (.emaDecay, average != nil),
        ]
        return Set(options.filter(\.isGiven).map(\.hyperparameter))
    }

    /// The configuration of a classifier.
    func configuration(threads: Int) throws -> ClassifierConfiguration {
        var configuration = ClassifierConfiguration()
        configuration.hyperparameters = try hyperparameters()
        configuration.fixedHyperparameters = fixedHyperparameters
        if buildsNetwork {
            configuration.start = .network(network ?? Self.defaultNetwork, width: width ?? 1)
        } else {
            try baseOptions.apply(to: &configuration)
        }
        configuration.validationFolder = dataset.validationFolder
        configuration.threads = threads
        configuration.precision = dataset.precision
        configuration.memoryLimit = try dataset.memory?.byteCount()
        return configuration
    }

    /// The command-line arguments that repeat the run, without options that do not change the result.
    var arguments: [String] {
        let defaults = Self.defaults
        return dataset.arguments + baseOptions.arguments + option("--network", network) + option("--width", width)
            + option("--input-size", inputSize) + option("--crop-and-scale", cropAndScale?.rawValue)
            + option("--augment", augment?.description) + option("--epochs", epochs) + option("--patience", patience)
            + option("--time-limit", timeLimit?.description) + option("--batch-size", batchSize)
            + option("--learning-rate", learningRate?.description)
            + option("--label-smoothing", labelSmoothing)
            + option("--class-weights", classWeights.rawValue, default: defaults.classWeights.rawValue)
            + flag("--multi-label", multiLabel) + option("--average", average)
            + option("--gradient-clipping", gradientClipping)
            + flag("--no-calibration", noCalibration)
    }
}

/// A learning rate as it was typed: a number, or "auto".
enum LearningRate: ExpressibleByArgument, CustomStringConvertible {
    case given(Float)
    case automatic

    init?(argument: String) {
        if argument == "auto" {
            self = .automatic
        } else if let rate = Float(argument) {
            self = .given(rate)
        } else {
            return nil
        }
    }

    /// The rate; nil for auto.
    var rate: Float? {
        switch self {
        case .given(let rate): rate
        case .automatic: nil
        }
    }

    var description: String { rate.map { "\($0)" } ?? "auto" }
}

extension ClassifierHyperparameters.ClassWeights: ExpressibleByArgument {}
