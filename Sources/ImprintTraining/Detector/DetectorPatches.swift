internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis

/// Where the patches of a batch come from: composites and photos, chosen, placed and varied by the seed and the step alone.
final class DetectorPatches {
    /// A place of a photo that the network found.
    struct Finding: Codable, Hashable, Sendable {
        /// Which photo.
        let picture: Int
        let peak: PyramidScanner.Peak
    }

    /// The number of composites of either kind that batches choose from.
    private let poolSize: Int
    private let batchSize: Int
    /// Whether the mirror image of every mark is the mark itself.
    private let mirrors: Bool

    /// A photo that shows a mark.
    struct Positive {
        let picture: PatchSource
        let mark: Int
    }

    /// What makes pictures of each mark.
    let compositors: [Compositor]
    let negatives: [PatchSource]
    let positives: [Positive]
    /// Where the network was most wrong about photos without a mark, and where it saw the mark in those with one.
    var mined: [Finding] = []
    var located: [Finding] = []
    /// Takes note of photos that can no longer be read.
    private let unreadable: UnreadablePhotos
    private let seed: UInt64
    private let workers: Workers
    /// Composites drawn before, by their index modulo the size of the pool; all are there once a batch is filled.
    private var positivePool: [Drawn?]
    private var hardNegativePool: [Drawn?]
    private var drawnCount = 0

    private struct Drawn {
        let picture: PatchSource
        let place: Composite.Place
        let mark: Int
    }

    init(
        compositors: [Compositor], negatives: [PatchSource], positives: [Positive], unreadable: UnreadablePhotos,
        seed: UInt64,
        workers: Workers, batchSize: Int, poolSize: Int
    ) {
        self.compositors = compositors
        self.negatives = negatives
        self.positives = positives
        self.unreadable = unreadable
        self.seed = seed
        self.workers = workers
        self.poolSize = poolSize
        self.batchSize = batchSize
        mirrors = compositors.allSatisfy { $0.artworks.allSatisfy(\.isMirrorSymmetric) }
        positivePool = Array(repeating: nil, count: poolSize)
        hardNegativePool = positivePool
    }

    /// Fills the patches of a batch, [N, 96, 96, 3], and tells what each shows.
    /// - Throws: `ImageError` if a composite cannot be drawn, or too few photos can still be read.
    func fill(
        _ patches: UnsafeMutableBufferPointer<UInt8>, of phase: DetectorPhase, step: Int
    ) throws(ImageError) -> [HeatMapLoss.Target?] {
        try refreshPool(before: step)
        let patchCount = DetectorHead.patchSide * DetectorHead.patchSide * 3
        let shares = [phase.composites, phase.hardNegatives, phase.background, phase.mined, phase.located]
        return try workers.parallelMap(batchSize) { index throws(ImageError) in
            var random = RandomStream(seed: seed, "patch", step, index)
            let patch = UnsafeMutableBufferPointer(rebasing: patches[(index * patchCount)..<((index + 1) * patchCount)])
            var position = (Float(index) + random.uniform()) / Float(batchSize) * shares.reduce(0, +)
            var kind = 0
            while kind < 4 && position >= shares[kind] {
                position -= shares[kind]
                kind += 1
            }
            let target = try draw(kind, &random, into: patch)
            PatchJitter(&random).change(patch, side: DetectorHead.patchSide)
            return target
        }
    }

    /// Reads a window of some kind; in the place of one in a photo that is lost, one anywhere in another.
    private func draw(
        _ kind: Int, _ random: inout RandomStream, into patch: UnsafeMutableBufferPointer<UInt8>
    ) throws(ImageError) -> HeatMapLoss.Target? {
        var (picture, window, target) = choose(kind, &random)
        while let reason = try problem(reading: picture, window, into: patch) {
            if negatives.allSatisfy({ unreadable.reason(for: $0) != nil }) { throw reason }
            (picture, window, target) = anywhere(&random)
        }
        return target
    }

    /// Reads a window.
    /// - Returns: Why the photo is lost, if it is.
    private func problem(
        reading picture: PatchSource, _ window: PatchWindow, into patch: UnsafeMutableBufferPointer<UInt8>
    ) throws(ImageError) -> ImageError? {
        if let reason = unreadable.reason(for: picture) { return reason }
        do throws(ImageError) {
            try picture.read(window, side: DetectorHead.patchSide, into: patch)
            return nil
        } catch {
            try unreadable.add(picture, error)
            return error
        }
    }

