public import ImprintImages
public import ImprintNetwork

/// The hyperparameters of training a classifier; the defaults suit a few hundred to a few thousand photos.
///
/// The same struct is part of the trainer's configuration, the model file's training record, the checkpoint's fingerprint and the report.
///
/// To add a hyperparameter, add a property here with its range in `problem`, an option in a group of `TrainingOptions` (such as those in
/// TrainingOptionGroups.swift), the code that uses it, and a row in docs/reference/hyperparameters.md. The model file, the checkpoint and the report
/// then contain it.
public struct ClassifierHyperparameters: Codable, Hashable, Sendable {
    /// The optimizer.
    public enum Optimizer: String, Codable, Sendable, CaseIterable {
        /// Stochastic gradient descent with Nesterov momentum; see `SGD`.
        case sgd
        /// Adam with decoupled weight decay, β₁ = 0.9 and β₂ = 0.999; see `AdamW`. It suits fine-tuning of a pretrained base model.
        case adamW = "adamw"
    }

    /// The rule for the weight of each label in the loss.
    public enum ClassWeights: String, Codable, Sendable, CaseIterable {
        /// All labels have the same weight.
        case none
        /// The weight is inversely proportional to the label's number of training photos: photos / (labels · photos of the label).
        case automatic = "auto"
    }

    /// The maximum number of epochs, 1…100,000.
    public var epochs = 20
    /// The number of photos per step, 1…65,536.
    public var batchSize = 32
    /// The optimizer.
    public var optimizer = Optimizer.sgd
    /// The peak learning rate, ≥ 0; nil to find one with a range test (see `LearningRateSearch`).
    public var learningRate: Float? = 0.02
    /// The learning-rate schedule after the warm-up.
    ///
    /// The warm-up is the first epoch of a run of several epochs.
    public var schedule = LearningRateSchedule.Shape.cosine(final: 0.01)
    /// The Nesterov momentum of SGD, 0 ≤ x < 1; AdamW does not use it.
    public var momentum: Float = 0.9
    /// The weight decay, ≥ 0.
    public var weightDecay: Float = 1e-4
    /// Gradient clipping: the maximum Euclidean norm of the gradient of all parameters, > 0; nil for no limit.
    ///
    /// The optimizer scales down a gradient with a larger norm.
    public var gradientClipping: Float?
    /// Label smoothing: the share of each target that is spread over all labels, 0 ≤ x < 1.
    public var labelSmoothing: Float = 0
    /// Whether the model predicts an independent probability for each label, so that a photo can have several labels or none.
    ///
    /// Training sets it if any photo has several labels or none. The network of a multi-label model ends in sigmoids, and its loss is the
    /// binary cross-entropy; see `BinaryCrossEntropy`. Label smoothing moves the targets towards ½. With automatic class weights, the
    /// positive weight of a label is the number of photos without the label divided by the number of photos with it. The confidences are
    /// not calibrated.
    public var isMultiLabel = false
    /// The rule for the weight of each label in the loss.
    public var classWeights = ClassWeights.none
    /// Mixed precision: whether training steps round the operands of two products of convolutions to bfloat16: of their outputs, and of the gradients
    /// of their inputs.
    ///
    /// Sums, parameters, their gradients and validation are float32; see `ExecutionPlan.Options.precision`. The model then depends on whether the
    /// processor has instructions for bfloat16 (`Precision.isFast`), which round sums or subnormal numbers differently.
    public var usesMixedPrecision = false
    /// The decay of an exponential moving average (EMA) of the parameters, 0 < x < 1, such as 0.99; nil for none.
    ///
    /// If it is set, validation and the model use the averaged parameters.
    public var emaDecay: Float?
    /// Early stopping: the number of epochs without an improvement in validation loss after which training stops, 1…100,000; nil for never.
    public var patience: Int?
    /// The maximum total duration of training, > 0, including the parts before it was resumed; nil for no limit.
    ///
    /// After each epoch, the schedule is shortened to the epochs that fit, so the result depends on the speed of the machine.
    public var timeLimit: Duration?
    /// The height and width of the network's input in pixels, 1…8192, or nil for the network's default.
    ///
    /// The input size of a base model cannot be changed.
    public var inputSize: Int?
    /// The rule that fits a photo into the network's input.
    public var cropAndScale = CropAndScale.centerCrop
    /// The data augmentation of training photos.
    public var augmentation = Augmentation.none
    /// The settings for fine-tuning a base model, which apply if more than its head is trainable.
    public var fineTuning = FineTuning()
    /// Concat pooling, as in fastai: whether the head of a base model reads the maximum of each channel in addition to its mean.
    ///
    /// It helps if logos are small in the photos.
    ///
    /// Such a head reads twice as many features: the means, and the maxima times a trainable scale for each channel. It is always initialized at
    /// random.
    public var poolsMaximum = false
    /// Whether training calibrates the confidences on the validation set at its end; see `Calibration`.
    public var calibrates = true
    /// The number of training photos whose features the model keeps for personalization, 0…65,536; see `Rehearsal`.
    public var rehearsalImages = 512
    /// The rule for the size of the validation set.
    public var validation = ValidationRule.automatic
    /// Whether near-duplicates and bursts stay together in the dataset split.
    ///
    /// Near-duplicates are photos that are almost the same image. A burst has photos of one scene that were taken within seconds.
    public var keepsGroupsTogether = true
    /// The random seed.
    public var seed: UInt64 = 0

