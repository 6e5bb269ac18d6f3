internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintFormats
internal import ImprintImages
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
            "What is subtracted from samples 0 to 255: one number, or those of red, green and blue with commas between.",
            valueName: "numbers"))
    var mean: String?

    @Option(
        help: ArgumentHelp("What the difference is multiplied by: one number or three.", valueName: "numbers"))
    var scale: String?

    @Flag(help: "An ONNX model takes blue first.")
    var bgr = false

    @Option(help: "How photos are fitted into the input.")
    var cropAndScale = CropAndScale.centerCrop

    @Flag(help: "Print one JSON object per line to standard output; everything else goes to standard error.")
    var json = false

    func validate() throws {
        try requirePaths([file, output] + [prototxt, labels].compactMap { $0 })
        try require(inputSize ?? 1, "--input-size", in: 1...16384)
        _ = try (mean.map { try numbers($0, "--mean") }, scale.map { try numbers($0, "--scale") })
    }

    func run() throws {
        var importer = ModelImporter()
        importer.inputSize = inputSize.map { Size($0) }
        importer.prototxt = prototxt.map { URL(filePath: $0) }
        importer.labels = try labels.map(labelList)
        importer.cropAndScale = cropAndScale
        if mean != nil || scale != nil || bgr {
            importer.samples = ModelImporter.SampleRule(
                mean: try mean.map { try numbers($0, "--mean") } ?? [0],
                scale: try scale.map { try numbers($0, "--scale") } ?? [1], isBlueFirst: bgr)
        }
        do {
            let model = try importer.read(URL(filePath: file))
            for note in model.notes { Terminal.note(note) }
            let url = URL(filePath: output)
            try model.weights.write(to: url)
            if json {
                try Terminal.emit(Finished(output: output))
            } else {
                Terminal.note(
                    "\(output) has \(model.weights.network.nodes.count) layers and \(model.weights.labels.count) labels."
                )
            }
        } catch let error as ImportError {
            if case .unsupported(let operations) = error.problem, json {
                try Terminal.emit(Finished(event: "failed", output: nil, unsupported: operations))
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
        guard FileManager.default.fileExists(atPath: text) else {
            return text.split(separator: ",", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
        }
        return try String(contentsOf: URL(filePath: text), encoding: .utf8).split(whereSeparator: \.isNewline).map(
            String.init)
    }
}

private struct Finished: Encodable {
    var event = "finished"
    var output: String?
    var unsupported: [ImportError.Unsupported] = []
}
