public import Foundation
public import Imprint
public import ImprintCore
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// An event of a training run, in chronological order.
public enum TrainingEvent: Sendable {
    /// The run has compared `done` images to find near-duplicates and bursts.
    case comparing(done: Int, of: Int)
    /// The run has read `done` training and validation images.
    case reading(done: Int, of: Int)
    /// The run has computed the features of `done` images.
    ///
    /// A run sends this event if it trains only the head without data augmentation, or if it measures the photos to choose a recipe.
    case computingFeatures(done: Int, of: Int)
    /// The images are read and the plan is compiled.
    case started(TrainingStart)
    /// The learning-rate range test has finished `done` steps.
    case searching(done: Int, of: Int)
    /// The range test found a learning rate.
    case learningRate(LearningRateSearch)
    /// A step is finished.
    case batch(TrainingBatch)
    /// The run of a detector has scanned `done` images to mine hard negatives, locate logos, or validate or calibrate the detector.
    case scanning(done: Int, of: Int)
    /// An image has become unreadable; training continues without it. Sent once for each image.
    case unreadable(SkippedImage)
    /// An epoch is finished and validated; it took `seconds`.
    case epoch(EpochMetrics, seconds: Double)
    /// The run wrote a checkpoint after `epochs` whole epochs.
    case checkpoint(URL, epochs: Int)
    /// A checkpoint could not be written; the previous one stays, and training continues. Sent once, until a checkpoint is written again.
    case checkpointFailed(FileError)
    /// The run has ended; this is the last event.
    case finished(TrainingResult)
}

/// The properties of a run at its start.
public struct TrainingStart: Sendable {
    /// The kind of training.
    public let kind: TrainingKind
    /// The labels, in the order of the network's outputs.
    public let labels: [String]
    /// The number of training images.
    public let trainingImages: Int
    /// The number of validation images.
    public let validationImages: Int
    /// The labels that no validation image has; empty without a validation set.
    public let labelsWithoutValidation: [String]
    /// The images that could not be read, each with its reason.
    public let skipped: [SkippedImage]
    /// The name of the network.
    public let network: String
    /// The number of parameters of the network, without running statistics.
    public let parameterCount: Int
    /// The number of trainable parameters; the others are frozen.
    public let trainableParameterCount: Int
    /// The maximum number of epochs, or the number of phases of a detector.
    public let epochs: Int
    /// The state that the run resumes from; nil for a new run.
    public let resumed: Resumption?
    /// Whether the run replaces the checkpoint of a finished run.
    public let replacesCheckpoint: Bool
    /// How far the run of the replaced checkpoint came, such as "447 of 20000 epochs"; nil if the run replaces none.
    package var replacedProgress: String?
    /// The validation accuracy of the fitted head that a resumed run started from, which the best epoch must reach; see `TrainingBatch`.
    package var startAccuracy: Float?
    /// The number of epochs before the photos last changed, whose validation results are not comparable with those of later epochs.
    package var incomparableEpochs = 0
    /// The leakage between training and validation images; nil without a validation set, or if the images were not compared.
    public let leakage: Leakage?
    /// The recipe that was chosen for the run, with its reason, or nil if the run does not use a recipe.
    public let decision: RecipeDecision?

    /// Creates the properties of a run, for a trainer of your own.
    public init(
        kind: TrainingKind, labels: [String], trainingImages: Int, validationImages: Int = 0,
        labelsWithoutValidation: [String] = [], skipped: [SkippedImage] = [], network: String, parameterCount: Int,
        trainableParameterCount: Int, epochs: Int, resumed: Resumption? = nil, replacesCheckpoint: Bool = false,
        leakage: Leakage? = nil, decision: RecipeDecision? = nil
    ) {
        (self.kind, self.labels, self.network, self.epochs) = (kind, labels, network, epochs)
        (self.trainingImages, self.validationImages) = (trainingImages, validationImages)
        (self.labelsWithoutValidation, self.skipped) = (labelsWithoutValidation, skipped)
        (self.parameterCount, self.trainableParameterCount) = (parameterCount, trainableParameterCount)
        (self.resumed, self.replacesCheckpoint) = (resumed, replacesCheckpoint)
        (self.leakage, self.decision) = (leakage, decision)
    }

