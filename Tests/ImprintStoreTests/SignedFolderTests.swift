import Crypto
import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// Signed folders with unusual names, folders that change during a verification, and signatures of another kind.
@Suite struct SignedFolderTests {
    private let keys = Result { try KeyPair() }

    /// "é" as one character, and as "e" with a combining accent.
    private static let (composed, decomposed) = ("\u{E9}.bin", "e\u{301}.bin")

    /// Calls `body` with a folder "model" of the files "config.json", "weights/a.bin", "weights/b.bin" and "weights-c".
    private func withFolder(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { parent in
            let folder = parent.appending(path: "model")
            try writeModelFolder(folder)
            try body(folder)
        }
    }

    /// Writes a file; a path of `URL` could change the bytes of the name.
    private func write(_ text: String, _ name: String, in folder: URL) throws {
        let file = try #require(fopen("\(folder.path)/\(name)", "w"), "\(String(cString: strerror(errno)))")
        defer { fclose(file) }
        #expect(fputs(text, file) >= 0)
    }

    /// Expects an error whose message contains a text.
    private func expectError(_ text: String, _ body: () throws -> Void) {
        let error = #expect(throws: SignatureError.self) { try body() }
        #expect(error.map { "\($0)" }?.contains(text) == true, "\(error.map { "\($0)" } ?? "no error"): \(text)")
    }

    // MARK: Names

    @Test("A second file with an equivalent name is rejected for any content", arguments: ["model", "other", ""])
    func equivalentFile(content: String) throws {
        #expect(Self.composed == Self.decomposed)
        let keys = try keys.get()
        try withFolder { folder in
            try write("model", Self.composed, in: folder)
            let signature = try ModelSignature(signing: folder, with: keys.signing)
            #expect(try signature.verify(folder, with: keys.verification).files.count == 5)
            try write(content, Self.decomposed, in: folder)
            try #require(FileManager.default.contentsOfDirectory(atPath: folder.path).count == 5)
            expectError("another file has an equivalent name in Unicode; this name is ") {
                try signature.verify(folder, with: keys.verification)
            }
            expectError("another file has an equivalent name in Unicode; this name is ") {
                _ = try ModelSignature(signing: folder, with: keys.signing)
            }
        }
    }

    @Test("A renamed file with an equivalent name is another file", arguments: [true, false])
    func equivalentRenamed(toDecomposed: Bool) throws {
        let keys = try keys.get()
        let (old, new) =
            toDecomposed ? (Self.composed, Self.decomposed) : (Self.decomposed, Self.composed)
        try withFolder { folder in
            try write("model", old, in: folder)
            let signature = try ModelSignature(signing: folder, with: keys.signing)
            #expect(rename("\(folder.path)/\(old)", "\(folder.path)/\(new)") == 0)
            let error = #expect(throws: SignatureError.self) {
                try signature.verify(folder, with: keys.verification)
            }
            guard case .mismatch(_, let mismatch)? = error else { throw try #require(error) }
            #expect(mismatch.changed.isEmpty && mismatch.missing.count == 1 && mismatch.unsigned.count == 1)
            #expect(mismatch.missing.first.map { Array($0.utf8) } == Array(old.utf8))
            #expect(mismatch.unsigned.first.map { Array($0.utf8) } == Array(new.utf8))
        }
    }

    @Test("A statement with two equivalent names is invalid") func equivalentStatement() throws {
        let keys = try keys.get()
        try withFolder { folder in
            try write("model", Self.composed, in: folder)
            let digest = String(repeating: "0", count: 64)
            let statement = SignedStatement(
                name: "m", digests: [ModelPath(Self.composed): digest, ModelPath(Self.decomposed): digest], ignoring: []
            )
            #expect(statement.predicate.resources.count == 2)
            let signature = try ModelSignature(
                signing: SignatureBundle.encoded(statement), with: keys.signing, named: "x")
            expectError("twice") { try signature.verify(folder, with: keys.verification) }
        }
    }

