public import Foundation
public import ImprintModel
internal import ImprintNetwork

/// Options for the ONNX export.
public struct ONNXOptions: Sendable {
    /// The precision of convolution and dense weights; a `Cast` node converts float16 weights to float32.
    public var storagePrecision: Safetensors.Precision
    /// Whether the graph includes the normalization (sample − mean) · scale, and takes samples 0…255 as its input.
    ///
    /// The graph of a logo detector always does, because it scales the image.
    public var containsPreprocessing: Bool
    /// Whether the int8 layers of a quantized model have int8 weights; if false, `storagePrecision` also applies to them.
    public var keepsInt8Layers: Bool

    /// Creates options.
    public init(
        storagePrecision: Safetensors.Precision = .float32, containsPreprocessing: Bool = false,
        keepsInt8Layers: Bool = true
    ) {
        self.storagePrecision = storagePrecision
        self.containsPreprocessing = containsPreprocessing
        self.keepsInt8Layers = keepsInt8Layers
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
    /// The int8 layers of a quantized model have int8 weights, and `QuantizeLinear` and `DequantizeLinear` at their inputs (QDQ format), unless
    /// `ONNXOptions.keepsInt8Layers` is false.
    ///
    /// A logo detector has opset 18. Its graph contains the whole detection, from an image of any size to the objects. The input
    /// [1, 3, height, width] has samples 0…255. The outputs, with the objects by descending confidence, are:
    ///
    /// - `boxes` [objects, 4]: the left, top, right and bottom edges, in pixels of the input.
    /// - `confidences` [objects].
    /// - `labels` [objects]: the indices of the labels.
    /// - `imageConfidences` [labels]: the confidence of each label for the whole image.
    ///
    /// - Throws: `ExportError` if ONNX cannot express the model, `ModelFileError` if labels and network do not match or a
    ///   parameter is not finite, `FileError` if the file cannot be written.
    public func writeONNX(to url: URL, options: ONNXOptions = ONNXOptions()) throws {
        try writeExport(to: url) { () throws -> MessageBuilder in
            switch head {
            case .softmax, .sigmoid:
                let model = ExportedModel(
                    self, storagePrecision: options.storagePrecision, keepsInt8Layers: options.keepsInt8Layers)
                var exporter = ONNXExporter(model, options)
                return try exporter.message()
            case .detector(let detector):
                return try ONNXExporter.message(self, detector, options)
            case .centerPoints, .anchors: throw ExportError.Problem.detector
            }
        }
    }
}

/// Converts a model to an ONNX model.
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
    /// The version of the operators.
    let opset: Int
    var graph: ONNXGraph
    /// The quantization of the int8 layers; nil if there are none.
    var quantization: ONNXQuantization?
    /// The names of the means and scales in the graph, once they are in use.
    private var normalization: (mean: String, scale: String)?
    /// The flattened form of tensors by name, if another node requested it.
    private var flat: [String: Value] = [:]
    /// The [N, C, H, W] form of flat tensors by name, if another node requested it.
    private var images: [String: Value] = [:]

    /// Creates an exporter of a classifier.
    init(_ model: ExportedModel, _ options: ONNXOptions) {
        self.init(
            model, options, opset: model.network.nodes.contains { $0.layer is LayerNormalization } ? 17 : 13,
            reserving: model.network.nodes.map(\.name))
    }

    /// Creates an exporter.
    /// - Parameter names: The names of tensors that must not be changed, besides the name of the input.
    init(_ model: ExportedModel, _ options: ONNXOptions, opset: Int, reserving names: [String]) {
        self.model = model
        self.options = options
        self.opset = opset
        graph = ONNXGraph(names: ExportedNames(reserving: [Network.inputName] + names))
        quantization = model.quantization.map { ONNXQuantization($0, of: model.network) }
    }

