public import Foundation

/// Real photos and models that are not in the repository.
///
/// Tests that need them are skipped if they are missing. The folder is the value of the environment variable
/// `IMPRINT_REFERENCE_DATA`, or else `shared` next to the checkout.
public enum ReferenceData {
    /// The folder, which may not exist.
    public static let folder: URL =
        ProcessInfo.processInfo.environment["IMPRINT_REFERENCE_DATA"].map { URL(filePath: $0) }
        ?? packageFolder.deletingLastPathComponent().appending(path: "shared")

    /// Whether the file or folder at `path` (relative to `folder`) exists.
    public static func has(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: folder.appending(path: path).path)
    }
}

/// The folder that contains Package.swift.
public let packageFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

/// Returns the sorted paths of the files in a folder and its sub-folders, without hidden ones, relative to the package.
/// - Parameters:
///   - folder: The path of the folder, relative to the package.
///   - suffix: The file extension; nil for all files.
/// - Throws: `CocoaError` if the folder cannot be read.
public func packageFiles(in folder: String, extension suffix: String? = nil) throws -> [String] {
    let path = packageFolder.appending(path: folder).path
    guard let names = FileManager.default.enumerator(atPath: path) else {
        throw CocoaError(.fileReadNoSuchFile, userInfo: [NSFilePathErrorKey: path])
    }
    var files: [String] = []
    while let name = names.nextObject() as? String {
        if name.split(separator: "/").last?.hasPrefix(".") == true {
            names.skipDescendants()
        } else if suffix.map({ name.hasSuffix(".\($0)") }) ?? true {
            files.append("\(folder)/\(name)")
        }
    }
    return files.sorted()
}

/// The first bytes of an ONNX model, by which Imprint recognizes the format.
public let onnxStart: [UInt8] = [8, 7, 0x12, 2, 0x61, 0x62, 0x3A, 0, 0x42, 0]

/// Calls `body` with a new empty folder and removes the folder afterwards.
public func withTemporaryFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
    let folder = try makeTemporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
}

/// Calls an asynchronous `body` with a new empty folder and removes the folder afterwards.
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
