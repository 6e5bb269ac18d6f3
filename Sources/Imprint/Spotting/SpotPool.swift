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

    /// The confidence in the mark, and where it is most likely, as shares of the picture's sides.
    func spot(_ picture: Image) throws -> (confidence: Float, box: Observation.Box?) {
        let scanner =
            idle.withLock { $0.popLast() }?.scanner
            ?? SpotScanner(
                weights.network, parameters: weights.parameters, preprocessing: weights.preprocessing,
                levels: spotting.levels, stride: spotting.stride)
        defer {
            let scanner = Idle(scanner: scanner)
            idle.withLock { $0.append(scanner) }
        }
        let scan = try scanner.scan(picture, peaks: 1)
        let box = scan.peaks.first.map { peak in
            let side = peak.side * spotting.span / Float(SpotPhase.patchSide)
            return Observation.Box(
                x: (peak.x - side / 2) / Float(picture.width), y: (peak.y - side / 2) / Float(picture.height),
                width: side / Float(picture.width), height: side / Float(picture.height)
            ).withinPicture
        }
        return (spotting.confidence(scan.score), box)
    }
}
