package import Foundation

/// A regular file opened for reading; folders, devices and pipes are rejected.
///
/// All reads name their offset, so several threads can read at the same time.
package final class RegularFile: Sendable {
    /// The flags to open a file: without O_NONBLOCK, opening a pipe without a writer would block forever.
    package static let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK

    /// The open file, which `deinit` closes.
    package let descriptor: Int32
    /// The path in error messages.
    package let path: String
    /// The state of the file when it was opened.
    package let stamp: FileStamp
    /// The size in bytes when the file was opened.
    package var byteCount: Int { stamp.byteCount }

    /// Opens a file; symbolic links are followed.
    package convenience init(_ path: String) throws(FileError) {
        let descriptor = retryingInterrupts { open(path, Self.flags) }
        guard descriptor >= 0 else { throw .cannotRead(path, errno: errno) }
        try self.init(closing: descriptor, path)
    }

    /// Reads an open file.
    /// - Parameters:
    ///   - descriptor: The descriptor of the file, which this object closes, also after an error.
    ///   - path: The path in error messages.
    package init(closing descriptor: Int32, _ path: String) throws(FileError) {
        (self.descriptor, self.path) = (descriptor, path)
        // An initializer that throws runs `deinit` only after all properties are set.
        var status = stat()
        let code = fstat(descriptor, &status) == 0 ? nil : errno
        stamp = FileStamp(status)
        if let code { throw .cannotRead(path, errno: code) }
        if let kind = specialFileKind(status.st_mode) {
            throw .cannotRead(path: path, reason: "it is \(kind), expected a regular file")
        }
    }

    deinit { close(descriptor) }

    /// Returns the state of the file now.
    package func currentStamp() throws(FileError) -> FileStamp {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .cannotRead(path, errno: errno) }
        return FileStamp(status)
    }

    /// Returns the content of a small file; nil if it has more than `limit` bytes.
    package func contents(limit: Int) throws(FileError) -> Data? {
        guard byteCount <= limit else { return nil }
        struct TooLarge: Error {}
        var bytes = Data()
        do {
            try read { chunk in
                guard bytes.count + chunk.count <= limit else { throw TooLarge() }
                bytes.append(contentsOf: chunk)
            }
        } catch let error as FileError {
            throw error
        } catch {
            // Only the closure throws other errors.
            return nil
        }
        return bytes
    }

    /// Returns the text of a small file; nil if it has more than `limit` bytes or is not UTF-8.
    package func text(limit: Int) throws(FileError) -> String? {
        guard let bytes = try contents(limit: limit) else { return nil }
        return String(data: bytes, encoding: .utf8)
    }

    /// Reads the file from start to end and passes each chunk to `body`.
    package func read(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try withUnsafeTemporaryAllocation(byteCount: 1 << 18, alignment: 64) { chunk in
            var offset = 0
            while true {
                let count = try readPart(into: chunk, at: offset)
                if count == 0 { return }
                try body(UnsafeRawBufferPointer(rebasing: chunk[..<count]))
                offset += count
            }
        }
    }

    /// Fills `bytes` with the content at `offset`, in bytes.
    /// - Throws: `FileError.cannotRead`, also if the file ends before that.
    package func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileError) {
        var done = 0
        while done < bytes.count {
            let count = try readPart(into: UnsafeMutableRawBufferPointer(rebasing: bytes[done...]), at: offset + done)
            if count == 0 { throw .cannotRead(path: path, reason: "it shrank while it was being read") }
            done += count
        }
    }

    /// Reads as many bytes as the system returns at once, and returns their number; 0 at the end of the file.
    private func readPart(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileError) -> Int {
        let count = retryingInterrupts { pread(descriptor, bytes.baseAddress, bytes.count, off_t(offset)) }
        if count < 0 { throw .cannotRead(path, errno: errno) }
        return count
    }
}

/// Returns the kind of a file that is not a regular file, such as "a folder"; nil for a regular file.
/// - Parameter mode: The mode of the file, from `stat`.
package func specialFileKind(_ mode: mode_t) -> String? {
    switch mode & S_IFMT {
    case S_IFREG: nil
    case S_IFDIR: "a folder"
    case S_IFIFO: "a pipe"
    case S_IFSOCK: "a socket"
    default: "a device"
    }
}

/// Returns the content of a small file, or of an input that the shell has opened: `/dev/stdin` or `<(command)`; nil if it has more than
/// `limit` bytes.
///
/// Other pipes are rejected like devices, because opening a named pipe without a writer would block forever.
package func contents(ofFileOrPipe path: String, limit: Int) throws(FileError) -> Data? {
    guard path == "/dev/stdin" || path.hasPrefix("/dev/fd/") || path.hasPrefix("/proc/self/fd/") else {
        return try RegularFile(path).contents(limit: limit)
    }
    let descriptor = retryingInterrupts { open(path, O_RDONLY | O_CLOEXEC) }
    guard descriptor >= 0 else { throw .cannotRead(path, errno: errno) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = retryingInterrupts { read(descriptor, &chunk, chunk.count) }
        if count < 0 { throw .cannotRead(path, errno: errno) }
        if count == 0 { return Data(bytes) }
        guard bytes.count + count <= limit else { return nil }
        bytes += chunk[..<count]
    }
}

/// The identity, the size and the times of a file.
///
/// A change of a file also changes its stamp, unless the clock of the computer is set back, the file system records times so coarsely that
/// two changes have the same time, or a program changes the file through memory that it has already mapped and written.
package struct FileStamp: Equatable, Sendable {
    private let device: Int
    private let index: UInt64
    package let byteCount: Int
    /// The times of the last change of the content, and of the content, name or permissions.
    private let times: [Int]

    /// Creates the stamp of the file at `url`, and follows symbolic links; nil if nothing is there, or if permissions do not allow reading it.
    package init?(_ url: URL) {
        var status = stat()
        guard stat(url.path, &status) == 0 else { return nil }
        self.init(status)
    }

    package init(_ status: stat) {
        device = Int(truncatingIfNeeded: status.st_dev)
        index = UInt64(status.st_ino)
        byteCount = Int(status.st_size)
        #if canImport(Darwin)
            let (modified, changed) = (status.st_mtimespec, status.st_ctimespec)
        #else
            let (modified, changed) = (status.st_mtim, status.st_ctim)
        #endif
        times = [Int(modified.tv_sec), Int(modified.tv_nsec), Int(changed.tv_sec), Int(changed.tv_nsec)]
    }
}
