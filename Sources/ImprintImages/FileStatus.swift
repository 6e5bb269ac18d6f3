package import Foundation

/// What a path leads to, symbolic links followed.
package struct FileStatus {
    package let isFile: Bool
    package let isFolder: Bool
    /// The length of the file, in bytes.
    package let size: Int

    /// The status of what is at `url`; nil if there is nothing, or no permission to look.
    package init?(_ url: URL) {
        var status = stat()
        guard stat(url.displayPath, &status) == 0 else { return nil }
        isFile = status.st_mode & S_IFMT == S_IFREG
        isFolder = status.st_mode & S_IFMT == S_IFDIR
        size = Int(status.st_size)
    }
}

/// What the system says of a failure, without the full stop: it becomes a part of a sentence.
package func reason(of error: any Error) -> String {
    // Foundation's own words leave out what the system said.
    if let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError, cause.domain == NSPOSIXErrorDomain {
        return String(cString: strerror(Int32(cause.code)))
    }
    let text = error.localizedDescription
    return text.hasSuffix(".") ? String(text.dropLast()) : text
}
