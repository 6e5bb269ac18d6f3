internal import ImprintFormats
internal import ImprintImages
internal import ImprintNetwork

extension TrainingConfiguration {
    /// What training begins with.
    struct StartingPoint {
        let network: Network
        let parameters: Parameters
        /// The nodes that stay as they are.
        let frozen: Set<String>
        let preprocessing: Preprocessing
        /// The digest of the base, where there is one.
        let base: String?

        /// How many numbers are trained.
        var trainedCount: Int {
            parameters.layout.entries.reduce(0) {
                $1.parameter.role == .statistic || frozen.contains($1.node) ? $0 : $0 + $1.parameter.count
            }
        }
    }

    /// Makes the network for so many labels: a new one, or the base with a head for them.
    func startingPoint(labels: [String]) throws -> StartingPoint {
        switch start {
        case .network(let name, let width):
            let network = try Network.named(name, labels: labels.count, inputSize: inputSize, width: width)
            return StartingPoint(
                network: network, parameters: try Parameters(network, seed: seed), frozen: [],
                preprocessing: Preprocessing(
                    width: network.input.width, height: network.input.height, channels: network.input.channels,
                    cropAndScale: cropAndScale),
                base: nil)
        case .base(let base, let trains):
            guard let head = base.network.headName else { throw ImprintError.noHead(network: base.network.name) }
            let network = try base.network.replacingHead(labels: labels.count)
            let parameters = try Parameters(network, seed: seed)
            parameters.load(from: base.parameters)
            // A head for the same labels goes on from where it was; any other is drawn anew.
            for entry in parameters.layout.entries where entry.node == head && labels != base.labels {
                parameters.draw(entry, seed: seed)
            }
            return StartingPoint(
                network: network, parameters: parameters,
                frozen: trains == .all ? [] : Set(network.nodes.map(\.name)).subtracting([head]),
                preprocessing: base.preprocessing, base: try base.digest ?? base.tensorDigest())
        }
    }
}

extension Network {
    /// The same network with a head for another number of labels, and a softmax at its end.
    fileprivate func replacingHead(labels: Int) throws(NetworkError) -> Network {
        let head = headName
        var nodes = nodes.map { node in
            guard node.name == head, let dense = node.layer as? Dense else { return node }
            return Node(
                name: node.name, layer: Dense(outputChannels: labels, hasBias: dense.hasBias), inputs: node.inputs)
        }
        if let last = nodes.last, !(last.layer is Softmax) {
            nodes.append(Node(name: "probabilities", layer: Softmax(), inputs: [last.name]))
        }
        return try Network(name: name, input: input, nodes: nodes)
    }
}