    /// Encodes the message ModelProto of a classifier.
    mutating func message() throws -> MessageBuilder {
        let shape = model.network.input
        let input = Value(name: Network.inputName, shape: shape, isFlat: false)
        let output = flattened(try addLayers(to: options.containsPreprocessing ? normalized(input) : input))
        return try message(
            kind: "Image classifier",
            input: [.name("batch"), .number(shape.channels), .number(shape.height), .number(shape.width)],
            outputs: [ONNXGraph.Output(name: output.name, shape: [.name("batch"), .number(output.shape.channels)])])
    }

    /// Encodes the message ModelProto.
    /// - Parameters:
    ///   - kind: The kind of model, the start of the graph's description.
    ///   - extra: Metadata in addition to the metadata of every model.
    func message(
        kind: String, input: [ONNXGraph.Length], outputs: [ONNXGraph.Output], extra: [(key: String, value: String)] = []
    ) throws -> MessageBuilder {
        var graph = graph.message(
            named: model.network.name, input: (Network.inputName, input, inputText), outputs: outputs)
        graph.add(10, "\(kind) exported by Imprint. " + inputText)
        var message = MessageBuilder()
        message.add(1, 8)
        message.add(2, "Imprint")
        let details = model.file.details
        if let version = details.version { message.add(5, version) }
        if let intendedUse = details.intendedUse { message.add(6, intendedUse) }
        message.add(7, graph)
        var operators = MessageBuilder()
        operators.add(1, "")
        operators.add(2, opset)
        message.add(8, operators)
        let metadata =
            [("imprint.input", options.containsPreprocessing ? "samples" : "normalized")] + (try model.metadata())
            + (details.license.map { [(ExportedDetails.onnxLicense, $0)] } ?? []) + ExportedDetails.metadata(details)
            + extra
        for (key, value) in metadata { message.add(14, key: key, value: value) }
        return message
    }

    private var inputText: String {
        let colors = model.network.input.channels == 1 ? "grey" : "red, green and blue"
        let range =
            options.containsPreprocessing ? "samples, 0 to 255" : "(sample - mean) * scale of samples, 0 to 255"
        return "Takes \(range), in sRGB, \(colors), rows from the top; see imprint.preprocessing in the metadata."
    }

    /// Adds all layers of the network.
    ///
    /// - Parameters:
    ///   - input: The normalized input.
    ///   - prefix: The start of the names of the outputs, if the graph contains the network several times; the parameters are shared.
    ///   - onLayer: A closure that is called before each layer.
    /// - Returns: The output of the last layer.
    mutating func addLayers(
        to input: Value, prefix: String = "", onLayer: (ONNXGraph) -> Void = { _ in }
    ) throws(ExportError.Problem) -> Value {
        var values: [Value] = []
        var unsupported: [UnsupportedLayer] = []
        for (index, node) in model.network.nodes.enumerated() {
            onLayer(graph)
            let isReserved = prefix.isEmpty && !node.name.isEmpty
            let name = isReserved ? node.name : graph.unique(prefix + node.name)
            let step = Step(
                index: index,
                inputs: model.sources(of: index).map { source in
                    roundedToIntegers(source.map { values[$0] } ?? input, of: source ?? -1, for: index)
                },
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
        return values[values.count - 1]
    }

    /// Adds the normalization of samples, (sample − mean) · scale.
    /// - Parameter prefix: The start of the names of the tensors, if the graph normalizes several images.
    mutating func normalized(_ input: Value, prefix: String = "") -> Value {
        let preprocessing = model.file.preprocessing
        let shape = [input.shape.channels, 1, 1]
        let (mean, scale) =
            normalization ?? (
                graph.add("preprocessing.mean", preprocessing.mean, shape: shape),
                graph.add("preprocessing.scale", preprocessing.scale, shape: shape)
            )
        normalization = (mean, scale)
        let centered = graph.node("Sub", [input.name, mean], named: "\(prefix)preprocessing.centered")
        let normalized = graph.node("Mul", [centered, scale], named: "\(prefix)preprocessing.normalized")
        return Value(name: normalized, shape: input.shape, isFlat: false)
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
