public import Foundation
public import ImprintModel
internal import ImprintNetwork

/// Options for the ONNX export.
public struct ONNXOptions: Sendable {
    /// The precision of convolution and dense weights; a `Cast` node converts float16 weights to float32.
    public var precision: Safetensors.Precision
    /// Whether the graph includes the normalization (sample − mean) · scale, and takes samples 0…255 as its input.
    public var containsPreprocessing: Bool

    /// Creates options.
    public init(precision: Safetensors.Precision = .float32, containsPreprocessing: Bool = false) {
        self.precision = precision
        self.containsPreprocessing = containsPreprocessing
    }
}

extension ModelFile {
    /// Writes the model as an ONNX file, which atomically replaces the file at `url`.
    ///
    /// The file has IR version 8 and opset 13, or opset 17 if the network has a `LayerNormalization`. The input "input" has the
    /// shape [batch, channels, height, width], RGB or grey, and the output has the shape [batch, labels]. The metadata contains
    /// labels, preprocessing and network as JSON: `imprint.labels`, `imprint.preprocessing`, `imprint.network`. `imprint.input`
    /// is "samples" if the graph contains the preprocessing, otherwise "normalized". Equal models produce equal bytes.
    ///
    /// - Throws: `ExportError` if ONNX cannot express the model, `ModelFileError` if labels and network do not match or a
    ///   parameter is not finite, `FileError` if the file cannot be written.
    public func writeONNX(to url: URL, options: ONNXOptions = ONNXOptions()) throws {
        try writeExport(to: url) { () throws -> MessageBuilder in
            var exporter = ONNXExporter(ExportedModel(self, precision: options.precision), options)
            return try exporter.message()
        }
    }
}

/// Converts a classifier to an ONNX model.
struct ONNXExporter {
    /// A tensor of the graph: [N, C, H, W], or flat [N, C].
    struct Value {
        let name: String
        let shape: TensorShape
        let isFlat: Bool
    }

    /// A node to export, with its index, its inputs and the name of its output.
    struct Step {
        let index: Int
        let inputs: [Value]
        let shape: TensorShape
        let output: String
    }

    let model: ExportedModel
    private let options: ONNXOptions
    var graph: ONNXGraph
    private var values: [Value] = []
    /// The flattened form of tensors by name, if another node requested it.
    private var flat: [String: Value] = [:]
    /// The [N, C, H, W] form of flat tensors by name, if another node requested it.
    private var images: [String: Value] = [:]

    init(_ model: ExportedModel, _ options: ONNXOptions) {
        self.model = model
        self.options = options
        graph = ONNXGraph(names: ExportedNames(reserving: [Network.inputName] + model.network.nodes.map(\.name)))
    }

    /// Encodes the message ModelProto.
    mutating func message() throws -> MessageBuilder {
        let output = try addLayers()
        let input = model.network.input
        var graph = graph.message(
            named: model.network.name,
            input: (
                Network.inputName,
                [.name("batch"), .number(input.channels), .number(input.height), .number(input.width)],
                inputText
            ),
            output: (output.name, [.name("batch"), .number(output.shape.channels)]))
        graph.add(10, "Image classifier exported by Imprint. " + inputText)
        var message = MessageBuilder()
        message.add(1, 8)
        message.add(2, "Imprint")
        message.add(7, graph)
        var operators = MessageBuilder()
        operators.add(1, "")
        operators.add(2, model.network.nodes.contains { $0.layer is LayerNormalization } ? 17 : 13)
        message.add(8, operators)
        let metadata =
            [("imprint.input", options.containsPreprocessing ? "samples" : "normalized")] + (try model.metadata())
        for (key, value) in metadata { message.add(14, key: key, value: value) }
        return message
    }

    private var inputText: String {
        let colors = model.network.input.channels == 1 ? "grey" : "red, green and blue"
        let range =
            options.containsPreprocessing ? "samples, 0 to 255" : "(sample - mean) * scale of samples, 0 to 255"
        return "Takes \(range), in sRGB, \(colors), rows from the top; see imprint.preprocessing in the metadata."
    }

    /// Adds all nodes, and returns the flat output of the model.
    private mutating func addLayers() throws(ExportError.Problem) -> Value {
        let input = normalizedInput()
        var unsupported: [UnsupportedLayer] = []
        for (index, node) in model.network.nodes.enumerated() {
            let name = node.name.isEmpty ? graph.unique("") : node.name
            let step = Step(
                index: index, inputs: model.sources(of: index).map { $0.map { values[$0] } ?? input },
                shape: model.network.shapes[index], output: name)
            guard let isFlat = add(node.layer, step) else {
                let kind = type(of: node.layer).kind
                unsupported.append(
                    UnsupportedLayer(node: node.name, kind: kind, reason: "Imprint cannot export it to ONNX")
                )
                values.append(Value(name: name, shape: step.shape, isFlat: false))
                continue
            }
            values.append(Value(name: name, shape: step.shape, isFlat: isFlat))
        }
        guard unsupported.isEmpty else { throw .unsupported(format: "ONNX", layers: unsupported) }
        return flattened(values[values.count - 1])
    }

    /// Returns the input of the first layer.
    private mutating func normalizedInput() -> Value {
        let shape = model.network.input
        let input = Value(name: Network.inputName, shape: shape, isFlat: false)
        guard options.containsPreprocessing else { return input }
        let preprocessing = model.file.preprocessing
        let mean = graph.add("preprocessing.mean", preprocessing.mean, shape: [shape.channels, 1, 1])
        let scale = graph.add("preprocessing.scale", preprocessing.scale, shape: [shape.channels, 1, 1])
        let centered = graph.unique("preprocessing.centered")
        let normalized = graph.unique("preprocessing.normalized")
        graph.add("Sub", [input.name, mean], to: centered)
        graph.add("Mul", [centered, scale], to: normalized)
        return Value(name: normalized, shape: shape, isFlat: false)
    }

    /// Returns a vector as [N, C].
    mutating func flattened(_ value: Value) -> Value {
        guard !value.isFlat else { return value }
        if let known = flat[value.name] { return known }
        let result = Value(name: graph.unique("\(value.name).flat"), shape: value.shape, isFlat: true)
        graph.add("Flatten", [value.name], to: result.name, ["axis": .int(1)])
        flat[value.name] = result
        return result
    }

    /// Returns a tensor as [N, C, H, W].
    mutating func image(_ value: Value) -> Value {
        guard value.isFlat else { return value }
        if let known = images[value.name] { return known }
        let result = Value(name: graph.unique("\(value.name).image"), shape: value.shape, isFlat: false)
        let axes = graph.add("\(value.name).axes", [2, 3])
        graph.add("Unsqueeze", [value.name, axes], to: result.name)
        images[value.name] = result
        return result
    }
}
