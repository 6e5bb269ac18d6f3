public import Foundation
public import ImprintCore
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// What happens during training, in the order in which it happens.
public enum TrainingEvent: Sendable {
    /// So many of the images have been looked at, to find those that show the same.
    case comparing(done: Int, of: Int)
    /// So many of the images to train and to measure on have been read.
    case reading(done: Int, of: Int)
    /// So many of these images have gone through the layers before the head, where it alone is trained and images are not varied:
    /// then each has to do so but once.
    case computingFeatures(done: Int, of: Int)
    /// The images are read and the plan is compiled.
    case started(TrainingStart)
    /// So many steps of the search for a learning rate are done.
    case searching(done: Int, of: Int)
    /// A learning rate was found.
    case learningRate(LearningRateSearch)
    /// A batch is done: one step.
    case batch(TrainingBatch)
    /// An image could be read at the start and no longer can; training goes on without it. Told once for each image.
    case lost(SkippedImage)
    /// An epoch is done and has been measured; it took so many seconds.
    case epoch(EpochMetrics, seconds: Double)
    /// The run has been saved, after so many whole epochs, and can go on from there.
    case checkpoint(URL, epochs: Int)
    /// The run could not be saved; the last checkpoint is as it was, and training goes on. Told once, until saving succeeds again.
    case checkpointFailed(FileError)
    /// The run has come to its end; nothing follows.
    case finished(TrainingResult)
}

/// What training begins with.
public struct TrainingStart: Sendable {
    /// The way of training.
    public let recipe: TrainingRecipe
    /// The labels, in the order of the network's outputs.
    public let labels: [String]
    /// The number of images to train on.
    public let trainingImages: Int
    /// The number of images to measure progress on.
    public let validationImages: Int
    /// The labels that no image to measure progress on bears, if there are such images.
    public let labelsWithoutValidation: [String]
    /// The images that could not be read, each with its reason.
    public let skipped: [SkippedImage]
    /// The name of the network.
    public let network: String
    /// How many numbers the network has, those that its statistics follow not counted.
    public let parameterCount: Int
    /// How many of them are trained; the others belong to a base and stay.
    public let trainedCount: Int
    /// How many epochs there are to be, at most.
    public let epochs: Int
    /// Where the run goes on from; nil if it begins.
    public let resumed: Resumption?
    /// Whether the folder for checkpoints has that of a run that has ended, whose place this run takes.
    public let replacesCheckpoint: Bool
    /// What copies, near-duplicates and bursts have to do with validation; nil if nothing is validated on, or was not
    /// compared.
    public let leakage: Leakage?

    /// Where a run goes on from.
    public struct Resumption: Sendable, Hashable {
        /// What was measured after each epoch that is done.
        public let history: [EpochMetrics]
        /// How many images of the next epoch have been seen.
        public let imagesSeen: Int
        /// Whether the images are those of before; with others, the epoch begins again.
        public let hasSameImages: Bool
    }

    /// Images to measure on that show what images to train on show.
    public enum Leakage: Sendable, Hashable {
        /// The split kept `groups` groups together; at random, it would have leaked so many `of` the images to measure on.
        case avoided(images: Int, of: Int, groups: Int)
        /// So many `of` the images in the folder to measure on have one of their group among those to train on.
        case found(images: Int, of: Int)
    }
}

/// One step of training.
public struct TrainingBatch: Sendable {
    /// The epoch, from 1.
    public let epoch: Int
    /// How many epochs there are to be; less than in the settings where the time does not suffice.
    public let epochs: Int
    /// How many images of this epoch have been seen.
    public let imagesSeen: Int
    /// How many images an epoch has.
    public let imagesPerEpoch: Int
    /// The mean loss of this epoch so far.
    public let loss: Float
    /// The share of this epoch's images so far that were classified rightly, as they were seen.
    public let accuracy: Float
}

/// What a run came to.
public struct TrainingResult: Sendable {
    /// Why a run ended.
    public enum Ending: String, Sendable, Codable {
        /// All epochs are done.
        case completed
        /// The validation loss has not become less for as many epochs as the settings allow.
        case noImprovement
        /// The time is used up.
        case timeLimit
        /// Somebody asked for it.
        case stopped
        /// Too few of the photos that the run read at its start can still be read; `TrainingResult.photosLost` has the reason. The model is the
        /// best one up to then.
        case photosLost
    }

    /// The model: that of the epoch with the least validation loss, or of the last one where nothing is validated on.
    public let weights: ModelFile
    /// How the model does on the images to measure on; nil if there are none.
    public let evaluation: Evaluation?
    /// Why the run ended.
    public let ending: Ending
    /// How long it took, over all parts of the run.
    public let seconds: Double
    /// The images that could be read at the start and later could not.
    public let lost: [SkippedImage]
    /// Why training ended early because of its photos: more than half of the training or validation photos, or all of a label, cannot be read any
    /// more; nil otherwise.
    ///
    /// If too few validation photos are left, the model has no calibration and no evaluation.
    public let photosLost: ImageError?
    /// Why the run could not be saved at its end; nil if it was, or was not to be.
    public let checkpointFailure: FileError?
    /// Whether a new run with the same images and settings gives the same model.
    public let isRepeatable: Bool
}
