internal import ImprintCore

/// Searches for similar photos by the rules of `ImageGroups`.
struct NearDuplicateSearch {
    private typealias Pair = (first: Int, second: Int)

    /// The image hash of each photo; nil if it is unreadable.
    private let imageHashes: [ImageHash?]
    private let captureTimes: [Int?]
    private let sequences: [SequencePosition?]
    /// The photos of each position; an edited copy may have the number of its original, such as `IMG_3123-edited.jpg`.
    private let photosByPosition: [SequencePosition: [Int]]
    /// Random pairs of photos of one label.
    private let randomPairs: [Pair]
    /// The median distances of the random pairs.
    private let typicalLayoutDistance: Float
    private let typicalAppearanceDistance: Float

    /// The maximum Hamming distance of two hashes for which the layouts are compared.
    private static let maximumHashDistance = 12
    private static let nearDuplicateDistance: Float = 0.05
    /// The maximum distance of neighbours, in file numbers and in seconds.
    private static let maximumGap = 5
    private static let maximumSeconds = 20
    /// The maximum number of photos with one file number; a number that more photos share, such as a year, is not that of a camera.
    private static let maximumPhotosPerNumber = 8
    /// The minimum difference between the fractions of neighbours and of random pairs that look alike, for file numbers to be
    /// informative.
    private static let minimumLift = 0.25

    init(imageHashes: [ImageHash?], captureTimes: [Int?], labels: [String], sequences: [SequencePosition?]) {
        self.imageHashes = imageHashes
        self.captureTimes = captureTimes
        self.sequences = sequences
        var photos: [SequencePosition: [Int]] = [:]
        for (photo, position) in sequences.enumerated() {
            if let position { photos[position, default: []].append(photo) }
        }
        photosByPosition = photos.filter { $0.value.count <= Self.maximumPhotosPerNumber }
        let pairs = Self.randomPairs(of: imageHashes, labels)
        randomPairs = pairs
        func typical(atMost limit: Float, _ distance: (ImageHash, ImageHash) -> Float) -> Float {
            let distances = pairs.compactMap { pair in
                imageHashes[pair.first].flatMap { first in imageHashes[pair.second].map { distance(first, $0) } }
            }
            return distances.count < 30 ? limit : min(distances.sorted()[distances.count / 2], limit)
        }
        // The limits are the distances of unrelated photos; they also apply if there are too few pairs for a median.
        typicalLayoutDistance = typical(atMost: 1) { $0.layoutDistance(to: $1) }
        typicalAppearanceDistance = typical(atMost: 0.55) { $0.appearanceDistance(to: $1) }
    }

    /// Pairs each photo with a random other photo of its label.
    private static func randomPairs(of imageHashes: [ImageHash?], _ labels: [String]) -> [Pair] {
        let readable = imageHashes.indices.filter { imageHashes[$0] != nil }
        let byLabel = Dictionary(grouping: readable) { labels[$0] }
        var stream = RandomStream(seed: 0, "pairs of photos")
        return byLabel.sorted { $0.value[0] < $1.value[0] }.flatMap { _, members -> [Pair] in
            guard members.count > 1 else { return [] }
            return members.indices.map { index in
                let other = (index + 1 + stream.index(below: members.count - 1)) % members.count
                return (members[index], members[other])
            }
        }
    }

    /// Joins near-duplicates.
    ///
    /// All pairs are compared, first by their hashes, which takes a few nanoseconds. Photos are processed in blocks: thousands
    /// of similar images would give millions of pairs, but after the first blocks most of them are already joined.
    func joinNearDuplicates(_ union: inout UnionFind, _ workers: Workers) {
        let indices = imageHashes.indices.filter { index in imageHashes[index].map { !$0.isEven } ?? false }
        let photos = indices.compactMap { imageHashes[$0] }
        let hashes = photos.map(\.hash)
        let maximumDistance = Self.nearDuplicateDistance * typicalLayoutDistance
        for start in stride(from: 0, to: photos.count, by: Self.blockSize) {
            let roots = indices.map { union.root(of: $0) }
            let count = min(Self.blockSize, photos.count - start)
            let found = workers.parallelMap(count) { pairs(start + $0, roots) }
            for (a, b) in found.joined() { union.join(indices[a], indices[b]) }
        }

        /// Returns the later photos that are similar to one photo and not yet in its set.
        func pairs(_ first: Int, _ roots: [Int]) -> [(Int, Int)] {
            let turned = photos[first].turnedHashes
            var pairs: [(Int, Int)] = []
            for second in hashes.indices.dropFirst(first + 1) where roots[second] != roots[first] {
                let hash = hashes[second]
                guard turned.contains(where: { ($0 ^ hash).nonzeroBitCount <= Self.maximumHashDistance }) else {
                    continue
                }
                let isClose = ImageHash.turns.contains { turn in
                    (turned[turn] ^ hash).nonzeroBitCount <= Self.maximumHashDistance
                        && photos[second].layoutDistance(to: photos[first], turn: turn) <= maximumDistance
                }
                if isClose { pairs.append((first, second)) }
            }
            return pairs
        }
    }

    private static let blockSize = 64

    /// Returns the pairs of similar photos with equal or neighbouring file numbers, or with neighbouring capture times.
    func neighbours() -> [(Int, Int)] {
        var pairs: [Pair] = []
        if numbersAreInformative {
            for gap in 0...Self.maximumGap {
                pairs += numbered(apart: gap).filter { looksAlike($0, apart: max(gap, 1)) }
            }
        }
        return pairs + capturedTogether().filter { looksAlike($0, apart: 1) }
    }

    private func looksAlike(_ pair: Pair, apart gap: Int) -> Bool {
        guard let first = imageHashes[pair.first], let second = imageHashes[pair.second] else { return false }
        return first.appearanceDistance(to: second) <= (1 - 0.1 * Float(gap)) * typicalAppearanceDistance
    }

    /// Whether photos with consecutive file numbers look more alike than random photos of their label.
    private var numbersAreInformative: Bool {
        func share(_ pairs: [Pair]) -> Double {
            pairs.isEmpty ? 0 : Double(pairs.count { looksAlike($0, apart: 1) }) / Double(pairs.count)
        }
        return share(numbered(apart: 1)) >= share(randomPairs) + Self.minimumLift
    }

    /// Returns the pairs whose file numbers in a series differ by `gap`.
    private func numbered(apart gap: Int) -> [Pair] {
        sequences.enumerated().flatMap { photo, sequence -> [Pair] in
            guard let sequence, photosByPosition[sequence] != nil, sequence.number <= Int.max - gap else { return [] }
            let position = SequencePosition(series: sequence.series, number: sequence.number + gap)
            let others = photosByPosition[position] ?? []
            // Photos with equal numbers form a pair only once.
            return others.filter { gap > 0 || $0 > photo }.map { (photo, $0) }
        }
    }

    /// Returns the pairs taken within a few seconds, each photo with a few of the following photos.
    private func capturedTogether() -> [Pair] {
        let timed = captureTimes.enumerated().compactMap { photo, time in time.map { (photo: photo, time: $0) } }
            .sorted { ($0.time, $0.photo) < ($1.time, $1.photo) }
        return timed.indices.flatMap { index in
            timed[(index + 1)...].prefix(Self.maximumGap).filter {
                $0.time - timed[index].time <= Self.maximumSeconds
            }
            .map { (timed[index].photo, $0.photo) }
        }
    }
}
