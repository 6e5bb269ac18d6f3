internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The options of subcommands that process any number of photos: files, folders, and lists of paths.
struct PhotoInputOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The photos: files, and folders with all images in them and in their sub-folders.", valueName: "photo"))
    var photos: [String] = []

    @Option(
        help: ArgumentHelp(
            "A list of more photos, one path per line, processed as it arrives; - is standard input.",
            valueName: "file"))
    var filesFrom: String?

    @Flag(
        name: [.customShort("0"), .long],
        help: "NUL characters separate the paths of --files-from, as in the output of find -print0.")
    var null = false

    @Option(
        help: ArgumentHelp(
            "Process only part I of N of the photos: those with the positions I, I + N, I + 2N, …; for job arrays.",
            valueName: "I/N"))
    var shard: ShardArgument?

    @Flag(help: "Exit with code 1 also if a photo of --files-from cannot be processed.")
    var strict = false

    func validate() throws {
        try requirePaths(photos + [filesFrom].compactMap { $0 })
        _ = try shard?.shard()
        if null && filesFrom == nil {
            throw ValidationError("--null: there is no list. Name one with --files-from FILE, or - for standard input.")
        }
    }

    /// Checks that there are photos.
    func requirePhotos() throws {
        if photos.isEmpty && filesFrom == nil {
            throw ValidationError("There are no photos. Name files or folders, or a list of them with --files-from.")
        }
    }

    /// Finds the photos in the folders, and opens the list.
    ///
    /// A sub-folder that cannot be read becomes a photo that cannot be processed, so that the others are.
    /// - Throws: `ImageError` for a folder without images or with names that are not UTF-8, `FileError` for the list.
    func open() throws -> PhotoSource {
        let shard = try shard?.shard() ?? Shard(number: 1, count: 1)
        let list = try filesFrom.map { path in
            try checkIsList(path)
            return try PhotoList(path, isNullSeparated: null)
        }
        let named = try photos.flatMap { path -> [PhotoInput] in
            guard FileStatus(URL(filePath: path))?.isFolder == true else { return [PhotoInput(path)] }
            let root = path.hasSuffix("/") ? path : path + "/"
            let (paths, unreadable) = try ImageFolder.readableImagePaths(in: URL(filePath: path))
            let failures = unreadable.map { folder in
                PhotoInput(
                    root + folder.path,
                    problem: "the folder cannot be read (\(folder.reason)). Check its permissions.")
            }
            return failures + paths.map { PhotoInput(root + $0, relativePath: $0) }
        }
        return PhotoSource(named, list: list, shard: shard, isStrict: strict)
    }

    /// Checks that a list is not an image, a model, annotations or another kind of file that has no paths.
    private func checkIsList(_ path: String) throws {
        let url = URL(filePath: path)
        // Opening a pipe a second time would disturb its writer.
        guard path != "-", FileStatus(url)?.isFile == true, let kind = FileKind(contentsOf: url) else { return }
        let expected = "expected a list of paths, one per line"
        switch kind {
        case .text(.empty), .text(.whiteSpace), .unknown: return
        case .text(let text):
            let file = try RegularFile(path)
            // Annotations in XML need not start with the declaration.
            var head = [UInt8](repeating: 0, count: min(256, file.byteCount))
            try head.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
            guard text != .plain || BoxFormat(onlyPossibleIn: head, of: url) != nil,
                let data = try file.contents(limit: 256 << 20)
            else { return }
            if let format = BoxFormat(data, of: url) {
                throw InvalidContent(
                    description:
                        "--files-from: \(path): it has bounding boxes in the \(format.rawValue) format, \(expected). "
                        + annotationsHint)
            }
            // The name of a photo can start like JSON.
            guard text == .xml || Self.isJSON(data) else { return }
        default: break
        }
        throw FileError.cannotRead(path: path, reason: "it is \(kind.name), \(expected)")
    }

    /// Whether text that starts like JSON is JSON, or JSON Lines.
    private static func isJSON(_ data: Data) -> Bool {
        let firstLine = data.prefix { $0 != UInt8(ascii: "\n") }
        return [firstLine, data].contains { (try? JSONSerialization.jsonObject(with: $0)) != nil }
    }

    /// The named folders.
    var folders: [String] { photos.filter { FileStatus(URL(filePath: $0))?.isFolder == true } }
}

/// One of several equal parts of the photos.
struct Shard: Sendable {
    /// The number of the part, 1…`count`.
    let number: Int
    /// The number of parts.
    let count: Int

    /// Returns whether the part contains the photo at an index.
    func contains(_ index: Int) -> Bool { index % count == number - 1 }
}

/// The value of --shard as it was typed.
struct ShardArgument: ExpressibleByArgument {
    private let text: String

    init?(argument: String) { text = argument }

    func shard() throws -> Shard {
        let numbers = text.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
        guard numbers.count == 2, let number = numbers[0], let count = numbers[1], (1...1_000_000).contains(count),
            (1...count).contains(number)
        else {
            throw ValidationError(
                "--shard is \(text), expected I/N with I from 1 to N, such as 1/8 for the first of eight parts.")
        }
        return Shard(number: number, count: count)
    }
}

/// A photo of the inputs.
struct PhotoInput: Sendable {
    /// The path, as results show it.
    let path: String
    /// The path in a named folder; the name of the file for other photos.
    let relativePath: String
    /// Whether a list named the photo.
    var isListed = false
    /// The reason why the path cannot be used, or nil if it can.
    var problem: String?

    init(_ path: String, relativePath: String? = nil, problem: String? = nil) {
        (self.path, self.problem) = (path, problem)
        self.relativePath = relativePath ?? URL(filePath: path).lastPathComponent
    }

    init(_ entry: PhotoList.Entry) {
        switch entry {
        case .path(let path): self.init(path)
        case .invalid(let path, let reason):
            self.init(path, relativePath: path)
            problem = reason
        }
        isListed = true
    }

    var url: URL { URL(filePath: path) }
}

/// The photos of a shard, one after the other.
final class PhotoSource {
    private let named: [PhotoInput]
    private let list: PhotoList?
    private let shard: Shard
    let isStrict: Bool
    private var index = 0
    private var isListAtEnd = false

    init(_ named: [PhotoInput], list: PhotoList?, shard: Shard, isStrict: Bool) {
        (self.named, self.list, self.shard, self.isStrict) = (named, list, shard, isStrict)
    }

    /// Whether all photos were returned.
    var isAtEnd: Bool { index >= named.count && (list == nil || isListAtEnd) }

    /// Whether photos come from a list.
    var hasList: Bool { list != nil }

    /// The number of photos, or nil if it is unknown, because there is a list.
    var count: Int? { list == nil ? named.indices.count(where: shard.contains) : nil }

    /// The number of threads for the photos: no more than there are photos.
    func workers(upTo threads: Int) -> Workers { Workers(max(min(threads, count ?? threads), 1)) }

    /// Returns the next photo; nil at the end, or if `isStopped` returns true.
    /// - Throws: `FileError` if the list cannot be read.
    func next(isStopped: () -> Bool) throws -> PhotoInput? {
        while !isStopped() {
            guard
                let photo = index < named.count
                    ? named[index] : try list?.next(isStopped: isStopped).map(PhotoInput.init)
            else {
                isListAtEnd = !isStopped()
                return nil
            }
            defer { index += 1 }
            if shard.contains(index) { return photo }
        }
        return nil
    }
}
