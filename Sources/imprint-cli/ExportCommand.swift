public import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintInterop
internal import ImprintModel

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a model as ONNX or Core ML, for other programs and for phones, or as a smaller weights file.",
        discussion: """
            Labels, preprocessing and network go along as metadata. A Core ML model takes images and prepares them itself; an ONNX model \
            takes numbers, prepared as its metadata says, or with --preprocessing-in-graph samples 0 to 255. As imprint it stays a weights \
            file, with --int8 of about a quarter of the size.
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

    @Argument(help: "The model file; it is not changed.")
    var model: String

    @Option(name: .customLong("to"), help: "The format.")
    var format: Format

    @Option(help: ArgumentHelp("The file to write, usually .onnx, .mlmodel or .imprint.", valueName: "file"))
    var output: String

    @Flag(help: "Make the last dense layer or convolution trainable on devices; for coreml.")
    var updatable = false

    @Option(
        help:
            "How the file stores parameters: float32; float16 for half the size; or int8 for a quarter, for imprint only."
    )
    var precision = ModelFile.Storage.float32

    @Flag(help: "Include preprocessing: the input is samples 0 to 255; for onnx.")
    var preprocessingInGraph = false

    @Option(
        help: ArgumentHelp(
            "Categories of the labels to put into the file, as JSON: {\"computer\": [\"laptop\", …], …}; for imprint.",
            valueName: "file"))
    var categories: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + [categories].compactMap { $0 })
        if updatable && format != .coreml {
            throw ValidationError(
                "--updatable is for coreml: it is about training by Core ML on devices; leave it out.")
        }
        if updatable && precision != .float32 {
            throw ValidationError(
                "--updatable needs --precision float32: Core ML trains no other.")
        }
        if preprocessingInGraph && format != .onnx {
            throw ValidationError(
                "--preprocessing-in-graph is for onnx: the other formats always include preprocessing; leave it out.")
        }
        if precision == .int8 && format != .imprint {
            throw ValidationError(
                "--precision int8 is for imprint: other programs need floating-point parameters. Use float16 or float32."
            )
        }
        if categories != nil && format != .imprint {
            throw ValidationError(
                "--categories is for imprint: the other formats cannot store them; leave it out.")
        }
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: format.kind)],
            inputs: [("the model to export", model)]
                + [categories].compactMap { $0 }.map { ("the list of categories", $0) })
    }

    func run() throws {
        let target = URL(filePath: output)
        try AtomicFile.checkWritable(target)
        var weights = try ModelFile(contentsOf: URL(filePath: model))
        if let categories {
            weights.categories = try Categories(contentsOf: URL(filePath: categories), labels: weights.labels)
        }
        let tensorPrecision: Safetensors.Precision = precision == .float16 ? .float16 : .float32
        do {
            switch format {
            case .onnx:
                let options = ONNXOptions(precision: tensorPrecision, containsPreprocessing: preprocessingInGraph)
                try weights.writeONNX(to: target, options: options)
            case .coreml:
                try weights.writeCoreML(
                    to: target, options: CoreMLOptions(precision: tensorPrecision, isUpdatable: updatable))
            case .imprint:
                try weights.write(to: target, as: precision)
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
    }
}

private struct Line: Encodable {
    let event: String
    let output: String
    /// What the format cannot express.
    let unsupported: [UnsupportedLayer]
}

extension ModelFile.Storage: ExpressibleByArgument {}
