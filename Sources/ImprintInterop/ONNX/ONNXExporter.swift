public import Foundation
public import ImprintModel
internal import ImprintNetwork

/// How a model is written as ONNX.
public struct ONNXOptions: Sendable {
    /// How weights of convolutions and dense layers are stored; if it is float16, a node `Cast` makes float32 of each.
    public var precision: Safetensors.Precision
    /// Whether the graph begins with (sample − mean) · scale and takes samples 0…255, instead of what comes of that.
    public var containsPreprocessing: Bool

    /// Makes options.
    public init(precision: Safetensors.Precision = .float32, containsPreprocessing: Bool = false) {
        self.precision = precision
        self.containsPreprocessing = containsPreprocessing
    }
}

extension ModelFile {
    /// Writes the model as ONNX (operator set 13, or 17 with a `LayerNormalization`, IR version 8) at `url`, which is replaced
    /// as `AtomicFile` does it.
    ///
    /// The graph takes "input" [batch, channels, height, width], RGB or grey, and gives [batch, labels]. Labels, preprocessing and
    /// network are in the metadata as JSON: `imprint.labels`, `imprint.preprocessing`, `imprint.network`; `imprint.input` is
    /// "samples" where the graph contains the preprocessing, else "normalized". Equal content gives equal bytes.
    /// - Throws: `ExportError` if ONNX cannot express the model, `ModelFileError` where labels and network do not match or a
    ///   parameter is not finite, `FileError` where the file cannot be written.
    public func writeONNX(to url: URL, options: ONNXOptions = ONNXOptions()) throws {
        try writeExport(to: url) { () throws -> WrittenMessage in
            var exporter = ONNXExporter(ExportedModel(self, precision: options.precision), options)
            return try exporter.message()
        }
    }
}

/// What makes an ONNX model of a classifier.
struct ONNXExporter {
    /// A result: [N, C, H, W], or flat [N, C].
    struct Value {
        let name: String
        let shape: TensorShape
        let isFlat: Bool
    }

    /// A node on its way: its place, what it reads and the name of its result.
    struct Step {
        let place: Int
        let inputs: [Value]
        let shape: TensorShape
        let output: String
    }

    let model: ExportedModel
    private let options: ONNXOptions
    var graph: ONNXGraph
    private var values: [Value] = []
    /// Results of which another form was asked for, by name, and that form.
    private var flat: [String: Value] = [:]
    private var images: [String: Value] = [:]

    init(_ model: ExportedModel, _ options: ONNXOptions) {
        self.model = model
        self.options = options
        graph = ONNXGraph(names: ExportedNames(reserving: [Network.inputName] + model.network.nodes.map(\.name)))
    }

    /// The message ModelProto.
    mutating func message() throws -> WrittenMessage {
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
        var message = WrittenMessage()
        message.add(1, 8)
        message.add(2, "Imprint")
        message.add(7, graph)
        var operators = WrittenMessage()
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
        let numbers =
            options.containsPreprocessing ? "samples, 0 to 255" : "(sample - mean) * scale of samples, 0 to 255"
        return "Takes \(numbers), in sRGB, \(colors), rows from the top; see imprint.preprocessing in the metadata."
    }

    /// Adds all nodes; gives the model's result, flat.
    private mutating func addLayers() throws(ExportError.Problem) -> Value {
        let input = normalizedInput()
        var unsupported: [UnsupportedLayer] = []
        for (place, node) in model.network.nodes.enumerated() {
            let name = node.name.isEmpty ? graph.unique("") : node.name
            let step = Step(
                place: place, inputs: model.sources(of: place).map { $0.map { values[$0] } ?? input },
                shape: model.network.shapes[place], output: name)
            guard let isFlat = add(node.layer, step) else {
                let kind = type(of: node.layer).kind
                unsupported.append(
                    UnsupportedLayer(node: node.name, kind: kind, reason: "there is no way into ONNX for it")
                )
                values.append(Value(name: name, shape: step.shape, isFlat: false))
                continue
            }
            values.append(Value(name: name, shape: step.shape, isFlat: isFlat))
        }
        guard unsupported.isEmpty else { throw .unsupported(format: "ONNX", layers: unsupported) }
        return flattened(values[values.count - 1])
    }

    /// What the first layer reads.
    private mutating func normalizedInput() -> Value {
        let shape = model.network.input
        let input = Value(name: Network.inputName, shape: shape, isFlat: false)
        guard options.containsPreprocessing else { return input }
        let preprocessing = model.weights.preprocessing
        let mean = graph.add("preprocessing.mean", preprocessing.mean, shape: [shape.channels, 1, 1])
        let scale = graph.add("preprocessing.scale", preprocessing.scale, shape: [shape.channels, 1, 1])
        let centered = graph.unique("preprocessing.centered")
        let normalized = graph.unique("preprocessing.normalized")
        graph.add("Sub", [input.name, mean], to: centered)
        graph.add("Mul", [centered, scale], to: normalized)
        return Value(name: normalized, shape: shape, isFlat: false)
    }

    /// A vector as [N, C].
    mutating func flattened(_ value: Value) -> Value {
        guard !value.isFlat else { return value }
        if let known = flat[value.name] { return known }
        let result = Value(name: graph.unique("\(value.name).flat"), shape: value.shape, isFlat: true)
        graph.add("Flatten", [value.name], to: result.name, ["axis": .int(1)])
        flat[value.name] = result
        return result
    }

    /// A value as [N, C, H, W].
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
