internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Brings a file into the store's folder, under a name of its own, and goes on from what an earlier download left there.
///
/// Beside what came lies a note of which version of which file it is the beginning of. Where the two do not belong together, for they are
/// two files, the server finds out by the version, or the digest of the whole does.
struct Download: Sendable {
    static let fileName = "download.partial"
    static let noteName = "download.json"

    private struct Note: Codable {
        let source: String
        /// A strong entity tag, or a date of modification.
        let version: String
    }

    let files: any StoreFiles
    let fetch: Fetch

    /// Forgets what came.
    static func forget(in files: some StoreFiles) throws {
        try files.remove(noteName)
        try files.remove(fileName)
    }

    /// Brings all of the file; it is not flushed.
    /// - Parameter resumes: Whether to go on from what came before.
    /// - Returns: whether it did.
    /// - Throws: `StoreError`; what came stays if going on from it may help.
    func run(resumes: Bool) async throws -> Bool {
        let note = resumes && !fetch.url.isFileURL ? try usableNote() : nil
        if note == nil { try beginAnew() }
        do {
            if fetch.url.isFileURL {
                try fetch.read { try files.append($0, to: Self.fileName) }
                return false
            }
            return try await get(from: note)
        } catch let error as StoreError {
            switch error {
            // The file has become shorter than what is there of it.
            case .refusedByServer(_, status: 416) where note != nil: return try await run(resumes: false)
            case .invalidResponse, .tooLarge, .refusedByServer(_, status: 416): try Self.forget(in: files)
            default: break
            }
            throw error
        }
    }

    private func beginAnew() throws {
        try Self.forget(in: files)
        // A file of no bytes is one too.
        try files.append(Data(), to: Self.fileName)
    }

    /// The note of what there is of the file; nil if there is nothing to go on from.
    private func usableNote() throws -> Note? {
        guard let size = try files.size(of: Self.fileName), size > 0, try files.size(of: Self.noteName) != nil,
            // A note that cannot be read is none: the file is had again.
            let note = try? JSONDecoder().decode(Note.self, from: files.contents(of: Self.noteName))
        else { return nil }
        return note.source == fetch.url.shown ? note : nil
    }

    private func get(from note: Note?) async throws -> Bool {
        let start = note == nil ? 0 : try files.size(of: Self.fileName) ?? 0
        let progress = Mutex(Progress(byteCount: start))
        var headers: [String: String] = [:]
        if let note { headers = ["Range": "bytes=\(start)-", "If-Range": note.version] }
        do {
            try await fetch.get(headers: headers) { response in
                try progress.withLock { try begin(response, note, from: start, &$0) }
            } onData: { data in
                try progress.withLock { progress in
                    guard !progress.isDone else { return }
                    progress.byteCount += data.count
                    try fetch.checkSize(progress.byteCount, isAll: false)
                    if let expected = progress.expected, progress.byteCount > expected {
                        throw StoreError.invalidResponse(
                            url: fetch.url.shown, reason: "more than the \(expected) bytes that it announces")
                    }
                    try files.append(data, to: Self.fileName)
                }
            }
        } catch let error as URLError {
            throw StoreError.brokenOff(
                url: fetch.url.shown, byteCount: progress.withLock(\.byteCount), reason: error.localizedDescription)
        }
        let (found, expected) = progress.withLock { ($0.byteCount, $0.expected) }
        if let expected, found < expected {
            throw StoreError.brokenOff(url: fetch.url.shown, byteCount: found, reason: "expected \(expected)")
        }
        return progress.withLock(\.hasResumed)
    }

    private struct Progress {
        /// What is there of the file.
        var byteCount: Int
        /// What the whole has, where the server says.
        var expected: Int?
        var hasResumed = false
        /// Whether all of it was there before.
        var isDone = false
    }

    /// Makes ready for a body.
    private func begin(_ response: HTTPURLResponse, _ note: Note?, from start: Int, _ progress: inout Progress) throws {
        func header(_ name: String) -> String? { response.value(forHTTPHeaderField: name) }
        func invalid(_ reason: String) -> StoreError { .invalidResponse(url: fetch.url.shown, reason: reason) }
        let version = header("ETag").flatMap { $0.hasPrefix("W/") ? nil : $0 } ?? header("Last-Modified")
        let isEncoded = header("Content-Encoding").map { $0.lowercased() != "identity" } ?? false
        switch response.statusCode {
        case 200:
            if note != nil { try beginAnew() }
            let length = isEncoded ? nil : header("Content-Length").flatMap { Int($0) }
            try length.map { try fetch.checkSize($0) }
            progress = Progress(byteCount: 0, expected: length)
            if let version, !isEncoded {
                try files.replace(
                    Self.noteName, with: JSONEncoder().encode(Note(source: fetch.url.shown, version: version)))
            }
        case 206:
            let range = header("Content-Range") ?? "none"
            guard let note, let found = ContentRange(range), found.start == start, found.end == found.total, !isEncoded
            else {
                throw invalid("its Content-Range is \(range.debugDescription), expected bytes from \(start) to the end")
            }
            guard version == nil || version == note.version || header("ETag") == nil else {
                throw invalid("it gives a part of another version of the file")
            }
            try fetch.checkSize(found.total)
            progress.expected = found.total
            progress.hasResumed = true
        case 416 where header("Content-Range") == "bytes */\(start)" && note != nil:
            progress = Progress(byteCount: start, expected: start, hasResumed: true, isDone: true)
        default:
            throw StoreError.refusedByServer(url: fetch.url.shown, status: response.statusCode)
        }
    }
}

/// What the header `Content-Range` of a part says: "bytes 5-9/10".
private struct ContentRange {
    let start: Int
    /// The first byte behind the part.
    let end: Int
    /// How many bytes the whole has.
    let total: Int

    init?(_ text: String) {
        guard let match = text.wholeMatch(of: /bytes ([0-9]+)-([0-9]+)\/([0-9]+)/),
            let start = Int(match.1), let last = Int(match.2), let total = Int(match.3), start <= last, last < Int.max
        else { return nil }
        (self.start, self.end, self.total) = (start, last + 1, total)
    }
}
