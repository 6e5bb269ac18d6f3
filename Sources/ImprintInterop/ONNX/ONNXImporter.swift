internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// Converts an ONNX graph to a network: it folds constants, and turns operators that depend on the image into layers.
struct ONNXImporter {
    let opset: Int
    var assembler: NetworkAssembler
    /// The tensors that earlier nodes computed, by name.
    var values: [String: SourceTensor] = [:]
    /// The initializers and the tensors of Constant nodes, which are decoded when a node reads them.
    private(set) var tensors: [String: ONNXModel.Tensor]
    /// The tensors of QuantizeLinear and DequantizeLinear.
    var quantized: ONNXQuantizedTensors
    /// The quantization of the network.
    var quantization = ImportedQuantization()
    private let limit: DecodingBudget
    /// The inputs of Erf nodes: x / √2 of a GELU, from which the importer finds x.
    private let erfArguments: Set<String>
    /// Whether the image has integer elements, which are always samples 0…255.
    let takesBytes: Bool
    /// The limit for constant folding.
    var folding: FoldingBudget

    /// - Parameters:
    ///   - size: The height and width of the image; nil for the size in the file.
    ///   - isBGR: Whether the image has the channel order BGR.
    init(_ model: ONNXModel, size: Size2D?, isBGR: Bool) throws {
        opset = model.opset
        let initializers = try Dictionary(model.graph.initializers.map { ($0.name, $0) }) { tensor, _ in
            throw ImportError.Problem.malformed(
                reason: "two initializers have the name \(tensor.name.debugDescription)")
        }
        tensors = initializers
        let inputs = model.graph.inputs.filter { initializers[$0.name] == nil }
        guard inputs.count == 1, let image = inputs.first else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model with \(counted(inputs.count, "input")) (\(inputs.map(\.name).joined(separator: ", ")))",
                advice: "Expected one input, an image")
        }
        let (shape, axes) = try Self.image(image, size: size)
        takesBytes = image.elementType == 2
        let bytes = try model.byteCount()
        limit = DecodingBudget(bytes: bytes)
        quantized = ONNXQuantizedTensors(model.graph)
        erfArguments = Set(model.graph.nodes.filter { $0.operation == "Erf" }.flatMap(\.inputs))
        // The weights have at least 16 bits each.
        assembler = NetworkAssembler(
            input: shape, weights: 2 * bytes, preservesNodes: model.metadata[ModelFileKey.network] != nil)
        folding = FoldingBudget(bytes: bytes, graph: model.graph)
        var activation = assembler.image(axes: axes)
        if isBGR && shape.channels == 3 {
            activation = try assembler.add(SelectChannels(channels: [2, 1, 0]), named: "bgr", to: [activation])
        }
        values[image.name] = .activation(activation)
    }

    /// Returns the shape of an image, and its axes in the graph: batch, channels, height, width, or channels last.
    private static func image(
        _ value: ONNXModel.Value, size: Size2D?
    ) throws -> (TensorShape, [SourceActivation.Axis]) {
        let lengths = value.shape ?? []
        guard lengths.count == 4 else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model whose input \(value.name) has \(lengths.count) axes",
                advice: "Expected an image with four axes")
        }
        let isLast = [1, 3].contains(lengths[3]) && ![1, 3].contains(lengths[1])
        let (channels, height, width) =
            isLast ? (lengths[3], lengths[1], lengths[2]) : (lengths[1], lengths[2], lengths[3])
        guard let channels, channels == 1 || channels == 3 else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model for images with \(channels.map { "\($0)" } ?? "an unknown number of") channels",
                advice: "Expected 1 or 3")
        }
        guard let height = size?.height ?? height, let width = size?.width ?? width else {
            throw ImportError.Problem.missing(
                item: "fixed size for its input \(value.name)", advice: "Set the input size")
        }
        guard (1...(1 << 14)).contains(height), (1...(1 << 14)).contains(width) else {
            throw ImportError.Problem.exceedsLimit(
                reason: "its image has the size \(width)x\(height), expected 1x1 to 16384x16384")
        }
        return (
            TensorShape(height: height, width: width, channels: channels),
            isLast ? [.batch, .height, .width, .channels] : [.batch, .channels, .height, .width]
        )
    }

    /// Converts all nodes and returns the first outputs of the graph.
    /// - Parameter count: The number of outputs to return.
    mutating func run(_ graph: ONNXModel.Graph, outputs count: Int) throws -> [SourceActivation] {
        var missing = UnsupportedOperators()
        let normalizations = try DecomposedNormalization.all(in: graph)
        let replaced = normalizations.replaced
        for (index, node) in graph.nodes.enumerated() where !replaced.contains(index) {
            if let normalization = normalizations[index] {
                try missing.collect(reading: [normalization.input], producing: node.outputs) {
                    try runNaming(node) { try $0.normalize(normalization, endingAt: node) }
                }
                continue
            }
            let isQuantizer = ONNXQuantizedTensors.operators.contains(node.operation)
            let isKnown =
                ONNXOperators.all[node.operation] != nil || Self.computable.contains(node.operation) || isQuantizer
            // ONNX Runtime writes 16-bit quantizers in its own domain.
            guard isKnown, ["", "ai.onnx"].contains(node.domain) || isQuantizer && node.domain == "com.microsoft" else {
                let operation = node.domain.isEmpty ? node.operation : "\(node.domain).\(node.operation)"
                missing.add(.init(operation: operation, node: node.name), producing: node.outputs)
                continue
            }
            try missing.collect(reading: node.inputs, producing: node.outputs) {
                try runNaming(node) { try $0.run(node) }
            }
            for name in folding.release(after: index, reading: node.inputs) { values[name] = nil }
        }
        try missing.check()
        return try graph.outputs.prefix(count).map { output in
            guard case .activation(let result) = try value(output.name, for: "the graph") else {
                throw ImportError.Problem.unsuitableModel(
                    found: "a model whose output does not depend on the image", advice: "Expected an image classifier")
            }
            return result
        }
    }

    /// Converts a node; errors about unsupported attributes name its operator.
    private mutating func runNaming(
        _ node: ONNXModel.Node, _ body: (inout ONNXImporter) throws -> Void
    ) throws {
        do {
            try body(&self)
        } catch ImportError.Problem.unsupported(let operations) {
            throw ImportError.Problem.unsupported(
                operations.map { found in
                    ONNXOperators.all[found.operation] != nil || found.operation == node.operation
                        ? found : .init(operation: node.operation, node: node.name, reason: found.reason)
                })
        }
    }

    private func checkNew(_ names: [String], of node: ONNXModel.Node) throws {
        for name in names
        where values[name] != nil || tensors[name] != nil || quantized.tensors[name] != nil {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) computes \(name.debugDescription), which already exists")
        }
    }

    /// Adds a normalization that replaces its decomposition, whose last node is `node`.
    private mutating func normalize(_ normalization: DecomposedNormalization, endingAt node: ONNXModel.Node) throws {
        try checkNew(node.outputs, of: node)
        guard case .activation(let x) = try value(normalization.input, for: node.name) else {
            throw unsupported(node, "of a constant")
        }
        values[node.outputs.first ?? ""] = .activation(
            try assembler.normalizeLayer(
                x, over: normalization.axes, scale: [1], shift: nil, epsilon: normalization.epsilon, named: node.name))
    }

    private mutating func run(_ node: ONNXModel.Node) throws {
        try checkNew(node.outputs, of: node)
        if try convertQuantized(node) { return }
        if node.operation == "Constant", let tensor = node.attributes["value"]?.tensor, let name = node.outputs.first {
            tensors[name] = tensor
        } else if let constant = try computed(node) {
            let name = node.outputs.first ?? ""
            try folding.add(constant.byteCount, as: name, for: node.name)
            values[name] = .constant(constant)
        } else if let operation = ONNXOperators.all[node.operation] {
            for (name, activation) in zip(node.outputs, try operation(node, &self)) {
                values[name] = .activation(activation)
            }
            propagateQuantization(through: node)
        } else {
            throw unsupported(node, "of an activation, expected constants")
        }
    }

    /// Returns the tensor with a name.
    func value(_ name: String, for node: String) throws -> SourceTensor {
        if let value = values[name] { return value }
        if let tensor = quantized.tensors[name] {
            let constant = try tensor.constant()
            try limit.read(constant.count, for: node)
            return .constant(constant)
        }
        guard let tensor = tensors[name] else {
            throw ImportError.Problem.malformed(
                reason: "\(node) reads \(name.debugDescription), which no earlier node computes")
        }
        let constant = try tensor.constant()
        try limit.read(constant.count, for: node)
        return .constant(constant)
    }
}

