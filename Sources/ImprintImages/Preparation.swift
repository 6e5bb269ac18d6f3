package import Foundation
package import ImprintCore

/// Makes a copy of a data set that is ready to train on: upright sRGB JPEGs of one size.
///
/// The originals are only read. Each photo becomes a JPEG in the folder of the same name, at most with `shortSide` on its short
/// side: a larger photo is scaled down to it, a smaller one keeps its size, for enlarging adds nothing that training could not
/// do itself. A copy takes over the time of its original and names it in a comment (`CopyComment`), by which a later run sees that it is
/// done; a run that was interrupted goes on where it stopped. No file is replaced but the copy of the same original.
package struct Preparation: Sendable, Hashable {
    /// What a run came to.
    package struct Outcome: Sendable {
        /// How many photos are in the copy.
        package let images: Int
        /// How many of them had been made before.
        package let unchanged: Int
        /// Those that cannot be read.
        package let skipped: [SkippedImage]
        /// Images in the copy that are none of these: of photos that were moved or removed since an earlier run, perhaps.
        package let strays: [URL]
    }

    /// The length of the short side, in pixels.
    package let shortSide: Int
    /// The quality of the JPEGs, 1…100.
    package let quality: Int

    /// What a prepared folder was made with; it lies in the folder, hidden.
    private static let stampName = ".prepared.json"

    /// The content of that file.
    private struct Stamp: Codable {
        let shortSide: Int
        let quality: Int
        /// 2 since copies name their originals; nil before, when copies could not be told from the user's own files.
        var version: Int? = Stamp.current

        static let current = 2
    }

    /// Makes rules for a copy.
    package init(shortSide: Int = 299, quality: Int = 90) {
        precondition(shortSide > 0, "a photo has at least one pixel, not \(shortSide)")
        precondition((1...100).contains(quality), "the quality of a JPEG is 1 to 100, not \(quality)")
        self.shortSide = shortSide
        self.quality = quality
    }

    /// The rules that a folder says it was made with; nil if they are out of range.
    private init?(found stamp: Stamp) {
        guard stamp.shortSide > 0, (1...100).contains(stamp.quality) else { return nil }
        self.init(shortSide: stamp.shortSide, quality: stamp.quality)
    }

    /// Copies the photos of `folder` into `output`.
    /// - Parameters:
    ///   - folder: The originals.
    ///   - output: A folder that is new, empty, or was prepared with the same rules; neither in that of the originals nor
    ///     around it.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Told now and then how many photos are done.
    /// - Throws: `PreparationError` if `output` is another kind of folder, `ImageError` where a file cannot be written.
    package func run(
        _ folder: ImageFolder, into output: URL, workers: Workers, onProgress: (Int) -> Void = { _ in }
    ) throws -> Outcome {
        // The folders of labels may be links to other places.
        let places = Set(folder.items.map { $0.url.deletingLastPathComponent() }).sorted { $0.path < $1.path }
        for originals in [folder.url] + places { try checkApart(originals, output) }
        try claim(output)
        let targets = try Self.targets(of: folder, in: output)
        let sources = folder.items.map(folder.path)
        for parent in Set(targets.map { $0.deletingLastPathComponent() }) { try makeFolder(parent) }
        let outcomes = try workers.parallelMap(targets.count, onProgress: onProgress) { index throws(ImageError) in
            // The name is hidden, so that a file of an interrupted run is no photo, and short, for names have at most 255 bytes.
            let partial = targets[index].deletingLastPathComponent().appending(path: ".copy-\(index).partial")
            let original = folder.items[index].url
            return try copy(original, CopyComment(of: original, sources[index]), to: targets[index], by: partial)
        }
        var (unchanged, skipped): (Int, [SkippedImage]) = (0, [])
        for (item, outcome) in zip(folder.items, outcomes) {
            switch outcome {
            case .made: break
            case .unchanged: unchanged += 1
            case .unreadable(let reason): skipped.append(SkippedImage(url: item.url, reason: reason))
            }
        }
        return Outcome(
            images: targets.count - skipped.count, unchanged: unchanged, skipped: skipped,
            strays: try Self.strays(in: output, besides: targets))
    }

    private enum CopyOutcome {
        case made
        case unchanged
        case unreadable(ImageError)
    }

    private func copy(
        _ original: URL, _ comment: CopyComment, to target: URL, by partial: URL
    ) throws(ImageError) -> CopyOutcome {
        let time = modificationTime(original)
        // Setting a time loses what lies below a microsecond.
        if let time, let made = modificationTime(target), abs(made.timeIntervalSince(time)) < 1e-3,
            CopyComment(target) == comment
        {
            return .unchanged
        }
        var bytes: [UInt8]
        do throws(ImageError) {
            let image = try ImageFile.decode(
                original, coveringShortSide: ImageFile.shortSideToDecode(covering: shortSide))
            bytes = try ImageFile.encodeJPEG(image.shrunk(toShortSide: shortSide), quality: quality)
        } catch {
            // What a former run made of a file that was readable then would be taken for this one's.
            try? FileManager.default.removeItem(at: target)
            if case .unencodable(let format, let reason) = error {
                return .unreadable(.unencodable(format: "\(format) (\(original.displayPath))", reason: reason))
            }
            return .unreadable(error)
        }
        bytes = comment.inserted(into: bytes)
        // By the time, photos of one burst are found in the copy too.
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
            let error = ImageError.unwritable(file: target, reason: String(cString: strerror(code)))
            // A long name concerns this photo only; any other failure concerns the folder.
            guard code == ENAMETOOLONG else { throw error }
            return .unreadable(error)
        }
        return .made
    }

    /// The paths of the copies: `a.jpg` for `a.jpg` and for `a.png`, but `a-png.jpg` for the latter if both are there.
    ///
    /// An original whose copy is there keeps its path. Of the others, JPEGs come first, then the rest in their order; they get paths at which
    /// nothing is yet. Names that differ in upper and lower case only count as one, since some file systems cannot hold both.
    static func targets(of folder: ImageFolder, in output: URL) throws(ImageError) -> [URL] {
        let names = folder.items.map { CopyNames(of: folder.path(of: $0), fileExtension: $0.url.pathExtension) }
        let order = names.indices.sorted { (names[$0].isJPEG ? 0 : 1, $0) < (names[$1].isJPEG ? 0 : 1, $1) }
        let existing = try ExistingCopies(in: output)
        let kept = names.map(existing.path(ofCopyWith:))
        var taken = Set(existing.paths.map { $0.lowercased() })
        var targets = zip(names, kept).map { output.appending(path: $1 ?? $0.source) }
        for index in order where kept[index] == nil {
            let isFree = { (path: String) in
                !taken.contains(path.lowercased()) && !exists(output.appending(path: path))
            }
            guard let path = names[index].candidates.first(where: isFree) else { continue }
            taken.insert(path.lowercased())
            targets[index] = output.appending(path: path)
        }
        return targets
    }

    private static func strays(in output: URL, besides targets: [URL]) throws(ImageError) -> [URL] {
        // By bytes: strings that are composed differently are equal, but name different files.
        let known = Set(targets.map { Array($0.displayPath.utf8) })
        // Files beside the folders of the labels are not trained on.
        return try ExistingCopies.filePaths(in: output).filter { $0.contains("/") }.map { output.appending(path: $0) }
            .filter { !known.contains(Array($0.displayPath.utf8)) && isImage($0) }
    }

    /// Checks that neither folder is in the other.
    private func checkApart(_ data: URL, _ output: URL) throws(PreparationError) {
        // A folder that is not there yet has no links of its own, but the folders above it may be links.
        func resolved(_ url: URL) -> [String] {
            var (existing, rest): (URL, [String]) = (url.standardizedFileURL.absoluteURL, [])
            while FileStatus(existing) == nil, existing.pathComponents.count > 1 {
                rest.insert(existing.lastPathComponent, at: 0)
                existing.deleteLastPathComponent()
            }
            return existing.resolvingSymlinksInPath().pathComponents.filter { $0 != "/" } + rest
        }
        let (inner, outer) = (resolved(output), resolved(data))
        guard !inner.starts(with: outer), !outer.starts(with: inner) else {
            throw .originalsAtRisk(output: output, data: data)
        }
    }

    /// Makes the folder this copy's own, or finds that it is already.
    private func claim(_ folder: URL) throws {
        try makeFolder(folder)
        let file = folder.appending(path: Self.stampName)
        if let data = try? Data(contentsOf: file) {
            let stamp = try? JSONDecoder().decode(Stamp.self, from: data)
            let found = stamp.flatMap { Preparation(found: $0) }
            guard found == self else { throw PreparationError.otherRules(folder: folder, found: found, expected: self) }
            guard stamp?.version == Stamp.current else { throw PreparationError.otherVersion(folder: folder) }
            return
        }
        // `FileManager` leaves out names that are not UTF-8, which are errors here.
        _ = try FolderListing(folder)
        let contents = (try? FileManager.default.contentsOfDirectory(atPath: folder.displayPath)) ?? []
        if let other = contents.min() { throw PreparationError.foreignFolder(folder: folder, found: other) }
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            try encoder.encode(Stamp(shortSide: shortSide, quality: quality)).write(to: file, options: .atomic)
        } catch {
            throw ImageError.unwritable(file: file, reason: reason(of: error))
        }
    }

    private func makeFolder(_ folder: URL) throws(ImageError) {
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            throw .unwritable(file: folder, reason: reason(of: error))
        }
    }
}

