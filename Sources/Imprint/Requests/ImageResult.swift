internal import ImprintImages
internal import ImprintModel

/// The classifications of an image, and its objects if the model is a detector.
package struct ImageResult: Sendable {
    /// One classification per label, by descending confidence.
    package let classifications: [Classification]
    /// The novelty of the image, as `ImageClassifier.novelty(of:cropAndScale:)` returns it; nil if it is unknown.
    package let novelty: Float?
    /// The objects that reach the thresholds of their labels, by descending confidence; nil for a classifier of whole images.
    package let objects: [DetectedObject]?
}

extension ImageClassifier {
    /// Classifies an image and finds its objects with one evaluation of the network.
    ///
    /// The results equal those of `classify(_:cropAndScale:)` and `detect(_:minimumConfidence:)`.
    /// - Throws: `ImageError` if the image cannot be read, `ImprintError.nonFiniteOutput`, `ImprintError.unsupportedImageSize`,
    ///   `ImprintError.outOfMemory`.
    package func result(for source: ImageSource) throws -> ImageResult {
        let image = try source.stored(coveringShortSide: shortSideToDecode)
        let prediction = try predictor.predict(image, cropAndScale: nil)
        return ImageResult(
            classifications: classifications(prediction, in: .all), novelty: prediction.novelty,
            objects: locatesObjects ? prediction.objects.filter { reachesThreshold($0, nil) } : nil)
    }

    /// Whether the model is a detector, which finds objects.
    package var locatesObjects: Bool { model.head.locatesObjects }
}
