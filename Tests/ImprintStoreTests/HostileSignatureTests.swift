import Crypto
import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintStore

/// Malformed signatures and keys are errors with a plain message.
@Suite struct HostileSignatureTests {
    private let keys = Result { try KeyPair() }

    /// A bundle that is changed by replacing a text in its JSON.
    private static let changedBundles: [(old: String, new: String, message: String)] = [
        ("vnd.dev.sigstore.bundle.v0.3", "vnd.dev.sigstore.bundle.v9", "the bundle has the media type"),
        (#""mediaType""#, #""mediatype""#, "mediaType is missing"),
        (#""dsseEnvelope""#, #""messageSignature""#, "the bundle has no dsseEnvelope"),
        (#""publicKey""#, #""certificate""#, "it was made with a certificate"),
        (#""payload":""#, #""payload":"*"#, "the payload is not base64"),
        (#""sig":""#, #""sig":"="#, "the signature is not base64"),
        (#""sig":"#, #""signature":"#, "sig is missing"),
        (#""payload":"#, #""payload":[],"x":"#, "a value of the wrong type at .dsseEnvelope.payload"),
        ("application/vnd.in-toto+json", "text/plain", "the payload has the type"),
        (#""signatures":["#, #""signatures":[{"sig":""},"#, "the envelope has 2 signatures, expected 1"),
        ("{", "", "is not valid"),
        ("}", "", "is not valid"),
    ]

    @Test("A malformed bundle is an error", arguments: changedBundles.indices)
    func bundles(index: Int) throws {
        let keys = try keys.get()
        let (old, new, message) = Self.changedBundles[index]
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m")
            try Data("model".utf8).write(to: file)
            let bytes = try ModelSignature(signing: file, with: keys.signing).bytes
            let text = String(decoding: bytes, as: UTF8.self)
            let range = try #require(text.range(of: old))
            let changed = folder.appending(path: "m.sig")
            try Data(text.replacingCharacters(in: range, with: new).utf8).write(to: changed)
            let error = #expect(throws: SignatureError.self) { try ModelSignature(contentsOf: changed) }
            #expect(error.map { "\($0)" }?.contains(message) == true, "\(error.map { "\($0)" } ?? "")")
        }
    }

    /// A signed statement that is changed by replacing a text.
    private static let changedStatements: [(old: String, new: String, message: String)] = [
        ("Statement/v1", "Statement/v0.1", "the statement has the type"),
        ("model_signing/signature/v1.0", "slsa.dev/provenance/v1", "the statement has the predicate type"),
        ("model_signing/signature/v1.0", "model_signing/Digests/v0.1", "the statement has the predicate type"),
        (#""predicateType""#, #""predicatetype""#, "predicateType is missing"),
        (#""subject":["#, #""subject":[{"name":"x","digest":{}},"#, "the statement has 2 subjects"),
        (#""method":"files""#, #""method":"tensors""#, "by the method \"tensors\""),
        (#""method":"files""#, #""method":"shards""#, "the shards have no valid size"),
        (#""method":"files""#, #""method":"shards","shard_size":0.5"#, "the shards have no valid size"),
        (#""method":"files""#, #""method":"shards","shard_size":1e300"#, "the shards have no valid size"),
        (#""method":"files""#, #""method":"shards","shard_size":4096"#, "expected a path within the model"),
        (#""hash_type":"sha256""#, #""hash_type":"blake3""#, "the digests are of the type \"blake3\""),
        (#""algorithm":"sha256""#, #""algorithm":"md5""#, "is of the type \"md5\""),
        (#""name":"config.json""#, #""name":"../config.json""#, "expected a path within the model"),
        (#""name":"config.json""#, #""name":"/etc/passwd""#, "expected a path within the model"),
        (#""name":"config.json""#, #""name":"a/./b""#, "expected a path within the model"),
        (#""name":"config.json""#, #""name":"a//b""#, "expected a path within the model"),
        (#""name":"config.json""#, #""name":"a\u0000b""#, "expected a path within the model"),
        (#""name":"config.json""#, #""name":"""#, "expected a path within the model"),
        (#""name":"config.json""#, #""name":".""#, "a model of one file and other files"),
        (#""name":"config.json""#, #""name":"weights/a.bin""#, "lists \"weights/a.bin\" twice"),
        (#""resources":["#, #""resources":[],"x":["#, "the statement lists no files"),
        (#""digest":""#, #""digest":"0"#, "expected 64 hexadecimal digits"),
        (#"{"sha256":""#, #"{"sha256":"0"#, "but the subject has"),
        (#"{"sha256":""#, #"{"sha512":""#, "but the subject has"),
        (#"{"_type""#, #"[{"_type""#, "is not valid"),
    ]

    @Test("An invalid statement is an error, even with a valid signature", arguments: changedStatements.indices)
    func statements(index: Int) throws {
        let keys = try keys.get()
        let (old, new, message) = Self.changedStatements[index]
        try withTemporaryFolder { folder in
            try writeModelFolder(folder)
            var edited = try EditableSignature(ModelSignature(signing: folder, with: keys.signing))
            let range = try #require(edited.statement.range(of: old), "\(edited.statement)")
            edited.statement = edited.statement.replacingCharacters(in: range, with: new)
            try edited.sign(with: keys.signing)
            let signature = try ModelSignature(edited.bytes, named: "edited")
            let error = #expect(throws: SignatureError.self) { try signature.verify(folder, with: keys.verification) }
            #expect(error.map { "\($0)" }?.contains(message) == true, "\(error.map { "\($0)" } ?? "")")
        }
    }

    @Test("A deeply nested, truncated or random bundle is an error") func noise() throws {
        let keys = try keys.get()
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m")
            try Data("model".utf8).write(to: file)
            let bytes = try ModelSignature(signing: file, with: keys.signing).bytes
            let nested = Data(String(repeating: "[", count: 200_000).utf8)
            let nestedValue = Data(#"{"mediaType":"#.utf8) + nested
            let random = Data((0..<1000).map { _ in UInt8.random(in: 0...255) })
            for hostile in [
                Data(), nested, nestedValue, random, Data("null".utf8), Data("[]".utf8), Data("\u{FEFF}{}".utf8),
            ] {
                #expect(throws: SignatureError.self) { try ModelSignature(hostile, named: "x") }
            }
            for length in stride(from: 0, to: bytes.count, by: 7) {
                #expect(throws: SignatureError.self) { try ModelSignature(bytes.prefix(length), named: "x") }
            }
            // A flipped bit may change the name of an unused key, but never makes another model valid.
            try Data("other".utf8).write(to: file)
            for offset in stride(from: 0, to: bytes.count, by: 5) {
                var flipped = bytes
                flipped[offset] ^= 2
                #expect(throws: (any Error).self) {
                    try ModelSignature(flipped, named: "x").verify(file, with: keys.verification)
                }
            }
        }
    }

    @Test("A too large file, a folder and a pipe are errors") func files() throws {
        try withTemporaryFolder { folder in
            let large = folder.appending(path: "large")
            try Data().write(to: large)
            #expect(truncate(large.path, off_t(ModelSignature.maximumByteCount + 1)) == 0)
            #expect(throws: SignatureError.self) { try ModelSignature(contentsOf: large) }
            let pipe = folder.appending(path: "pipe")
            mkfifo(pipe.path, 0o600)
            for file in [folder, pipe, folder.appending(path: "missing"), URL(filePath: "/dev/zero")] {
                #expect(throws: FileError.self) { try ModelSignature(contentsOf: file) }
                #expect(throws: FileError.self) { try VerificationKey(contentsOf: file) }
            }
        }
    }

    @Test(
        "A text without a usable key is an error with the reason",
        arguments: [
            ("", "found no PEM block, expected a private key"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
                "found \"CERTIFICATE\", expected a private key"
            ),
            (
                "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
                "found \"PUBLIC KEY\", expected a private key"
            ),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "is damaged or not on an elliptic curve"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA", "the block \"PRIVATE KEY\" is incomplete: it has no END line."),
            (
                "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----BEGIN X-----\nAAAA\n-----END X-----",
                "the block \"EC PRIVATE KEY\" is incomplete: it has no END line."
            ),
            ("-----BEGIN PRIVATE KEY-----\n*\n-----END PRIVATE KEY-----", "is damaged or not on an elliptic curve"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----",
                "the key is encrypted"
            ),
            (
                "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END EC PRIVATE KEY-----",
                "the key is encrypted"
            ),
            ("-----BEGIN -----", "found \"\""),
        ])
    func keys(text: String, message: String) {
        let error = #expect(throws: SignatureError.self) { try SigningKey(pem: text) }
        #expect(error.map { "\($0)" }?.contains(message) == true, "\(error.map { "\($0)" } ?? "")")
        #expect(throws: SignatureError.self) { try VerificationKey(pem: text) }
    }

    private static let openSSL = "/usr/bin/openssl"

    @Test(
        "Keys of other kinds are errors", .enabled(if: FileManager.default.isExecutableFile(atPath: openSSL)),
        arguments: [
            ("openssl genpkey -algorithm ed25519 -out key.pem", "expected P-256, P-384 or P-521"),
            (
                "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem",
                "expected P-256, P-384 or P-521"
            ),
            ("openssl ecparam -name secp256k1 -genkey -noout -out key.pem", "expected P-256, P-384 or P-521"),
            (
                "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -out key.pem",
                "expected P-256, P-384 or P-521"
            ),
            (
                "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -pass pass:secret -out key.pem",
                "the key is encrypted"
            ),
        ])
    func otherKeys(command: String, message: String) throws {
        try withTemporaryFolder { folder in
            let made = try run(
                URL(filePath: "/bin/sh"),
                ["-c", "\(command) && openssl pkey -in key.pem -passin pass:secret -pubout -out public.pem"],
                folder: folder)
            try #require(made.status == 0, "\(made.errors)")
            let error = #expect(throws: SignatureError.self) {
                try SigningKey(contentsOf: folder.appending(path: "key.pem"))
            }
            #expect(error.map { "\($0)" }?.contains(message) == true, "\(error.map { "\($0)" } ?? "")")
            if message.hasPrefix("expected") {
                #expect(throws: SignatureError.self) {
                    try VerificationKey(contentsOf: folder.appending(path: "public.pem"))
                }
            }
        }
    }
}
