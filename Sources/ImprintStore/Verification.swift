internal import Crypto
public import Foundation
internal import ImprintCore

/// The expected digest or signature of a model to install, or both.
///
/// A store never loads an unverified file, so at least one of them is required.
public struct Verification: Sendable {
    /// The source of a signature.
    public enum Signature: Sendable {
        /// The signature itself.
        case bytes(Data)
        /// The URL of the signature file, often beside the model (file, http or https).
        case file(URL)
    }

    /// The kind of a signature, with the public key.
    enum Scheme: Sendable {
        /// A raw Ed25519 signature (RFC 8032) of the whole file: 64 bytes.
        case ed25519(publicKey: Data)
        /// A `ModelSignature` of a model of one file.
        case bundle(VerificationKey)
    }

    let sha256: String?
    let signature: (source: Signature, scheme: Scheme)?
    let versions: AcceptedVersions

    /// Verifies a file by its digest.
    /// - Parameter sha256: The SHA-256 digest as 64 hexadecimal digits, as printed by `sha256sum`.
    /// - Throws: `StoreError.invalidVerification` if the digest is malformed.
    public init(sha256: String) throws(StoreError) {
        self.sha256 = try Self.checked(sha256)
        signature = nil
        // The digest identifies a single file.
        versions = .any
    }

    /// Verifies a file by an Ed25519 signature (RFC 8032) of the whole file.
    /// - Parameters:
    ///   - publicKey: The raw 32 bytes of the Ed25519 public key.
    ///   - signature: The signature of 64 bytes, or the URL of a file with the signature.
    ///   - sha256: The SHA-256 digest of the file, if it must match too.
    ///   - versions: The versions of the signer's models to accept.
    /// - Throws: `StoreError.invalidVerification` if key, signature or digest are malformed.
    public init(
        publicKey: Data, signature: Signature, sha256: String? = nil, versions: AcceptedVersions = .increasing()
    ) throws(StoreError) {
        guard (try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey)) != nil else {
            throw .invalidVerification(
                name: "public key", found: counted(publicKey.count, "byte"),
                expected: "the raw 32 bytes of an Ed25519 public key")
        }
        if case .bytes(let bytes) = signature { try Self.check(bytes) }
        self.sha256 = if let sha256 { try Self.checked(sha256) } else { nil }
        self.signature = (signature, .ed25519(publicKey: publicKey))
        self.versions = versions
    }

    /// Verifies a file by a signature in the format of OpenSSF Model Signing, as `imprint sign` and `model_signing sign key` write it.
    /// - Parameters:
    ///   - modelSignature: The content of the signature file (`ModelSignature.bytes`), or its URL.
    ///   - key: The public key of the signer.
    ///   - sha256: The SHA-256 digest of the file, if it must match too.
    ///   - versions: The versions of the signer's models to accept.
    /// - Throws: `StoreError.invalidVerification` if the digest is malformed; `StoreError.invalidSignature` if the signature is malformed,
    ///   or was not made with the key.
    public init(
        modelSignature: Signature, key: VerificationKey, sha256: String? = nil,
        versions: AcceptedVersions = .increasing()
    ) throws(StoreError) {
        if case .bytes(let bytes) = modelSignature { _ = try Self.signedDigest(bytes, "the signature", key) }
        self.sha256 = if let sha256 { try Self.checked(sha256) } else { nil }
        signature = (modelSignature, .bundle(key))
        self.versions = versions
    }

    /// Returns the SHA-256 digest of the model file that a `ModelSignature` signs.
    static func signedDigest(_ bytes: Data, _ name: String, _ key: VerificationKey) throws(StoreError) -> String {
        do throws(SignatureError) {
            return try ModelSignature(bytes, named: name).fileDigest(verifiedWith: key)
        } catch {
            throw .invalidSignature(error)
        }
    }

    /// The public key that `InstalledModel.publicKey` records.
    var publicKey: Data? {
        switch signature?.scheme {
        case .ed25519(let key): key
        case .bundle(let key): key.der
        case nil: nil
        }
    }

    /// The size of an Ed25519 signature in bytes.
    static let signatureLength = 64
    /// The maximum size of a `ModelSignature` of one file in bytes.
    static let maximumBundleLength = 1 << 20

    static func check(_ signature: Data) throws(StoreError) {
        guard signature.count == signatureLength else {
            throw .invalidVerification(
                name: "signature", found: counted(signature.count, "byte"),
                expected: "the \(signatureLength) bytes of an Ed25519 signature")
        }
    }

    static func checked(_ sha256: String) throws(StoreError) -> String {
        let digits = sha256.lowercased()
        guard FileDigest.isDigest(digits) else {
            throw .invalidVerification(
                name: "SHA-256", found: String(sha256.prefix(80)).debugDescription, expected: "64 hexadecimal digits")
        }
        return digits
    }
}

extension StoreFiles {
    /// The SHA-256 digest of a file, as 64 hexadecimal digits in lower case, and its size in bytes.
    func digest(of name: String) throws -> (sha256: String, byteCount: Int) {
        var hash = Crypto.SHA256()
        var byteCount = 0
        try read(name) { chunk in
            hash.update(bufferPointer: chunk)
            byteCount += chunk.count
        }
        return (hash.finalize().hexadecimal, byteCount)
    }

    /// Whether `signature` is a valid signature of a file for `publicKey`.
    func isSigned(_ name: String, _ signature: Data, by publicKey: Data) throws -> Bool {
        let key = try Curve25519.Signing.PublicKey(rawRepresentation: publicKey)
        return key.isValidSignature(signature, for: try mapped(name))
    }
}
