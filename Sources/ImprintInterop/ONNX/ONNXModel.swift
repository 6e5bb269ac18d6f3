internal import ImprintModel

/// An ONNX file as far as an image classifier needs it (onnx.proto3, https://github.com/onnx/onnx).
///
/// Weights stay in the file until they are asked for.
struct ONNXModel {
    /// More than any model has; a file may name as many of each in two bytes.
    static let greatestCount = 1 << 16
    /// The versions of the standard operators whose meaning is known here.
    static let knownOpsets = 6...28

    /// The version of the standard operators.
    private(set) var opset = 0
    private(set) var graph = Graph()
    /// What the file says of itself.
    private(set) var metadata: [String: String] = [:]
    private let size: Int

    /// Reads a file.
    /// - Throws: `WireProblem` if it is no message of this kind.
    init(_ file: MappedFile) throws {
        var hasGraph = false
        size = file.count
        try WireMessage(file).forEachField { field in
            switch field.number {
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
            case 14: metadata.merge(try [field.message().stringPair()]) { $1 }
            default: break
            }
        }
        guard hasGraph, !graph.nodes.isEmpty else {
            throw ImportError.Problem.malformed(reason: "it has no graph of nodes")
        }
        guard Self.knownOpsets.contains(opset) else {
            throw ImportError.Problem.otherKind(
                found: "a model of opset \(opset)",
                advice: "expected one of \(Self.knownOpsets.lowerBound) to \(Self.knownOpsets.upperBound): "
                    + "export it with opset_version=17, or convert it with onnx.version_converter")
        }
    }

    /// How many bytes the file has, together with those that hold weights for it.
    func byteCount() throws -> Int {
        var sizes: [String: Int] = [:]
        let constants = graph.nodes.lazy.compactMap { $0.attributes["value"]?.tensor }
        for tensor in graph.initializers + constants {
            guard let location = tensor.location, sizes[location] == nil else { continue }
            sizes[location] = try tensor.externalFile().0.count
        }
        return sizes.values.reduce(size, +)
    }

    /// A better reason for a problem that an import met, from what the file declares; `nil` if there is none.
    func explanation(of problem: ImportError.Problem) -> ImportError.Problem? {
        switch problem {
        case .unsupported, .missing:
            // A detector gives scores for each of many boxes.
            guard let shape = graph.outputs.first?.shape, shape.dropFirst().count(where: { $0 != 1 }) > 1 else {
                return nil
            }
            return .notScores(shape)
        case .malformed(let reason):
            let names = Set(graph.initializers.map(\.name))
            guard let image = graph.inputs.first(where: { !names.contains($0.name) }), let batch = image.shape?.first,
                let batch, batch > 1
            else { return nil }
            return .otherKind(
                found: "a model for batches of \(batch) images (\(reason))",
                advice: "export it for one image, or with the batch axis open")
        default: return nil
        }
    }

    /// The operations of a model, and what they begin with.
    struct Graph {
        fileprivate(set) var name = ""
        /// In an order in which each reads what is there by then.
        fileprivate(set) var nodes: [Node] = []
        fileprivate(set) var initializers: [Tensor] = []
        fileprivate(set) var inputs: [Value] = []
        fileprivate(set) var outputs: [Value] = []

        fileprivate mutating func read(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: try nodes.append(Node(field.message()), upTo: ONNXModel.greatestCount, "nodes")
                case 2: name = try field.string()
                case 5: try initializers.append(Tensor(field.message()), upTo: ONNXModel.greatestCount, "initializers")
                case 11: try inputs.append(Value(field.message()), upTo: ONNXModel.greatestCount, "inputs")
                case 12: try outputs.append(Value(field.message()), upTo: ONNXModel.greatestCount, "outputs")
                default: break
                }
            }
        }
    }

    /// One operation.
    struct Node {
        private(set) var name = ""
        private(set) var operation = ""
        private(set) var domain = ""
        /// The names of what it reads; an empty one is left out.
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
                    if attributes.count > 256 { throw WireProblem.tooMany(what: "attributes of a node", limit: 256) }
                case 7: domain = try field.string()
                default: break
                }
            }
            // What errors call it.
            if name.isEmpty { name = outputs.first ?? operation }
        }
    }

    /// A property of an operation.
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
                // Strings are bytes here; one that is no text is no property that an image classifier has.
                case 4: text = try? field.string()
                case 5: tensor = try Tensor(field.message())
                case 7: try field.append(to: &floats)
                case 8: try field.append(to: &integers, limit: ONNXModel.greatestCount, of: "numbers in an attribute")
                default: break
                }
            }
            // Writers may leave out what is 0.
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
        /// The lengths of the axes; nil if one is not known, and altogether where the file does not tell.
        private(set) var shape: [Int?]?
        /// The number of the elements' type; 0 where the file does not tell.
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
    /// The key and value of an entry of a map of strings.
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
    /// Appends an element of a file that nobody vouches for.
    mutating func append(_ element: Element, upTo limit: Int, _ what: String) throws {
        guard count < limit else { throw WireProblem.tooMany(what: what, limit: limit) }
        append(element)
    }
}
