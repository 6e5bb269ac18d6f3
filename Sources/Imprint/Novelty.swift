public import ImprintImages
internal import ImprintModel

extension ImageClassifier {
    /// Returns how unlike the training photos an image is: 0 or more, and more than 1 if it shows none of the labels.
    ///
    /// ```swift
    /// let novelty = try classifier.novelty(of: .file(photo)) ?? 0
    /// print(novelty > 1 ? "none of these" : try classifier.classify(photo)[0].label)
    /// ```
    ///
    /// The value is relative to the threshold of `noveltyRule`, which accepts 95 % of the photos of known labels by default. Compare it with
    /// another limit for a stricter or a more tolerant rejection.
    /// - Parameters:
    ///   - source: The image.
    ///   - cropAndScale: How the image is fitted to the network's input, or nil for the same way as in training.
    /// - Returns: The novelty, or nil if `noveltyRule` is nil or if it does not know the label with the highest confidence, because a
    ///   personalization added that label.
    /// - Throws: `ImageError` if the image cannot be read, `ImprintError.nonFiniteOutput` if an output of the network is not finite.
    public func novelty(of source: ImageSource, cropAndScale: CropAndScale? = nil) throws -> Float? {
        guard noveltyRule != nil else { return nil }
        return try classifyWithNovelty(source, cropAndScale: cropAndScale).novelty
    }

    /// Classifies an image, and returns its novelty, or nil if it is unknown.
    package func classifyWithNovelty(
        _ source: ImageSource, cropAndScale: CropAndScale? = nil
    ) throws -> (classifications: [Classification], novelty: Float?) {
        let image = try source.stored(coveringShortSide: shortSideToDecode)
        return try classifyWithNovelty(image, cropAndScale: cropAndScale)
    }
}
