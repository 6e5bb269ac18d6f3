public import Foundation

/// A model in a store, and where it came from.
public struct InstalledModel: Codable, Hashable, Sendable {
    /// The SHA-256 digest of its file, as 64 hexadecimal digits in lower case.
    public let sha256: String
    /// How many bytes its file has.
    public let byteCount: Int
    /// The URL that it was installed from, without user name, password, query and fragment.
    public let source: String
    /// The Ed25519 public key (32 bytes) by which its signature was verified; nil if its digest alone was.
    public let publicKey: Data?
    /// When it was installed, to the second.
    public let date: Date

    /// The name of its file in the store's folder.
    var fileName: String { sha256 + ".imprint" }
}

/// The file that says which models a store has; there is none before the first.
struct StoreIndex: Codable, Equatable {
    static let fileName = "models.json"
    private static let newestFormat = 1

    private(set) var format = newestFormat
    /// The one in use.
    let current: InstalledModel
    /// The one before, for `rollBack`.
    let previous: InstalledModel?

    init(current: InstalledModel, previous: InstalledModel?) {
        self.current = current
        self.previous = previous
    }

    /// - Throws: `StoreError` if the file is not whole or is of a newer format, `FileError` if it cannot be read.
    init?(in files: some StoreFiles) throws {
        guard try files.size(of: Self.fileName) != nil else { return nil }
        let bytes = try files.contents(of: Self.fileName)
        let path = files.path(of: Self.fileName)
        do {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let found = try decoder.decode(Format.self, from: bytes).format
            guard found <= Self.newestFormat else {
                throw StoreError.newerIndex(file: path, found: found, newest: Self.newestFormat)
            }
            self = try decoder.decode(StoreIndex.self, from: bytes)
        } catch is DecodingError {
            throw StoreError.damagedIndex(file: path)
        }
        // Digests become names of files.
        let digests = [current.sha256] + (previous.map { [$0.sha256] } ?? [])
        guard digests.allSatisfy(Verification.isDigest) else { throw StoreError.damagedIndex(file: path) }
    }

    private struct Format: Decodable {
        let format: Int
    }

    func write(to files: some StoreFiles) throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try files.replace(Self.fileName, with: try encoder.encode(self))
    }
}
