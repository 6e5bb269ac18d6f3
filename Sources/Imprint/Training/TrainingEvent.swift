public import ImprintFormats
public import ImprintImages

/// What happens during training, in the order in which it happens.
public enum TrainingEvent: Sendable {
    /// So many of the images have been looked at, to find those that show the same.
    case comparing(done: Int, of: Int)
    /// So many of the images to train and to measure on have been read.
    case reading(done: Int, of: Int)
    /// The images are read and the plan is compiled.
    case started(TrainingStart)
    /// A step is done.
    case step(TrainingStep)
    /// An image could be read at the start and no longer can; training goes on without it.
    case lost(SkippedImage)
    /// An epoch is done and has been measured; it took so many seconds.
    case epoch(EpochMetrics, seconds: Double)
}

/// What training begins with.
public struct TrainingStart: Sendable {
    /// The labels, in the order of the network's outputs.
    public let labels: [String]
    /// The number of images to train on.
    public let trainingImages: Int
    /// The number of images to measure progress on.
    public let validationImages: Int
    /// The labels that no image to measure progress on bears, where there are such images.
    public let labelsWithoutValidation: [String]
    /// The images that could not be read, each with its reason.
    public let skipped: [SkippedImage]
    /// The name of the network.
    public let network: String
    /// How many numbers the network has, those that its statistics follow not counted.
    public let parameterCount: Int
    /// How many of them are trained; the others belong to a base and stay.
    public let trainedCount: Int
    /// What copies, near-duplicates and bursts have to do with validation; `nil` where nothing is validated on, or was not
    /// compared.
    public let leakage: Leakage?

    /// Images to measure on that show what images to train on show.
    public enum Leakage: Sendable, Hashable {
        /// The split kept `groups` groups together; at random, it would have leaked so many `of` the images to measure on.
        case avoided(images: Int, of: Int, groups: Int)
        /// So many `of` the images in the folder to measure on have one of their group among those to train on.
        case found(images: Int, of: Int)
    }
}

/// One step of training.
public struct TrainingStep: Sendable {
    /// The epoch, from 1.
    public let epoch: Int
    /// How many images of this epoch have been seen.
    public let imagesSeen: Int
    /// How many images an epoch has.
    public let imagesPerEpoch: Int
    /// The mean loss of this epoch so far.
    public let loss: Float
    /// The share of this epoch's images so far that were classified rightly, as they were seen.
    public let accuracy: Float
}
