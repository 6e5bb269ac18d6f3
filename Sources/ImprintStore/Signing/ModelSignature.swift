public import Foundation
internal import ImprintCore

/// A signature of a model file or folder in the format of OpenSSF Model Signing 1.0, made with a key.
///
/// ```swift
/// let signature = try ModelSignature(signing: model, with: SigningKey(contentsOf: privateKey))
/// try signature.write(to: file)
///
/// let received = try ModelSignature(contentsOf: file)
/// try received.verify(model, with: VerificationKey(contentsOf: publicKey))
/// ```
///
/// The file is a Sigstore bundle, version 0.3, with a DSSE envelope. Its payload is an in-toto statement of the predicate type
/// `https://model_signing/signature/v1.0`, which lists the SHA-256 digest of each file of the model. The program `model_signing`
/// reads and writes the same files. Signatures with certificates or Sigstore identities are not supported.
///
/// A signature proves who signed a model, that no signed file was changed or removed, and that no file was added, except in the paths that
/// the signer ignored. It does not prove that the model is the newest one; `ModelStore` also rejects older versions
/// (``AcceptedVersions``).
public struct ModelSignature: Sendable {
    /// The default name of a signature file.
    public static let fileName = "model.sig"
    /// The largest signature that is read, in bytes: enough for about 300,000 files.
    static let maximumByteCount = 64 << 20

    /// The identifier of the signer's key (`VerificationKey.identifier`); nil if the signature does not name it.
    ///
    /// It is not verified.
    public let keyIdentifier: String?
    /// The name in error messages.
    private let name: String
    /// The file that the signature was read from.
    private let file: URL?
    /// The bytes of the statement, which are signed.
    private let payload: Data
    private let signature: Data

    /// Reads a signature without verifying it.
    /// - Throws: `FileError` if the file cannot be read, `SignatureError.invalidSignature` if it is not a signature in this format.
    public init(contentsOf url: URL) throws {
        guard let bytes = try RegularFile(url.path).contents(limit: Self.maximumByteCount) else {
            throw SignatureError.invalidSignature(
                name: url.path, reason: "it has more than \(Self.maximumByteCount) bytes")
        }
        try self.init(bytes, named: url.path, file: url)
    }

    /// Reads the bytes of a signature file without verifying them.
    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - name: The name of the signature in error messages.
    /// - Throws: `SignatureError.invalidSignature` if it is not a signature in this format.
    public init(_ bytes: Data, named name: String) throws(SignatureError) {
        try self.init(bytes, named: name, file: nil)
    }

    private init(_ bytes: Data, named name: String, file: URL?) throws(SignatureError) {
        let bundle: SignatureBundle = try decoded(bytes, "the bundle", name)
        (payload, signature) = try bundle.content(name)
        // Some programs write an empty identifier.
        keyIdentifier = bundle.verificationMaterial.publicKey?.hint.flatMap { $0.isEmpty ? nil : $0 }
        (self.name, self.file) = (name, file)
    }

    /// Signs a model.
    /// - Parameters:
    ///   - model: The model file, or a folder. All files in a folder are signed, except those of a Git repository.
    ///   - key: The private key.
    ///   - ignoredFiles: Files and folders that are not signed, such as the signature file in the folder of the model. They may be
    ///     added, changed and removed without invalidating the signature.
    /// - Throws: `FileError` if a file cannot be read; `SignatureError.unsignable` if a folder contains a symbolic link, a device, a
    ///   name that is not UTF-8, two equivalent names, or more than 200 nested folders; `SignatureError.noFiles` if it contains no
    ///   files; `SignatureError.changing` if another program changes the model.
    public init(signing model: URL, with key: SigningKey, ignoring ignoredFiles: [URL] = []) throws {
        var ignoredPaths = Set(SignedFiles.defaultIgnoredPaths)
        ignoredPaths.formUnion(ignoredFiles.compactMap { SignedFiles.path(of: $0, within: model) })
        let files = try SignedFiles(model, ignoring: ignoredPaths)
        guard !files.paths.isEmpty else {
            throw SignatureError.noFiles(model: model.path)
        }
        let name = model.absoluteURL.standardizedFileURL.lastPathComponent
        let statement = SignedStatement(
            name: name, digests: try files.digests(), ignoring: files.isFolder ? ignoredPaths.sorted() : [])
        try self.init(
            signing: SignatureBundle.encoded(statement), with: key, named: "the signature of \(model.path)")
    }

