public import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintModel
internal import ImprintTraining

/// What training starts from where no network is asked for, and how it is trained further.
struct TrainingBaseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A weights file to start from; its last layer is trained anew. (default: the base that comes with Imprint, unless "
                + "--network, --width, --input-size or --crop-and-scale is given)", valueName: "model"))
    var base: String?

    @Option(
        help: ArgumentHelp(
            "What of the base to train: its head, all layers, all after the head alone (head-first), or one block of layers "
                + "after the other from the head on (gradual). (default: head, of the base that comes with Imprint all)",
            valueName: "what"))
    var unfreeze: FineTuning.Trains?

    @Option(
        help: ArgumentHelp(
            "Layer-wise learning-rate decay: the rate of each block of layers is that of the next one times this. (default: "
                + "\(FineTuning().layerDecay))", valueName: "factor"))
    var layerDecay: Float?

    @Option(
        help: ArgumentHelp(
            "How many epochs each stage of head-first and gradual lasts, but for the last. (default: \(FineTuning().stageEpochs))",
            valueName: "epochs"))
    var stageEpochs: Int?

    @Flag(
        help:
            "Normalise by the statistics of each batch of the new photos; those of the base are kept and used otherwise."
    )
    var batchStatistics = false

    @Flag(
        help:
            "Give the head the highest value of each channel besides its mean over the picture, for marks that are small in the photos."
    )
    var poolMaximum = false

    func validate() throws {
        if let layerDecay, !(layerDecay > 0 && layerDecay <= 1) {
            throw ValidationError("--layer-decay is \(layerDecay), expected more than 0 and at most 1.")
        }
        if let stageEpochs { try require(stageEpochs, "--stage-epochs", in: 1...100_000) }
        if trains == .head && (layerDecay != nil || batchStatistics) {
            throw ValidationError(
                "--layer-decay and --batch-statistics are about layers before the head, which stay as they are; add --unfreeze "
                    + "all, head-first or gradual.")
        }
        if stageEpochs != nil && unfreeze != .headFirst && unfreeze != .gradual {
            throw ValidationError(
                "--stage-epochs is about stages, but there is one alone; add --unfreeze head-first or gradual.")
        }
    }

    /// What of the base is trained.
    private var trains: FineTuning.Trains { unfreeze ?? (base == nil ? .all : .head) }

    /// The options that say how a base is trained, by their names.
    var namesOfTraining: [String] {
        [
            ("--unfreeze", unfreeze != nil), ("--layer-decay", layerDecay != nil),
            ("--stage-epochs", stageEpochs != nil), ("--batch-statistics", batchStatistics),
            ("--pool-maximum", poolMaximum),
        ].filter(\.1).map(\.0)
    }

    /// Checks that nothing is said of how a base is trained, for there is none.
    func requireNone() throws {
        guard namesOfTraining.isEmpty else {
            throw ValidationError(
                "\(namesOfTraining.joined(separator: ", ")): how a base is trained, but there is none; name one with --base, or leave out "
                    + "--network, --width, --input-size and --crop-and-scale to begin with the one that comes with Imprint."
            )
        }
    }

    /// Makes the configuration start from the base.
    func apply(to configuration: inout ClassifierConfiguration) throws {
        if base != nil || trains != .all {
            let model = try base.map { try ModelFile(contentsOf: URL(filePath: $0)) } ?? .shippedBase()
            configuration.start = .base(model, trains: trains)
        }
        if let layerDecay { configuration.fineTuning.layerDecay = layerDecay }
        if let stageEpochs { configuration.fineTuning.stageEpochs = stageEpochs }
        configuration.fineTuning.keepsStatistics = !batchStatistics
        configuration.poolsMaximum = poolMaximum
    }

    /// The options that start the same way.
    var arguments: [String] {
        func option(_ name: String, _ value: (some Any)?) -> [String] { value.map { [name, "\($0)"] } ?? [] }
        return option("--base", base) + option("--unfreeze", unfreeze?.rawValue) + option("--layer-decay", layerDecay)
            + option("--stage-epochs", stageEpochs) + (batchStatistics ? ["--batch-statistics"] : [])
            + (poolMaximum ? ["--pool-maximum"] : [])
    }
}

extension FineTuning.Trains: ExpressibleByArgument {}
