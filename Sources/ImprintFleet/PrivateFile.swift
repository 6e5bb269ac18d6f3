internal import Foundation
internal import ImprintCore

/// A file that only the user can read, and that is replaced atomically.
///
/// `AtomicFile` keeps the permissions of an existing file, but other users can read its temporary file for a moment.
enum PrivateFile {
    /// Creates the file, unless it exists.
    ///
    /// If several processes or tasks create it at the same time, one of them does, and the others wait until it has finished.
    /// - Parameter content: Returns the content; called only by the one that creates the file.
    static func create(at url: URL, _ content: () throws -> [UInt8]) throws {
        let lock = url.path + ".lock"
        while true {
            let descriptor = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw FileError.cannotWrite(url.path, errno: errno) }
            // Closing the lock file also unlocks it, and so does the end of a process.
            defer { close(descriptor) }
            while flock(descriptor, LOCK_EX) != 0 {
                guard errno == EINTR else { throw FileError.cannotWrite(url.path, errno: errno) }
            }
            // Another process may have removed the lock file since it was opened; others then lock a new one.
            guard isSame(lock, descriptor) else { continue }
            defer { unlink(lock) }
            if access(url.path, F_OK) != 0 { try write(content(), to: url) }
            return
        }
    }

    /// Whether a path names an open file.
    private static func isSame(_ path: String, _ descriptor: Int32) -> Bool {
        var (named, opened) = (stat(), stat())
        return lstat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino
            && named.st_dev == opened.st_dev
    }

    /// Replaces the file.
    static func write(_ bytes: [UInt8], to url: URL) throws(FileError) {
        let path = url.path
        let temporary = path + ".partial"
        // A file of a process that was killed.
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .cannotWrite(path, errno: errno) }
        var code: Int32 = 0
        var rest = bytes[...]
        while code == 0, !rest.isEmpty {
            let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if written >= 0 { rest = rest.dropFirst(written) } else if errno != EINTR { code = errno }
        }
        if code == 0, fsync(descriptor) != 0 { code = errno }
        close(descriptor)
        if code == 0, rename(temporary, path) != 0 { code = errno }
        guard code == 0 else {
            unlink(temporary)
            throw .cannotWrite(path, errno: code)
        }
        try AtomicFile.flushNames(in: url.deletingLastPathComponent().path, shownAs: path)
    }
}
