package import Foundation
internal import ImprintCore

/// The kind and size of the file or folder at a path; follows symbolic links.
package struct FileStatus {
    /// The kind of a file that is not a regular file, such as "a folder"; nil for a regular file.
    package let specialKind: String?
    package let isFolder: Bool
    /// The length of the file, in bytes.
    package let size: Int

    /// Whether it is a regular file.
    package var isFile: Bool { specialKind == nil }

    /// Creates the status of `url`; nil if nothing is there, or if permissions do not allow reading it.
    package init?(_ url: URL) {
        var status = stat()
        guard stat(url.displayPath, &status) == 0 else { return nil }
        specialKind = specialFileKind(status.st_mode)
        isFolder = status.st_mode & S_IFMT == S_IFDIR
        size = Int(status.st_size)
    }
}

/// Returns the first bytes of a regular file, at most `count`; nil for other kinds of files, or if it cannot be read.
///
/// Unlike `FileHandle`, it does not wait for a writer if `url` is a pipe.
func firstBytes(_ count: Int, of url: URL) -> [UInt8]? {
    guard let file = try? RegularFile(url.displayPath) else { return nil }
    var bytes = [UInt8](repeating: 0, count: min(count, file.byteCount))
    guard (try? bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }) != nil else { return nil }
    return bytes
}
