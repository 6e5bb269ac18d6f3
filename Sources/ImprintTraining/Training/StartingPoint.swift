internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
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
        let featureExtractor: Part?
        /// The part that runs in every step: the head if the features are cached, otherwise the whole network.
        let trainablePart: Part
        /// The trainable layers of each stage.
        let stages: TrainingStages
        /// Factors of the learning rate by node.
        let learningRateFactors: [String: Float]
        /// Whether batch normalization uses and keeps its running statistics.
        let freezesStatistics: Bool
        let preprocessing: Preprocessing
        /// The digest of the base model, if there is one.
        let baseDigest: String?
        /// The digest of an untrained network and its preprocessing, or nil if its name describes it.
        var networkDigest: String?

        /// The digest that distinguishes the starting point from others with the same name, or nil if there are none.
        var digest: String? { baseDigest ?? networkDigest }

        /// The number of parameters that are trainable in the last stage.
        var trainableParameterCount: Int {
            whole.parameters.layout.entries.reduce(0) {
                $1.parameter.role == .statistic || stages.lastFrozen.contains($1.node) ? $0 : $0 + $1.parameter.count
            }
        }

        /// Replaces the parameters of the head.
        func use(_ head: LogisticRegression.Head) {
            guard let name = whole.network.denseHeadName else {
                preconditionFailure("a base model must have a dense head")
            }
            for parameters in [whole.parameters, trainablePart.parameters] {
                parameters["\(name).weight"] = head.weights
                parameters["\(name).bias"] = head.bias
            }
        }

        /// Returns the parameters of the whole network, updated with the parameters of the trainable part.
        func parameters(with trainedParameters: Parameters) throws -> Parameters {
            guard featureExtractor != nil else { return trainedParameters }
            let parameters = try whole.parameters.copy()
            parameters.load(from: trainedParameters)
            return parameters
        }
    }

    /// Creates the starting point for some labels: a new network, or the base model with a head for these labels.
    /// - Parameter addsBias: Whether the head of a base model gets a bias if it has none, as the logistic regression of a recipe needs it.
    func startingPoint(labels: [String], addsBias: Bool = false) throws -> StartingPoint {
        switch start {
        case .automatic, .builtInBase:
            var configuration = self
            configuration.start = .base(try .builtInBase(), trainableLayers: .all)
            return try configuration.startingPoint(labels: labels)
        case .pretrained(let base, _):
            var configuration = self
            configuration.start = .base(base, trainableLayers: .head)
            return try configuration.startingPoint(labels: labels)
        case .network(let name, let width):
            let network = try Network.named(
                name, labels: labels.count, inputSize: hyperparameters.inputSize, width: width)
            return try untrained(
                network,
                Preprocessing(
                    width: network.input.width, height: network.input.height, channels: network.input.channels,
                    cropAndScale: hyperparameters.cropAndScale))
        case .untrained(let network, let preprocessing):
            try preprocessing.checkFits(network)
            guard let classifier = try network.classifying(labels: labels.count) else {
                throw ImprintError.noHead(network: network.name)
            }
            var start = try untrained(classifier, preprocessing)
            start.networkDigest = SHA256.hexadecimal(of: Array((try json(network) + json(preprocessing)).utf8))
            return start
        case .base(let base, let trainableLayers):
            return try fineTuned(base, trainableLayers, labels: labels, addsBias: addsBias)
        }
    }
}

extension ClassifierConfiguration {
    /// Returns the starting point of a network with random parameters.
    private func untrained(_ network: Network, _ preprocessing: Preprocessing) throws -> StartingPoint {
        let whole = StartingPoint.Part(
            network: network, parameters: try Parameters(network, seed: hyperparameters.seed))
        return StartingPoint(
            whole: whole, featureExtractor: nil, trainablePart: whole, stages: .single, learningRateFactors: [:],
            freezesStatistics: false, preprocessing: preprocessing, baseDigest: nil)
    }

