internal import ImprintImages
internal import ImprintNetwork

// Version 1 stored single values instead of the hyperparameters. They are still written for readers of version 1, and they are read if there
// are no hyperparameters.
extension TrainingRecord {
    private enum CodingKeys: String, CodingKey {
        case hyperparameters, foundLearningRate, dataDigest, trainingImages, validationImages, labelWeights, trains,
            history, keptEpoch
        case precisionRecall, thresholds, calibration
        // Version 1.
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
        guard case .classifier(let values) = hyperparameters, let trains, trains != .head else { return nil }
        return values.fineTuning
    }

    /// Reads a record.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        foundLearningRate = try values.decodeIfPresent(Float.self, forKey: .foundLearningRate)
        dataDigest = try values.decodeIfPresent(String.self, forKey: .dataDigest)
        trainingImages = try values.decode([String: Int].self, forKey: .trainingImages)
        validationImages = try values.decode([String: Int].self, forKey: .validationImages)
        labelWeights = try values.decodeIfPresent([String: Float].self, forKey: .labelWeights)
        trains = try values.decodeIfPresent(FineTuning.TrainableLayers.self, forKey: .trains)
        history = try values.decode([EpochMetrics].self, forKey: .history)
        keptEpoch = try values.decodeIfPresent(Int.self, forKey: .keptEpoch)
        precisionRecall = try values.decode([String: [PrecisionRecallPoint]].self, forKey: .precisionRecall)
        thresholds = try values.decodeIfPresent([String: Double].self, forKey: .thresholds)
        calibration = try values.decodeIfPresent(Calibration.self, forKey: .calibration)
        if let known = try values.decodeIfPresent(Hyperparameters.self, forKey: .hyperparameters) {
            hyperparameters = known
        } else {
            hyperparameters = try Self.versionOne(values, labelWeights: labelWeights)
        }
    }

    private static func versionOne(
        _ values: KeyedDecodingContainer<CodingKeys>, labelWeights: [String: Float]?
    ) throws -> Hyperparameters {
        let seed = try values.decode(UInt64.self, forKey: .seed)
        let epochs = try values.decode(Int.self, forKey: .epochs)
        let batchSize = try values.decode(Int.self, forKey: .batchSize)
        let averageDecay = try values.decodeIfPresent(Float.self, forKey: .averageDecay)
        if let adamW = try values.decodeIfPresent(AdamW.Options.self, forKey: .adamW) {
            var detector = DetectorHyperparameters()
            detector.seed = seed
            detector.epochs = epochs
            detector.batchSize = batchSize
            detector.optimizer = adamW
            if let averageDecay { detector.averageDecay = averageDecay }
            return .detector(detector)
        }
        let sgd = try values.decode(VersionOneSGD.self, forKey: .optimizer)
        var classifier = ClassifierHyperparameters()
        classifier.seed = seed
        classifier.epochs = epochs
        classifier.batchSize = batchSize
        classifier.averageDecay = averageDecay
        classifier.learningRate = sgd.learningRate
        classifier.momentum = sgd.momentum
        classifier.weightDecay = sgd.weightDecay
        classifier.gradientClipping = sgd.gradientClipping
        classifier.schedule = try values.decode(LearningRateSchedule.self, forKey: .schedule).decay
        classifier.labelSmoothing = try values.decode(Float.self, forKey: .labelSmoothing)
        classifier.labelWeights = labelWeights == nil ? .none : .automatic
        let names = try values.decode([String].self, forKey: .augmentations)
        classifier.augmentation = Augmentation(Set(names.compactMap(Augmentation.Kind.init)))
        if let fineTuning = try values.decodeIfPresent(FineTuning.self, forKey: .fineTuning) {
            classifier.fineTuning = fineTuning
        }
        return .classifier(classifier)
    }

    /// Writes the record.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(hyperparameters, forKey: .hyperparameters)
        try values.encodeIfPresent(foundLearningRate, forKey: .foundLearningRate)
        try values.encodeIfPresent(dataDigest, forKey: .dataDigest)
        try values.encode(trainingImages, forKey: .trainingImages)
        try values.encode(validationImages, forKey: .validationImages)
        try values.encodeIfPresent(labelWeights, forKey: .labelWeights)
        try values.encodeIfPresent(trains, forKey: .trains)
        try values.encode(history, forKey: .history)
        try values.encodeIfPresent(keptEpoch, forKey: .keptEpoch)
        try values.encode(precisionRecall, forKey: .precisionRecall)
        try values.encodeIfPresent(thresholds, forKey: .thresholds)
        try values.encodeIfPresent(calibration, forKey: .calibration)
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
            try values.encode(LearningRateSchedule(classifier.schedule), forKey: .schedule)
            try values.encode(classifier.labelSmoothing, forKey: .labelSmoothing)
            try values.encode(classifier.augmentation.names, forKey: .augmentations)
            try values.encodeIfPresent(classifier.averageDecay, forKey: .averageDecay)
            try values.encodeIfPresent(fineTuning, forKey: .fineTuning)
        case .detector(let detector):
            try values.encode(detector.batchSize, forKey: .batchSize)
            try values.encode(detector.optimizer, forKey: .adamW)
            try values.encode(detector.averageDecay, forKey: .averageDecay)
        }
    }
}
