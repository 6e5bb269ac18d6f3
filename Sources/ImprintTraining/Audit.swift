internal import Foundation
package import ImprintCore
public import ImprintImages
internal import ImprintModel

/// The audit of a data set before training: problems of its photos, statistics, and the leakage of a random split.
///
/// It changes no files. It decodes every photo once at a small size, which also reveals damage.
///
/// ```swift
/// let audit = try Audit(ImageFolder(at: photos), threads: 4)
/// for finding in audit.findings { print(finding.kind.title, finding.names, finding.reason) }
/// ```
public struct Audit: Sendable {
    /// The number of photos of a label.
    public struct LabelCount: Sendable, Hashable, Codable {
        /// The label.
        public let label: String
        /// The number of training photos.
        public let images: Int
        /// The number of validation photos; 0 without a validation set.
        public let validationImages: Int
        /// The number of test photos; nil without a test set.
        public let testImages: Int?
    }

    /// The leakage of a random split.
    public struct Leakage: Sendable, Hashable, Codable {
        /// The number of validation images of the split.
        public let images: Int
        /// The number of these validation images that would have a training image in their group.
        public let leaked: Int
    }

    /// The minimum short side of a photo, in pixels; smaller photos are `tiny`.
    public static let minimumSide = 64

    /// The labels, in alphabetical order.
    public let labels: [LabelCount]
    /// The findings, by kind and then in the order of the folders.
    public let findings: [Finding]
    /// The number of files that were ignored because they are not images.
    public let ignored: Int
    /// The number of readable photos of each EXIF orientation (1 to 8).
    ///
    /// A rotated photo without an orientation tag counts as upright.
    public let orientations: [Orientation: Int]
    /// The number of photos of each colour profile, by its description; "none" counts photos without a profile.
    public let profiles: [String: Int]
    /// The number of groups of copies, near-duplicates and bursts.
    public let groups: Int
    /// The number of photos in these groups.
    public let imagesInGroups: Int
    /// The objects of each label of annotated photos; empty for photos with labels.
    public let objects: [LabelObjects]
    /// The leakage of a random split; nil with a validation folder, or if the automatic rule holds out no images.
    public let randomSplit: Leakage?

