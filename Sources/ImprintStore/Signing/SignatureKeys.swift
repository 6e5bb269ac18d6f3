internal import Crypto
public import Foundation

/// A private key that signs models, on the elliptic curve P-256, P-384 or P-521.
///
/// OpenSSL creates one:
///
///     openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
///     openssl pkey -in key.pem -pubout -out public.pem
public struct SigningKey: Sendable {
    private let curve: EllipticCurve
    /// The raw representation; the types of swift-crypto are not `Sendable`.
    private let scalar: Data
    /// The public key of this key.
    public let verificationKey: VerificationKey

    /// Reads a private key in PEM format: PKCS #8 (`PRIVATE KEY`) or SEC 1 (`EC PRIVATE KEY`).
    /// - Parameters:
    ///   - text: The text of the PEM file.
    ///   - name: The name of the key in error messages.
    /// - Throws: `SignatureError.invalidKey` if there is no such key, or if it is encrypted or on another curve.
    public init(pem text: String, named name: String = "the private key") throws(SignatureError) {
        let block = try PEMFile.keyBlock(
            in: text, labels: ["PRIVATE KEY", "EC PRIVATE KEY"], expected: "a private key", name)
        do {
            switch EllipticCurve(named: block) {
            case .p256:
                let key = try P256.Signing.PrivateKey(pemRepresentation: block)
                (curve, scalar) = (.p256, key.rawRepresentation)
                verificationKey = VerificationKey(.p256, key.publicKey.derRepresentation)
            case .p384:
                let key = try P384.Signing.PrivateKey(pemRepresentation: block)
                (curve, scalar) = (.p384, key.rawRepresentation)
                verificationKey = VerificationKey(.p384, key.publicKey.derRepresentation)
            case .p521:
                let key = try P521.Signing.PrivateKey(pemRepresentation: block)
                (curve, scalar) = (.p521, key.rawRepresentation)
                verificationKey = VerificationKey(.p521, key.publicKey.derRepresentation)
            case nil: throw EllipticCurve.unknown(name)
            }
        } catch let error as SignatureError {
            throw error
        } catch {
            throw .invalidKey(name: name, reason: "the private key is damaged")
        }
    }

    /// Reads the PEM file of a private key.
    /// - Throws: `FileError` if the file cannot be read, and the errors of `init(pem:named:)`.
    public init(contentsOf url: URL) throws { try self.init(pem: PEMFile.keyText(of: url), named: url.path) }

    /// Returns the DER encoding of the ECDSA signature of a message.
    func signature(of message: Data) throws -> Data {
        switch curve {
        case .p256: try P256.Signing.PrivateKey(rawRepresentation: scalar).signature(for: message).derRepresentation
        case .p384: try P384.Signing.PrivateKey(rawRepresentation: scalar).signature(for: message).derRepresentation
        case .p521: try P521.Signing.PrivateKey(rawRepresentation: scalar).signature(for: message).derRepresentation
        }
    }
}

/// The public key of a signer, on the elliptic curve P-256, P-384 or P-521.
public struct VerificationKey: Sendable, Hashable {
    private let curve: EllipticCurve
    /// The key as a SubjectPublicKeyInfo structure in DER (RFC 5480).
    public let der: Data

    fileprivate init(_ curve: EllipticCurve, _ der: Data) { (self.curve, self.der) = (curve, der) }

    /// Reads a public key in PEM format (`PUBLIC KEY`), as `openssl pkey -pubout` writes it.
    /// - Parameters:
    ///   - text: The text of the PEM file.
    ///   - name: The name of the key in error messages.
    /// - Throws: `SignatureError.invalidKey` if there is no such key, or if it is on another curve.
    public init(pem text: String, named name: String = "the public key") throws(SignatureError) {
        let block = try PEMFile.keyBlock(in: text, labels: ["PUBLIC KEY"], expected: "a public key", name)
        do {
            switch EllipticCurve(named: block) {
            case .p256: self.init(.p256, try P256.Signing.PublicKey(pemRepresentation: block).derRepresentation)
            case .p384: self.init(.p384, try P384.Signing.PublicKey(pemRepresentation: block).derRepresentation)
            case .p521: self.init(.p521, try P521.Signing.PublicKey(pemRepresentation: block).derRepresentation)
            case nil: throw EllipticCurve.unknown(name)
            }
        } catch let error as SignatureError {
            throw error
        } catch {
            throw .invalidKey(name: name, reason: "the public key is damaged")
        }
    }

    /// Reads the PEM file of a public key.
    /// - Throws: `FileError` if the file cannot be read, and the errors of `init(pem:named:)`.
    public init(contentsOf url: URL) throws { try self.init(pem: PEMFile.keyText(of: url), named: url.path) }

    /// The key in PEM format, with lines of 64 characters.
    public var pem: String {
        let lines = der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN PUBLIC KEY-----\n\(lines)\n-----END PUBLIC KEY-----\n"
    }

    /// The identifier of the key in signatures: the SHA-256 digest of `pem`, as 64 hexadecimal digits.
    public var identifier: String { Crypto.SHA256.hash(data: Data(pem.utf8)).hexadecimal }

    /// Whether `signature` is a DER-encoded ECDSA signature of `message` for this key.
    func isValid(_ signature: Data, for message: Data) -> Bool {
        // A key or signature that swift-crypto rejects is not valid.
        switch curve {
        case .p256:
            guard let key = try? P256.Signing.PublicKey(derRepresentation: der),
                let signature = try? P256.Signing.ECDSASignature(derRepresentation: signature)
            else { return false }
            return key.isValidSignature(signature, for: message)
        case .p384:
            guard let key = try? P384.Signing.PublicKey(derRepresentation: der),
                let signature = try? P384.Signing.ECDSASignature(derRepresentation: signature)
            else { return false }
            return key.isValidSignature(signature, for: message)
        case .p521:
            guard let key = try? P521.Signing.PublicKey(derRepresentation: der),
                let signature = try? P521.Signing.ECDSASignature(derRepresentation: signature)
            else { return false }
            return key.isValidSignature(signature, for: message)
        }
    }
}

extension PEMFile {
    /// Returns the text of the PEM file of a key.
    fileprivate static func keyText(of url: URL) throws -> String {
        guard let text = try text(of: url) else {
            throw SignatureError.invalidKey(name: url.path, reason: "it is not a PEM file")
        }
        return text
    }

    /// Returns the first block with one of `labels`.
    fileprivate static func keyBlock(
        in text: String, labels: [String], expected: String, _ name: String
    ) throws(SignatureError) -> String {
        do throws(BlockError) {
            return try firstBlock(in: text, labels: labels)
        } catch {
            let expectation = if case .missing = error { ", expected \(expected) in PEM format" } else { "" }
            throw .invalidKey(name: name, reason: error.reason + expectation)
        }
    }
}

extension EllipticCurve {
    /// The error for a key that names no supported curve.
    fileprivate static func unknown(_ name: String) -> SignatureError {
        .invalidKey(
            name: name,
            reason: "it is damaged or not on an elliptic curve of model signatures, expected P-256, P-384 or P-521")
    }
}

extension Digest {
    /// The digest as hexadecimal digits in lower case.
    var hexadecimal: String { map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined() }
}
