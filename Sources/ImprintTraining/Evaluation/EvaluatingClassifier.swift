public import Imprint
internal import ImprintCore
public import ImprintImages

extension ImageClassifier {
    /// Classifies every image of a source, and compares the predictions with the labels.
    ///
    /// The source does not need to contain all labels of the model, but must not contain others. The evaluation skips unreadable images,
    /// and lists them.
    /// - Parameters:
    ///   - photos: The images: a folder (`ImageFolder`), a list (`LabelList`), or images in memory (`InMemorySource`).
    ///   - threads: The number of threads, at least 1; the results do not depend on it.
    ///   - onProgress: Called from time to time with the number of finished images.
    /// - Throws: `ImageError.invalidSource` if the labels or the photos of the source are inconsistent.
    ///   `ImprintError.notOneLabel` for a photo with several labels or none; see `evaluateMultiLabel(on:threads:onProgress:)`.
    ///   `ImprintError.wrongKindOfModel` for a multi-label model that Imprint trained.
    ///   `ImprintError.needsBoxes` for a center-point detector; see `evaluate(on:threads:onProgress:)` for annotated photos.
    ///   `ImprintError.labelMismatch` for a label that the model does not have, `ImageError` if more than half
    ///   of the images, or all of a label, cannot be read, `ImprintError.nonFiniteOutput` if an output of the model is not finite.
    public func evaluate(
        on photos: some TrainingSource, threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> Evaluation {
        try evaluate(on: photos, threads: threads, onProgress: onProgress, checkCancellation: {})
    }

    /// Evaluates the classifier on a thread of its own, as the function without `async`.
    ///
    /// If the task is cancelled, the evaluation ends after the current images, and throws `CancellationError`.
    /// - Parameters:
    ///   - photos: The images: a folder (`ImageFolder`), a list (`LabelList`), or images in memory (`InMemorySource`).
    ///   - threads: The number of threads, at least 1; the results do not depend on it.
    ///   - onProgress: Called from time to time with the number of finished images, on the thread of the evaluation.
    /// - Throws: The errors of the function without `async`, and `CancellationError`.
    public func evaluate(
        on photos: some TrainingSource, threads: Int = 1, onProgress: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> Evaluation {
        try await onCancellableThread { [self] checkCancellation in
            try evaluate(on: photos, threads: threads, onProgress: onProgress, checkCancellation: checkCancellation)
        }
    }

    /// Evaluates the model, as the public function.
    /// - Parameter checkCancellation: Called before each image, from any thread; throws if the evaluation should end.
    func evaluate(
        on photos: some TrainingSource, threads: Int, onProgress: (Int) -> Void,
        checkCancellation: @Sendable () throws -> Void
    ) throws -> Evaluation {
        try photos.checkLabelsAndIdentifiers()
        if !model.head.isTrainable { throw ImprintError.needsBoxes(network: model.network.name) }
        if model.isMultiLabel {
            throw ImprintError.wrongKindOfModel(
                network: model.network.name, found: "a multi-label model",
                expected: "a model that predicts one label per photo")
        }
        if let photo = photos.items.first(where: { $0.labels.count != 1 }) {
            throw ImprintError.notOneLabel(
                photo: photo.url.displayPath, labels: photo.labels.map { photos.labels[$0] })
        }
        let (predictions, skipped) = try predictions(
            on: photos, threads: threads, onProgress: onProgress, checkCancellation: checkCancellation)
        let results = predictions.map {
            Evaluation.Result(url: $0.photo.url, label: $0.photo.label, confidences: $0.confidences)
        }
        return Evaluation(labels: labels, results: results, skipped: skipped)
    }

    /// Classifies every image of a source.
    /// - Parameter checkCancellation: Called before each image, from any thread; throws if the evaluation should end.
    /// - Returns: The readable photos, with the indices of this model's labels, and their confidences; the unreadable photos.
    func predictions(
        on photos: some TrainingSource, threads: Int, onProgress: (Int) -> Void,
        checkCancellation: @Sendable () throws -> Void
    ) throws -> (readable: [(photo: TrainingPhoto, confidences: [Float])], skipped: [SkippedImage]) {
        let unknown = photos.labels.filter { !labels.contains($0) }
        guard unknown.isEmpty else {
            throw ImprintError.labelMismatch(
                source: photos.name, unknown: unknown, labels: labels)
        }
        let outcomes = try Workers(threads).results(ofPhotos: photos.items.count, onProgress: onProgress) {
            index throws -> [Float] in
            try checkCancellation()
            return try confidences(of: photos.items[index])
        }
        let labelIndices = photos.labels.map { label in labels.firstIndex(of: label) ?? 0 }
        var results: [(photo: TrainingPhoto, confidences: [Float])] = []
        var skipped: [SkippedImage] = []
        var readable: [TrainingPhoto] = []
        for (item, outcome) in zip(photos.items, outcomes) {
            switch outcome {
            case .success(let confidences):
                results.append((item.mapping(labelIndices), confidences))
                readable.append(item)
            case .failure(let error): skipped.append(SkippedImage(url: item.url, reason: error))
            }
        }
        try SkippedImage.checkEnoughAreReadable(
            of: photos.items, readable: readable, skipped: skipped, labels: photos.labels)
        return (results, skipped)
    }
}