    /// The state that a run resumes from.
    public struct Resumption: Sendable, Hashable {
        /// The metrics of each finished epoch.
        public let history: [EpochMetrics]
        /// The number of images of the next epoch that were already used.
        public let imagesSeen: Int
        /// Whether the images are the same as before; otherwise the epoch starts again.
        public let hasSameImages: Bool
        /// The number of images that the run did not have before.
        public let newImages: Int
        /// The number of images that the run had before, and that are missing now.
        public let missingImages: Int
        /// The number of images that have another size or other labels than before.
        public let editedImages: Int
        /// The images that the run had before, and that cannot be read now; see `TrainingStart.skipped` for the reasons.
        ///
        /// Each one is its path in the data set; for an annotated photo, its file path.
        public let unreadableImages: [String]

        /// Creates a state.
        public init(
            history: [EpochMetrics], imagesSeen: Int = 0, hasSameImages: Bool = true, newImages: Int = 0,
            missingImages: Int = 0, editedImages: Int = 0, unreadableImages: [String] = []
        ) {
            (self.history, self.imagesSeen, self.hasSameImages) = (history, imagesSeen, hasSameImages)
            (self.newImages, self.missingImages, self.editedImages) = (newImages, missingImages, editedImages)
            self.unreadableImages = unreadableImages
        }

        /// A description of the change of the images, such as "3 new, 2 missing".
        package var changeDescription: String {
            Checkpoint.Images.Change(
                new: newImages, missing: missingImages, edited: editedImages, unreadable: unreadableImages
            ).description
        }
    }

    /// Validation images that are near-duplicates of training images, or of the same burst.
    public enum Leakage: Sendable, Hashable {
        /// The split kept `groups` groups together; in a random split, `images` of the validation images would have leaked.
        case avoided(images: Int, of: Int, groups: Int)
        /// `images` of the images in the validation folder have a training image in their group.
        case found(images: Int, of: Int)
    }
}

/// A training step.
public struct TrainingBatch: Sendable {
    /// The epoch, from 1.
    public let epoch: Int
    /// The planned number of epochs; fewer than configured if the time limit is too short.
    public let epochs: Int
    /// The number of images in this epoch so far.
    public let imagesSeen: Int
    /// The number of images in an epoch.
    public let imagesPerEpoch: Int
    /// The number of images in the run so far; an image counts once per epoch.
    public let imagesSeenInRun: Int
    /// The number of images in all planned epochs.
    public let imagesPerRun: Int
    /// The mean loss of this epoch so far.
    public let loss: Float
    /// The training accuracy of this epoch so far, measured before each update.
    public let accuracy: Float
    /// The validation accuracy of the fitted head before fine-tuning, which the best epoch must reach; nil if it does not count.
    package var startAccuracy: Float?

    /// Creates a training step, for a trainer of your own.
    public init(
        epoch: Int, epochs: Int, imagesSeen: Int, imagesPerEpoch: Int, imagesSeenInRun: Int, imagesPerRun: Int,
        loss: Float, accuracy: Float
    ) {
        (self.epoch, self.epochs, self.loss, self.accuracy) = (epoch, epochs, loss, accuracy)
        (self.imagesSeen, self.imagesPerEpoch) = (imagesSeen, imagesPerEpoch)
        (self.imagesSeenInRun, self.imagesPerRun) = (imagesSeenInRun, imagesPerRun)
    }

    /// The finished fraction of the run, 0…1; epochs with more images have a larger share.
    public var fractionOfRun: Double { min(Double(imagesSeenInRun) / Double(max(imagesPerRun, 1)), 1) }
}

