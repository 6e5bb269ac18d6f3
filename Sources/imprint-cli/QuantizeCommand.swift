internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

struct QuantizeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quantize",
        abstract: "Quantize a model to int8: faster predictions and a file of a quarter of the size.",
        discussion: """
            Most convolutions and dense layers of the new model compute with 8-bit integers. Photos determine the ranges of their values: \
            use 100 to 500 photos like those that the model will predict; labels are not needed. A quarter of the photos measures how much \
            the outputs change. Layers that change them too much stay in float32. With --fine-tune, fewer layers have to.

            Examples:
              imprint quantize m.imprint --photos photos --output q.imprint
              imprint quantize m.imprint --photos photos --output q.imprint --fine-tune
              imprint compare m.imprint q.imprint --images others
            """)

    @Argument(help: "The model file to quantize; it is not changed.")
    var model: String

    @Option(help: ArgumentHelp("A folder of photos, with or without sub-folders.", valueName: "folder"))
    var photos: String

    @Option(name: .shortAndLong, help: ArgumentHelp("The file to write.", valueName: "file"))
    var output: String

    @Option(help: ArgumentHelp("The largest number of photos to read.", valueName: "count"))
    var limit = QuantizationOptions().photoCount

    @Option(
        help: ArgumentHelp(
            "The largest error of the outputs, relative to their standard deviation: more than 0 and at most 1. Layers with large errors stay in float32 until the error is at most this.",
            valueName: "number"))
    var errorLimit = QuantizationOptions().errorLimit

    @Flag(
        name: .customLong("fine-tune"),
        help:
            "Fine-tune the int8 model for some minutes to reproduce the outputs of the float32 model; no labels are needed."
    )
    var fineTunes = false

    @Option(
        help: ArgumentHelp(
            "The number of training steps with --fine-tune. (default: \(Quantizer.FineTuning().steps))",
            valueName: "count"))
    var steps: Int?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, photos])
        try require(limit, "--limit", in: 4...10_000)
        guard errorLimit > 0, errorLimit <= 1 else {
            throw ValidationError(
                "--error-limit is \(messageText(errorLimit)), expected more than 0 and at most 1.")
        }
        if let steps {
            try require(steps, "--steps", in: 1...1_000_000)
            guard fineTunes else {
                throw ValidationError(
                    "--steps needs --fine-tune, which is missing. Add --fine-tune, or leave out --steps.")
            }
        }
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .model)], inputs: [("the model to quantize", model)])
    }

    func run() throws {
        try AtomicFile.checkWritable(URL(filePath: output))
        let model = try namedModel(self.model)
        let files = try ImageFolder.images(in: URL(filePath: photos))
        var bar = ProgressBar()
        defer { bar.clear() }
        var options = QuantizationOptions(photoCount: limit, errorLimit: errorLimit)
        if fineTunes {
            var fineTuning = Quantizer.FineTuning()
            if let steps { fineTuning.steps = steps }
            options.fineTuning = fineTuning
        }
        let result = try naming(self.model) {
            do {
                return try model.quantized(for: files, options: options, threads: common.threadCount) {
                    step, done, total in
                    bar.draw(step, done: done, of: total)
                }
            } catch ImprintError.invalidSetting("photos", let found, let expected) {
                throw PhotoFailure(description: "\(photos): found \(found), expected \(expected). Add photos.")
            } catch ImprintError.invalidSetting("errorLimit", let found, let expected) {
                throw ImprintError.invalidSetting(name: "--error-limit", found: found, expected: expected)
            }
        }
        bar.clear()
        for image in result.skipped { Terminal.warn("Skipped: \(image.reason)") }
        warn(about: result)
        let file = try writeResult(to: output, .model) { try result.model.write(to: $0) }
        func topAgreement(_ error: QuantizationError) -> Double? {
            model.head.seesWholeImage && model.head.confidencesSumToOne ? error.agreement : nil
        }
        let line = Line(
            event: "finished", output: file.path, calibrationPhotos: result.calibrationPhotos,
            measuredPhotos: result.measuredPhotos, int8Layers: result.integerLayers,
            float32Layers: result.floatLayers, relativeError: result.error.relativeError,
            topAgreement: topAgreement(result.error),
            relativeErrorBeforeFineTuning: result.errorBeforeFineTuning?.relativeError,
            topAgreementBeforeFineTuning: result.errorBeforeFineTuning.flatMap(topAgreement),
            skipped: result.skipped.map(SkippedLine.init))
        if common.json { try Terminal.report(line) } else { Terminal.noteLines(line.text) }
        if file.isElsewhere { throw ExitCode.failure }
    }
}

/// The smallest number of calibration photos without a warning.
private let enoughPhotos = 75

/// Warns if the result is not reliable, or not useful.
private func warn(about result: QuantizedModel) {
    if result.calibrationPhotos < enoughPhotos {
        Terminal.warn(
            "Only \(counted(result.calibrationPhotos, "photo")) determined the ranges, so other photos may be clipped, and the measured error may be too "
                + "low. Use 100 or more.")
    }
    if result.floatLayers.count > result.integerLayers.count {
        Terminal.warn("Most layers stay in float32, so the model may not be faster than the original.")
    }
}

private struct Line: Encodable {
    let event: String
    let output: String
    let calibrationPhotos: Int
    let measuredPhotos: Int
    let int8Layers: [String]
    let float32Layers: [String]
    let relativeError: Double
    /// `null` for detectors and multi-label models.
    @NullIfMissing var topAgreement: Double?
    /// `null` without fine-tuning.
    @NullIfMissing var relativeErrorBeforeFineTuning: Double?
    @NullIfMissing var topAgreementBeforeFineTuning: Double?
    let skipped: [SkippedLine]

    private var fineTuning: String {
        guard let relativeErrorBeforeFineTuning else { return "" }
        let agreement = topAgreementBeforeFineTuning.map {
            ", and the top-1 label was the same for \(Terminal.percent($0))"
        }
        return "\nBefore fine-tuning, with all layers in int8, they differed by "
            + "\(Terminal.percent(relativeErrorBeforeFineTuning))\(agreement ?? "")."
    }

    var text: String {
        let floats =
            float32Layers.isEmpty ? "" : ", the others in float32 (\(TextTable.list(float32Layers)))"
        let agreement = topAgreement.map { ", and the top-1 label is the same for \(Terminal.percent($0))" } ?? ""
        return """
            Wrote \(output): \(int8Layers.count) of \(int8Layers.count + float32Layers.count) layers compute in int8\(floats).
            On \(counted(measuredPhotos, "photo")) that \(measuredPhotos == 1 ? "was" : "were") not used for calibration, the outputs differ by \
            \(Terminal.percent(relativeError)) of their standard deviation\(agreement).\(fineTuning)
            """
    }
}
