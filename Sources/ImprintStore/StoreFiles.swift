internal import Foundation
internal import ImprintModel

/// The file system interface of a store: files in one folder, by name.
///
/// As on a disk, written data and changed names survive a power cut only after they are flushed.
protocol StoreFiles: Sendable {
    /// The path of a file, for messages.
    func path(of name: String) -> String
    /// The names of all files.
    func names() throws -> [String]
    /// The size of a file in bytes; nil if it does not exist.
    func size(of name: String) throws -> Int?
    /// Reads a file and passes each chunk to `body`.
    func read(_ name: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws
    /// Maps a file into memory, for files that are never written again.
    func mapped(_ name: String) throws -> Data
    /// Reads a model, whose parameters may stay memory-mapped.
    func modelFile(_ name: String) throws -> ModelFile
    /// Appends bytes to a file, and creates it if necessary.
    func append(_ bytes: Data, to name: String) throws
    /// Flushes the bytes of a file.
    func flush(_ name: String) throws
    /// Renames a file and replaces an existing one, whose memory mappings stay valid.
    func rename(_ name: String, to other: String) throws
    /// Removes a file if it exists; its memory mappings stay valid.
    func remove(_ name: String) throws
    /// Flushes the names in the folder.
    func flushNames() throws
    /// Acquires the lock of a lock file; nil if another owner has it.
    func lock(_ name: String) throws -> StoreLock?
}

/// A lock that is held until this object is released or the process ends.
protocol StoreLock: Sendable {}

/// The end of reading a file that exceeds a limit.
private struct TooLarge: Error {}

extension StoreFiles {
    /// Reads a small file into memory; nil if it has more than `limit` bytes.
    func contents(of name: String, limit: Int) throws -> Data? {
        var bytes = Data()
        do {
            try read(name) { chunk in
                guard bytes.count + chunk.count <= limit else { throw TooLarge() }
                bytes.append(contentsOf: chunk)
            }
        } catch is TooLarge {
            return nil
        }
        return bytes
    }

    /// Replaces the content of a file atomically: after a power cut it has either the old or the new bytes.
    func replace(_ name: String, with bytes: Data) throws {
        let new = name + ".new"
        try remove(new)
        try append(bytes, to: new)
        try flush(new)
        try rename(new, to: name)
        try flushNames()
    }
}
