public import Foundation

/// Real photos and models that some tests read and the repository does not hold; such tests skip if it is absent.
///
/// The folder is named by the environment variable `IMPRINT_REFERENCE_DATA`, else it is `shared` beside the checkout.
public enum ReferenceData {
    /// The folder, whether it exists or not.
    public static let folder: URL =
        ProcessInfo.processInfo.environment["IMPRINT_REFERENCE_DATA"].map { URL(filePath: $0) }
        ?? packageFolder.deletingLastPathComponent().appending(path: "shared")

    /// Whether the file or folder at `path` (relative to `folder`) is there.
    public static func has(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: folder.appending(path: path).path)
    }
}

/// The folder that holds Package.swift.
public let packageFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

/// Runs `body` with a new empty folder that is removed afterwards.
public func withTemporaryFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
    let folder = try makeTemporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
}

/// The same for a `body` that waits.
public func withTemporaryFolder<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
    let folder = try makeTemporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}

private func makeTemporaryFolder() throws -> URL {
    let folder = FileManager.default.temporaryDirectory.appending(path: "imprint-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
}
