internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

/// A completed epoch in JSON output.
struct TrainingEpochLine: Encodable {
    let event = "epoch"
    let epoch: Int
    let loss: Float
    let accuracy: Float
    @NullIfMissing var validationLoss: Float?
    @NullIfMissing var validationAccuracy: Float?
    /// Only present if the validation set has boxes.
    let validationAveragePrecision: Float?
    let learningRate: Float
    let seconds: Double

    init(_ metrics: EpochMetrics, _ seconds: Double) {
        epoch = metrics.epoch
        loss = metrics.loss
        accuracy = metrics.accuracy
        validationLoss = metrics.validationLoss
        validationAccuracy = metrics.validationAccuracy
        validationAveragePrecision = metrics.validationAveragePrecision
        learningRate = metrics.learningRate
        self.seconds = seconds
    }
}

/// The end of a training run in JSON output.
struct TrainingFinishedLine: Encodable {
    let event = "finished"
    let accuracy: Float
    let epochs: Int
    let seconds: Double
    let images: Int
    let output: String
    let ending: TrainingResult.Ending
    let stopped: Bool
    let keptEpoch: Int
    let trainingImages: Int
    let validationImages: Int
    let leaked: Int?
    let leaksAvoided: Int?
    let recipe: String?
    let recipeReason: String?
    /// Only present if the run resumed with other photos.
    let changedPhotos: ChangedPhotosLine?
    let calibration: Calibration?
    let skipped: [SkippedLine]
    let lost: [SkippedLine]
}

/// The change of the photos since the checkpoint in JSON output.
struct ChangedPhotosLine: Encodable {
    let new: Int
    let missing: Int
    let edited: Int
    let unreadable: Int

    init(_ resumed: TrainingStart.Resumption) {
        (new, missing, edited) = (resumed.newImages, resumed.missingImages, resumed.editedImages)
        unreadable = resumed.unreadableImages.count
    }
}

/// An unreadable image in JSON output.
struct SkippedLine: Encodable {
    let file: String
    let reason: String

    init(_ image: SkippedImage) {
        file = image.url.path(percentEncoded: false)
        reason = "\(image.reason)"
    }
}
