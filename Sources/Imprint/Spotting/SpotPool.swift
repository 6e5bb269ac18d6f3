internal import ImprintFormats
internal import ImprintImages
internal import Synchronization

/// Scanners of a model for any number of threads.
final class SpotPool: Sendable {
    private let weights: WeightsFile
    private let spotting: Spotting
    private let idle = Mutex<[Idle]>([])

    /// A scanner that no thread is using at the moment.
    private struct Idle: @unchecked Sendable {
        let scanner: SpotScanner
    }

    init(_ weights: WeightsFile, _ spotting: Spotting) {
        self.weights = weights
        self.spotting = spotting
    }

    /// What a picture shows.
    struct Sight {
        /// The confidence in each label of the model, in their order.
        let confidences: [Float]
        /// Where the mark of each label is most likely, as shares of the picture's sides; `nil` for the label that is no mark.
        let boxes: [NormalizedRectangle?]
    }

    /// Looks at a picture.
    /// - Throws: `ImprintError.noConfidence` where what the network computes are no numbers.
    func spot(_ picture: Image) throws(ImprintError) -> Sight {
        let scanner =
            idle.withLock { $0.popLast() }?.scanner
            ?? SpotScanner(
                weights.network, parameters: weights.parameters, preprocessing: weights.preprocessing,
                spotting: spotting)
        defer {
            let scanner = Idle(scanner: scanner)
            idle.withLock { $0.append(scanner) }
        }
        // Finite parameters may still overflow on the way.
        guard let scans = try? scanner.scan(picture, peaks: 1), scans.allSatisfy({ $0.score.isFinite }) else {
            throw .noConfidence(network: weights.network.name)
        }
        let boxes = weights.labels.map { label in
            spotting.marks.firstIndex { $0.label == label }.flatMap { scans[$0].peaks.first }.map {
                box($0, in: picture)
            }
        }
        return Sight(confidences: spotting.confidences(scans.map(\.score), in: weights.labels), boxes: boxes)
    }

    private func box(_ peak: SpotScanner.Peak, in picture: Image) -> NormalizedRectangle {
        let side = peak.side * spotting.span / Float(SpotPhase.patchSide)
        return NormalizedRectangle(
            x: (peak.x - side / 2) / Float(picture.width), y: (peak.y - side / 2) / Float(picture.height),
            width: side / Float(picture.width), height: side / Float(picture.height)
        ).withinPicture
    }
}
