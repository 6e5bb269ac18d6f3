/// The head and the blocks of a network, and variants of the network for training.
extension Network {
    /// Returns the network without a final softmax or sigmoid, for training: `SoftmaxCrossEntropy` contains the softmax, and
    /// `BinaryCrossEntropy` the sigmoid.
    /// - Throws: `NetworkError` if the remaining nodes do not form a valid network.
    public func logits() throws(NetworkError) -> Network {
        let last = nodes[nodes.count - 1].layer
        guard nodes.count > 1, last is Softmax || last is Sigmoid else { return self }
        return try Network(name: name, input: input, nodes: nodes.dropLast())
    }

    /// Returns the network with a sigmoid instead of its final softmax, as for a multi-label classifier; the parameters stay the same.
    package func endingInSigmoid() throws(NetworkError) -> Network {
        guard let last = nodes.last, last.layer is Softmax else {
            preconditionFailure("the network \(name) does not end in a softmax")
        }
        let sigmoid = Node(name: "probabilities", layer: Sigmoid(), inputs: last.inputs)
        return try Network(name: name, input: input, nodes: nodes.dropLast() + [sigmoid])
    }

    /// The name of a dense head, the dense layer at the end or before a final softmax, or nil without one.
    ///
    /// `headIndex` also finds the head of a detector.
    package var denseHeadName: String? {
        let last = nodes.last { !($0.layer is Softmax) }
        return last?.layer is Dense ? last?.name : nil
    }

    /// The name of the dense layer or convolution whose weights and biases scale the input of the final softmax.
    ///
    /// Between this layer and the softmax, there are only layers f with f(c · x) = c · f(x) for c > 0, such as ReLU and pooling. So if the
    /// weights and biases are divided by a number, the logits are, too. nil without a final softmax or such a layer.
    package var logitLayerName: String? {
        guard nodes[nodes.count - 1].layer is Softmax else { return nil }
        // Every node leads to the softmax. Here, each layer has one input, so no other node reads its output.
        var index = sources[nodes.count - 1][0]
        while index >= 0, nodes[index].scalesWithInput { index = sources[index][0] }
        guard index >= 0, nodes[index].layer is Dense || nodes[index].layer is Convolution else { return nil }
        return nodes[index].name
    }

    /// The index in `nodes` of the head: the node `denseHeadName`, or the 1x1 convolution of a detector's heat maps.
    ///
    /// The heat maps are the output of the network, or the first part of it if the network also predicts boxes. nil if the network
    /// has no head, or if the head reads the network's input.
    package var headIndex: Int? { headPosition.flatMap { $0 > 0 ? $0 : nil } }

    /// The index in `nodes` of the head, even if the head reads the network's input, as in the part that `splitAtHead()` returns.
    private var headPosition: Int? {
        let last = nodes.count - 1
        func isMap(_ index: Int) -> Bool {
            (nodes[index].layer as? Convolution).map { $0.kernelSize == 1 && $0.stride == 1 && $0.groups == 1 } ?? false
        }
        let regressesBoxes =
            last >= 2 && nodes[last].layer is Concat
            && nodes[last].inputs == [nodes[last - 2].name, nodes[last - 1].name]
            && isMap(last - 2) && isMap(last - 1) && nodes[last - 2].inputs == nodes[last - 1].inputs
        return regressesBoxes ? last - 2 : isMap(last) ? last : nodes.firstIndex { $0.name == denseHeadName }
    }

    /// The number of input channels of the node at `headIndex`.
    package var headChannels: Int? { headIndex.map { inputShapes(of: $0)[0].channels } }

    /// Splits the network at `headIndex` into a feature extractor and a head.
    ///
    /// Nodes keep their names, so parameters have the same names in the network and in its parts.
    /// - Returns: nil if the network has no head.
    package func splitAtHead() throws(NetworkError) -> (features: Network, head: Network)? {
        // The head reads one node. Every earlier node is read by an earlier node or the head, so the head reads the last of them.
        guard let index = headIndex else { return nil }
        let (features, head) = try split(at: index)
        return (features, head)
    }

    /// Splits the network into the nodes before `index` and the tail, which may read only the last node of the first part.
    func split(at index: Int) throws(NetworkError) -> (features: Network, tail: Network) {
        let tail = nodes[index...].map { node in
            let inputs = node.inputs.map { $0 == nodes[index - 1].name ? Network.inputName : $0 }
            return Node(name: node.name, layer: node.layer, inputs: inputs)
        }
        return (
            try Network(name: name, input: input, nodes: Array(nodes[..<index])),
            try Network(name: name, input: shapes[index - 1], nodes: tail)
        )
    }

