public import ImprintCore

/// What is wrong with a network's description, or with the numbers given to it.
public enum NetworkError: DescribedError, Equatable {
    /// Two nodes have the same name, or a node is named like the input.
    case duplicateName(node: String)
    /// The network has no nodes.
    case empty(network: String)
    /// A node reads from a name that no earlier node and not the input has.
    case unknownInput(node: String, input: String)
    /// A node's result is used by nothing, and it is not the last one.
    case unusedNode(node: String)
    /// A layer takes another number of inputs.
    case inputCount(layer: String, expected: String, found: Int)
    /// A layer cannot take inputs of these shapes.
    case inputShape(layer: String, found: [TensorShape], reason: String)
    /// A property of a layer has a value outside its range.
    case invalidProperty(layer: String, property: String, found: String, expected: String)
    /// A failure inside the node of this name.
    indirect case inNode(String, NetworkError)
    /// A description names a kind of layer that this version does not have.
    case unknownLayerKind(found: String, known: [String])
    /// No ready-made network has this name.
    case unknownNetwork(found: String, known: [String])
    /// The network does not end as a classifier does: in a vector, or in a softmax over one.
    case notAClassifier(network: String, output: TensorShape)
    /// The numbers take more memory than this machine gives.
    case outOfMemory(bytes: Int)

    /// A sentence that says what was found and what was expected.
    public var description: String {
        switch self {
        case .duplicateName(let node):
            "two nodes are named \"\(node)\"; give each node a name of its own (\"\(Network.inputName)\" is taken)"
        case .empty(let network):
            "the network \"\(network)\" has no layers; add at least one"
        case .unknownInput(let node, let input):
            "the node \"\(node)\" reads from \"\(input)\", which no node before it is named"
        case .unusedNode(let node):
            "the result of the node \"\(node)\" is used by no other node; connect it or remove it"
        case .inputCount(let layer, let expected, let found):
            "\(layer) takes \(expected), found \(found) inputs"
        case .inputShape(let layer, let found, let reason):
            "\(layer) cannot take \(found.map(\.description).joined(separator: ", ")): \(reason)"
        case .invalidProperty(let layer, let property, let found, let expected):
            "\(layer): \(property) is \(found), expected \(expected)"
        case .inNode(let node, let error):
            "node \"\(node)\": \(error)"
        case .unknownLayerKind(let found, let known):
            "there is no layer \"\(found)\"; this version has \(known.joined(separator: ", "))"
        case .unknownNetwork(let found, let known):
            "there is no network \"\(found)\"; choose one of \(known.joined(separator: ", "))"
        case .notAClassifier(let network, let output):
            "the network \"\(network)\" ends in \(output); a classifier ends in a vector, one number per label"
        case .outOfMemory(let bytes):
            "\((Double(bytes) / 1e8).rounded() / 10) GB of memory are needed at once and not to be had here; "
                + "use a smaller batch, input or network"
        }
    }
}
