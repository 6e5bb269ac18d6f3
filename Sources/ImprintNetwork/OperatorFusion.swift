/// One operation of a plan: a node of the network, or several fused nodes.
struct PlanOperation {
    /// The indices of its nodes in `Network.nodes`; the output of the last one is the output of the operation.
    var nodeIndices: [Int]
    /// The names of the nodes, joined with +.
    let name: String
    /// The kind of the first node's layer.
    let kind: String
    var kernel: any LayerKernel
    /// For each input, the index of the operation that produces it; −1 is the network's input.
    var sources: [Int]
    let inputs: [TensorShape]
    let output: TensorShape
    /// The parameters, in the order of `Layer.parameters(for:)`.
    let entries: [ParameterLayout.Entry]
    let isFrozen: Bool
    let algorithm: Algorithm
    /// Whether the output consists of uint8 values instead of float32 values.
    var isInteger = false
    /// The size of an element of the output.
    var bytesPerValue: Int { isInteger ? 1 : MemoryLayout<Float>.stride }
}

/// Operator fusion: turns the nodes of a network into the operations of a plan, and fuses nodes that one kernel can compute in one pass.
struct OperatorFusion {
    private let network: Network
    private let options: ExecutionPlan.Options
    /// For each node, the nodes that read its output.
    private let readers: [[Int]]
    /// Whether the gradient of a node's output is needed.
    private let needsGradient: [Bool]
    /// The nodes that belong to a chain.
    private var alreadyFused = Set<Int>()

    /// - Parameter quantization: The quantization of the network; it applies if the options ask for predictions in int8.
    static func operations(
        of network: Network, layout: ParameterLayout, quantization: Quantization?, options: ExecutionPlan.Options
    ) -> [PlanOperation] {
        var fusion = OperatorFusion(network, options)
        let groups = fusion.fusedGroups()
        let operations = fusion.operations(groups, layout)
        guard let quantization, options.usesInt8 else { return operations }
        return QuantizedOperations.converted(operations, of: network, quantization, options: options)
    }

    private init(_ network: Network, _ options: ExecutionPlan.Options) {
        self.network = network
        self.options = options
        let dataflow = Dataflow(network.sources, options: options) { node in
            !options.frozen.contains(network.nodes[node].name)
                && network.nodes[node].layer.parameters(for: network.inputShapes(of: node))
                    .contains { $0.role != .statistic }
        }
        readers = dataflow.readers
        needsGradient = dataflow.needsGradient
    }

    /// Nodes that become one operation, its kernel, and the nodes (−1: the network's input) that it reads.
    private struct Group {
        var nodes: [Int]
        var kernel: any LayerKernel
        var sources: [Int]
    }

    private func singleNodes() -> [Group] {
        network.nodes.indices.map {
            Group(nodes: [$0], kernel: network.nodes[$0].layer.kernel, sources: network.sources[$0])
        }
    }

    /// Fuses convolutions and batch normalizations with the layers that follow, if no other node reads the intermediate outputs.
    private mutating func fusedGroups() -> [Group] {
        var groups = singleNodes()
        // In reverse order, the later of two branches is fused with the sum that joins them: the other branch is computed before.
        for node in network.nodes.indices.reversed() where !alreadyFused.contains(node) {
            let layer = network.nodes[node].layer
            var chain = Chain(start: node, isInferenceOnly: isInferenceOnly(node))
            if let convolution = layer as? Convolution, chain.isInferenceOnly {
                let normalization = fuse(BatchNormalization.self, into: &chain)
                fuseSum(into: &chain)
                fuseActivation(into: &chain)
                let curve = chain.activation == .none ? fuseCurve(into: &chain) : nil
                groups[node].kernel = PrepackedConvolution(
                    convolution, normalization: normalization, hasShortcut: chain.shortcut != nil,
                    activation: chain.activation, curve: curve)
            } else if let normalization = layer as? BatchNormalization,
                !(chain.isInferenceOnly && isFusedWithConvolution(node))
            {
                fuseSum(into: &chain)
                fuseActivation(into: &chain)
                let pool = MaxPool(kernelSize: 2)
                let isPooled = chain.shortcut == nil && fuse(MaxPool.self, into: &chain) { $0 == pool } != nil
                guard chain.nodes.count > 1 else { continue }
                groups[node].kernel = NormalizedActivation(
                    normalization, hasShortcut: chain.shortcut != nil, activation: chain.activation,
                    isPooled: isPooled)
            } else {
                continue
            }
            alreadyFused.formUnion(chain.nodes)
            groups[node].nodes = chain.nodes
            groups[node].sources += chain.shortcut.map { [$0] } ?? []
        }
        let absorbed = Set(groups.flatMap { $0.nodes.dropFirst() })
        return groups.filter { !absorbed.contains($0.nodes[0]) }
    }

