internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis

/// The training patches: windows of composites and photos, sampled and augmented depending only on the seed and the step.
final class DetectorPatches {
    /// A detection of the network in an image.
    struct Detection: Codable, Hashable, Sendable {
        /// The index of the image among the negatives or the positives.
        let imageIndex: Int
        let peak: PyramidScanner.Peak

        private enum CodingKeys: String, CodingKey {
            case imageIndex = "picture"
            case peak
        }
    }

    /// The number of composites of each kind that batches sample from.
    private let poolSize: Int
    private let batchSize: Int
    /// Whether patches may be mirrored, because the mirror image of every logo is the logo itself.
    private let mirrors: Bool

    /// A photo that shows a logo.
    struct Positive {
        let source: PatchSource
        let logo: Int
    }

    /// The compositor of each logo.
    let compositors: [Compositor]
    /// The images without a logo.
    let negatives: [PatchSource]
    /// The photos that show a logo.
    let positives: [Positive]
    /// The strongest false detections in the negatives (hard negatives).
    var mined: [Detection] = []
    /// The strongest detections of the logos in the positives.
    var located: [Detection] = []
    /// Records photos that have become unreadable.
    private let unreadable: UnreadablePhotos
    private let seed: UInt64
    private let workers: Workers
    /// The positive composites by their index modulo the pool size; filled before a batch.
    private var positivePool: [PooledComposite?]
    /// The hard-negative composites by their index modulo the pool size; filled before a batch.
    private var hardNegativePool: [PooledComposite?]
    private var drawnCount = 0

    private struct PooledComposite {
        let source: PatchSource
        let location: Composite.Location
        let logo: Int
    }

