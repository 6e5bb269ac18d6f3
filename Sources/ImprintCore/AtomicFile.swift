package import Foundation

/// Writing a file so that a crash at any point leaves either the old file or the new one, whole.
///
/// The bytes go to a temporary file `.imprint-<process>-<number>.partial` in the same folder, which is flushed to the
/// disk, renamed over the target, and the folder flushed too. A process killed half-way leaves only that temporary
/// file behind, which may be deleted.
///
/// A symbolic link is followed: the file it names is replaced and the link stays. A file that was there keeps its
/// permissions; a new one gets 0644 less the process's umask. Folders, devices and pipes are refused.
package enum AtomicFile {
    /// The temporary file while it is being filled.
    package struct Output: ~Copyable {
        let descriptor: Int32
        let path: String

        /// Appends `bytes`.
        ///
        /// Throws `FileError.cannotWrite`, for instance when the disk is full.
        public borrowing func write(_ bytes: [UInt8]) throws(FileError) {
            let code = bytes.withUnsafeBytes { failure(writing: $0) }
            if let code { throw .cannotWrite(path, errno: code) }
        }

        /// Appends bytes in memory, as `write` does with an array.
        package borrowing func write(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
            if let code = failure(writing: bytes) { throw .cannotWrite(path, errno: code) }
        }

        /// Writes; gives the system's error number, or nil if all is written.
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

    /// Replaces the file at `url`, or creates it, with what `body` writes.
    ///
    /// Throws `FileError`, or what `body` throws; in both cases the file at `url` is as it was and no temporary file
    /// is left. (The one exception is `FileError.notConfirmed`: the new file is in place, its name not yet safe.)
    package static func write(to url: URL, _ body: (borrowing Output) throws -> Void) throws {
        let path = url.path
        let target = try followingLinks(path)
        let permissions = try permissionsOfRegularFile(at: target, shownAs: path)
        let folder = URL(filePath: target).deletingLastPathComponent().path
        let (descriptor, temporary) = try createTemporaryFile(in: folder, shownAs: path)
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
        do {
            try flushNames(in: folder, shownAs: path)
        } catch .cannotWrite(_, let reason, _) {
            // The file is there, and only not sure to stay.
            throw FileError.notConfirmed(path: path, reason: reason)
        }
    }

    /// Replaces the file at `url`, or creates it, with `bytes`; throws `FileError`.
    package static func write(_ bytes: [UInt8], to url: URL) throws {
        try write(to: url) { try $0.write(bytes) }
    }

    /// Checks that `write` can put a file at `url`: for use before work whose result must not be lost for want of a place.
    ///
    /// Throws `FileError.cannotWrite`. Nothing is left behind.
    package static func checkWritable(_ url: URL) throws(FileError) {
        let target = try followingLinks(url.path)
        _ = try permissionsOfRegularFile(at: target, shownAs: url.path)
        let folder = URL(filePath: target).deletingLastPathComponent().path
        let (descriptor, temporary) = try createTemporaryFile(in: folder, shownAs: url.path)
        close(descriptor)
        unlink(temporary)
    }

    /// Makes a folder, and those above it, if they are not there.
    package static func makeFolder(_ url: URL) throws(FileError) {
        do {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        } catch {
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError
            guard cause.domain == NSPOSIXErrorDomain else {
                throw .cannotWrite(
                    path: url.path, reason: error.localizedDescription, remedy: "choose a folder that you may write to")
            }
            throw .cannotWrite(url.path, errno: Int32(cause.code))
        }
    }

    /// Removes the temporary files that processes which have ended left behind in a folder.
    package static func removeUnfinished(in folder: URL) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names where name.hasPrefix(".imprint-") && name.hasSuffix(".partial") {
            let process = name.split(separator: "-").dropFirst().first.flatMap { pid_t($0) }
            if let process, process != getpid(), kill(process, 0) == 0 || errno == EPERM { continue }
            unlink(folder.appending(path: name).path)
        }
    }

    private static func followingLinks(_ path: String) throws(FileError) -> String {
        var path = path
        for _ in 0..<40 {  // as many as Linux follows
            guard let destination = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else {
                return path
            }
            path = URL(filePath: destination, relativeTo: URL(filePath: path).deletingLastPathComponent()).path
        }
        throw .cannotWrite(path, errno: ELOOP)
    }

    /// The permission bits of the file at `target`, or nil if there is none.
    private static func permissionsOfRegularFile(at target: String, shownAs path: String) throws(FileError) -> mode_t? {
        var status = stat()
        guard lstat(target, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw .cannotWrite(path, errno: errno)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let kind = status.st_mode & S_IFMT == S_IFDIR ? "it is a folder" : "it is a device or pipe, not a file"
            throw .cannotWrite(path: path, reason: kind, remedy: "choose the name of a file")
        }
        return status.st_mode & 0o777
    }

    private static func createTemporaryFile(
        in folder: String, shownAs path: String
    ) throws(FileError) -> (Int32, String) {
        // The name says nothing of the target's, which may already be as long as the file system allows.
        var number = 0
        while true {
            let temporary = "\(folder)/.imprint-\(getpid())-\(number).partial"
            let descriptor = retryingInterrupts { open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644) }
            if descriptor >= 0 { return (descriptor, temporary) }
            if errno != EEXIST { throw .cannotWrite(path, errno: errno) }
            number += 1
        }
    }

    private static func check(_ result: Int32, _ path: String) throws(FileError) {
        if result != 0 { throw .cannotWrite(path, errno: errno) }
    }

    /// Flushes to the disk which names a folder has.
    package static func flushNames(in folder: String, shownAs path: String) throws(FileError) {
        let descriptor = retryingInterrupts { open(folder, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw .cannotWrite(path, errno: errno) }
        defer { close(descriptor) }
        // Some file systems cannot flush a folder and say so with EINVAL; they keep names in order themselves.
        if retryingInterrupts({ fsync(descriptor) }) != 0 && errno != EINVAL {
            throw .cannotWrite(path, errno: errno)
        }
    }
}