    /// Consecutive nodes to fuse.
    private struct Chain {
        var nodes: [Int]
        /// See `OperatorFusion.isInferenceOnly(_:)`.
        let isInferenceOnly: Bool
        /// The node that the fused sum reads besides the chain.
        var shortcut: Int?
        /// The fused activation.
        var activation = ClampActivation.none

        init(start: Int, isInferenceOnly: Bool) {
            nodes = [start]
            self.isInferenceOnly = isInferenceOnly
        }
    }

    /// Appends the only reader of the last node of a chain, if its layer is of this kind and meets the condition.
    private func fuse<Kind: Layer>(
        _ kind: Kind.Type, into chain: inout Chain, where isFusible: (Kind) -> Bool = { _ in true }
    ) -> Kind? {
        let last = chain.nodes[chain.nodes.count - 1]
        guard readers[last].count == 1, let reader = readers[last].first, !alreadyFused.contains(reader),
            let layer = network.nodes[reader].layer as? Kind, isFusible(layer),
            !hasParameters(reader) || isFrozen(reader) == isFrozen(chain.nodes[0]),
            isInferenceOnly(reader) == chain.isInferenceOnly
        else { return nil }
        chain.nodes.append(reader)
        return layer
    }

    private func fuseSum(into chain: inout Chain) {
        let last = chain.nodes[chain.nodes.count - 1]
        guard let sum = readers[last].first, network.sources[sum].count == 2,
            network.inputShapes(of: sum).allSatisfy({ $0 == network.shapes[last] }),
            fuse(AddLayer.self, into: &chain) != nil
        else { return }
        chain.shortcut = network.sources[sum].first { $0 != last }
    }

    private func fuseActivation(into chain: inout Chain) {
        if fuse(ReLU.self, into: &chain) != nil {
            chain.activation = .relu
        } else if fuse(ReLU6.self, into: &chain) != nil {
            chain.activation = .clip(maximum: 6)
        } else if let clip = fuse(ClipLayer.self, into: &chain, where: { $0.minimum == 0 }) {
            chain.activation = .clip(maximum: clip.maximum)
        }
    }

    /// Fuses a smooth activation, which the epilogue of a convolution applies while the output is in the cache.
    private func fuseCurve(into chain: inout Chain) -> Epilogue.Curve? {
        if fuse(Swish.self, into: &chain) != nil { return .swish }
        return fuse(HardSwish.self, into: &chain) != nil ? .hardSwish : nil
    }

    /// Whether a normalization will be fused into the convolution before it.
    private func isFusedWithConvolution(_ node: Int) -> Bool {
        let source = network.sources[node][0]
        return source >= 0 && network.nodes[source].layer is Convolution && readers[source].count == 1
            && isInferenceOnly(source) && isFrozen(source) == isFrozen(node)
    }

    /// Whether a node runs as in prediction: its parameters and statistics do not change, and the gradient of its output is not needed.
    ///
    /// This applies to all nodes of a plan for prediction. In training, it applies to nodes that are frozen or have no parameters, if they
    /// read no output that needs a gradient.
    private func isInferenceOnly(_ node: Int) -> Bool {
        !needsGradient[node] && (options.mode == .prediction || isFrozen(node) || !hasParameters(node))
    }

    private func hasParameters(_ node: Int) -> Bool {
        !network.nodes[node].layer.parameters(for: network.inputShapes(of: node)).isEmpty
    }

    private func isFrozen(_ node: Int) -> Bool { options.frozen.contains(network.nodes[node].name) }

    /// Turns groups into operations, in the order of their last nodes.
    private func operations(_ groups: [Group], _ layout: ParameterLayout) -> [PlanOperation] {
        let groups = groups.sorted { ($0.nodes.last ?? 0) < ($1.nodes.last ?? 0) }
        var producers = [-1: -1]
        return groups.enumerated().map { index, group in
            let nodes = group.nodes.map { network.nodes[$0] }
            let last = group.nodes[group.nodes.count - 1]
            producers[last] = index
            let inputs = group.sources.map { $0 < 0 ? network.input : network.shapes[$0] }
            return PlanOperation(
                nodeIndices: group.nodes, name: nodes.map(\.name).joined(separator: "+"),
                kind: type(of: nodes[0].layer).kind, kernel: group.kernel,
                sources: group.sources.map { source in
                    guard let producer = producers[source] else {
                        preconditionFailure("an operation reads the output of a later operation")
                    }
                    return producer
                }, inputs: inputs, output: network.shapes[last],
                entries: group.nodes.flatMap { node in
                    network.nodes[node].layer.parameters(for: network.inputShapes(of: node))
                        .compactMap { layout["\(network.nodes[node].name).\($0.name)"] }
                },
                isFrozen: isFrozen(group.nodes[0]),
                algorithm: group.kernel.algorithm(
                    for: inputs, predicting: options.mode == .prediction ? options.batchSize : nil))
        }
    }
}
