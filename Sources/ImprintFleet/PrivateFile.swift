internal import Foundation
internal import ImprintCore

/// A file that only the user can read, and that is replaced atomically.
///
/// `AtomicFile` keeps the permissions of an existing file, but other users can read its temporary file for a moment.
enum PrivateFile {
    static func write(_ bytes: [UInt8], to url: URL) throws(FileError) {
        let path = url.path
        let temporary = path + ".partial"
        // A file of a process that was killed.
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .cannotWrite(path, errno: errno) }
        var code: Int32 = 0
        var rest = bytes[...]
        while code == 0, !rest.isEmpty {
            let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if written >= 0 { rest = rest.dropFirst(written) } else if errno != EINTR { code = errno }
        }
        if code == 0, fsync(descriptor) != 0 { code = errno }
        close(descriptor)
        if code == 0, rename(temporary, path) != 0 { code = errno }
        guard code == 0 else {
            unlink(temporary)
            throw .cannotWrite(path, errno: code)
        }
        try AtomicFile.flushNames(in: url.deletingLastPathComponent().path, shownAs: path)
    }
}
