public import Imprint
internal import ImprintCore
public import ImprintImages

extension ImageClassifier {
    /// Classifies every image of a folder or list, and compares the predictions with the labels.
    ///
    /// The source may lack labels of the model, but must not have other labels. Unreadable images are skipped and listed.
    /// - Parameters:
    ///   - folder: The images: a folder (`ImageFolder`), a list (`LabelList`), or images in memory (`InMemorySource`).
    ///   - threads: The number of threads; the results do not depend on it.
    ///   - onProgress: Called from time to time with the number of finished images.
    /// - Throws: `ImprintError.labelMismatch` for a label that the model does not have, `ImageError` if more than half
    ///   of the images, or all of a label, cannot be read, `ImprintError.nonFiniteOutput` if an output of the model is not finite.
    public func evaluate(
        on folder: some TrainingSource, threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> Evaluation {
        let unknown = folder.labels.filter { !labels.contains($0) }
        guard unknown.isEmpty else {
            throw ImprintError.labelMismatch(
                folder: folder.name, unknown: unknown, labels: labels)
        }
        let outcomes = try Workers(threads).parallelMap(folder.items.count, onProgress: onProgress) {
            index throws -> Swift.Result<[Float], ImageError> in
            do {
                return .success(try confidences(of: folder.items[index]))
            } catch let error as ImageError {
                return .failure(error)
            }
        }
        let labelIndices = folder.labels.map { label in labels.firstIndex(of: label) ?? 0 }
        var results: [Evaluation.Result] = []
        var skipped: [SkippedImage] = []
        var readable: [TrainingPhoto] = []
        for (item, outcome) in zip(folder.items, outcomes) {
            switch outcome {
            case .success(let confidences):
                results.append(
                    Evaluation.Result(url: item.url, label: labelIndices[item.label], confidences: confidences))
                readable.append(item)
            case .failure(let error): skipped.append(SkippedImage(url: item.url, reason: error))
            }
        }
        try SkippedImage.checkEnoughAreReadable(
            of: folder.items, readable: readable, skipped: skipped, labels: folder.labels)
        return Evaluation(labels: labels, results: results, skipped: skipped)
    }
}
