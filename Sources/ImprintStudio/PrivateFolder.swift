internal import Foundation

/// The prefix of the folder names, followed by the process id.
private let prefix = "imprint-studio-"

/// Creates a temporary folder that no other user can read.
/// - Parameter parent: The folder that contains it.
func makePrivateTemporaryFolder(in parent: URL = FileManager.default.temporaryDirectory) throws -> URL {
    let folder = parent.appending(
        path: "\(prefix)\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return folder
}

/// Runs `body` with a temporary folder that no other user can read, and removes it afterwards.
/// - Parameter parent: The folder that contains it.
func withPrivateTemporaryFolder<Value>(
    in parent: URL = FileManager.default.temporaryDirectory, _ body: (URL) async throws -> Value
) async throws -> Value {
    let folder = try makePrivateTemporaryFolder(in: parent)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}

/// Removes the temporary folders of studios that were killed.
func removeStaleFolders() {
    let temporary = FileManager.default.temporaryDirectory
    for name in (try? FileManager.default.contentsOfDirectory(atPath: temporary.path)) ?? []
    where name.hasPrefix(prefix) {
        guard let process = name.dropFirst(prefix.count).split(separator: "-").first.flatMap({ Int32($0) }),
            process > 0,
            kill(process, 0) != 0, errno == ESRCH
        else { continue }
        // The folders of other users cannot and need not be removed.
        try? FileManager.default.removeItem(at: temporary.appending(path: name))
    }
}
