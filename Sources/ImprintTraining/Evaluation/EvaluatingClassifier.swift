public import Imprint
internal import ImprintCore
public import ImprintImages

extension ImageClassifier {
    /// Classifies every image of a folder, one sub-folder per label, and compares with the labels.
    ///
    /// The folder need not have images of every label, but none of other labels. Images that cannot be read are skipped
    /// and listed.
    /// - Parameters:
    ///   - folder: The images.
    ///   - threads: How many threads share the work; the results do not depend on it.
    ///   - onProgress: Told now and then how many images are done.
    /// - Throws: `ImprintError.labelMismatch` for a label that the model does not know, `ImageError` if more than half
    ///   of the images, or all of a label, cannot be read, `ImprintError.noConfidence` where the model cannot be used.
    public func evaluate(
        on folder: ImageFolder, threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> Evaluation {
        let unknown = folder.labels.filter { !labels.contains($0) }
        guard unknown.isEmpty else {
            throw ImprintError.labelMismatch(
                folder: folder.url.path(percentEncoded: false), unknown: unknown, labels: labels)
        }
        let outcomes = try Workers(threads).parallelMap(folder.items.count, onProgress: onProgress) {
            index throws -> Swift.Result<[Float], ImageError> in
            do {
                return .success(try confidences(of: folder.items[index].url))
            } catch let error as ImageError {
                return .failure(error)
            }
        }
        let places = folder.labels.map { label in labels.firstIndex(of: label) ?? 0 }
        var results: [Evaluation.Result] = []
        var skipped: [SkippedImage] = []
        var readable: [ImageFolder.Item] = []
        for (item, outcome) in zip(folder.items, outcomes) {
            switch outcome {
            case .success(let confidences):
                results.append(
                    Evaluation.Result(url: item.url, label: places[item.label], confidences: confidences))
                readable.append(item)
            case .failure(let error): skipped.append(SkippedImage(url: item.url, reason: error))
            }
        }
        try SkippedImage.checkEnoughIsLeft(
            of: folder.items, readable: readable, skipped: skipped, labels: folder.labels)
        return Evaluation(labels: labels, results: results, skipped: skipped)
    }
}
