package import ImprintImages
package import ImprintModel
internal import ImprintNetwork

/// A predictor for logo detectors, with a thread-safe pool of scanners.
package final class DetectorPool: HeadPredictor {
    private let model: ModelFile
    private let detector: DetectorHead
    private let scanners = IdlePool<PyramidScanner>()

    package init(_ model: ModelFile, _ detector: DetectorHead) {
        self.model = model
        self.detector = detector
    }

    package var shortSideToDecode: Int { PatchSource.shortSideToDecode }

    package func predict(_ image: StoredImage, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction {
        try detect(in: PatchSource.shrunk(image.upright))
    }

    /// Detects the logos of the model in an image.
    /// - Throws: `ImprintError.nonFiniteOutput` if a score is not finite, `ImprintError.unsupportedImageSize` if the network does not accept
    ///   a pyramid level, `ImprintError.outOfMemory`.
    package func detect(in image: RasterImage) throws(ImprintError) -> Prediction {
        let scans = try scanners.withValue { () throws(ImprintError) in
            PyramidScanner(
                model.network, parameters: model.parameters, preprocessing: model.preprocessing, detector: detector)
        } _: { scanner throws(ImprintError) in
            try scanner.scan(image, peaks: 1)
        }
        // Activations can overflow even though the parameters are finite.
        guard scans.allSatisfy({ $0.score.isFinite }) else { throw .nonFiniteOutput(network: model.network.name) }
        let boxes = model.labels.map { label in
            detector.logos.firstIndex { $0.label == label }.flatMap { scans[$0].peaks.first }.map {
                box($0, in: image)
            }
        }
        return Prediction(confidences: detector.confidences(scans.map(\.score), in: model.labels), boxes: boxes)
    }

    private func box(_ peak: PyramidScanner.Peak, in image: RasterImage) -> NormalizedRectangle {
        let side = peak.side * detector.span / Float(DetectorHead.patchSide)
        return NormalizedRectangle(
            x: (peak.x - side / 2) / Float(image.width), y: (peak.y - side / 2) / Float(image.height),
            width: side / Float(image.width), height: side / Float(image.height)
        ).clippedToImage
    }
}
