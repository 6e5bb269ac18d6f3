internal import ImprintModel

/// The parts of an ONNX file that an image classifier needs (onnx.proto3, https://github.com/onnx/onnx).
///
/// Weights are decoded on demand.
struct ONNXModel {
    /// An upper bound for the nodes, initializers, inputs and outputs of a model, so that a small file cannot exhaust memory.
    static let maximumCount = 1 << 16
    /// The supported opsets.
    static let knownOpsets = 6...28

    /// The opset of the standard operators.
    private(set) var opset = 0
    private(set) var graph = Graph()
    /// The file's metadata.
    private(set) var metadata: [String: String] = [:]
    /// The version of the model; 0 if it is unknown.
    private(set) var version = 0
    private let size: Int

    /// Parses a file.
    ///
    /// - Throws: `WireError` if the file is not a valid ModelProto message.
    init(_ file: MappedFile) throws {
        var hasGraph = false
        size = file.count
        try WireMessage(file).forEachField { field in
            switch field.number {
            case 5: version = (try? field.integer()) ?? 0
            case 7:
                try graph.read(field.message())
                hasGraph = true
            case 8:
                var (domain, version) = ("", 0)
                try field.message().forEachField { field in
                    switch field.number {
                    case 1: domain = try field.string()
                    case 2: version = try field.integer()
                    default: break
                    }
                }
                if domain.isEmpty || domain == "ai.onnx" { opset = version }
            case 14:
                metadata.merge(try [field.message().stringPair()]) { $1 }
                if metadata.count > 4096 { throw WireError.tooMany(item: "entries in its metadata", limit: 4096) }
            default: break
            }
        }
        guard hasGraph, !graph.nodes.isEmpty else {
            throw ImportError.Problem.malformed(reason: "it has no graph of nodes")
        }
        guard Self.knownOpsets.contains(opset) else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model of opset \(opset)",
                advice: "Expected an opset from \(Self.knownOpsets.lowerBound) to \(Self.knownOpsets.upperBound). "
                    + "Export the model with opset_version=17, or convert it with onnx.version_converter")
        }
    }

    /// The version, licence and intended use that the file states.
    var details: ImportedDetails {
        ImportedDetails(
            version: version == 0 ? nil : "\(version)", license: metadata[ExportedDetails.onnxLicense],
            metadata: metadata)
    }

    /// Returns the total size of the file and its external data files.
    func byteCount() throws -> Int {
        var sizes: [String: Int] = [:]
        let constants = graph.nodes.lazy.compactMap { $0.attributes["value"]?.tensor }
        for tensor in graph.initializers + constants {
            guard let location = tensor.location, sizes[location] == nil else { continue }
            sizes[location] = try tensor.externalFile().0.count
        }
        return sizes.values.reduce(size, +)
    }

    /// Returns a more helpful error for a problem, based on the declared inputs and outputs; `nil` if they do not explain the
    /// problem.
    func explanation(of problem: ImportError.Problem) -> ImportError.Problem? {
        switch problem {
        case .unsupported, .missing:
            // A detector outputs scores for many boxes.
            guard let shape = graph.outputs.first?.shape, shape.dropFirst().count(where: { $0 != 1 }) > 1 else {
                return nil
            }
            return .notScores(shape)
        case .malformed(let reason):
            let names = Set(graph.initializers.map(\.name))
            guard let image = graph.inputs.first(where: { !names.contains($0.name) }), let batch = image.shape?.first,
                let batch, batch > 1
            else { return nil }
            return .unsuitableModel(
                found: "a model for batches of \(batch) images (\(reason))",
                advice: "Export it with the batch size 1 or with a dynamic batch axis")
        default: return nil
        }
    }

    /// A graph of nodes with its initializers, inputs and outputs.
    struct Graph {
        /// The nodes in topological order.
        fileprivate(set) var nodes: [Node] = []
        fileprivate(set) var initializers: [Tensor] = []
        fileprivate(set) var inputs: [Value] = []
        fileprivate(set) var outputs: [Value] = []

        fileprivate mutating func read(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: try nodes.append(Node(field.message()), upTo: ONNXModel.maximumCount, "nodes")
                case 5: try initializers.append(Tensor(field.message()), upTo: ONNXModel.maximumCount, "initializers")
                case 11: try inputs.append(Value(field.message()), upTo: ONNXModel.maximumCount, "inputs")
                case 12: try outputs.append(Value(field.message()), upTo: ONNXModel.maximumCount, "outputs")
                default: break
                }
            }
        }
    }

    /// A node of the graph.
    struct Node {
        private(set) var name = ""
        private(set) var operation = ""
        private(set) var domain = ""
        /// The names of the inputs; an empty name is an omitted input.
        private(set) var inputs: [String] = []
        private(set) var outputs: [String] = []
        private(set) var attributes: [String: Attribute] = [:]

        fileprivate init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: try inputs.append(field.string(), upTo: 4096, "inputs of a node")
                case 2: try outputs.append(field.string(), upTo: 4096, "outputs of a node")
                case 3: name = try field.string()
                case 4: operation = try field.string()
                case 5:
                    let attribute = try Attribute(field.message())
                    attributes[attribute.name] = attribute
                    if attributes.count > 256 { throw WireError.tooMany(item: "attributes of a node", limit: 256) }
                case 7: domain = try field.string()
                default: break
                }
            }
            // Error messages need a name.
            if name.isEmpty { name = outputs.first ?? operation }
        }
    }

    /// An attribute of a node.
    struct Attribute {
        fileprivate private(set) var name = ""
        private(set) var float: Float?
        private(set) var integer: Int?
        private(set) var text: String?
        private(set) var tensor: Tensor?
        private(set) var floats: [Float] = []
        private(set) var integers: [Int] = []

        fileprivate init(_ message: WireMessage) throws {
            var type = 0
            try message.forEachField { field in
                switch field.number {
                case 1: name = try field.string()
                case 20: type = try field.integer()
                case 2: float = try field.float()
                case 3: integer = try field.integer()
                // The field contains bytes. No supported attribute has bytes that are not text.
                case 4: text = try? field.string()
                case 5: tensor = try Tensor(field.message())
                case 7: try field.append(to: &floats)
                case 8: try field.append(to: &integers, limit: ONNXModel.maximumCount, of: "values in an attribute")
                default: break
                }
            }
            // Writers may omit zeros.
            switch type {
            case 1: float = float ?? 0
            case 2: integer = integer ?? 0
            default: break
            }
        }
    }

    /// A graph's input or output.
    struct Value {
        private(set) var name = ""
        /// The lengths of the axes; nil for a dynamic axis, or for the whole shape if the file does not specify it.
        private(set) var shape: [Int?]?
        /// The element type; 0 if the file does not specify it.
        private(set) var elementType = 0

        fileprivate init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: name = try field.string()
                case 2: try readType(field.message())
                default: break
                }
            }
        }

        private mutating func readType(_ message: WireMessage) throws {
            try message.forEachField { field in
                guard field.number == 1 else { return }
                try field.message().forEachField { field in
                    if field.number == 1 { elementType = try field.integer() }
                    guard field.number == 2 else { return }
                    var lengths: [Int?] = []
                    try field.message().forEachField { field in
                        guard field.number == 1 else { return }
                        var length: Int?
                        try field.message().forEachField { if $0.number == 1 { length = try $0.integer() } }
                        try lengths.append(length.flatMap { $0 > 0 ? $0 : nil }, upTo: 16, "axes")
                    }
                    shape = lengths
                }
            }
        }
    }
}

extension WireMessage {
    /// Returns the key and value of an entry of a string map.
    func stringPair() throws -> (String, String) {
        var (key, value) = ("", "")
        try forEachField { field in
            switch field.number {
            case 1: key = try field.string()
            case 2: value = try field.string()
            default: break
            }
        }
        return (key, value)
    }
}

extension Array {
    /// Appends an element of an untrusted file, up to a limit.
    mutating func append(_ element: Element, upTo limit: Int, _ item: String) throws {
        guard count < limit else { throw WireError.tooMany(item: item, limit: limit) }
        append(element)
    }
}
