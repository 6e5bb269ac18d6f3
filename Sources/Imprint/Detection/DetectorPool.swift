package import ImprintImages
package import ImprintModel
package import ImprintNetwork

/// A predictor for logo detectors, with a thread-safe pool of scanners.
package final class DetectorPool: HeadPredictor {
    private let model: ModelFile
    private let detector: DetectorHead
    private let threads: Int
    private let precision: Precision
    /// The minimum confidence of a detection of each logo.
    private let thresholds: [Double]
    private let scanners = IdlePool<PyramidScanner>()

    package init(
        _ model: ModelFile, _ detector: DetectorHead, threads: Int = 1, precision: Precision = .automatic
    ) {
        self.model = model
        self.threads = threads
        self.precision = precision
        self.detector = detector
        thresholds = detector.logos.map { model.detectionThreshold(of: $0.label) }
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
                model.network, parameters: model.parameters, preprocessing: model.preprocessing, detector: detector,
                threads: threads, precision: precision)
        } _: { scanner throws(ImprintError) in
            try scanner.allPeaks(image)
        }
        // Activations can overflow even though the parameters are finite.
        let areFinite = scans.allSatisfy { scan in
            scan.score.isFinite && scan.peaks.allSatisfy { $0.score.isFinite && $0.box?.isFinite ?? true }
        }
        guard areFinite else {
            throw .nonFiniteOutput(network: model.network.name)
        }
        let boxes = model.labels.map { label in
            detector.logos.firstIndex { $0.label == label }.flatMap { logo in
                scans[logo].peaks.max { $0.score < $1.score }
            }.map { peak in
                let box = ObjectPeaks.box(of: peak, detector).normalized(width: image.width, height: image.height)
                guard box.width > 0, box.height > 0 else {
                    // The predicted box is outside of the image, but the peak is inside.
                    var square = peak
                    square.box = nil
                    return ObjectPeaks.box(of: square, detector).normalized(width: image.width, height: image.height)
                }
                return box
            }
        }
        return Prediction(
            confidences: detector.confidences(scans.map(\.score), in: model.labels), boxes: boxes,
            objects: ObjectPeaks.objects(
                scans, detector, thresholds: thresholds, size: (image.width, image.height)))
    }
}

extension PyramidScanner.Peak.Box {
    /// Whether all values are finite.
    fileprivate var isFinite: Bool { x.isFinite && y.isFinite && width.isFinite && height.isFinite }

    /// Returns the part of the box in an image of this size, relative to the image.
    func normalized(width columns: Int, height rows: Int) -> NormalizedRectangle {
        NormalizedRectangle(
            x: x / Float(columns), y: y / Float(rows), width: width / Float(columns), height: height / Float(rows)
        ).clippedToImage
    }
}
