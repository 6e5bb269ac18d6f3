import Crypto
import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// A key pair for tests.
struct KeyPair {
    let signing: SigningKey
    var verification: VerificationKey { signing.verificationKey }

    /// Creates a random key on P-256.
    init() throws { signing = try SigningKey(pem: P256.Signing.PrivateKey().pemRepresentation) }

    /// Writes `key.pem` and `public.pem` into a folder.
    static func write(to folder: URL) throws {
        let key = P256.Signing.PrivateKey()
        try Data(key.pemRepresentation.utf8).write(to: folder.appending(path: "key.pem"))
        try Data(key.publicKey.pemRepresentation.utf8).write(to: folder.appending(path: "public.pem"))
    }
}

/// A part of a signature file that tests change.
struct EditableSignature {
    var bundle: [String: Any]

    init(_ signature: ModelSignature) throws { try self.init(signature.bytes) }

    init(_ bytes: Data) throws { bundle = try JSONSerialization.jsonObject(with: bytes) as? [String: Any] ?? [:] }

    var bytes: Data { get throws { try JSONSerialization.data(withJSONObject: bundle) } }

    var envelope: [String: Any] {
        get { bundle["dsseEnvelope"] as? [String: Any] ?? [:] }
        set { bundle["dsseEnvelope"] = newValue }
    }

    /// The statement as text.
    var statement: String {
        get {
            let payload = Data(base64Encoded: envelope["payload"] as? String ?? "") ?? Data()
            return String(decoding: payload, as: UTF8.self)
        }
        set { envelope["payload"] = Data(newValue.utf8).base64EncodedString() }
    }

    /// Signs the statement again.
    mutating func sign(with key: SigningKey) throws {
        let message = SignatureBundle.signedMessage(Data(statement.utf8))
        envelope["signatures"] = [["sig": try key.signature(of: message).base64EncodedString(), "keyid": ""]]
    }
}

/// Writes the files of a model folder: "config.json", "weights/a.bin", "weights/b.bin", and an empty file.
func writeModelFolder(_ folder: URL) throws {
    for (path, text) in [
        ("config.json", "{}"), ("weights/a.bin", "first weights"), ("weights/b.bin", "second weights"),
        ("weights-c", ""),
    ] {
        let file = folder.appending(path: path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }
}

/// A change of a model folder that invalidates its signature, with a part of the error message.
struct FolderChange: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let message: String
    let run: @Sendable (URL) throws -> Void

    static let all = [
        FolderChange(testDescription: "a flipped bit", message: "weights/a.bin has the SHA-256") { folder in
            let file = folder.appending(path: "weights/a.bin")
            var bytes = try Data(contentsOf: file)
            bytes[3] ^= 1
            try bytes.write(to: file)
        },
        FolderChange(testDescription: "a longer file", message: "config.json has the SHA-256") { folder in
            try Data("{} ".utf8).write(to: folder.appending(path: "config.json"))
        },
        FolderChange(testDescription: "a removed file", message: "weights/b.bin is missing") { folder in
            try FileManager.default.removeItem(at: folder.appending(path: "weights/b.bin"))
        },
        FolderChange(testDescription: "an added file", message: "weights/c.bin is not signed") { folder in
            try Data("c".utf8).write(to: folder.appending(path: "weights/c.bin"))
        },
        FolderChange(testDescription: "an added hidden file", message: ".hidden is not signed") { folder in
            try Data().write(to: folder.appending(path: ".hidden"))
        },
        FolderChange(testDescription: "a renamed file", message: "weights/d.bin is not signed") { folder in
            try FileManager.default.moveItem(
                at: folder.appending(path: "weights/b.bin"), to: folder.appending(path: "weights/d.bin"))
        },
        FolderChange(testDescription: "swapped files", message: "weights/b.bin has the SHA-256") { folder in
            try Data("second weights".utf8).write(to: folder.appending(path: "weights/a.bin"))
            try Data("first weights".utf8).write(to: folder.appending(path: "weights/b.bin"))
        },
    ]
}
