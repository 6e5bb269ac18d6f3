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
              imprint train photos --folds 5

            To find logos in photos, use imprint train-detector.
            """)

    @Argument(help: ArgumentHelp("The folder of photos: one sub-folder per label.", valueName: "photos"))
    var data: String

    @OptionGroup var runOptions: TrainingRunOptions

    @OptionGroup var options: TrainingOptions

    func validate() throws {
        try requirePaths([data])
        try runOptions.crossValidation.checkValidation(options.dataset)
        try runOptions.checkOutputs(inputs: [options.baseOptions.base].compactMap { $0 }.map { ("the base model", $0) })
    }

    func run() async throws {
        let folder = try ImageFolder(at: URL(filePath: data))
        try runOptions.prepare(photoFolders: [folder.url, options.dataset.validationFolder])
        let configuration = try options.configuration(threads: runOptions.common.threadCount)
        let command =
            ["imprint", "train", data] + option("--output", runOptions.output) + runOptions.crossValidation.arguments
            + options.arguments
        if let options = try runOptions.crossValidation.options() {
            try await CrossValidationSession(options: runOptions, folder: folder, command: command)
                .run(CrossValidation(photos: folder, configuration: configuration, options: options))
            if runOptions.output == nil { return }
        }
        let trainer = ClassifierTrainer(
            photos: folder, configuration: configuration, checkpoints: runOptions.checkpoints)
        try await TrainingSession(
            options: runOptions, folder: folder, validationFolder: options.dataset.validationFolder, command: command
        ).run(trainer, epochs: options.epochs, patience: options.patience)
    }
}
