internal import ImprintCore
internal import ImprintImages

/// The groups of photos that stay in one fold.
struct PhotoGroups {
    /// The groups of the readable photos, as indices of the source's items; a photo without similar photos forms a group of its own.
    let groups: [[Int]]
    /// The group of each photo, or nil if it is unreadable.
    let groupOfPhoto: [Int?]
    /// The photos that could not be read.
    let skipped: [SkippedImage]
    /// The labels of each photo.
    private let labels: [[Int]]
    private let labelNames: [String]

    /// Finds the groups of photos.
    /// - Parameters:
    ///   - additional: Further groups, as paths in the source or in the annotation file.
    ///   - keepsGroupsTogether: Whether near-duplicates and bursts form groups.
    ///   - onProgress: Receives the number of photos read so far, from time to time; throws if the work should end.
    /// - Throws: `CrossValidationError.unknownPhoto` or `ambiguousPhoto`; `ImageError` if too few photos are readable; the errors of `onProgress`.
    init(
        _ photos: any TrainingSource, additional: [[String]], keepsGroupsTogether: Bool, workers: Workers,
        onProgress: (Int) throws -> Void
    ) throws {
        var union = UnionFind(count: photos.items.count)
        try Self.join(additional, of: photos, &union)
        let sketches: [Result<ImageSketch, ImageError>]
        if keepsGroupsTogether {
            let found = try ImageGroups([photos], workers: workers, onProgress: onProgress)
            for group in found.groups { for other in group.dropFirst() { union.join(group[0], other) } }
            sketches = found.sketches
        } else {
            sketches = try ImageGroups.sketches(of: photos.items, workers: workers, onProgress: onProgress)
        }
        var skipped: [SkippedImage] = []
        var groups: [[Int]] = []
        var groupOfRoot: [Int: Int] = [:]
        var groupOfPhoto = [Int?](repeating: nil, count: photos.items.count)
        for (index, item) in photos.items.enumerated() {
            if case .failure(let reason) = sketches[index] {
                skipped.append(SkippedImage(url: item.url, reason: reason))
                continue
            }
            let root = union.root(of: index)
            let group = groupOfRoot[root] ?? groups.count
            if group == groups.count {
                groupOfRoot[root] = group
                groups.append([])
            }
            groups[group].append(index)
            groupOfPhoto[index] = group
        }
        try SkippedImage.checkEnoughAreReadable(
            of: photos.items, readable: groups.joined().map { photos.items[$0] }, skipped: skipped,
            labels: photos.labels)
        (self.groups, self.groupOfPhoto, self.skipped) = (groups, groupOfPhoto, skipped)
        labels = photos.items.map(\.labels)
        labelNames = photos.labels
    }

    /// Joins groups of paths in the source or in the annotation file.
    private static func join(_ groups: [[String]], of photos: any TrainingSource, _ union: inout UnionFind) throws {
        guard !groups.isEmpty else { return }
        let indices = photos.indicesByPath
        let indicesInFile = (photos as? AnnotatedSource)?.indicesInFile()
        for group in groups {
            let members = try group.map { path in
                if let index = indices[Array(path.utf8)] { return index }
                let found = indicesInFile?(path) ?? []
                guard let index = found.first else {
                    throw CrossValidationError.unknownPhoto(path: path, source: photos.name)
                }
                guard found.count == 1 else {
                    throw CrossValidationError.ambiguousPhoto(
                        path: path, photos: found.map { photos.identifier(of: photos.items[$0]) })
                }
                return index
            }
            for other in members.dropFirst() { union.join(members[0], other) }
        }
    }

    /// The number of readable photos.
    var photoCount: Int { groups.reduce(0) { $0 + $1.count } }

    /// Splits the photos into folds, each as ascending indices of the source's items.
    /// - Throws: `CrossValidationError` if a label has too few groups.
    func folds(_ count: Int, seed: UInt64) throws -> [[Int]] {
        let totalCounts = Self.counts(groups.flatMap { $0 }, labels)
        try checkGroups(count, totalCounts)
        let folds = Self.folds(of: groups, labels: labels, count: count, seed: seed)
        for (index, fold) in folds.enumerated() {
            let counts = Self.counts(fold, labels).sorted { $0.key < $1.key }
            for (label, photos) in counts where photos == totalCounts[label] {
                throw CrossValidationError.labelInOneFold(label: labelNames[label], fold: index + 1, seed: seed)
            }
        }
        return folds
    }

    /// Checks that each label has at least one group for each fold; the error names the label with the fewest groups.
    private func checkGroups(_ folds: Int, _ totalCounts: [Int: Int]) throws {
        let groupCounts = groups.reduce(into: [Int: Int]()) { counts, group in
            for label in Set(group.flatMap { labels[$0] }) { counts[label, default: 0] += 1 }
        }
        guard let rarest = groupCounts.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }), rarest.value < folds else {
            return
        }
        throw CrossValidationError.tooFewGroups(
            label: labelNames[rarest.key], groups: rarest.value, photos: totalCounts[rarest.key] ?? 0, folds: folds)
    }

    /// Assigns groups to folds, the largest first in random order.
    ///
    /// Each group goes to the fold that keeps the sum of the squared fractions of the labels' photos over all folds lowest. For a group of
    /// one label, this is the fold with the fewest photos of the label. Ties go to the fold with the fewest photos.
    ///
    /// A photo counts for each of its labels, and photos without labels count as a label of their own. As the fractions are relative to the
    /// label's photos, the rarest label of a group matters most (Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data",
    /// 2011).
    /// - Parameter labels: The labels of each photo.
    static func folds(of groups: [[Int]], labels: [[Int]], count: Int, seed: UInt64) -> [[Int]] {
        let withoutLabels = -1
        let labels = labels.map { $0.isEmpty ? [withoutLabels] : $0 }
        let totals = counts(groups.flatMap { $0 }, labels)
        var stream = RandomStream(seed: seed, "folds")
        let shuffled = stream.permutation(of: groups.count).map { groups[$0] }
        let ordered = shuffled.enumerated().sorted {
            (-$0.element.count, $0.offset) < (-$1.element.count, $1.offset)
        }
        var folds = [[Int]](repeating: [], count: count)
        var foldCounts = [[Int: Int]](repeating: [:], count: count)
        for (_, group) in ordered {
            let groupCounts = counts(group, labels).sorted { $0.key < $1.key }
            func cost(_ fold: Int) -> Double {
                groupCounts.reduce(0) { cost, entry in
                    let total = Double(totals[entry.key] ?? 1)
                    return cost + Double(entry.value * foldCounts[fold][entry.key, default: 0]) / (total * total)
                }
            }
            let best = folds.indices.min { (cost($0), folds[$0].count) < (cost($1), folds[$1].count) } ?? 0
            folds[best] += group
            for (label, photos) in groupCounts { foldCounts[best][label, default: 0] += photos }
        }
        return folds.map { $0.sorted() }
    }

    /// Returns the number of photos of each label that has photos.
    private static func counts(_ photos: [Int], _ labels: [[Int]]) -> [Int: Int] {
        photos.reduce(into: [:]) { counts, photo in for label in labels[photo] { counts[label, default: 0] += 1 } }
    }
}

extension TrainingSource {
    /// The indices of the photos by the bytes of their identifiers.
    ///
    /// Bytes, because identifiers that differ only in their Unicode normalization are equal strings.
    var indicesByPath: [[UInt8]: Int] {
        Dictionary(
            items.enumerated().map { (Array(identifier(of: $1).utf8), $0) }, uniquingKeysWith: { first, _ in first })
    }
}
