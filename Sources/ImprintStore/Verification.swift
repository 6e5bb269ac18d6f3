internal import Crypto
public import Foundation

/// The expected digest or signature of a model to install, or both.
///
/// A store never loads an unverified file, so at least one of them is required.
public struct Verification: Sendable {
    /// The source of an Ed25519 signature (RFC 8032) of the whole file: 64 bytes.
    public enum Signature: Sendable {
        /// The signature itself.
        case bytes(Data)
        /// The URL of a file of 64 bytes, often beside the model (file, http or https).
        case file(URL)
    }

    let sha256: String?
    let signature: (Signature, publicKey: Data)?

    /// Verifies a file by its digest.
    /// - Parameter sha256: The SHA-256 digest as 64 hexadecimal digits, as printed by `sha256sum`.
    /// - Throws: `StoreError.invalidVerification` if the digest is malformed.
    public init(sha256: String) throws(StoreError) {
        self.sha256 = try Self.checked(sha256)
        signature = nil
    }

    /// Verifies a file by its signature.
    /// - Parameters:
    ///   - publicKey: The raw 32 bytes of the Ed25519 public key.
    ///   - signature: The signature, or the URL of a file with the signature.
    ///   - sha256: The SHA-256 digest of the file, if it must match too.
    /// - Throws: `StoreError.invalidVerification` if key, signature or digest are malformed.
    public init(publicKey: Data, signature: Signature, sha256: String? = nil) throws(StoreError) {
        guard (try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey)) != nil else {
            throw .invalidVerification(
                name: "public key", found: "\(publicKey.count) bytes",
                expected: "the raw 32 bytes of an Ed25519 public key")
        }
        if case .bytes(let bytes) = signature { try Self.check(bytes) }
        self.sha256 = if let sha256 { try Self.checked(sha256) } else { nil }
        self.signature = (signature, publicKey)
    }

    /// The size of a signature in bytes.
    static let signatureLength = 64

    static func check(_ signature: Data) throws(StoreError) {
        guard signature.count == signatureLength else {
            throw .invalidVerification(
                name: "signature", found: "\(signature.count) bytes",
                expected: "the \(signatureLength) bytes of an Ed25519 signature")
        }
    }

    /// Whether `text` is a digest in the format of `sha256sum`.
    static func isDigest(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    static func checked(_ sha256: String) throws(StoreError) -> String {
        let digits = sha256.lowercased()
        guard isDigest(digits) else {
            throw .invalidVerification(
                name: "SHA-256", found: String(sha256.prefix(80)).debugDescription, expected: "64 hexadecimal digits")
        }
        return digits
    }
}

extension StoreFiles {
    /// The SHA-256 digest of a file, as 64 hexadecimal digits in lower case, and its size in bytes.
    func digest(of name: String) throws -> (sha256: String, byteCount: Int) {
        var hash = SHA256()
        var byteCount = 0
        try read(name) { chunk in
            hash.update(bufferPointer: chunk)
            byteCount += chunk.count
        }
        return (hash.finalize().map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined(), byteCount)
    }

    /// Whether `signature` is a valid signature of a file for `publicKey`.
    func isSigned(_ name: String, _ signature: Data, by publicKey: Data) throws -> Bool {
        let key = try Curve25519.Signing.PublicKey(rawRepresentation: publicKey)
        return key.isValidSignature(signature, for: try mapped(name))
    }
}
