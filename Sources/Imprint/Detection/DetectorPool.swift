package import ImprintImages
package import ImprintModel
internal import Synchronization

/// Scanners of a model for any number of threads.
package final class DetectorPool: Sendable {
    private let weights: ModelFile
    private let detector: DetectorHead
    private let idle = Mutex<[Idle]>([])

    /// A scanner that no thread is using at the moment.
    private struct Idle: @unchecked Sendable {
        let scanner: PyramidScanner
    }

    package init(_ weights: ModelFile, _ detector: DetectorHead) {
        self.weights = weights
        self.detector = detector
    }

    /// What a picture shows.
    package struct Sight {
        /// The confidence in each label of the model, in their order.
        package let confidences: [Float]
        /// Where the mark of each label is most likely, as shares of the picture's sides; `nil` for the label that is no mark.
        package let boxes: [NormalizedRectangle?]
    }

    /// Looks at a picture.
    /// - Throws: `ImprintError.noConfidence` if what the network computes are no numbers.
    package func spot(_ picture: RasterImage) throws(ImprintError) -> Sight {
        let scanner =
            idle.withLock { $0.popLast() }?.scanner
            ?? PyramidScanner(
                weights.network, parameters: weights.parameters, preprocessing: weights.preprocessing,
                detector: detector)
        defer {
            let scanner = Idle(scanner: scanner)
            idle.withLock { $0.append(scanner) }
        }
        // Finite parameters may still overflow on the way.
        guard let scans = try? scanner.scan(picture, peaks: 1), scans.allSatisfy({ $0.score.isFinite }) else {
            throw .noConfidence(network: weights.network.name)
        }
        let boxes = weights.labels.map { label in
            detector.marks.firstIndex { $0.label == label }.flatMap { scans[$0].peaks.first }.map {
                box($0, in: picture)
            }
        }
        return Sight(confidences: detector.confidences(scans.map(\.score), in: weights.labels), boxes: boxes)
    }

    private func box(_ peak: PyramidScanner.Peak, in picture: RasterImage) -> NormalizedRectangle {
        let side = peak.side * detector.span / Float(DetectorHead.patchSide)
        return NormalizedRectangle(
            x: (peak.x - side / 2) / Float(picture.width), y: (peak.y - side / 2) / Float(picture.height),
            width: side / Float(picture.width), height: side / Float(picture.height)
        ).withinPicture
    }
}
