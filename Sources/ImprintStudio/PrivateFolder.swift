internal import Foundation

/// What the names of the folders begin with; the process that made one follows.
private let prefix = "imprint-studio-"

/// Runs `body` with a folder that no other user looks into, and that is gone afterwards.
func withPrivateFolder<Value>(_ body: (URL) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appending(
        path: "\(prefix)\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}

/// Removes what studios left that were killed in the middle of a lesson.
func removeStaleFolders() {
    let temporary = FileManager.default.temporaryDirectory
    for name in (try? FileManager.default.contentsOfDirectory(atPath: temporary.path)) ?? []
    where name.hasPrefix(prefix) {
        guard let process = name.dropFirst(prefix.count).split(separator: "-").first.flatMap({ Int32($0) }),
            process > 0,
            kill(process, 0) != 0, errno == ESRCH
        else { continue }
        // Those of other users cannot be removed, and need not be.
        try? FileManager.default.removeItem(at: temporary.appending(path: name))
    }
}
