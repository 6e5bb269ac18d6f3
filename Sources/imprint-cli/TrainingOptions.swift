public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// How to train: the options of `imprint train` that make a `ClassifierConfiguration`.
struct TrainingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A folder of photos to measure progress on, or the fraction to keep back for it; 0 for none. (default: none "
                + "of fewer than 50 photos, 10 % of fewer than 200, else 5 %)", valueName: "folder-or-fraction"))
    var validation: String?

    @Flag(
        help:
            "Do not look for photos that show the same: keep back photos at random, though some may show what others do."
    )
    var randomSplit = false

    @Option(help: "How often to go through all photos, at most; the epoch with the least validation loss is kept.")
    var epochs = 20

    @Option(help: "How many photos make one step.")
    var batchSize = 32

    @Option(
        help: ArgumentHelp(
            "The highest learning rate; it rises in the first epoch and then falls along a cosine; auto looks for one first.",
            valueName: "rate"))
    var learningRate: LearningRate = .given(0.02)

    @Option(help: "End after so many epochs without a lesser validation loss.")
    var patience: Int?

    @Option(help: "End after so many minutes; the schedule is shortened to the epochs that fit.")
    var minutes: Double?

    @Option(help: "The height and width of the network's input, in pixels. (default: the network's usual one)")
    var inputSize: Int?

    @Option(
        help: ArgumentHelp(
            "The network, to begin from nothing: \(Network.readyMadeNames.joined(separator: ", ")). (default: logonet, where --width, "
                + "--input-size or --crop-and-scale is given)"))
    var network: String?

    @Option(help: "A factor on the network's channels. (default: 1)")
    var width: Double?

    @OptionGroup var baseOptions: TrainingBaseOptions

    @Option(help: AugmentationWords.help("How to vary the photos")) var augment = AugmentationWords("none")

    @Option(help: "How a photo is fitted into the network's input. (default: center-crop)")
    var cropAndScale: CropAndScale?

    @Option(help: "How much of each target is spread over all labels.")
    var labelSmoothing: Float = 0

    @Option(help: "How much each label counts: none for all the same, or auto for more the fewer photos it has.")
    var classWeights: ClassifierHyperparameters.LabelWeights = .none

    @Option(
        help: ArgumentHelp(
            "Shorten the gradient of a step that is longer than this, such as 5: a few odd photos then do less harm. (default: never)",
            valueName: "length"))
    var gradientClipping: Float?

    @Option(
        help: ArgumentHelp(
            "Keep a moving average of the weights with this decay, such as 0.99, instead of the weights themselves.",
            valueName: "decay"))
    var average: Float?

    @Flag(help: "Leave confidences as they come out of training.")
    var noCalibration = false

    @Option(
        help: ArgumentHelp(
            "Of how many photos the model keeps features (no photos), so that tuning it to one person with imprint personalize does not "
                + "make it forget; 0 for none.",
            valueName: "number"))
    var rehearsal = 512

    @Option(
        help: "What everything random follows from: the same seed gives the same weights. (default: 0)",
        transform: seedNumber)
    var seed: UInt64 = 0

    @Option(help: "How numbers are stored: float32, or float16 for half the size.")
    var precision: Safetensors.Precision = .float32

    @Option(
        help: ArgumentHelp(
            "How much memory prepared photos may take, in MB or with a unit, such as 2GB; those beyond are read again in "
                + "every epoch. (default: half of what is free, with --artwork at most 512 MB)", valueName: "size"))
    var memory: MemorySize?

    func validate() throws {
        try require(epochs, "--epochs", in: 1...100_000)
        try require(batchSize, "--batch-size", in: 1...65536)
        if case .given(let rate) = learningRate { try require(rate, "--learning-rate", in: 0...1000) }
        if let patience { try require(patience, "--patience", in: 1...100_000) }
        if let minutes { try require(minutes, "--minutes", in: 0.01...1_000_000) }
        if let gradientClipping { try require(gradientClipping, "--gradient-clipping", in: 0.0001...1_000_000) }
        if let average { try require(average, "--average", in: 0.01...0.99999) }
        try require(labelSmoothing, "--label-smoothing", in: 0...0.99)
        try require(width ?? 1, "--width", in: 0.01...16)
        if let inputSize { try require(inputSize, "--input-size", in: 1...8192) }
        try require(rehearsal, "--rehearsal", in: 0...65536)
        if asksForNetwork {
            guard baseOptions.base == nil else {
                throw ValidationError(
                    "--base brings its own network and preprocessing; leave out --network, --width, --input-size and "
                        + "--crop-and-scale.")
            }
            try baseOptions.requireNone()
            do {
                _ = try Network.named(network ?? "logonet", labels: 2, inputSize: inputSize, width: width ?? 1)
            } catch {
                throw ValidationError("\(error).")
            }
        }
        _ = try augment.augmentation()
        _ = try memory?.byteCount()
        _ = try validationRule()
    }

    /// Whether a network of its own is wanted, which begins from nothing.
    private var asksForNetwork: Bool { network != nil || width != nil || inputSize != nil || cropAndScale != nil }

    /// Training from artwork has a network and a recipe of its own.
    func requireDefaultsForArtwork() throws {
        let given: [(String, Bool)] = [
            ("--network", network != nil), ("--width", width != nil), ("--input-size", inputSize != nil),
            ("--crop-and-scale", cropAndScale != nil), ("--base", baseOptions.base != nil),
            ("--augment", augment.description != "none"),
            ("--batch-size", batchSize != 32), ("--learning-rate", learningRate.description != "0.02"),
            ("--label-smoothing", labelSmoothing != 0), ("--class-weights", classWeights != .none),
            ("--average", average != nil), ("--gradient-clipping", gradientClipping != nil),
            ("--patience", patience != nil), ("--minutes", minutes != nil),
            ("--no-calibration", noCalibration),
        ]
        let names = given.filter(\.1).map(\.0) + baseOptions.namesOfTraining
        guard names.isEmpty else {
            throw ValidationError(
                "--artwork has a network and a recipe of its own; leave out \(names.joined(separator: ", ")). "
                    + "(--epochs is a factor on its steps: 20 is the whole recipe.)")
        }
    }

    /// The configuration of a detector.
    func detectorConfiguration(threads: Int) throws -> DetectorConfiguration {
        var configuration = DetectorConfiguration()
        (configuration.validation, configuration.validationFolder) = try validationRule()
        configuration.keepsGroupsTogether = !randomSplit
        configuration.epochs = epochs
        configuration.seed = seed
        configuration.threads = threads
        configuration.precision = precision
        configuration.memoryLimit = try memory?.byteCount()
        configuration.rehearsalImages = rehearsal
        return configuration
    }

    /// The configuration of a classifier.
    func configuration(threads: Int) throws -> ClassifierConfiguration {
        var configuration = ClassifierConfiguration()
        if asksForNetwork {
            configuration.start = .network(network ?? "logonet", width: width ?? 1)
        } else {
            try baseOptions.apply(to: &configuration)
        }
        (configuration.validation, configuration.validationFolder) = try validationRule()
        configuration.keepsGroupsTogether = !randomSplit
        configuration.epochs = epochs
        configuration.batchSize = batchSize
        if case .given(let rate) = learningRate {
            configuration.learningRate = rate
        } else {
            configuration.learningRate = nil
        }
        configuration.patience = patience
        configuration.timeLimit = minutes.map { .seconds($0 * 60) }
        configuration.labelSmoothing = labelSmoothing
        configuration.labelWeights = classWeights
        configuration.averageDecay = average
        configuration.gradientClipping = gradientClipping
        configuration.calibrates = !noCalibration
        configuration.inputSize = inputSize
        configuration.cropAndScale = cropAndScale ?? .centerCrop
        configuration.augmentation = try augment.augmentation()
        configuration.seed = seed
        configuration.threads = threads
        configuration.precision = precision
        configuration.memoryLimit = try memory?.byteCount()
        configuration.rehearsalImages = rehearsal
        return configuration
    }

    /// The options that repeat the run; those left out have no bearing on its result, or are as they are by default.
    var arguments: [String] {
        func option(_ name: String, _ value: (some Any)?) -> [String] { value.map { [name, "\($0)"] } ?? [] }
        func flag(_ name: String, _ isSet: Bool) -> [String] { isSet ? [name] : [] }
        return option("--validation", validation) + flag("--random-split", randomSplit)
            + baseOptions.arguments + option("--network", network) + option("--width", width)
            + option("--input-size", inputSize)
            + option("--crop-and-scale", cropAndScale?.rawValue) + option("--augment", augment)
            + option("--epochs", epochs) + option("--patience", patience) + option("--minutes", minutes)
            + option("--batch-size", batchSize) + option("--learning-rate", learningRate)
            + option("--label-smoothing", labelSmoothing > 0 ? labelSmoothing : nil)
            + option("--class-weights", classWeights == .none ? nil : classWeights.rawValue)
            + option("--average", average) + option("--gradient-clipping", gradientClipping)
            + flag("--no-calibration", noCalibration) + option("--seed", seed)
            + option("--rehearsal", rehearsal == 512 ? nil : rehearsal)
            + option("--precision", precision == .float32 ? nil : precision.rawValue)
    }

    /// The folder of photos to validate on, if they have one of their own.
    var validationFolder: URL? {
        try? validationRule().folder
    }

    private func validationRule() throws -> (rule: ValidationRule, folder: URL?) {
        guard let validation else { return (.automatic, nil) }
        guard let fraction = Double(validation) else { return (.automatic, URL(filePath: validation)) }
        guard fraction >= 0 && fraction < 1 else {
            throw ValidationError(
                "--validation is \(validation), expected a folder or a fraction from 0 to less than 1.")
        }
        return (fraction == 0 ? .none : .fraction(fraction), nil)
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

    var description: String {
        switch self {
        case .given(let rate): "\(rate)"
        case .automatic: "auto"
        }
    }
}

extension Safetensors.Precision: ExpressibleByArgument {}
extension ClassifierHyperparameters.LabelWeights: ExpressibleByArgument {}
