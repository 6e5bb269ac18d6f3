import Foundation

/// An error of the file system.
public enum FileError: DescribedError, Equatable {
    /// A file could not be opened or read.
    case cannotRead(path: String, reason: String)
    /// A file could not be written; an existing file is unchanged.
    ///
    /// `remedy` is a sentence.
    case cannotWrite(path: String, reason: String, remedy: String)
    /// A file was written, but the disk did not confirm its name; a power cut may undo the change.
    case notConfirmed(path: String, reason: String)

    /// The file, the problem and the fix.
    public var description: String {
        switch self {
        case .cannotRead(let path, let reason):
            "\(path): cannot be read (\(reason)). Check the name and that you may read the file."
        case .cannotWrite(let path, let reason, let remedy):
            "\(path): cannot be written (\(reason)). \(remedy.sentence)"
        case .notConfirmed(let path, let reason):
            "\(path): was written, but the disk did not confirm it (\(reason)). Check the disk and save again."
        }
    }
}

extension FileError {
    /// Returns the error of a failed write to `path` with the given `errno`, read right after the failed call.
    package static func cannotWrite(_ path: String, errno code: Int32) -> FileError {
        let remedy =
            switch code {
            case ENOENT: remedyForMissingFolder(of: path)
            case ENOTDIR: "A part of its path is a file, not a folder. Choose another path."
            case EACCES, EPERM, EROFS: "Choose a folder that you may write to."
            case ENOSPC, EDQUOT: "Free some space on the disk."
            case ENAMETOOLONG: "Choose a shorter name."
            case ELOOP: "Its symbolic links form a loop. Choose another path."
            default: "Check the disk and the path."
            }
        return .cannotWrite(path: path, reason: errorText(code), remedy: remedy)
    }

    /// Returns the fix for a file that cannot be created (ENOENT), usually because its folder or that of a link's target does not exist.
    private static func remedyForMissingFolder(of path: String) -> String {
        let target = (try? AtomicFile.followingLinks(path)) ?? path
        let parent = AtomicFile.parentFolder(of: target)
        let folder = (try? AtomicFile.followingLinks(parent)) ?? parent
        // A system folder, such as /proc, exists, but cannot contain new files.
        if !exists(URL(filePath: target)) && FileManager.default.fileExists(atPath: folder) {
            return "Its folder cannot contain new files. Choose another folder."
        }
        guard target != path || folder != parent else { return "Create its folder first." }
        return remedyForBrokenLink(to: folder)
    }

    private static func remedyForBrokenLink(to folder: String) -> String {
        "A symbolic link leads to the folder \(folder), which does not exist. Create it first."
    }

    /// Returns the error of a symbolic link at `path` to a folder that does not exist.
    static func brokenLink(_ path: String, to folder: String) -> FileError {
        .cannotWrite(path: path, reason: errorText(ENOENT), remedy: remedyForBrokenLink(to: folder))
    }

    /// Returns the error of a failed read of `path` with the given `errno`.
    package static func cannotRead(_ path: String, errno code: Int32) -> FileError {
        .cannotRead(path: path, reason: errorText(code))
    }
}

/// Returns the system's message for an error number, such as "No space left on device".
package func errorText(_ code: Int32) -> String { String(cString: strerror(code)) }

/// Returns the system's message for an error of Foundation, such as "Permission denied", without a full stop.
///
/// Foundation's own messages omit the system's message, or have several sentences.
package func reason(of error: any Error) -> String {
    let error = error as NSError
    if let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError, cause.domain == NSPOSIXErrorDomain {
        return errorText(Int32(cause.code))
    }
    if error.domain == NSPOSIXErrorDomain { return errorText(Int32(error.code)) }
    let code: Int32? =
        switch CocoaError.Code(rawValue: error.code) {
        case _ where error.domain != NSCocoaErrorDomain: nil
        case .fileNoSuchFile, .fileReadNoSuchFile: ENOENT
        case .fileReadNoPermission, .fileWriteNoPermission: EACCES
        case .fileWriteFileExists: EEXIST
        case .fileWriteOutOfSpace: ENOSPC
        case .fileWriteVolumeReadOnly: EROFS
        case .fileReadInvalidFileName, .fileWriteInvalidFileName: ENAMETOOLONG
        default: nil
        }
    return code.map(errorText) ?? error.localizedDescription.clause
}

/// Calls `body`, and calls it again each time a signal interrupts it (EINTR).
package func retryingInterrupts<Result: SignedInteger>(_ body: () -> Result) -> Result {
    while true {
        let result = body()
        if result != -1 || errno != EINTR { return result }
    }
}
