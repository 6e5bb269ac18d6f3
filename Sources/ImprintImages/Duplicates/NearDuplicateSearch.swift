internal import ImprintCore

/// Finds the photos that look alike among many; `ImageGroups` says by which rules.
struct NearDuplicateSearch {
    private typealias Pair = (first: Int, second: Int)

    /// What a photo looks like; nil for one that could not be read.
    private let fingerprints: [Fingerprint?]
    private let captureTimes: [Int?]
    private let sequences: [SequencePlace?]
    /// Pairs of photos of one label, drawn at random.
    private let randomPairs: [Pair]
    /// The median distances of these.
    private let usualLayoutDistance: Float
    private let usualLookDistance: Float

    /// How many bits of two hashes may differ for the layouts to be compared; the layouts decide.
    private static let greatestHashDistance = 12
    private static let nearDuplicateDistance: Float = 0.05
    /// How far apart in the numbering photos may be, or in seconds, to be neighbours.
    private static let greatestGap = 5
    private static let greatestSeconds = 20
    /// By how much more often than random pairs neighbours must look alike for their numbers to mean something.
    private static let leastLift = 0.25

    init(fingerprints: [Fingerprint?], captureTimes: [Int?], labels: [String], sequences: [SequencePlace?]) {
        self.fingerprints = fingerprints
        self.captureTimes = captureTimes
        self.sequences = sequences
        let pairs = Self.randomPairs(of: fingerprints, labels)
        randomPairs = pairs
        func usual(atMost most: Float, _ distance: (Fingerprint, Fingerprint) -> Float) -> Float {
            let distances = pairs.compactMap { pair in
                fingerprints[pair.first].flatMap { first in fingerprints[pair.second].map { distance(first, $0) } }
            }
            return distances.count < 30 ? most : min(distances.sorted()[distances.count / 2], most)
        }
        // At most what photos of all kinds of scenes have; that serves too where there are too few to say.
        usualLayoutDistance = usual(atMost: 1) { $0.layoutDistance(to: $1) }
        usualLookDistance = usual(atMost: 0.55) { $0.lookDistance(to: $1) }
    }

    /// For each photo another one of its label, drawn at random.
    private static func randomPairs(of fingerprints: [Fingerprint?], _ labels: [String]) -> [Pair] {
        let readable = fingerprints.indices.filter { fingerprints[$0] != nil }
        let byLabel = Dictionary(grouping: readable) { labels[$0] }
        var stream = RandomStream(seed: 0, "pairs of photos")
        return byLabel.sorted { $0.value[0] < $1.value[0] }.flatMap { _, members -> [Pair] in
            guard members.count > 1 else { return [] }
            return members.indices.map { place in
                let other = (place + 1 + stream.index(below: members.count - 1)) % members.count
                return (members[place], members[other])
            }
        }
    }

    /// Joins near-duplicates.
    ///
    /// All pairs are compared, but by their hashes first, which takes a few nanoseconds. It is done for some photos at a time:
    /// thousands of pictures that are all alike make millions of pairs, which the first of them spare.
    func joinNearDuplicates(_ union: inout UnionFind, _ workers: Workers) {
        let places = fingerprints.indices.filter { place in fingerprints[place].map { !$0.isEven } ?? false }
        let photos = places.compactMap { fingerprints[$0] }
        let hashes = photos.map(\.hash)
        let greatestDistance = Self.nearDuplicateDistance * usualLayoutDistance
        for start in stride(from: 0, to: photos.count, by: Self.photosAtATime) {
            let roots = places.map { union.root(of: $0) }
            let count = min(Self.photosAtATime, photos.count - start)
            let found = workers.parallelMap(count) { pairs(start + $0, roots) }
            for (a, b) in found.joined() { union.join(places[a], places[b]) }
        }

        /// The later photos that are like one and not known to be.
        func pairs(_ first: Int, _ roots: [Int]) -> [(Int, Int)] {
            let turned = photos[first].turnedHashes
            var pairs: [(Int, Int)] = []
            for second in hashes.indices.dropFirst(first + 1) where roots[second] != roots[first] {
                let hash = hashes[second]
                guard turned.contains(where: { ($0 ^ hash).nonzeroBitCount <= Self.greatestHashDistance }) else {
                    continue
                }
                let isClose = Fingerprint.turns.contains { turn in
                    (turned[turn] ^ hash).nonzeroBitCount <= Self.greatestHashDistance
                        && photos[second].layoutDistance(to: photos[first], turn: turn) <= greatestDistance
                }
                if isClose { pairs.append((first, second)) }
            }
            return pairs
        }
    }

    private static let photosAtATime = 64

    /// The pairs of photos that were taken close to each other and look alike.
    func neighbours() -> [(Int, Int)] {
        var pairs: [Pair] = []
        if numbersMeanSomething {
            for gap in 1...Self.greatestGap { pairs += numbered(apart: gap).filter { looksAlike($0, apart: gap) } }
        }
        return pairs + takenTogether().filter { looksAlike($0, apart: 1) }
    }

    private func looksAlike(_ pair: Pair, apart gap: Int) -> Bool {
        guard let first = fingerprints[pair.first], let second = fingerprints[pair.second] else { return false }
        return first.lookDistance(to: second) <= (1 - 0.1 * Float(gap)) * usualLookDistance
    }

    /// Whether photos with successive numbers look more alike than others of their label.
    private var numbersMeanSomething: Bool {
        func share(_ pairs: [Pair]) -> Double {
            pairs.isEmpty ? 0 : Double(pairs.count { looksAlike($0, apart: 1) }) / Double(pairs.count)
        }
        return share(numbered(apart: 1)) >= share(randomPairs) + Self.leastLift
    }

    /// The pairs whose numbers in a series differ by so much.
    private func numbered(apart gap: Int) -> [Pair] {
        var places: [SequencePlace: Int] = [:]
        for (photo, sequence) in sequences.enumerated() {
            if let sequence { places[sequence] = photo }
        }
        return sequences.enumerated().compactMap { photo, sequence in
            guard let sequence, sequence.number <= Int.max - gap else { return nil }
            return places[SequencePlace(series: sequence.series, number: sequence.number + gap)].map { (photo, $0) }
        }
    }

    /// The pairs taken within a few seconds, each photo with a few of those that follow.
    private func takenTogether() -> [Pair] {
        let timed = captureTimes.enumerated().compactMap { photo, time in time.map { (photo: photo, time: $0) } }
            .sorted { ($0.time, $0.photo) < ($1.time, $1.photo) }
        return timed.indices.flatMap { place in
            timed[(place + 1)...].prefix(Self.greatestGap).filter {
                $0.time - timed[place].time <= Self.greatestSeconds
            }
            .map { (timed[place].photo, $0.photo) }
        }
    }
}
