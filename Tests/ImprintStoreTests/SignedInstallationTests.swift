import Crypto
import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// A store verifies model signatures, and does not replace a signed model with an older one.
@Suite struct SignedInstallationTests {
    private let keys = Result { try KeyPair() }
    private let ed25519 = Curve25519.Signing.PrivateKey()

    /// Models with the versions 1, 2, 3 and 3, and one without a version.
    private static let versions = Result { () throws -> [TestModel] in
        try [1, 2, 3, 3, nil].enumerated().map { try TestModel(seed: 10 + $0, version: $1) }
    }

    /// The kinds of signatures.
    enum Scheme: CaseIterable {
        case bundle, ed25519
    }

    /// Installs a model with its signature, both from files.
    @discardableResult
    private func install(
        _ model: TestModel, into store: ModelStore, _ scheme: Scheme = .bundle, key: KeyPair? = nil,
        versions: AcceptedVersions = .increasing()
    ) async throws -> InstalledModel {
        let keys = try key ?? keys.get()
        return try await model.inFile { file in
            let beside = file.appendingPathExtension("sig")
            switch scheme {
            case .bundle:
                try ModelSignature(signing: file, with: keys.signing).write(to: beside)
                return try await store.install(
                    from: file,
                    verification: Verification(
                        modelSignature: .file(beside), key: keys.verification, versions: versions))
            case .ed25519:
                try ed25519.signature(for: model.bytes).write(to: beside)
                return try await store.install(
                    from: file,
                    verification: Verification(
                        publicKey: ed25519.publicKey.rawRepresentation, signature: .file(beside), versions: versions))
            }
        }
    }