    /// Returns the network with another number of outputs; its head remains a dense layer or a 1x1 convolution for heat maps.
    ///
    /// The number of box regression channels does not change. `withDenseHead(outputs:)` replaces the head by one of another kind.
    /// - Parameters:
    ///   - outputs: The number of outputs of the head, without box regression.
    ///   - addsBias: Whether a dense layer gets a bias if it has none.
    package func resizingHead(outputs: Int, addsBias: Bool = false) throws(NetworkError) -> Network {
        var nodes = nodes
        let index = headPosition ?? nodes.count - 1
        let head = nodes[index]
        func replaced(by layer: any Layer) -> Node { Node(name: head.name, layer: layer, inputs: head.inputs) }
        switch head.layer {
        case let dense as Dense:
            nodes[index] = replaced(by: Dense(outputChannels: outputs, hasBias: dense.hasBias || addsBias))
        case let convolution as Convolution where convolution.kernelSize == 1 && convolution.groups == 1:
            nodes[index] = replaced(
                by: Convolution(
                    outputChannels: outputs, kernelSize: 1, stride: convolution.stride, padding: convolution.padding,
                    dilation: convolution.dilation, hasBias: convolution.hasBias))
        default: break
        }
        return try Network(name: name, input: input, nodes: nodes)
    }

    /// Returns the detector network with more heat maps, which a separate layer computes.
    ///
    /// The other layers do not change, so the results of their matrix products stay bitwise equal. The added heat maps follow those of the
    /// head in the output.
    /// - Parameter count: The number of added heat maps.
    /// - Returns: The network, and the name of the added layer; nil if the head is not a convolution.
    package func addingHeatMaps(_ count: Int) throws(NetworkError) -> (network: Network, name: String)? {
        guard let index = headIndex, nodes[index].layer is Convolution else { return nil }
        let name = nodes.unusedName("\(nodes[index].name).added")
        let head = nodes[index].name
        let added = Node(
            name: name, layer: Convolution(outputChannels: count, kernelSize: 1), inputs: nodes[index].inputs)
        // A concatenation after the head joins the heat maps and the boxes.
        let output = nodes[(index + 1)...].last
        let joined = Node(
            name: output?.name ?? nodes.unusedName("\(head).output"), layer: Concat(),
            inputs: [head, name] + (output?.inputs.dropFirst() ?? []))
        return (
            try Network(
                name: self.name, input: input,
                nodes: nodes[...index] + [added] + nodes[(index + 1)...].dropLast() + [joined]),
            name
        )
    }

    /// Returns the network with its last layer with parameters, and all later nodes, replaced by a dense head and a softmax.
    ///
    /// Use it for networks without a dense head: those that end in a convolution and a global average (SqueezeNet) or in sigmoids. The
    /// dense layer has the name of the layer that it replaces. A global average pool precedes it if its input has more than one pixel.
    /// - Returns: nil if the last layer with parameters is neither a dense layer nor a convolution, or is the first node.
    package func withDenseHead(outputs: Int) throws(NetworkError) -> Network? {
        // The heat maps of a detector are its head, even if box regression follows them.
        let last = headIndex ?? nodes.indices.last { !nodes[$0].layer.parameters(for: inputShapes(of: $0)).isEmpty }
        guard let index = last, index > 0, nodes[index].layer is Dense || nodes[index].layer is Convolution else {
            return nil
        }
        let old = nodes[index]
        var kept = Array(nodes[..<index])
        func add(_ name: String, _ layer: any Layer, _ inputs: [String]) -> String {
            let unused = kept.unusedName(name)
            kept.append(Node(name: unused, layer: layer, inputs: inputs))
            return unused
        }
        var inputs = old.inputs
        if inputShapes(of: index)[0].pixels > 1 { inputs = [add("\(old.name).mean", GlobalAveragePool(), inputs)] }
        let head = add(old.name, Dense(outputChannels: outputs), inputs)
        _ = add("probabilities", Softmax(), [head])
        return try Network(name: name, input: input, nodes: kept)
    }

    /// Returns the network with concat pooling: the head reads the global maximum of each channel besides its global average.
    ///
    /// The head reads [mean, scale · maximum], twice as many channels. The mean alone loses small objects, and the maximum alone is noisy.
    /// The trainable scale, one per channel, should be initialized to `initialMaximumScale`. (The concat pooling of fastai has no scale;
    /// it normalizes instead.)
    /// - Returns: The network and the name of the scale parameter; nil if the head does not read a global average.
    package func withConcatPooling() throws(NetworkError) -> (network: Network, scaleName: String)? {
        guard let head = nodes.firstIndex(where: { $0.name == denseHeadName }),
            let index = globalAverageIndex(before: sources[head][0])
        else { return nil }
        let mean = nodes[index]
        let maximum = nodes.unusedName("\(mean.name).maximum")
        let scaled = nodes.unusedName("\(mean.name).maximum.scaled")
        let both = nodes.unusedName("\(mean.name).both")
        let added = [
            Node(name: maximum, layer: GlobalMaxPool(), inputs: mean.inputs),
            Node(name: scaled, layer: Affine(extent: .channels, hasShift: false), inputs: [maximum]),
            Node(name: both, layer: Concat(), inputs: [mean.name, scaled]),
        ]
        let rest = nodes[(index + 1)...].map { node in
            Node(name: node.name, layer: node.layer, inputs: node.inputs.map { $0 == mean.name ? both : $0 })
        }
        return (try Network(name: name, input: input, nodes: nodes[...index] + added + rest), "\(scaled).scale")
    }