    @Test("A file with a name that is equivalent to an ignored path is not ignored", arguments: ["", "/in/here"])
    func equivalentIgnored(below: String) throws {
        let keys = try keys.get()
        try withFolder { folder in
            let (ignored, other) = (Self.composed, Self.decomposed)
            let signature = try ModelSignature(
                signing: folder, with: keys.signing, ignoring: [folder.appending(path: ignored)])
            func add(_ name: String) throws {
                if below.isEmpty { return try write("x", name, in: folder) }
                for path in ["\(folder.path)/\(name)", "\(folder.path)/\(name)/in"] { #expect(mkdir(path, 0o700) == 0) }
                try write("x", name + below, in: folder)
            }
            try add(ignored)
            let found = try signature.verify(folder, with: keys.verification).ignored
            #expect(found.map { Array($0.utf8) } == [Array(ignored.utf8)])
            #expect(rename("\(folder.path)/\(ignored)", "\(folder.path)/\(other)") == 0)
            expectError("\(below.split(separator: "/").last ?? "bin") is not signed") {
                try signature.verify(folder, with: keys.verification)
            }
        }
    }

    @Test("A signature file in a folder with an equivalent name is not in the folder of the model")
    func equivalentFolder() throws {
        let keys = try keys.get()
        try withTemporaryFolder { parent in
            let (model, other) = (parent.path + "/" + Self.composed, parent.path + "/" + Self.decomposed)
            #expect(mkdir(model, 0o700) == 0 && mkdir(other, 0o700) == 0)
            let folder = URL(filePath: model, directoryHint: .isDirectory)
            try write("model", "m.bin", in: folder)
            let file = URL(filePath: other + "/model.sig")
            try ModelSignature(signing: folder, with: keys.signing).write(to: file)
            try ModelSignature(contentsOf: file).verify(folder, with: keys.verification)
            #expect(SignedFiles.path(of: file, within: folder) == nil)
            #expect(SignedFiles.path(of: folder.appending(path: "model.sig"), within: folder) == ModelPath("model.sig"))
            try write("x", "model.sig", in: folder)
            expectError("model.sig is not signed") {
                try ModelSignature(contentsOf: file).verify(folder, with: keys.verification)
            }
        }
    }

    @Test("A combining character after a separator does not hide the separator") func combiningCharacter() throws {
        let path = ModelPath("a/\u{301}b/c")
        #expect(path.components.map(\.text) == ["a", "\u{301}b", "c"])
        #expect(path.folders.map(\.text) == ["a/\u{301}b", "a"])
        let keys = try keys.get()
        try withFolder { folder in
            // A signed file within an ignored folder.
            try write("x", "weights/\u{301}x", in: folder)
            var edited = try EditableSignature(ModelSignature(signing: folder, with: keys.signing))
            edited.statement = edited.statement.replacing("\".git\"", with: "\"weights\",\".git\"")
            try edited.sign(with: keys.signing)
            let signature = try ModelSignature(edited.bytes, named: "edited")
            #expect(try signature.verify(folder, with: keys.verification).files.count == 5)
            for name in ["../\u{301}x", "a/..\u{2F}\u{301}/x"] {
                let statement = SignedStatement(
                    name: "m", digests: [ModelPath(name): String(repeating: "0", count: 64)], ignoring: [])
                let signature = try ModelSignature(
                    signing: SignatureBundle.encoded(statement), with: keys.signing, named: "x")
                expectError("expected a path within the model") {
                    try signature.verify(folder, with: keys.verification)
                }
            }
        }
    }

    // MARK: Changes during a verification

    /// A change of a folder between the time when its files are listed and the time when they are read.
    struct LateChange: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The path that the error names.
        let path: String
        let run: @Sendable (URL) throws -> Void

        static let all = [
            LateChange(testDescription: "a folder becomes a link to an equal folder", path: "weights") { folder in
                let moved = folder.deletingLastPathComponent().appending(path: "moved")
                try FileManager.default.moveItem(at: folder.appending(path: "weights"), to: moved)
                try FileManager.default.createSymbolicLink(
                    at: folder.appending(path: "weights"), withDestinationURL: moved)
            },
            LateChange(testDescription: "a file becomes a link to an equal file", path: "weights/a.bin") { folder in
                let (file, moved) = (
                    folder.appending(path: "weights/a.bin"), folder.deletingLastPathComponent().appending(path: "moved")
                )
                try FileManager.default.moveItem(at: file, to: moved)
                try FileManager.default.createSymbolicLink(at: file, withDestinationURL: moved)
            },
            LateChange(testDescription: "a folder becomes a file", path: "weights") { folder in
                try FileManager.default.removeItem(at: folder.appending(path: "weights"))
                try Data("x".utf8).write(to: folder.appending(path: "weights"))
            },
            LateChange(testDescription: "a file becomes a pipe", path: "config.json") { folder in
                try FileManager.default.removeItem(at: folder.appending(path: "config.json"))
                #expect(mkfifo(folder.appending(path: "config.json").path, 0o600) == 0)
            },
            LateChange(testDescription: "a file with equal content replaces a file", path: "weights/b.bin") { folder in
                try Data("second weights".utf8).write(
                    to: folder.appending(path: "weights/b.bin"), options: .atomic)
            },
            LateChange(testDescription: "a file grows", path: "weights/b.bin") { folder in
                let file = try FileHandle(forWritingTo: folder.appending(path: "weights/b.bin"))
                try file.seekToEnd()
                try file.write(contentsOf: Data("x".utf8))
                try file.close()
            },
            LateChange(testDescription: "a file is added", path: "weights/c.bin") { folder in
                try Data().write(to: folder.appending(path: "weights/c.bin"))
            },
            LateChange(testDescription: "a file is removed", path: "weights-c") { folder in
                try FileManager.default.removeItem(at: folder.appending(path: "weights-c"))
            },
        ]
    }

