internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintFormats
internal import ImprintImages

struct TrainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "train", abstract: "Train a classifier from a folder of photos, one sub-folder per label.")

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "data"))
    var data: String

    @Option(help: "The weights file to write.")
    var output: String

    @OptionGroup var options: TrainingOptions

    @Option(
        help: ArgumentHelp(
            "A folder to save the run in every now and then, and when it is interrupted, so that it can be resumed.",
            valueName: "folder"))
    var checkpoint: String?

    @Option(help: ArgumentHelp("The least time between two checkpoints.", valueName: "seconds"))
    var checkpointInterval = 60.0

    @Flag(
        help:
            "Go on from the checkpoint, to the same weights as without the interruption; raise --epochs to go further.")
    var resume = false

    @Option(help: ArgumentHelp("An HTML page about the run to write.", valueName: "file.html"))
    var report: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([data, output, checkpoint ?? data, report ?? data])
        try require(checkpointInterval, "--checkpoint-interval", in: 0...1_000_000)
        if resume && checkpoint == nil {
            throw ValidationError("--resume goes on from a checkpoint; name its folder with --checkpoint.")
        }
        if let report, URL(filePath: report).standardizedFileURL == URL(filePath: output).standardizedFileURL {
            throw ValidationError("--report and --output are both \(output), expected two files.")
        }
        if output.hasSuffix("/") { throw ValidationError("--output is \(output), expected the name of a file.") }
    }

    func run() async throws {
        let configuration = try options.configuration(threads: common.threadCount)
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
        var monitor = TrainingMonitor(configuration, json: common.json)
        defer { monitor.clear() }
        // While the photos are read there is nothing to end in order: Ctrl-C ends the process.
        var interrupt: Interrupt?
        var result: TrainingResult?
        let run = Trainer(folder: folder, configuration: configuration, checkpoints: checkpoints).start()
        for try await event in run {
            if case .started = event { interrupt = Interrupt() }
            if interrupt?.isRequested == true { run.stop() }
            if case .finished(let finished) = event { result = finished }
            if case .started(let start) = event, resume, start.resumed == nil {
                Terminal.note("There is no checkpoint in \(checkpoint ?? "") yet: training begins.")
            }
            monitor.show(event)
        }
        guard let result else { throw ExitCode.failure }
        try result.weights.write(to: destination)
        if let report { try Report(result.weights).write(to: URL(filePath: report)) }
        try monitor.finish(result, output: output)
        if result.ending == .stopped { throw ExitCode.failure }
    }

    private var checkpoints: CheckpointOptions? {
        checkpoint.map {
            CheckpointOptions(folder: URL(filePath: $0), interval: .seconds(checkpointInterval), resumes: resume)
        }
    }
}
