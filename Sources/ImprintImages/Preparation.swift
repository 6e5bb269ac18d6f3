package import Foundation
package import ImprintCore

/// Copies a data set for training, as upright sRGB JPEGs of one size.
///
/// The originals do not change. Each photo becomes a JPEG in the folder of the same name. The short side of the copy has at most
/// `shortSide` pixels: larger photos are scaled down, and smaller ones keep their size because training enlarges them. A copy keeps
/// the modification time of its original and names it in a comment (`CopyComment`). A later run thus recognizes finished copies,
/// and an interrupted run continues, also after a power cut. A run overwrites only copies of the same original, and empty copies.
package struct Preparation: Sendable, Hashable {
    /// The result of a run.
    package struct Outcome: Sendable {
        /// The number of photos in the copy.
        package let images: Int
        /// The number of copies from earlier runs.
        package let unchanged: Int
        /// The unreadable photos.
        package let skipped: [SkippedImage]
        /// Other images in the copy, for example of photos that were moved or removed since an earlier run.
        package let strays: [URL]
    }

    /// The length of the short side, in pixels.
    package let shortSide: Int
    /// The quality of the JPEGs, 1…100.
    package let quality: Int

    /// The hidden file in a prepared folder with the settings of the run.
    private static let stampName = ".prepared.json"

    /// The content of that file.
    private struct Stamp: Codable {
        let shortSide: Int
        let quality: Int
        /// 2 since copies name their originals; nil in older stamps, whose copies cannot be told from the user's files.
        var version: Int? = Stamp.current

        static let current = 2
    }

    /// Creates the settings of a copy.
    package init(shortSide: Int = 299, quality: Int = 90) {
        precondition(shortSide > 0, "a photo must have at least one pixel, not \(shortSide)")
        precondition((1...100).contains(quality), "the quality of a JPEG must be 1 to 100, not \(quality)")
        self.shortSide = shortSide
        self.quality = quality
    }

    /// Creates the settings in the stamp of a folder; nil if they are out of range.
    private init?(found stamp: Stamp) {
        guard stamp.shortSide > 0, (1...100).contains(stamp.quality) else { return nil }
        self.init(shortSide: stamp.shortSide, quality: stamp.quality)
    }

    /// Writes copies of the photos of `folder` into `output`.
    /// - Parameters:
    ///   - folder: The originals.
    ///   - output: A folder that is new, empty, or was prepared with the same settings. It must neither be inside the folder
    ///     of the originals nor contain it.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Receives the number of finished photos, from time to time.
    /// - Throws: `PreparationError` if `output` is another kind of folder, `ImageError` or `FileError` if a
    ///   file cannot be written.
    package func run(
        _ folder: ImageFolder, into output: URL, workers: Workers, onProgress: (Int) -> Void = { _ in }
    ) throws -> Outcome {
        // The folders of labels may be links to folders elsewhere.
        let folders = Set(folder.items.map { $0.url.deletingLastPathComponent() }).sorted { $0.path < $1.path }
        for originals in [folder.url] + folders { try checkApart(originals, output) }
        try claim(output)
        let targets = try Self.targets(of: folder, in: output)
        let sources = folder.items.map(folder.identifier)
        for parent in Set(targets.map { $0.deletingLastPathComponent() }) { try AtomicFile.makeFolder(parent) }
        let outcomes = try workers.parallelMap(targets.count, onProgress: onProgress) { index throws(ImageError) in
            // A hidden name, so that later runs ignore the file of an interrupted run; short, because names have at most 255
            // bytes.
            let partial = targets[index].deletingLastPathComponent().appending(path: ".copy-\(index).partial")
            let original = folder.items[index].url
            return try copy(original, CopyComment(of: original, sources[index]), to: targets[index], by: partial)
        }
        var (unchanged, skipped): (Int, [SkippedImage]) = (0, [])
        for (item, outcome) in zip(folder.items, outcomes) {
            switch outcome {
            case .copied: break
            case .unchanged: unchanged += 1
            case .unreadable(let reason): skipped.append(SkippedImage(url: item.url, reason: reason))
            }
        }
        return Outcome(
            images: targets.count - skipped.count, unchanged: unchanged, skipped: skipped,
            strays: try Self.strays(in: output, besides: targets))
    }

    private enum CopyOutcome {
        case copied
        case unchanged
        case unreadable(ImageError)
    }

    private func copy(
        _ original: URL, _ comment: CopyComment, to target: URL, by partial: URL
    ) throws(ImageError) -> CopyOutcome {
        let time = modificationTime(original)
        // Setting a time drops fractions of a microsecond.
        if let time, let copyTime = modificationTime(target), abs(copyTime.timeIntervalSince(time)) < 1e-3,
            comment.isOfWholeCopy(at: target)
        {
            return .unchanged
        }
        var bytes: [UInt8]
        do throws(ImageError) {
            let image = try ImageFile.decode(
                original, coveringShortSide: ImageFile.shortSideToDecode(covering: shortSide))
            bytes = try ImageFile.encodeJPEG(image.shrunk(toShortSide: shortSide), quality: quality)
        } catch {
            // A copy from an earlier run, when the file was readable, must not count as a copy of this run.
            try? FileManager.default.removeItem(at: target)
            if case .unencodable(let format, let reason) = error {
                return .unreadable(.unencodable(format: "\(format) (\(original.displayPath))", reason: reason))
            }
            return .unreadable(error)
        }
        bytes = comment.inserted(into: bytes)
        // The capture time lets burst detection work on the copy too.
        if let time = CaptureTime.text(of: original) { bytes = CaptureTime.inserting(time, into: bytes) }
        do {
            try Data(bytes).write(to: partial)
            if let time {
                try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: partial.displayPath)
            }
        } catch {
            try? FileManager.default.removeItem(at: partial)
            throw .unwritable(file: target, reason: reason(of: error))
        }
        guard rename(partial.displayPath, target.displayPath) == 0 else {
            let code = errno
            try? FileManager.default.removeItem(at: partial)
            let error = ImageError.unwritable(file: target, reason: errorText(code))
            // A name that is too long affects only this photo; any other failure affects the folder.
            guard code == ENAMETOOLONG else { throw error }
            return .unreadable(error)
        }
        return .copied
    }

    /// Returns the paths of the copies: `a.jpg` for `a.jpg` and for `a.png`, but `a-png.jpg` for the latter if both are there.
    ///
    /// An original that already has a copy keeps its path. The other originals get unused paths, JPEGs first and then the rest
    /// in their order. Names that differ only in case count as the same, because some file systems cannot hold both.
    static func targets(of folder: ImageFolder, in output: URL) throws(ImageError) -> [URL] {
        let names = folder.items.map { CopyNames(of: folder.identifier(of: $0), fileExtension: $0.url.pathExtension) }
        let order = names.indices.sorted { (names[$0].isJPEG ? 0 : 1, $0) < (names[$1].isJPEG ? 0 : 1, $1) }
        let existing = try ExistingCopies(in: output)
        let kept = names.map(existing.path(ofCopyWith:))
        var taken = Set(existing.paths.map { $0.lowercased() })
        var targets = zip(names, kept).map { output.appending(path: $1 ?? $0.source) }
        for index in order where kept[index] == nil {
            let isFree = { (path: String) in
                let target = output.appending(path: path)
                return !taken.contains(path.lowercased()) && (!exists(target) || isEmptyCopy(target))
            }
            guard let path = names[index].candidates.first(where: isFree) else { continue }
            taken.insert(path.lowercased())
            targets[index] = output.appending(path: path)
        }
        return targets
    }

    private static func strays(in output: URL, besides targets: [URL]) throws(ImageError) -> [URL] {
        // Compared by bytes: canonically equivalent strings are equal, but name different files.
        let known = Set(targets.map { Array($0.displayPath.utf8) })
        // Training ignores files beside the folders of the labels.
        return try ExistingCopies.filePaths(in: output).filter { $0.contains("/") }.map { output.appending(path: $0) }
            .filter { !known.contains(Array($0.displayPath.utf8)) && isImage($0) }
    }

    /// Checks that neither folder is inside the other.
    private func checkApart(_ data: URL, _ output: URL) throws(PreparationError) {
        guard !output.isInside(data), !data.isInside(output) else {
            throw .originalsAtRisk(output: output, data: data)
        }
    }

    /// Stores these settings in a new folder, or checks those of a prepared folder.
    private func claim(_ folder: URL) throws {
        let stamp = Stamp(shortSide: shortSide, quality: quality)
        switch try StampedFolder(claiming: folder, for: stamp, named: Self.stampName) {
        case .new: break
        case .foreign(let entry): throw PreparationError.foreignFolder(folder: folder, found: entry)
        case .stamped(let stamp):
            let found = stamp.flatMap { Preparation(found: $0) }
            guard found == self else { throw PreparationError.otherRules(folder: folder, found: found, expected: self) }
            guard stamp?.version == Stamp.current else { throw PreparationError.otherVersion(folder: folder) }
        }
    }
}

