public import ArgumentParser
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
        abstract:
            "Convert an ONNX, Core ML, Caffe or PyTorch model to a model file, to run, fine-tune and personalize.",
        discussion: """
            Examples:
              imprint import model.onnx --output m.imprint --labels labels.txt
              imprint import Model.mlpackage --output m.imprint
              imprint import net.caffemodel --prototxt deploy.prototxt --output m.imprint
              imprint import weights.pth --architecture resnet-18 --output m.imprint
            """)

    @Argument(
        help:
            "An ONNX file, a Core ML file or package, a .caffemodel, a PyTorch checkpoint, or BlazeFace in TensorFlow Lite."
    )
    var file: String

    @Option(name: .shortAndLong, help: ArgumentHelp("The model file to write.", valueName: "file"))
    var output: String

    @Option(help: ArgumentHelp("The deploy.prototxt file with the network of a Caffe model.", valueName: "file"))
    var prototxt: String?

    @Option(
        help: ArgumentHelp(
            "The architecture of a PyTorch checkpoint: \(ModelImporter.architectures.joined(separator: ", ")).",
            valueName: "name"))
    var architecture: String?

    @Option(
        help: ArgumentHelp(
            "The kind of face detector in the file: centerface in ONNX, or blazeface in TensorFlow Lite. (default: a classifier)",
            valueName: "kind"))
    var detector: DetectorKind?

    @Option(
        help: ArgumentHelp(
            "The labels in the order of the outputs, separated by commas, or a text file with one label per line.",
            valueName: "labels"))
    var labels: String?

    @Option(
        help: ArgumentHelp(
            "The height and width of the input, if the network accepts sizes other than the one in the file. CenterFace sees larger photos "
                + "scaled down to this size, a multiple of 32. (default: as in the file; 1280 with --detector centerface)",
            valueName: "pixels"))
    var inputSize: Int?

    @Option(
        help: ArgumentHelp(
            "The mean to subtract from pixel values 0 to 255: one value, or red, green and blue separated by commas. "
                + "(default: as in the file; 0 with --scale or --bgr)",
            valueName: "values"))
    var mean: String?

    @Option(
        help: ArgumentHelp(
            "The factor to multiply by after subtracting the mean: one value or three. (default: as in the file; 1 with --mean or --bgr)",
            valueName: "values"))
    var scale: String?

    @Flag(help: "The channel order of the input is BGR; for ONNX models and for Core ML models with an array input.")
    var bgr = false

    @Option(
        help:
            "How a photo is fitted into the network's input, for models that Imprint did not export. (default: center-crop)"
    )
    var cropAndScale: CropAndScale?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([file] + [prototxt].compactMap { $0 })
        try require(inputSize ?? 1, "--input-size", in: 1...16384)
        if detector != nil && cropAndScale != nil {
            throw ValidationError("--crop-and-scale applies only to classifiers. Leave it out with --detector.")
        }
        if let architecture, !ModelImporter.architectures.contains(architecture) {
            throw ValidationError(
                "--architecture is \(architecture), expected one of "
                    + "\(ModelImporter.architectures.joined(separator: ", ")).")
        }
        _ = try (mean.map { try channelValues($0, "--mean") }, scale.map { try channelValues($0, "--scale") })
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .model)],
            inputs: [("the model to import", file)] + [prototxt].compactMap { $0 }.map { ("the architecture", $0) }
                + [labels].compactMap { $0 }.map { ("the list of labels", $0) })
    }

    func run() throws {
        var importer = ModelImporter()
        importer.inputSize = inputSize.map { Size2D($0) }
        importer.prototxt = prototxt.map { URL(filePath: $0) }
        importer.architecture = architecture
        importer.detector = detector
        importer.labels = try labels.map(labelList)
        importer.cropAndScale = cropAndScale
        var notes: [String] = []
        if mean != nil || scale != nil || bgr {
            if mean == nil { notes.append("No mean is subtracted from samples; --mean sets one.") }
            if scale == nil { notes.append("Samples are not scaled; --scale sets a factor.") }
            importer.normalization = ModelImporter.InputNormalization(
                mean: try mean.map { try channelValues($0, "--mean") } ?? [0],
                scale: try scale.map { try channelValues($0, "--scale") } ?? [1], isBGR: bgr)
        }
        try AtomicFile.checkWritable(URL(filePath: output))
        do {
            let imported = try importer.read(URL(filePath: file))
            notes = imported.notes + notes
            for note in notes { Terminal.note(note) }
            let url = URL(filePath: output)
            try imported.model.write(to: url)
            if common.json {
                let network = imported.model.network
                try Terminal.report(
                    Finished(
                        output: output, layers: network.nodes.count,
                        parameters: imported.model.parameters.layout.trainableCount,
                        input: [network.input.height, network.input.width, network.input.channels],
                        labels: imported.model.labels, notes: notes))
            } else {
                Terminal.note(
                    "\(output) has \(counted(imported.model.network.nodes.count, "layer")) and "
                        + "\(counted(imported.model.labels.count, "label"))."
                )
            }
        } catch let error as ImportError {
            if case .unsupported(let operations) = error.problem, common.json {
                try Terminal.report(Failed(unsupported: operations))
            }
            throw error
        }
    }

    /// Parses one value for all channels, or three values for red, green and blue.
    private func channelValues(_ text: String, _ option: String) throws -> [Float] {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map {
            Float($0.trimmingCharacters(in: .whitespaces))
        }
        let values = parts.compactMap { $0 }.filter(\.isFinite)
        guard values.count == parts.count, values.count == 1 || values.count == 3 else {
            throw ValidationError("\(option) is \(text), expected one number, or three separated by commas.")
        }
        return values
    }

    /// Returns the labels of a comma-separated list or of a text file.
    private func labelList(_ text: String) throws -> [String] {
        let list: [String]
        if FileManager.default.fileExists(atPath: text) {
            let limit = 16 << 20
            guard let data = try contents(ofFileOrPipe: text, limit: limit) else {
                throw FileError.cannotRead(
                    path: text, reason: "it has more than \(limit) bytes, expected a smaller list of labels")
            }
            guard let lines = String(data: data, encoding: .utf8) else {
                throw FileError.cannotRead(path: text, reason: "it is not a list of labels in UTF-8")
            }
            list = lines.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        } else if !text.contains(","), text.contains("/") || text.hasSuffix(".txt") {
            throw FileError.cannotRead(text, errno: ENOENT)
        } else {
            list = text.split(separator: ",", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
        }
        guard !list.isEmpty, !list.contains(where: isBlank) else {
            throw ValidationError(
                "--labels is \(visibleName(text)), which has an empty label, expected a name for each label.")
        }
        return list
    }
}

extension DetectorKind: ExpressibleByArgument {}

private struct Finished: Encodable {
    let event = "finished"
    let output: String
    let layers: Int
    let parameters: Int
    let input: [Int]
    let labels: [String]
    let notes: [String]
    /// The unsupported operations; always empty, because an import with unsupported operations fails.
    let unsupported: [ImportError.Unsupported] = []
}

private struct Failed: Encodable {
    let event = "failed"
    let unsupported: [ImportError.Unsupported]
}
