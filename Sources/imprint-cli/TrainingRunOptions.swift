internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintInterop
internal import ImprintLive
internal import ImprintTraining

/// The options for the outputs of a training run: model, checkpoints, report and live page.
struct TrainingRunOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The model file to write. Required, except with --folds, which then only cross-validates.",
            valueName: "file"))
    var output: String?

    @Option(
        help: ArgumentHelp(
            "The folder for checkpoints, which are saved periodically and when the run is interrupted.",
            valueName: "folder"))
    var checkpoint: String?

    @Option(help: ArgumentHelp("The minimum time between two checkpoints. (default: 60)", valueName: "seconds"))
    var checkpointInterval: Double?

    @Flag(help: "Resume from the checkpoint; the model is the same as without an interruption.")
    var resume = false

    @Option(help: ArgumentHelp("An HTML report of the run to write.", valueName: "file.html"))
    var report: String?

    @Flag(help: "Serve a web page on this machine that shows the run's progress, and print its address.")
    var watch = false

    @Option(help: "The port of the page of --watch. (default: \(LiveServer.defaultPort), or the next free one)")
    var port: Int?

    @OptionGroup(title: "Details of the model")
    var details: ModelDetailsOptions

    @OptionGroup(title: "Cross-validation")
    var crossValidation: CrossValidationOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if let checkpoint {
            try requireOutputPath(checkpoint, "--checkpoint")
            try requireNoFile(checkpoint, "--checkpoint")
        }
        if let checkpointInterval { try require(checkpointInterval, "--checkpoint-interval", in: 0...1_000_000) }
        if checkpoint == nil && checkpointInterval != nil {
            throw ValidationError("--checkpoint-interval needs checkpoints. Name their folder with --checkpoint.")
        }
        if let port { try require(port, "--port", in: 1...65535) }
        if port != nil && !watch { throw ValidationError("--port is the port of the page of --watch. Add --watch.") }
        if resume && checkpoint == nil {
            throw ValidationError("--resume continues from a checkpoint. Name its folder with --checkpoint.")
        }
    }

    /// Checks that there is a model file to write, unless the command only cross-validates.
    private func requireOutput() throws {
        guard output == nil else { return }
        guard crossValidation.folds != nil else {
            throw ValidationError("Missing expected argument '--output <file>'")
        }
        if let option = details.arguments.first {
            throw ValidationError("\(option) is stored in the model file. Add --output to train a model on all photos.")
        }
        let unused = flag("--checkpoint", checkpoint != nil) + flag("--resume", resume) + flag("--watch", watch)
        guard unused.isEmpty else {
            throw ValidationError(
                "\(unused.joined(separator: ", ")): the folds have no checkpoints and no live page, only the training of a model on all "
                    + "photos. Add --output to train it; --keep continues a cross-validation.")
        }
    }

    /// Checks the files that the run writes.
    /// - Parameter inputs: The files that the run reads, each with its role.
    func checkOutputs(inputs: [(role: String, path: String)]) throws {
        try requireOutput()
        let checkpointFiles = checkpoint.map {
            [("the checkpoint", $0 + "/" + CheckpointOptions.fileName), ("the folder of the checkpoint", $0)]
        }
        try imprint_cli.checkOutputs(
            [output].compactMap { $0 }.map { OutputFile(option: "--output", path: $0, kind: .model) }
                + crossValidation.outputs
                + [report].compactMap { $0 }.map { OutputFile(option: "--report", path: $0, kind: reportKind) },
            inputs: inputs + crossValidation.inputs + (checkpointFiles ?? []))
    }

    /// The kind of the report: with folds, it describes the cross-validation.
    var reportKind: OutputKind { crossValidation.folds == nil ? .trainingReport : .crossValidationReport }

    /// Joins the other processes of the job, if a launcher such as `mpirun` has started several.
    func joinProcesses() throws {
        try TrainingProcesses.join()
        if TrainingProcesses.group != nil, crossValidation.folds != nil {
            throw ValidationError(
                "--folds trains with a single process. Leave it out, or start the command without mpirun.")
        }
    }

    /// Checks that the output files can be written.
    ///
    /// Call it before the photos are read.
    func checkWritable() throws {
        for path in [output, crossValidation.predictions, report].compactMap({ $0 }) {
            try AtomicFile.checkWritable(URL(filePath: path))
        }
    }

    /// Checks that the folders of checkpoints and of finished folds are not inside a folder of photos.
    func checkFolders(photoFolders: [URL?]) throws {
        try crossValidation.checkFolders(photoFolders: photoFolders)
        if let checkpoint { try requireOutside(checkpoint, "--checkpoint", of: photoFolders) }
    }

    /// The options of the checkpoints.
    var checkpoints: CheckpointOptions? {
        checkpoint.map {
            CheckpointOptions(folder: URL(filePath: $0), interval: .seconds(checkpointInterval ?? 60), resumes: resume)
        }
    }
}