    /// Returns the index of the global average whose output, perhaps flattened, is the output of the node at `index`.
    private func globalAverageIndex(before index: Int) -> Int? {
        var index = index
        while index >= 0, nodes[index].layer is Flatten || nodes[index].layer is Dropout { index = sources[index][0] }
        guard index >= 0, shapes[index].pixels == 1, inputShapes(of: index)[0].pixels > 1,
            nodes[index].isGlobalAverage(over: inputShapes(of: index)[0])
        else { return nil }
        return index
    }

    /// Returns the part of the network that computes the feature map whose global average is the network's output.
    /// - Returns: nil if the output is not a global average, or if the map is the network's input.
    package func beforeGlobalAverage() throws(NetworkError) -> Network? {
        guard let index = globalAverageIndex(before: nodes.count - 1), sources[index][0] == index - 1, index > 0 else {
            return nil
        }
        return try Network(name: name, input: input, nodes: Array(nodes[..<index]))
    }

    /// The initial scale of `withConcatPooling()`: in networks with ReLU, scaled maxima are about as large as means.
    package static let initialMaximumScale: Float = 0.2

    /// Returns the network with batch normalization that uses its running statistics, and does not update them, also in training.
    ///
    /// Scales and shifts remain trainable.
    package func withFrozenStatistics() throws(NetworkError) -> Network {
        let nodes = nodes.map { node in
            guard let norm = node.layer as? BatchNormalization else { return node }
            let keeping = BatchNormalization(
                momentum: norm.momentum, epsilon: norm.epsilon, usesRunningStatistics: true)
            return Node(name: node.name, layer: keeping, inputs: node.inputs)
        }
        return try Network(name: name, input: input, nodes: nodes)
    }

    /// The names of the nodes of each block, from the input to the head.
    ///
    /// A block has the layers whose outputs have the same number of pixels. The last block has only the head.
    /// Nodes without parameters belong to the last block whose outputs are not smaller than theirs. Side branches that scale an
    /// activation, as in squeeze-and-excitation, belong to the block of that activation.
    package var blocks: [Set<String>] {
        let head = denseHeadName
        let blockPixels = blockPixels
        let pixels = nodes.indices.filter {
            nodes[$0].name != head && !nodes[$0].layer.parameters(for: inputShapes(of: $0)).isEmpty
        }.map { blockPixels[$0] }
        let sizes = Set(pixels).sorted(by: >)
        var blocks = [Set<String>](repeating: [], count: max(sizes.count, 1))
        for (node, pixels) in zip(nodes, blockPixels) where node.name != head {
            blocks[sizes.lastIndex { $0 >= pixels } ?? 0].insert(node.name)
        }
        return blocks.filter { !$0.isEmpty } + (head.map { [[$0]] } ?? [])
    }

    /// For each node, the number of pixels of its output, or of the larger activation that its output is broadcast over.
    private var blockPixels: [Int] {
        var pixels = shapes.map(\.pixels)
        for (index, inputs) in sources.enumerated().reversed() {
            let isBroadcast = nodes[index].layer is MultiplyLayer || nodes[index].layer is AddLayer
            for source in inputs where source >= 0 {
                // A node belongs to the block of its reader if both outputs have as many pixels, or if its output is broadcast.
                guard shapes[source].pixels == shapes[index].pixels || isBroadcast else { continue }
                pixels[source] = max(pixels[source], pixels[index])
            }
        }
        return pixels
    }
}

extension [Network.Node] {
    /// Returns `name` if no node has it; otherwise, the name followed by as many underscores as needed.
    func unusedName(_ name: String) -> String {
        contains { $0.name == name } ? unusedName(name + "_") : name
    }
}

extension Network.Node {
    /// Whether the layer has one input and f(c · x) = c · f(x) for c > 0 in predictions.
    fileprivate var scalesWithInput: Bool {
        switch layer {
        case is ReLU, is LeakyReLU, is GlobalAveragePool, is AveragePool, is MeanLayer, is GlobalMaxPool, is MaxPool,
            is Flatten, is Dropout:
            true
        default: false
        }
    }

    /// Returns whether the layer averages each channel over all pixels of an input of this shape.
    fileprivate func isGlobalAverage(over input: TensorShape) -> Bool {
        switch layer {
        case is GlobalAveragePool: true
        case let mean as MeanLayer: mean.axes == [.height, .width]
        case let pool as AveragePool: pool.kernelSize == Size2D(height: input.height, width: input.width)
        default: false
        }
    }
}