/// The error of an output folder that cannot be used for a prepared data set.
package enum PreparationError: DescribedError, Equatable, Sendable {
    /// The output folder is the folder of the originals, inside it, or contains it.
    case originalsAtRisk(output: URL, data: URL)
    /// The output folder holds other files.
    case foreignFolder(folder: URL, found: String)
    /// The folder was prepared with other settings, or with settings that cannot be read.
    case otherRules(folder: URL, found: Preparation?, expected: Preparation)
    /// Another version of Imprint prepared the folder.
    case otherVersion(folder: URL)

    /// The error in one or two sentences.
    package var description: String {
        switch self {
        case .originalsAtRisk(let output, let data):
            "\(output.displayPath) and the photos in \(data.displayPath) overlap, so that originals could be overwritten. "
                + "Choose a folder beside the folder of the photos."
        case .foreignFolder(let folder, let found):
            "\(folder.displayPath) holds \(found), expected a new or empty folder. Choose another one."
        case .otherRules(let folder, let found, let expected):
            "\(folder.displayPath) was prepared with \(found.map(Self.text) ?? "settings that cannot be read"), expected "
                + "\(Self.text(expected)). Choose another folder, or remove this one."
        case .otherVersion(let folder):
            "\(folder.displayPath) was prepared by another version of Imprint, whose copies do not name their originals in the "
                + "same way. Choose another folder, or remove this one."
        }
    }

    private static func text(_ preparation: Preparation) -> String {
        "a short side of \(preparation.shortSide) and quality \(preparation.quality)"
    }
}
