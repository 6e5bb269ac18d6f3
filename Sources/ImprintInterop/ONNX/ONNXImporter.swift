internal import ImprintModel
internal import ImprintNetwork

/// Makes a network of an ONNX graph by running it: known numbers are computed, what depends on the image becomes layers.
struct ONNXImporter {
    let opset: Int
    var assembler: NetworkAssembler
    /// What each name stands for by now.
    private var values: [String: SourceTensor] = [:]
    /// Weights, which are read when a node asks for them: initializers, and tensors in Constant nodes.
    private var tensors: [String: ONNXModel.Tensor]
    private let limit: ReadingLimit
    /// The names that Erf reads: x / √2 of a GELU, which is recognized by x.
    private let erfArguments: Set<String>
    /// Whether the image is of whole numbers, which can be nothing else than samples 0…255.
    let takesBytes: Bool
    /// Accounts for the results of operators over known numbers.
    private var folding: FoldingBudget

    /// - Parameters:
    ///   - size: Height and width of the image, instead of those in the file.
    ///   - isBlueFirst: Whether the image has blue first.
    init(_ model: ONNXModel, size: Size2D?, isBlueFirst: Bool) throws {
        opset = model.opset
        let initializers = try Dictionary(model.graph.initializers.map { ($0.name, $0) }) { tensor, _ in
            throw ImportError.Problem.malformed(
                reason: "two initializers have the name \(tensor.name.debugDescription)")
        }
        tensors = initializers
        let inputs = model.graph.inputs.filter { initializers[$0.name] == nil }
        guard inputs.count == 1, let image = inputs.first else {
            throw ImportError.Problem.otherKind(
                found: "a model of \(inputs.count) inputs (\(inputs.map(\.name).joined(separator: ", ")))",
                advice: "expected one, an image")
        }
        let (shape, axes) = try Self.image(image, size: size)
        takesBytes = image.elementType == 2
        let bytes = try model.byteCount()
        limit = ReadingLimit(bytes: bytes)
        erfArguments = Set(model.graph.nodes.filter { $0.operation == "Erf" }.flatMap(\.inputs))
        // Of 16 bits a number at least.
        assembler = NetworkAssembler(
            input: shape, weights: 2 * bytes, isLiteral: model.metadata[ExportedModel.networkKey] != nil)
        folding = FoldingBudget(bytes: bytes, graph: model.graph)
        var activation = assembler.image(axes: axes)
        if isBlueFirst && shape.channels == 3 {
            activation = try assembler.add(SelectChannels(channels: [2, 1, 0]), named: "bgr", to: [activation])
        }
        values[image.name] = .activation(activation)
    }

    /// The shape of an image, and its axes in the graph: batch, channels, height, width, or channels last.
    private static func image(
        _ value: ONNXModel.Value, size: Size2D?
    ) throws -> (TensorShape, [SourceActivation.Axis]) {
        let lengths = value.shape ?? []
        guard lengths.count == 4 else {
            throw ImportError.Problem.otherKind(
                found: "a model whose input \(value.name) has \(lengths.count) axes",
                advice: "expected an image, of four")
        }
        let isLast = [1, 3].contains(lengths[3]) && ![1, 3].contains(lengths[1])
        let (channels, height, width) =
            isLast ? (lengths[3], lengths[1], lengths[2]) : (lengths[1], lengths[2], lengths[3])
        guard let channels, channels == 1 || channels == 3 else {
            throw ImportError.Problem.otherKind(
                found: "a model of images with \(channels.map { "\($0)" } ?? "an unknown number of") channels",
                advice: "expected 1 or 3")
        }
        guard let height = size?.height ?? height, let width = size?.width ?? width else {
            throw ImportError.Problem.missing(
                what: "size of its input \(value.name)", advice: "say which with --input-size")
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

    /// Runs all nodes; gives what the graph gives first.
    mutating func run(_ graph: ONNXModel.Graph) throws -> SourceActivation {
        var missing = MissingOperations()
        let normalizations = try WrittenNormalization.all(in: graph)
        let replaced = normalizations.replaced
        for (index, node) in graph.nodes.enumerated() where !replaced.contains(index) {
            if let normalization = normalizations[index] {
                try missing.collect(reading: [normalization.input], making: node.outputs) {
                    try runNaming(node) { try $0.normalize(normalization, endingAt: node) }
                }
                continue
            }
            let isKnown = ONNXOperators.all[node.operation] != nil || Self.computable.contains(node.operation)
            guard isKnown, ["", "ai.onnx"].contains(node.domain) else {
                let operation = node.domain.isEmpty ? node.operation : "\(node.domain).\(node.operation)"
                missing.add(.init(operation: operation, node: node.name), making: node.outputs)
                continue
            }
            try missing.collect(reading: node.inputs, making: node.outputs) { try runNaming(node) { try $0.run(node) } }
            for name in folding.release(after: index, reading: node.inputs) { values[name] = nil }
        }
        try missing.check()
        guard let output = graph.outputs.first, case .activation(let result) = try value(output.name, for: "the graph")
        else {
            throw ImportError.Problem.otherKind(
                found: "a model whose result does not depend on the image", advice: "expected an image classifier")
        }
        return result
    }

    /// Runs a node; errors about forms that are not supported name its operator.
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
        for name in names where values[name] != nil || tensors[name] != nil {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) makes \(name.debugDescription), which is there before")
        }
    }