/// The inputs and attributes of a node.
extension ONNXImporter {
    /// Whether a node has the input at `index`.
    func hasInput(_ index: Int, _ node: ONNXModel.Node) -> Bool {
        node.inputs.indices.contains(index) && !node.inputs[index].isEmpty
    }

    /// Whether Erf reads a node's output.
    func isErfArgument(_ node: ONNXModel.Node) -> Bool { node.outputs.contains { erfArguments.contains($0) } }

    /// Returns a node's input, a constant or an activation.
    func input(_ index: Int, _ node: ONNXModel.Node) throws -> SourceTensor {
        guard hasInput(index, node) else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (\(node.operation)) has no input \(index + 1)")
        }
        return try value(node.inputs[index], for: node.name)
    }

    /// Returns a node's input that must be an activation.
    func activation(_ index: Int, _ node: ONNXModel.Node) throws -> SourceActivation {
        guard case .activation(let activation) = try input(index, node) else {
            throw unsupported(node, "input \(index + 1) is a constant, expected an activation")
        }
        return activation
    }

    /// Returns a node's input that must be a constant; nil if it is omitted.
    func constant(_ index: Int, _ node: ONNXModel.Node) throws -> Constant? {
        guard hasInput(index, node) else { return nil }
        guard case .constant(let constant) = try input(index, node) else {
            throw unsupported(node, "input \(index + 1) depends on the image, expected a constant")
        }
        return constant
    }

    /// Returns a node's input that must be a constant and must not be omitted.
    func requiredConstant(_ index: Int, _ node: ONNXModel.Node) throws -> Constant {
        guard let constant = try constant(index, node) else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (\(node.operation)) has no input \(index + 1)")
        }
        return constant
    }

    /// Returns integers that are an attribute in older opsets and an input in newer ones; nil if omitted.
    func integers(_ attribute: String, orInput index: Int, _ node: ONNXModel.Node) throws -> [Int]? {
        if let found = node.attributes[attribute] { return found.integers }
        guard let constant = try constant(index, node) else { return nil }
        guard let integers = constant.integers else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) (\(node.operation)) has a non-integer input \(index + 1), expected integers")
        }
        return integers
    }

    func unsupported(_ node: ONNXModel.Node, _ reason: String) -> ImportError.Problem {
        .unsupported([.init(operation: node.operation, node: node.name, reason: reason)])
    }
}