    /// Creates the default hyperparameters.
    public init() {}

    /// The optimizer that these hyperparameters describe.
    package var optimizerConfiguration: OptimizerConfiguration {
        switch optimizer {
        case .sgd:
            .sgd(
                SGD.Options(
                    momentum: momentum, nesterov: true, weightDecay: weightDecay, gradientClipping: gradientClipping))
        case .adamW: .adamW(AdamW.Options(weightDecay: weightDecay, gradientClipping: gradientClipping))
        }
    }
}

extension ClassifierHyperparameters {
    /// The first value that is out of range; nil if all are in range.
    package var problem: RangeCheck? {
        let patience = patience ?? 1
        let timeLimit = timeLimit ?? .seconds(1)
        return .firstFailure(of: [
            .init("epochs", epochs, in: 1...100_000), .init("batchSize", batchSize, in: 1...65536),
            .nonNegative("learningRate", learningRate),
            .init("patience", patience, in: 1...100_000),
            .init("timeLimit", timeLimit, timeLimit > .zero, "more than 0"),
            .init("momentum", momentum, (0..<1).contains(momentum), "at least 0 and less than 1"),
            .nonNegative("weightDecay", weightDecay), .positive("gradientClipping", gradientClipping),
            .init("labelSmoothing", labelSmoothing, (0..<1).contains(labelSmoothing), "at least 0 and less than 1"),
            .init(
                "emaDecay", emaDecay ?? 0.5, emaDecay.map { $0 > 0 && $0 < 1 } ?? true,
                "more than 0 and less than 1"),
            .init(
                "layerDecay", fineTuning.layerDecay, fineTuning.layerDecay > 0 && fineTuning.layerDecay <= 1,
                "more than 0 and at most 1"),
            .init("stageEpochs", fineTuning.stageEpochs, in: 1...100_000),
            .init("rehearsalImages", rehearsalImages, in: 0...65536),
            .init("inputSize", inputSize ?? 1, in: 1...8192),
            .init(
                "schedule", schedule, schedule.isInRange,
                "a period of at least 1, finite factors of at least 0 and exponents from -30 to 30"),
            .init(validation),
        ])
    }
}

extension LearningRateSchedule.Shape {
    /// Whether every factor of the learning rate is finite and at least 0.
    fileprivate var isInRange: Bool {
        switch self {
        case .constant: true
        case .step(let every, let factor): every >= 1 && factor >= 0 && factor.isFinite
        case .cosine(let final): final >= 0 && final.isFinite
        case .exponential(let from, let to): (-30...30).contains(from) && (-30...30).contains(to)
        }
    }
}