    init(
        compositors: [Compositor], negatives: [PatchSource], positives: [Positive], unreadable: UnreadablePhotos,
        seed: UInt64, workers: Workers, batchSize: Int, poolSize: Int
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

    /// Fills the patches of a batch, [N, 96, 96, 3].
    /// - Returns: The target of each patch; nil for a patch without a logo.
    /// - Throws: `ImageError` if a composite cannot be drawn, or if too few photos can still be read.
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
            let target = try readPatch(kind, &random, into: patch)
            PatchJitter(&random).change(patch, side: DetectorHead.patchSide)
            return target
        }
    }

    /// Reads a patch of a kind; if its photo has become unreadable, a random patch of another image.
    private func readPatch(
        _ kind: Int, _ random: inout RandomStream, into patch: UnsafeMutableBufferPointer<UInt8>
    ) throws(ImageError) -> HeatMapLoss.Target? {
        var (source, window, target) = choose(kind, &random)
        while let reason = try problem(reading: source, window, into: patch) {
            if negatives.allSatisfy({ unreadable.reason(for: $0) != nil }) { throw reason }
            (source, window, target) = randomNegative(&random)
        }
        return target
    }

    /// Reads a window.
    /// - Returns: The reason why the photo is unreadable; nil if the window was read.
    private func problem(
        reading source: PatchSource, _ window: PatchWindow, into patch: UnsafeMutableBufferPointer<UInt8>
    ) throws(ImageError) -> ImageError? {
        if let reason = unreadable.reason(for: source) { return reason }
        do throws(ImageError) {
            try source.read(window, side: DetectorHead.patchSide, into: patch)
            return nil
        } catch {
            try unreadable.add(source, error)
            return error
        }
    }

    private func choose(
        _ kind: Int, _ random: inout RandomStream
    ) -> (PatchSource, PatchWindow, HeatMapLoss.Target?) {
        switch kind {
        case 0, 1:
            guard let composite = (kind == 0 ? positivePool : hardNegativePool)[random.index(below: poolSize)] else {
                preconditionFailure("the pool is filled before a batch")
            }
            let location = composite.location
            let window = self.window(aroundX: location.x, y: location.y, span: location.span, rotates: true, &random)
            return (
                composite.source, window, kind == 0 ? target(composite.logo, window, location.x, location.y) : nil
            )
        case 3 where !mined.isEmpty:
            let detection = mined[random.index(below: mined.count)]
            let peak = detection.peak
            let window = self.window(aroundX: peak.x, y: peak.y, span: 0.45 * peak.side, rotates: true, &random)
            return (negatives[detection.imageIndex], window, nil)
        case 4 where !located.isEmpty:
            let detection = located[random.index(below: located.count)]
            let peak = detection.peak
            let positive = positives[detection.imageIndex]
            let window = self.window(aroundX: peak.x, y: peak.y, span: 0.45 * peak.side, rotates: false, &random)
            return (positive.source, window, target(positive.logo, window, peak.x, peak.y))
        case 2 where negatives.isEmpty, 3 where negatives.isEmpty: return choose(1, &random)
        default: break
        }
        return randomNegative(&random)
    }

    /// Returns a random window of a random image without a logo.
    private func randomNegative(_ random: inout RandomStream) -> (PatchSource, PatchWindow, HeatMapLoss.Target?) {
        let source = negatives[random.index(below: negatives.count)]
        let side = min(logUniform(70, 448, &random), Float(min(source.width, source.height)))
        let window = PatchWindow(
            x: random.uniform(in: 0...1) * (Float(source.width) - side) + side / 2,
            y: random.uniform(in: 0...1) * (Float(source.height) - side) + side / 2, side: side,
            angle: random.chance(0.3) ? Float(random.index(below: 4)) * .pi / 2 : 0,
            isMirrored: random.chance(0.5) && mirrors)
        return (source, window, nil)
    }

    /// Returns a window that contains an object of size `span` at a random position, at 30 to 62 % of the window's side.
    private func window(
        aroundX x: Float, y: Float, span: Float, rotates: Bool, _ random: inout RandomStream
    ) -> PatchWindow {
        let fraction = logUniform(0.3, 0.62, &random)
        let side = span / fraction
        var angle = 8 * .pi / 180 * random.normal()
        if rotates && random.chance(0.3) { angle += Float(random.index(below: 4)) * .pi / 2 }
        let maximumShift = 0.45 * (1 - fraction) * side
        return PatchWindow(
            x: x + random.uniform(in: -1...1) * maximumShift, y: y + random.uniform(in: -1...1) * maximumShift,
            side: side, angle: angle, isMirrored: random.chance(0.5) && mirrors)
    }

    private func target(_ logo: Int, _ window: PatchWindow, _ x: Float, _ y: Float) -> HeatMapLoss.Target {
        let position = window.position(ofX: x, y: y, patch: Float(DetectorHead.patchSide))
        let middle = Float(DetectorHead.patchSide - 1) / 2
        return HeatMapLoss.Target(logo: logo, row: (position.y + middle) / 16, column: (position.x + middle) / 16)
    }

    private func logUniform(_ low: Float, _ high: Float, _ random: inout RandomStream) -> Float {
        low * powf(high / low, random.uniform())
    }

    // MARK: Composites

    /// Draws composites of a logo that training does not use.
    func heldOutComposites(_ count: Int, of logo: Int, isPositive: Bool) throws(ImageError) -> [PatchSource] {
        try workers.parallelMap(count) { index throws(ImageError) in
            try draw((1 << 30) + index, of: logo, isPositive: isPositive).source
        }
    }

    private func draw(_ index: Int, of logo: Int, isPositive: Bool) throws(ImageError) -> PooledComposite {
        let compositor = compositors[logo]
        let composite = try isPositive ? compositor.positive(index) : compositor.hardNegative(index)
        return PooledComposite(source: PatchSource(composite.image), location: composite.subject, logo: logo)
    }

    /// Updates the pools for a step: each step replaces the two oldest composites of each kind.
    ///
    /// The logos take turns.
    private func refreshPool(before step: Int) throws(ImageError) {
        let count = poolSize + 2 * step
        let first = max(count - poolSize, drawnCount)
        let new = try workers.parallelMap(2 * (count - first)) { item throws(ImageError) in
            let index = first + item / 2
            return try draw(index, of: index % compositors.count, isPositive: item % 2 == 0)
        }
        for (item, composite) in new.enumerated() {
            let slot = (first + item / 2) % poolSize
            if item % 2 == 0 { positivePool[slot] = composite } else { hardNegativePool[slot] = composite }
        }
        drawnCount = count
    }
}