    /// The number of photos.
    ///
    /// A photo that is both a training and a validation photo counts once. Of annotated photos, it counts those that training can use: without
    /// missing and unreadable photos, and without photos whose boxes were all dropped.
    public let images: Int
    /// The number of training photos.
    public let trainingImages: Int
    /// The number of validation photos; 0 without a validation set.
    public let validationImages: Int
    /// The number of test photos; 0 unless data.yaml or the folders of annotated photos name a test set.
    public let testImages: Int
    /// The colour profiles from the most to the least frequent; empty if no photo has a profile.
    package var profilesByFrequency: [(name: String, count: Int)] {
        guard profiles.keys.contains(where: { $0 != "none" }) else { return [] }
        return profiles.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, $0.value) }
    }
    /// The number of training photos of the largest label, divided by the number of the smallest label; nil if a label has none.
    public var imbalance: Double? {
        let counts = labels.map(\.images)
        guard let minimum = counts.min(), let maximum = counts.max(), minimum > 0 else { return nil }
        return Double(maximum) / Double(minimum)
    }
    /// The number of photos that are stored rotated or mirrored.
    public var rotatedImages: Int { orientations.reduce(0) { $1.key == .up ? $0 : $0 + $1.value } }
    /// A sentence about the rotated photos, without its full stop; nil without such photos.
    package var rotationNote: String? {
        switch rotatedImages {
        case 0: nil
        case 1: "1 photo is stored rotated; Imprint turns it upright by its EXIF orientation"
        case let count: "\(count) photos are stored rotated; Imprint turns them upright by their EXIF orientation"
        }
    }

    /// Audits labelled photos.
    /// - Parameters:
    ///   - photos: The training photos: a folder (`ImageFolder`), a list (`LabelList`), or photos in memory (`InMemorySource`).
    ///   - validation: The validation photos, if they are separate.
    ///   - threads: The number of threads; the result does not depend on it.
    ///   - onProgress: Called from time to time with the number of photos read so far.
    /// - Throws: `ImageError.invalidSource` if the labels or the photos of a source are inconsistent.
    public init(
        _ photos: some TrainingSource, validation: (any TrainingSource)? = nil, threads: Int = 1,
        onProgress: (Int) -> Void = { _ in }
    ) throws(ImageError) {
        try photos.checkLabelsAndIdentifiers()
        try validation?.checkLabelsAndIdentifiers()
        self.init(photos, validation: validation, workers: Workers(threads), onProgress: onProgress)
    }

    /// Audits annotated photos and their boxes.
    /// - Parameters:
    ///   - annotations: The photos. Findings about clipped and dropped boxes need annotations with recorded problems; see
    ///     `BoxAnnotations.init(contentsOf:photos:part:recordsProblems:threads:)`.
    ///   - validation: The validation photos. Without them, data.yaml or folders such as "train" and "val" split the photos.
    ///   - threads: The number of threads; the result does not depend on it.
    ///   - onProgress: Called from time to time with the number of photos read so far.
    public init(
        _ annotations: BoxAnnotations, validation: BoxAnnotations? = nil, threads: Int = 1,
        onProgress: (Int) -> Void = { _ in }
    ) {
        self.init(annotations, validation: validation, workers: Workers(threads), onProgress: onProgress)
    }

    /// Audits a source, which is known to be consistent.
    /// - Parameters:
    ///   - source: The training photos.
    ///   - validation: The validation photos, if they have a separate source.
    ///   - workers: The thread pool.
    ///   - onProgress: Called from time to time with the number of photos read so far.
    package init(
        _ source: any TrainingSource, validation: (any TrainingSource)? = nil, workers: Workers,
        onProgress: (Int) -> Void = { _ in }
    ) {
        let sources = [source] + (validation.map { [$0] } ?? [])
        self.init(
            sources, parts: sources.enumerated().flatMap { index, source in source.items.map { _ in index } },
            workers: workers, onProgress: onProgress)
    }

    /// Audits annotated photos and their boxes.
    /// - Parameters:
    ///   - annotations: The photos, with recorded problems.
    ///   - validation: The validation photos. Without them, data.yaml or folders such as "train" and "val" split the photos.
    ///   - workers: The thread pool.
    ///   - onProgress: Called from time to time with the number of photos read so far.
    package init(
        _ annotations: BoxAnnotations, validation: BoxAnnotations? = nil, workers: Workers,
        onProgress: (Int) -> Void = { _ in }
    ) {
        let all = [annotations] + (validation.map { [$0] } ?? [])
        let parts =
            validation.map { annotations.photos.map { _ in 0 } + $0.photos.map { _ in 1 } } ?? annotations.parts
        self.init(
            all.map { AnnotatedSource($0) }, parts: parts, boxes: all.map(BoxAudit.init), workers: workers,
            onProgress: onProgress)
    }

    /// Audits sources of photos.
    /// - Parameters:
    ///   - parts: The `DatasetPart` that each photo of all sources belongs to, as its raw value.
    ///   - boxes: The findings about the boxes of each source, if they are annotated.
    private init(
        _ sources: [any TrainingSource], parts: [Int], boxes: [BoxAudit] = [], workers: Workers,
        onProgress: (Int) -> Void
    ) {
        let groups = ImageGroups(sources, workers: workers, onProgress: onProgress)
        let photos = Photo.list(sources, parts, groups, workers)
        let shared = Self.sharedPhotos(sources)
        let distinct = photos.indices.filter { shared[$0] == nil }
        /// Returns a group in which a photo of both sets is only the training photo; nil if one photo remains.
        func withoutShared(_ group: [Int]) -> [Int]? {
            let indices = Set(group.map { shared[$0] ?? $0 }).sorted()
            return indices.count > 1 ? indices : nil
        }
        let names = Set(sources.flatMap(\.labels)).sorted {
            $0.unicodeScalars.lexicographicallyPrecedes($1.unicodeScalars)
        }
        func count(of part: DatasetPart, _ label: String? = nil) -> Int {
            photos.count { photo in
                photo.part == part.rawValue && (label.map { photo.labels.contains($0) } ?? true)
            }
        }
        labels = names.map { name in
            LabelCount(
                label: name, images: count(of: .training, name),
                validationImages: count(of: .validation, name),
                testImages: parts.contains(DatasetPart.test.rawValue) ? count(of: .test, name) : nil)
        }
        images = distinct.count
        trainingImages = count(of: .training)
        validationImages = count(of: .validation)
        testImages = count(of: .test)
        ignored = sources.reduce(0) { $0 + $1.ignored.count }
        let facts = distinct.compactMap { photos[$0].facts }
        orientations = Dictionary(facts.map { ($0.orientation, 1) }, uniquingKeysWith: +)
        profiles = Dictionary(facts.map { ($0.colorProfile ?? "none", 1) }, uniquingKeysWith: +)
        let similarPhotos = SimilarPhotos(
            copies: groups.copies.compactMap(withoutShared),
            nearDuplicates: groups.nearDuplicates.compactMap(withoutShared),
            groups: groups.groups.compactMap(withoutShared))
        self.groups = similarPhotos.groups.count
        imagesInGroups = similarPhotos.groups.reduce(0) { $0 + $1.count }
        let leaks =
            parts.allSatisfy { $0 == 0 }
            ? sources[0].randomSplitLeaks(.automatic, seed: 0, groups: groups) : (images: 0, of: 0)
        randomSplit = leaks.of > 0 ? Leakage(images: leaks.of, leaked: leaks.images) : nil
        objects = boxes.first?.objects ?? []
        // A detector sees the whole photo.
        let single = distinct.flatMap { photos[$0].warnings }.filter { boxes.isEmpty || $0.kind != .outsideCrop }
        let failures = distinct.compactMap { photos[$0].failure }
        var found = Self.similarLabelFindings(names) + Self.untrainedLabels(labels) + Self.findings(shared, photos)
        found += Self.findings(failures + single, similarPhotos, photos) + Self.findings(boxes)
        if parts.contains(where: { $0 != DatasetPart.training.rawValue }) {
            let depth = BoxAnnotations.commonFolder(of: photos.map(\.url.displayComponents)).count
            for index in found.indices { found[index].commonFolderDepth = depth }
        }
        findings = Finding.Kind.allCases.flatMap { kind in found.filter { $0.kind == kind } }
    }

    /// Returns the index of the training photo for each photo of another source that is the same file.
    private static func sharedPhotos(_ sources: [any TrainingSource]) -> [Int: Int] {
        guard sources.count > 1 else { return [:] }
        var indices: [URL: Int] = [:]
        var shared: [Int: Int] = [:]
        for (index, photo) in sources.flatMap(\.items).enumerated() where photo.content == nil {
            let location = photo.url.resolvingSymlinksInPath()
            if index < sources[0].items.count {
                indices[location] = index
            } else {
                shared[index] = indices[location]
            }
        }
        return shared
    }

    /// Returns the findings about photos of both sets, with their labels if these differ.
    private static func findings(_ shared: [Int: Int], _ photos: [Photo]) -> [Finding] {
        shared.sorted { $0.key < $1.key }.map { validation, training in
            func text(_ labels: [String]) -> String { labels.isEmpty ? "no label" : labels.joined(separator: ", ") }
            let labels = (photos[training].labels, photos[validation].labels)
            return Finding(
                kind: .sharedPhotos, files: [photos[training].url],
                reason: Set(labels.0) == Set(labels.1)
                    ? "in the \(DatasetPart.training) and the \(DatasetPart.validation) set"
                    : "\(text(labels.0)) for training, \(text(labels.1)) for validation")
        }
    }

    /// Returns the findings about labels that probably mean the same.
    private static func similarLabelFindings(_ names: [String]) -> [Finding] {
        (similarLabels(in: names) + transposedLabels(in: names)).map { labels in
            Finding(kind: .similarLabels, files: [], reason: quotedLookalikes(labels).joined(separator: ", "))
        }
    }

    /// Returns the findings about the boxes of all sources; the first source is the training set.
    private static func findings(_ boxes: [BoxAudit]) -> [Finding] {
        let training = boxes.first?.findings ?? []
        let known = Set(training)
        // Few objects are enough to validate, and a photo of both sets is reported once.
        return training
            + boxes.dropFirst().flatMap(\.findings).filter { $0.kind != .fewObjects && !known.contains($0) }
    }

    /// Returns the findings about labels that only validation and test photos have.
    private static func untrainedLabels(_ labels: [LabelCount]) -> [Finding] {
        let known = LabelSearch(labels.filter { $0.images > 0 }.map(\.label))
        return labels.compactMap { label in
            let others = label.validationImages + (label.testImages ?? 0)
            guard label.images == 0, others > 0 else { return nil }
            return Finding(
                kind: .untrainedLabels, files: [],
                reason: "\(known.quoted(label.label)): \(counted(others, "photo"))")
        }
    }

    /// Returns the findings about single photos, then those about groups.
    private static func findings(_ single: [Finding], _ groups: SimilarPhotos, _ photos: [Photo]) -> [Finding] {
        func finding(_ kind: Finding.Kind, _ indices: [Int], _ reason: String = "") -> Finding {
            Finding(kind: kind, files: indices.map { photos[$0].url }, reason: reason)
        }
        var findings = single
        let copies = Set(groups.copies)
        for indices in groups.nearDuplicates {
            if Set(indices.map { photos[$0].labels }).count > 1 {
                let labels = indices.flatMap { photos[$0].labels }.reduce(into: [String]()) { labels, label in
                    if !labels.contains(label) { labels.append(label) }
                }
                findings.append(finding(.acrossLabels, indices, labels.joined(separator: ", ")))
            }
            if !copies.contains(indices) { findings.append(finding(.nearDuplicates, indices)) }
        }
        findings += groups.copies.map { finding(.copies, $0) }
        let nearDuplicates = Set(groups.nearDuplicates)
        for indices in groups.groups {
            if Set(indices.map { photos[$0].part }).count > 1 {
                let byPart = indices.enumerated().sorted { first, second in
                    (-photos[first.element].part, first.offset) < (-photos[second.element].part, second.offset)
                }
                findings.append(finding(.acrossSplits, byPart.map(\.element)))
            }
            if !nearDuplicates.contains(indices) { findings.append(finding(.bursts, indices)) }
        }
        return findings
    }
}

