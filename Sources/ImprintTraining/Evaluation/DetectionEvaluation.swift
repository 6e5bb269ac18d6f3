public import Imprint
internal import ImprintCore
public import ImprintImages
internal import ImprintModel

/// The evaluation of a detector on annotated photos.
public struct DetectionEvaluation: Sendable {
    /// The metrics over all readable photos.
    public let metrics: DetectionMetrics
    /// The confidence threshold of each label, in the order of `metrics.labels`.
    ///
    /// Empty for the pooled detections of a cross-validation, because the model of each fold has its own thresholds.
    public let thresholds: [Double]
    /// The precision, recall and false positives at the thresholds.
    public let operatingPoint: DetectionMetrics.OperatingPoint
    /// The photos that could not be read.
    public let skipped: [SkippedImage]

    init(_ metrics: DetectionMetrics, thresholds: [Double], skipped: [SkippedImage]) {
        self.metrics = metrics
        self.thresholds = thresholds
        self.skipped = skipped
        operatingPoint = metrics.operatingPoint(thresholds: thresholds)
    }

    /// Pools the evaluations of several models with the same labels, such as those of the folds of a cross-validation.
    ///
    /// The metrics cover the detections of all models together. The operating point has the sums of the counts at each model's thresholds,
    /// but does not have thresholds itself.
    init(pooling evaluations: [DetectionEvaluation], labels: [String], skipped: [SkippedImage]) {
        metrics = DetectionMetrics(labels: labels, predictions: evaluations.flatMap(\.metrics.predictions))
        thresholds = []
        self.skipped = skipped
        operatingPoint = DetectionMetrics.OperatingPoint(pooling: evaluations, labels: labels)
    }

    /// The thresholds by their labels.
    var thresholdsByLabel: [String: Double] {
        Dictionary(zip(metrics.labels, thresholds), uniquingKeysWith: { first, _ in first })
    }
}

extension ImageClassifier {
    /// Evaluates a detector on annotated photos.
    /// - Parameters:
    ///   - annotations: The photos and their boxes; the labels of all boxes are those of the detector.
    ///   - threads: The number of photos to process at the same time, at least 1.
    ///   - onProgress: A closure that receives the number of processed photos.
    /// - Returns: The metrics of all detections, however low their confidence, and those at the model's thresholds.
    /// - Throws: `ImprintError.notADetector` if the model classifies whole images, `ImprintError.labelMismatch` if the annotations have
    ///   other labels, `ImageError` if more than half of the photos are unreadable or missing, and the errors of `detect(_:minimumConfidence:)`.
    public func evaluate(
        on annotations: BoxAnnotations, threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> DetectionEvaluation {
        try evaluate(on: annotations, threads: threads, onProgress: onProgress, checkCancellation: {})
    }

    /// Evaluates the detector on a thread of its own, as the function without `async`.
    ///
    /// If the task is cancelled, the evaluation ends after the current photos, and throws `CancellationError`.
    /// - Parameters:
    ///   - annotations: The photos and their boxes; the labels of all boxes are those of the detector.
    ///   - threads: The number of photos to process at the same time, at least 1.
    ///   - onProgress: A closure that receives the number of processed photos, on the thread of the evaluation.
    /// - Throws: The errors of the function without `async`, and `CancellationError`.
    public func evaluate(
        on annotations: BoxAnnotations, threads: Int = 1, onProgress: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws -> DetectionEvaluation {
        try await onCancellableThread { [self] checkCancellation in
            try evaluate(
                on: annotations, threads: threads, onProgress: onProgress, checkCancellation: checkCancellation)
        }
    }

    /// Evaluates the model, as the public function.
    /// - Parameter checkCancellation: Called before each image, from any thread; throws if the evaluation should end.
    func evaluate(
        on annotations: BoxAnnotations, threads: Int, onProgress: (Int) -> Void,
        checkCancellation: @Sendable () throws -> Void
    ) throws -> DetectionEvaluation {
        try checkLocatesObjects()
        try annotations.checkEnoughAreReadable()
        let labels = objectLabels ?? []
        let unknown = annotations.usedLabels.filter { !labels.contains($0) }
        guard unknown.isEmpty else {
            throw ImprintError.labelMismatch(source: annotations.name, unknown: unknown, labels: labels)
        }
        let photos = annotations.photos
        let outcomes = try Workers(threads).results(ofPhotos: photos.count, onProgress: onProgress) {
            index throws -> [DetectedObject] in
            try checkCancellation()
            return try detect(photos[index].url, minimumConfidence: 0)
        }
        var predictions: [DetectionMetrics.Prediction] = []
        var skipped = annotations.skipped
        for (photo, outcome) in zip(photos, outcomes) {
            switch outcome {
            case .success(let detections): predictions.append((photo, detections))
            case .failure(let error): skipped.append(SkippedImage(url: photo.url, reason: error))
            }
        }
        try annotations.checkEnoughAreReadable(skipped: skipped)
        return DetectionEvaluation(
            DetectionMetrics(labels: labels, predictions: predictions),
            thresholds: labels.map(detectionThreshold), skipped: skipped)
    }
}
