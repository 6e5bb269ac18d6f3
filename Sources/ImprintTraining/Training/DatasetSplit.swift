package import Foundation
internal import Imprint
internal import ImprintCore
package import ImprintImages
internal import ImprintModel

/// The training and validation photos of a run, before they are read.
struct DatasetSplit {
    var training: [TrainingPhoto]
    var validation: [TrainingPhoto] = []
    var leakage: TrainingStart.Leakage?
    /// The source of the photos and, if it is separate, the source of the validation photos.
    var sources: [any TrainingSource]
    /// The identifier of the group of near-duplicates or of a burst, for each item of the first source; nil if the split did not need groups.
    var groups: [Int]?

    /// Splits the photos of a source.
    ///
    /// A resumed run repeats the split of its checkpoint, unless the validation photos are separate.
    /// - Parameters:
    ///   - source: The photos.
    ///   - rule: The validation set, and whether groups of near-duplicates and bursts stay together.
    ///   - earlier: The photos of the run to resume; nil for a new run.
    ///   - onEvent: Called with the number of photos that are compared so far.
    ///   - checkContinues: Called after each portion of photos that are compared; throws if the run should end.
    /// - Throws: `ImprintError.missingValidationPhotos` if none of the validation photos of `earlier` is left,
    ///   `ImprintError.labelMismatch` if separate validation photos have other labels, the errors of `validationPhotos(at:for:logos:)`, and
    ///   the errors of `checkContinues`.
    init(
        _ source: any TrainingSource, _ rule: DatasetSplitRule, earlier: Checkpoint.Images?,
        onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void = {}
    ) throws {
        func groups(_ sources: [any TrainingSource]) throws -> ImageGroups {
            let total = sources.reduce(0) { $0 + $1.items.count }
            return try ImageGroups(sources, workers: Workers(rule.threads)) { done in
                onEvent(.comparing(done: done, of: total))
                try checkContinues()
            }
        }
        training = source.items
        sources = [source]
        let seed = rule.seed
        switch rule.validation {
        case .split(let share):
            if let earlier {
                // A photo that was unreadable when the run started is in neither set, and may belong to the group of a validation photo.
                let isSame =
                    try earlier.digests == [source.digest]
                    && !ImageGroups.sketches(
                        of: source.photos(outside: earlier), workers: Workers(rule.threads),
                        onProgress: { _ in try checkContinues() }
                    ).contains { (try? $0.get()) != nil }
                let groups = try isSame || !rule.keepsGroupsTogether ? nil : groups([source])
                (training, validation) = source.split(as: earlier, groups: groups)
                if validation.isEmpty && !earlier.validation.isEmpty {
                    throw ImprintError.missingValidationPhotos(count: earlier.validation.count)
                }
                if let groups, !validation.isEmpty {
                    leakage = source.avoidedLeakage(share, seed: seed, groups: groups)
                } else {
                    leakage = earlier.leakage.flatMap(TrainingStart.Leakage.init)
                }
                return
            }
            guard share.fraction(ofImages: source.items.count) > 0 else { return }
            guard rule.keepsGroupsTogether else {
                (training, validation) = source.split(share, seed: seed)
                return
            }
            let groups = try groups([source])
            (training, validation) = source.split(share, seed: seed, groups: groups)
            self.groups = source.items.indices.map(groups.group)
            leakage = source.avoidedLeakage(share, seed: seed, groups: groups)
        case .folder(let url, let logos):
            try validate(on: try validationPhotos(at: url, for: source, logos: logos), named: url.displayPath)
        case .source(let source): try validate(on: source, named: source.name)
        }
        if sources.count > 1 {
            if let earlier, earlier.digests == sources.map(\.digest) {
                leakage = earlier.leakage.flatMap(TrainingStart.Leakage.init)
            } else if rule.keepsGroupsTogether {
                let count = source.items.count
                let groups = try groups(sources)
                let leaks = groups.leaks(from: count..<(count + validation.count), into: 0..<count)
                self.groups = source.items.indices.map(groups.group)
                leakage = .found(images: leaks, of: validation.count)
            }
        }
    }

    /// Checks that enough photos of a separate validation source are readable.
    ///
    /// A validation set that is a part of the photos may lack labels, because it may be small.
    /// - Throws: `ImageError.tooManyUnreadable` or `ImageError.noReadableImages`.
    func checkValidation(readable: [TrainingPhoto], skipped: [SkippedImage]) throws(ImageError) {
        guard sources.count > 1 else { return }
        try SkippedImage.checkEnoughAreReadable(
            of: validation, readable: readable, skipped: skipped, labels: sources[0].labels)
    }

    /// Adds a separate source of validation photos, whose labels may be a part of the labels of the training photos.
    private mutating func validate(on other: any TrainingSource, named name: String) throws {
        let labels = sources[0].labels
        let unknown = other.labels.filter { !labels.contains($0) }
        guard unknown.isEmpty else {
            throw ImprintError.labelMismatch(source: name, unknown: unknown, labels: labels)
        }
        let labelIndices = other.labels.map { label in labels.firstIndex(of: label) ?? 0 }
        validation = other.items.map { $0.mapping(labelIndices) }
        sources.append(other)
    }
}

