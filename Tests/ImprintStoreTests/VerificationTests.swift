import Crypto
import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintStore

/// Unverified files are never loaded.
@Suite struct VerificationTests {
    private let model = TestModel.all[0]
    private let key = Curve25519.Signing.PrivateKey()

    private var publicKey: Data { key.publicKey.rawRepresentation }

    /// Calls `body` with a store with another model in use, and checks that this model stays in use.
    private func expectError(_ expected: StoreError, _ body: (ModelStore) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            try await TestModel.all[1].install(into: store)
            await #expect(throws: expected) { try await body(store) }
            #expect(try store.answer == TestModel.all[1].answer)
            #expect(try ModelStore(at: folder).answer == TestModel.all[1].answer)
            #expect(try modelFiles(in: folder) == [TestModel.all[1].sha256 + ".imprint"])
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: Download.fileName).path))
        }
    }

    @Test("A valid signature is accepted, with or without a digest", arguments: [true, false])
    func signed(withDigest: Bool) async throws {
        let signature = try key.signature(for: model.bytes)
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            let installed = try await model.inFile { file in
                let beside = file.appendingPathExtension("signature")
                try signature.write(to: beside)
                return try await store.install(
                    from: file,
                    verification: Verification(
                        publicKey: publicKey, signature: .file(beside),
                        sha256: withDigest ? model.sha256.uppercased() : nil))
            }
            #expect(installed.sha256 == model.sha256)
            #expect(try store.current?.publicKey == publicKey)
            #expect(try store.answer == model.answer)
        }
    }

    private static let openSSL = "/usr/bin/openssl"

    @Test("Signatures from OpenSSL are valid", .enabled(if: FileManager.default.isExecutableFile(atPath: openSSL)))
    func signedByOpenSSL() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "model.imprint")
            try model.bytes.write(to: file)
            // The commands of docs/how-to/model-store.md.
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            process.currentDirectoryURL = folder
            process.arguments = [
                "-c",
                """
                openssl genpkey -algorithm ed25519 -out key.pem &&
                openssl pkey -in key.pem -pubout -outform DER | tail -c 32 > public.key &&
                openssl pkeyutl -sign -inkey key.pem -rawin -in model.imprint -out model.imprint.signature
                """,
            ]
            try withoutBlockedSignals { try process.run() }
            process.waitUntilExit()
            let store = try ModelStore(at: folder.appending(path: "store"))
            let publicKey = try Data(contentsOf: folder.appending(path: "public.key"))
            try await store.install(
                from: file,
                verification: Verification(
                    publicKey: publicKey, signature: .file(file.appendingPathExtension("signature"))))
            #expect(try store.answer == model.answer)
        }
    }

    @Test("A signature may come from the server if it has the right length")
    func fetchedSignature() async throws {
        let (bytes, signature) = (model.bytes, try key.signature(for: model.bytes))
        let server = try RawServer { request, connection in
            let tail = request.path == "/long" ? "more" : ""
            connection.sendFile(
                request.path == "/model.imprint" ? bytes : signature + Data(tail.utf8), tag: "\"1\"", for: request)
        }
        defer { server.stop() }
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            let long = try #require(URL(string: "/long", relativeTo: server.url))
            let error = await #expect(throws: StoreError.self) {
                try await store.install(
                    from: server.url, verification: Verification(publicKey: publicKey, signature: .file(long)),
                    limits: .patient)
            }
            guard case .invalidVerification("signature", _, "the 64 bytes of an Ed25519 signature") = error else {
                Issue.record("\(error.map { "\($0)" } ?? "")")
                return
            }
            // The model was not requested.
            #expect(server.requests.map(\.path) == ["/long"])
            let right = try #require(URL(string: "/signature", relativeTo: server.url))
            try await store.install(
                from: server.url, verification: Verification(publicKey: publicKey, signature: .file(right)),
                limits: .patient)
            #expect(try store.answer == model.answer)
        }
    }

    @Test("A flipped bit anywhere is an error", arguments: [0, 7, 8, 100, 1000, -1])
    func flipped(_ offset: Int) async throws {
        var damaged = model.bytes
        damaged[offset < 0 ? damaged.count - 1 : offset] ^= 4
        let found = hexadecimal(SHA256.hash(data: damaged))
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "damaged.imprint")
            try damaged.write(to: file)
            try await expectError(.wrongDigest(url: file.path, found: found, expected: model.sha256)) { store in
                try await store.install(from: file, verification: model.verification)
            }
            let signature = try key.signature(for: model.bytes)
            try await expectError(.wrongSignature(url: file.path)) { store in
                try await store.install(
                    from: file, verification: Verification(publicKey: publicKey, signature: .bytes(signature)))
            }
        }
    }

    @Test("A signature of another key or file is an error, even with the right digest")
    func wrongSignatures() async throws {
        let stranger = Curve25519.Signing.PrivateKey()
        var flipped = try key.signature(for: model.bytes)
        flipped[10] ^= 1
        let wrong = [
            flipped, Data(count: 64), try stranger.signature(for: model.bytes),
            try key.signature(for: TestModel.all[2].bytes),
        ]
        try await model.inFile { file in
            for signature in wrong {
                try await expectError(.wrongSignature(url: file.path)) { store in
                    try await store.install(
                        from: file,
                        verification: Verification(
                            publicKey: publicKey, signature: .bytes(signature), sha256: model.sha256))
                }
            }
            let signature = try key.signature(for: model.bytes)
            try await expectError(.wrongSignature(url: file.path)) { store in
                try await store.install(
                    from: file,
                    verification: Verification(
                        publicKey: stranger.publicKey.rawRepresentation, signature: .bytes(signature)))
            }
        }
    }

    @Test("Malformed digests, keys and signatures are errors before any download")
    func forms() throws {
        for digest in [
            "", "abc", String(repeating: "g", count: 64), String(repeating: "a", count: 65),
            "../" + model.sha256.dropFirst(3),
        ] {
            #expect(throws: StoreError.self) { try Verification(sha256: digest) }
            #expect(throws: StoreError.self) {
                try Verification(publicKey: publicKey, signature: .bytes(Data(count: 64)), sha256: digest)
            }
        }
        for count in [0, 31, 33, 44] {
            #expect(throws: StoreError.self) {
                try Verification(publicKey: Data(count: count), signature: .bytes(Data(count: 64)))
            }
        }
        #expect(throws: StoreError.self) { try Verification(publicKey: publicKey, signature: .bytes(Data(count: 63))) }
    }

    @Test("A verified file that does not run does not replace a working model")
    func unusable() async throws {
        let overflowing = try TestModel(seed: 1, scale: 1e20)
        let notAModel = Data("no model".utf8)
        for bytes in [overflowing.bytes, notAModel, Data()] {
            try await withTemporaryFolder { folder in
                let file = folder.appending(path: "x.imprint")
                try bytes.write(to: file)
                let store = try ModelStore(at: folder.appending(path: "store"))
                try await TestModel.all[1].install(into: store)
                await #expect {
                    try await store.install(
                        from: file, verification: Verification(sha256: hexadecimal(SHA256.hash(data: bytes))))
                } throws: { error in
                    if case .unusable? = error as? StoreError { true } else { false }
                }
                #expect(try store.answer == TestModel.all[1].answer)
                #expect(try modelFiles(in: folder.appending(path: "store")) == [TestModel.all[1].sha256 + ".imprint"])
            }
        }
    }

    @Test("Folders, pipes and devices are errors, and too large files are not copied") func otherFiles() async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder.appending(path: "store"))
            let pipe = folder.appending(path: "pipe")
            mkfifo(pipe.path, 0o600)
            for source in [folder, pipe, URL(filePath: "/dev/zero"), folder.appending(path: "missing")] {
                await #expect(throws: FileError.self) {
                    try await store.install(from: source, verification: model.verification)
                }
            }
            try await model.inFile { file in
                let limits = DownloadLimits(byteCount: model.bytes.count - 1)
                let expected = StoreError.tooLarge(
                    url: file.path, byteCount: model.bytes.count, limit: model.bytes.count - 1)
                await #expect(throws: expected) {
                    try await store.install(from: file, verification: model.verification, limits: limits)
                }
                try await store.install(
                    from: file, verification: model.verification, limits: DownloadLimits(byteCount: model.bytes.count))
            }
        }
    }
}
