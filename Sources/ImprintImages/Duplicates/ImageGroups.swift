internal import Foundation
package import ImprintCore

/// Which photos show the same: copies, near-duplicates, and those taken in one burst.
///
/// Photos that are joined, directly or through others, are a group; `ImageFolder.split` keeps it on one side.
///
/// Three rules join photos. Likeness is measured against what is usual in the folder, the median over pairs of photos drawn at
/// random from one label, because drawings on white look more alike than photos from a journey:
/// - *Copies* have the same bytes.
/// - *Near-duplicates* have a layout distance of at most 5 % of the usual one, upright or in one of the seven other turns and
///   mirror images. That is what compressing again, scaling, and a crop or shift by 2 % of the width leave.
/// - *Neighbours* in the numbering of a camera (`IMG_3123`, `IMG_3125`), up to 5 numbers apart, look alike: their look distance is
///   at most 100 % − 10 % · apart of the usual one. Photos taken within 20 seconds of each other, where EXIF tells, count as
///   1 apart. Numbers count only if they mean something: where those that are 1 apart pass at least 25 % more often than pairs
///   at random do.
package struct ImageGroups: Sendable {
    /// The groups, of two or more photos each; photos are places in the items of the folders, one folder after the other.
    package let groups: [[Int]]
    /// The groups that copies alone make.
    package let copies: [[Int]]
    /// The groups that copies and near-duplicates alone make.
    package let nearDuplicates: [[Int]]
    /// What was seen of each photo, or why it could not be read.
    package let sketches: [Result<ImageSketch, ImageError>]
    /// The first photo of the group that each belongs to, which is its own if it is alone.
    private let roots: [Int]

    /// Reads the photos of the folders, all at a small size, and compares them.
    /// - Parameters:
    ///   - folders: One folder or several that are compared as if they were one.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Told now and then how many photos have been read.
    package init(_ folders: [ImageFolder], workers: Workers, onProgress: (Int) -> Void = { _ in }) {
        let items = folders.flatMap(\.items)
        let sketches = workers.parallelMap(items.count, onProgress: onProgress) { place in
            Result { () throws(ImageError) in try ImageSketch(items[place].url) }
        }
        let comparison = NearDuplicateSearch(
            fingerprints: sketches.map { (try? $0.get())?.fingerprint },
            captureTimes: sketches.map { (try? $0.get())?.captureTime },
            labels: folders.flatMap { folder in folder.items.map { folder.labels[$0.label] } },
            sequences: SequencePlace.places(in: folders))
        self.sketches = sketches
        var union = UnionFind(count: items.count)
        for (a, b) in copyPairs(items.map(\.url), workers) { union.join(a, b) }
        copies = union.sets()
        comparison.joinNearDuplicates(&union, workers)
        nearDuplicates = union.sets()
        for (a, b) in comparison.neighbours() { union.join(a, b) }
        groups = union.sets()
        roots = items.indices.map { union.root(of: $0) }
    }

    /// A number that the photos of one group share.
    package func group(of place: Int) -> Int { roots[place] }

    /// How many of the photos at `places` have one of their group among the `others`.
    package func leaks(from places: some Sequence<Int>, into others: some Sequence<Int>) -> Int {
        let theirs = Set(others.map(group(of:)))
        return places.count { theirs.contains(group(of: $0)) }
    }
}

extension SequencePlace {
    /// The places of all photos of the folders in their series.
    ///
    /// A series goes on over labels, for the photos of one walk are sorted into several, unless one of its numbers occurs twice:
    /// then each label counts for itself.
    static func places(in folders: [ImageFolder]) -> [SequencePlace?] {
        var places: [(place: SequencePlace?, home: String)] = []
        for (index, folder) in folders.enumerated() {
            let depth = folder.url.pathComponents.count + 1
            for item in folder.items {
                let path = item.url.pathComponents.dropFirst(depth).joined(separator: "/")
                places.append((SequencePlace(path), "\(index)/\(item.label)/"))
            }
        }
        var seen: Set<SequencePlace> = []
        let clashing = Set(places.compactMap { $0.place.flatMap { seen.insert($0).inserted ? nil : $0.series } })
        return places.map { place, home in
            guard let place, clashing.contains(place.series) else { return place }
            return SequencePlace(series: home + place.series, number: place.number)
        }
    }
}

/// The pairs of files that have the same bytes, each file with the first that is like it.
private func copyPairs(_ files: [URL], _ workers: Workers) -> [(Int, Int)] {
    // Only files of one length can be the same, so most need not be read.
    let bySize = Dictionary(grouping: files.indices) { FileStatus(files[$0])?.size ?? 0 }
    let candidates = bySize.filter { $0.key > 0 && $0.value.count > 1 }.flatMap(\.value).sorted()
    let digests = workers.parallelMap(candidates.count) { place -> String? in
        guard let data = try? Data(contentsOf: files[candidates[place]], options: .mappedIfSafe) else { return nil }
        return SHA256.hexadecimal(of: [UInt8](data))
    }
    var first: [String: Int] = [:]
    var pairs: [(Int, Int)] = []
    for (place, digest) in zip(candidates, digests) {
        guard let digest else { continue }
        if let other = first[digest] { pairs.append((other, place)) } else { first[digest] = place }
    }
    return pairs
}
