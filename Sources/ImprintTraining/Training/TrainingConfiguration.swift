public import Foundation
internal import Imprint
internal import ImprintCore
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// How to train a classifier; every value has a default that suits a few hundred to a few thousand photos.
public struct TrainingConfiguration: Sendable {
    /// The network that training starts from.
    public enum Start: Sendable {
        /// A ready-made network with fresh parameters; see `Network.readyMadeNames`.
        case network(String, width: Double = 1)
        /// A trained model: its layers and parameters, with a new head where the labels differ.
        case base(ModelFile, trains: Trains = .head)
    }

    /// What of a base is trained.
    public typealias Trains = FineTuning.Trains

    /// Where the images to measure progress on come from.
    public enum Validation: Sendable {
        /// Kept back from the training images.
        case split(ValidationRule)
        /// A folder of their own, with the same sub-folders.
        case folder(URL)
    }

    /// How much each label counts in the loss.
    public enum LabelWeights: String, Sendable, CaseIterable {
        /// All the same.
        case none
        /// In inverse proportion to its number of training images: images / (labels · images of the label).
        case automatic = "auto"
    }

    /// The network that training starts from: LogoNet with fresh parameters unless it is changed.
    ///
    /// `imprint train` starts from `ModelFile.shippedBase()` instead, all layers of which learn.
    public var start: Start
    /// How the layers of a base are trained, where that is more than its head.
    public var fineTuning: FineTuning
    /// Whether the head of a base reads maxima besides means.
    ///
    /// That is for marks that are small in the photos; such a head is always new. See `Network.poolingMaximum()`.
    public var poolsMaximum: Bool
    /// Where the images to measure progress on come from.
    public var validation: Validation
    /// Whether images are compared first, so that those which show the same (`ImageGroups`) stay on one side of a split, or are
    /// told where the images to measure progress on have a folder of their own.
    public var keepsGroupsTogether: Bool
    /// How often training goes through all images, at most.
    public var epochs: Int
    /// After how many epochs without a lesser validation loss training ends; never before the last if nil.
    public var patience: Int?
    /// After how much time training ends, counted from its start, over all parts of a run.
    ///
    /// The schedule is shortened to as many epochs as fit, measured after each, so such a run depends on the speed of the machine.
    public var timeLimit: Duration?
    /// How many images make one step.
    public var batchSize: Int
    /// The highest learning rate, searched for if nil (see `LearningRateSearch`).
    ///
    /// The rate rises during the first of several epochs, then follows `schedule`.
    public var learningRate: Float?
    /// The course of the learning rate after the first epoch.
    public var schedule: LearningRateSchedule.Decay
    /// The momentum of SGD (Nesterov's).
    public var momentum: Float
    /// The pull of weights towards 0.
    public var weightDecay: Float
    /// The largest norm of a step's whole gradient; a longer one is scaled down to it.
    public var gradientClipping: Float?
    /// How much of each target is spread over all labels, 0 ≤ x < 1.
    public var labelSmoothing: Float
    /// How much each label counts in the loss.
    public var labelWeights: LabelWeights
    /// The decay of a exponential moving average of the parameters that is measured and kept in their place, 0 < x < 1, such as 0.99; the
    /// parameters themselves if nil.
    ///
    /// After step t the average moves by 1 − min(decay, (1 + t) / (10 + t)) towards the parameters, so that the first steps do not
    /// weigh on it for long.
    public var averageDecay: Float?
    /// Whether confidences are calibrated on the validation images after training; see `Calibration`.
    public var calibrates: Bool
    /// The height and width of the network's input; the usual size if nil, and a base brings its own.
    public var inputSize: Int?
    /// How a photo is fitted into the network's input.
    public var cropAndScale: CropAndScale
    /// How training images are varied.
    public var augmentation: Augmentation
    /// What everything random follows from.
    public var seed: UInt64
    /// The number of threads; the result does not depend on it.
    public var threads: Int
    /// How tensors are stored.
    public var precision: Safetensors.Precision
    /// How many bytes the prepared images may take that are kept in memory; half of what is free if nil, and at most 512 MB
    /// where logos are spotted.
    ///
    /// The result does not depend on it.
    public var memoryLimit: Int?
    /// Of how many training images the model keeps features, so that it does not forget them while it is tuned to one person; 0…65536,
    /// see `Rehearsal`.
    public var rehearsalImages: Int

    /// Makes a configuration; change what should differ.
    public init() {
        start = .network("logonet")
        fineTuning = FineTuning()
        poolsMaximum = false
        validation = .split(.automatic)
        keepsGroupsTogether = true
        epochs = 20
        patience = nil
        timeLimit = nil
        batchSize = 32
        learningRate = 0.02
        schedule = .cosine(final: 0.01)
        momentum = 0.9
        weightDecay = 1e-4
        gradientClipping = nil
        labelSmoothing = 0
        labelWeights = .none
        averageDecay = nil
        calibrates = true
        inputSize = nil
        cropAndScale = .centerCrop
        augmentation = .none
        seed = 0
        threads = Processors.coreCount
        precision = .float32
        memoryLimit = nil
        rehearsalImages = 512
    }
}

extension TrainingConfiguration {
    /// What of a base is trained; nil if training begins from scratch.
    var trains: Trains? {
        if case .base(_, let trains) = start { trains } else { nil }
    }

    /// How, where that is more than its head.
    var usedFineTuning: FineTuning? { trains == nil || trains == .head ? nil : fineTuning }

    /// Checks that every number lies in its range.
    func check() throws(ImprintError) {
        func require(_ name: String, _ value: some Any, _ isValid: Bool, _ expected: String) throws(ImprintError) {
            guard isValid else { throw .invalidSetting(name: name, found: "\(value)", expected: expected) }
        }
        try require("epochs", epochs, (1...1_000_000_000).contains(epochs), "1 to 1000000000")
        try require("batchSize", batchSize, (1...1_000_000).contains(batchSize), "1 to 1000000")
        let rate = learningRate ?? 0
        try require("learningRate", rate, rate >= 0 && rate.isFinite, "at least 0")
        try require("patience", patience ?? 1, patience ?? 1 >= 1, "at least 1")
        try require("timeLimit", timeLimit ?? .seconds(1), timeLimit ?? .seconds(1) > .zero, "more than 0")
        try require("momentum", momentum, (0..<1).contains(momentum), "at least 0 and less than 1")
        try require("weightDecay", weightDecay, weightDecay >= 0 && weightDecay.isFinite, "at least 0")
        try require("gradientClipping", gradientClipping ?? 1, gradientClipping ?? 1 > 0, "more than 0")
        try require("labelSmoothing", labelSmoothing, (0..<1).contains(labelSmoothing), "at least 0 and less than 1")
        let decay = averageDecay ?? 0.5
        try require("averageDecay", decay, decay > 0 && decay < 1, "more than 0 and less than 1")
        let factor = fineTuning.layerDecay
        try require("layerDecay", factor, factor > 0 && factor <= 1, "more than 0 and at most 1")
        try require(
            "stageEpochs", fineTuning.stageEpochs, (1...1_000_000).contains(fineTuning.stageEpochs), "1 to 1000000")
        try require("threads", threads, threads >= 1, "at least 1")
        try require("memoryLimit", memoryLimit ?? 0, memoryLimit ?? 0 >= 0, "at least 0")
        try require("rehearsalImages", rehearsalImages, (0...65536).contains(rehearsalImages), "0 to 65536")
        try require("inputSize", inputSize ?? 1, (1...8192).contains(inputSize ?? 1), "1 to 8192")
    }
}
