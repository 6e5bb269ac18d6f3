package import ImprintImages
package import ImprintModel
internal import ImprintNetwork
internal import Synchronization

/// Scanners of a model for any number of threads.
package final class DetectorPool: HeadPredictor {
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

    package var shortSideToDecode: Int { PatchSource.shortSideToDecode }

    package func predict(_ picture: StoredPicture, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction {
        try detect(in: PatchSource.shrunk(picture.upright))
    }

    /// Detects the logos of the model in a picture.
    /// - Throws: `ImprintError.noConfidence` if a score is not finite, `ImprintError.outOfMemory`.
    package func detect(in picture: RasterImage) throws(ImprintError) -> Prediction {
        let scanner =
            idle.withLock { $0.popLast() }?.scanner
            ?? PyramidScanner(
                weights.network, parameters: weights.parameters, preprocessing: weights.preprocessing,
                detector: detector)
        defer {
            let scanner = Idle(scanner: scanner)
            idle.withLock { $0.append(scanner) }
        }
        let scans: [PyramidScanner.Scan]
        do {
            scans = try scanner.scan(picture, peaks: 1)
        } catch NetworkError.outOfMemory(let bytes) {
            throw .outOfMemory(byteCount: bytes)
        } catch {
            throw .noConfidence(network: weights.network.name)
        }
        // Finite parameters may still overflow in the layers.
        guard scans.allSatisfy({ $0.score.isFinite }) else { throw .noConfidence(network: weights.network.name) }
        let boxes = weights.labels.map { label in
            detector.marks.firstIndex { $0.label == label }.flatMap { scans[$0].peaks.first }.map {
                box($0, in: picture)
            }
        }
        return Prediction(confidences: detector.confidences(scans.map(\.score), in: weights.labels), boxes: boxes)
    }

    private func box(_ peak: PyramidScanner.Peak, in picture: RasterImage) -> NormalizedRectangle {
        let side = peak.side * detector.span / Float(DetectorHead.patchSide)
        return NormalizedRectangle(
            x: (peak.x - side / 2) / Float(picture.width), y: (peak.y - side / 2) / Float(picture.height),
            width: side / Float(picture.width), height: side / Float(picture.height)
        ).withinPicture
    }
}
