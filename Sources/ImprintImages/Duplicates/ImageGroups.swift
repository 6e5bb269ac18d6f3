internal import Foundation
package import ImprintCore

/// Groups of similar photos: copies, near-duplicates, and photos of one burst.
///
/// Photos that are linked, directly or indirectly, form a group; `ImageFolder.split` keeps each group in one set.
///
/// Three rules link photos. Distances are relative to the typical distance in the folder, because drawings on white are more alike
/// than travel photos. The typical distance is the median over random pairs of photos of one label:
/// - *Copies* have the same bytes.
/// - *Near-duplicates* have a layout distance of at most 5 % of the typical one, upright or in one of the seven other rotations
///   and mirror images. This covers recompression, scaling, and a crop or shift by 2 % of the width.
/// - *Bursts*: neighbours in the numbering of a camera (`IMG_3123`, `IMG_3125`), up to 5 numbers apart, that look alike. Their
///   appearance distance is at most 100 % − 10 % · gap of the typical one. Photos with the same number, and photos taken within 20
///   seconds of each other according to EXIF, count as a gap of 1. File numbers are used only if they are informative: photos 1
///   apart must look alike at least 25 percentage points more often than random pairs.
package struct ImageGroups: Sendable {
    /// The groups, of two or more photos each, as indices of the items of all sources, one source after the other.
    package let groups: [[Int]]
    /// The groups formed by copies only.
    package let copies: [[Int]]
    /// The groups formed by copies and near-duplicates only.
    package let nearDuplicates: [[Int]]
    /// The sketch of each photo, or the error from reading it.
    package let sketches: [Result<ImageSketch, ImageError>]
    /// The first photo in the group of each photo; the photo itself if it is in no group.
    private let roots: [Int]

    /// Creates the groups: reads the photos of the sources at a small size and compares them.
    /// - Parameters:
    ///   - sources: One or more sources of photos, compared as if they were one.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Receives the number of photos read so far, on the caller's thread, from time to time; throws if the work should end.
    /// - Throws: The errors of `onProgress`.
    package init(
        _ sources: [any TrainingSource], workers: Workers, onProgress: (Int) throws -> Void = { _ in }
    ) rethrows {
        let items = sources.flatMap(\.items)
        let sketches = try Self.sketches(of: items, workers: workers, onProgress: onProgress)
        let comparison = NearDuplicateSearch(
            imageHashes: sketches.map { (try? $0.get())?.imageHash },
            captureTimes: sketches.map { (try? $0.get())?.captureTime },
            labels: sources.flatMap { source in
                source.items.map { $0.labels.map { source.labels[$0] }.joined(separator: ";") }
            },
            sequences: SequencePosition.positions(in: sources))
        self.sketches = sketches
        var union = UnionFind(count: items.count)
        for (a, b) in copyPairs(items, workers) { union.join(a, b) }
        copies = union.sets()
        comparison.joinNearDuplicates(&union, workers)
        nearDuplicates = union.sets()
        for (a, b) in comparison.neighbours() { union.join(a, b) }
        groups = union.sets()
        roots = items.indices.map { union.root(of: $0) }
    }

    /// Reads photos at a small size, without comparing them.
    /// - Parameters:
    ///   - photos: The photos.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Receives the number of photos read so far, from time to time; throws if the work should end.
    /// - Returns: The sketch of each photo, or the error from reading it.
    /// - Throws: The errors of `onProgress`.
    package static func sketches(
        of photos: [TrainingPhoto], workers: Workers, onProgress: (Int) throws -> Void
    ) rethrows -> [Result<ImageSketch, ImageError>] {
        var sketches: [Result<ImageSketch, ImageError>] = []
        sketches.reserveCapacity(photos.count)
        let size = 32 * workers.count
        for start in stride(from: 0, to: photos.count, by: size) {
            let portion = photos[start..<min(start + size, photos.count)]
            sketches += workers.parallelMap(portion.count) { index in
                Result { () throws(ImageError) in try ImageSketch(portion[start + index]) }
            }
            try onProgress(sketches.count)
        }
        return sketches
    }

    /// Returns the identifier of the group of a photo, shared by all photos of the group.
    package func group(of index: Int) -> Int { roots[index] }

    /// Returns the number of photos in `validation` that have a photo of their group in `training`.
    package func leaks(from validation: some Sequence<Int>, into training: some Sequence<Int>) -> Int {
        let trainingGroups = Set(training.map(group(of:)))
        return validation.count { trainingGroups.contains(group(of: $0)) }
    }
}

extension SequencePosition {
    /// Returns the position of every photo of the sources in its series.
    ///
    /// A series spans the folders of labels, because the photos of one burst may have several labels. If one of its numbers occurs in two of
    /// these folders, each of them has a separate series. Photos of one folder may have the same number, such as an edited copy.
    static func positions(in sources: [any TrainingSource]) -> [SequencePosition?] {
        var positions: [(position: SequencePosition?, home: String)] = []
        for (index, source) in sources.enumerated() {
            for item in source.items {
                let (home, path) = source.location(of: item)
                positions.append((SequencePosition(path), "\(index)/\(home)/"))
            }
        }
        var homes: [SequencePosition: String] = [:]
        var clashing: Set<String> = []
        for (position, home) in positions {
            guard let position else { continue }
            if homes.updateValue(home, forKey: position) ?? home != home { clashing.insert(position.series) }
        }
        return positions.map { position, home in
            guard let position, clashing.contains(position.series) else { return position }
            return SequencePosition(series: home + position.series, number: position.number)
        }
    }
}

extension TrainingSource {
    /// Returns the folder of a photo's label, and the path of the photo below it; the whole path if it is not in such a folder.
    ///
    /// Each folder in an `ImageFolder` counts as the folder of a label, also one of several folders of background photos. In other sources, the
    /// labels of the photo identify the folder.
    fileprivate func location(of item: TrainingPhoto) -> (home: String, path: String) {
        if let folder = self as? ImageFolder {
            let names = item.url.displayComponents.dropFirst(folder.url.displayComponents.count)
            let home = names.count > 1 ? names.prefix(1) : []
            return (home.first ?? "", names.dropFirst(home.count).joined(separator: "/"))
        }
        let path = identifier(of: item)
        let folder = item.labels.count == 1 ? labels[item.labels[0]] + "/" : ""
        return (
            item.labels.map(String.init).joined(separator: ";"),
            path.hasPrefix(folder) ? String(path.dropFirst(folder.count)) : path
        )
    }
}

/// Returns the pairs of photos with the same bytes, each photo with the first of its copies.
private func copyPairs(_ photos: [TrainingPhoto], _ workers: Workers) -> [(Int, Int)] {
    // Only files of equal length can be copies, so most files need not be read.
    let bySize = Dictionary(grouping: photos.indices) { photos[$0].byteCount }
    let candidates = bySize.filter { $0.key > 0 && $0.value.count > 1 }.flatMap(\.value).sorted()
    let digests = workers.parallelMap(candidates.count) { photos[candidates[$0]].contentDigest() }
    var first: [String: Int] = [:]
    var pairs: [(Int, Int)] = []
    for (file, digest) in zip(candidates, digests) {
        guard let digest else { continue }
        if let other = first[digest] { pairs.append((other, file)) } else { first[digest] = file }
    }
    return pairs
}
