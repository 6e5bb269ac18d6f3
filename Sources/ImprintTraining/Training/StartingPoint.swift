internal import Imprint
internal import ImprintImages
internal import ImprintNetwork

extension ClassifierConfiguration {
    /// The network and the parameters that training starts from, and its trainable layers.
    struct StartingPoint {
        /// A network, or a part of one, with its parameters.
        struct Part {
            let network: Network
            let parameters: Parameters
        }

        /// The whole network with its initial parameters.
        let whole: Part
        /// The frozen part that computes the features once per image; nil if it is trainable, or if images are augmented.
        let features: Part?
        /// The part that runs in every step: the head if the features are cached, otherwise the whole network.
        let trained: Part
        /// The trainable layers of each stage.
        let stages: TrainingStages
        /// Factors of the learning rate by node.
        let learningRateFactors: [String: Float]
        /// Whether batch normalization uses and keeps its running statistics.
        let keepsStatistics: Bool
        let preprocessing: Preprocessing
        /// The digest of the base model, if there is one.
        let base: String?

        /// The number of parameters that are trainable in the last stage.
        var trainableParameterCount: Int {
            whole.parameters.layout.entries.reduce(0) {
                $1.parameter.role == .statistic || stages.lastFrozen.contains($1.node) ? $0 : $0 + $1.parameter.count
            }
        }

        /// Returns the parameters of the whole network with those of the trained part.
        func parameters(with trained: Parameters) throws -> Parameters {
            guard features != nil else { return trained }
            let parameters = try whole.parameters.copy()
            parameters.load(from: trained)
            return parameters
        }
    }

    /// Creates the starting point for some labels: a new network, or the base model with a head for these labels.
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
                whole: whole, features: nil, trained: whole, stages: .single, learningRateFactors: [:],
                keepsStatistics: false,
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
                guard let pooling = try network.withConcatPooling() else {
                    throw ImprintError.noAveragePooling(network: network.name)
                }
                (network, factors) = (pooling.network, pooling.scaleName)
            }
            let stages = TrainingStages(of: network, trains, epochs: hyperparameters.fineTuning.stageEpochs)
            guard hyperparameters.epochs > stages.lastStageStart else {
                throw ImprintError.invalidSetting(
                    name: "epochs", found: "\(hyperparameters.epochs)",
                    expected:
                        "at least \(stages.lastStageStart + 1), for \(stages.count) stages with "
                        + "\(hyperparameters.fineTuning.stageEpochs) in each except the last")
            }
            let parameters = try Parameters(network, seed: hyperparameters.seed)
            parameters.load(from: base.parameters)
            // A head for the same labels keeps its parameters; any other is initialized again.
            let isNew = labels != base.labels || head != base.network.headName || hyperparameters.poolsMaximum
            for entry in parameters.layout.entries where entry.node == head && isNew {
                parameters.draw(entry, seed: hyperparameters.seed)
            }
            if let factors, let count = parameters.layout[factors]?.parameter.count {
                parameters[factors] = Array(repeating: Network.initialMaximumScale, count: count)
            }
            let whole = StartingPoint.Part(network: network, parameters: parameters)
            let parts = trains == .head && hyperparameters.augmentation.names.isEmpty ? try whole.splitAtHead() : nil
            return StartingPoint(
                whole: whole, features: parts?.features, trained: parts?.head ?? whole, stages: stages,
                learningRateFactors: trains == .head
                    ? [:] : network.learningRateFactors(decay: hyperparameters.fineTuning.layerDecay),
                keepsStatistics: trains != .head && hyperparameters.fineTuning.keepsStatistics,
                preprocessing: base.preprocessing, base: try base.digest ?? base.tensorDigest())
        }
    }
}

extension ClassifierConfiguration.StartingPoint.Part {
    /// Splits the network into the layers before the head and the head; nil if the head is the whole network.
    fileprivate func splitAtHead() throws -> (features: Self, head: Self)? {
        func part(_ network: Network) throws -> Self {
            let partParameters = try Parameters(ParameterLayout(network))
            partParameters.load(from: parameters)
            return Self(network: network, parameters: partParameters)
        }
        return try network.splitAtHead().map { try (part($0.features), part($0.head)) }
    }
}

extension Network {
    /// Returns the network with a head for another number of labels and a softmax at its end; nil if it cannot have one.
    fileprivate func replacingHead(labels: Int) throws(NetworkError) -> Network? {
        guard headName != nil else { return try withNewHead(outputs: labels) }
        let network = try replacingHead(outputs: labels)
        guard let last = network.nodes.last, !(last.layer is Softmax) else { return network }
        let softmax = Node(name: "probabilities", layer: Softmax(), inputs: [last.name])
        return try Network(name: name, input: input, nodes: network.nodes + [softmax])
    }
}
