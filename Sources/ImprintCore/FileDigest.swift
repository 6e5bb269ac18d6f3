package import Foundation

/// The SHA-256 of files.
package enum FileDigest {
    /// Reads a file in chunks of 256 KiB and returns its SHA-256 as 64 hexadecimal digits in lower case.
    /// - Throws: `FileError` if the file cannot be read.
    package static func sha256(of file: URL) throws -> String {
        // Without O_NONBLOCK, opening a pipe without a writer would block forever.
        let descriptor = retryingInterrupts { open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else { throw FileError.cannotRead(file.path, errno: errno) }
        defer { close(descriptor) }
        var hash = SHA256()
        try withUnsafeTemporaryAllocation(byteCount: 1 << 18, alignment: 64) { chunk in
            while true {
                let count = retryingInterrupts { read(descriptor, chunk.baseAddress, chunk.count) }
                if count < 0 { throw FileError.cannotRead(file.path, errno: errno) }
                if count == 0 { return }
                hash.update(UnsafeRawBufferPointer(rebasing: chunk[..<count]).bytes)
            }
        }
        return hash.hexadecimal
    }

    /// Whether a text is a digest: 64 hexadecimal digits.
    package static func isDigest(_ text: String) -> Bool { text.wholeMatch(of: /[0-9A-Fa-f]{64}/) != nil }
}
