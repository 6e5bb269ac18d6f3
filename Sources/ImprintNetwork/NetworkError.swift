public import ImprintCore

/// An error in the description of a network or in the values of its parameters, or a failure to compile it.
public enum NetworkError: DescribedError, Equatable {
    /// Two nodes have the same name, or a node has the name of the network's input.
    case duplicateName(node: String)
    /// The network has no nodes.
    case empty(network: String)
    /// A node reads an input that is neither the network's input nor an earlier node.
    case unknownInput(node: String, input: String)
    /// A node other than the last one has an output that no other node reads.
    case unusedNode(node: String)
    /// A node has the wrong number of inputs for its layer.
    case inputCount(layer: String, expected: String, found: Int)
    /// A layer does not support inputs of these shapes.
    case inputShape(layer: String, found: [TensorShape], reason: String)
    /// A property of a layer is invalid.
    case invalidProperty(layer: String, property: String, found: String, expected: String)
    /// An error in the node of this name.
    indirect case inNode(String, NetworkError)
    /// The description contains a kind of layer that is not registered.
    case unknownLayerKind(found: String, known: [String])
    /// There is no built-in network of this name.
    case unknownNetwork(found: String, known: [String])
    /// The output of the network is not a vector of scores.
    case notAClassifier(network: String, output: TensorShape)
    /// The network has no parameter of this name.
    case unknownParameter(name: String)
    /// The number of values does not fit the shape of a parameter.
    case parameterCount(name: String, found: Int, shape: [Int])
    /// The parameters or activations need more memory than is available.
    case outOfMemory(bytes: Int)

    /// A sentence with the problem, the expected state and the fix.
    public var description: String { text.sentence }

    private var text: String {
        switch self {
        case .duplicateName(let node):
            "duplicate node name \"\(node)\". Give each node a unique name (\"\(Network.inputName)\" is reserved)"
        case .empty(let network):
            "the network \"\(network)\" has no layers. Add at least one layer"
        case .unknownInput(let node, let input):
            "the node \"\(node)\" reads from \"\(input)\", but no earlier node has this name"
        case .unusedNode(let node):
            "no other node reads the output of the node \"\(node)\". Connect it or remove it"
        case .inputCount(let layer, let expected, let found):
            "\(layer): found \(counted(found, "input")), expected \(expected)"
        case .inputShape(let layer, let found, let reason):
            "\(layer): invalid input shape \(found.map(\.description).joined(separator: ", ")): \(reason)"
        case .invalidProperty(let layer, let property, let found, let expected):
            "\(layer): \(property) is \(found), expected \(expected)"
        case .inNode(let node, let error):
            "node \"\(node)\": \(error)"
        case .unknownLayerKind(let found, let known):
            "unknown layer kind \"\(found)\". Expected one of \(known.joined(separator: ", "))"
        case .unknownNetwork(let found, let known):
            "unknown network \"\(found)\". Choose one of \(known.joined(separator: ", "))"
        case .notAClassifier(let network, let output):
            "the network \"\(network)\" has the output shape \(output), expected a vector with one score per label"
        case .unknownParameter(let name):
            "the network has no parameter \"\(name)\". ParameterLayout.entries lists the names"
        case .parameterCount(let name, let found, let shape):
            "the parameter \"\(name)\" has the shape \(shape.map(\.description).joined(separator: "x")): "
                + "found \(counted(found, "value")), expected \(shape.reduce(1, *))"
        case .outOfMemory(let bytes):
            "cannot allocate \((Double(bytes) / 1e8).rounded() / 10) GB of memory. "
                + "Use a smaller batch, a smaller input or a smaller network"
        }
    }
}
