package import Foundation

/// A lock on a file or a folder, which one process or thread at a time can have; the system releases it when the process ends.
package final class FileLock: Sendable {
    private let descriptor: Int32

    /// Locks an existing folder; nil if another owner has the lock.
    ///
    /// On a file system without locks for folders, every caller gets one.
    /// - Throws: `FileError` if the folder cannot be opened or locked.
    package convenience init?(folder: URL) throws(FileError) {
        let path = folder.path
        let descriptor = retryingInterrupts { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw .cannotRead(path, errno: errno) }
        try self.init(closing: descriptor, path, isOptional: true)
    }

    /// Locks an existing file; nil if another owner has the lock.
    /// - Throws: `FileError` if the file cannot be opened or locked, also if its file system has no locks.
    package convenience init?(file: URL) throws(FileError) {
        let path = file.path
        // NFS locks only files that are open for writing.
        var descriptor = retryingInterrupts { open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) }
        if descriptor < 0 {
            descriptor = retryingInterrupts { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        }
        guard descriptor >= 0 else { throw .cannotRead(path, errno: errno) }
        try self.init(closing: descriptor, path)
    }

    /// Locks an open file or folder; nil if another owner has the lock.
    /// - Parameters:
    ///   - descriptor: The descriptor, which this object closes, also after an error.
    ///   - path: The path in error messages.
    ///   - isOptional: Whether to continue without a lock on a file system that does not support locks.
    package init?(closing descriptor: Int32, _ path: String, isOptional: Bool = false) throws(FileError) {
        precondition(descriptor >= 0, "the file must be open")
        // `deinit` runs also if this initializer fails, because all properties are set.
        self.descriptor = descriptor
        guard retryingInterrupts({ flock(descriptor, LOCK_EX | LOCK_NB) }) != 0 else { return }
        let code = errno
        if code == EWOULDBLOCK { return nil }
        // EBADF: the file system locks only files that are open for writing.
        if isOptional, [EBADF, EINVAL, ENOLCK, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(code) { return }
        throw .cannotWrite(
            path: path, reason: "it cannot be locked: \(errorText(code))",
            remedy: "Choose a folder on a file system with locks.")
    }

    deinit {
        // Closing is not enough if another process was started in the meantime and briefly inherits the open file.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
