public import Foundation

/// An installed model and its source.
public struct InstalledModel: Codable, Hashable, Sendable {
    /// The SHA-256 digest of the model file, as 64 hexadecimal digits in lower case.
    public let sha256: String
    /// The size of the model file in bytes.
    public let byteCount: Int
    /// The URL of the installation, without user name, password, query and fragment.
    public let source: String
    /// The Ed25519 public key (32 bytes) that verified the signature; nil if only the digest was verified.
    public let publicKey: Data?
    /// The date of the installation, to the second.
    public let date: Date

    /// The name of the model file in the folder of the store.
    var fileName: String { sha256 + ".imprint" }
}

/// The index file of a store, which lists its models; it does not exist before the first installation.
struct StoreIndex: Codable, Equatable {
    static let fileName = "models.json"
    private static let newestFormat = 1

    private(set) var format = newestFormat
    /// The model in use.
    let current: InstalledModel
    /// The previous model, for `rollBack`.
    let previous: InstalledModel?

    init(current: InstalledModel, previous: InstalledModel?) {
        self.current = current
        self.previous = previous
    }

    /// - Throws: `StoreError` if the file is damaged or has a newer format, `FileError` if it cannot be read.
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
        // Digests become file names, so a damaged index must not contain paths.
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
