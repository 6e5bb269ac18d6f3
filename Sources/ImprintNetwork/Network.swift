/// A network's description: layers as nodes of a directed graph, without numbers.
///
/// Nodes stand in order of execution: each reads from the network's input or from nodes before it; the last one's
/// result is the network's. The description is what a model file stores, as JSON.
public struct Network: Hashable, Sendable {
    /// The name by which nodes read the network's input.
    public static let inputName = "input"

    /// One layer of a network, with its name and the names of what it reads.
    public struct Node: Sendable {
        /// A name of its own; the parameters are named after it, as in "conv1.weight".
        public let name: String
        /// The layer.
        public let layer: any Layer
        /// The names of the nodes that it reads, `Network.inputName` for the network's input.
        public let inputs: [String]

        /// Makes a node.
        public init(name: String, layer: any Layer, inputs: [String]) {
            self.name = name
            self.layer = layer
            self.inputs = inputs
        }
    }

    /// The name of the architecture, such as "logonet".
    public let name: String
    /// The shape of one input image.
    public let input: TensorShape
    /// The nodes, in order of execution.
    public let nodes: [Node]
    /// The shape of each node's result, in the same order.
    public let shapes: [TensorShape]
    /// For each node, the places of its inputs in `nodes`; −1 is the network's input.
    let sources: [[Int]]

    /// Makes a network of these nodes.
    /// - Throws: `NetworkError` if names, connections or shapes do not fit together.
    public init(name: String, input: TensorShape, nodes: [Node]) throws(NetworkError) {
        try check("network", "input", input, min(input.height, input.width, input.channels) >= 1, "positive sizes")
        try checkCount("network", "input", [input.height, input.width, input.channels])
        guard !nodes.isEmpty else { throw .empty(network: name) }
        var places = [Network.inputName: -1]
        var shapes: [TensorShape] = []
        var sources: [[Int]] = []
        var used = Set<Int>()
        for (place, node) in nodes.enumerated() {
            var from: [Int] = []
            for input in node.inputs {
                guard let source = places[input] else { throw .unknownInput(node: node.name, input: input) }
                from.append(source)
            }
            guard places.updateValue(place, forKey: node.name) == nil else { throw .duplicateName(node: node.name) }
            used.formUnion(from)
            sources.append(from)
            do {
                let inputs = from.map { $0 < 0 ? input : shapes[$0] }
                let shape = try node.layer.outputShape(for: inputs)
                let kind = type(of: node.layer).kind
                try checkCount(kind, "result", [shape.height, shape.width, shape.channels])
                for parameter in node.layer.parameters(for: inputs) {
                    try checkCount(kind, parameter.name, parameter.shape)
                }
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

    /// The shape of the network's result.
    public var output: TensorShape { shapes[shapes.count - 1] }

    /// The number of labels that the network tells apart.
    /// - Throws: `NetworkError.notAClassifier` if the result is not a vector.
    public func labelCount() throws(NetworkError) -> Int {
        guard output.pixels == 1 else { throw .notAClassifier(network: name, output: output) }
        return output.channels
    }

    /// The shapes that the node at `place` reads.
    func inputShapes(of place: Int) -> [TensorShape] {
        sources[place].map { $0 < 0 ? input : shapes[$0] }
    }
}

/// Checks that a tensor of one image, or a parameter, has no more numbers than the kernels in C count: 2³¹ − 1.
///
/// A description may come from a file that nobody vouches for, so the product itself must not overflow.
private func checkCount(_ layer: String, _ property: String, _ sizes: [Int]) throws(NetworkError) {
    let limit = Int(Int32.max)
    var count = 1
    for size in sizes {
        let (product, overflow) = count.multipliedReportingOverflow(by: size)
        try check(layer, property, sizes, !overflow && product <= limit, "at most \(limit) numbers in all")
        count = product
    }
}

extension Network.Node: Hashable {
    /// Whether names, layers and connections are the same.
    public static func == (left: Self, right: Self) -> Bool {
        left.name == right.name && left.inputs == right.inputs && AnyHashable(left.layer) == AnyHashable(right.layer)
    }

    /// Feeds name, layer and connections into the hasher.
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

    /// Reads `{"name", "kind", "inputs", "properties"}`.
    /// - Throws: `NetworkError.unknownLayerKind`, or what the decoder throws for missing or mistyped properties.
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

    /// Writes `{"name", "kind", "inputs", "properties"}`.
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

    /// Reads `{"name", "input", "nodes"}` and checks it as `init(name:input:nodes:)` does.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        try self.init(
            name: values.decode(String.self, forKey: .name),
            input: values.decode(TensorShape.self, forKey: .input),
            nodes: values.decode([Node].self, forKey: .nodes))
    }

    /// Writes `{"name", "input", "nodes"}`.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(name, forKey: .name)
        try values.encode(input, forKey: .input)
        try values.encode(nodes, forKey: .nodes)
    }
}
