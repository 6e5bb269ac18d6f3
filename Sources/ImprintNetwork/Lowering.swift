/// One thing that a plan does: a node of the network, or several whose layers are computed together.
struct Operation {
    /// The nodes it stands for, in order; its result is the last one's.
    let places: [Int]
    /// Their names, joined.
    let name: String
    /// The kind of the first one's layer.
    let kind: String
    let kernel: any LayerKernel
    /// For each input the operation that makes it; −1 is the network's input.
    let sources: [Int]
    let inputs: [TensorShape]
    let output: TensorShape
    /// The parameters, in the order of `Layer.parameters(for:)`.
    let entries: [ParameterLayout.Entry]
    let isFrozen: Bool
    let algorithm: Algorithm
}

/// Turns a network's nodes into operations.
struct Lowering {
    private let network: Network
    private let options: ExecutionPlan.Options
    /// For each node, the nodes that read its result.
    private let readers: [[Int]]
    /// Whether the gradient of a node's result is needed.
    private let needsGradient: [Bool]

    static func operations(of network: Network, layout: ParameterLayout, options: ExecutionPlan.Options) -> [Operation]
    {
        let lowering = Lowering(network, options)
        return lowering.operations(lowering.fused(lowering.singleNodes()), layout)
    }

    private init(_ network: Network, _ options: ExecutionPlan.Options) {
        self.network = network
        self.options = options
        var readers = [[Int]](repeating: [], count: network.nodes.count)
        for (place, sources) in network.sources.enumerated() {
            for source in sources where source >= 0 { readers[source].append(place) }
        }
        self.readers = readers
        var needs: [Bool] = []
        for (place, sources) in network.sources.enumerated() {
            let trains =
                !options.frozen.contains(network.nodes[place].name)
                && network.nodes[place].layer.parameters(for: network.inputShapes(of: place))
                    .contains { $0.role != .statistic }
            let passesOn = sources.contains { $0 < 0 ? options.inputGradient : needs[$0] }
            needs.append(options.mode == .training && (trains || passesOn))
        }
        needsGradient = needs
    }

    /// Nodes that become one operation: what computes them, and the nodes (−1: the network's input) that it reads.
    private struct Group {
        var places: [Int]
        var kernel: any LayerKernel
        var sources: [Int]
    }

    private func singleNodes() -> [Group] {
        network.nodes.indices.map {
            Group(places: [$0], kernel: network.nodes[$0].layer.kernel, sources: network.sources[$0])
        }
    }

    /// Puts convolutions and batch normalizations together with what follows them, as far as nobody else reads what lies
    /// between.
    private func fused(_ groups: [Group]) -> [Group] {
        var groups = groups
        var taken = Set<Int>()
        // Where two branches meet in a sum, the later one takes it: the other's result is there by then.
        for place in network.nodes.indices.reversed() where !taken.contains(place) {
            let layer = network.nodes[place].layer
            var chain = Chain(start: place, isFixed: isFixed(place), taken: taken)
            if let convolution = layer as? Convolution, chain.isFixed {
                let normalization = take(BatchNormalization.self, into: &chain)
                takeSum(into: &chain)
                takeActivation(into: &chain)
                let curve = chain.ceiling == nil ? takeCurve(into: &chain) : nil
                groups[place].kernel = PrepackedConvolution(
                    convolution, normalization: normalization, hasShortcut: chain.shortcut != nil,
                    ceiling: chain.ceiling, curve: curve)
            } else if let normalization = layer as? BatchNormalization, !(chain.isFixed && followsConvolution(place)) {
                takeSum(into: &chain)
                takeActivation(into: &chain)
                let pool = MaxPool(kernelSize: 2)
                let isPooled = chain.shortcut == nil && take(MaxPool.self, into: &chain) { $0 == pool } != nil
                guard chain.places.count > 1 else { continue }
                groups[place].kernel = NormalizedActivation(
                    normalization, hasShortcut: chain.shortcut != nil, ceiling: chain.ceiling, isPooled: isPooled)
            } else {
                continue
            }
            taken.formUnion(chain.places)
            groups[place].places = chain.places
            groups[place].sources += chain.shortcut.map { [$0] } ?? []
        }
        let absorbed = Set(groups.flatMap { $0.places.dropFirst() })
        return groups.filter { !absorbed.contains($0.places[0]) }
    }

