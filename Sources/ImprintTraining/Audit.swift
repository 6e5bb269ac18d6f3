internal import Foundation
package import ImprintCore
public import ImprintImages
internal import ImprintModel

/// What is remarkable about a data set, before anything is trained on it.
///
/// Nothing is changed. Every photo is decoded once, small, which shows damage too.
public struct Audit: Sendable {
    /// How many photos a label has.
    public struct LabelCount: Sendable, Hashable, Codable {
        /// The label.
        public let label: String
        /// The number of photos to train on.
        public let images: Int
        /// The number of photos to validate on; 0 without such a folder.
        public let validationImages: Int
    }

    /// How much a split at random would leak.
    public struct Leakage: Sendable, Hashable, Codable {
        /// How many images it would keep back.
        public let images: Int
        /// How many of these would have another image of their group among those to train on.
        public let leaked: Int
    }

    /// A photo whose short side has fewer pixels than this is tiny.
    public static let leastSide = 64

    /// The labels, in the order of their names.
    public let labels: [LabelCount]
    /// What was found, by kind and then in the order of the folders.
    public let findings: [Finding]
    /// How many files were left out as no images.
    public let ignored: Int
    /// How many photos of each orientation (1 to 8 as in EXIF) there are, of those that can be read.
    ///
    /// Photos on their side without a tag that says so are not told: without knowing what they show, they look like any other.
    public let orientations: [Orientation: Int]
    /// How many photos have each colour profile, by the name that it gives itself; "none" stands for no profile.
    public let profiles: [String: Int]
    /// The number of groups of copies, near-duplicates and neighbours.
    public let groups: Int
    /// How many photos are in these.
    public let imagesInGroups: Int
    /// What splitting the folder at random would leak; `nil` with a folder to validate on, or where the automatic rule keeps
    /// nothing back.
    public let randomSplit: Leakage?

    /// The number of photos.
    public var images: Int { labels.reduce(0) { $0 + $1.images + $1.validationImages } }
    /// The colour profiles from the most to the least frequent; none where no photo has one.
    package var profilesByFrequency: [(name: String, count: Int)] {
        guard profiles.keys.contains(where: { $0 != "none" }) else { return [] }
        return profiles.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, $0.value) }
    }
    /// How many times as many photos to train on the largest label has as the smallest; nil if one has none.
    public var imbalance: Double? {
        let counts = labels.map(\.images)
        guard let least = counts.min(), let most = counts.max(), least > 0 else { return nil }
        return Double(most) / Double(least)
    }
    /// The number of photos that are stored turned or mirrored.
    public var turnedImages: Int { orientations.reduce(0) { $1.key == .up ? $0 : $0 + $1.value } }

    /// Looks through a folder.
    /// - Parameters:
    ///   - folder: The photos to train on.
    ///   - validation: Those to validate on, if they have a folder of their own.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Told now and then how many photos have been read.
    package init(
        _ folder: ImageFolder, validation: ImageFolder? = nil, workers: Workers, onProgress: (Int) -> Void = { _ in }
    ) {
        let folders = [folder] + (validation.map { [$0] } ?? [])
        let groups = ImageGroups(folders, workers: workers, onProgress: onProgress)
        let photos = Photo.list(folders, groups, workers)
        let names = Set(folders.flatMap(\.labels)).sorted {
            $0.unicodeScalars.lexicographicallyPrecedes($1.unicodeScalars)
        }
        labels = names.map { name in
            LabelCount(
                label: name, images: photos.count { $0.label == name && $0.folder == 0 },
                validationImages: photos.count { $0.label == name && $0.folder == 1 })
        }
        ignored = folders.reduce(0) { $0 + $1.ignored.count }
        var orientations: [Orientation: Int] = [:]
        var profiles: [String: Int] = [:]
        for facts in photos.compactMap(\.facts) {
            orientations[facts.orientation, default: 0] += 1
            profiles[facts.colorProfile ?? "none", default: 0] += 1
        }
        (self.orientations, self.profiles) = (orientations, profiles)
        self.groups = groups.groups.count
        imagesInGroups = groups.groups.reduce(0) { $0 + $1.count }
        let leaks = folder.randomSplitLeaks(.automatic, seed: 0, groups: groups)
        randomSplit =
            validation == nil && leaks.of > 0 ? Leakage(images: leaks.of, leaked: leaks.images) : nil
        let found = Self.findings(photos.compactMap(\.finding) + photos.flatMap(\.remarks), groups, photos)
        findings = Finding.Kind.allCases.flatMap { kind in found.filter { $0.kind == kind } }
    }

    /// The findings about single photos, and those about groups.
    private static func findings(_ single: [Finding], _ groups: ImageGroups, _ photos: [Photo]) -> [Finding] {
        func finding(_ kind: Finding.Kind, _ places: [Int], _ reason: String = "") -> Finding {
            Finding(kind: kind, files: places.map { photos[$0].url }, reason: reason)
        }
        var findings = single
        let copies = Set(groups.copies)
        for places in groups.nearDuplicates {
            let labels = Set(places.map { photos[$0].label }).sorted()
            if labels.count > 1 { findings.append(finding(.acrossLabels, places, labels.joined(separator: ", "))) }
            if !copies.contains(places) { findings.append(finding(.nearDuplicates, places)) }
        }
        findings += groups.copies.map { finding(.copies, $0) }
        let near = Set(groups.nearDuplicates)
        for places in groups.groups {
            let validation = places.filter { photos[$0].folder == 1 }
            if !validation.isEmpty && validation.count < places.count {
                findings.append(finding(.acrossSplits, validation + places.filter { photos[$0].folder == 0 }))
            }
            if !near.contains(places) { findings.append(finding(.bursts, places)) }
        }
        return findings
    }
}

