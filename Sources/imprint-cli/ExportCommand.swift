internal import ArgumentParser
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

    @Argument(help: "The weights file; it stays as it is.")
    var model: String

    @Option(name: .customLong("to"), help: "The format.")
    var format: Format

    @Option(help: ArgumentHelp("The file to write: by custom .onnx, .mlmodel or .imprint.", valueName: "file"))
    var output: String

    @Flag(help: "Let devices train the last dense layer or convolution; for coreml.")
    var updatable = false

    @Flag(help: "Store weights as float16: half as many bytes.")
    var float16 = false

    @Flag(help: "Store weights as whole numbers of 8 bits: a quarter of the bytes; for imprint.")
    var int8 = false

    @Flag(help: "Take samples 0 to 255 instead of prepared numbers; for onnx.")
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
        if updatable && float16 {
            throw ValidationError(
                "--updatable and --float16 exclude one another: Core ML trains float32 alone; leave one out.")
        }
        if preprocessingInGraph && format != .onnx {
            throw ValidationError(
                "--preprocessing-in-graph is for onnx: the other formats prepare images themselves; leave it out.")
        }
        if int8 && format != .imprint {
            throw ValidationError(
                "--int8 is for imprint: models for other programs have floating-point weights; use --float16, or leave it out."
            )
        }
        if int8 && float16 {
            throw ValidationError("--int8 and --float16 exclude one another: leave one out.")
        }
        if categories != nil && format != .imprint {
            throw ValidationError(
                "--categories is for imprint: the other formats have no place for them; leave it out.")
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
        let precision: Safetensors.Precision = float16 ? .float16 : .float32
        do {
            switch format {
            case .onnx:
                let options = ONNXOptions(precision: precision, containsPreprocessing: preprocessingInGraph)
                try weights.writeONNX(to: target, options: options)
            case .coreml:
                try weights.writeCoreML(
                    to: target, options: CoreMLOptions(precision: precision, isUpdatable: updatable))
            case .imprint:
                try weights.write(to: target, as: int8 ? .int8 : float16 ? .float16 : .float32)
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
