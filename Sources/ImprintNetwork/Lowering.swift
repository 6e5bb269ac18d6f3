/// One thing that a plan does: a node of the network, or several whose layers are computed together.
struct Operation {
    /// The nodes it stands for, in order; its result is the last one's.
    let places: [Int]
    /// Their names, joined.
    let name: String
    /// The kind of the first one's layer.
    let kind: String
    let layer: any Layer
    /// For each input the operation that makes it; −1 is the network's input.
    let sources: [Int]
    let inputs: [Shape]
    let output: Shape
    /// The parameters, in the order of `Layer.parameters(for:)`.
    let entries: [ParameterLayout.Entry]
    let isFrozen: Bool
    let algorithm: Algorithm
}

/// Turns a network's nodes into operations.
struct Lowering {
    private let network: Network
    private let options: Plan.Options
    /// For each node, the nodes that read its result.
    private let readers: [[Int]]

    static func operations(of network: Network, layout: ParameterLayout, options: Plan.Options) -> [Operation] {
        let lowering = Lowering(network, options)
        let groups =
            switch options.mode {
            case .prediction: lowering.singleNodes()
            case .training: lowering.normalizedActivations(lowering.singleNodes())
            }
        return lowering.operations(groups, layout)
    }

    private init(_ network: Network, _ options: Plan.Options) {
        self.network = network
        self.options = options
        var readers = [[Int]](repeating: [], count: network.nodes.count)
        for (place, sources) in network.sources.enumerated() {
            for source in sources where source >= 0 { readers[source].append(place) }
        }
        self.readers = readers
    }

    /// Nodes that become one operation: what computes them, and the nodes (−1: the network's input) that it reads.
    private struct Group {
        var places: [Int]
        var layer: any Layer
        var sources: [Int]
    }

    private func singleNodes() -> [Group] {
        network.nodes.indices.map {
            Group(places: [$0], layer: network.nodes[$0].layer, sources: network.sources[$0])
        }
    }

    /// Puts batch normalisations together with the sum, activation and pool that follow them, as far as nobody else reads
    /// what lies between.
    private func normalizedActivations(_ groups: [Group]) -> [Group] {
        var groups = groups
        var taken = Set<Int>()
        // Where two normalisations meet in a sum, the later one takes it: the other's result is there by then.
        for place in network.nodes.indices.reversed() {
            guard let normalization = network.nodes[place].layer as? BatchNormalization else { continue }
            var places = [place]
            func next() -> (place: Int, layer: any Layer)? {
                let last = places[places.count - 1]
                guard let reader = readers[last].first, readers[last].count == 1, !taken.contains(reader),
                    isFrozen(reader) == isFrozen(place)
                else { return nil }
                return (reader, network.nodes[reader].layer)
            }
            var shortcut: Int?
            if let (sum, layer) = next(), layer is Add, network.sources[sum].count == 2 {
                shortcut = network.sources[sum].first { $0 != place }
                places.append(sum)
            }
            var ceiling: Float?
            if let (activation, layer) = next() {
                if layer is ReLU { ceiling = .infinity }
                if layer is ReLU6 { ceiling = 6 }
                if ceiling != nil { places.append(activation) }
            }
            var isPooled = false
            if shortcut == nil, let (pool, layer) = next(), layer as? MaxPool == MaxPool(kernelSize: 2) {
                isPooled = true
                places.append(pool)
            }
            taken.formUnion(places)
            groups[place] = Group(
                places: places,
                layer: places.count == 1
                    ? normalization
                    : NormalizedActivation(
                        normalization, hasShortcut: shortcut != nil, ceiling: ceiling, isPooled: isPooled),
                sources: network.sources[place] + (shortcut.map { [$0] } ?? []))
        }
        let absorbed = Set(groups.flatMap { $0.places.dropFirst() })
        return groups.filter { !absorbed.contains($0.places[0]) }
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
                kind: type(of: nodes[0].layer).kind, layer: group.layer,
                sources: group.sources.compactMap { makers[$0] }, inputs: inputs, output: network.shapes[last],
                entries: group.layer.parameters(for: inputs).compactMap { layout["\(nodes[0].name).\($0.name)"] },
                isFrozen: isFrozen(last), algorithm: group.layer.algorithm(for: inputs))
        }
    }
}
