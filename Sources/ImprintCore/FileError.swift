import Foundation

/// An error of the file system.
public enum FileError: DescribedError, Equatable {
    /// A file could not be opened or read.
    case cannotRead(path: String, reason: String)
    /// A file could not be written; an existing file is unchanged.
    case cannotWrite(path: String, reason: String, remedy: String)
    /// A file was written, but the disk did not confirm its name; a power cut may undo the change.
    case notConfirmed(path: String, reason: String)

    /// The file, the problem and the fix.
    public var description: String {
        switch self {
        case .cannotRead(let path, let reason):
            "\(path): cannot be read (\(reason)); check the name and that you may read the file"
        case .cannotWrite(let path, let reason, let remedy):
            "\(path): cannot be written (\(reason)); \(remedy)"
        case .notConfirmed(let path, let reason):
            "\(path): was written, but the disk did not confirm it (\(reason)); check the disk and save again"
        }
    }
}

extension FileError {
    /// Returns the error of a failed write to `path` with the given `errno`, read right after the failed call.
    package static func cannotWrite(_ path: String, errno code: Int32) -> FileError {
        let remedy =
            switch code {
            case ENOENT: "create its folder first"
            case ENOTDIR: "a part of its path is a file, not a folder; choose another path"
            case EACCES, EPERM, EROFS: "choose a folder that you may write to"
            case ENOSPC, EDQUOT: "free some space on the disk"
            case ENAMETOOLONG: "choose a shorter name"
            case ELOOP: "its symbolic links form a loop; choose another path"
            default: "check the disk and the path"
            }
        return .cannotWrite(path: path, reason: errorText(code), remedy: remedy)
    }

    /// Returns the error of a failed read of `path` with the given `errno`.
    package static func cannotRead(_ path: String, errno code: Int32) -> FileError {
        .cannotRead(path: path, reason: errorText(code))
    }
}

/// Returns the system's message for an error number, such as "No space left on device".
func errorText(_ code: Int32) -> String {
    String(cString: strerror(code))
}

/// Calls `body`, and calls it again each time a signal interrupts it (EINTR).
package func retryingInterrupts<Result: SignedInteger>(_ body: () -> Result) -> Result {
    while true {
        let result = body()
        if result != -1 || errno != EINTR { return result }
    }
}