    /// Expects that a store rejects a model as outdated, and keeps the model in use.
    private func expectOutdated(
        _ model: TestModel, _ store: ModelStore, _ scheme: Scheme = .bundle, found: Int?, expected: Int,
        versions: AcceptedVersions = .increasing()
    ) async throws {
        let before = try store.current
        let error = await #expect(throws: StoreError.self) {
            try await install(model, into: store, scheme, versions: versions)
        }
        guard case .outdated(_, found, expected)? = error else {
            Issue.record("\(error.map { "\($0)" } ?? "")")
            return
        }
        #expect(try store.current == before)
    }

    @Test("A signed model is installed, and the index records its key and version", arguments: Scheme.allCases)
    func signed(scheme: Scheme) async throws {
        let models = try Self.versions.get()
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            let installed = try await install(models[1], into: store, scheme)
            let key = scheme == .bundle ? try keys.get().verification.der : ed25519.publicKey.rawRepresentation
            #expect(installed.version == 2 && installed.publicKey == key && installed.sha256 == models[1].sha256)
            #expect(try ModelStore(at: folder).current == installed && store.answer == models[1].answer)
        }
    }

    @Test("A store rejects a validly signed model that is older than the newest one", arguments: Scheme.allCases)
    func replay(scheme: Scheme) async throws {
        let models = try Self.versions.get()
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            try await install(models[0], into: store, scheme)
            try await install(models[2], into: store, scheme)
            for reopened in [store, try ModelStore(at: folder)] {
                try await expectOutdated(models[1], reopened, scheme, found: 2, expected: 4)
                try await expectOutdated(models[0], reopened, scheme, found: 1, expected: 4)
                // Another file with the same version is not newer.
                try await expectOutdated(models[3], reopened, scheme, found: 3, expected: 4)
                try await expectOutdated(models[4], reopened, scheme, found: nil, expected: 4)
            }
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: Download.fileName).path))
            // The same file again is not a replay.
            try await install(models[2], into: store, scheme)
            #expect(try store.previous?.sha256 == models[0].sha256)
        }
    }

    @Test("A rollback works, and does not open the store for older models") func rollBack() async throws {
        let models = try Self.versions.get()
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            for model in models.prefix(3) { try await install(model, into: store) }
            #expect(try store.rollBack().version == 2)
            #expect(try store.answer == models[1].answer)
            let reopened = try ModelStore(at: folder)
            try await expectOutdated(models[0], reopened, found: 1, expected: 4)
            // Not even the model in use is installed again.
            try await expectOutdated(models[1], reopened, found: 2, expected: 4)
            try await install(models[2], into: reopened)
            #expect(try reopened.answer == models[2].answer)
            #expect(try reopened.previous?.version == 2)
        }
    }

    @Test("An app can accept older models, and the newest version stays recorded") func anyVersion() async throws {
        let models = try Self.versions.get()
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            try await install(models[2], into: store)
            try await install(models[0], into: store, versions: .any)
            #expect(try store.current?.version == 1)
            try await expectOutdated(models[1], store, found: 2, expected: 4)
        }
    }

    @Test("A minimum version protects the first installation") func minimum() async throws {
        let models = try Self.versions.get()
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            for (model, found) in [(models[0], 1), (models[1], 2), (models[4], nil)] {
                try await expectOutdated(model, store, found: found, expected: 3, versions: .increasing(from: 3))
            }
            try await install(models[2], into: store, versions: .increasing(from: 3))
            try await install(models[2], into: store, versions: .increasing(from: 3))
        }
    }

    @Test("Each key has its own newest version, and a digest accepts any version") func otherKeys() async throws {
        let models = try Self.versions.get()
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            try await install(models[2], into: store)
            try await install(models[0], into: store, key: KeyPair())
            try await install(models[1], into: store, .ed25519)
            try await expectOutdated(models[1], store, found: 2, expected: 4)
            try await models[0].install(into: store)
            #expect(try store.current?.version == 1 && store.current?.publicKey == nil)
            try await expectOutdated(models[1], store, found: 2, expected: 4)
        }
    }

    @Test("Without versions, a store accepts all models of a signer") func unversioned() async throws {
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            for model in [TestModel.all[0], TestModel.all[1], TestModel.all[0]] {
                try await install(model, into: store)
                #expect(try store.answer == model.answer)
            }
        }
    }

    @Test("An index of an earlier version of Imprint is read") func earlierIndex() async throws {
        let models = try Self.versions.get()
        try await withTemporaryFolder { folder in
            try await models[0].install(into: ModelStore(at: folder))
            let file = folder.appending(path: "models.json")
            var index = try #require(JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
            var current = try #require(index["current"] as? [String: Any])
            current["version"] = nil
            index["current"] = current
            try JSONSerialization.data(withJSONObject: index).write(to: file)
            let store = try ModelStore(at: folder)
            #expect(try store.current?.version == nil && store.answer == models[0].answer)
            try await install(models[1], into: store)
            #expect(try store.previous?.sha256 == models[0].sha256)
        }
    }

    @Test("A model with another digest, and a signature of a folder or another key, are errors") func invalid()
        async throws
    {
        let (models, keys, stranger) = (try Self.versions.get(), try keys.get(), try KeyPair())
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder.appending(path: "store"))
            try await install(models[0], into: store)
            let (file, beside) = (folder.appending(path: "m.imprint"), folder.appending(path: "m.sig"))
            try models[1].bytes.write(to: file)
            try ModelSignature(signing: file, with: keys.signing).write(to: beside)
            var flipped = models[1].bytes
            flipped[flipped.count - 1] ^= 1
            try flipped.write(to: file)
            let found = hexadecimal(SHA256.hash(data: flipped))
            let verification = try Verification(modelSignature: .file(beside), key: keys.verification)
            await #expect(throws: StoreError.wrongDigest(url: file.path, found: found, expected: models[1].sha256)) {
                try await store.install(from: file, verification: verification)
            }
            try models[1].bytes.write(to: file)
            let other = try Verification(modelSignature: .file(beside), key: stranger.verification)
            await #expect(
                throws: StoreError.invalidSignature(
                    .wrongKey(
                        name: beside.path, found: keys.verification.identifier,
                        expected: stranger.verification.identifier))
            ) { try await store.install(from: file, verification: other) }
            let inFolder = folder.appending(path: "models")
            try FileManager.default.createDirectory(at: inFolder, withIntermediateDirectories: true)
            try models[1].bytes.write(to: inFolder.appending(path: "m.imprint"))
            try ModelSignature(signing: inFolder, with: keys.signing).write(to: beside)
            let error = await #expect(throws: StoreError.self) {
                try await store.install(from: file, verification: verification)
            }
            #expect("\(error.map { "\($0)" } ?? "")".contains("it signs a folder or parts of a file"))
            try Data(count: Verification.maximumBundleLength + 1).write(to: beside)
            await #expect(throws: StoreError.self) { try await store.install(from: file, verification: verification) }
            #expect(try store.current?.sha256 == models[0].sha256)
        }
    }

    @Test("Malformed signatures are errors before any download") func malformed() throws {
        let (keys, stranger) = (try keys.get(), try KeyPair())
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try TestModel.all[0].bytes.write(to: file)
            let bytes = try ModelSignature(signing: file, with: keys.signing).bytes
            _ = try Verification(modelSignature: .bytes(bytes), key: keys.verification)
            #expect(throws: StoreError.self) {
                try Verification(modelSignature: .bytes(Data()), key: keys.verification)
            }
            #expect(throws: StoreError.self) {
                try Verification(modelSignature: .bytes(bytes), key: stranger.verification)
            }
            #expect(throws: StoreError.self) {
                try Verification(modelSignature: .bytes(bytes), key: keys.verification, sha256: "abc")
            }
        }
    }

    @Test("A signature may come from a server") func fromServer() async throws {
        let (model, keys) = (try Self.versions.get()[1], try keys.get())
        let signature = try await model.inFile { try ModelSignature(signing: $0, with: keys.signing).bytes }
        let server = try RawServer { request, connection in
            connection.sendFile(request.path == "/m.sig" ? signature : model.bytes, tag: "\"1\"", for: request)
        }
        defer { server.stop() }
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            let beside = try #require(URL(string: "/m.sig", relativeTo: server.url))
            try await store.install(
                from: server.url, verification: Verification(modelSignature: .file(beside), key: keys.verification),
                limits: .patient)
            #expect(try store.answer == model.answer && store.current?.version == 2)
        }
    }
}
