internal import ImprintImages
internal import ImprintNetwork

// Version 1 stored single values instead of the hyperparameters. They are read if there are no hyperparameters. They are still written, so that
// version 1 can read the record of a classifier. It cannot read the record of a detector, which lacks the values of SGD that version 1 requires.
extension TrainingRecord {
    private enum CodingKeys: String, CodingKey {
        case hyperparameters, foundLearningRate, dataDigest, trainingImages, validationImages
        // The keys of version 1.
        case classWeights = "labelWeights"
        case trainableLayers = "trains"
        case history, keptEpoch, startAccuracy, precisionRecall, thresholds, calibration, trainedModel
        // Values that version 2 reads from the hyperparameters.
        case seed, epochs, batchSize, optimizer, adamW, schedule, labelSmoothing, augmentations, averageDecay,
            fineTuning
    }

    /// The optimizer of version 1: SGD with its learning rate.
    private struct VersionOneSGD: Codable {
        var learningRate: Float
        var momentum: Float
        var nesterov: Bool
        var weightDecay: Float
        var gradientClipping: Float?
    }

    /// The random seed.
    public var seed: UInt64 {
        switch hyperparameters {
        case .classifier(let values): values.seed
        case .detector(let values): values.seed
        }
    }

    /// The planned number of epochs, or of phases.
    public var epochs: Int {
        switch hyperparameters {
        case .classifier(let values): values.epochs
        case .detector(let values): values.phases?.count ?? values.epochs
        }
    }

    /// The fine-tuning of the base model, if more than its head was trainable.
    public var fineTuning: FineTuning? {
        guard case .classifier(let values) = hyperparameters, let trainableLayers, trainableLayers != .head else {
            return nil
        }
        return values.fineTuning
    }