/// The groups of similar photos, as indices of the photos of all sources.
private struct SimilarPhotos {
    let copies: [[Int]]
    let nearDuplicates: [[Int]]
    let groups: [[Int]]
}

/// A photo of the audited sources.
private struct Photo {
    let url: URL
    let labels: [String]
    /// The raw value of the `DatasetPart`: 0 for a training photo.
    let part: Int
    /// The metadata of the file; nil if it cannot be read.
    let facts: ImageInformation?
    let sketch: Result<ImageSketch, ImageError>

    static func list(
        _ sources: [any TrainingSource], _ parts: [Int], _ groups: ImageGroups, _ workers: Workers
    ) -> [Photo] {
        let items = sources.flatMap { source in source.items.map { ($0, $0.labels.map { source.labels[$0] }) } }
        return workers.parallelMap(items.count) { index in
            let (photo, labels) = items[index]
            return Photo(
                url: photo.url, labels: labels, part: parts[index],
                facts: photo.content == nil ? try? ImageFile.information(of: photo.url) : nil,
                sketch: groups.sketches[index])
        }
    }

    /// The finding that makes the photo unusable; nil if it is usable.
    var failure: Audit.Finding? {
        guard case .failure(let error) = sketch else { return nil }
        return Audit.Finding(unreadable: SkippedImage(url: url, reason: error))
    }

    /// The findings about a usable photo.
    var warnings: [Audit.Finding] {
        guard case .success(let sketch) = sketch else { return [] }
        var warnings: [Audit.Finding] = []
        func add(_ kind: Audit.Finding.Kind, _ reason: String) {
            warnings.append(Audit.Finding(kind: kind, files: [url], reason: reason))
        }
        if let facts {
            if facts.isAnimated { add(.animated, "") }
            if let problem = facts.colorProblem { add(.unusableColors, problem) }
            if min(facts.width, facts.height) < Audit.minimumSide {
                add(.tiny, "\(facts.width)x\(facts.height) pixels")
            }
        }
        if sketch.isSubjectLikelyOutsideSquare {
            let share = Int((sketch.contrastOutsideSquare * 100).rounded())
            add(.outsideCrop, "\(share) % of the contrast lies outside")
        }
        return warnings
    }
}
