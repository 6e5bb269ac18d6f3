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

    /// Where what tells labels apart is in `nodes`: the head, or at the very end a convolution of one pixel, which does so for each
    /// place of a picture; `nil` where there is neither, or where it reads the network's input.
    public var tunedPlace: Int? {
        let last = nodes.count - 1
        let isMap = (nodes[last].layer as? Convolution).map { $0.kernelSize == 1 && $0.stride == 1 && $0.groups == 1 }
        let place = isMap == true ? last : nodes.firstIndex { $0.name == headName }
        return place.flatMap { $0 > 0 ? $0 : nil }
    }

    /// How many numbers that layer reads of each place.
    public var headChannels: Int? { tunedPlace.map { inputShapes(of: $0)[0].channels } }

    /// The network as two: what computes the features that the layer at `tunedPlace` reads, and that layer with what follows it.
    ///
    /// Nodes keep their names, so the parameters of the parts are named as those of the whole.
    /// - Returns: `nil` where there is no such layer.
    public func splitAtHead() throws(NetworkError) -> (features: Network, head: Network)? {
        // It reads one node. All nodes before it are read by each other or by it, so it reads the last of them.
        guard let place = tunedPlace else { return nil }
        return try split(at: place)
    }

    /// The network as two: the nodes before a place where `isCut`, and those from there on.
    func split(at place: Int) throws(NetworkError) -> (features: Network, head: Network) {
        let rest = nodes[place...].map { node in
            let inputs = node.inputs.map { $0 == nodes[place - 1].name ? Network.inputName : $0 }
            return Node(name: node.name, layer: node.layer, inputs: inputs)
        }
        return (
            try Network(name: name, input: input, nodes: Array(nodes[..<place])),
            try Network(name: name, input: shapes[place - 1], nodes: rest)
        )
    }

    /// The same network with another number of outputs of its head, a dense layer or at the very end a convolution of one pixel.
    public func replacingHead(outputs: Int) throws(NetworkError) -> Network {
        var nodes = nodes
        let place = nodes.firstIndex { $0.name == headName } ?? nodes.count - 1
        let head = nodes[place]
        func replaced(by layer: any Layer) -> Node { Node(name: head.name, layer: layer, inputs: head.inputs) }
        switch head.layer {
        case let dense as Dense:
            nodes[place] = replaced(by: Dense(outputChannels: outputs, hasBias: dense.hasBias))
        case let map as Convolution where map.kernelSize == 1 && map.groups == 1:
            nodes[place] = replaced(
                by: Convolution(
                    outputChannels: outputs, kernelSize: 1, stride: map.stride, padding: map.padding,
                    dilation: map.dilation, hasBias: map.hasBias))
        default: break
        }
        return try Network(name: name, input: input, nodes: nodes)
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
    /// its own, the last. Nodes without parameters belong to the last block whose results are not smaller than theirs, and
    /// side branches that weigh an activation, as in squeeze and excitation, to the block of what they weigh.
    public var blocks: [Set<String>] {
        let head = headName
        let stages = stagePixels
        let pixels = nodes.indices.filter {
            nodes[$0].name != head && !nodes[$0].layer.parameters(for: inputShapes(of: $0)).isEmpty
        }.map { stages[$0] }
        let sizes = Set(pixels).sorted(by: >)
        var blocks = [Set<String>](repeating: [], count: max(sizes.count, 1))
        for (node, stage) in zip(nodes, stages) where node.name != head {
            blocks[sizes.lastIndex { $0 >= stage } ?? 0].insert(node.name)
        }
        return blocks.filter { !$0.isEmpty } + (head.map { [[$0]] } ?? [])
    }

    /// For each node the number of pixels of its result, or of what that is broadcast over further on.
    private var stagePixels: [Int] {
        var pixels = shapes.map(\.pixels)
        for (place, from) in sources.enumerated().reversed() {
            let isBroadcast = nodes[place].layer is Multiply || nodes[place].layer is Add
            for source in from where source >= 0 {
                // A result of as many pixels goes where its reader goes; one of fewer, if it is broadcast.
                guard shapes[source].pixels == shapes[place].pixels || isBroadcast else { continue }
                pixels[source] = max(pixels[source], pixels[place])
            }
        }
        return pixels
    }
}
