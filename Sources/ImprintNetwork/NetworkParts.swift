/// The parts of a network that tells labels apart, and forms of it to train.
extension Network {
    /// The network without a final softmax: what a classifier is trained as, since the loss contains the softmax.
    public func logits() throws(NetworkError) -> Network {
        guard nodes.count > 1, nodes[nodes.count - 1].layer is Softmax else { return self }
        return try Network(name: name, input: input, nodes: nodes.dropLast())
    }

    /// The name of the dense layer at the end, before a softmax: what tells the labels apart; `nil` where there is none.
    public var headName: String? {
        let last = nodes.last { !($0.layer is Softmax) }
        return last?.layer is Dense ? last?.name : nil
    }

    /// The network as two: what computes the features that the head reads, and the head with what follows it.
    ///
    /// Nodes keep their names, so the parameters of the parts are named as those of the whole.
    /// - Returns: `nil` where there is no head, or where it reads the network's input.
    public func splitAtHead() throws(NetworkError) -> (features: Network, head: Network)? {
        guard let place = nodes.firstIndex(where: { $0.name == headName }), place > 0 else { return nil }
        // A dense layer reads one node. All nodes before it are read by each other or by it, so it reads the last of them.
        let head = Node(name: nodes[place].name, layer: nodes[place].layer, inputs: [Network.inputName])
        return (
            try Network(name: name, input: input, nodes: Array(nodes[..<place])),
            try Network(name: name, input: shapes[place - 1], nodes: [head] + nodes[(place + 1)...])
        )
    }

    /// The same network with norms that normalise with their running statistics, and leave them as they are, in training too.
    ///
    /// Their scales and shifts are trained as before.
    public func keepingStatistics() throws(NetworkError) -> Network {
        let nodes = nodes.map { node in
            guard let norm = node.layer as? BatchNormalization else { return node }
            let keeping = BatchNormalization(
                momentum: norm.momentum, epsilon: norm.epsilon, usesRunningStatistics: true)
            return Node(name: node.name, layer: keeping, inputs: node.inputs)
        }
        return try Network(name: name, input: input, nodes: nodes)
    }

    /// The names of the nodes in blocks, from the input to the head.
    ///
    /// A block is what many networks call a stage: the layers whose results have the same number of pixels. The head is a block of
    /// its own, the last. Nodes without parameters belong to the last block whose results are not smaller than theirs.
    public var blocks: [Set<String>] {
        let head = headName
        let pixels = nodes.indices.filter {
            nodes[$0].name != head && !nodes[$0].layer.parameters(for: inputShapes(of: $0)).isEmpty
        }.map { shapes[$0].pixels }
        let sizes = Set(pixels).sorted(by: >)
        var blocks = [Set<String>](repeating: [], count: max(sizes.count, 1))
        for (node, shape) in zip(nodes, shapes) where node.name != head {
            blocks[sizes.lastIndex { $0 >= shape.pixels } ?? 0].insert(node.name)
        }
        return blocks.filter { !$0.isEmpty } + (head.map { [[$0]] } ?? [])
    }
}
