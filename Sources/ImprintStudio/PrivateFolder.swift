internal import Foundation
internal import ImprintCore

/// A temporary folder that no other user can read.
///
/// A lock shows other studios that the folder is in use. The lock works even if the studios run in containers that share the temporary
/// files, but not the numbers of processes.
final class PrivateFolder: Sendable {
    /// The start of the folder names, followed by the process id.
    private static let prefix = "imprint-studio-"
    /// The name of the locked file.
    private static let lockName = "lock"

    /// The folder for the files.
    let url: URL
    /// The folder of the lock and of the files.
    private let root: URL
    /// The lock; nil on a file system without locks.
    private let lock: FileLock?

    /// Creates a folder, which exists until `remove()`.
    /// - Parameter parent: The folder that contains it.
    init(in parent: URL) throws {
        let manager = FileManager.default
        let name = "\(Self.prefix)\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
        root = parent.appending(path: name, directoryHint: .isDirectory)
        url = root.appending(path: "files", directoryHint: .isDirectory)
        try manager.createDirectory(
            at: root, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        do {
            // Another studio that starts now can lock a file with the name of the lock, so the file gets this name after it is locked.
            let file = root.appending(path: "new-\(Self.lockName)", directoryHint: .notDirectory)
            try Data().write(to: file)
            lock = try? FileLock(file: file)
            try manager.moveItem(at: file, to: root.appending(path: Self.lockName, directoryHint: .notDirectory))
            try manager.createDirectory(at: url, withIntermediateDirectories: false)
        } catch {
            try? manager.removeItem(at: root)
            throw error
        }
    }

    /// Deletes the folder.
    func remove() throws { try FileManager.default.removeItem(at: root) }

    /// Deletes the folders of studios that were killed.
    /// - Parameter parent: The folder that contains them.
    static func removeStale(in parent: URL) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
        where name.hasPrefix(prefix) {
            let root = parent.appending(path: name, directoryHint: .isDirectory)
            // Another user could change a folder of theirs, even to links to the files of this user, while it is deleted.
            var status = stat()
            guard lstat(root.path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
                continue
            }
            // A folder without a lock, and one on a file system without locks, cannot be locked and stay.
            guard let lock = try? FileLock(file: root.appending(path: lockName, directoryHint: .notDirectory)) else {
                continue
            }
            defer { withExtendedLifetime(lock) {} }
            try? FileManager.default.removeItem(at: root)
        }
    }
}

/// Runs `body` with a temporary folder that no other user can read, and removes it afterwards.
/// - Parameter parent: The folder that contains it.
func withPrivateTemporaryFolder<Value>(in parent: URL, _ body: (URL) async throws -> Value) async throws -> Value {
    let folder = try PrivateFolder(in: parent)
    defer { try? folder.remove() }
    return try await body(folder.url)
}
