import Crypto
import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// Signatures of model files and folders verify only for the signed content and the signer's key.
@Suite struct ModelSignatureTests {
    private let keys = Result { try KeyPair() }

    /// Calls `body` with the URL of a file of 3,000 bytes.
    private func withFile(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "model.bin")
            try Data((0..<3000).map { UInt8(truncatingIfNeeded: $0 &* 7) }).write(to: file)
            try body(file)
        }
    }

    /// Expects an error whose message contains a text.
    private func expectError(_ text: String, _ body: () throws -> Void) {
        let error = #expect(throws: SignatureError.self) { try body() }
        #expect(error.map { "\($0)" }?.contains(text) == true, "\(error.map { "\($0)" } ?? "no error"): \(text)")
    }

    @Test("A signed file verifies, also after it is written, read and renamed") func file() throws {
        let keys = try keys.get()
        try withFile { file in
            let written = file.appendingPathExtension("sig")
            try ModelSignature(signing: file, with: keys.signing).write(to: written)
            let renamed = file.deletingLastPathComponent().appending(path: "other.bin")
            try FileManager.default.moveItem(at: file, to: renamed)
            let signature = try ModelSignature(contentsOf: written)
            #expect(signature.keyIdentifier == keys.verification.identifier)
            let signed = try signature.verify(renamed, with: keys.verification)
            let digest = SHA256.hash(data: try Data(contentsOf: renamed))
            #expect(signed.name == "model.bin" && signed.files == [".": hexadecimal(digest)])
            #expect(signed.digest == hexadecimal(SHA256.hash(data: Data(digest))))
        }
    }

    @Test("A flipped bit in a signed file does not verify, and the error has both digests", arguments: [0, 1499, 2999])
    func flippedBit(offset: Int) throws {
        let keys = try keys.get()
        try withFile { file in
            let signature = try ModelSignature(signing: file, with: keys.signing)
            var bytes = try Data(contentsOf: file)
            let expected = hexadecimal(SHA256.hash(data: bytes))
            bytes[offset] ^= 0x80
            try bytes.write(to: file)
            let found = hexadecimal(SHA256.hash(data: bytes))
            expectError("it has the SHA-256 \(found), expected \(expected)") {
                try signature.verify(file, with: keys.verification)
            }
        }
    }

    @Test("A signature of another file, of another key, or without its hint does not verify") func swapped() throws {
        let (keys, stranger) = (try keys.get(), try KeyPair())
        try withFile { file in
            let other = file.deletingLastPathComponent().appending(path: "other.bin")
            try Data("other".utf8).write(to: other)
            let signature = try ModelSignature(signing: file, with: keys.signing)
            expectError("it has the SHA-256") { try signature.verify(other, with: keys.verification) }
            expectError("the signature was made with the key \(keys.verification.identifier), expected") {
                try signature.verify(file, with: stranger.verification)
            }
            var edited = try EditableSignature(signature)
            edited.bundle["verificationMaterial"] = ["publicKey": ["hint": ""]]
            let withoutHint = try ModelSignature(edited.bytes, named: "edited")
            #expect(withoutHint.keyIdentifier == nil)
            try withoutHint.verify(file, with: keys.verification)
            expectError("does not match its statement and the public key") {
                try withoutHint.verify(file, with: stranger.verification)
            }
            edited.bundle["verificationMaterial"] = ["publicKey": ["hint": stranger.verification.identifier]]
            expectError("does not match its statement and the public key") {
                try ModelSignature(edited.bytes, named: "edited").verify(file, with: stranger.verification)
            }
        }
    }

    @Test("A changed statement and a changed signature do not verify") func changedPayload() throws {
        let keys = try keys.get()
        try withFile { file in
            let signature = try ModelSignature(signing: file, with: keys.signing)
            try Data("forged".utf8).write(to: file)
            let forged = try ModelSignature(signing: file, with: KeyPair().signing)
            var edited = try EditableSignature(signature)
            edited.statement = try EditableSignature(forged).statement
            expectError("does not match") {
                try ModelSignature(edited.bytes, named: "x").verify(file, with: keys.verification)
            }
            edited = try EditableSignature(signature)
            for signature in [Data(), Data(count: 64), Data([0x30, 0x06, 2, 1, 0, 2, 1, 0])] {
                edited.envelope["signatures"] = [["sig": signature.base64EncodedString()]]
                expectError("does not match") {
                    try ModelSignature(edited.bytes, named: "x").verify(file, with: keys.verification)
                }
            }
        }
    }

    @Test("A changed folder does not verify, and the error names the file", arguments: FolderChange.all)
    func folders(change: FolderChange) throws {
        let keys = try keys.get()
        try withTemporaryFolder { parent in
            let folder = parent.appending(path: "model")
            try writeModelFolder(folder)
            let signature = try ModelSignature(signing: folder, with: keys.signing)
            #expect(try signature.verify(folder, with: keys.verification).files.count == 4)
            try change.run(folder)
            expectError(change.message) { try signature.verify(folder, with: keys.verification) }
        }
    }

    @Test("The signature file, Git files and ignored paths are not signed, and the result lists them") func ignored()
        throws
    {
        let keys = try keys.get()
        try withTemporaryFolder { folder in
            try writeModelFolder(folder)
            let (output, notes) = (folder.appending(path: "model.sig"), folder.appending(path: "notes"))
            try ModelSignature(signing: folder, with: keys.signing, ignoring: [output, notes]).write(to: output)
            for path in ["notes/a.txt", ".git/config", ".gitignore"] {
                let file = folder.appending(path: path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data("text".utf8).write(to: file)
            }
            let signature = try ModelSignature(contentsOf: output)
            let signed = try signature.verify(folder, with: keys.verification)
            #expect(signed.ignored == [".git", ".gitignore", "model.sig", "notes"] && signed.files.count == 4)
            // A moved signature file in the folder is not part of the model either.
            let moved = folder.appending(path: "moved.sig")
            try FileManager.default.moveItem(at: output, to: moved)
            try ModelSignature(contentsOf: moved).verify(folder, with: keys.verification)
            try Data("text".utf8).write(to: folder.appending(path: "notes.txt"))
            expectError("notes.txt is not signed") {
                try ModelSignature(contentsOf: moved).verify(folder, with: keys.verification)
            }
        }
    }

    @Test("A signed file within an ignored folder is verified") func signedWithinIgnored() throws {
        let keys = try keys.get()
        try withTemporaryFolder { folder in
            try writeModelFolder(folder)
            var edited = try EditableSignature(ModelSignature(signing: folder, with: keys.signing))
            edited.statement = edited.statement.replacing("\".git\"", with: "\"weights\",\".git\"")
            try edited.sign(with: keys.signing)
            let signature = try ModelSignature(edited.bytes, named: "edited")
            try Data().write(to: folder.appending(path: "weights/new.bin"))
            #expect(try signature.verify(folder, with: keys.verification).ignored == ["weights/new.bin"])
            try Data("x".utf8).write(to: folder.appending(path: "weights/a.bin"))
            expectError("weights/a.bin has the SHA-256") { try signature.verify(folder, with: keys.verification) }
        }
    }

    @Test("Symbolic links, pipes, names that are not UTF-8 and empty folders are errors") func otherEntries() throws {
        let keys = try keys.get()
        try withTemporaryFolder { parent in
            let folder = parent.appending(path: "model")
            try writeModelFolder(folder)
            let signature = try ModelSignature(signing: folder, with: keys.signing)
            let path = folder.appending(path: "weights/a.bin")
            let outside = parent.appending(path: "outside")
            try FileManager.default.moveItem(at: path, to: outside)
            try FileManager.default.createSymbolicLink(at: path, withDestinationURL: outside)
            expectError("it is a symbolic link") { try signature.verify(folder, with: keys.verification) }
            expectError("it is a symbolic link") { _ = try ModelSignature(signing: folder, with: keys.signing) }
            try FileManager.default.removeItem(at: path)
            mkfifo(path.path, 0o600)
            expectError("it is a device or pipe") { try signature.verify(folder, with: keys.verification) }
            try FileManager.default.removeItem(at: path)
            try FileManager.default.moveItem(at: outside, to: path)
            try signature.verify(folder, with: keys.verification)
            // A link to the folder itself is followed.
            let link = parent.appending(path: "link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
            try signature.verify(link, with: keys.verification)
            let name = Array("\(folder.path)/".utf8).map { CChar(bitPattern: $0) } + [CChar(bitPattern: 0xFF), 0]
            let descriptor = open(name, O_CREAT | O_WRONLY, 0o600)
            close(descriptor)
            if descriptor >= 0 {
                expectError(
                    "its name is not UTF-8. Expected only files and folders with different names in UTF-8. Rename"
                ) { try signature.verify(folder, with: keys.verification) }
            }
            let empty = parent.appending(path: "empty/inner")
            try FileManager.default.createDirectory(at: empty, withIntermediateDirectories: true)
            expectError("the folder contains no files to sign") {
                _ = try ModelSignature(signing: empty.deletingLastPathComponent(), with: keys.signing)
            }
        }
    }

    @Test("Shards verify, and a change or another length does not") func shards() throws {
        let keys = try keys.get()
        try withFile { file in
            let bytes = try Data(contentsOf: file)
            let resources = [0..<1024, 1024..<2048, 2048..<3000].map { range in
                (".:\(range.lowerBound):\(range.upperBound)", hexadecimal(SHA256.hash(data: bytes[range])))
            }
            let found = try SignedFiles(file, ignoring: []).digests(shardSize: 1024)
            #expect(found == Dictionary(uniqueKeysWithValues: resources.map { (ModelPath($0), $1) }))
            var root = SHA256()
            for range in [0..<1024, 1024..<2048, 2048..<3000] {
                root.update(data: Data(SHA256.hash(data: bytes[range])))
            }
            let list = resources.map { #"{"name":"\#($0)","algorithm":"sha256-sharded-1024","digest":"\#($1)"}"# }
            var edited = try EditableSignature(ModelSignature(signing: file, with: keys.signing))
            edited.statement = """
                {"_type":"https://in-toto.io/Statement/v1","predicateType":"https://model_signing/signature/v1.0",
                "subject":[{"name":"m","digest":{"sha256":"\(hexadecimal(root.finalize()))"}}],"predicate":{"serialization":
                {"method":"shards","hash_type":"sha256","shard_size":1024,"allow_symlinks":false},
                "resources":[\(list.joined(separator: ","))]}}
                """
            try edited.sign(with: keys.signing)
            let signature = try ModelSignature(edited.bytes, named: "edited")
            try signature.verify(file, with: keys.verification)
            var flipped = bytes
            flipped[1500] ^= 1
            try flipped.write(to: file)
            expectError("its part 1024:2048 has the SHA-256") { try signature.verify(file, with: keys.verification) }
            try (bytes + Data([1])).write(to: file)
            expectError("its part 2048:3000 is missing; its part 2048:3001 is not signed") {
                try signature.verify(file, with: keys.verification)
            }
        }
    }
}
