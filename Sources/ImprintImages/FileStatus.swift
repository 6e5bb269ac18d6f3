package import Foundation

/// The kind and size of the file or folder at a path; follows symbolic links.
package struct FileStatus {
    package let isFile: Bool
    package let isFolder: Bool
    /// The length of the file, in bytes.
    package let size: Int

    /// Creates the status of `url`; nil if nothing is there, or if permissions do not allow reading it.
    package init?(_ url: URL) {
        var status = stat()
        guard stat(url.displayPath, &status) == 0 else { return nil }
        isFile = status.st_mode & S_IFMT == S_IFREG
        isFolder = status.st_mode & S_IFMT == S_IFDIR
        size = Int(status.st_size)
    }
}
