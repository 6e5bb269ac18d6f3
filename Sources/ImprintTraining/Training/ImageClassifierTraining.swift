public import Foundation
public import Imprint
internal import ImprintImages

extension ImageClassifier {
    /// Trains a classifier from a folder of images, one sub-folder per label; see `ClassifierTrainer` for progress and more.
    /// - Throws: What reading the folder and training throw, and `CancellationError` if the task is cancelled.
    public static func train(
        on folder: URL, configuration: ClassifierConfiguration = ClassifierConfiguration()
    ) async throws -> ImageClassifier {
        let run = ClassifierTrainer(photos: try ImageFolder(at: folder), configuration: configuration).start()
        for try await case .finished(let result) in run { return try ImageClassifier(result.weights) }
        throw CancellationError()
    }
}
