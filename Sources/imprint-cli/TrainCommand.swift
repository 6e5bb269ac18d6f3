internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintLive
internal import ImprintModel
internal import ImprintTraining

struct TrainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "train", abstract: "Train a classifier from a folder of photos, one sub-folder per label.")

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "data"))
    var data: String

    @Option(help: "The weights file to write.")
    var output: String

    @OptionGroup var artworkOptions: ArtworkOptions

    @OptionGroup var options: TrainingOptions

    @Option(
        help: ArgumentHelp(
            "A folder to save the run in every now and then, and when it is interrupted, so that it can be resumed.",
            valueName: "folder"))
    var checkpoint: String?

    @Option(help: ArgumentHelp("The least time between two checkpoints. (default: 60)", valueName: "seconds"))
    var checkpointInterval: Double?

    @Flag(
        help:
            "Go on from the checkpoint, to the same weights as without the interruption; raise --epochs to go further.")
    var resume = false

    @Option(help: ArgumentHelp("An HTML page about the run to write.", valueName: "file.html"))
    var report: String?

    @Flag(help: "Serve a page on this machine that follows the run, and print its address.")
    var watch = false

    @Option(help: "The port of that page. (default: \(LiveServer.usualPort), or the next free one)")
    var port: Int?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([data, checkpoint ?? data])
        if let checkpointInterval { try require(checkpointInterval, "--checkpoint-interval", in: 0...1_000_000) }
        if checkpoint == nil && checkpointInterval != nil {
            throw ValidationError("--checkpoint-interval is about checkpoints; name their folder with --checkpoint.")
        }
        if !artworkOptions.artwork.isEmpty { try options.requireDefaultsForArtwork() }
        if let port { try require(port, "--port", in: 1...65535) }
        if port != nil && !watch { throw ValidationError("--port is that of the page of --watch; add --watch.") }
        if resume && checkpoint == nil {
            throw ValidationError("--resume goes on from a checkpoint; name its folder with --checkpoint.")
        }
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .model)]
                + [report].compactMap { $0 }.map { OutputFile(option: "--report", path: $0, kind: .trainingReport) },
            inputs: [options.baseOptions.base].compactMap { $0 }.map { ("the base model", $0) }
                + artworkOptions.artwork.map { ("the artwork", $0.source) }
                + [checkpoint].compactMap { $0 }.flatMap {
                    [("the checkpoint", $0 + "/" + CheckpointOptions.fileName), ("the folder of the checkpoint", $0)]
                })
    }

    func run() async throws {
        try AtomicFile.checkWritable(URL(filePath: output))
        if let report { try AtomicFile.checkWritable(URL(filePath: report)) }
        let artwork = try artworkOptions.load()
        let backgrounds = try artworkOptions.backgroundFiles()
        let folder = try ImageFolder(at: URL(filePath: data), minimumClasses: artwork.isEmpty ? 2 : 1)
        let trainer: any BlockingTrainer =
            artwork.isEmpty
            ? ClassifierTrainer(
                photos: folder, configuration: try options.configuration(threads: common.threadCount),
                checkpoints: checkpoints)
            : DetectorTrainer(
                artwork: artwork, photos: folder, backgrounds: backgrounds,
                configuration: try options.detectorConfiguration(threads: common.threadCount), checkpoints: checkpoints)
        if let checkpoint {
            try requireOutside(checkpoint, "--checkpoint", of: [folder.url, options.validationFolder])
        }
        if !folder.ignored.isEmpty {
            Terminal.note(
                "Ignored \(folder.ignored.count) files that are no images, or lie beside the folders of the labels.")
        }
        let live = watch ? try await LiveServer(port: port) : nil
        if let live { Terminal.note("Watch the run at \(live.url)") }
        do {
            try await train(trainer, folder, live)
        } catch {
            await live?.finish(error is ExitCode ? nil : error)
            throw error
        }
        await live?.finish()
    }

    private func train(
        _ trainer: any BlockingTrainer, _ folder: ImageFolder, _ live: LiveServer?
    ) async throws {
        var monitor = TrainingMonitor(
            epochs: options.epochs, patience: options.patience, json: common.json,
            savesCheckpoints: checkpoint != nil)
        defer { monitor.clear() }
        // While the photos are read there is nothing to end in order: Ctrl-C ends the process.
        let interrupt = Interrupt()
        var result: TrainingResult?
        for try await event in trainer.start(shouldStop: { Interrupt.isRequested }) {
            if case .started(let start) = event {
                interrupt.begin()
                if resume && start.resumed == nil {
                    Terminal.note("There is no checkpoint in \(checkpoint ?? "") yet: training begins.")
                }
            }
            if case .finished(let finished) = event { result = finished }
            monitor.show(event)
            live?.show(event)
        }
        guard let result else { throw ExitCode.failure }
        let output = vacantPath(output, .model)
        do {
            try result.weights.write(to: URL(filePath: output))
        } catch {
            if let checkpoint { Terminal.note("The run is saved in \(checkpoint): --resume writes its model again.") }
            throw error
        }
        interrupt.end()
        try monitor.finish(result, output: output)
        // The threads that tasks share are for the page that follows the run.
        if let report {
            let path = vacantPath(report, .trainingReport)
            try await onThreadOfItsOwn { try write(path, of: result, folder) }
        }
        let isWhole = result.ending != .stopped && result.ending != .photosLost
        if !isWhole || result.checkpointFailure != nil { throw ExitCode.failure }
    }

    private func write(_ report: String, of result: TrainingResult, _ folder: ImageFolder) throws {
        var bar = ProgressBar()
        defer { bar.clear() }
        let workers = Workers(common.threadCount)
        var audit: Audit?
        // Photos that vanished cannot be audited.
        if result.photosLost == nil {
            let validation = try options.validationFolder.map { try ImageFolder(at: $0, minimumClasses: 1) }
            let total = folder.items.count + (validation?.items.count ?? 0)
            audit = Audit(folder, validation: validation, workers: workers) {
                bar.draw("auditing", done: $0, of: total)
            }
        }
        let command = (["imprint", "train", data, "--output", output] + artworkOptions.arguments + options.arguments)
            .map(shellQuoted)
        let page = Report(
            result.weights, evaluation: result.evaluation, audit: audit, command: command.joined(separator: " "),
            remark: result.isRepeatable
                ? nil
                : "This run was ended before its last epoch, or went on from a checkpoint with other photos or epochs: the command "
                    + "trains all epochs anew, which gives another model.",
            seconds: result.seconds, workers: workers)
        try page.write(to: URL(filePath: report))
    }

    private var checkpoints: CheckpointOptions? {
        checkpoint.map {
            CheckpointOptions(folder: URL(filePath: $0), interval: .seconds(checkpointInterval ?? 60), resumes: resume)
        }
    }
}
