internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintTraining

struct TrainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "train", abstract: "Train a classifier from a folder of photos, one sub-folder per label.",
        discussion: """
            Examples:
              imprint train photos --output mine.imprint
              imprint train photos --output m.imprint --augment flip --report r.html

            To find logos in photos, use imprint train-detector.
            """)

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "photos"))
    var data: String

    @OptionGroup var runOptions: TrainingRunOptions

    @OptionGroup var options: TrainingOptions

    func validate() throws {
        try requirePaths([data])
        try runOptions.checkOutputs(inputs: [options.baseOptions.base].compactMap { $0 }.map { ("the base model", $0) })
    }

    func run() async throws {
        let folder = try ImageFolder(at: URL(filePath: data))
        try runOptions.prepare(photoFolders: [folder.url, options.dataset.validationFolder])
        let trainer = ClassifierTrainer(
            photos: folder, configuration: try options.configuration(threads: runOptions.common.threadCount),
            checkpoints: runOptions.checkpoints)
        try await TrainingSession(
            options: runOptions, folder: folder, validationFolder: options.dataset.validationFolder,
            command: ["imprint", "train", data, "--output", runOptions.output] + options.arguments
        ).run(trainer, epochs: options.epochs, patience: options.patience)
    }
}
