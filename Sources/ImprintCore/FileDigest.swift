package import Foundation

/// The SHA-256 of files.
package enum FileDigest {
    /// Reads a regular file in chunks and returns its SHA-256 as 64 hexadecimal digits in lower case.
    /// - Throws: `FileError` if the file cannot be read.
    package static func sha256(of file: URL) throws -> String {
        var hash = SHA256()
        try RegularFile(file.path).read { hash.update($0.bytes) }
        return hash.hexadecimal
    }

    /// Whether a text is a digest: 64 hexadecimal digits in lower case, as `sha256sum` prints them.
    package static func isDigest(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}
