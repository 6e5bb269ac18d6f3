internal import Crypto
public import Foundation
internal import ImprintCore
internal import ImprintStore

/// The private key that identifies a device to a SuperLink.
///
/// Flower verifies an ECDSA signature with SHA-256 on every request. The key never leaves the device. `FleetClient` creates its key file if it
/// does not exist. To register the public key before that, create the file with `init(creatingIfMissing:)`, and register `openSSHPublicKey`.
public struct FleetKey: Sendable {
    private enum Curve: Sendable { case p256, p384 }

    private let curve: Curve
    /// The raw representation; the types of swift-crypto are not `Sendable`.
    private let privateKey: Data
    /// The public key in PEM format, which requests contain.
    let publicPEM: String
    /// The public key as an uncompressed point.
    private let point: Data

    private init(_ key: P256.Signing.PrivateKey) {
        (curve, privateKey) = (.p256, key.rawRepresentation)
        (publicPEM, point) = (key.publicKey.pemRepresentation.line, key.publicKey.x963Representation)
    }

    private init(_ key: P384.Signing.PrivateKey) {
        (curve, privateKey) = (.p384, key.rawRepresentation)
        (publicPEM, point) = (key.publicKey.pemRepresentation.line, key.publicKey.x963Representation)
    }

    /// Creates a random key on the curve P-384, the curve that Flower uses.
    init() { self.init(P384.Signing.PrivateKey()) }

    /// Reads a private key in PEM format, on the curve P-256 or P-384.
    /// - Throws: `FileError` if the file cannot be read, `FleetError.invalidKey` if it does not contain such a key.
    public init(contentsOf url: URL) throws {
        guard let text = try PEMFile.text(of: url) else {
            throw FleetError.invalidKey(path: url.path, reason: "it is not a PEM file")
        }
        do {
            let block = try PEMFile.firstBlock(in: text, labels: ["PRIVATE KEY", "EC PRIVATE KEY"])
            switch EllipticCurve(named: block) {
            case .p256: self.init(try P256.Signing.PrivateKey(pemRepresentation: block))
            case .p384: self.init(try P384.Signing.PrivateKey(pemRepresentation: block))
            case .p521, nil:
                throw FleetError.invalidKey(path: url.path, reason: "it is damaged or on another elliptic curve")
            }
        } catch let error as FleetError {
            throw error
        } catch let error as PEMFile.BlockError {
            throw FleetError.invalidKey(path: url.path, reason: error.reason)
        } catch {
            throw FleetError.invalidKey(path: url.path, reason: "it is damaged")
        }
    }

    /// Reads the key at `url`, or creates a key there if the file does not exist.
    ///
    /// Only the user can read the new file. The public key in the OpenSSH format is written to a file beside it, with the extension
    /// `pub`. If several processes create the file at the same time, all of them get the same key.
    /// - Throws: The errors of `init(contentsOf:)`, `FileError` if the file cannot be written.
    public init(creatingIfMissing url: URL) throws {
        if !FileManager.default.fileExists(atPath: url.path) { try Self.createFile(at: url) }
        // Another process may have created the file.
        try self.init(contentsOf: url)
    }

    /// Creates the file of a random key, with its public key beside it, unless the file exists.
    ///
    /// If several processes or tasks create it at the same time, one of them does, and the others wait until it has finished.
    private static func createFile(at url: URL) throws {
        let lock = url.path + ".lock"
        while true {
            let descriptor = retryingInterrupts { open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600) }
            guard descriptor >= 0 else { throw FileError.cannotWrite(url.path, errno: errno) }
            // Closing the lock file also unlocks it, and so does the end of a process.
            defer { close(descriptor) }
            guard retryingInterrupts({ flock(descriptor, LOCK_EX) }) == 0 else {
                throw FileError.cannotWrite(url.path, errno: errno)
            }
            // Another process may have removed the lock file since it was opened; others then lock a new one.
            guard isSame(lock, descriptor) else { continue }
            defer { unlink(lock) }
            if access(url.path, F_OK) == 0 { return }
            let key = P384.Signing.PrivateKey()
            try AtomicFile.write(
                Array(FleetKey(key).openSSHPublicKey.utf8), to: url.appendingPathExtension("pub"), isLocked: true)
            try AtomicFile.write(
                Array(key.pemRepresentation.line.utf8), to: url, permissions: 0o600, isLocked: true)
            return
        }
    }

    /// Whether a path names an open file.
    private static func isSame(_ path: String, _ descriptor: Int32) -> Bool {
        var (named, opened) = (stat(), stat())
        return lstat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino
            && named.st_dev == opened.st_dev
    }

    /// The public key as a line in the OpenSSH format, which `flwr supernode register` reads from a file.
    public var openSSHPublicKey: String {
        let name = curve == .p256 ? "nistp256" : "nistp384"
        // Strings after their lengths (RFC 5656, section 3.1).
        var blob = Data()
        for part in [Data("ecdsa-sha2-\(name)".utf8), Data(name.utf8), point] {
            withUnsafeBytes(of: UInt32(part.count).bigEndian) { blob += $0 }
            blob += part
        }
        return "ecdsa-sha2-\(name) \(blob.base64EncodedString())\n"
    }

    /// Returns the DER encoding of an ECDSA signature with SHA-256.
    func signature(for message: String) throws -> Data {
        let digest = Crypto.SHA256.hash(data: Data(message.utf8))
        return switch curve {
        case .p256: try P256.Signing.PrivateKey(rawRepresentation: privateKey).signature(for: digest).derRepresentation
        case .p384: try P384.Signing.PrivateKey(rawRepresentation: privateKey).signature(for: digest).derRepresentation
        }
    }
}

extension String {
    /// The text with a newline at its end, as OpenSSL and Python write PEM files.
    fileprivate var line: String { hasSuffix("\n") ? self : self + "\n" }
}
