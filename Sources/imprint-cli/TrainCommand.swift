public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintFormats
internal import ImprintImages
internal import ImprintNetwork

struct TrainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "train", abstract: "Train a classifier from a folder of photos, one sub-folder per label.")

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "data"))
    var data: String

    @Option(help: "The weights file to write.")
    var output: String

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

    @Option(help: "How often to go through all photos.")
    var epochs = 20

    @Option(help: "How many photos make one step.")
    var batchSize = 32

    @Option(help: "The highest learning rate; it rises in the first epoch and then falls along a cosine.")
    var learningRate: Float = 0.02

    @Option(help: "The height and width of the network's input, in pixels. (default: the network's usual one)")
    var inputSize: Int?

    @Option(help: "The network: \(Network.readyMadeNames.joined(separator: ", ")). (default: logonet)")
    var network: String?

    @Option(help: "A factor on the network's channels. (default: 1)")
    var width: Double?

    @Option(help: ArgumentHelp("A weights file to start from; its last layer is trained anew.", valueName: "model"))
    var base: String?

    @Option(help: "What of the base to train: its head, or all layers. (default: head)")
    var unfreeze: TrainingConfiguration.Trains?

    @Option(help: AugmentationWords.help("How to vary the photos")) var augment = AugmentationWords("none")

    @Option(help: "How a photo is fitted into the network's input. (default: center-crop)")
    var cropAndScale: CropAndScale?

    @Option(help: "How much of each target is spread over all labels.")
    var labelSmoothing: Float = 0

    @Option(help: "What everything random follows from: the same seed gives the same weights.")
    var seed: UInt64 = 0

    @Option(help: "How numbers are stored: float32, or float16 for half the size.")
    var precision: Safetensors.Precision = .float32

    @Option(help: ArgumentHelp("An HTML page about the run to write.", valueName: "file.html"))
    var report: String?

    @Option(
        help: ArgumentHelp(
            "How much memory prepared photos may take, in MB or with a unit, such as 2GB; those beyond are read again in "
                + "every epoch. (default: half of what is free)", valueName: "size"))
    var memory: MemorySize?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([data, output])
        try require(epochs, "--epochs", in: 1...100_000)
        try require(batchSize, "--batch-size", in: 1...65536)
        try require(learningRate, "--learning-rate", in: 0...1000)
        try require(labelSmoothing, "--label-smoothing", in: 0...0.99)
        try require(width ?? 1, "--width", in: 0.01...16)
        if let inputSize { try require(inputSize, "--input-size", in: 1...8192) }
        if base == nil {
            do {
                _ = try Network.named(network ?? "logonet", labels: 2, inputSize: inputSize, width: width ?? 1)
            } catch {
                throw ValidationError("\(error).")
            }
        }
        if base != nil && (network != nil || width != nil || inputSize != nil || cropAndScale != nil) {
            throw ValidationError(
                "--base brings its own network and preprocessing; leave out --network, --width, --input-size and "
                    + "--crop-and-scale.")
        }
        if base == nil && unfreeze != nil {
            throw ValidationError("--unfreeze says what of a base to train; name one with --base.")
        }
        if let report, URL(filePath: report).standardizedFileURL == URL(filePath: output).standardizedFileURL {
            throw ValidationError("--report and --output are both \(output), expected two files.")
        }
        if output.hasSuffix("/") { throw ValidationError("--output is \(output), expected the name of a file.") }
        _ = try augment.augmentation()
        _ = try memory?.byteCount()
        _ = try validationRule()
    }

    func run() throws {
        let configuration = try trainingConfiguration()
        let destination = URL(filePath: output)
        try AtomicFile.checkWritable(destination)
        if let report { try AtomicFile.checkWritable(URL(filePath: report)) }
        let folder = try ImageFolder(at: URL(filePath: data))
        try requireNoPhoto(output, "--output", of: folder)
        if let report { try requireNoPhoto(report, "--report", of: folder) }
        if !folder.ignored.isEmpty {
            Terminal.note(
                "Ignored \(folder.ignored.count) files that are no images, or lie beside the folders of the labels.")
        }
        var monitor = TrainingMonitor(epochs: epochs, json: common.json)
        defer { monitor.clear() }
        // While the photos are read there is nothing to end in order: Ctrl-C ends the process.
        var interrupt: Interrupt?
        let weights = try Trainer(folder: folder, configuration: configuration).train(
            onEvent: { event in
                if case .started = event { interrupt = Interrupt() }
                monitor.show(event)
            }, shouldStop: { interrupt?.isRequested ?? false })
        try weights.write(to: destination)
        if let report { try Report(weights).write(to: URL(filePath: report)) }
        try monitor.finish(weights, output: output)
        let done = weights.training?.history.count ?? 0
        if done < epochs {
            Terminal.note("Stopped early; \(output) is the model after epoch \(done) of \(epochs).")
            throw ExitCode.failure
        }
    }

    private func trainingConfiguration() throws -> TrainingConfiguration {
        var configuration = TrainingConfiguration()
        if let base {
            configuration.start = .base(try WeightsFile(contentsOf: URL(filePath: base)), trains: unfreeze ?? .head)
        } else {
            configuration.start = .network(network ?? "logonet", width: width ?? 1)
        }
        configuration.validation = try validationRule()
        configuration.keepsGroupsTogether = !randomSplit
        configuration.epochs = epochs
        configuration.batchSize = batchSize
        configuration.learningRate = learningRate
        configuration.labelSmoothing = labelSmoothing
        configuration.inputSize = inputSize
        configuration.cropAndScale = cropAndScale ?? .centerCrop
        configuration.augmentation = try augment.augmentation()
        configuration.seed = seed
        configuration.threads = common.threadCount
        configuration.precision = precision
        configuration.memoryLimit = try memory?.byteCount()
        return configuration
    }

    private func validationRule() throws -> TrainingConfiguration.Validation {
        guard let validation else { return .split(.automatic) }
        guard let fraction = Double(validation) else { return .folder(URL(filePath: validation)) }
        guard fraction >= 0 && fraction < 1 else {
            throw ValidationError(
                "--validation is \(validation), expected a folder or a fraction from 0 to less than 1.")
        }
        return .split(fraction == 0 ? .none : .fraction(fraction))
    }
}

extension Safetensors.Precision: ExpressibleByArgument {}
extension TrainingConfiguration.Trains: ExpressibleByArgument {}
