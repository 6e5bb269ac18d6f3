internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintTraining

struct TrainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "train", abstract: "Train a classifier from a folder or list of photos.",
        discussion: """
            Examples:
              imprint train photos --output mine.imprint
              imprint train photos --output m.imprint --augment flip --report r.html
              imprint train photos.csv --output mine.imprint
              imprint train photos --folds 5

            To find logos in photos, use imprint train-detector.
            """)

    @Argument(
        help: ArgumentHelp(
            "The photos: a folder with one sub-folder per label, or a list, a CSV file with the header photo,label or a JSON file.",
            valueName: "photos"))
    var data: String

    @OptionGroup var runOptions: TrainingRunOptions

    @OptionGroup var options: TrainingOptions

    func validate() throws {
        try requirePaths([data])
        try runOptions.crossValidation.checkValidation(options.dataset)
        try runOptions.checkOutputs(inputs: [options.baseOptions.base].compactMap { $0 }.map { ("the base model", $0) })
    }

    func run() async throws {
        try runOptions.joinProcesses()
        try runOptions.checkWritable()
        if options.optimization.mixedPrecision { PrecisionOptions.warnIfSlow(.bfloat16) }
        let photos = try labelledPhotos(at: URL(filePath: data), minimumLabels: 2)
        try options.check(isMultiLabel: photos.isMultiLabel)
        warnAboutSimilarLabels(photos.labels, consequence: "The model learns them as different labels.")
        try runOptions.checkFolders(photoFolders: [photos.folder, options.dataset.validationFolder])
        var configuration = try options.configuration(threads: runOptions.common.threadCount)
        configuration.processes = TrainingProcesses.group
        let command =
            ["imprint", "train", data] + option("--output", runOptions.output) + runOptions.details.arguments
            + runOptions.crossValidation.arguments + options.arguments
        var outcome = CrossValidationSession.Outcome()
        if let options = try runOptions.crossValidation.options() {
            outcome = try await CrossValidationSession(
                options: runOptions, photos: photos, command: command, startingPoint: try self.options.startingPoint()
            ).run(CrossValidation(photos: photos, configuration: configuration, options: options))
        }
        guard runOptions.output != nil else { return try outcome.check() }
        let trainer = ClassifierTrainer(
            photos: photos, configuration: configuration, checkpoints: runOptions.checkpoints)
        try await TrainingSession(
            options: runOptions, photos: photos, validationFolder: options.dataset.validationFolder,
            base: options.baseOptions, command: command
        ).run(trainer, epochs: configuration.epochs, patience: options.length.patience)
        try outcome.check()
    }
}

extension TrainingSource {
    /// The folder of the photos, in which no outputs may lie, or nil for a list.
    var folder: URL? { (self as? ImageFolder)?.url }
}
