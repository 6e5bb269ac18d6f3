internal import Crypto
public import Foundation
internal import ImprintCore
internal import ImprintModel

/// An installed model and its source.
public struct InstalledModel: Codable, Hashable, Sendable {
    /// The SHA-256 digest of the model file, as 64 hexadecimal digits in lower case.
    public let sha256: String
    /// The size of the model file in bytes.
    public let byteCount: Int
    /// The URL of the installation, without user name, password, query and fragment.
    public let source: String
    /// The public key that verified the signature; nil if only the digest was verified.
    ///
    /// An Ed25519 key has 32 bytes; `VerificationKey.der` is the key of a `ModelSignature`.
    public let publicKey: Data?
    /// The version in the model file (`ModelDetails.version`); nil if it has none.
    public internal(set) var version: Int?
    /// The date of the installation, to the second.
    public let date: Date

    /// The name of the model file in the folder of the store.
    var fileName: String { sha256 + ".imprint" }
}

/// The index file of a store, which lists its models; it does not exist before the first installation.
struct StoreIndex: Codable, Equatable {
    static let fileName = "models.json"
    /// The largest index that is read, in bytes: enough for the versions of about 50,000 keys.
    static let maximumByteCount = 16 << 20
    private static let newestFormat = 1

    private(set) var format = newestFormat
    /// The model in use.
    let current: InstalledModel
    /// The previous model, for `rollBack`.
    let previous: InstalledModel?
    /// The newest model that was installed for each public key, by the SHA-256 digest of the key; nil without signed versions.
    ///
    /// It stays after a rollback and after the removal of the model.
    private let newestVersions: [String: Newest]?

    /// A model that was installed with a public key.
    struct Newest: Codable, Equatable {
        let version: Int
        /// The SHA-256 digest of the model file.
        let sha256: String
    }

    /// Creates the index after a change.
    /// - Parameter older: The index before the change.
    init(current: InstalledModel, previous: InstalledModel?, after older: StoreIndex?) {
        self.current = current
        self.previous = previous
        var newest = older?.newestVersions ?? [:]
        if let key = Self.identifier(of: current), let version = current.version,
            version > newest[key]?.version ?? 0
        {
            newest[key] = Newest(version: version, sha256: current.sha256)
        }
        newestVersions = newest.isEmpty ? nil : newest
    }

    /// Returns the newest model that was installed with the public key of `model`; nil without a version.
    func newest(for model: InstalledModel) -> Newest? {
        Self.identifier(of: model).flatMap { newestVersions?[$0] }
    }

    private static func identifier(of model: InstalledModel) -> String? {
        model.publicKey.map { Crypto.SHA256.hash(data: $0).hexadecimal }
    }

    /// - Throws: `StoreError` if the file is damaged or has a newer format, `FileError` if it cannot be read.
    init?(in files: some StoreFiles) throws {
        guard try files.size(of: Self.fileName) != nil else { return nil }
        let path = files.path(of: Self.fileName)
        guard let bytes = try files.contents(of: Self.fileName, limit: Self.maximumByteCount) else {
            throw StoreError.damagedIndex(file: path)
        }
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
        guard isValid else { throw StoreError.damagedIndex(file: path) }
    }

    /// Whether the digests, which become file names, and the numbers have values that a store writes.
    private var isValid: Bool {
        func isVersion(_ version: Int) -> Bool { ModelDetails.versionRange.contains(version) }
        let models = [current, previous].compactMap(\.self)
        let newest = newestVersions ?? [:]
        return format >= 1
            && models.allSatisfy {
                FileDigest.isDigest($0.sha256) && $0.byteCount >= 0 && $0.version.map(isVersion) ?? true
            }
            && newest.allSatisfy { key, model in
                FileDigest.isDigest(key) && FileDigest.isDigest(model.sha256) && isVersion(model.version)
            }
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
