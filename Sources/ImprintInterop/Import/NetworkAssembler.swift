internal import ImprintNetwork

/// Builds a network from the operators of another format.
///
/// It uses the conventions that all formats share: tensors with a batch axis and axes in any order, and weights of the shape
/// [outputs, inputs / groups, kernel height, kernel width]. Some operators merge with their predecessor: a convolution after
/// padding, or a factor after a normalization. Such an operator becomes a new node that replaces the predecessor and reads its
/// input. `finish(_:named:)` drops unused nodes.
struct NetworkAssembler {
    typealias Axis = SourceActivation.Axis

    /// An upper bound for the elements of one tensor, so that a small file cannot exhaust memory.
    static let maximumCount = 1 << 28
    /// An upper bound for the rank of a tensor.
    static let maximumRank = 16
    /// An upper bound for the indices that one operator selects along an axis.
    static let maximumIndexCount = 1 << 20
    /// An upper bound for the labels of a classifier.
    static let maximumLabelCount = 1 << 16

    /// A node with its output shape and its parameters.
    private struct Entry {
        let node: Network.Node
        let shape: TensorShape
        /// The values by parameter name, in the network's layout.
        var parameters: [String: [Float]]
    }

    /// The shape of an image.
    let input: TensorShape
    private var entries: [Entry] = []
    private var nodeIndices: [String: Int] = [:]
    /// The softmax nodes that are log-softmax in the source.
    private var logSoftmaxNodes: Set<String> = []
    /// The number of nodes that requested the same name, by name.
    private var nameCounts: [String: Int] = [:]
    /// The number of bytes that the network's parameters may still use.
    private var remainingBytes: Int

    /// Whether every operator remains a separate node, which is required if the file contains Imprint's metadata.
    let preservesNodes: Bool

    /// Creates an assembler for images of the shape `input`.
    ///
    /// The network may use twice the size of the weights, because modified parameters exist twice until the end. Another 8 MiB are
    /// for constants that the file stores compactly. This limit rejects a file whose nodes reuse the same weights very often.
    ///
    /// - Parameter weights: The size of the file's weights in bytes, as 32-bit values.
    init(input: TensorShape, weights: Int, preservesNodes: Bool = false) {
        self.input = input
        self.preservesNodes = preservesNodes
        remainingBytes = 2 * weights + 1 << 23
    }

    /// Returns the input image with the axes of the source.
    func image(axes: [Axis]) -> SourceActivation {
        SourceActivation(node: Network.inputName, shape: input, axes: axes)
    }

    /// Raises the memory limit for weights that the file stores in fewer bits than assumed.
    mutating func allow(elements count: Int) { remainingBytes += 2 * count * MemoryLayout<Float>.stride }

    /// Reserves memory that a node needs during the import.
    ///
    /// - Throws: `ImportError.Problem` if the total exceeds the limit that follows from the size of the file.
    mutating func reserve(_ bytes: Int, for name: String) throws(ImportError.Problem) {
        guard bytes <= remainingBytes else {
            throw .exceedsLimit(reason: "\(name) needs many times more memory than the weights in the file")
        }
        remainingBytes -= bytes
    }

