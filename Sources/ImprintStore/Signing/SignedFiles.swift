internal import Crypto
internal import Foundation
internal import ImprintCore

/// The files of a model: one file, or all files in a folder.
struct SignedFiles {
    /// The paths that programs do not sign by default: the files of a Git repository.
    static let defaultIgnoredPaths = [".git", ".gitattributes", ".github", ".gitignore"]

    private let root: String
    /// The paths of the files within the model, sorted; "." for a model of one file.
    let paths: [String]
    /// The paths of ignored files and folders.
    let ignored: [String]

    /// Lists the files of a model.
    /// - Parameters:
    ///   - url: The file or folder; a symbolic link to it is followed.
    ///   - ignoredPaths: The paths of files and folders to ignore.
    ///   - required: The paths of files that are not ignored, even within an ignored folder.
    /// - Throws: `FileError`; `SignatureError.unsignable` for symbolic links, devices, pipes, and names that are not UTF-8.
    init(_ url: URL, ignoring ignoredPaths: Set<String>, except required: Set<String> = []) throws {
        root = url.path
        var status = stat()
        guard stat(root, &status) == 0 else { throw FileError.cannotRead(root, errno: errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            (paths, ignored) = (["."], [])
            return
        }
        // Folders that contain required files.
        var required = required
        for path in required {
            var parts = path.split(separator: "/").dropLast()
            while !parts.isEmpty, required.insert(parts.joined(separator: "/")).inserted { parts = parts.dropLast() }
        }
        var (files, skipped, folders): ([String], [String], [String]) = ([], [], [""])
        while let folder = folders.popLast() {
            for name in try Self.names(in: root + "/" + folder) {
                let path = folder.isEmpty ? name : folder + "/" + name
                if !required.contains(path), Self.isIgnored(path, ignoredPaths) {
                    skipped.append(path)
                    continue
                }
                var status = stat()
                guard lstat(root + "/" + path, &status) == 0 else {
                    throw FileError.cannotRead(root + "/" + path, errno: errno)
                }
                switch status.st_mode & S_IFMT {
                case S_IFREG: files.append(path)
                case S_IFDIR: folders.append(path)
                case S_IFLNK:
                    throw SignatureError.unsignable(path: root + "/" + path, reason: "it is a symbolic link")
                default: throw SignatureError.unsignable(path: root + "/" + path, reason: "it is a device or pipe")
                }
            }
        }
        // Strings with equivalent Unicode characters are equal, but the names of files are bytes.
        var names: Set<String> = []
        for path in files + skipped where !names.insert(path).inserted {
            throw SignatureError.unsignable(path: root + "/" + path, reason: "another file has an equivalent name")
        }
        (paths, ignored) = (files.sorted(by: precedes), skipped.sorted(by: precedes))
    }

    /// Returns the SHA-256 digests of all files, by path, or of their shards, by `path:start:end`.
    ///
    /// An empty file has no shards.
    /// - Parameter shardSize: The size of a shard in bytes; nil for whole files.
    func digests(shardSize: Int? = nil) throws -> [String: String] {
        var digests: [String: String] = [:]
        for path in paths {
            let file = try RegularFile(path == "." ? root : root + "/" + path, followsLinks: path == ".")
            guard let shardSize else {
                var hash = Crypto.SHA256()
                try file.read { hash.update(bufferPointer: $0) }
                digests[path] = hash.finalize().hexadecimal
                continue
            }
            var (hash, start, end) = (Crypto.SHA256(), 0, 0)
            func finishShard() {
                digests["\(path):\(start):\(end)"] = hash.finalize().hexadecimal
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
            if end > start { finishShard() }
        }
        return digests
    }

    /// Returns the path of a file within a folder; nil if it is outside of it.
    static func path(of file: URL, within folder: URL) -> String? {
        // The file may not exist yet.
        let parent = file.absoluteURL.deletingLastPathComponent().resolvingSymlinksInPath().standardizedFileURL
            .pathComponents
        let root = folder.absoluteURL.resolvingSymlinksInPath().standardizedFileURL.pathComponents
        guard parent.starts(with: root) else { return nil }
        return (parent.dropFirst(root.count) + [file.lastPathComponent]).joined(separator: "/")
    }

    /// Whether a path or one of its folders is ignored.
    private static func isIgnored(_ path: String, _ ignored: Set<String>) -> Bool {
        var parts = path.split(separator: "/")
        while !parts.isEmpty {
            if ignored.contains(parts.joined(separator: "/")) { return true }
            parts.removeLast()
        }
        return false
    }

    /// Returns the names in a folder.
    ///
    /// `FileManager` omits or changes names that are not UTF-8, so it would overlook a file that is not signed.
    private static func names(in folder: String) throws -> [String] {
        guard let stream = opendir(folder) else { throw FileError.cannotRead(folder, errno: errno) }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            // Read in place, because an entry is only as long as its name.
            let start = UnsafeRawPointer(entry) + (MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
            let count = strlen(start.assumingMemoryBound(to: CChar.self))
            let bytes = UnsafeRawBufferPointer(start: start, count: count)
            guard let name = String(validating: bytes, as: UTF8.self) else {
                throw SignatureError.unsignable(
                    path: folder + "/" + String(decoding: bytes, as: UTF8.self), reason: "its name is not UTF-8")
            }
            if name != ".", name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw FileError.cannotRead(folder, errno: errno) }
        return names
    }
}