extension Checkpoint.Images {
    /// Describes the readable photos of a split.
    init(training: [TrainingPhoto], validation: [TrainingPhoto], of split: DatasetSplit) {
        let (source, validationSource) = (split.sources[0], split.sources[split.sources.count - 1])
        let (trainingPaths, validationPaths) = (
            training.map(source.identifier), validation.map(validationSource.identifier)
        )
        self.init(
            digests: split.sources.map(\.digest), training: trainingPaths, validation: validationPaths,
            leakage: split.leakage?.storedCounts,
            // The validation photos of another source have the label indices of the training photos.
            identities: zip(training + validation, trainingPaths + validationPaths).map { photo, path in
                photo.identity(path: path, labels: source.labels)
            }.joined())
        func unreadable(
            _ photos: [TrainingPhoto], _ source: any TrainingSource, _ readable: [String]
        ) -> [UnreadableImage] {
            // Bytes, because file names that differ only in their Unicode normalization are equal strings.
            let readable = Set(readable.map { Array($0.utf8) })
            let images = photos.map { photo in
                let path = source.identifier(of: photo)
                return UnreadableImage(path: path, name: (source as? DetectorSource)?.name(of: photo) ?? path)
            }
            return images.filter { !readable.contains(Array($0.path.utf8)) }
        }
        unreadableTraining = unreadable(split.training, source, trainingPaths)
        unreadableValidation = unreadable(split.validation, validationSource, validationPaths)
    }

    /// Describes all photos of a source, before they are split.
    init(_ source: any TrainingSource) {
        let paths = source.items.map(source.identifier)
        self.init(
            digests: [source.digest], training: paths, validation: [], leakage: nil,
            identities: zip(source.items, paths).map { photo, path in
                photo.identity(path: path, labels: source.labels)
            }.joined())
    }
}

extension ProcessGroup {
    /// Checks that all processes have split the same photos in the same way.
    /// - Throws: `ProcessMismatchError` in all processes.
    func checkSame(_ split: DatasetSplit) throws(ProcessMismatchError) {
        try checkSame([
            (
                "training photos",
                "\(split.training.count), \(Checkpoint.Images.digest(split.training.map(split.sources[0].identifier)))"
            ),
            (
                "validation photos",
                "\(split.validation.count), \(Checkpoint.Images.digest(split.validation.map(\.url.lastPathComponent)))"
            ),
            ("files", split.sources.map(\.digest).joined(separator: ", ")),
        ])
    }
}

extension TrainingSource {
    /// Returns the leakage of a random split, which the split by groups avoids.
    fileprivate func avoidedLeakage(_ rule: ValidationRule, seed: UInt64, groups: ImageGroups) -> TrainingStart.Leakage
    {
        let random = randomSplitLeaks(rule, seed: seed, groups: groups)
        return .avoided(images: random.images, of: random.of, groups: groups.groups.count)
    }

    /// Returns the photos that are in neither set of an earlier split.
    fileprivate func photos(outside earlier: Checkpoint.Images) -> [TrainingPhoto] {
        // Bytes, because paths that differ only in their Unicode normalization are equal strings.
        let known = Set((earlier.training + earlier.validation).map { Array($0.utf8) })
        return items.filter { !known.contains(Array(identifier(of: $0).utf8)) }
    }

    /// Repeats an earlier split.
    ///
    /// New items become training images, unless they are in the group of a validation image.
    fileprivate func split(
        as earlier: Checkpoint.Images, groups: ImageGroups?
    ) -> (training: [TrainingPhoto], validation: [TrainingPhoto]) {
        // Bytes, because paths that differ only in their Unicode normalization are equal strings.
        func bytes(_ path: String) -> [UInt8] { Array(path.utf8) }
        let paths = items.map { bytes(identifier(of: $0)) }
        let (training, validation) = (Set(earlier.training.map(bytes)), Set(earlier.validation.map(bytes)))
        let validationGroups = groups.map { groups in
            Set(items.indices.filter { validation.contains(paths[$0]) }.map(groups.group))
        }
        let isValidation = items.indices.map { index in
            if validation.contains(paths[index]) { return true }
            guard let groups, let validationGroups, !training.contains(paths[index]) else { return false }
            return validationGroups.contains(groups.group(of: index))
        }
        return (
            items.indices.filter { !isValidation[$0] }.map { items[$0] },
            items.indices.filter { isValidation[$0] }.map { items[$0] }
        )
    }
}

/// Reads validation photos by the same rules as the training photos.
/// - Parameters:
///   - url: A folder or, for a classifier, also a list.
///   - logos: The labels of a detector's logos, or nil for a classifier.
/// - Throws: The errors of `ImageFolder` and `LabelList`.
package func validationPhotos(
    at url: URL, for source: any TrainingSource, logos: [String]?
) throws -> any TrainingSource {
    guard let logos else { return try labelledPhotos(at: url, minimumLabels: 1, knownLabels: source.labels) }
    let backgroundLabel = source.labels.first { !logos.contains($0) }
    return try ImageFolder(at: url, logos: logos, backgroundLabel: backgroundLabel)
}

extension TrainingStart.Leakage {
    /// The leakage as a checkpoint stores it.
    var storedCounts: [String: Int] {
        switch self {
        case .avoided(let images, let total, let groups): ["avoided": images, "of": total, "groups": groups]
        case .found(let images, let total): ["found": images, "of": total]
        }
    }

    fileprivate init?(_ storedCounts: [String: Int]) {
        if let images = storedCounts["avoided"], let total = storedCounts["of"], let groups = storedCounts["groups"] {
            self = .avoided(images: images, of: total, groups: groups)
        } else if let images = storedCounts["found"], let total = storedCounts["of"] {
            self = .found(images: images, of: total)
        } else {
            return nil
        }
    }
}