    /// Adds a layer.
    ///
    /// - Parameters:
    ///   - wanted: The operator's name in the source; the node name gets a numeric suffix if the name is taken.
    ///   - parameters: All parameters of the layer by name, in the network's layout.
    ///   - axes: The axes of the output; the axes of the first input if nil.
    mutating func add(
        _ layer: some Layer, named wanted: String, to inputs: [SourceActivation], parameters: [String: [Float]] = [:],
        axes: [Axis]? = nil
    ) throws(ImportError.Problem) -> SourceActivation {
        let name = unusedName(wanted, for: layer)
        if let input = inputs.first(where: { logSoftmaxNodes.contains($0.node) }) {
            throw .unsupported([
                .init(
                    operation: "LogSoftmax", node: input.node,
                    reason: "\(name) reads it, expected it at the end of the model"
                )
            ])
        }
        let shapes = inputs.map(\.shape)
        let shape: TensorShape
        do {
            shape = try layer.outputShape(for: shapes)
        } catch {
            throw .network(node: name, error)
        }
        let sizes = [shape.height, shape.width, shape.channels]
        guard let count = checkedProduct(sizes), count <= Self.maximumCount, shape.channels <= Self.maximumCount >> 4
        else {
            throw .exceedsLimit(reason: "\(name) outputs \(shape) elements, more than any image model")
        }
        for parameter in layer.parameters(for: shapes) {
            let found = parameters[parameter.name]?.count ?? 0
            guard found == parameter.count else {
                throw .malformed(
                    reason: "\(name) has \(found) values for \(parameter.name), expected \(parameter.count)")
            }
        }
        try reserve(parameters.values.reduce(0) { $0 + $1.count } * MemoryLayout<Float>.stride, for: name)
        nodeIndices[name] = entries.count
        let node = Network.Node(name: name, layer: layer, inputs: inputs.map(\.node))
        entries.append(Entry(node: node, shape: shape, parameters: parameters))
        return SourceActivation(node: name, shape: shape, axes: axes ?? inputs[0].axes)
    }

    /// Returns the layer that computes an activation, if it has this type.
    func layer<Kind: Layer>(of activation: SourceActivation, as kind: Kind.Type) -> Kind? {
        nodeIndices[activation.node].flatMap { entries[$0].node.layer as? Kind }
    }

    /// Returns the parameters of the node that computes an activation, by name.
    func parameters(of activation: SourceActivation) -> [String: [Float]] {
        nodeIndices[activation.node].map { entries[$0].parameters } ?? [:]
    }

    /// Returns the inputs of the node that computes an activation, with the activation's axes.
    func inputs(of activation: SourceActivation) -> [SourceActivation] {
        guard let index = nodeIndices[activation.node] else { return [] }
        return entries[index].node.inputs.map { self.activation(of: $0, axes: activation.axes) }
    }

    private func activation(of node: String, axes: [Axis]) -> SourceActivation {
        SourceActivation(node: node, shape: nodeIndices[node].map { entries[$0].shape } ?? input, axes: axes)
    }

    /// The meaning of a model's output.
    enum Ending {
        /// The output of a softmax.
        case probabilities
        /// The output of a sigmoid, an independent probability for each label.
        case separateProbabilities
        case logits
    }

    /// Returns the meaning of an activation; layers that only reorder or join elements do not change it.
    ///
    /// - Throws: `ImportError.Problem.unsuitableModel` if the activation joins the output of a softmax, or of a sigmoid, with other values.
    func ending(of activation: SourceActivation) throws(ImportError.Problem) -> Ending {
        let (moves, sources) = moves(before: activation)
        let endings = Set(
            sources.map { name -> Ending in
                let layer = nodeIndices[name].map { entries[$0].node.layer }
                return layer is Softmax ? .probabilities : layer is Sigmoid ? .separateProbabilities : .logits
            })
        let isJoined = moves.contains { entries[$0].node.layer is Concat }
        guard endings.count == 1, let ending = endings.first, ending != .probabilities || !isJoined else {
            throw .unsuitableModel(
                found: "a model whose output joins the result of a "
                    + "\(endings.contains(.probabilities) ? "softmax" : "sigmoid") with other values",
                advice: "Export the model with logits, one softmax, or a sigmoid for each label as its output")
        }
        return ending
    }

