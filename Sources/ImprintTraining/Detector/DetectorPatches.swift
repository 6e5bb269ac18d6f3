internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis

/// The training patches: windows of composites and photos.
///
/// Sampling and augmentation depend only on the seed and the step.
final class DetectorPatches {
    /// The number of patches of a batch.
    let batchSize: Int
    /// The number of composites of each kind that batches sample from.
    private let poolSize: Int
    /// Whether patches may be mirrored: only if every logo equals its mirror image.
    private let mirrors: Bool

    /// The compositors of the logos that have artwork, with the indices of the logos.
    let compositors: [(logo: Int, compositor: Compositor)]
    /// The images without a logo, and the annotated photos.
    let negatives: [GroundTruthImage]
    /// The objects of the annotated photos, without crowds, with the indices of their photos among the negatives.
    private let annotated: [(imageIndex: Int, object: GroundTruthObject)]
    /// The photos that show a logo.
    let positives: [Positive]
    /// The strongest false detections in the negatives (hard negatives).
    var mined: [Detection] = []
    /// The strongest detections of the logos in the positives.
    var located: [Detection] = []
    /// The record of photos that have become unreadable.
    private let unreadable: UnreadablePhotos
    private let seed: UInt64
    private let workers: Workers
    /// The positive composites by their index modulo the pool size; filled before a batch.
    private var positivePool: [PooledComposite?]
    /// The hard-negative composites by their index modulo the pool size; filled before a batch.
    private var hardNegativePool: [PooledComposite?]
    private var drawnCount = 0

    /// The kind of a patch, in the order in which the patches of a batch are divided among the kinds.
    private enum Kind: CaseIterable {
        /// A composite with a logo.
        case composite
        /// A composite with a hard negative.
        case hardNegative
        /// A random crop of an image without a logo.
        case background
        /// A mined hard negative.
        case mined
        /// A crop around a logo that the network located in a photo.
        case located

        /// The share of the kind in a phase.
        func share(in phase: DetectorPhase) -> Float {
            switch self {
            case .composite: phase.composites
            case .hardNegative: phase.hardNegatives
            case .background: phase.background
            case .mined: phase.mined
            case .located: phase.located
            }
        }
    }

    /// The size of a detected logo as a fraction of the side of the network's window.
    ///
    /// The network does not measure the logo, so this is the typical size, about `DetectorHead.span` of `patchSide` pixels.
    private static let typicalSpan: Float = 0.45
    /// The maximum shift of an object from the centre of its window, as a fraction of the room beside the object.
    ///
    /// A shift by half of the room moves the object to the edge; a bit less leaves a margin.
    private static let maximumShift: Float = 0.45

    /// The fraction of hard negatives that are parts of logos, if there are several logos.
    private static let partShare: Float = 0.3
    /// The minimum side of a window on a part of a logo, in pixels of the composite; a smaller one would be too blurred.
    private static let minimumPartSide: Float = 48

    init(
        compositors: [(logo: Int, compositor: Compositor)], negatives: [GroundTruthImage], positives: [Positive],
        unreadable: UnreadablePhotos, seed: UInt64, workers: Workers, batchSize: Int, poolSize: Int
    ) {
        annotated = negatives.enumerated().flatMap { index, image in
            image.objects.filter { !$0.isCrowd }.map { (index, $0) }
        }
        self.compositors = compositors
        self.negatives = negatives
        self.positives = positives
        self.unreadable = unreadable
        self.seed = seed
        self.workers = workers
        self.poolSize = poolSize
        self.batchSize = batchSize
        // Annotated objects are never mirrored, because they may contain letters.
        mirrors =
            annotated.isEmpty && compositors.allSatisfy { $0.compositor.artworks.allSatisfy(\.isMirrorSymmetric) }
        positivePool = Array(repeating: nil, count: poolSize)
        hardNegativePool = positivePool
    }

