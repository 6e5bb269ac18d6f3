internal import Imprint
internal import ImprintImages
internal import ImprintNetwork

extension ClassifierConfiguration {
    /// What training begins with.
    struct StartingPoint {
        /// A network, or a part of one, and its numbers.
        struct Part {
            let network: Network
            let parameters: Parameters
        }

        /// The whole network, with the numbers that it begins with.
        let whole: Part
        /// What computes the features once for each image, where nothing of it changes and images are not varied.
        let features: Part?
        /// What runs in every step: the head where there are features, else the whole.
        let trained: Part
        /// What of it is trained when.
        let stages: TrainingStages
        /// Factors of the learning rate by node.
        let rateFactors: [String: Float]
        /// Whether norms leave their statistics as they are.
        let keepsStatistics: Bool
        let preprocessing: Preprocessing
        /// The digest of the base, if there is one.
        let base: String?

        /// How many numbers are trained, in the last stage at the latest.
        var trainedCount: Int {
            whole.parameters.layout.entries.reduce(0) {
                $1.parameter.role == .statistic || stages.last.contains($1.node) ? $0 : $0 + $1.parameter.count
            }
        }

        /// The whole network's numbers, with those of the trained part.
        func parameters(with trained: Parameters) throws -> Parameters {
            guard features != nil else { return trained }
            let parameters = try whole.parameters.copy()
            parameters.load(from: trained)
            return parameters
        }
    }

    /// Makes the network for so many labels: a new one, or the base with a head for them.
    func startingPoint(labels: [String]) throws -> StartingPoint {
        switch start {
        case .builtInBase:
            var configuration = self
            configuration.start = .base(try .shippedBase(), trains: .all)
            return try configuration.startingPoint(labels: labels)
        case .network(let name, let width):
            let network = try Network.named(
                name, labels: labels.count, inputSize: hyperparameters.inputSize, width: width)
            let whole = StartingPoint.Part(
                network: network, parameters: try Parameters(network, seed: hyperparameters.seed))
            return StartingPoint(
                whole: whole, features: nil, trained: whole, stages: .single, rateFactors: [:], keepsStatistics: false,
                preprocessing: Preprocessing(
                    width: network.input.width, height: network.input.height, channels: network.input.channels,
                    cropAndScale: hyperparameters.cropAndScale),
                base: nil)
        case .base(let base, let trains):
            guard var network = try base.network.replacingHead(labels: labels.count), let head = network.headName else {
                throw ImprintError.noHead(network: base.network.name)
            }
            var factors: String?
            if hyperparameters.poolsMaximum {
                guard let pooling = try network.poolingMaximum() else {
                    throw ImprintError.noAveragePooling(network: network.name)
                }
                (network, factors) = (pooling.network, pooling.factors)
            }
            let stages = TrainingStages(of: network, trains, epochs: hyperparameters.fineTuning.stageEpochs)
            guard hyperparameters.epochs > stages.lastBegins else {
                throw ImprintError.invalidSetting(
                    name: "epochs", found: "\(hyperparameters.epochs)",
                    expected:
                        "at least \(stages.lastBegins + 1), for \(stages.count) stages that last "
                        + "\(hyperparameters.fineTuning.stageEpochs) each but for the last")
            }
            let parameters = try Parameters(network, seed: hyperparameters.seed)
            parameters.load(from: base.parameters)
            // A head for the same labels goes on from where it was; any other is drawn again.
            let isNew = labels != base.labels || head != base.network.headName || hyperparameters.poolsMaximum
            for entry in parameters.layout.entries where entry.node == head && isNew {
                parameters.draw(entry, seed: hyperparameters.seed)
            }
            if let factors, let count = parameters.layout[factors]?.parameter.count {
                parameters[factors] = Array(repeating: Network.maximumFactor, count: count)
            }
            let whole = StartingPoint.Part(network: network, parameters: parameters)
            let parts = trains == .head && hyperparameters.augmentation.names.isEmpty ? try whole.splitAtHead() : nil
            return StartingPoint(
                whole: whole, features: parts?.features, trained: parts?.head ?? whole, stages: stages,
                rateFactors: trains == .head ? [:] : network.rateFactors(decay: hyperparameters.fineTuning.layerDecay),
                keepsStatistics: trains != .head && hyperparameters.fineTuning.keepsStatistics,
                preprocessing: base.preprocessing, base: try base.digest ?? base.tensorDigest())
        }
    }
}

extension ClassifierConfiguration.StartingPoint.Part {
    /// What comes before the head, and the head; nil if nothing comes before it.
    fileprivate func splitAtHead() throws -> (features: Self, head: Self)? {
        func part(_ network: Network) throws -> Self {
            let own = try Parameters(ParameterLayout(network))
            own.load(from: parameters)
            return Self(network: network, parameters: own)
        }
        return try network.splitAtHead().map { try (part($0.features), part($0.head)) }
    }
}

extension Network {
    /// The same network with a head for another number of labels, and a softmax at its end; nil if it can have none.
    fileprivate func replacingHead(labels: Int) throws(NetworkError) -> Network? {
        guard headName != nil else { return try withNewHead(outputs: labels) }
        let network = try replacingHead(outputs: labels)
        guard let last = network.nodes.last, !(last.layer is Softmax) else { return network }
        let softmax = Node(name: "probabilities", layer: Softmax(), inputs: [last.name])
        return try Network(name: name, input: input, nodes: network.nodes + [softmax])
    }
}
