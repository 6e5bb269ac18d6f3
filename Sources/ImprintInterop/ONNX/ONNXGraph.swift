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
        case uint8 = 2
        case int8 = 3
        case int32 = 6
        case int64 = 7
        case float16 = 10
    }

    /// The length of an axis: a number, or a name for a dynamic axis.
    enum Length {
        case number(Int)
        case name(String)
    }

    /// An output of the graph.
    struct Output {
        let name: String
        var type = ElementType.float
        let shape: [Length]
    }

    private var nodes: [MessageBuilder] = []
    private var constants: [MessageBuilder] = []
    /// The float32 tensors of parameters, by name and shape.
    private var parameters: [String: String] = [:]
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
        add(type, inputs, to: [output], attributes, named: name)
    }

    /// Adds a node with several outputs; "" is an omitted input or output.
    ///
    /// - Parameter name: The node's name; the name of its last output if nil.
    mutating func add(
        _ type: String, _ inputs: [String], to outputs: [String],
        _ attributes: KeyValuePairs<String, ONNXAttribute> = [:], named name: String? = nil
    ) {
        var node = MessageBuilder()
        for input in inputs { node.add(1, input) }
        for output in outputs { node.add(2, output) }
        node.add(3, name ?? outputs.last ?? type)
        node.add(4, type)
        for (name, attribute) in attributes { node.add(5, attribute.message(named: name)) }
        nodes.append(node)
    }

    /// Adds a node with one output, whose name is similar to `name`.
    ///
    /// - Returns: The name of the output.
    mutating func node(
        _ type: String, _ inputs: [String], _ attributes: KeyValuePairs<String, ONNXAttribute> = [:], named name: String
    ) -> String {
        let output = unique(name)
        add(type, inputs, to: output, attributes)
        return output
    }

    /// Adds a parameter as an initializer, and a `Cast` to float32 if it is stored as float16; adding it again returns the same tensor.
    ///
    /// - Returns: The name of the float32 tensor.
    mutating func add(_ tensor: ExportedTensor) -> String {
        let key = "\(tensor.name) \(tensor.shape)"
        if let known = parameters[key] { return known }
        let name = addInitializer(tensor)
        parameters[key] = name
        return name
    }

    private mutating func addInitializer(_ tensor: ExportedTensor) -> String {
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

    /// Adds an initializer of integers, which are the values of a tensor.
    mutating func add<Integer: FixedWidthInteger>(_ tensor: ExportedTensor, as type: Integer.Type) -> String {
        let element: ElementType =
            switch type {
            case is UInt8.Type: .uint8
            case is Int8.Type: .int8
            default: .int32
            }
        let name = names.unique(tensor.name)
        var message = MessageBuilder()
        message.add(1, packed: tensor.shape)
        message.add(2, element.rawValue)
        message.add(8, name)
        message.add(9, byteCount: tensor.count * MemoryLayout<Integer>.size) { body in
            try tensor.forEachPart(as: type, body)
        }
        constants.append(message)
        return name
    }

    /// Adds a small initializer.
    ///
    /// - Parameter shape: The shape; nil for a vector, empty for a scalar.
    mutating func add(_ name: String, _ values: [Float], shape: [Int]? = nil) -> String {
        addInitializer(ExportedTensor(name, shape: shape ?? [values.count]) { values })
    }

    /// Adds integers.
    ///
    /// - Parameter shape: The shape; nil for a vector, empty for a scalar.
    mutating func add(_ name: String, _ values: [Int], shape: [Int]? = nil) -> String {
        let name = names.unique(name)
        var message = MessageBuilder()
        message.add(1, packed: shape ?? [values.count])
        message.add(2, ElementType.int64.rawValue)
        message.add(8, name)
        message.add(9, bytes: values.flatMap { withUnsafeBytes(of: Int64($0).littleEndian, Array.init) })
        constants.append(message)
        return name
    }

    /// The number of nodes and of initializers.
    var count: (nodes: Int, constants: Int) { (nodes.count, constants.count) }

    /// Returns the encoded nodes and integers after the first ones.
    func immediateBytes(after count: (nodes: Int, constants: Int)) -> [UInt8] {
        (nodes.dropFirst(count.nodes) + constants.dropFirst(count.constants)).flatMap(\.immediateBytes)
    }

    /// Encodes the message GraphProto.
    func message(
        named name: String, input: (name: String, shape: [Length], text: String), outputs: [Output]
    ) -> MessageBuilder {
        var message = MessageBuilder()
        for node in nodes { message.add(1, node) }
        message.add(2, name)
        for constant in constants { message.add(5, constant) }
        message.add(11, Self.value(named: input.name, .float, shape: input.shape, text: input.text))
        for output in outputs {
            message.add(12, Self.value(named: output.name, output.type, shape: output.shape, text: nil))
        }
        return message
    }

    private static func value(
        named name: String, _ element: ElementType, shape: [Length], text: String?
    ) -> MessageBuilder {
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
        tensor.add(1, element.rawValue)
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