    /// Returns an activation whose ending is separate probabilities with the sigmoid as its last layer.
    ///
    /// The head of a classifier follows from the last layer of its network. Layers that only reorder or join elements move before the sigmoid.
    mutating func endingInSigmoid(_ activation: SourceActivation) throws(ImportError.Problem) -> SourceActivation {
        let (moves, sigmoids) = moves(before: activation)
        guard !moves.isEmpty else { return activation }
        var moved: [String: SourceActivation] = [:]
        for sigmoid in sigmoids {
            moved[sigmoid] = inputs(of: self.activation(of: sigmoid, axes: activation.axes)).first
        }
        for index in moves {
            let node = entries[index].node
            moved[node.name] = try add(node.layer, named: node.name, to: node.inputs.compactMap { moved[$0] })
        }
        return try add(Sigmoid(), named: "probabilities", to: [moved[activation.node] ?? activation])
    }

    /// Returns the layers before an activation that only reorder or join elements.
    ///
    /// - Returns: The indices of these layers in `entries`, in ascending order, and the names of the other nodes that they read.
    private func moves(before activation: SourceActivation) -> (indices: [Int], sources: Set<String>) {
        var (indices, sources): ([Int], Set<String>) = ([], [activation.node])
        // Entries follow their inputs, so one pass finds all of them.
        for index in entries.indices.reversed() where sources.contains(entries[index].node.name) {
            let node = entries[index].node
            switch node.layer {
            case is Flatten, is SelectChannels, is Dropout, is Concat: break
            default: continue
            }
            sources.remove(node.name)
            sources.formUnion(node.inputs)
            indices.append(index)
        }
        return (indices.reversed(), sources)
    }

    /// Records that a softmax is a log-softmax in the source, which may only be the model's output.
    mutating func recordLogSoftmax(of activation: SourceActivation) { logSoftmaxNodes.insert(activation.node) }

    private mutating func unusedName(_ wanted: String, for layer: some Layer) -> String {
        let first = wanted.isEmpty ? "\(type(of: layer).kind)\(entries.count + 1)" : wanted
        var name = first
        while nodeIndices[name] != nil || name == Network.inputName {
            // Continue the last search, because thousands of nodes may request the same name.
            let number = nameCounts[first, default: 1] + 1
            nameCounts[first] = number
            name = "\(first)_\(number)"
        }
        return name
    }

    /// Returns the network that computes an activation, with its parameters.
    ///
    /// - Parameter name: The network's name.
    /// - Throws: `ImportError.Problem` and `NetworkError`, such as `ImportError.Problem.exceedsLimit` for more than `Network.mostNodes` nodes.
    mutating func finish(
        _ output: SourceActivation, named name: String
    ) throws -> (network: Network, parameters: Parameters) {
        guard let last = nodeIndices[output.node] else {
            throw ImportError.Problem.missing(item: "layers", advice: "Expected a network")
        }
        var isUsed = entries.map { _ in false }
        isUsed[last] = true
        for index in entries.indices.reversed() where isUsed[index] {
            for input in entries[index].node.inputs { nodeIndices[input].map { isUsed[$0] = true } }
        }
        let nodes = entries.indices.filter { isUsed[$0] }.map { entries[$0].node }
        guard nodes.count <= Network.mostNodes else {
            throw ImportError.Problem.exceedsLimit(
                reason: "its network has \(nodes.count) nodes, expected at most \(Network.mostNodes)")
        }
        let network = try Network(name: name, input: input, nodes: nodes)
        let parameters = try Parameters(ParameterLayout(network))
        for entry in parameters.layout.entries {
            guard let index = nodeIndices[entry.node] else { continue }
            // Release each array as soon as its values are copied.
            guard let values = entries[index].parameters.removeValue(forKey: entry.parameter.name) else { continue }
            guard values.allSatisfy(\.isFinite) else {
                throw ImportError.Problem.malformed(
                    reason: "\(entry.name) has a value that is not finite, expected trained weights")
            }
            guard entry.parameter.name != "runningVariance" || values.allSatisfy({ $0 >= 0 }) else {
                throw ImportError.Problem.malformed(
                    reason: "\(entry.name) has a value below 0, expected variances")
            }
            parameters[entry.name] = values
        }
        return (network, parameters)
    }
}
