public import Foundation
public import Imprint
internal import ImprintImages

extension ImageClassifier {
    /// Trains a classifier on a folder of images, one sub-folder per label.
    ///
    /// `ClassifierTrainer` also reports progress and saves checkpoints.
    /// - Throws: The errors of `ImageFolder` and `TrainingRun`, and `CancellationError` if the task is cancelled.
    public static func train(
        on folder: URL, configuration: ClassifierConfiguration = ClassifierConfiguration()
    ) async throws -> ImageClassifier {
        let run = ClassifierTrainer(photos: try ImageFolder(at: folder), configuration: configuration).start()
        for try await case .finished(let result) in run { return try ImageClassifier(result.model) }
        throw CancellationError()
    }
}
