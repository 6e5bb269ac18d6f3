internal import Foundation
internal import ImprintCore
internal import Synchronization

/// Downloads a file into the folder of the store, and resumes an interrupted download.
///
/// A record in another file contains the URL and version of the partial file. After a power cut, the record may belong to another
/// version. Then the server does not resume the download, or the digest of the complete file is wrong.
struct Download: Sendable {
    static let fileName = "download.partial"
    static let recordName = "download.json"
    /// The largest record that is read, in bytes; it contains a URL and a version of the file on the server.
    private static let maximumRecordByteCount = 1 << 20

    private struct ResumeRecord: Codable {
        let source: String
        /// A strong entity tag, or a modification date.
        let version: String
    }

    let files: any StoreFiles
    let fetch: Fetch
    /// A closure that receives the number of bytes so far, and the size of the file if the server reports it.
    var onProgress: (@Sendable (Int, Int?) -> Void)?

    /// Removes the partial file and its record.
    static func forget(in files: some StoreFiles) throws {
        try files.remove(recordName)
        try files.remove(fileName)
    }

    /// Downloads the whole file without flushing it.
    /// - Parameter resumes: Whether to resume an interrupted download.
    /// - Returns: Whether the download was resumed.
    /// - Throws: `StoreError`; the partial file stays if resuming may help.
    func run(resumes: Bool) async throws -> Bool {
        let record = resumes && !fetch.url.isFileURL ? try resumableRecord() : nil
        if record == nil { try startOver() }
        do {
            if fetch.url.isFileURL {
                try fetch.read { try files.append($0, to: Self.fileName) }
                return false
            }
            return try await get(from: record)
        } catch let error as StoreError {
            switch error {
            // The file on the server has become shorter than the partial file.
            case .unexpectedStatus(_, status: 416) where record != nil: return try await run(resumes: false)
            case .invalidResponse, .tooLarge, .unexpectedStatus(_, status: 416): try Self.forget(in: files)
            default: break
            }
            throw error
        }
    }

    private func startOver() throws {
        try Self.forget(in: files)
        // The file must exist even if the download has no bytes.
        try files.append(Data(), to: Self.fileName)
    }

    /// The record of the partial file; nil if there is nothing to resume.
    private func resumableRecord() throws -> ResumeRecord? {
        guard let size = try files.size(of: Self.fileName), size > 0, try files.size(of: Self.recordName) != nil,
            // Without a readable record the file is downloaded from the start.
            let bytes = try? files.contents(of: Self.recordName, limit: Self.maximumRecordByteCount),
            let record = try? JSONDecoder().decode(ResumeRecord.self, from: bytes),
            !record.version.hasControlCharacter
        else { return nil }
        return record.source == fetch.url.redacted ? record : nil
    }

    private func get(from record: ResumeRecord?) async throws -> Bool {
        let start = record == nil ? 0 : try files.size(of: Self.fileName) ?? 0
        let progress = Mutex(Progress(byteCount: start))
        var headers: [String: String] = [:]
        if let record { headers = ["Range": "bytes=\(start)-", "If-Range": record.version] }
        do {
            try await fetch.get(headers: headers) { response in
                try progress.withLock { try begin(response, record, from: start, &$0) }
            } onData: { data in
                try progress.withLock { progress in
                    guard !progress.isDone else { return }
                    progress.byteCount += data.count
                    try fetch.checkSize(progress.byteCount, isTotal: false)
                    if let expected = progress.expected, progress.byteCount > expected {
                        throw StoreError.invalidResponse(
                            url: fetch.url.redacted,
                            reason: "it has more than the announced \(counted(expected, "byte"))")
                    }
                    try files.append(data, to: Self.fileName)
                    onProgress?(progress.byteCount, progress.expected)
                }
            }
        } catch let error as HTTPError {
            throw error.storeError(url: fetch.url, byteCount: progress.withLock(\.byteCount))
        }
        let (found, expected) = progress.withLock { ($0.byteCount, $0.expected) }
        if let expected, found < expected {
            throw StoreError.interrupted(
                url: fetch.url.redacted, byteCount: found, reason: "expected \(counted(expected, "byte"))")
        }
        return progress.withLock(\.hasResumed)
    }

    private struct Progress {
        /// The number of bytes in the partial file.
        var byteCount: Int
        /// The size of the whole file, if the server reports it.
        var expected: Int?
        var hasResumed = false
        /// Whether the partial file was already complete.
        var isDone = false
    }

    /// Checks the header of a response and prepares for its body.
    private func begin(
        _ response: HTTPResponse, _ record: ResumeRecord?, from start: Int, _ progress: inout Progress
    ) throws {
        func invalid(_ reason: String) -> StoreError { .invalidResponse(url: fetch.url.redacted, reason: reason) }
        let version =
            response.header("ETag").flatMap { $0.hasPrefix("W/") ? nil : $0 } ?? response.header("Last-Modified")
        switch response.status {
        case 200:
            try fetch.checkEncoding(response)
            if record != nil { try startOver() }
            let length = response.contentLength
            try length.map { try fetch.checkSize($0) }
            progress = Progress(byteCount: 0, expected: length)
            if let version {
                try files.replace(
                    Self.recordName,
                    with: JSONEncoder().encode(ResumeRecord(source: fetch.url.redacted, version: version)))
            }
        case 206:
            try fetch.checkEncoding(response)
            let range = response.header("Content-Range") ?? "none"
            guard let record, let found = ContentRange(range), found.start == start, found.end == found.total else {
                throw invalid("its Content-Range is \(range.debugDescription), expected bytes from \(start) to the end")
            }
            guard version == nil || version == record.version || response.header("ETag") == nil else {
                throw invalid("it is a part of another version of the file")
            }
            try fetch.checkSize(found.total)
            progress.expected = found.total
            progress.hasResumed = true
        case 416 where response.header("Content-Range") == "bytes */\(start)" && record != nil:
            progress = Progress(byteCount: start, expected: start, hasResumed: true, isDone: true)
        default:
            throw StoreError.unexpectedStatus(url: fetch.url.redacted, status: response.status)
        }
    }
}

/// The value of the header `Content-Range`, such as "bytes 5-9/10".
private struct ContentRange {
    let start: Int
    /// The position after the last byte of the part.
    let end: Int
    /// The size of the whole file.
    let total: Int

    init?(_ text: String) {
        guard let match = text.wholeMatch(of: /bytes ([0-9]+)-([0-9]+)\/([0-9]+)/),
            let start = Int(match.1), let last = Int(match.2), let total = Int(match.3), start <= last, last < Int.max
        else { return nil }
        (self.start, self.end, self.total) = (start, last + 1, total)
    }
}