    /// Fills the patches of a batch, [N, 96, 96, 3].
    /// - Returns: The targets of each patch; empty for a patch without a logo.
    /// - Throws: `ImageError` if a composite cannot be drawn, or if too few photos can still be read; `ProcessFailedError` if only another process
    ///   cannot draw a composite.
    func fill(
        _ patches: UnsafeMutableBufferPointer<UInt8>, of phase: DetectorPhase, step: Int
    ) throws -> [[HeatMapLoss.Target]] {
        let processes = workers.processes
        if !compositors.isEmpty { try processes.failTogether { try refreshPool(before: step) } }
        let own = processes?.part(of: batchSize).images ?? 0..<batchSize
        while true {
            let before = unreadable.all.count
            let results = fill(patches, of: phase, step: step, reading: own)
            let hasNewUnreadablePhotos = processes.map { unreadable.share(with: $0, from: before) } ?? false
            // All processes know the same unreadable photos now, so all of them throw, or none.
            if let problem = unreadable.problem { throw problem }
            // If a photo has become unreadable, other images replace its patches in all processes.
            if hasNewUnreadablePhotos { continue }
            var targets: [[HeatMapLoss.Target]] = []
            for result in results { targets.append(try result.get()) }
            return targets
        }
    }

    /// Fills patches of a batch.
    /// - Parameter own: The patches to read; the others only get targets.
    /// - Returns: The targets of each patch, or the reason why no photo is readable for it.
    private func fill(
        _ patches: UnsafeMutableBufferPointer<UInt8>, of phase: DetectorPhase, step: Int, reading own: Range<Int>
    ) -> [Result<[HeatMapLoss.Target], ImageError>] {
        let valuesPerPatch = DetectorHead.patchSide * DetectorHead.patchSide * 3
        let shares = Kind.allCases.map { $0.share(in: phase) }
        return workers.parallelMap(batchSize) { index in
            var random = RandomStream(seed: seed, "patch", step, index)
            let patch = UnsafeMutableBufferPointer(
                rebasing: patches[(index * valuesPerPatch)..<((index + 1) * valuesPerPatch)])
            let position = (Float(index) + random.uniform()) / Float(batchSize) * shares.reduce(0, +)
            let kind = Self.kind(at: position, shares)
            guard own.contains(index) else { return readPatch(kind, &random, into: nil) }
            let targets = readPatch(kind, &random, into: patch)
            PatchJitter(&random).change(patch, side: DetectorHead.patchSide)
            return targets
        }
    }

    /// Returns the kind at a position within the concatenated shares.
    private static func kind(at position: Float, _ shares: [Float]) -> Kind {
        var position = position
        for (kind, share) in zip(Kind.allCases, shares) {
            guard position >= share else { return kind }
            position -= share
        }
        // Rounding can leave a remainder after the last share.
        return .located
    }

    /// Reads a patch of a kind; if its photo has become unreadable, a random patch of another image.
    ///
    /// It does not throw, because the processes exchange the unreadable photos before the batch fails.
    /// - Parameter patch: The pixels; nil to return only the targets.
    /// - Returns: The targets, or the reason why the photo is unreadable if too few photos are readable to replace it.
    private func readPatch(
        _ kind: Kind, _ random: inout RandomStream, into patch: UnsafeMutableBufferPointer<UInt8>?
    ) -> Result<[HeatMapLoss.Target], ImageError> {
        var (source, window, targets) = choose(kind, &random)
        while let reason = problem(reading: source, window, into: patch) {
            let canContinue = unreadable.problem == nil
            guard canContinue, negatives.contains(where: { unreadable.reason(for: $0.source) == nil }) else {
                return .failure(reason)
            }
            (source, window, targets) = randomNegative(&random)
        }
        return .success(targets)
    }

    /// Reads a window.
    /// - Returns: The reason why the photo is unreadable; nil if the window was read.
    private func problem(
        reading source: PatchSource, _ window: PatchWindow, into patch: UnsafeMutableBufferPointer<UInt8>?
    ) -> ImageError? {
        if let reason = unreadable.reason(for: source) { return reason }
        guard let patch else { return nil }
        do throws(ImageError) {
            try source.read(window, side: DetectorHead.patchSide, into: patch)
            return nil
        } catch {
            // An image in memory is always readable.
            if let photo = source.photo { unreadable.add(SkippedImage(url: photo, reason: error)) }
            return error
        }
    }

    /// Returns the kind, or a similar one if there are no images of the kind.
    private func available(_ kind: Kind) -> Kind {
        let hasImages =
            switch kind {
            case .mined: !mined.isEmpty
            case .located: !located.isEmpty || !annotated.isEmpty
            case .composite, .hardNegative: !compositors.isEmpty
            case .background: true
            }
        let kind = hasImages ? kind : .background
        return kind == .background && negatives.isEmpty ? .hardNegative : kind
    }

