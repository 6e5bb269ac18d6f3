/// Changes of low rank beside layers that stay as they are.
extension Network {
    /// The network as two parts: what stays as it is, and the last blocks and the head, beside whose layers `withAdapters(rank:)` puts
    /// changes.
    /// - Parameter blocks: How many blocks before the head belong to the second part, 0…`maximumAdaptedBlocks`; see `blocks`. More,
    ///   where nodes of these blocks read others than the one before them.
    /// - Returns: nil if there is no head.
    public func split(beforeLast blocks: Int) throws(NetworkError) -> (features: Network, head: Network)? {
        precondition((0...maximumAdaptedBlocks).contains(blocks), "\(blocks) blocks are more than the network has")
        guard var place = tunedPlace else { return nil }
        if blocks > 0 {
            let all = self.blocks
            let changed = all[(all.count - 1 - blocks)...].reduce(into: Set()) { $0.formUnion($1) }
            place = nodes.firstIndex { changed.contains($0.name) } ?? place
            while place > 1 && !isCut(place) { place -= 1 }
            guard place > 0, isCut(place) else { return nil }
        }
        return try split(at: place)
    }

    /// How many blocks before the head may be adapted: all but the first.
    public var maximumAdaptedBlocks: Int { headName == nil ? 0 : max(blocks.count - 2, 0) }

    /// Whether the nodes from `place` on read nothing of those before but the last.
    private func isCut(_ place: Int) -> Bool {
        sources[place...].allSatisfy { $0.allSatisfy { $0 >= place - 1 } }
    }

    /// What stands beside a layer in a network with adapters.
    public enum Adapter: Hashable, Sendable {
        /// The head has a whole layer of its kind beside it, of this name.
        case whole(node: String, change: String)
        /// Another layer has two beside it, one after the other, of these names: W + A·B.
        case factors(node: String, left: String, right: String)
    }

    /// The same network with further layers beside its own, whose results are added to theirs: beside the head one of its kind, beside
    /// other convolutions without groups and dense layers two, that divide a change of the weights into factors of low rank.
    ///
    /// y = x∗W + (x∗A)∗B, which is x∗(W + A·B) (Hu et al., "LoRA: Low-rank adaptation of large language models", 2021). Norms
    /// keep their statistics. Only the further layers are meant to be trained: all other nodes are `frozen`.
    /// - Parameter rank: How many numbers lie between A and B, ≥ 1.
    public func withAdapters(
        rank: Int
    ) throws(NetworkError) -> (network: Network, adapters: [Adapter], frozen: Set<String>) {
        precondition(rank >= 1, "a rank is at least 1, not \(rank)")
        let head = headName
        var adapters: [Adapter] = []
        var changed: [Node] = []
        var names: [String: String] = [:]
        for node in nodes {
            let inputs = node.inputs.map { names[$0] ?? $0 }
            changed.append(Node(name: node.name, layer: node.layer, inputs: inputs))
            let (left, right) = ("\(node.name).left", "\(node.name).right")
            var last: String
            switch node.layer {
            case _ where node.name == head:
                last = "\(node.name).change"
                changed.append(Node(name: last, layer: node.layer, inputs: inputs))
                adapters.append(.whole(node: node.name, change: last))
            case let layer as Convolution where layer.groups == 1:
                let first = Convolution(
                    outputChannels: rank, kernelSize: layer.kernelSize, stride: layer.stride, padding: layer.padding,
                    dilation: layer.dilation, hasBias: false)
                let second = Convolution(outputChannels: layer.outputChannels, kernelSize: 1, hasBias: false)
                changed.append(Node(name: left, layer: first, inputs: inputs))
                changed.append(Node(name: right, layer: second, inputs: [left]))
                adapters.append(.factors(node: node.name, left: left, right: right))
                last = right
            case let layer as Dense:
                changed.append(
                    Node(name: left, layer: Dense(outputChannels: rank, hasBias: false), inputs: inputs))
                changed.append(
                    Node(
                        name: right, layer: Dense(outputChannels: layer.outputChannels, hasBias: false), inputs: [left])
                )
                adapters.append(.factors(node: node.name, left: left, right: right))
                last = right
            default: continue
            }
            let sum = "\(node.name).sum"
            changed.append(Node(name: sum, layer: AddLayer(), inputs: [node.name, last]))
            names[node.name] = sum
        }
        let network = try Network(name: name, input: input, nodes: changed).keepingStatistics()
        return (network, adapters, Set(nodes.map(\.name)))
    }
}
