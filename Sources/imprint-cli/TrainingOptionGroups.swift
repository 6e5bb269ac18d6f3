public import ArgumentParser
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// The options that decide when training ends.
struct TrainingLengthOptions: ParsableArguments {
    /// The default hyperparameters.
    private static let defaults = ClassifierHyperparameters()

    @Option(
        help: ArgumentHelp(
            "The maximum number of epochs; the model file stores the epoch with the lowest validation loss. Raise it with --resume to train "
                + "longer. (default: as the recipe chooses; otherwise \(Self.defaults.epochs))"))
    var epochs: Int?

    @Option(help: "Early stopping: the number of epochs without an improvement in validation loss. (default: off)")
    var patience: Int?

    @Option(help: TimeLimit.help(written: "the best model so far"))
    var timeLimit: TimeLimit?

    func set(_ values: inout ClassifierHyperparameters) throws {
        if let epochs { values.epochs = epochs }
        values.patience = patience
        values.timeLimit = try timeLimit?.duration()
    }

    var arguments: [String] {
        option("--epochs", epochs) + option("--patience", patience) + option("--time-limit", timeLimit?.description)
    }
}

/// The options of the loss and of training steps.
struct OptimizationOptions: ParsableArguments {
    /// The default hyperparameters.
    private static let defaults = ClassifierHyperparameters()

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

    @Option(
        help: ArgumentHelp(
            "Label smoothing: the fraction of each target that is spread over all labels. (default: as the recipe chooses; otherwise "
                + "\(Self.defaults.labelSmoothing))"))
    var labelSmoothing: Float?

    @Option(help: "Class weights: none, or auto to weight labels in inverse proportion to their number of photos.")
    var classWeights = Self.defaults.classWeights

    @Flag(
        help:
            "Train a multi-label model, which predicts each label independently; the default if photos of a list have several labels or none."
    )
    var multiLabel = false

    @Flag(help: "Do not calibrate confidences on the validation set.")
    var noCalibration = false

    @Flag(
        help: ArgumentHelp(
            "Mixed precision: compute the outputs and input gradients of convolutions from operands rounded to bfloat16. This is faster for "
                + "networks with many 1x1 convolutions, on processors with AVX512-BF16 or BFDOT (arm64)."))
    var mixedPrecision = false

    func set(_ values: inout ClassifierHyperparameters) {
        if let batchSize { values.batchSize = batchSize }
        if let learningRate { values.learningRate = learningRate.rate }
        values.gradientClipping = gradientClipping
        values.emaDecay = average
        if let labelSmoothing { values.labelSmoothing = labelSmoothing }
        values.classWeights = classWeights
        values.isMultiLabel = multiLabel
        values.calibrates = !noCalibration
        values.usesMixedPrecision = mixedPrecision
    }

    var arguments: [String] {
        option("--batch-size", batchSize) + option("--learning-rate", learningRate?.description)
            + option("--gradient-clipping", gradientClipping) + option("--average", average)
            + option("--label-smoothing", labelSmoothing)
            + option("--class-weights", classWeights.rawValue, default: Self.defaults.classWeights.rawValue)
            + flag("--multi-label", multiLabel) + flag("--no-calibration", noCalibration)
            + flag("--mixed-precision", mixedPrecision)
    }
}

/// The options of a new network, which is trained from scratch.
struct NetworkOptions: ParsableArguments {
    static let defaultNetwork = "logonet"

    @Option(
        help: ArgumentHelp(
            "Train this network from scratch: \(Network.readyMadeNames.joined(separator: ", ")). (default: \(Self.defaultNetwork), if "
                + "--width, --input-size or --crop-and-scale is given)"))
    var network: String?

    @Option(help: "The width multiplier of the network. (default: 1)")
    var width: Double?

    @Option(help: "The height and width of the network's input, in pixels. (default: as in the network)")
    var inputSize: Int?

    @Option(help: "How a photo is fitted into the network's input. (default: center-crop)")
    var cropAndScale: CropAndScale?

    func validate() throws {
        guard buildsNetwork else { return }
        do {
            _ = try Network.named(name, labels: 2, inputSize: inputSize, width: width ?? 1)
        } catch NetworkError.invalidProperty(_, let property, let found, let expected) {
            let option = ["inputSize", "input"].contains(property) ? "--input-size" : "--\(property)"
            throw ValidationError("\(option) is \(found), expected \(expected).")
        } catch {
            throw ValidationError("\(error)")
        }
    }

    /// Whether one of the options is given.
    var buildsNetwork: Bool { network != nil || width != nil || inputSize != nil || cropAndScale != nil }

    /// The name of the network.
    var name: String { network ?? Self.defaultNetwork }

    func set(_ values: inout ClassifierHyperparameters) {
        values.inputSize = inputSize
        if let cropAndScale { values.cropAndScale = cropAndScale }
    }

    var arguments: [String] {
        option("--network", network) + option("--width", width) + option("--input-size", inputSize)
            + option("--crop-and-scale", cropAndScale?.rawValue)
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