    /// Returns the starting point of transfer learning from a base model, whose head is replaced if it does not fit the labels.
    private func fineTuned(
        _ base: ModelFile, _ trainableLayers: FineTuning.TrainableLayers, labels: [String], addsBias: Bool
    ) throws -> StartingPoint {
        let (network, head, maximumScaleName) = try networkForFineTuning(
            of: base, labelCount: labels.count, addsBias: addsBias)
        let stages = try trainingStages(of: network, trainableLayers)
        // A head for the same labels keeps its parameters; any other is initialized again.
        let isNew = labels != base.labels || head != base.network.denseHeadName || hyperparameters.poolsMaximum
        let parameters = try initialParameters(
            of: network, from: base, newHead: isNew ? head : nil, maximumScaleName: maximumScaleName)
        let whole = StartingPoint.Part(network: network, parameters: parameters)
        let parts =
            trainableLayers == .head && hyperparameters.augmentation.names.isEmpty ? try whole.splitAtHead() : nil
        return StartingPoint(
            whole: whole, featureExtractor: parts?.features, trainablePart: parts?.head ?? whole, stages: stages,
            learningRateFactors: trainableLayers == .head
                ? [:] : network.learningRateFactors(decay: hyperparameters.fineTuning.layerDecay),
            freezesStatistics: trainableLayers != .head && hyperparameters.fineTuning.freezesStatistics,
            preprocessing: base.preprocessing, baseDigest: try base.identity)
    }

    /// Returns the network of a base model with a head for some labels, and the name of the head.
    ///
    /// `maximumScaleName` is the parameter that scales the maxima of concat pooling; nil without concat pooling.
    private func networkForFineTuning(
        of base: ModelFile, labelCount: Int, addsBias: Bool
    ) throws -> (network: Network, head: String, maximumScaleName: String?) {
        guard base.head.isTrainable else {
            throw ImprintError.cannotTrainImportedDetector(network: base.network.name)
        }
        guard let network = try base.network.replacingHead(labels: labelCount, addsBias: addsBias),
            let head = network.denseHeadName
        else {
            throw ImprintError.noHead(network: base.network.name)
        }
        guard hyperparameters.poolsMaximum else { return (network, head, nil) }
        guard let pooling = try network.withConcatPooling() else {
            throw ImprintError.noAveragePooling(network: network.name)
        }
        return (pooling.network, head, pooling.scaleName)
    }

    /// Returns the trainable layers of each stage, after checking that there is an epoch for each.
    private func trainingStages(
        of network: Network, _ trainableLayers: FineTuning.TrainableLayers
    ) throws(ImprintError) -> TrainingStages {
        let stages = TrainingStages(of: network, trainableLayers, epochs: hyperparameters.fineTuning.stageEpochs)
        guard hyperparameters.epochs > stages.lastStageStart else {
            throw .invalidSetting(
                name: "epochs", found: "\(hyperparameters.epochs)",
                expected:
                    "at least \(stages.lastStageStart + 1), for \(stages.count) stages with "
                    + "\(hyperparameters.fineTuning.stageEpochs) in each except the last")
        }
        return stages
    }

    /// Returns the parameters of a base model, with random parameters in a new head.
    private func initialParameters(
        of network: Network, from base: ModelFile, newHead: String?, maximumScaleName: String?
    ) throws -> Parameters {
        let parameters = try Parameters(network, seed: hyperparameters.seed)
        parameters.load(from: base.parameters)
        for entry in parameters.layout.entries where entry.node == newHead {
            parameters.draw(entry, seed: hyperparameters.seed)
        }
        if let maximumScaleName, let count = parameters.layout[maximumScaleName]?.parameter.count {
            parameters[maximumScaleName] = Array(repeating: Network.initialMaximumScale, count: count)
        }
        return parameters
    }
}

extension Preprocessing {
    /// Checks that the values are valid, and that a photo has the size of a network's input.
    fileprivate func checkFits(_ network: Network) throws(ImprintError) {
        if let problem {
            throw .invalidSetting(name: "preprocessing", found: "invalid (\(problem))", expected: "valid values")
        }
        let shape = TensorShape(height: height, width: width, channels: channels)
        guard shape == network.input else {
            throw .invalidSetting(
                name: "preprocessing", found: "for an input of \(shape)",
                expected: "\(network.input), the input of the network \(network.name.debugDescription)")
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
    /// Returns the network if it ends in a softmax over the labels, otherwise with another head; nil if it cannot have one.
    fileprivate func classifying(labels: Int) throws(NetworkError) -> Network? {
        let classifies = nodes.last?.layer is Softmax && output == TensorShape(channels: labels)
        return classifies ? self : try replacingHead(labels: labels)
    }

    /// Returns the network with a head for another number of labels and a softmax at its end; nil if it cannot have one.
    fileprivate func replacingHead(labels: Int, addsBias: Bool = false) throws(NetworkError) -> Network? {
        guard denseHeadName != nil else { return try withDenseHead(outputs: labels) }
        let network = try resizingHead(outputs: labels, addsBias: addsBias)
        guard let last = network.nodes.last, !(last.layer is Softmax) else { return network }
        let softmax = Node(name: "probabilities", layer: Softmax(), inputs: [last.name])
        return try Network(name: name, input: input, nodes: network.nodes + [softmax])
    }
}
