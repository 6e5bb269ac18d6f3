internal import ImprintModel

/// An attribute of an ONNX node.
enum ONNXAttribute {
    case int(Int)
    case float(Float)
    case ints([Int])
    case string(String)

    /// Encodes the message AttributeProto.
    func message(named name: String) -> MessageBuilder {
        var message = MessageBuilder()
        message.add(1, name)
        switch self {
        case .float(let value):
            message.add(2, value)
            message.add(20, 1)
        case .int(let value):
            message.add(3, value)
            message.add(20, 2)
        case .string(let value):
            message.add(4, value)
            message.add(20, 3)
        case .ints(let values):
            message.add(8, packed: values)
            message.add(20, 7)
        }
        return message
    }
}

/// The nodes and initializers of an ONNX graph, in the order in which they are added.
///
/// Source: onnx.proto3, the messages GraphProto, NodeProto, TensorProto and ValueInfoProto.
struct ONNXGraph {
    /// The element types of TensorProto.
    enum ElementType: Int {
        case float = 1
        case int64 = 7
        case float16 = 10
    }

    /// The length of an axis: a number, or a name for a dynamic axis.
    enum Length {
        case number(Int)
        case name(String)
    }

    private var nodes: [MessageBuilder] = []
    private var constants: [MessageBuilder] = []
    private var names: ExportedNames

    init(names: ExportedNames) { self.names = names }

    /// Returns an unused name.
    mutating func unique(_ wanted: String) -> String { names.unique(wanted) }

    /// Adds a node with one output; "" is an omitted input.
    ///
    /// - Parameter name: The node's name; the name of its output if nil.
    mutating func add(
        _ type: String, _ inputs: [String], to output: String,
        _ attributes: KeyValuePairs<String, ONNXAttribute> = [:], named name: String? = nil
    ) {
        var node = MessageBuilder()
        for input in inputs { node.add(1, input) }
        node.add(2, output)
        node.add(3, name ?? output)
        node.add(4, type)
        for (name, attribute) in attributes { node.add(5, attribute.message(named: name)) }
        nodes.append(node)
    }

    /// Adds an initializer, and a `Cast` to float32 if it is stored as float16.
    ///
    /// - Returns: The name of the float32 tensor.
    mutating func add(_ tensor: ExportedTensor) -> String {
        let name = names.unique(tensor.name)
        let type: ElementType = tensor.precision == .float16 ? .float16 : .float
        var message = MessageBuilder()
        message.add(1, packed: tensor.shape)
        message.add(2, type.rawValue)
        message.add(8, name)
        message.add(9, byteCount: tensor.byteCount, deferred: tensor.forEachPart)
        constants.append(message)
        guard type == .float16 else { return name }
        let whole = names.unique("\(name).float32")
        add("Cast", [name], to: whole, ["to": .int(ElementType.float.rawValue)])
        return whole
    }

    /// Adds a small initializer.
    ///
    /// - Parameter shape: The shape; nil for a vector, empty for a scalar.
    mutating func add(_ name: String, _ values: [Float], shape: [Int]? = nil) -> String {
        add(ExportedTensor(name, shape: shape ?? [values.count]) { values })
    }

    /// Adds a vector of integers.
    mutating func add(_ name: String, _ values: [Int]) -> String {
        let name = names.unique(name)
        var message = MessageBuilder()
        message.add(1, packed: [values.count])
        message.add(2, ElementType.int64.rawValue)
        message.add(8, name)
        message.add(9, bytes: values.flatMap { withUnsafeBytes(of: Int64($0).littleEndian, Array.init) })
        constants.append(message)
        return name
    }

    /// Encodes the message GraphProto.
    func message(
        named name: String, input: (name: String, shape: [Length], text: String),
        output: (name: String, shape: [Length])
    ) -> MessageBuilder {
        var message = MessageBuilder()
        for node in nodes { message.add(1, node) }
        message.add(2, name)
        for constant in constants { message.add(5, constant) }
        message.add(11, Self.value(named: input.name, shape: input.shape, text: input.text))
        message.add(12, Self.value(named: output.name, shape: output.shape, text: nil))
        return message
    }

    private static func value(named name: String, shape: [Length], text: String?) -> MessageBuilder {
        var dimensions = MessageBuilder()
        for length in shape {
            var dimension = MessageBuilder()
            switch length {
            case .number(let number): dimension.add(1, number)
            case .name(let name): dimension.add(2, name)
            }
            dimensions.add(1, dimension)
        }
        var tensor = MessageBuilder()
        tensor.add(1, ElementType.float.rawValue)
        tensor.add(2, dimensions)
        var type = MessageBuilder()
        type.add(1, tensor)
        var value = MessageBuilder()
        value.add(1, name)
        value.add(2, type)
        if let text { value.add(3, text) }
        return value
    }
}
