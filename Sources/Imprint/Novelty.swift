public import ImprintImages
internal import ImprintModel

extension ImageClassifier {
    /// Returns the novelty of an image, 0 or more; above 1, the image shows none of the labels.
    ///
    /// ```swift
    /// let novelty = try classifier.novelty(of: .file(photo)) ?? 0
    /// print(novelty > 1 ? "none of these" : try classifier.classify(photo)[0].label)
    /// ```
    ///
    /// Novelty is the distance of the image from the training photos, relative to the threshold of `noveltyRule`. By default, this threshold
    /// accepts 95 % of the photos of known labels. Compare the novelty with a lower limit to reject more images, or with a higher one to
    /// reject fewer.
    /// - Parameters:
    ///   - source: The image.
    ///   - cropAndScale: The rule that fits the image to the network's input; nil for the rule used in training, and for detectors.
    /// - Returns: The novelty; nil without a `noveltyRule`, or if a personalization added the label with the highest confidence.
    /// - Throws: `ImageError` if the image cannot be read, `ImprintError.invalidSetting` if `cropAndScale` is set for a detector,
    ///   `ImprintError.nonFiniteOutput` if an output of the network is not finite.
    public func novelty(of source: ImageSource, cropAndScale: CropAndScale? = nil) throws -> Float? {
        try check(cropAndScale)
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
