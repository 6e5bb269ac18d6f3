/// The description of a network: a directed acyclic graph of layers, without parameters.
///
/// Nodes are in order of execution: each node reads the network's input or the outputs of earlier nodes. The output of the last
/// node is the output of the network. A model file stores this description as JSON.
public struct Network: Hashable, Sendable {
    /// The name of the network's input in `Node.inputs`.
    public static let inputName = "input"

    /// A node of a network: a layer, its name and its inputs.
    public struct Node: Sendable {
        /// A unique name, which is the prefix of the names of its parameters, as in "conv1.weight".
        public let name: String
        /// The layer.
        public let layer: any Layer
        /// The names of the nodes whose outputs it reads; `Network.inputName` stands for the network's input.
        public let inputs: [String]

        /// Creates a node.
        public init(name: String, layer: any Layer, inputs: [String]) {
            self.name = name
            self.layer = layer
            self.inputs = inputs
        }
    }

    /// The name of the architecture, such as "logonet".
    public let name: String
    /// The shape of an input image.
    public let input: TensorShape
    /// The nodes, in order of execution.
    public let nodes: [Node]
    /// The output shapes of the nodes, in the same order.
    public let shapes: [TensorShape]
    /// For each node, the indices of its inputs in `nodes`; −1 is the network's input.
    let sources: [[Int]]

    /// The largest number of nodes, because the time to plan the memory grows with the square of it.
    package static let mostNodes = 1 << 14

    /// Creates a network and checks it.
    /// - Throws: `NetworkError` in these cases:
    ///   - There are no nodes, or more than 16,384.
    ///   - Names, connections or shapes are not consistent.
    ///   - A node has no inputs.
    ///   - A size of the input, an output or a parameter is below 1, or one of them has more than 2³¹ − 1 values.
    ///   - The names of a layer's parameters are not unique, are empty or contain full stops.
    public init(name: String, input: TensorShape, nodes: [Node]) throws(NetworkError) {
        try check("network", "input", input, min(input.height, input.width, input.channels) >= 1, "positive sizes")
        try checkCount("network", "input", [input.height, input.width, input.channels])
        guard !nodes.isEmpty else { throw .empty(network: name) }
        try check(
            "network", "number of nodes", nodes.count, nodes.count <= Self.mostNodes, "at most \(Self.mostNodes)")
        var indices = [Network.inputName: -1]
        var shapes: [TensorShape] = []
        var sources: [[Int]] = []
        var used = Set<Int>()
        for (index, node) in nodes.enumerated() {
            var nodeSources: [Int] = []
            for input in node.inputs {
                guard let source = indices[input] else { throw .unknownInput(node: node.name, input: input) }
                nodeSources.append(source)
            }
            guard indices.updateValue(index, forKey: node.name) == nil else { throw .duplicateName(node: node.name) }
            used.formUnion(nodeSources)
            sources.append(nodeSources)
            do throws(NetworkError) {
                let inputs = nodeSources.map { $0 < 0 ? input : shapes[$0] }
                let shape = try node.layer.outputShape(for: inputs)
                let kind = type(of: node.layer).kind
                guard !inputs.isEmpty else {
                    throw .inputCount(layer: kind, expected: "at least one input", found: 0)
                }
                try checkCount(kind, "output", [shape.height, shape.width, shape.channels])
                try checkParameters(kind, node.layer.parameters(for: inputs))
                shapes.append(shape)
            } catch {
                throw .inNode(node.name, error)
            }
        }
        if let unused = nodes.indices.dropLast().first(where: { !used.contains($0) }) {
            throw .unusedNode(node: nodes[unused].name)
        }
        self.name = name
        self.input = input
        self.nodes = nodes
        self.shapes = shapes
        self.sources = sources
    }

    /// The shape of the network's output.
    public var output: TensorShape { shapes[shapes.count - 1] }

    /// Returns the number of labels of a classifier.
    /// - Throws: `NetworkError.notAClassifier` if the output is not a vector.
    public func labelCount() throws(NetworkError) -> Int {
        guard output.pixels == 1 else { throw .notAClassifier(network: name, output: output) }
        return output.channels
    }

    /// Returns the input shapes of a node.
    package func inputShapes(of index: Int) -> [TensorShape] {
        sources[index].map { $0 < 0 ? input : shapes[$0] }
    }
}

/// Checks the names and the sizes of a layer's parameters.
///
/// The name of a parameter in the network is "node.parameter", and model files store scales under longer names. So names without full stops
/// are unique.
private func checkParameters(_ layer: String, _ parameters: [ParameterDescription]) throws(NetworkError) {
    var names = Set<String>()
    for parameter in parameters {
        let name = parameter.name
        try check(
            layer, "the name of a parameter", name.debugDescription, !name.isEmpty && !name.contains("."),
            "a name without full stops")
        try check(
            layer, "the name of a parameter", name.debugDescription, names.insert(name).inserted,
            "another name for each parameter")
        try checkCount(layer, name, parameter.shape)
    }
}

/// Checks that an activation of one image, or a parameter, has at least one and at most 2³¹ − 1 values, the limit of the C kernels.
///
/// The sizes may come from an untrusted file, so the check handles overflow.
private func checkCount(_ layer: String, _ property: String, _ sizes: [Int]) throws(NetworkError) {
    let limit = Int(Int32.max)
    var count = 1
    for size in sizes {
        let (product, overflow) = count.multipliedReportingOverflow(by: size)
        try check(
            layer, property, sizes, size >= 1 && !overflow && product <= limit,
            "positive sizes and at most \(limit) values in total")
        count = product
    }
}

extension Network.Node: Hashable {
    /// Returns whether names, layers and inputs are equal.
    public static func == (left: Self, right: Self) -> Bool {
        left.name == right.name && left.inputs == right.inputs && AnyHashable(left.layer) == AnyHashable(right.layer)
    }

    /// Hashes the name, the layer and the inputs.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(inputs)
        hasher.combine(AnyHashable(layer))
    }
}

extension Network.Node: Codable {
    private enum Key: String, CodingKey {
        case name, kind, inputs, properties
    }

    /// Decodes `{"name", "kind", "inputs", "properties"}`.
    /// - Throws: `NetworkError.unknownLayerKind`, or a `DecodingError` for missing or mistyped properties.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        let kind = try values.decode(String.self, forKey: .kind)
        guard let type = LayerRegistry.type(of: kind) else {
            throw NetworkError.unknownLayerKind(found: kind, known: LayerRegistry.all.map { $0.kind })
        }
        name = try values.decode(String.self, forKey: .name)
        inputs = try values.decode([String].self, forKey: .inputs)
        layer = try values.decode(type, forKey: .properties)
    }

    /// Encodes `{"name", "kind", "inputs", "properties"}`.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(name, forKey: .name)
        try values.encode(type(of: layer).kind, forKey: .kind)
        try values.encode(inputs, forKey: .inputs)
        try values.encode(layer, forKey: .properties)
    }
}

extension Network: Codable {
    private enum Key: String, CodingKey {
        case name, input, nodes
    }

    /// Decodes `{"name", "input", "nodes"}` and checks it as `init(name:input:nodes:)` does.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        try self.init(
            name: values.decode(String.self, forKey: .name),
            input: values.decode(TensorShape.self, forKey: .input),
            nodes: values.decode([Node].self, forKey: .nodes))
    }

    /// Encodes `{"name", "input", "nodes"}`.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(name, forKey: .name)
        try values.encode(input, forKey: .input)
        try values.encode(nodes, forKey: .nodes)
    }
}