/// The result of a run.
public struct TrainingResult: Sendable {
    /// The reason why a run ended.
    public enum Ending: String, Sendable, Codable {
        /// All epochs are finished.
        case completed
        /// Early stopping: the validation loss has not improved for as many epochs as the patience allows.
        case noImprovement
        /// The time limit was reached.
        case timeLimit
        /// The run was stopped.
        case stopped
        /// Too few photos are still readable; see `TrainingResult.photoError`. The model is the best one so far.
        case tooFewReadablePhotos = "photosLost"
        /// Training diverged; see `TrainingResult.divergence`. The model is the best one so far.
        case diverged

        /// Whether the run ended before all epochs were finished or a stop rule applied, so its model may be worse than planned.
        package var isEarly: Bool {
            switch self {
            case .completed, .noImprovement, .timeLimit: false
            case .stopped, .tooFewReadablePhotos, .diverged: true
            }
        }
    }

    /// The model of the epoch with the lowest validation loss, or of the last epoch without a validation set.
    public let model: ModelFile
    /// The evaluation of the model on the validation set, or nil without one, and for a multi-label model.
    public let evaluation: Evaluation?
    /// The evaluation of a multi-label model on the validation set, or nil without one, and for other models.
    public let multiLabelEvaluation: MultiLabelEvaluation?
    /// The evaluation of the model on the validation set, for a `Report`: `evaluation` or `multiLabelEvaluation`; nil without one.
    public var modelEvaluation: ModelEvaluation? {
        evaluation.map { ModelEvaluation.singleLabel($0) }
            ?? multiLabelEvaluation.map { ModelEvaluation.multiLabel($0) }
    }
    /// The reason why the run ended.
    public let ending: Ending
    /// The training time in seconds, including the parts before a resume, the time to read photos, and the measurements for the choice of a recipe.
    public let seconds: Double
    /// The images that became unreadable during the run.
    public let unreadable: [SkippedImage]
    /// The error of a run that ended with `tooFewReadablePhotos`; otherwise nil.
    ///
    /// More than half of the training or validation photos, or all photos of a label, have become unreadable. If too few validation photos are
    /// readable, the model has no calibration and no evaluation.
    public let photoError: ImageError?
    /// The error of a run that ended with `diverged`, `ImprintError.diverged`; otherwise nil.
    ///
    /// A run that diverges before its first validated epoch throws this error instead, because it has no model. So does a run without a validation
    /// set, because the model before a divergence may be almost as bad.
    public let divergence: ImprintError?
    /// The error of the last checkpoint; nil if it was written, or if the run saves no checkpoints.
    public let checkpointFailure: FileError?
    /// The reason why the model lacks features of training photos, such as `ImprintError.outOfMemory`; nil if it does not.
    ///
    /// `TrainingResult.model` then has no features for replay (`ModelFile.rehearsal`), so a personalization may forget, or no novelty rule
    /// (`ModelFile.noveltyRule`), or neither.
    public let featureFailure: ImprintError?
    /// Whether a new run with the same images and configuration gives the same model.
    public let isRepeatable: Bool
    /// The labels of a detector whose confidences are not calibrated; empty for a classifier.
    ///
    /// A calibration needs artwork of the logo, or photos in which the detector finds objects of the label and photos without the label.
    public var uncalibratedLabels: [String] {
        model.detector?.logos.filter { !$0.isCalibrated }.map(\.label) ?? []
    }

    /// Creates a result, for a trainer of your own.
    public init(
        model: ModelFile, evaluation: Evaluation? = nil, multiLabelEvaluation: MultiLabelEvaluation? = nil,
        ending: Ending = .completed, seconds: Double = 0, unreadable: [SkippedImage] = [],
        photoError: ImageError? = nil, divergence: ImprintError? = nil, checkpointFailure: FileError? = nil,
        featureFailure: ImprintError? = nil, isRepeatable: Bool = false
    ) {
        (self.model, self.evaluation, self.multiLabelEvaluation) = (model, evaluation, multiLabelEvaluation)
        (self.ending, self.seconds, self.isRepeatable) = (ending, seconds, isRepeatable)
        (self.unreadable, self.photoError, self.divergence) = (unreadable, photoError, divergence)
        (self.checkpointFailure, self.featureFailure) = (checkpointFailure, featureFailure)
    }
}