    private func choose(
        _ kind: Int, _ random: inout RandomStream
    ) -> (PatchSource, PatchWindow, HeatMapLoss.Target?) {
        switch kind {
        case 0, 1:
            guard let drawn = (kind == 0 ? positivePool : hardNegativePool)[random.index(below: poolSize)] else {
                preconditionFailure("the pool is filled before a batch")
            }
            let place = drawn.place
            let window = self.window(aroundX: place.x, y: place.y, span: place.span, turns: true, &random)
            return (drawn.picture, window, kind == 0 ? target(drawn.mark, window, place.x, place.y) : nil)
        case 3 where !mined.isEmpty:
            let finding = mined[random.index(below: mined.count)]
            let peak = finding.peak
            let window = self.window(aroundX: peak.x, y: peak.y, span: 0.45 * peak.side, turns: true, &random)
            return (negatives[finding.picture], window, nil)
        case 4 where !located.isEmpty:
            let finding = located[random.index(below: located.count)]
            let peak = finding.peak
            let positive = positives[finding.picture]
            let window = self.window(aroundX: peak.x, y: peak.y, span: 0.45 * peak.side, turns: false, &random)
            return (positive.picture, window, target(positive.mark, window, peak.x, peak.y))
        case 2 where negatives.isEmpty, 3 where negatives.isEmpty: return choose(1, &random)
        default: break
        }
        return anywhere(&random)
    }

    /// A window anywhere in a photo without a mark.
    private func anywhere(_ random: inout RandomStream) -> (PatchSource, PatchWindow, HeatMapLoss.Target?) {
        let picture = negatives[random.index(below: negatives.count)]
        let side = min(logUniform(70, 448, &random), Float(min(picture.width, picture.height)))
        let window = PatchWindow(
            x: random.uniform(in: 0...1) * (Float(picture.width) - side) + side / 2,
            y: random.uniform(in: 0...1) * (Float(picture.height) - side) + side / 2, side: side,
            angle: random.chance(0.3) ? Float(random.index(below: 4)) * .pi / 2 : 0,
            isMirrored: random.chance(0.5) && mirrors)
        return (picture, window, nil)
    }

    /// A window in which what is at a place is 30 to 60 % of the side, somewhere inside.
    private func window(
        aroundX x: Float, y: Float, span: Float, turns: Bool, _ random: inout RandomStream
    ) -> PatchWindow {
        let share = logUniform(0.3, 0.62, &random)
        let side = span / share
        var angle = 8 * .pi / 180 * random.normal()
        if turns && random.chance(0.3) { angle += Float(random.index(below: 4)) * .pi / 2 }
        let room = 0.45 * (1 - share) * side
        return PatchWindow(
            x: x + random.uniform(in: -1...1) * room, y: y + random.uniform(in: -1...1) * room, side: side,
            angle: angle,
            isMirrored: random.chance(0.5) && mirrors)
    }

    private func target(_ mark: Int, _ window: PatchWindow, _ x: Float, _ y: Float) -> HeatMapLoss.Target {
        let place = window.position(ofX: x, y: y, patch: Float(DetectorHead.patchSide))
        let middle = Float(DetectorHead.patchSide - 1) / 2
        return HeatMapLoss.Target(mark: mark, row: (place.y + middle) / 16, column: (place.x + middle) / 16)
    }

    private func logUniform(_ low: Float, _ high: Float, _ random: inout RandomStream) -> Float {
        low * powf(high / low, random.uniform())
    }

    // MARK: Composites

    /// Composites of a mark that no step draws.
    func unseen(_ count: Int, of mark: Int, isPositive: Bool) throws(ImageError) -> [PatchSource] {
        try workers.parallelMap(count) { place throws(ImageError) in
            try draw((1 << 30) + place, of: mark, isPositive: isPositive).picture
        }
    }

    private func draw(_ index: Int, of mark: Int, isPositive: Bool) throws(ImageError) -> Drawn {
        let compositor = compositors[mark]
        let composite = try isPositive ? compositor.positive(index) : compositor.hardNegative(index)
        return Drawn(picture: PatchSource(composite.image), place: composite.subject, mark: mark)
    }

    /// Brings the pool to what it is before a step: two of either kind are new in every step, in the place of the oldest.
    ///
    /// The marks take turns.
    private func refreshPool(before step: Int) throws(ImageError) {
        let wanted = poolSize + 2 * step
        let first = max(wanted - poolSize, drawnCount)
        let new = try workers.parallelMap(2 * (wanted - first)) { place throws(ImageError) in
            let index = first + place / 2
            return try draw(index, of: index % compositors.count, isPositive: place % 2 == 0)
        }
        for (place, drawn) in new.enumerated() {
            let slot = (first + place / 2) % poolSize
            if place % 2 == 0 { positivePool[slot] = drawn } else { hardNegativePool[slot] = drawn }
        }
        drawnCount = wanted
    }
}
