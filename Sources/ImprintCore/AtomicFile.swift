package import Foundation
internal import Synchronization

/// Writes files so that a crash at any time leaves either the complete old file or the complete new file.
///
/// The bytes are written to a temporary file `.imprint-<process>-<number>.partial` in the same folder. This file is flushed to the disk and
/// renamed to the target, and then the folder is flushed. A process that is killed leaves only the temporary file, which may be deleted.
///
/// Symbolic links are followed: the target is replaced, and the link stays. Folders, devices and pipes are rejected. Unless the caller sets the
/// permissions, an existing file keeps its own, and a new file gets 0644 minus the umask of the process.
package enum AtomicFile {
    /// The temporary file during writing.
    package struct Output: ~Copyable {
        let descriptor: Int32
        let path: String

        /// Appends an array of bytes.
        /// - Throws: `FileError.cannotWrite`, for example if the disk is full.
        package borrowing func write(_ bytes: [UInt8]) throws(FileError) {
            let code = bytes.withUnsafeBytes { failure(writing: $0) }
            if let code { throw .cannotWrite(path, errno: code) }
        }

        /// Appends bytes in memory.
        /// - Throws: `FileError.cannotWrite`, for example if the disk is full.
        package borrowing func write(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
            if let code = failure(writing: bytes) { throw .cannotWrite(path, errno: code) }
        }

        /// Sets the modification time of the file; later writes change it again.
        /// - Throws: `FileError.cannotWrite`.
        package borrowing func setModificationTime(_ time: timespec) throws(FileError) {
            // The access time does not matter, so it is the same.
            let times = [time, time]
            if futimens(descriptor, times) != 0 { throw .cannotWrite(path, errno: errno) }
        }

        /// Writes all bytes and returns nil, or the system's error number.
        private borrowing func failure(writing bytes: UnsafeRawBufferPointer) -> Int32? {
            var rest = bytes[...]
            while !rest.isEmpty {
                let chunk = UnsafeRawBufferPointer(rebasing: rest)
                let written = retryingInterrupts { Foundation.write(descriptor, chunk.baseAddress, chunk.count) }
                if written < 0 { return errno }
                rest = rest.dropFirst(written)
            }
            return nil
        }
    }

    /// Creates or replaces the file at `url` with the bytes that `body` writes.
    /// - Parameters:
    ///   - url: The file, or a symbolic link to it.
    ///   - permissions: The permission bits of the file, also while it is written, such as 0600 for a file that only its user can read; nil
    ///     keeps those of an existing file.
    ///   - isLocked: Whether the caller holds a lock, so that no other process or thread writes this file. The temporary file is then the path
    ///     of the file with `.partial` at its end, and replaces one that a killed process left.
    ///   - body: Writes the content.
    /// - Throws: `FileError`, and the errors of `body`. In both cases, the file at `url` is unchanged and there is no temporary file. The only
    ///   exception is `FileError.notConfirmed`: the new file is in place, but a power cut may undo the change.
    package static func write(
        to url: URL, permissions: mode_t? = nil, isLocked: Bool = false, _ body: (borrowing Output) throws -> Void
    ) throws {
        let path = url.path
        let target = try followingLinks(path)
        let existing = try permissionsOfRegularFile(at: target, shownAs: path)
        let permissions = permissions ?? existing
        let folder = parentFolder(of: target)
        let (descriptor, temporary) = try createTemporaryFile(
            in: folder, shownAs: path, permissions: permissions, replacing: isLocked ? target + ".partial" : nil)
        do {
            defer { close(descriptor) }
            try body(Output(descriptor: descriptor, path: path))
            if let permissions { try check(fchmod(descriptor, permissions), path) }
            try check(retryingInterrupts { fsync(descriptor) }, path)
            try check(rename(temporary, target), path)
        } catch {
            unlink(temporary)
            throw error
        }
        try confirmNames(in: folder, shownAs: path)
    }

    /// Creates the file at `url` with the bytes that `body` writes, unless a file, folder or link of that name exists.
    ///
    /// If several processes create the same file at the same time, exactly one succeeds. A file system without hard links cannot
    /// guarantee this.
    /// - Returns: Whether the file was created; `false` if the name exists.
    /// - Throws: The errors of `write(to:permissions:isLocked:_:)`.
    package static func create(_ url: URL, _ body: (borrowing Output) throws -> Void) throws -> Bool {
        let path = url.path
        let folder = url.deletingLastPathComponent().path
        return try Draft(in: folder, shownAs: path, body).create(at: path)
    }

    /// A file whose content is written before its name is known.
    ///
    /// The content is in a temporary file in the same folder, which is removed with this object.
    package final class Draft: Sendable {
        private let folder: String
        private let temporary: String

        /// Writes the content.
        /// - Parameters:
        ///   - folder: The folder of the file.
        ///   - body: Writes the content.
        /// - Throws: `FileError`, which names the folder, and the errors of `body`.
        package convenience init(in folder: URL, _ body: (borrowing Output) throws -> Void) throws {
            try self.init(in: folder.path, shownAs: folder.path, body)
        }

        fileprivate init(in folder: String, shownAs path: String, _ body: (borrowing Output) throws -> Void) throws {
            self.folder = folder
            let (descriptor, temporary) = try AtomicFile.createTemporaryFile(in: folder, shownAs: path)
            self.temporary = temporary
            defer { close(descriptor) }
            try body(Output(descriptor: descriptor, path: path))
        }

        deinit { unlink(temporary) }

        /// Creates the file in the folder, unless a file, folder or link of that name exists.
        /// - Returns: Whether the file was created; `false` if the name exists.
        /// - Throws: `FileError`.
        package func create(_ name: String) throws(FileError) -> Bool { try create(at: "\(folder)/\(name)") }

        fileprivate func create(at path: String) throws(FileError) -> Bool {
            try flush(shownAs: path)
            // Unlike a rename, a link never replaces a file.
            if link(temporary, path) != 0 {
                let code = errno
                if code == EEXIST { return false }
                // Some file systems, such as FAT, have no hard links.
                guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(code) else {
                    throw .cannotWrite(path, errno: code)
                }
                if exists(URL(filePath: path)) { return false }
                try AtomicFile.check(rename(temporary, path), path)
            }
            try AtomicFile.confirmNames(in: folder, shownAs: path)
            return true
        }

        /// Flushes the content to the disk.
        private func flush(shownAs path: String) throws(FileError) {
            let descriptor = retryingInterrupts { open(temporary, O_RDONLY | O_CLOEXEC) }
            guard descriptor >= 0 else { throw .cannotWrite(path, errno: errno) }
            defer { close(descriptor) }
            try AtomicFile.check(retryingInterrupts { fsync(descriptor) }, path)
        }
    }

    /// Creates or replaces the file at `url` with `bytes`, as `write(to:permissions:isLocked:_:)` does.
    /// - Throws: `FileError`.
    package static func write(
        _ bytes: [UInt8], to url: URL, permissions: mode_t? = nil, isLocked: Bool = false
    ) throws {
        try write(to: url, permissions: permissions, isLocked: isLocked) { try $0.write(bytes) }
    }

    /// Checks that a file can be written to `url`, without leaving a file behind.
    ///
    /// Call it before long work whose result is written to `url`.
    /// - Throws: `FileError.cannotWrite` if it cannot.
    package static func checkWritable(_ url: URL) throws(FileError) {
        let target = try followingLinks(url.path)
        _ = try permissionsOfRegularFile(at: target, shownAs: url.path)
        let (descriptor, temporary) = try createTemporaryFile(in: parentFolder(of: target), shownAs: url.path)
        close(descriptor)
        unlink(temporary)
    }

    /// Creates a folder and its parent folders if they do not exist.
    /// - Throws: `FileError.cannotWrite`, also if the path names a file, or a symbolic link to a folder that does not exist.
    package static func makeFolder(_ url: URL) throws(FileError) { try makeFolder(at: url.path) }

    private static func makeFolder(at path: String) throws(FileError) {
        if mkdir(path, 0o777) == 0 { return }
        var code = errno
        let parent = URL(filePath: path).deletingLastPathComponent().path
        if code == ENOENT, parent != path {
            try makeFolder(at: parent)
            if mkdir(path, 0o777) == 0 { return }
            code = errno
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            // The name exists, but its link is broken or part of a loop.
            if code == EEXIST { code = errno }
            let target = try code == ENOENT ? followingLinks(path) : path
            guard target == path else { throw .brokenLink(path, to: target) }
            throw .cannotWrite(path, errno: code)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw .cannotWrite(path: path, reason: "it is a file, not a folder", remedy: "Choose the name of a folder.")
        }
    }

    /// Removes the temporary files of processes that ended while they wrote to a folder.
    ///
    /// The name of a temporary file has the identifier of its process, which this method looks up on this machine. A process on another machine
    /// or in another container that writes to the same folder therefore seems to have ended, and its write fails. Call this method only while the
    /// folder is locked.
    package static func removeUnfinished(in folder: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names where isTemporary(name) {
            let process = name.split(separator: "-").dropFirst().first.flatMap { pid_t($0) }
            if let process, process != getpid(), kill(process, 0) == 0 || errno == EPERM { continue }
            unlink(folder.appending(path: name).path)
        }
    }

    /// Whether a name is that of a temporary file.
    static func isTemporary(_ name: String) -> Bool { name.hasPrefix(".imprint-") && name.hasSuffix(".partial") }

    /// Returns the path of the folder that contains a file, without resolving "..".
    static func parentFolder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns the target of a symbolic link, which need not exist, or the path itself if it is no link.
    static func followingLinks(_ path: String) throws(FileError) -> String {
        var path = path
        for _ in 0..<40 {  // the limit of Linux
            guard let destination = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else {
                return path
            }
            // The path keeps "..": if the folder before it is a link, its parent is that of the target, which only the kernel knows.
            path = destination.hasPrefix("/") ? destination : "\(parentFolder(of: path))/\(destination)"
        }
        throw .cannotWrite(path, errno: ELOOP)
    }

    /// The permission bits of the file at `target`, or nil if the file does not exist.
    private static func permissionsOfRegularFile(at target: String, shownAs path: String) throws(FileError) -> mode_t? {
        var status = stat()
        guard lstat(target, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw .cannotWrite(path, errno: errno)
        }
        if let kind = specialFileKind(status.st_mode) {
            throw .cannotWrite(path: path, reason: "it is \(kind)", remedy: "Choose the name of a file.")
        }
        return status.st_mode & 0o777
    }

    /// The number in the name of the next temporary file.
    ///
    /// The names are unique in this process: with thousands of drafts, trying names would take long.
    private static let nextNumber = Atomic(0)

    /// Creates a temporary file, whose permissions are the given ones or 0644, both minus the umask.
    /// - Parameter leftover: The path of the temporary file, which is replaced if it exists; nil for a new name in the folder.
    private static func createTemporaryFile(
        in folder: String, shownAs path: String, permissions: mode_t? = nil, replacing leftover: String? = nil
    ) throws(FileError) -> (Int32, String) {
        while true {
            // The name does not contain the target's name, which may already have the maximum length.
            let number = nextNumber.add(1, ordering: .relaxed).oldValue
            let temporary = leftover ?? "\(folder)/.imprint-\(getpid())-\(number).partial"
            if leftover != nil { unlink(temporary) }
            let descriptor = retryingInterrupts {
                open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions ?? 0o644)
            }
            if descriptor >= 0 { return (descriptor, temporary) }
            if errno != EEXIST || leftover != nil { throw .cannotWrite(path, errno: errno) }
        }
    }

    private static func check(_ result: Int32, _ path: String) throws(FileError) {
        if result != 0 { throw .cannotWrite(path, errno: errno) }
    }

    /// Flushes the names in a folder, which has the new file, to the disk.
    /// - Throws: `FileError.notConfirmed`: the file is in place, but a power cut may undo the change.
    private static func confirmNames(in folder: String, shownAs path: String) throws(FileError) {
        do {
            try flushNames(in: folder, shownAs: path)
        } catch {
            guard case .cannotWrite(_, let reason, _) = error else { throw error }
            throw .notConfirmed(path: path, reason: reason)
        }
    }

    /// Flushes the names in a folder to the disk.
    package static func flushNames(in folder: String, shownAs path: String) throws(FileError) {
        let descriptor = retryingInterrupts { open(folder, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw .cannotWrite(path, errno: errno) }
        defer { close(descriptor) }
        // Some file systems cannot flush a folder and return EINVAL; they keep names consistent without it.
        if retryingInterrupts({ fsync(descriptor) }) != 0 && errno != EINVAL {
            throw .cannotWrite(path, errno: errno)
        }
    }
}
