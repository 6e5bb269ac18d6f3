/// An ONNX file, whose output is the output of the last node.
struct ONNXSample {
    /// The shape of the image.
    var image = [1, 3, 4, 4]
    var opset: Int? = 12
    var initializers: [Tensor] = []
    /// The declared shape of the output; nil if it is not declared.
    var outputShape: [Int]?
    /// Additional fields of the graph.
    var more: [WireField] = []
    private var nodes: [WireField] = []
    private var last = "image"

    /// An attribute of a node.
    enum Attribute: Sendable {
        case integer(String, Int)
        case float(String, Float)
        case text(String, String)
        case integers(String, [Int])
        case floats(String, [Float])
        case tensor(String, Tensor)

        fileprivate var field: WireField {
            switch self {
            case .integer(let name, let value): .message(5, [.text(1, name), .integer(3, value), .integer(20, 2)])
            case .float(let name, let value): .message(5, [.text(1, name), .float(2, value), .integer(20, 1)])
            case .text(let name, let value): .message(5, [.text(1, name), .text(4, value), .integer(20, 3)])
            case .integers(let name, let values): .message(5, [.text(1, name), .integers(8, values), .integer(20, 7)])
            case .floats(let name, let values): .message(5, [.text(1, name), .floats(7, values), .integer(20, 6)])
            case .tensor(let name, let tensor):
                .message(5, [.text(1, name), .message(5, tensor.fields), .integer(20, 4)])
            }
        }
    }

    /// A constant tensor.
    struct Tensor: Sendable {
        let fields: [WireField]

        static func floats(_ name: String, _ shape: [Int], _ values: [Float]) -> Tensor {
            Tensor(fields: [.integers(1, shape), .integer(2, 1), .floats(4, values), .text(8, name)])
        }

        static func integers(_ name: String, _ shape: [Int], _ values: [Int]) -> Tensor {
            Tensor(fields: [.integers(1, shape), .integer(2, 7), .integers(7, values), .text(8, name)])
        }

        static func bytes(_ name: String, type: Int, _ shape: [Int], _ bytes: [UInt8]) -> Tensor {
            Tensor(fields: [.integers(1, shape), .integer(2, type), .text(8, name), .bytes(9, bytes)])
        }

        /// Creates a tensor in an external data file.
        static func external(_ name: String, _ shape: [Int], _ entries: KeyValuePairs<String, String>) -> Tensor {
            Tensor(
                fields: [.integers(1, shape), .integer(2, 1), .text(8, name), .integer(14, 1)]
                    + entries.map { .message(13, [.text(1, $0), .text(2, $1)]) })
        }
    }

    /// Adds a node; by default it reads the output of the previous node.
    mutating func node(
        _ operation: String, _ inputs: [String]? = nil, _ attributes: [Attribute] = [], to output: String? = nil,
        named name: String? = nil
    ) {
        let output = output ?? "\(operation)\(nodes.count)"
        nodes.append(
            .message(
                1,
                (inputs ?? [last]).map { .text(1, $0) } + [
                    .text(2, output), .text(3, name ?? output), .text(4, operation),
                ]
                    + attributes.map(\.field)))
        last = output
    }

    /// Adds a node with these fields.
    mutating func node(_ fields: [WireField], to output: String) {
        nodes.append(.message(1, fields))
        last = output
    }

    static func value(_ name: String, _ shape: [Int]) -> [WireField] {
        [
            .text(1, name),
            .message(
                2, [.message(1, [.integer(1, 1), .message(2, shape.map { .message(1, [.integer(1, $0)]) })])]),
        ]
    }

    private var output: [WireField] { outputShape.map { Self.value(last, $0) } ?? [.text(1, last)] }

    var bytes: [UInt8] {
        let graph: [WireField] =
            nodes + [.text(2, "graph")] + initializers.map { .message(5, $0.fields) }
            + [.message(11, Self.value("image", image)), .message(12, output)] + more
        return WireField.encode(
            [.integer(1, 8), .message(7, graph)] + (opset.map { [.message(8, [.integer(2, $0)])] } ?? []))
    }
}
