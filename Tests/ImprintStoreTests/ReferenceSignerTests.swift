import Crypto
import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// The reference implementation, `model_signing`, reads the signatures of Imprint, and Imprint reads its signatures.
@Suite(.enabled(if: ReferenceSigner.python != nil, Comment(rawValue: ReferenceSigner.skipReason)))
struct ReferenceSignerTests {
    /// Calls `body` with a folder that contains the keys, the file "model.bin" and the folder "model".
    private func withModels(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try KeyPair.write(to: folder)
            try Data((0..<3000).map { UInt8(truncatingIfNeeded: $0 &* 7) }).write(
                to: folder.appending(path: "model.bin"))
            try writeModelFolder(folder.appending(path: "model"))
            try body(folder)
        }
    }

    private func sign(_ model: String, _ folder: URL, to output: String = "model.sig") throws {
        let key = try SigningKey(contentsOf: folder.appending(path: "key.pem"))
        let output = folder.appending(path: output)
        try ModelSignature(signing: folder.appending(path: model), with: key, ignoring: [output]).write(to: output)
    }

    private func verify(_ model: String, _ folder: URL, signature: String = "model.sig") throws -> SignedModel {
        let key = try VerificationKey(contentsOf: folder.appending(path: "public.pem"))
        return try ModelSignature(contentsOf: folder.appending(path: signature))
            .verify(folder.appending(path: model), with: key)
    }

    private func referenceVerifies(_ model: String, _ folder: URL, signature: String = "model.sig") throws -> Bool {
        let run = try ReferenceSigner.run(
            "verify", "key", model, "--signature", signature, "--public_key", "public.pem", folder: folder)
        #expect(run.output.contains("Verification succeeded") == (run.status == 0), "\(run.output) \(run.errors)")
        return run.status == 0
    }

    private func referenceSigns(_ model: String, _ folder: URL, to output: String = "model.sig") throws {
        let run = try ReferenceSigner.run(
            "sign", "key", model, "--signature", output, "--private_key", "key.pem", folder: folder)
        try #require(run.status == 0, "\(run.errors)")
    }

    @Test("The reference implementation accepts signatures of Imprint", arguments: ["model.bin", "model"])
    func accepted(model: String) throws {
        try withModels { folder in
            try referenceSigns(model, folder, to: "reference.sig")
            let expected = try verify(model, folder, signature: "reference.sig").digest
            let output = model == "model" ? "model/model.sig" : "model.sig"
            try sign(model, folder, to: output)
            #expect(try referenceVerifies(model, folder, signature: output))
            #expect(try verify(model, folder, signature: output).digest == expected)
        }
    }

    @Test("Imprint accepts signatures of the reference implementation", arguments: ["model.bin", "model"])
    func accepts(model: String) throws {
        try withModels { folder in
            let output = model == "model" ? "model/model.sig" : "model.sig"
            try referenceSigns(model, folder, to: output)
            #expect(try verify(model, folder, signature: output).name == model)
        }
    }

    @Test("Both reject a changed folder, whoever signed it", arguments: FolderChange.all)
    func changedFolders(change: FolderChange) throws {
        try withModels { folder in
            try sign("model", folder)
            try referenceSigns("model", folder, to: "reference.sig")
            try change.run(folder.appending(path: "model"))
            for signature in ["model.sig", "reference.sig"] {
                #expect(throws: SignatureError.self) { try verify("model", folder, signature: signature) }
                #expect(try !referenceVerifies("model", folder, signature: signature))
            }
        }
    }

    @Test("Both reject a flipped bit, a swapped signature, a wrong key and a changed statement") func changedFiles()
        throws
    {
        try withModels { folder in
            try sign("model.bin", folder)
            try referenceSigns("model.bin", folder, to: "reference.sig")
            try referenceSigns("model", folder, to: "other.sig")
            for signature in ["model.sig", "reference.sig"] {
                var edited = try EditableSignature(Data(contentsOf: folder.appending(path: signature)))
                edited.statement = edited.statement.replacing("model.bin", with: "model.exe")
                try edited.bytes.write(to: folder.appending(path: "edited.sig"))
                for (model, signature) in [
                    ("model.bin", "other.sig"), ("model", signature), ("model.bin", "edited.sig"),
                ] {
                    #expect(throws: SignatureError.self) { try verify(model, folder, signature: signature) }
                    #expect(try !referenceVerifies(model, folder, signature: signature))
                }
            }
            let file = folder.appending(path: "model.bin")
            let bytes = try Data(contentsOf: file)
            var flipped = bytes
            flipped[1000] ^= 1
            try flipped.write(to: file)
            func expectRejection() throws {
                for signature in ["model.sig", "reference.sig"] {
                    #expect(throws: SignatureError.self) { try verify("model.bin", folder, signature: signature) }
                    #expect(try !referenceVerifies("model.bin", folder, signature: signature))
                }
            }
            try expectRejection()
            try bytes.write(to: file)
            #expect(try referenceVerifies("model.bin", folder))
            let stranger = P256.Signing.PrivateKey().publicKey.pemRepresentation
            try Data(stranger.utf8).write(to: folder.appending(path: "public.pem"))
            try expectRejection()
        }
    }

    /// Signs the folder "model" in shards of 1,024 bytes, or verifies it, with the Python interface of the reference implementation.
    private func referenceShards(_ verb: String, _ folder: URL) throws -> Bool {
        let script = """
            import sys, pathlib
            from model_signing import hashing, signing, verifying
            shards = hashing.Config().use_shard_serialization(shard_size=1024)
            shards.set_ignored_paths(paths=[], ignore_git_paths=True)
            model, signature = pathlib.Path("model"), pathlib.Path("shards.sig")
            if sys.argv[1] == "sign":
                config = signing.Config().use_elliptic_key_signer(private_key=pathlib.Path("key.pem"))
                config.set_hashing_config(shards).sign(model, signature)
            else:
                config = verifying.Config().use_elliptic_key_verifier(public_key=pathlib.Path("public.pem"))
                try:
                    config.set_hashing_config(shards).verify(model, signature)
                except ValueError as error:
                    print(error)
                    sys.exit(3)
            """
        let run = try ReferenceSigner.runPython(["-c", script, verb], folder: folder)
        try #require(
            run.status == 0 || run.status == 3 && run.output.contains("ismatch"), "\(run.output) \(run.errors)")
        return run.status == 0
    }

    @Test("Shards of the reference implementation verify, and both reject changes", arguments: FolderChange.all)
    func shards(change: FolderChange) throws {
        try withModels { folder in
            let model = folder.appending(path: "model")
            try FileManager.default.removeItem(at: model.appending(path: "weights-c"))
            try Data((0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 3) }).write(
                to: model.appending(path: "large.bin"))
            #expect(try referenceShards("sign", folder))
            #expect(try referenceShards("verify", folder))
            let signed = try verify("model", folder, signature: "shards.sig")
            #expect(signed.files.keys.filter { $0.hasPrefix("large.bin:") }.count == 5 && signed.files.count == 8)
            try change.run(model)
            #expect(throws: SignatureError.self) { try verify("model", folder, signature: "shards.sig") }
            // The reference implementation does not see empty files.
            let isEmpty = change.testDescription == "an added hidden file"
            #expect(try referenceShards("verify", folder) == isEmpty)
        }
    }

    @Test("Imprint rejects empty files in a folder that is signed in shards; the reference implementation does not")
    func emptyShards() throws {
        try withModels { folder in
            // The folder contains an empty file.
            #expect(try referenceShards("sign", folder))
            #expect(try referenceShards("verify", folder))
            let error = #expect(throws: SignatureError.self) {
                try verify("model", folder, signature: "shards.sig")
            }
            guard case .mismatch(_, let mismatch)? = error else { throw try #require(error) }
            #expect(mismatch.unsigned == ["weights-c:0:0"] && mismatch.count == 1)
            // Without it, the folder has exactly the signed files.
            try FileManager.default.removeItem(at: folder.appending(path: "model/weights-c"))
            #expect(try referenceShards("verify", folder))
            #expect(try verify("model", folder, signature: "shards.sig").files.count == 3)
        }
    }

    private static let openSSL = "/usr/bin/openssl"

    @Test(
        "Keys from OpenSSL sign models for the reference implementation",
        .enabled(if: FileManager.default.isExecutableFile(atPath: openSSL)),
        arguments: [
            "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem",
            // With a block of parameters before the key, and without.
            "openssl ecparam -name prime256v1 -genkey -out key.pem",
            "openssl ecparam -name prime256v1 -genkey -noout -out key.pem",
            "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out key.pem",
            "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-521 -out key.pem",
        ])
    func openSSLKeys(command: String) throws {
        try withModels { folder in
            let made = try run(
                URL(filePath: "/bin/sh"), ["-c", "\(command) && openssl pkey -in key.pem -pubout -out public.pem"],
                folder: folder)
            try #require(made.status == 0, "\(made.errors)")
            try sign("model.bin", folder)
            #expect(try referenceVerifies("model.bin", folder))
            try referenceSigns("model.bin", folder)
            _ = try verify("model.bin", folder)
        }
    }
}
