package import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// An input of a batch.
package enum BatchInput: Sendable {
    /// An image, which the preprocessing of the model scales to the input of the network.
    case image(ImageSource)
    /// The input of the network after preprocessing: float32 values in the byte order of this machine, [height, width, channels].
    case values(Data)
}

/// A predictor of whole batches, for servers.
package protocol BatchPredictor: Sendable {
    /// Predicts the labels of a batch; call it from one thread at a time.
    /// - Parameter inputs: At most as many inputs as the predictor was made for.
    /// - Returns: For each input, in order, its prediction without the novelty, or the error if this input cannot be processed.
    func predict(_ inputs: [BatchInput]) -> [Result<Prediction, any Error>]
}

extension ImageClassifier {
    /// Makes a predictor of batches on the threads of this classifier.
    /// - Throws: `NetworkError` if there is not enough memory for the activations of a batch.
    package func batchPredictor(maximumBatchSize: Int) throws -> any BatchPredictor {
        precondition(maximumBatchSize >= 1, "a batch must have at least one input, not \(maximumBatchSize)")
        return try predictor.batchPredictor(maximumBatchSize: maximumBatchSize, workers: workers)
            ?? SeparatePredictor(self)
    }

    /// Whether a batch can contain values instead of images: the network sees the whole image at a fixed size.
    package var acceptsValues: Bool { model.head.seesWholeImage }
}

/// A predictor that runs the network on one image at a time, for detectors.
private struct SeparatePredictor: BatchPredictor {
    /// The predictor of a batch of one image, on all threads.
    private let single: any HeadPredictor
    /// The predictor of larger batches, on one thread per image.
    private let parallel: any HeadPredictor
    private let workers: Workers

    init(_ classifier: ImageClassifier) throws {
        single = classifier.predictor
        workers = classifier.workers
        parallel =
            workers.count == 1
            ? single
            : try ImageClassifier(classifier.model, threads: 1, precision: classifier.precision)
                .personalized(with: classifier.personalization).predictor
    }

    func predict(_ inputs: [BatchInput]) -> [Result<Prediction, any Error>] {
        let predictor = inputs.count == 1 ? single : parallel
        return workers.parallelMap(inputs.count) { index in
            Result {
                guard case .image(let source) = inputs[index] else {
                    preconditionFailure("a detector needs images")
                }
                return try predictor.predict(
                    source.stored(coveringShortSide: predictor.shortSideToDecode), cropAndScale: nil)
            }
        }
    }
}
