internal import Foundation
internal import ImprintCore

/// An open folder of a model.
///
/// Its entries are opened relative to it and without following symbolic links. So a folder that another program replaces with a link
/// during a verification cannot lead out of the model.
final class OpenFolder {
    /// The kinds of entries.
    enum Entry {
        case file(FileStamp)
        case folder
    }

    private let descriptor: Int32
    /// The path in error messages.
    let path: String

    /// Creates an object that closes the descriptor of a folder.
    init(closing descriptor: Int32, _ path: String) { (self.descriptor, self.path) = (descriptor, path) }

    deinit { close(descriptor) }

    /// Returns the names of all entries, in order.
    /// - Throws: `FileError`; `SignatureError.unsignable` for a name that is not UTF-8.
    func names() throws -> [String] {
        // Another descriptor, because reading the names moves its position.
        let descriptor = try opened(".", O_RDONLY | O_DIRECTORY)
        let names: [[UInt8]]
        do {
            names = try entryNames(closing: descriptor)
        } catch {
            throw FileError.cannotRead(path, errno: error.code)
        }
        return try names.map { bytes in
            guard let name = String(validating: bytes, as: UTF8.self) else {
                throw SignatureError.unsignable(
                    path: path(of: escapedName(bytes)), reason: "its name is not UTF-8")
            }
            return name
        }.sorted(by: precedes)
    }

    /// Returns the kind of an entry.
    /// - Throws: `FileError`; `SignatureError.unsignable` if it is neither a file nor a folder.
    func entry(_ name: String) throws -> Entry {
        var status = stat()
        guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { throw error(name, errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return .file(FileStamp(status))
        case S_IFDIR: return .folder
        case S_IFLNK: throw SignatureError.unsignable(path: path(of: name), reason: "it is a symbolic link")
        default: throw SignatureError.unsignable(path: path(of: name), reason: "it is a device or pipe")
        }
    }

    /// Opens a folder in this folder.
    func folder(_ name: String) throws -> OpenFolder {
        OpenFolder(closing: try opened(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), path(of: name))
    }

    /// Opens a file at a path in this folder.
    func file(at path: ModelPath) throws -> RegularFile {
        var folder = self
        for name in path.components.dropLast() { folder = try folder.folder(name.text) }
        let name = path.components.last?.text ?? ""
        return try RegularFile(
            closing: try folder.opened(name, RegularFile.flags | O_NOFOLLOW), folder.path(of: name))
    }

    private func path(of name: String) -> String { name == "." ? path : path + "/" + name }

    private func opened(_ name: String, _ flags: Int32) throws -> Int32 {
        let found = retryingInterrupts { openat(descriptor, name, flags | O_CLOEXEC) }
        guard found >= 0 else { throw error(name, errno) }
        return found
    }

    /// Returns the error of a failed access to an entry that was in the list of names.
    private func error(_ name: String, _ code: Int32) -> any Error {
        switch code {
        // It was removed, or replaced with a link or another kind of entry.
        case ENOENT, ELOOP, ENOTDIR: SignatureError.changing(path: path(of: name))
        default: FileError.cannotRead(path(of: name), errno: code)
        }
    }
}
