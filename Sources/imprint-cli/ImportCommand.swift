internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintInterop
internal import ImprintModel
internal import ImprintNetwork

struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Make a weights file of an ONNX, Core ML or Caffe model, to run, train further and personalize.")

    @Argument(help: "An ONNX file, a Core ML file or package, or a .caffemodel.")
    var file: String

    @Option(help: ArgumentHelp("The weights file to write.", valueName: "file"))
    var output: String

    @Option(help: ArgumentHelp("The architecture of a Caffe model, its deploy.prototxt.", valueName: "file"))
    var prototxt: String?

    @Option(
        help: ArgumentHelp(
            "The labels, in the order of the outputs, with commas between; or a text file with one a line.",
            valueName: "labels"))
    var labels: String?

    @Option(
        help: ArgumentHelp(
            "Height and width of the input instead of those in the file, where the network allows others.",
            valueName: "pixels"))
    var inputSize: Int?

    @Option(
        help: ArgumentHelp(
            "What is subtracted from samples 0 to 255: one number, or those of red, green and blue with commas between. "
                + "(default: as the file says; 0 with --scale or --bgr)",
            valueName: "numbers"))
    var mean: String?

    @Option(
        help: ArgumentHelp(
            "What the difference is multiplied by: one number or three. (default: as the file says; 1 with --mean or --bgr)",
            valueName: "numbers"))
    var scale: String?

    @Flag(help: "An ONNX model, or a Core ML model of an array, takes blue first.")
    var bgr = false

    @Option(
        help: "How photos are fitted into the input, where Imprint did not export the model (default: center-crop).")
    var cropAndScale: CropAndScale?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([file] + [prototxt].compactMap { $0 })
        try require(inputSize ?? 1, "--input-size", in: 1...16384)
        _ = try (mean.map { try numbers($0, "--mean") }, scale.map { try numbers($0, "--scale") })
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .model)],
            inputs: [("the model to import", file)] + [prototxt].compactMap { $0 }.map { ("the architecture", $0) }
                + [labels].compactMap { $0 }.map { ("the list of labels", $0) })
    }

    func run() throws {
        var importer = ModelImporter()
        importer.inputSize = inputSize.map { Size2D($0) }
        importer.prototxt = prototxt.map { URL(filePath: $0) }
        importer.labels = try labels.map(labelList)
        importer.cropAndScale = cropAndScale
        var notes: [String] = []
        if mean != nil || scale != nil || bgr {
            if mean == nil { notes.append("Nothing is subtracted from samples. Say otherwise with --mean.") }
            if scale == nil { notes.append("Samples are not scaled. Say otherwise with --scale.") }
            importer.normalization = ModelImporter.InputNormalization(
                mean: try mean.map { try numbers($0, "--mean") } ?? [0],
                scale: try scale.map { try numbers($0, "--scale") } ?? [1], isBGR: bgr)
        }
        try AtomicFile.checkWritable(URL(filePath: output))
        do {
            let model = try importer.read(URL(filePath: file))
            notes = model.notes + notes
            for note in notes { Terminal.note(note) }
            let url = URL(filePath: output)
            try model.weights.write(to: url)
            if common.json {
                let network = model.weights.network
                try Terminal.report(
                    Finished(
                        output: output, layers: network.nodes.count,
                        parameters: model.weights.parameters.layout.trainableCount,
                        input: [network.input.height, network.input.width, network.input.channels],
                        labels: model.weights.labels, notes: notes))
            } else {
                Terminal.note(
                    "\(output) has \(model.weights.network.nodes.count) layers and "
                        + (model.weights.labels.count == 1 ? "1 label." : "\(model.weights.labels.count) labels.")
                )
            }
        } catch let error as ImportError {
            if case .unsupported(let operations) = error.problem, common.json {
                try Terminal.report(Failed(unsupported: operations))
            }
            throw error
        }
    }

    private func numbers(_ text: String, _ option: String) throws -> [Float] {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map {
            Float($0.trimmingCharacters(in: .whitespaces))
        }
        let numbers = parts.compactMap { $0 }.filter(\.isFinite)
        guard numbers.count == parts.count, numbers.count == 1 || numbers.count == 3 else {
            throw ValidationError("\(option) is \(text), expected one number, or three with commas between.")
        }
        return numbers
    }

    /// Labels as they were typed, or the lines of a file.
    private func labelList(_ text: String) throws -> [String] {
        let list: [String]
        if FileManager.default.fileExists(atPath: text) {
            guard let lines = try? String(contentsOf: URL(filePath: text), encoding: .utf8) else {
                throw ValidationError(
                    "--labels is \(text), which cannot be read as text (UTF-8), expected a label a line.")
            }
            list = lines.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        } else if !text.contains(","), text.contains("/") || text.hasSuffix(".txt") {
            throw ValidationError(
                "--labels is \(text), which is not there; expected a text file, or labels with commas between.")
        } else {
            list = text.split(separator: ",", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
        }
        guard !list.isEmpty, !list.contains("") else {
            throw ValidationError("--labels is \(text), where a label is empty, expected a name for each.")
        }
        return list
    }
}

private struct Finished: Encodable {
    let event = "finished"
    let output: String
    let layers: Int
    let parameters: Int
    let input: [Int]
    let labels: [String]
    let notes: [String]
    /// What could not be read: nothing, or there would be no model.
    let unsupported: [ImportError.Unsupported] = []
}

private struct Failed: Encodable {
    let event = "failed"
    let unsupported: [ImportError.Unsupported]
}
