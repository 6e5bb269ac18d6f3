internal import Crypto
public import Foundation
package import ImprintCore

/// A private key that signs models, on the elliptic curve P-256, P-384 or P-521.
///
/// OpenSSL creates one:
///
///     openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
///     openssl pkey -in key.pem -pubout -out public.pem
public struct SigningKey: Sendable {
    private let curve: Curve
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
        let block = try PEMBlock.first(
            in: text, labels: ["PRIVATE KEY", "EC PRIVATE KEY"], expected: "a private key", name)
        do {
            switch Curve(named: block) {
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
            case nil: throw Curve.unknown(name)
            }
        } catch let error as SignatureError {
            throw error
        } catch {
            throw .invalidKey(name: name, reason: "the private key is damaged")
        }
    }

    /// Reads the PEM file of a private key.
    /// - Throws: `FileError` if the file cannot be read, and the errors of `init(pem:named:)`.
    public init(contentsOf url: URL) throws { try self.init(pem: PEMBlock.text(of: url), named: url.path) }

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
    private let curve: Curve
    /// The key as a SubjectPublicKeyInfo structure in DER (RFC 5480).
    public let der: Data

    fileprivate init(_ curve: Curve, _ der: Data) { (self.curve, self.der) = (curve, der) }

    /// Reads a public key in PEM format (`PUBLIC KEY`), as `openssl pkey -pubout` writes it.
    /// - Parameters:
    ///   - text: The text of the PEM file.
    ///   - name: The name of the key in error messages.
    /// - Throws: `SignatureError.invalidKey` if there is no such key, or if it is on another curve.
    public init(pem text: String, named name: String = "the public key") throws(SignatureError) {
        let block = try PEMBlock.first(in: text, labels: ["PUBLIC KEY"], expected: "a public key", name)
        do {
            switch Curve(named: block) {
            case .p256: self.init(.p256, try P256.Signing.PublicKey(pemRepresentation: block).derRepresentation)
            case .p384: self.init(.p384, try P384.Signing.PublicKey(pemRepresentation: block).derRepresentation)
            case .p521: self.init(.p521, try P521.Signing.PublicKey(pemRepresentation: block).derRepresentation)
            case nil: throw Curve.unknown(name)
            }
        } catch let error as SignatureError {
            throw error
        } catch {
            throw .invalidKey(name: name, reason: "the public key is damaged")
        }
    }

    /// Reads the PEM file of a public key.
    /// - Throws: `FileError` if the file cannot be read, and the errors of `init(pem:named:)`.
    public init(contentsOf url: URL) throws { try self.init(pem: PEMBlock.text(of: url), named: url.path) }

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

/// An elliptic curve with its hash function: SHA-256, SHA-384 or SHA-512.
private enum Curve: Sendable, CaseIterable {
    case p256, p384, p521

    /// The object identifier of the curve in DER (RFC 5480).
    private var identifier: [UInt8] {
        switch self {
        case .p256: [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        case .p384: [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22]
        case .p521: [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x23]
        }
    }

    /// Finds the curve that a key in PEM format names.
    ///
    /// swift-crypto reads a PKCS #8 key of any curve of 256 bits as a key on P-256.
    init?(named block: String) {
        let lines = block.split(separator: "\n").dropFirst().dropLast()
        guard let der = Data(base64Encoded: lines.joined()),
            let curve = Self.allCases.first(where: { der.firstRange(of: Data($0.identifier)) != nil })
        else { return nil }
        self = curve
    }

    /// The error for a key that names no supported curve.
    static func unknown(_ name: String) -> SignatureError {
        .invalidKey(
            name: name,
            reason: "it is damaged or not on an elliptic curve of model signatures, expected P-256, P-384 or P-521")
    }
}

/// A PEM file (RFC 7468).
package enum PEMFile {
    /// The largest file that is read; a file of keys and certificates is much smaller.
    private static let maximumByteCount = 1 << 16

    /// Returns the text of a PEM file; nil if it is too large or not UTF-8.
    /// - Throws: `FileError` if the file cannot be read.
    package static func text(of url: URL) throws(FileError) -> String? {
        try RegularFile(url.path).text(limit: maximumByteCount)
    }
}

/// The blocks of a PEM file.
private enum PEMBlock {
    static func text(of url: URL) throws -> String {
        guard let text = try PEMFile.text(of: url) else {
            throw SignatureError.invalidKey(name: url.path, reason: "it is not a PEM file")
        }
        return text
    }

    /// Returns the first block with one of `labels`, such as "PUBLIC KEY", including its first and last line.
    static func first(
        in text: String, labels: [String], expected: String, _ name: String
    ) throws(SignatureError) -> String {
        var found: [String] = []
        var block: [Substring] = []
        var label: Substring?
        for line in text.split(whereSeparator: \.isNewline) {
            if let name = Self.label(of: line, "BEGIN") {
                (label, block) = (name, [])
                found.append(String(name.prefix(40)))
            }
            block.append(line)
            guard let current = label, Self.label(of: line, "END") == current else { continue }
            label = nil
            guard labels.contains(String(current)) || current == "ENCRYPTED PRIVATE KEY" else { continue }
            guard current != "ENCRYPTED PRIVATE KEY", !block.contains(where: { $0.contains("ENCRYPTED") }) else {
                throw .invalidKey(
                    name: name, reason: "the key is encrypted. Decrypt it with openssl pkey -in FILE -out NEWFILE")
            }
            return block.joined(separator: "\n")
        }
        let blocks = found.isEmpty ? "no PEM block" : found.map(\.debugDescription).joined(separator: ", ")
        throw .invalidKey(name: name, reason: "found \(blocks), expected \(expected) in PEM format")
    }

    private static func label(of line: Substring, _ kind: String) -> Substring? {
        let start = "-----\(kind) "
        guard line.hasPrefix(start), line.hasSuffix("-----"), line.count >= start.count + 5 else { return nil }
        return line.dropFirst(start.count).dropLast(5)
    }
}

extension Digest {
    /// The digest as hexadecimal digits in lower case.
    var hexadecimal: String { map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined() }
}