    /// Nodes that follow each other, to be computed together.
    private struct Chain {
        var places: [Int]
        /// Whether parameters and statistics stay as they are and nobody asks for gradients.
        let isFixed: Bool
        /// The nodes that belong to another chain.
        let taken: Set<Int>
        var shortcut: Int?
        var ceiling: Float?

        init(start: Int, isFixed: Bool, taken: Set<Int>) {
            places = [start]
            self.isFixed = isFixed
            self.taken = taken
        }
    }

    /// Appends the only reader of a chain's end if it is such a layer.
    private func take<Kind: Layer>(
        _ kind: Kind.Type, into chain: inout Chain, where fits: (Kind) -> Bool = { _ in true }
    ) -> Kind? {
        let last = chain.places[chain.places.count - 1]
        guard readers[last].count == 1, let reader = readers[last].first, !chain.taken.contains(reader),
            !hasParameters(reader) || isFrozen(reader) == isFrozen(chain.places[0]),
            isFixed(reader) == chain.isFixed,
            let layer = network.nodes[reader].layer as? Kind, fits(layer)
        else { return nil }
        chain.places.append(reader)
        return layer
    }

    private func takeSum(into chain: inout Chain) {
        let last = chain.places[chain.places.count - 1]
        guard let sum = readers[last].first, network.sources[sum].count == 2,
            network.inputShapes(of: sum).allSatisfy({ $0 == network.shapes[last] }),
            take(AddLayer.self, into: &chain) != nil
        else { return }
        chain.shortcut = network.sources[sum].first { $0 != last }
    }

    private func takeActivation(into chain: inout Chain) {
        if take(ReLU.self, into: &chain) != nil {
            chain.ceiling = .infinity
        } else if take(ReLU6.self, into: &chain) != nil {
            chain.ceiling = 6
        } else if let clip = take(ClipLayer.self, into: &chain, where: { $0.minimum == 0 }) {
            chain.ceiling = clip.maximum
        }
    }

    /// What follows a convolution and is computed with its result while that is in cache.
    private func takeCurve(into chain: inout Chain) -> Epilogue.Curve? {
        if take(Swish.self, into: &chain) != nil { return .swish }
        return take(HardSwish.self, into: &chain) != nil ? .hardSwish : nil
    }

    /// Whether a normalization belongs to the convolution before it.
    private func followsConvolution(_ place: Int) -> Bool {
        let source = network.sources[place][0]
        return source >= 0 && network.nodes[source].layer is Convolution && readers[source].count == 1
            && isFixed(source) && isFrozen(source) == isFrozen(place)
    }

    /// Whether a node's parameters and statistics stay as they are and nobody asks for gradients of its result.
    private func isFixed(_ place: Int) -> Bool {
        !needsGradient[place] && (options.mode == .prediction || isFrozen(place) || !hasParameters(place))
    }

    private func hasParameters(_ place: Int) -> Bool {
        !network.nodes[place].layer.parameters(for: network.inputShapes(of: place)).isEmpty
    }

    private func isFrozen(_ place: Int) -> Bool { options.frozen.contains(network.nodes[place].name) }

    /// The groups as operations, each at the place of its last node.
    private func operations(_ groups: [Group], _ layout: ParameterLayout) -> [Operation] {
        let groups = groups.sorted { ($0.places.last ?? 0) < ($1.places.last ?? 0) }
        var makers = [-1: -1]
        return groups.enumerated().map { index, group in
            let nodes = group.places.map { network.nodes[$0] }
            let last = group.places[group.places.count - 1]
            makers[last] = index
            let inputs = group.sources.map { $0 < 0 ? network.input : network.shapes[$0] }
            return Operation(
                places: group.places, name: nodes.map(\.name).joined(separator: "+"),
                kind: type(of: nodes[0].layer).kind, kernel: group.kernel,
                sources: group.sources.map { source in
                    guard let maker = makers[source] else {
                        preconditionFailure("an operation reads what is made later")
                    }
                    return maker
                }, inputs: inputs, output: network.shapes[last],
                entries: group.places.flatMap { place in
                    network.nodes[place].layer.parameters(for: network.inputShapes(of: place))
                        .compactMap { layout["\(network.nodes[place].name).\($0.name)"] }
                },
                isFrozen: isFrozen(group.places[0]),
                algorithm: group.kernel.algorithm(
                    for: inputs, predicting: options.mode == .prediction ? options.batchSize : nil))
        }
    }
}
