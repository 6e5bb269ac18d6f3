internal import ImprintNetwork

/// The tensors of a checkpoint by the nodes of a network, after a check of their names and shapes.
struct PyTorchState {
    /// The remedy for tensors that do not fit.
    static let advice = "Choose the architecture with which the checkpoint was saved"

    /// A tensor of the checkpoint that holds a parameter.
    private struct Source {
        let name: String
        let parameter: ParameterDescription
    }

    private let tensors: StateDictionary
    private let sources: [String: [Source]]
    /// The number of elements of all parameters.
    let elementCount: Int

    /// - Throws: `ImportError.Problem` if tensors are missing, have other shapes or are not parameters of the network.
    init(_ tensors: StateDictionary, network: Network, source: PyTorchSource) throws {
        var sources: [String: [Source]] = [:]
        for entry in ParameterLayout(network).entries {
            guard let module = source.modules[entry.node] else {
                preconditionFailure("the node \"\(entry.node)\" has no PyTorch module")
            }
            let name = "\(source.prefix)\(module).\(Self.name(of: entry.parameter))"
            sources[entry.node, default: []].append(Source(name: name, parameter: entry.parameter))
        }
        let all = network.nodes.flatMap { sources[$0.name] ?? [] }
        self.tensors = tensors
        self.sources = sources
        elementCount = all.reduce(0) { $0 + $1.parameter.count }
        try Self.check(tensors, all, source.architecture.name)
    }

    /// Returns the parameters of a node in the network's layout.
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

    private static func check(_ tensors: StateDictionary, _ expected: [Source], _ architecture: String) throws {
        let missing = expected.filter { tensors.shape(of: $0.name) == nil }
        if let first = missing.first {
            throw ImportError.Problem.missing(
                item: "tensor \(first.name.debugDescription) of the shape \(shapes(of: first.parameter)[0])"
                    + "\(others(missing.count)), expected \(expected.count) tensors for \(architecture)",
                advice: advice)
        }
        let wrong = expected.filter { source in
            !shapes(of: source.parameter).contains { $0 == tensors.shape(of: source.name) }
        }
        if let first = wrong.first {
            throw ImportError.Problem.unsuitableModel(
                found: "a checkpoint whose tensor \(first.name.debugDescription) has the shape "
                    + "\(tensors.shape(of: first.name) ?? [])\(others(wrong.count))",
                advice: "Expected \(shapes(of: first.parameter)[0]) for \(architecture). \(advice)")
        }
        let known = Set(expected.map(\.name))
        let unused = tensors.names.filter { !known.contains($0) && !$0.hasSuffix(".num_batches_tracked") }
        if let first = unused.first {
            throw ImportError.Problem.unsuitableModel(
                found: "a checkpoint with the tensor \(first.debugDescription)\(others(unused.count)), which "
                    + "\(architecture) does not have",
                advice: "Expected \(expected.count) tensors. \(advice)")
        }
    }

    private static func others(_ count: Int) -> String { count > 1 ? " (and \(count - 1) more)" : "" }
}
