/// Builds a network layer by layer.
///
/// ```swift
/// var net = NetworkBuilder(name: "tiny", input: TensorShape(height: 28, width: 28, channels: 1))
/// net.add(Convolution(outputChannels: 8, kernelSize: 3, padding: .same))
/// let shortcut = net.add(ReLU())
/// let branch = net.add(Convolution(outputChannels: 8, kernelSize: 1))
/// net.add(AddLayer(), to: [shortcut, branch])
/// net.add(GlobalAveragePool())
/// net.add(Dense(outputChannels: 2))
/// net.add(Softmax())
/// let network = try net.network()
/// ```
public struct NetworkBuilder {
    private let name: String
    private let input: TensorShape
    private var nodes: [Network.Node] = []
    private var counts: [String: Int] = [:]

    /// Creates a builder for a network whose input images have the shape `input`.
    public init(name: String, input: TensorShape) {
        self.name = name
        self.input = input
    }

    /// The name of the last node, or of the network's input if there are no nodes.
    public var last: String { nodes.last?.name ?? Network.inputName }

    /// Adds a node.
    /// - Parameters:
    ///   - layer: The layer.
    ///   - name: A unique name. The default is the kind of layer with a number, such as "convolution2".
    ///   - inputs: The names of the nodes that the new node reads. The default is the last node.
    /// - Returns: The name of the node, for the inputs of other nodes.
    @discardableResult
    public mutating func add(_ layer: some Layer, named name: String? = nil, to inputs: [String]? = nil) -> String {
        let kind = type(of: layer).kind
        counts[kind, default: 0] += 1
        let name = name ?? "\(kind)\(counts[kind, default: 1])"
        nodes.append(Network.Node(name: name, layer: layer, inputs: inputs ?? [last]))
        return name
    }

    /// Returns the network.
    /// - Throws: `NetworkError` if names, connections or shapes are not consistent.
    public func network() throws(NetworkError) -> Network {
        try Network(name: name, input: input, nodes: nodes)
    }
}