    /// Signs the JSON of a statement.
    /// - Parameters:
    ///   - statement: The JSON, which is not checked.
    ///   - key: The private key.
    ///   - name: The name of the signature in error messages.
    package init(signing statement: Data, with key: SigningKey, named name: String) throws {
        payload = statement
        signature = try key.signature(of: SignatureBundle.signedMessage(payload))
        keyIdentifier = key.verificationKey.identifier
        (self.name, file) = (name, nil)
    }

    /// The name of the signed model, which is not verified; nil if the statement is not valid.
    package var modelName: String? { try? SignedStatement(payload, named: name).subject[0].name }

    /// The content of the signature file.
    public var bytes: Data {
        get throws { try SignatureBundle.encoded(SignatureBundle(payload, signature, hint: keyIdentifier)) }
    }

    /// Writes the signature file atomically.
    /// - Throws: `FileError` if it cannot be written.
    public func write(to url: URL) throws { try AtomicFile.write(Array(bytes), to: url) }

    /// Verifies that a model has exactly the signed files.
    ///
    /// In a folder, the signature file itself and the paths that the signer ignored may have any content. The folder must not contain
    /// symbolic links. Names are compared by their bytes.
    ///
    /// The model may change while it is read. `verify` opens each file relative to the folder that it listed, never through a symbolic
    /// link, and compares the list of files with their sizes and times before and after it has read all of them. So a valid result
    /// describes files that existed together, as far as the times in the file system show. Files can still change afterwards.
    /// - Parameters:
    ///   - model: The model file or folder; its name does not matter.
    ///   - key: The public key of the signer.
    /// - Returns: The verified files.
    /// - Throws: `SignatureError.wrongKey` and `forged` if the key did not make the signature; `SignatureError.mismatch`, which lists
    ///   all changed, missing and added files; `SignatureError.wrongKind` if a file was signed and the model is a folder, or the other
    ///   way round; `SignatureError.invalidSignature` for an invalid statement; `SignatureError.unsignable` for symbolic links in the
    ///   folder; `SignatureError.changing` if the model changes while it is read; `FileError` if a file cannot be read.
    @discardableResult
    public func verify(_ model: URL, with key: VerificationKey) throws -> SignedModel {
        let statement = try statement(verifiedWith: key)
        // Early versions of other programs did not record the files of a Git repository, which they ignored.
        var ignored = Set(statement.ignoredPaths ?? SignedFiles.defaultIgnoredPaths)
        if let file, let path = SignedFiles.path(of: file, within: model) { ignored.insert(path) }
        let files = try SignedFiles(model, ignoring: ignored, except: statement.paths)
        guard files.isFolder == statement.isFolder else {
            throw SignatureError.wrongKind(
                model: model.path, isFolder: files.isFolder, signedName: statement.subject[0].name)
        }
        let (found, expected) = (try files.digests(shardSize: statement.shardSize), statement.digests)
        let changed = expected.compactMap { path, expected in
            found[path].flatMap { found in
                found == expected ? nil : SignatureMismatch.Change(path: path.text, found: found, expected: expected)
            }
        }
        let mismatch = SignatureMismatch(
            changed: changed.sorted { precedes($0.path, $1.path) },
            missing: expected.keys.filter { found[$0] == nil }.sorted().map(\.text),
            unsigned: found.keys.filter { expected[$0] == nil }.sorted().map(\.text))
        guard mismatch.count == 0 else { throw SignatureError.mismatch(model: model.path, mismatch) }
        return SignedModel(
            name: statement.subject[0].name, digest: statement.subject[0].digest["sha256"] ?? "",
            files: Dictionary(expected.map { ($0.key.text, $0.value) }) { first, _ in first },
            ignored: files.ignored.map(\.text))
    }

    /// Returns the statement after verifying its signature.
    func statement(verifiedWith key: VerificationKey) throws(SignatureError) -> SignedStatement {
        if let keyIdentifier, keyIdentifier != key.identifier {
            throw .wrongKey(name: name, found: String(keyIdentifier.prefix(80)), expected: key.identifier)
        }
        guard key.isValid(signature, for: SignatureBundle.signedMessage(payload)) else { throw .forged(name: name) }
        return try SignedStatement(payload, named: name)
    }

