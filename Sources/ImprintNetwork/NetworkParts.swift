/// The parts of a network that tells labels apart, and forms of it to train.
extension Network {
    /// The network without a final softmax: what a classifier is trained as, since the loss contains the softmax.
    public func logits() throws(NetworkError) -> Network {
        guard nodes.count > 1, nodes[nodes.count - 1].layer is Softmax else { return self }
        return try Network(name: name, input: input, nodes: nodes.dropLast())
    }

    /// The name of the dense layer at the end, before a softmax: what tells the labels apart; nil if there is none.
    public var headName: String? {
        let last = nodes.last { !($0.layer is Softmax) }
        return last?.layer is Dense ? last?.name : nil
    }

    /// Where what tells labels apart is in `nodes`: the head, or at the very end a convolution of one pixel, which does so for each
    /// place of a picture; nil if there is neither, or where it reads the network's input.
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
    /// - Returns: nil if there is no such layer.
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

    /// The network up to what tells labels apart, then a new dense layer and a softmax.
    ///
    /// For networks that have no `headName`: those that end in a convolution whose result is averaged over the picture (SqueezeNet),
    /// or in sigmoids. The dense layer has the name of the layer that it takes the place of; what that reads is averaged over the
    /// picture before.
    /// - Returns: nil if the last layer with parameters is neither a dense layer nor a convolution, or is the first of all.
    public func withNewHead(outputs: Int) throws(NetworkError) -> Network? {
        let last = nodes.indices.last { !nodes[$0].layer.parameters(for: inputShapes(of: $0)).isEmpty }
        guard let place = last, place > 0, nodes[place].layer is Dense || nodes[place].layer is Convolution else {
            return nil
        }
        let old = nodes[place]
        var kept = Array(nodes[..<place])
        func add(_ name: String, _ layer: any Layer, _ inputs: [String]) -> String {
            var unused = name
            while kept.contains(where: { $0.name == unused }) { unused += "_" }
            kept.append(Node(name: unused, layer: layer, inputs: inputs))
            return unused
        }
        var inputs = old.inputs
        if inputShapes(of: place)[0].pixels > 1 { inputs = [add("\(old.name).mean", GlobalAveragePool(), inputs)] }
        let head = add(old.name, Dense(outputChannels: outputs), inputs)
        _ = add("probabilities", Softmax(), [head])
        return try Network(name: name, input: input, nodes: kept)
    }

    /// The same network with a head that reads the highest value of each channel besides its mean over the picture.
    ///
    /// [mean, factor · maximum], twice as many channels: what is small in a picture is lost in a mean, and maxima alone are noisy. The
    /// factor, one a channel, is trained, and should begin with `maximumFactor` (fast.ai's "concat pooling" has none, and normalizes
    /// instead).
    /// - Returns: The network and the name of the factors; nil if the head does not read means over the picture.
    public func poolingMaximum() throws(NetworkError) -> (network: Network, factors: String)? {
        guard let head = nodes.firstIndex(where: { $0.name == headName }) else { return nil }
        var place = sources[head][0]
        while place >= 0, nodes[place].layer is Flatten || nodes[place].layer is Dropout { place = sources[place][0] }
        guard place >= 0, shapes[place].pixels == 1, inputShapes(of: place)[0].pixels > 1,
            nodes[place].averagesAll(inputShapes(of: place)[0])
        else { return nil }
        let mean = nodes[place]
        let names = Set(nodes.map(\.name))
        func unused(_ name: String) -> String { names.contains(name) ? unused(name + "_") : name }
        let (maximum, scaled) = (unused("\(mean.name).maximum"), unused("\(mean.name).maximum.scaled"))
        let both = unused("\(mean.name).both")
        let added = [
            Node(name: maximum, layer: GlobalMaxPool(), inputs: mean.inputs),
            Node(name: scaled, layer: Affine(extent: .channels, hasShift: false), inputs: [maximum]),
            Node(name: both, layer: Concat(), inputs: [mean.name, scaled]),
        ]
        let rest = nodes[(place + 1)...].map { node in
            Node(name: node.name, layer: node.layer, inputs: node.inputs.map { $0 == mean.name ? both : $0 })
        }
        return (try Network(name: name, input: input, nodes: nodes[...place] + added + rest), "\(scaled).scale")
    }

    /// What the factors of maxima begin with: in networks with ReLU it makes them about as large as the means.
    public static let maximumFactor: Float = 0.2

    /// The same network with norms that normalize with their running statistics, and leave them as they are, in training too.
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
            let isBroadcast = nodes[place].layer is MultiplyLayer || nodes[place].layer is AddLayer
            for source in from where source >= 0 {
                // A result of as many pixels goes where its reader goes; one of fewer, if it is broadcast.
                guard shapes[source].pixels == shapes[place].pixels || isBroadcast else { continue }
                pixels[source] = max(pixels[source], pixels[place])
            }
        }
        return pixels
    }
}

extension Network.Node {
    /// Whether the layer gives the mean of each channel over a whole picture of this shape.
    fileprivate func averagesAll(_ input: TensorShape) -> Bool {
        switch layer {
        case is GlobalAveragePool: true
        case let mean as MeanLayer: mean.axes == [.height, .width]
        case let pool as AveragePool: pool.kernelSize == Size2D(height: input.height, width: input.width)
        default: false
        }
    }
}
