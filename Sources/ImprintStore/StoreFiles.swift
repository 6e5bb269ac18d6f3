internal import Foundation
internal import ImprintModel

/// What a store asks of the file system: files in one folder, by name.
///
/// As on a disk, what was written or named is safe from a power cut only after it was flushed.
protocol StoreFiles: Sendable {
    /// The path of a file, for messages.
    func path(of name: String) -> String
    /// The names of all files.
    func names() throws -> [String]
    /// How many bytes a file has; nil if there is none.
    func size(of name: String) throws -> Int?
    /// Gives a file's bytes, piece by piece.
    func read(_ name: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws
    /// A file's bytes without a copy of them, for files that are never written to again.
    func mapped(_ name: String) throws -> Data
    /// Reads a model, whose parameters may stay if they are in the file.
    func weights(_ name: String) throws -> ModelFile
    /// Adds bytes at the end of a file, which is made if there is none.
    func append(_ bytes: Data, to name: String) throws
    /// Flushes a file's bytes.
    func flush(_ name: String) throws
    /// Gives a file another name, in place of the file that had it; what is mapped of that one stays.
    func rename(_ name: String, to other: String) throws
    /// Removes a file, if there is one; what is mapped of it stays.
    func remove(_ name: String) throws
    /// Flushes which names there are; where that fails, nothing is said of what is in use.
    func flushNames() throws
    /// Takes the lock that a file stands for; nil if another has it.
    func lock(_ name: String) throws -> StoreLock?
}

/// A lock that is held for as long as this lives, and no longer than its process.
protocol StoreLock: Sendable {}

extension StoreFiles {
    /// All of a small file's bytes.
    func contents(of name: String) throws -> Data {
        var bytes = Data()
        try read(name) { bytes.append(contentsOf: $0) }
        return bytes
    }

    /// Puts `bytes` in the place of a file, so that a power cut leaves the old bytes or the new ones.
    func replace(_ name: String, with bytes: Data) throws {
        let new = name + ".new"
        try remove(new)
        try append(bytes, to: new)
        try flush(new)
        try rename(new, to: name)
        try flushNames()
    }
}
