package import Foundation
internal import ImprintCore

/// A resumable download of one file into a folder, verified by its SHA-256.
///
/// Like the folder of a `ModelStore`, the folder has the files `download.partial` and `download.json`. The caller ensures that only one
/// download at a time uses the folder.
package struct VerifiedDownload: Sendable {
    private let download: Download
    private let files: Disk
    private let sha256: String

    /// Prepares the download of a file, and creates the folder.
    /// - Parameters:
    ///   - sha256: The expected SHA-256 as 64 hexadecimal digits.
    ///   - onProgress: Receives the number of bytes so far, and the size of the file if the server reports it.
    /// - Throws: `StoreError.unsupportedURL` and `invalidVerification`, `FileError`, `ImprintError.invalidSetting` for invalid limits.
    package init(
        _ url: URL, sha256: String, to folder: URL, limits: DownloadLimits,
        onProgress: @escaping @Sendable (Int, Int?) -> Void
    ) throws {
        try limits.check()
        self.sha256 = try Verification.checked(sha256)
        files = try Disk(folder)
        download = Download(files: files, fetch: try Fetch(url, limits), onProgress: onProgress)
    }

    /// The URL for messages and records, without user name, password, query and fragment, which may be secret.
    package static func redacted(_ url: URL) -> String { url.redacted }

    /// Downloads and verifies the file, and returns its URL in the folder.
    /// - Throws: `StoreError`; after `wrongDigest`, the folder has no partial file. `FileError` if a file cannot be written.
    package func run() async throws -> URL {
        let hasResumed = try await download.run(resumes: true)
        do {
            return try await verify()
        } catch StoreError.wrongDigest where hasResumed {
            // The partial file may have been damaged.
            _ = try await download.run(resumes: false)
            return try await verify()
        }
    }

    private func verify() async throws -> URL {
        try await onDedicatedThread {
            try files.flush(Download.fileName)
            let found = try files.digest(of: Download.fileName).sha256
            guard found == sha256 else {
                try Download.forget(in: files)
                throw StoreError.wrongDigest(url: download.fetch.url.redacted, found: found, expected: sha256)
            }
            return files.folder.appending(path: Download.fileName)
        }
    }
}