/// One photo of the folders that are looked through.
private struct Photo {
    let url: URL
    let label: String
    /// 0 for those to train on, 1 for those to validate on.
    let folder: Int
    /// What the file says of itself; nil if it cannot be read.
    let facts: ImageInformation?
    let sketch: Result<ImageSketch, ImageError>

    static func list(_ folders: [ImageFolder], _ groups: ImageGroups, _ workers: Workers) -> [Photo] {
        let places = folders.enumerated().flatMap { index, folder in
            folder.items.map { (index, $0.url, folder.labels[$0.label]) }
        }
        return workers.parallelMap(places.count) { place in
            let (folder, url, label) = places[place]
            return Photo(
                url: url, label: label, folder: folder, facts: try? ImageFile.information(of: url),
                sketch: groups.sketches[place])
        }
    }

    /// What keeps the photo from being used.
    var finding: Audit.Finding? {
        guard case .failure(let error) = sketch else { return nil }
        let kind: Audit.Finding.Kind = if case .truncated = error { .truncated } else { .unreadable }
        return Audit.Finding(kind: kind, files: [url], reason: "\(error)")
    }

    /// What there is to say of a photo that can be used.
    var remarks: [Audit.Finding] {
        guard case .success(let sketch) = sketch else { return [] }
        var remarks: [Audit.Finding] = []
        func add(_ kind: Audit.Finding.Kind, _ reason: String) {
            remarks.append(Audit.Finding(kind: kind, files: [url], reason: reason))
        }
        if let facts {
            if facts.isAnimated { add(.animated, "") }
            if let problem = facts.colorProblem { add(.unusableColors, problem) }
            if min(facts.width, facts.height) < Audit.leastSide { add(.tiny, "\(facts.width)x\(facts.height) pixels") }
        }
        if sketch.isSubjectLikelyOutsideSquare {
            let share = Int((sketch.contrastOutsideSquare * 100).rounded())
            add(.outsideCrop, "\(share) % of the contrast lies outside")
        }
        return remarks
    }
}