    private func choose(
        _ kind: Kind, _ random: inout RandomStream
    ) -> (PatchSource, PatchWindow, [HeatMapLoss.Target]) {
        switch available(kind) {
        case .composite:
            let composite = composite(from: positivePool, &random)
            let window = window(around: composite, &random)
            var target = target(composite.logo, window, composite.location.x, composite.location.y)
            target.box = window.box(around: composite.outline)
            return (composite.source, window, [target])
        case .hardNegative:
            if let (source, window) = logoPart(&random) { return (source, window, []) }
            let composite = composite(from: hardNegativePool, &random)
            return (composite.source, window(around: composite, &random), [])
        case .background:
            return randomNegative(&random)
        case .mined:
            let detection = mined[random.index(below: mined.count)]
            let image = negatives[detection.imageIndex]
            let window = window(around: detection.peak, rotates: image.objects.isEmpty, &random)
            return (image.source, window, image.targets(in: window))
        case .located:
            let index = random.index(below: located.count + annotated.count)
            if index >= located.count {
                let (imageIndex, object) = annotated[index - located.count]
                let window = window(aroundX: object.x, y: object.y, span: object.span, rotates: false, &random)
                return (negatives[imageIndex].source, window, negatives[imageIndex].targets(in: window))
            }
            let detection = located[index]
            let (peak, positive) = (detection.peak, positives[detection.imageIndex])
            let window = window(around: peak, rotates: false, &random)
            return (positive.source, window, [target(positive.logo, window, peak.x, peak.y)])
        }
    }

    private func composite(from pool: [PooledComposite?], _ random: inout RandomStream) -> PooledComposite {
        guard let composite = pool[random.index(below: poolSize)] else {
            preconditionFailure("the pool must be filled before a batch is composed")
        }
        return composite
    }

    /// Returns a random window of a random image without a logo, or of a random annotated photo.
    func randomNegative(_ random: inout RandomStream) -> (PatchSource, PatchWindow, [HeatMapLoss.Target]) {
        let image = negatives[random.index(below: negatives.count)]
        let source = image.source
        let side = min(logUniform(70, 448, &random), Float(min(source.width, source.height)))
        var window = PatchWindow(
            x: random.uniform(in: 0...1) * (Float(source.width) - side) + side / 2,
            y: random.uniform(in: 0...1) * (Float(source.height) - side) + side / 2, side: side,
            angle: random.chance(0.3) ? Float(random.index(below: 4)) * .pi / 2 : 0,
            isMirrored: random.chance(0.5) && mirrors)
        // A logo on its side can be another logo.
        if !image.objects.isEmpty { window.angle = 0 }
        return (source, window, image.targets(in: window))
    }

    private func window(around composite: PooledComposite, _ random: inout RandomStream) -> PatchWindow {
        let location = composite.location
        return window(aroundX: location.x, y: location.y, span: location.span, rotates: true, &random)
    }

    private func window(
        around peak: PyramidScanner.Peak, rotates: Bool, _ random: inout RandomStream
    ) -> PatchWindow {
        window(aroundX: peak.x, y: peak.y, span: Self.typicalSpan * peak.side, rotates: rotates, &random)
    }

    /// Returns a window that contains an object of size `span` at a random position, at 30 to 62 % of the window's side.
    private func window(
        aroundX x: Float, y: Float, span: Float, rotates: Bool, _ random: inout RandomStream
    ) -> PatchWindow {
        let fraction = logUniform(0.3, 0.62, &random)
        let side = span / fraction
        var angle = 8 * .pi / 180 * random.normal()
        if rotates && random.chance(0.3) { angle += Float(random.index(below: 4)) * .pi / 2 }
        let maximumShift = Self.maximumShift * (1 - fraction) * side
        return PatchWindow(
            x: x + random.uniform(in: -1...1) * maximumShift, y: y + random.uniform(in: -1...1) * maximumShift,
            side: side, angle: angle, isMirrored: random.chance(0.5) && mirrors)
    }

