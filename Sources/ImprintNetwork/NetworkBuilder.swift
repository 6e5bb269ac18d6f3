/// Builds a network layer by layer.
///
/// ```swift
/// var net = NetworkBuilder(name: "tiny", input: Shape(height: 28, width: 28, channels: 1))
/// net.add(Convolution(outputChannels: 8, kernelSize: 3, padding: .same))
/// let shortcut = net.add(ReLU())
/// let branch = net.add(Convolution(outputChannels: 8, kernelSize: 1))
/// net.add(Add(), to: [shortcut, branch])
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

    /// Starts a network that takes images of the shape `input`.
    public init(name: String, input: TensorShape) {
        self.name = name
        self.input = input
    }

    /// The name of the node added last; the network's input before there is one.
    public var last: String { nodes.last?.name ?? Network.inputName }

    /// Adds a layer.
    /// - Parameters:
    ///   - layer: The layer.
    ///   - name: A name of its own; its kind and a running number where none is given, as in "convolution2".
    ///   - inputs: The names of what it reads; the node added last where none are given.
    /// - Returns: The name, for others to read from.
    @discardableResult
    public mutating func add(_ layer: some Layer, named name: String? = nil, to inputs: [String]? = nil) -> String {
        let kind = type(of: layer).kind
        counts[kind, default: 0] += 1
        let name = name ?? "\(kind)\(counts[kind, default: 1])"
        nodes.append(Network.Node(name: name, layer: layer, inputs: inputs ?? [last]))
        return name
    }

    /// The network.
    /// - Throws: `NetworkError` if names, connections or shapes do not fit together.
    public func network() throws(NetworkError) -> Network {
        try Network(name: name, input: input, nodes: nodes)
    }
}