    /// Reads a record.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        foundLearningRate = try values.decodeIfPresent(Float.self, forKey: .foundLearningRate)
        dataDigest = try values.decodeIfPresent(String.self, forKey: .dataDigest)
        trainingImages = try values.decode([String: Int].self, forKey: .trainingImages)
        validationImages = try values.decode([String: Int].self, forKey: .validationImages)
        classWeights = try values.decodeIfPresent([String: Float].self, forKey: .classWeights)
        trainableLayers = try values.decodeIfPresent(FineTuning.TrainableLayers.self, forKey: .trainableLayers)
        history = try values.decode([EpochMetrics].self, forKey: .history)
        keptEpoch = try values.decodeIfPresent(Int.self, forKey: .keptEpoch)
        startAccuracy = try values.decodeIfPresent(Float.self, forKey: .startAccuracy)
        precisionRecall = try values.decode([String: [PrecisionRecallPoint]].self, forKey: .precisionRecall)
        thresholds = try values.decodeIfPresent([String: Double].self, forKey: .thresholds)
        calibration = try values.decodeIfPresent(Calibration.self, forKey: .calibration)
        trainedModel = try values.decodeIfPresent(String.self, forKey: .trainedModel)
        if let known = try values.decodeIfPresent(Hyperparameters.self, forKey: .hyperparameters) {
            hyperparameters = known
        } else {
            hyperparameters = try Self.versionOne(values, classWeights: classWeights)
        }
    }

    private static func versionOne(
        _ values: KeyedDecodingContainer<CodingKeys>, classWeights: [String: Float]?
    ) throws -> Hyperparameters {
        let seed = try values.decode(UInt64.self, forKey: .seed)
        let epochs = try values.decode(Int.self, forKey: .epochs)
        let batchSize = try values.decode(Int.self, forKey: .batchSize)
        let emaDecay = try values.decodeIfPresent(Float.self, forKey: .averageDecay)
        if let adamW = try values.decodeIfPresent(AdamW.Options.self, forKey: .adamW) {
            var detector = DetectorHyperparameters()
            detector.seed = seed
            detector.epochs = epochs
            detector.batchSize = batchSize
            detector.optimizer = adamW
            if let emaDecay { detector.emaDecay = emaDecay }
            return .detector(detector)
        }
        let sgd = try values.decode(VersionOneSGD.self, forKey: .optimizer)
        var classifier = ClassifierHyperparameters()
        classifier.seed = seed
        classifier.epochs = epochs
        classifier.batchSize = batchSize
        classifier.emaDecay = emaDecay
        classifier.learningRate = sgd.learningRate
        classifier.momentum = sgd.momentum
        classifier.weightDecay = sgd.weightDecay
        classifier.gradientClipping = sgd.gradientClipping
        classifier.schedule = try values.decode(LearningRateSchedule.self, forKey: .schedule).shape
        classifier.labelSmoothing = try values.decode(Float.self, forKey: .labelSmoothing)
        classifier.classWeights = classWeights == nil ? .none : .automatic
        let names = try values.decode([String].self, forKey: .augmentations)
        classifier.augmentation = Augmentation(Set(names.compactMap(Augmentation.Kind.init)))
        if let fineTuning = try values.decodeIfPresent(FineTuning.self, forKey: .fineTuning) {
            classifier.fineTuning = fineTuning
        }
        return .classifier(classifier)
    }

    /// Returns the number of warm-up steps: the first epoch of a run of several epochs.
    private func warmUpSteps(_ classifier: ClassifierHyperparameters) -> Int {
        // Wraps around instead of trapping, because the values may come from a damaged file.
        let photoCount = trainingImages.values.reduce(0, &+)
        guard classifier.epochs > 1, classifier.batchSize > 0, photoCount > 0 else { return 0 }
        return (photoCount - 1) / classifier.batchSize + 1
    }

    /// Writes the record.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(hyperparameters, forKey: .hyperparameters)
        try values.encodeIfPresent(foundLearningRate, forKey: .foundLearningRate)
        try values.encodeIfPresent(dataDigest, forKey: .dataDigest)
        try values.encode(trainingImages, forKey: .trainingImages)
        try values.encode(validationImages, forKey: .validationImages)
        try values.encodeIfPresent(classWeights, forKey: .classWeights)
        try values.encodeIfPresent(trainableLayers, forKey: .trainableLayers)
        try values.encode(history, forKey: .history)
        try values.encodeIfPresent(keptEpoch, forKey: .keptEpoch)
        try values.encodeIfPresent(startAccuracy, forKey: .startAccuracy)
        try values.encode(precisionRecall, forKey: .precisionRecall)
        try values.encodeIfPresent(thresholds, forKey: .thresholds)
        try values.encodeIfPresent(calibration, forKey: .calibration)
        try values.encodeIfPresent(trainedModel, forKey: .trainedModel)
        try values.encode(seed, forKey: .seed)
        try values.encode(epochs, forKey: .epochs)
        switch hyperparameters {
        case .classifier(let classifier):
            try values.encode(classifier.batchSize, forKey: .batchSize)
            try values.encode(
                VersionOneSGD(
                    learningRate: foundLearningRate ?? classifier.learningRate ?? 0, momentum: classifier.momentum,
                    nesterov: true,
                    weightDecay: classifier.weightDecay, gradientClipping: classifier.gradientClipping),
                forKey: .optimizer)
            try values.encode(
                LearningRateSchedule(classifier.schedule, warmUpSteps: warmUpSteps(classifier)), forKey: .schedule)
            try values.encode(classifier.labelSmoothing, forKey: .labelSmoothing)
            try values.encode(classifier.augmentation.names, forKey: .augmentations)
            try values.encodeIfPresent(classifier.emaDecay, forKey: .averageDecay)
            try values.encodeIfPresent(fineTuning, forKey: .fineTuning)
        case .detector(let detector):
            try values.encode(detector.batchSize, forKey: .batchSize)
            try values.encode(detector.optimizer, forKey: .adamW)
            try values.encode(detector.emaDecay, forKey: .averageDecay)
        }
    }
}
