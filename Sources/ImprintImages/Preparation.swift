public import Foundation
public import ImprintCore

/// Makes a copy of a data set that is ready to train on: upright sRGB JPEGs of one size.
///
/// The originals are only read. Each photo becomes a JPEG in the folder of the same name, at most with `shortSide` on its short
/// side: a larger photo is scaled down to it, a smaller one keeps its size, for enlarging adds nothing that training could not
/// do itself. A copy takes over the time of its original and names it in a comment (`CopyComment`), by which a later run sees that it is
/// done; a run that was interrupted goes on where it stopped. No file is replaced but the copy of the same original.
public struct Preparation: Sendable, Codable, Hashable {
    /// What a run came to.
    public struct Outcome: Sendable {
        /// How many photos are in the copy.
        public let images: Int
        /// How many of them had been made before.
        public let unchanged: Int
        /// Those that cannot be read.
        public let skipped: [SkippedImage]
        /// Images in the copy that are none of these: of photos that were moved or removed since an earlier run, perhaps.
        public let strays: [URL]
    }

    /// The length of the short side, in pixels.
    public let shortSide: Int
    /// The quality of the JPEGs, 1…100.
    public let quality: Int

    /// What a prepared folder was made with; it lies in the folder, hidden.
    private static let stampName = ".prepared.json"

    /// Makes rules for a copy.
    public init(shortSide: Int = 299, quality: Int = 90) {
        precondition(shortSide > 0, "a photo has at least one pixel, not \(shortSide)")
        precondition((1...100).contains(quality), "the quality of a JPEG is 1 to 100, not \(quality)")
        self.shortSide = shortSide
        self.quality = quality
    }

    /// Copies the photos of `folder` into `output`.
    /// - Parameters:
    ///   - folder: The originals.
    ///   - output: A folder that is new, empty, or was prepared with the same rules; neither in that of the originals nor
    ///     around it.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Told now and then how many photos are done.
    /// - Throws: `PreparationError` where `output` is another kind of folder, `ImageError` where a file cannot be written.
    public func run(
        _ folder: ImageFolder, into output: URL, workers: Workers, onProgress: (Int) -> Void = { _ in }
    ) throws -> Outcome {
        try checkApart(folder.url, output)
        try claim(output)
        let targets = Self.targets(of: folder, in: output)
        let sources = folder.items.map(folder.path)
        for parent in Set(targets.map { $0.deletingLastPathComponent() }) { try makeFolder(parent) }
        let outcomes = try workers.map(targets.count, onProgress: onProgress) { place throws(ImageError) in
            try copy(
                folder.items[place].url, CopyComment(of: folder.items[place].url, sources[place]), to: targets[place])
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
            strays: Self.strays(in: output, besides: targets))
    }

    private enum CopyOutcome {
        case made
        case unchanged
        case unreadable(ImageError)
    }

    private func copy(_ original: URL, _ comment: CopyComment, to target: URL) throws(ImageError) -> CopyOutcome {
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
        // The name is hidden, so that what an interrupted run leaves is no photo.
        let partial = target.deletingLastPathComponent().appending(path: ".\(target.lastPathComponent).partial")
        do {
            try Data(bytes).write(to: partial)
            if let time {
                try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: partial.displayPath)
            }
            guard rename(partial.displayPath, target.displayPath) == 0 else {
                throw CocoaError(.fileWriteUnknown)
            }
        } catch {
            try? FileManager.default.removeItem(at: partial)
            throw .unwritable(file: target, reason: reason(of: error))
        }
        return .made
    }

    /// The paths of the copies: `a.jpg` for `a.jpg` and for `a.png`, but `a-png.jpg` for the latter if both are there.
    ///
    /// An original whose copy is there keeps its path. Of the others, JPEGs come first, then the rest in their order; they get paths at which
    /// nothing is yet. Names that differ in upper and lower case only count as one, since some file systems cannot hold both.
    static func targets(of folder: ImageFolder, in output: URL) -> [URL] {
        let sources = folder.items.map(folder.path)
        let kinds = folder.items.map { $0.url.pathExtension.lowercased() }
        let order = sources.indices.sorted { (kinds[$0] == "jpg" ? 0 : 1, $0) < (kinds[$1] == "jpg" ? 0 : 1, $1) }
        let existing = ExistingCopies(in: output)
        var taken = Set(existing.paths.map { $0.lowercased() })
        var targets = sources.map { output.appending(path: existing.path(ofCopyOf: $0) ?? $0) }
        for place in order where existing.path(ofCopyOf: sources[place]) == nil {
            let stem = sources[place].dropLast(kinds[place].isEmpty ? 0 : kinds[place].count + 1)
            let candidates = sequence(first: 0) { $0 + 1 }.lazy.map { attempt in
                switch attempt {
                case 0: "\(stem).jpg"
                case 1: "\(stem)-\(kinds[place]).jpg"
                default: "\(stem)-\(kinds[place])-\(attempt).jpg"
                }
            }
            let isFree = { (path: String) in
                existing.isEarlierCopy(path, of: folder.items[place].url) || !taken.contains(path.lowercased())
            }
            guard let path = candidates.first(where: isFree) else { continue }
            taken.insert(path.lowercased())
            existing.claim(path)
            targets[place] = output.appending(path: path)
        }
        return targets
    }

    private static func strays(in output: URL, besides targets: [URL]) -> [URL] {
        guard let copy = try? ImageFolder(at: output, minimumClasses: 1) else { return [] }
        let known = Set(targets.map(\.standardizedFileURL.path))
        return copy.items.map(\.url).filter { !known.contains($0.standardizedFileURL.path) }
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
            let found = try? JSONDecoder().decode(Preparation.self, from: data)
            guard found == self else { throw PreparationError.otherRules(folder: folder, found: found, expected: self) }
            return
        }
        let contents = (try? FileManager.default.contentsOfDirectory(atPath: folder.displayPath)) ?? []
        if let other = contents.min() { throw PreparationError.foreignFolder(folder: folder, found: other) }
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            try encoder.encode(self).write(to: file, options: .atomic)
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
public enum PreparationError: DescribedError, Equatable, Sendable {
    /// The folder to write is that of the originals, in it, or around it.
    case originalsAtRisk(output: URL, data: URL)
    /// The folder to write holds something else.
    case foreignFolder(folder: URL, found: String)
    /// The folder was prepared with other rules, or with rules that cannot be read.
    case otherRules(folder: URL, found: Preparation?, expected: Preparation)

    /// The error in a sentence or two.
    public var description: String {
        switch self {
        case .originalsAtRisk(let output, let data):
            "\(output.displayPath) and the photos in \(data.displayPath) are not apart from each other, so that originals could "
                + "be overwritten. Choose a folder beside that of the photos."
        case .foreignFolder(let folder, let found):
            "\(folder.displayPath) holds \(found), expected a new or empty folder. Choose another one."
        case .otherRules(let folder, let found, let expected):
            "\(folder.displayPath) was prepared with \(found.map(Self.words) ?? "rules that cannot be read"), expected "
                + "\(Self.words(expected)). Choose another folder, or remove this one."
        }
    }

    private static func words(_ preparation: Preparation) -> String {
        "a short side of \(preparation.shortSide) and quality \(preparation.quality)"
    }
}
