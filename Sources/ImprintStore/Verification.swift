internal import Crypto
public import Foundation

/// What vouches for a model that is to be installed: its digest, a signature, or both.
///
/// A store never loads a file that nothing vouches for, so there is no verification without one of them.
public struct Verification: Sendable {
    /// Where a signature is: 64 bytes, as Ed25519 (RFC 8032) makes them of the whole file.
    public enum Signature: Sendable {
        /// Here.
        case bytes(Data)
        /// In a file of 64 bytes, often beside the model (file, http or https).
        case file(URL)
    }

    let sha256: String?
    let signature: (Signature, publicKey: Data)?

    /// A file with this digest, and no other.
    /// - Parameter sha256: 64 hexadecimal digits, as `sha256sum` prints them.
    /// - Throws: `StoreError.invalidVerification` if they are not.
    public init(sha256: String) throws(StoreError) {
        self.sha256 = try Self.checked(sha256)
        signature = nil
    }

    /// A file that the owner of a key has signed.
    /// - Parameters:
    ///   - publicKey: The raw 32 bytes of the Ed25519 public key.
    ///   - signature: The signature, or if it is.
    ///   - sha256: The file's digest too, if it is known.
    /// - Throws: `StoreError.invalidVerification` if key, signature or digest are of another form.
    public init(publicKey: Data, signature: Signature, sha256: String? = nil) throws(StoreError) {
        guard (try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey)) != nil else {
            throw .invalidVerification(
                what: "public key", found: "\(publicKey.count) bytes",
                expected: "the raw 32 bytes of an Ed25519 public key")
        }
        if case .bytes(let bytes) = signature { try Self.check(bytes) }
        self.sha256 = if let sha256 { try Self.checked(sha256) } else { nil }
        self.signature = (signature, publicKey)
    }

    /// How many bytes a signature has.
    static let signatureLength = 64

    static func check(_ signature: Data) throws(StoreError) {
        guard signature.count == signatureLength else {
            throw .invalidVerification(
                what: "signature", found: "\(signature.count) bytes",
                expected: "the \(signatureLength) bytes of an Ed25519 signature")
        }
    }

    /// Whether `text` is what `sha256sum` prints.
    static func isDigest(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    private static func checked(_ sha256: String) throws(StoreError) -> String {
        let digits = sha256.lowercased()
        guard isDigest(digits) else {
            throw .invalidVerification(
                what: "SHA-256", found: String(sha256.prefix(80)).debugDescription, expected: "64 hexadecimal digits")
        }
        return digits
    }
}

extension StoreFiles {
    /// The SHA-256 digest of a file's bytes, as 64 hexadecimal digits in lower case, and their number.
    func digest(of name: String) throws -> (sha256: String, byteCount: Int) {
        var hash = SHA256()
        var byteCount = 0
        try read(name) { piece in
            hash.update(bufferPointer: piece)
            byteCount += piece.count
        }
        return (hash.finalize().map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined(), byteCount)
    }

    /// Whether `signature` is that of a file's bytes by `publicKey`.
    func isSigned(_ name: String, _ signature: Data, by publicKey: Data) throws -> Bool {
        let key = try Curve25519.Signing.PublicKey(rawRepresentation: publicKey)
        return key.isValidSignature(signature, for: try mapped(name))
    }
}