/// Why a data set could not be prepared into a folder.
package enum PreparationError: DescribedError, Equatable, Sendable {
    /// The folder to write is that of the originals, in it, or around it.
    case originalsAtRisk(output: URL, data: URL)
    /// The folder to write holds something else.
    case foreignFolder(folder: URL, found: String)
    /// The folder was prepared with other rules, or with rules that cannot be read.
    case otherRules(folder: URL, found: Preparation?, expected: Preparation)
    /// Another version of Imprint prepared the folder.
    case otherVersion(folder: URL)

    /// The error in a sentence or two.
    package var description: String {
        switch self {
        case .originalsAtRisk(let output, let data):
            "\(output.displayPath) and the photos in \(data.displayPath) are not apart from each other, so that originals could "
                + "be overwritten. Choose a folder beside that of the photos."
        case .foreignFolder(let folder, let found):
            "\(folder.displayPath) holds \(found), expected a new or empty folder. Choose another one."
        case .otherRules(let folder, let found, let expected):
            "\(folder.displayPath) was prepared with \(found.map(Self.words) ?? "rules that cannot be read"), expected "
                + "\(Self.words(expected)). Choose another folder, or remove this one."
        case .otherVersion(let folder):
            "\(folder.displayPath) was prepared by another version of Imprint, whose copies do not name their originals in the "
                + "same way. Choose another folder, or remove this one."
        }
    }

    private static func words(_ preparation: Preparation) -> String {
        "a short side of \(preparation.shortSide) and quality \(preparation.quality)"
    }
}