    @Test("A change after the files are listed is an error that names the file", arguments: LateChange.all)
    func lateChange(change: LateChange) throws {
        try withFolder { folder in
            let files = try SignedFiles(folder, ignoring: [])
            try change.run(folder)
            let path = folder.path + "/" + change.path
            let error = #expect(throws: (any Error).self) { try files.digests() }
            if change.testDescription.contains("pipe") {
                #expect(
                    "\(error.map { "\($0)" } ?? "")".hasPrefix(
                        "\(path): cannot be read (it is a pipe, expected a regular file"))
            } else {
                #expect(error as? SignatureError == .changing(path: path), "\(error.map { "\($0)" } ?? "")")
            }
        }
    }

    @Test("A changed file of a model of one file is an error") func lateChangeOfFile() throws {
        try withFolder { folder in
            let file = folder.appending(path: "weights/a.bin")
            let files = try SignedFiles(file, ignoring: [])
            // Another length, because the clock of the file system may be too coarse for another time.
            try Data("other weights of the model".utf8).write(to: file)
            #expect(throws: SignatureError.changing(path: file.path)) { try files.digests() }
        }
    }

    @Test("A change of ignored files is no error, and digests can be computed twice") func lateChangeOfIgnored() throws
    {
        try withFolder { folder in
            let files = try SignedFiles(folder, ignoring: [ModelPath("weights")])
            let digests = try files.digests()
            try Data("x".utf8).write(to: folder.appending(path: "weights/a.bin"))
            try FileManager.default.removeItem(at: folder.appending(path: "weights/b.bin"))
            #expect(try files.digests() == digests && digests.count == 2)
            let file = try SignedFiles(folder.appending(path: "config.json"), ignoring: [])
            #expect(try file.digests() == file.digests())
        }
    }

    @Test("A symbolic link in the middle of a path is an error; links to the model itself are followed")
    func links() throws {
        let keys = try keys.get()
        try withFolder { folder in
            let signature = try ModelSignature(signing: folder, with: keys.signing)
            let parent = folder.deletingLastPathComponent()
            let (outside, link) = (parent.appending(path: "outside"), parent.appending(path: "link"))
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: parent)
            try signature.verify(link.appending(path: "model"), with: keys.verification)
            try FileManager.default.moveItem(at: folder.appending(path: "weights"), to: outside)
            try FileManager.default.createSymbolicLink(
                at: folder.appending(path: "weights"), withDestinationURL: outside)
            expectError("\(folder.path)/weights: cannot be part of a signed model: it is a symbolic link") {
                try signature.verify(folder, with: keys.verification)
            }
            let opened = OpenFolder(closing: open(folder.path, O_RDONLY), folder.path)
            #expect(throws: SignatureError.changing(path: folder.path + "/weights")) {
                try opened.file(at: ModelPath("weights/a.bin"))
            }
            #expect(throws: SignatureError.changing(path: folder.path + "/weights")) { try opened.folder("weights") }
        }
    }

    // One at a time, because each needs an open file for each folder.
    @Test("200 nested folders are signed, more are an error", .serialized, arguments: [200, 201, 5000])
    func deepFolders(depth: Int) throws {
        let keys = try keys.get()
        try withTemporaryFolder { parent in
            // Relative to the folder before, because the whole path is too long.
            var descriptor = open(parent.path, O_RDONLY)
            for _ in 0...depth {
                try #require(mkdirat(descriptor, "d", 0o700) == 0)
                let next = openat(descriptor, "d", O_RDONLY)
                close(descriptor)
                descriptor = next
            }
            close(openat(descriptor, "x", O_CREAT | O_WRONLY, 0o600))
            close(descriptor)
            let folder = parent.appending(path: "d")
            if depth == 200 {
                let signature = try ModelSignature(signing: folder, with: keys.signing)
                #expect(try signature.verify(folder, with: keys.verification).files.count == 1)
            } else {
                expectError("it is nested in more than 200 folders") {
                    _ = try ModelSignature(signing: folder, with: keys.signing)
                }
            }
            let removed = try run(URL(filePath: "/bin/rm"), ["-rf", folder.path], folder: parent)
            #expect(removed.status == 0, "\(removed.errors)")
        }
    }

    // MARK: Kinds

    @Test("A signature of a file does not verify a folder, and the other way round") func kinds() throws {
        let keys = try keys.get()
        try withFolder { folder in
            let file = folder.appending(path: "config.json")
            let ofFile = try ModelSignature(signing: file, with: keys.signing)
            let ofFolder = try ModelSignature(signing: folder, with: keys.signing)
            let error = SignatureError.wrongKind(model: folder.path, isFolder: true, signedName: "config.json")
            #expect(throws: error) { try ofFile.verify(folder, with: keys.verification) }
            #expect(
                "\(error)"
                    == "\(folder.path): the model is a folder, but the signature is for one file with the name \"config.json\". "
                    + "Expected the file that was signed.")
            #expect(throws: SignatureError.wrongKind(model: file.path, isFolder: false, signedName: "model")) {
                try ofFolder.verify(file, with: keys.verification)
            }
            let empty = folder.appending(path: "empty")
            try FileManager.default.createDirectory(at: empty, withIntermediateDirectories: true)
            expectError("is a folder, but the signature is for one file") {
                try ofFile.verify(empty, with: keys.verification)
            }
        }
    }
}
