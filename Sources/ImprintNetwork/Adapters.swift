/// Low-rank adapters (LoRA) beside frozen layers.
extension Network {
    /// Splits the network into a frozen feature extractor and the tail, which can be adapted: the last blocks and the head.
    ///
    /// The tail begins earlier if its nodes read more than one node of the feature extractor.
    /// - Parameter blocks: The number of blocks before the head that belong to the tail, 0…`maximumAdaptedBlocks`; see `blocks`.
    /// - Returns: nil if the network has no head, or cannot be split there.
    package func split(beforeLast blocks: Int) throws(NetworkError) -> (features: Network, tail: Network)? {
        precondition(
            (0...maximumAdaptedBlocks).contains(blocks), "blocks is \(blocks), expected 0 to \(maximumAdaptedBlocks)")
        guard var index = headIndex else { return nil }
        if blocks > 0 {
            let all = self.blocks
            let adapted = all[(all.count - 1 - blocks)...].reduce(into: Set()) { $0.formUnion($1) }
            index = nodes.firstIndex { adapted.contains($0.name) } ?? index
            while index > 1 && !isCut(index) { index -= 1 }
            guard index > 0, isCut(index) else { return nil }
        }
        return try split(at: index)
    }

    /// The largest number of blocks before the head that can be adapted: all but the first.
    package var maximumAdaptedBlocks: Int { denseHeadName == nil ? 0 : max(blocks.count - 2, 0) }

    /// Whether the node before `index` is the only earlier node that the nodes from `index` on read.
    private func isCut(_ index: Int) -> Bool {
        sources[index...].allSatisfy { $0.allSatisfy { $0 >= index - 1 } }
    }

    /// The nodes that adapt one layer of a network with adapters.
    package enum Adapter: Hashable, Sendable {
        /// The node `delta` adapts the head, with a layer of the same kind and size.
        case fullRank(node: String, delta: String)
        /// The nodes `left` and `right`, one after the other, adapt another layer: W + A·B.
        case lowRank(node: String, left: String, right: String)
    }

    /// Returns the network with trainable adapters whose outputs are added to those of the adapted layers.
    ///
    /// The head gets a second layer of its kind. Other dense layers and convolutions without groups get a low-rank adapter:
    /// y = x∗W + (x∗A)∗B, which is x∗(W + A·B) (Hu et al., "LoRA: Low-rank adaptation of large language models", 2021). Batch
    /// normalization uses its running statistics and does not update them.
    /// - Parameter rank: The number of channels between A and B, ≥ 1.
    /// - Returns: The network, its adapters, and the names of the original nodes. Pass these names to `ExecutionPlan.Options.frozen` to
    ///   train only the adapters.
    package func withAdapters(
        rank: Int
    ) throws(NetworkError) -> (network: Network, adapters: [Adapter], frozen: Set<String>) {
        precondition(rank >= 1, "rank is \(rank), expected at least 1")
        let head = denseHeadName
        var adapters: [Adapter] = []
        var adapted: [Node] = []
        var names: [String: String] = [:]
        for node in nodes {
            let inputs = node.inputs.map { names[$0] ?? $0 }
            adapted.append(Node(name: node.name, layer: node.layer, inputs: inputs))
            let (left, right) = ("\(node.name).left", "\(node.name).right")
            var last: String
            switch node.layer {
            case _ where node.name == head:
                last = "\(node.name).change"
                adapted.append(Node(name: last, layer: node.layer, inputs: inputs))
                adapters.append(.fullRank(node: node.name, delta: last))
            case let layer as Convolution where layer.groups == 1:
                let first = Convolution(
                    outputChannels: rank, kernelSize: layer.kernelSize, stride: layer.stride, padding: layer.padding,
                    dilation: layer.dilation, hasBias: false)
                let second = Convolution(outputChannels: layer.outputChannels, kernelSize: 1, hasBias: false)
                adapted.append(Node(name: left, layer: first, inputs: inputs))
                adapted.append(Node(name: right, layer: second, inputs: [left]))
                adapters.append(.lowRank(node: node.name, left: left, right: right))
                last = right
            case let layer as Dense:
                adapted.append(
                    Node(name: left, layer: Dense(outputChannels: rank, hasBias: false), inputs: inputs))
                adapted.append(
                    Node(
                        name: right, layer: Dense(outputChannels: layer.outputChannels, hasBias: false), inputs: [left])
                )
                adapters.append(.lowRank(node: node.name, left: left, right: right))
                last = right
            default: continue
            }
            let sum = "\(node.name).sum"
            adapted.append(Node(name: sum, layer: AddLayer(), inputs: [node.name, last]))
            names[node.name] = sum
        }
        let network = try Network(name: name, input: input, nodes: adapted).withFrozenStatistics()
        return (network, adapters, Set(nodes.map(\.name)))
    }
}
