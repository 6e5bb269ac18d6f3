public import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintInterop
internal import ImprintModel
internal import ImprintNetwork

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Export a model to ONNX or Core ML, or to a smaller model file.",
        discussion: """
            The exported file contains labels, preprocessing and network as metadata. A Core ML model takes images and preprocesses them \
            itself. An ONNX model takes preprocessed values, or pixel values 0 to 255 with --preprocessing-in-graph. Both models \
            of a logo detector take pixel values and output bounding boxes. --to imprint writes a model file again, with --precision int8 \
            at about a quarter of the size.

            Examples:
              imprint export m.imprint --to onnx --output m.onnx
              imprint export m.imprint --to coreml --precision float16 --output M.mlmodel
              imprint export m.imprint --to imprint --precision int8 --output s.imprint
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case onnx, coreml, imprint

        var kind: OutputKind {
            switch self {
            case .onnx: .onnxModel
            case .coreml: .coreMLModel
            case .imprint: .model
            }
        }
    }

    @Argument(help: "The model file to export; it is not changed.")
    var model: String

    @Option(
        name: .customLong("to"), help: ArgumentHelp("The output format.", valueName: "onnx, coreml or imprint"))
    var format: Format

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file to write, usually .onnx, .mlmodel or .imprint.", valueName: "file"))
    var output: String

    @Flag(help: "Mark the last dense layer or convolution as trainable on devices; for coreml.")
    var updatable = false

    @Option(
        help: ArgumentHelp(
            "The precision of the parameters in the file: float32; float16 for half the size; or int8 for a "
                + "quarter, for imprint or for a model from imprint quantize. (default: float32; for onnx and coreml, a quantized model "
                + "keeps its int8 layers)"))
    var precision: ModelFile.Storage?

    @Flag(help: "Include preprocessing: the input is pixel values 0 to 255; for onnx.")
    var preprocessingInGraph = false

    @Option(
        help: ArgumentHelp(
            "A JSON file with categories of the labels to add to the model, {\"computer\": [\"laptop\", …], …}; for imprint.",
            valueName: "file"))
    var categories: String?

    @OptionGroup(title: "Details of the model")
    var details: ModelDetailsOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + [categories].compactMap { $0 })
        if updatable && format != .coreml {
            throw ValidationError(
                "--updatable is only for coreml, which can train on devices. Leave it out.")
        }
        if updatable && (precision ?? .float32) != .float32 {
            throw ValidationError(
                "--updatable needs --precision float32: Core ML cannot train other parameters.")
        }
        if preprocessingInGraph && format != .onnx {
            throw ValidationError(
                "--preprocessing-in-graph is only for onnx: the other formats always include preprocessing. Leave it out."
            )
        }
        if categories != nil && format != .imprint {
            throw ValidationError(
                "--categories is only for imprint: the other formats cannot store categories. Leave it out.")
        }
        try checkOutputs(
            [outputFile],
            inputs: [("the model to export", model)]
                + [categories].compactMap { $0 }.map { ("the list of categories", $0) })
    }

    /// The file to write; if its extension is that of another format, with the option for that format.
    private var outputFile: OutputFile {
        let name = URL(filePath: output).pathExtension.lowercased()
        let other = Format.allCases.first { $0 != format && $0.kind.fileExtensions.contains(name) }
        return OutputFile(
            option: "--output", path: output, kind: format.kind, alternative: other.map { "--to \($0.rawValue)" })
    }

    func run() throws {
        let target = URL(filePath: output)
        try AtomicFile.checkWritable(target)
        var model = try namedModel(self.model)
        if precision == .int8, format != .imprint, model.parameters.quantization == nil {
            throw ValidationError(
                "--precision int8 is only for imprint, or for a quantized model: \(self.model) has no int8 layers. Use float16 or float32."
            )
        }
        if let categories {
            let read = try Categories(contentsOf: URL(filePath: categories), labels: model.labels)
            warnAboutSimilarCategories(read, labels: model.labels)
            model.categories = read
        }
        details.apply(to: &model)
        let storagePrecision: Safetensors.Precision = precision == .float16 ? .float16 : .float32
        // An explicit precision in floating point applies to all layers.
        let keepsInt8Layers = precision == nil || precision == .int8
        do {
            switch format {
            case .onnx:
                if preprocessingInGraph && model.head.locatesObjects {
                    Terminal.note(
                        "--preprocessing-in-graph has no effect: the graph of a detector always includes preprocessing."
                    )
                }
                let options = ONNXOptions(
                    storagePrecision: storagePrecision, containsPreprocessing: preprocessingInGraph,
                    keepsInt8Layers: keepsInt8Layers)
                try model.writeONNX(to: target, options: options)
            case .coreml:
                try model.writeCoreML(
                    to: target,
                    options: CoreMLOptions(
                        storagePrecision: storagePrecision, isUpdatable: updatable, keepsInt8Layers: keepsInt8Layers))
            case .imprint:
                // The int8 layers of a quantized model are written as they are, and so are its other layers.
                let keepsQuantization = precision == .int8 && model.parameters.quantization != nil
                try model.write(to: target, as: keepsQuantization ? nil : precision ?? .float32)
            }
        } catch let error as ExportError {
            if common.json {
                try Terminal.report(Line(event: "failed", output: output, unsupported: error.unsupportedLayers))
            }
            throw error
        }
        if common.json {
            try Terminal.report(Line(event: "finished", output: output, unsupported: []))
        } else {
            Terminal.note("Wrote \(output).")
        }
        if format == .imprint, precision != .int8, model.parameters.quantization != nil {
            Terminal.note(
                "\(self.model) is quantized, but \(output) computes in floating point. --precision int8 keeps the quantization."
            )
        }
    }
}

extension ModelFile {
    /// Returns the command that writes the model again, in the same storage, with another option.
    func exportCommand(adding option: String) -> String {
        "imprint export --to imprint\(storage == .float32 ? "" : " --precision \(storage.rawValue)") \(option)"
    }
}

private struct Line: Encodable {
    let event: String
    let output: String
    /// The layers that the format cannot express.
    let unsupported: [UnsupportedLayer]
}

extension ModelFile.Storage: ExpressibleByArgument {}
