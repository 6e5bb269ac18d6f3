internal import ImprintNetwork

/// The tensors of a checkpoint by the nodes of a network.
struct PyTorchState {
    /// A tensor of the checkpoint that holds a parameter.
    struct Source {
        let name: String
        let parameter: ParameterDescription
    }

    private let tensors: StateDictionary
    private let sources: [String: [Source]]
    /// The tensors of all parameters.
    let expected: [Source]
    private let architecture: String
    /// The number of elements of all parameters.
    let elementCount: Int

    init(_ tensors: StateDictionary, network: Network, source: PyTorchSource) {
        var sources: [String: [Source]] = [:]
        for entry in ParameterLayout(network).entries {
            guard let module = source.modules[entry.node] else {
                preconditionFailure("the node \"\(entry.node)\" has no PyTorch module")
            }
            let name = "\(module).\(Self.name(of: entry.parameter))"
            sources[entry.node, default: []].append(Source(name: name, parameter: entry.parameter))
        }
        let all = network.nodes.flatMap { sources[$0.name] ?? [] }
        self.tensors = tensors
        self.sources = sources
        expected = all
        architecture = source.architecture.name
        elementCount = all.reduce(0) { $0 + $1.parameter.count }
    }

    /// Returns the parameters of a node in the network's layout; only after `check()`.
    func parameters(of node: Network.Node) throws -> [String: [Float]] {
        var parameters: [String: [Float]] = [:]
        for source in sources[node.name] ?? [] {
            let values = try tensors.values(of: source.name)
            let shape = source.parameter.shape
            parameters[source.parameter.name] =
                switch shape.count {
                case 4: channelsLast(values, shape[3], shape[2], shape[0] * shape[1], nil)
                case 2: channelsLast(values, shape[1], shape[0], 1, nil)
                default: values
                }
        }
        return parameters
    }

    /// Returns the last part of the name of a parameter in PyTorch.
    private static func name(of parameter: ParameterDescription) -> String {
        switch parameter.name {
        case "scale": "weight"
        case "shift": "bias"
        case "runningMean": "running_mean"
        case "runningVariance": "running_var"
        default: parameter.name
        }
    }

    /// Returns the shapes that a parameter may have in PyTorch; the first one is preferred.
    private static func shapes(of parameter: ParameterDescription) -> [[Int]] {
        let shape = parameter.shape
        return switch shape.count {
        case 4: [[shape[3], shape[2], shape[0], shape[1]]]
        // A dense layer of a vector can be a 1x1 convolution.
        case 2: [[shape[1], shape[0]], [shape[1], shape[0], 1, 1]]
        default: [shape]
        }
    }

    /// The tensors that are not parameters of the network.
    var unknownTensors: [String] {
        let known = Set(expected.map(\.name))
        return tensors.names.filter { !known.contains($0) && !$0.hasSuffix(".num_batches_tracked") }
    }

    /// The number of parameters that the checkpoint has with the right shape.
    var matchingCount: Int { expected.filter(hasRightShape).count }

    private func hasRightShape(_ source: Source) -> Bool {
        Self.shapes(of: source.parameter).contains { $0 == tensors.shape(of: source.name) }
    }

    /// - Throws: `ArchitectureMismatch` if tensors are missing, have other shapes or are not parameters of the network.
    func check() throws {
        let missing = expected.filter { tensors.shape(of: $0.name) == nil }
        if let first = missing.first {
            throw ArchitectureMismatch(
                finding: .lacks(
                    "tensor \(first.name.debugDescription) of the shape \(Self.shapes(of: first.parameter)[0])"
                        + "\(Self.others(missing.count)), expected \(expected.count) tensors for \(architecture)"))
        }
        let wrong = expected.filter { !hasRightShape($0) }
        if let first = wrong.first {
            throw ArchitectureMismatch(
                finding: .contains(
                    "a checkpoint whose tensor \(first.name.debugDescription) has the shape "
                        + "\(tensors.shape(of: first.name) ?? [])\(Self.others(wrong.count))"),
                expected: "Expected \(Self.shapes(of: first.parameter)[0]) for \(architecture)")
        }
        let unknown = unknownTensors
        if let first = unknown.first {
            throw ArchitectureMismatch(
                finding: .contains(
                    "a checkpoint with the tensor \(first.debugDescription)\(Self.others(unknown.count)), which "
                        + "\(architecture) does not have"),
                expected: "Expected \(expected.count) tensors")
        }
    }

    private static func others(_ count: Int) -> String { count > 1 ? " (and \(count - 1) more)" : "" }
}
