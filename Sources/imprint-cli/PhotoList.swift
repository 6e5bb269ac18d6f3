internal import Foundation
internal import ImprintCore

/// A list of paths that is read as it arrives, such as standard input; at most one path is held in memory.
final class PhotoList {
    /// One line of a list.
    enum Entry: Equatable {
        case path(String)
        /// A line that cannot be a path, as text for display, and the reason.
        case invalid(String, reason: String)
    }

    /// The maximum length of a path, in bytes; no supported system has longer ones.
    static let pathLimit = 1 << 15

    /// The maximum number of bytes without a path, of a long line or of empty ones; devices such as `/dev/zero` never end.
    static let gapLimit = 1 << 20

    private let name: String
    private let descriptor: Int32
    private let isNullSeparated: Bool
    private var bytes: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private var isAtStart = true
    /// The number of bytes since the last line that is not empty.
    private var gap = 0

    /// Opens a list.
    /// - Parameters:
    ///   - path: The file with one path per line, or "-" for standard input.
    ///   - isNullSeparated: Whether NUL characters instead of newlines separate the paths, as in the output of `find -print0`.
    /// - Throws: `FileError.cannotRead`.
    init(_ path: String, isNullSeparated: Bool) throws(FileError) {
        self.isNullSeparated = isNullSeparated
        guard path != "-" else {
            (name, descriptor) = ("standard input", STDIN_FILENO)
            return
        }
        name = path
        descriptor = retryingInterrupts { open(path, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw .cannotRead(path, errno: errno) }
    }

    deinit { if descriptor != STDIN_FILENO && descriptor >= 0 { close(descriptor) } }

    /// Returns the next line that is not empty; nil at the end, or if `isStopped` returns true while the list waits for more input.
    /// - Throws: `FileError.cannotRead`, also if more than `gapLimit` bytes have no path.
    func next(isStopped: () -> Bool) throws(FileError) -> Entry? {
        while true {
            guard let line = try nextLine(isStopped) else { return nil }
            if let entry = entry(line) {
                gap = 0
                return entry
            }
            try addToGap(line.count + 1)
        }
    }

    /// Returns the entry of a line, or nil if the line is empty.
    private func entry(_ line: ArraySlice<UInt8>) -> Entry? {
        var line = line
        if !isNullSeparated {
            // Lists from Windows start with a byte-order mark, and their lines end in CRLF.
            if isAtStart { line = line.withoutByteOrderMark }
            if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
        }
        isAtStart = false
        guard !line.isEmpty else { return nil }
        guard line.count <= Self.pathLimit else {
            return .invalid(
                String(decoding: line.prefix(80), as: UTF8.self) + "…",
                reason: "the line has more than \(Self.pathLimit) bytes, which no path has; \(separatorAdvice)."
            )
        }
        guard let path = String(validating: line, as: UTF8.self) else {
            return .invalid(escapedName(line), reason: "the path is not UTF-8. Rename the file, or its folder.")
        }
        if let problem = urlProblem(path) { return .invalid(path, reason: "it \(problem)") }
        guard !line.contains(0) else {
            return .invalid(path, reason: "the path contains a NUL. Add --null if NUL separates the paths.")
        }
        return .path(path)
    }

    /// Counts bytes that are not part of a path.
    private func addToGap(_ count: Int) throws(FileError) {
        gap += count
        guard gap > Self.gapLimit else { return }
        throw .cannotRead(
            path: name,
            reason: "it has no path in more than \(Self.gapLimit) bytes, expected a list of paths; \(separatorAdvice)")
    }

    private var separatorAdvice: String {
        isNullSeparated ? "leave out --null if newlines separate the paths" : "add --null if NUL separates the paths"
    }

    /// Returns the bytes up to the next separator; only the start of a line that is much longer than a path.
    private func nextLine(_ isStopped: () -> Bool) throws(FileError) -> ArraySlice<UInt8>? {
        let separator = isNullSeparated ? 0 : UInt8(ascii: "\n")
        var tooLong: ArraySlice<UInt8>?
        // The bytes of a path that have been searched for a separator.
        var searched = 0
        while true {
            if let end = bytes[(start + searched)...].firstIndex(of: separator) {
                defer { start = end + 1 }
                return tooLong ?? bytes[start..<end]
            }
            if isAtEnd {
                defer { start = bytes.count }
                return tooLong ?? (start < bytes.count ? bytes[start...] : nil)
            }
            if bytes.count - start > 2 * Self.pathLimit {
                try addToGap(bytes.count - start)
                tooLong = tooLong ?? bytes[start...]
                start = bytes.count
            }
            bytes.removeFirst(start)
            start = 0
            searched = bytes.count
            guard try read(isStopped) else { return nil }
        }
    }

    /// Waits for input, then reads the available bytes.
    /// - Returns: `false` if `isStopped` returned true.
    private func read(_ isStopped: () -> Bool) throws(FileError) -> Bool {
        // A signal interrupts only one of the threads, so the wait for input has a timeout of 0.1 seconds.
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        repeat {
            if isStopped() { return false }
        } while poll(&request, 1, 100) <= 0
        let chunk = 1 << 16
        let before = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: chunk))
        let count = bytes.withUnsafeMutableBytes { bytes in
            retryingInterrupts { Foundation.read(descriptor, bytes.baseAddress.map { $0 + before }, chunk) }
        }
        let code = errno
        bytes.removeLast(chunk - max(count, 0))
        guard count >= 0 else { throw .cannotRead(name, errno: code) }
        isAtEnd = count == 0
        return true
    }
}