    /// Returns a window on a part of a logo, as a fine pyramid level sees a large logo; nil with a probability of 70 %, or for a single logo.
    ///
    /// Such a part can resemble another logo: a letter of a wordmark, for example, or an emblem on a shield.
    func logoPart(_ random: inout RandomStream) -> (PatchSource, PatchWindow)? {
        guard compositors.count > 1, random.chance(Self.partShare) else { return nil }
        for _ in 0..<8 {
            let composite = composite(from: positivePool, &random)
            let location = composite.location
            let corner = composite.outline[random.index(below: composite.outline.count)]
            guard location.span >= 1.5 * Self.minimumPartSide else { continue }
            let side = max(location.span / logUniform(1.5, 5, &random), Self.minimumPartSide)
            let distance = random.uniform(in: 0...0.8)
            let window = PatchWindow(
                x: location.x + (corner.x - location.x) * distance, y: location.y + (corner.y - location.y) * distance,
                side: side, angle: 8 * .pi / 180 * random.normal(), isMirrored: false)
            return (composite.source, window)
        }
        return nil
    }

    private func target(_ logo: Int, _ window: PatchWindow, _ x: Float, _ y: Float) -> HeatMapLoss.Target {
        let position = window.heatMapPosition(of: SIMD2(x, y))
        return HeatMapLoss.Target(logo: logo, row: position.y, column: position.x)
    }

    private func logUniform(_ low: Float, _ high: Float, _ random: inout RandomStream) -> Float {
        low * powf(high / low, random.uniform())
    }

    // MARK: Composites

    /// Draws held-out composites of a logo; returns an empty array for a logo without artwork.
    func heldOutComposites(_ count: Int, of logo: Int, isPositive: Bool) throws(ImageError) -> [PatchSource] {
        guard let compositor = compositors.first(where: { $0.logo == logo }) else { return [] }
        return try workers.parallelMap(count) { index throws(ImageError) in
            try draw((1 << 30) + index, compositor, isPositive: isPositive).source
        }
    }

    /// Draws held-out scenes without logos, for the calibration of a logo.
    ///
    /// Each scene is a mosaic of two backgrounds and two composites of distractors, because a photo shows more than one object. A logo without
    /// artwork has only backgrounds.
    /// - Parameter numbers: The numbers of the scenes.
    func heldOutScenes(
        _ numbers: Range<Int>, of logo: Int, _ backdrops: Backdrops
    ) throws(ImageError) -> [PatchSource] {
        let compositor = compositors.first { $0.logo == logo }?.compositor
        return try workers.parallelMap(numbers.count) { index throws(ImageError) in
            let scene = numbers.lowerBound + index
            var tiles: [RasterImage] = []
            for tile in 0..<4 {
                let number = (1 << 30) + 4 * scene + tile
                // The distractors occupy one diagonal, which alternates between scenes.
                if let compositor, (tile == 0 || tile == 3) == scene.isMultiple(of: 2) {
                    tiles.append(try compositor.distractor(number).image)
                } else {
                    tiles.append(backdrops.background(at: number, seed: seed))
                }
            }
            return PatchSource(PatchSource.shrunk(Self.mosaic(of: tiles)))
        }
    }

    /// Returns a 2x2 mosaic of four images of equal size.
    private static func mosaic(of tiles: [RasterImage]) -> RasterImage {
        let (width, height) = (tiles[0].width, tiles[0].height)
        let rowLength = width * tiles[0].channels
        var samples: [UInt8] = []
        samples.reserveCapacity(4 * height * rowLength)
        for pair in [tiles[0...1], tiles[2...3]] {
            for row in 0..<height {
                for tile in pair { samples += tile.samples[(row * rowLength)..<((row + 1) * rowLength)] }
            }
        }
        return RasterImage(width: 2 * width, height: 2 * height, channels: tiles[0].channels, samples: samples)
    }

    private func draw(
        _ index: Int, _ entry: (logo: Int, compositor: Compositor), isPositive: Bool
    ) throws(ImageError) -> PooledComposite {
        let (logo, compositor) = entry
        let composite = try isPositive ? compositor.positive(index) : compositor.hardNegative(index)
        return PooledComposite(composite, logo: logo)
    }

    /// Updates the pools for a step: each step replaces the two oldest composites of each kind.
    ///
    /// The logos take turns.
    private func refreshPool(before step: Int) throws(ImageError) {
        let count = poolSize + 2 * step
        let first = max(count - poolSize, drawnCount)
        let new = try workers.parallelMap(2 * (count - first)) { item throws(ImageError) in
            let index = first + item / 2
            return try draw(index, compositors[index % compositors.count], isPositive: item % 2 == 0)
        }
        for (item, composite) in new.enumerated() {
            let slot = (first + item / 2) % poolSize
            if item % 2 == 0 { positivePool[slot] = composite } else { hardNegativePool[slot] = composite }
        }
        drawnCount = count
    }
}