    /// Adds a normalization in the place of the nodes that write it out, of which `node` is the last.
    private mutating func normalize(_ normalization: WrittenNormalization, endingAt node: ONNXModel.Node) throws {
        try checkNew(node.outputs, of: node)
        guard case .activation(let x) = try value(normalization.input, for: node.name) else {
            throw unsupported(node, "of known numbers only")
        }
        values[node.outputs.first ?? ""] = .activation(
            try assembler.normalizeLayer(
                x, over: normalization.axes, scale: [1], shift: nil, epsilon: normalization.epsilon, named: node.name))
    }

    private mutating func run(_ node: ONNXModel.Node) throws {
        try checkNew(node.outputs, of: node)
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
        } else {
            throw unsupported(node, "of what depends on the image, expected known numbers")
        }
    }

    /// What a name stands for.
    func value(_ name: String, for node: String) throws -> SourceTensor {
        if let value = values[name] { return value }
        guard let tensor = tensors[name] else {
            throw ImportError.Problem.malformed(
                reason: "\(node) reads \(name.debugDescription), which nothing before it makes")
        }
        let constant = try tensor.constant()
        try limit.read(constant.count, for: node)
        return .constant(constant)
    }
}

/// A node with what it reads, as operators see it.
extension ONNXImporter {
    /// Whether a node's input of this number is there.
    func has(_ place: Int, _ node: ONNXModel.Node) -> Bool {
        node.inputs.indices.contains(place) && !node.inputs[place].isEmpty
    }

    /// Whether Erf reads a node's result.
    func isErfArgument(_ node: ONNXModel.Node) -> Bool { node.outputs.contains { erfArguments.contains($0) } }

    /// A node's input, known or not.
    func input(_ place: Int, _ node: ONNXModel.Node) throws -> SourceTensor {
        guard has(place, node) else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (\(node.operation)) has no input \(place + 1)")
        }
        return try value(node.inputs[place], for: node.name)
    }

    /// A node's input that the image decides on.
    func activation(_ place: Int, _ node: ONNXModel.Node) throws -> SourceActivation {
        guard case .activation(let activation) = try input(place, node) else {
            throw unsupported(node, "input \(place + 1) is known, expected what depends on the image")
        }
        return activation
    }

    /// A node's input that is known; nil if it is left out.
    func constant(_ place: Int, _ node: ONNXModel.Node) throws -> Constant? {
        guard has(place, node) else { return nil }
        guard case .constant(let constant) = try input(place, node) else {
            throw unsupported(node, "input \(place + 1) depends on the image, expected known numbers")
        }
        return constant
    }

    /// A node's input that is known and must be there.
    func known(_ place: Int, _ node: ONNXModel.Node) throws -> Constant {
        guard let constant = try constant(place, node) else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (\(node.operation)) has no input \(place + 1)")
        }
        return constant
    }

    /// Whole numbers that are an attribute in older versions of an operator and an input in newer ones; nil if left out.
    func integers(_ attribute: String, orInput place: Int, _ node: ONNXModel.Node) throws -> [Int]? {
        if let found = node.attributes[attribute] { return found.integers }
        guard let constant = try constant(place, node) else { return nil }
        guard let integers = constant.integers else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) (\(node.operation)) has an input \(place + 1) that is not whole numbers")
        }
        return integers
    }

    func unsupported(_ node: ONNXModel.Node, _ reason: String) -> ImportError.Problem {
        .unsupported([.init(operation: node.operation, node: node.name, reason: reason)])
    }
}