    /// Returns the signed SHA-256 digest of a model of one file.
    func fileDigest(verifiedWith key: VerificationKey) throws(SignatureError) -> String {
        let statement = try statement(verifiedWith: key)
        guard let digest = statement.digests[.file] else {
            throw .invalidSignature(
                name: name,
                reason: "it signs a folder or parts of a file, not one whole file")
        }
        return digest
    }
}

/// A model whose signature is valid.
public struct SignedModel: Sendable, Equatable {
    /// The name of the model when it was signed, for display only.
    ///
    /// It is any text that the signer chose: the model may have another name, and the text may contain "/" or "..". Do not use it as a
    /// path.
    public let name: String
    /// The SHA-256 digest of the concatenated digests of all files.
    public let digest: String
    /// The SHA-256 digest of each file, by path; the path is "." for a model of one file, and `path:start:end` for a part of a file.
    ///
    /// These are the paths that exist in the model, so they do not lead out of it.
    public let files: [String: String]
    /// The paths of files and folders in the folder of the model that are not signed, because the signer ignored them.
    public let ignored: [String]
}

/// A Sigstore bundle with a DSSE envelope.
struct SignatureBundle: Codable {
    static let mediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
    static let payloadType = "application/vnd.in-toto+json"

    struct Material: Codable {
        struct PublicKey: Codable { let hint: String? }

        let publicKey: PublicKey?
        /// Entries of a transparency log, which signatures with a key do not need.
        let tlogEntries: [Never]?

        init(_ publicKey: PublicKey) { (self.publicKey, tlogEntries) = (publicKey, []) }

        init(from decoder: any Decoder) throws {
            publicKey = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(
                PublicKey.self, forKey: .publicKey)
            tlogEntries = nil
        }
    }

    struct Envelope: Codable {
        struct Signature: Codable {
            let sig: String
            let keyid: String?
        }

        let payload: String
        let payloadType: String
        let signatures: [Signature]
    }

    let mediaType: String
    let verificationMaterial: Material
    let dsseEnvelope: Envelope?

    init(_ payload: Data, _ signature: Data, hint: String?) {
        mediaType = Self.mediaType
        verificationMaterial = Material(Material.PublicKey(hint: hint))
        dsseEnvelope = Envelope(
            payload: payload.base64EncodedString(), payloadType: Self.payloadType,
            signatures: [Envelope.Signature(sig: signature.base64EncodedString(), keyid: "")])
    }

    /// Returns the JSON of a part of a signature.
    static func encoded(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
    }

    /// Returns the bytes that are signed: the pre-authentication encoding of DSSE 1.0.
    static func signedMessage(_ payload: Data) -> Data {
        Data("DSSEv1 \(payloadType.utf8.count) \(payloadType) \(payload.count) ".utf8) + payload
    }

    /// Returns the payload and the signature, after checking the form of the bundle.
    func content(_ name: String) throws(SignatureError) -> (payload: Data, signature: Data) {
        func invalid(_ reason: String) -> SignatureError { .invalidSignature(name: name, reason: reason) }
        guard mediaType == Self.mediaType else {
            throw invalid("the bundle has the media type \(quoted(mediaType)), expected \(Self.mediaType)")
        }
        guard verificationMaterial.publicKey != nil else {
            throw invalid("it was made with a certificate or another identity, not with a key")
        }
        guard let envelope = dsseEnvelope else { throw invalid("the bundle has no dsseEnvelope") }
        guard envelope.payloadType == Self.payloadType else {
            throw invalid("the payload has the type \(quoted(envelope.payloadType)), expected \(Self.payloadType)")
        }
        guard envelope.signatures.count == 1 else {
            throw invalid("the envelope has \(envelope.signatures.count) signatures, expected 1")
        }
        guard let payload = Data(base64Encoded: envelope.payload) else { throw invalid("the payload is not base64") }
        guard let signature = Data(base64Encoded: envelope.signatures[0].sig) else {
            throw invalid("the signature is not base64")
        }
        return (payload, signature)
    }
}
