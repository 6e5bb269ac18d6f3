internal import Crypto
internal import Foundation
internal import ImprintCore

/// The files of a model: one file, or all files in a folder.
struct SignedFiles {
    /// The paths that programs do not sign by default: the files of a Git repository.
    static let defaultIgnoredPaths = [".git", ".gitattributes", ".github", ".gitignore"].map(ModelPath.init)

    private enum Source {
        case file(RegularFile)
        case folder(OpenFolder, Selection)
    }

    private let root: String
    private let source: Source
    private let listing: Listing

    /// Whether the model is a folder.
    var isFolder: Bool { if case .folder = source { true } else { false } }
    /// The paths of the files within the model, sorted; "." for a model of one file.
    var paths: [ModelPath] { listing.files.keys.sorted() }
    /// The paths of ignored files and folders, sorted.
    var ignored: [ModelPath] { listing.ignored.sorted() }

    /// Lists the files of a model.
    /// - Parameters:
    ///   - url: The file or folder; a symbolic link to it is followed.
    ///   - ignoredPaths: The paths of files and folders to ignore.
    ///   - required: The paths of files that are not ignored, even within an ignored folder.
    /// - Throws: `FileError`; `SignatureError.unsignable` for symbolic links, devices, pipes, names that are not UTF-8, and names that are
    ///   equivalent in Unicode, and too many nested folders; `SignatureError.changing` if another program changes the folder.
    init(_ url: URL, ignoring ignoredPaths: Set<ModelPath>, except required: Set<ModelPath> = []) throws {
        root = url.path
        let descriptor = retryingInterrupts { [root] in open(root, RegularFile.flags) }
        guard descriptor >= 0 else { throw FileError.cannotRead(root, errno: errno) }
        var status = stat()
        if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            let folder = OpenFolder(closing: descriptor, root)
            let selection = Selection(ignored: ignoredPaths, required: required)
            source = .folder(folder, selection)
            listing = try Listing(of: folder, selection)
        } else {
            let file = try RegularFile(closing: descriptor, root)
            source = .file(file)
            listing = Listing(file.stamp)
        }
    }

    /// Returns the SHA-256 digests of all files, by path, or of their shards, by `path:start:end`.
    ///
    /// The only shard of an empty file is `path:0:0`.
    /// - Parameter shardSize: The size of a shard in bytes; nil for whole files.
    /// - Throws: `FileError`; `SignatureError.changing` if a file has changed since it was listed, or if the folder has other files
    ///   afterwards.
    func digests(shardSize: Int? = nil) throws -> [ModelPath: String] {
        var digests: [ModelPath: String] = [:]
        switch source {
        case .file(let file):
            try Self.addDigests(of: file, .file, shardSize, to: &digests)
            guard try file.currentStamp() == file.stamp else { throw SignatureError.changing(path: root) }
        case .folder(let folder, let selection):
            for path in paths {
                let file = try folder.file(at: path)
                guard file.stamp == listing.files[path] else { throw changing(path) }
                try Self.addDigests(of: file, path, shardSize, to: &digests)
            }
            if let path = listing.firstDifference(from: try Listing(of: folder, selection)) { throw changing(path) }
        }
        return digests
    }

    private func changing(_ path: ModelPath) -> SignatureError { .changing(path: root + "/" + path.text) }

    private static func addDigests(
        of file: RegularFile, _ path: ModelPath, _ shardSize: Int?, to digests: inout [ModelPath: String]
    ) throws {
        guard let shardSize else {
            var hash = Crypto.SHA256()
            try file.read { hash.update(bufferPointer: $0) }
            digests[path] = hash.finalize().hexadecimal
            return
        }
        var (hash, start, end) = (Crypto.SHA256(), 0, 0)
        func finishShard() {
            digests[ModelPath("\(path.text):\(start):\(end)")] = hash.finalize().hexadecimal
            (hash, start) = (Crypto.SHA256(), end)
        }
        try file.read { chunk in
            var rest = chunk[...]
            while !rest.isEmpty {
                let part = rest.prefix(start + shardSize - end)
                hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: part))
                end += part.count
                rest = rest.dropFirst(part.count)
                if end == start + shardSize { finishShard() }
            }
        }
        if end > start || end == 0 { finishShard() }
    }

    /// Returns the path of a file within a folder; nil if it is outside of it.
    static func path(of file: URL, within folder: URL) -> ModelPath? {
        // The file may not exist yet.
        let parent = file.absoluteURL.deletingLastPathComponent().resolvingSymlinksInPath().standardizedFileURL
        let root = folder.absoluteURL.resolvingSymlinksInPath().standardizedFileURL.pathComponents.map(ModelPath.init)
        let folders = parent.pathComponents.map(ModelPath.init)
        guard folders.starts(with: root) else { return nil }
        return ModelPath(
            (folders.dropFirst(root.count).map(\.text) + [file.lastPathComponent]).joined(separator: "/"))
    }
}

/// The files in a folder that belong to the model.
private struct Selection {
    private let ignored: Set<ModelPath>
    /// The files that are never ignored, and the folders that contain them.
    private let required: Set<ModelPath>

    init(ignored: Set<ModelPath>, required: Set<ModelPath>) {
        self.ignored = ignored
        self.required = required.union(required.flatMap(\.folders))
    }

    /// Whether a file or folder, with its content, is ignored.
    func ignores(_ path: ModelPath) -> Bool {
        !required.contains(path) && (ignored.contains(path) || path.folders.contains(where: ignored.contains))
    }
}

/// The files in a folder at one time.
private struct Listing {
    /// The maximum depth of folders; each level needs an open file and some of the stack.
    private static let maximumDepth = 200

    private(set) var files: [ModelPath: FileStamp] = [:]
    private(set) var ignored: [ModelPath] = []

    /// Lists a model of one file.
    init(_ stamp: FileStamp) { files = [.file: stamp] }

    init(of folder: OpenFolder, _ selection: Selection) throws {
        try add(folder, at: nil, depth: 0, selection)
        // Results have the paths as strings, which are equal if their characters are equivalent.
        var names: Set<String> = []
        for path in files.keys.sorted() + ignored where !names.insert(path.text).inserted {
            throw SignatureError.unsignable(
                path: folder.path + "/" + path.text,
                reason: "another file has an equivalent name in Unicode; this name is \(escaped(path.text))")
        }
    }

    private mutating func add(
        _ folder: OpenFolder, at parent: ModelPath?, depth: Int, _ selection: Selection
    ) throws {
        guard depth <= Self.maximumDepth else {
            throw SignatureError.unsignable(
                path: folder.path, reason: "it is nested in more than \(Self.maximumDepth) folders")
        }
        for name in try folder.names() {
            let path = parent?.appending(name) ?? ModelPath(name)
            if selection.ignores(path) {
                ignored.append(path)
                continue
            }
            switch try folder.entry(name) {
            case .file(let stamp): files[path] = stamp
            case .folder: try add(try folder.folder(name), at: path, depth: depth + 1, selection)
            }
        }
    }

    /// Returns the first file that was added, removed or changed; ignored files do not count.
    func firstDifference(from other: Listing) -> ModelPath? {
        files.keys.filter { files[$0] != other.files[$0] }.min()
            ?? other.files.keys.filter { files[$0] == nil }.min()
    }
}

/// Returns a name with `\u{301}` for other characters than ASCII, because equivalent names look the same.
private func escaped(_ name: String) -> String {
    name.unicodeScalars.map { $0.escaped(asASCII: true) }.joined()
}
