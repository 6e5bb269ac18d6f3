import Foundation
import TestSupport
import Testing

@testable import ImprintCore

@Suite struct RegularFileTests {
    @Test("A small file is read completely, and a larger one than the limit is not") func limit() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "key.pem")
            try Data("a key".utf8).write(to: file)
            #expect(try RegularFile(file.path).contents(limit: 5) == Data("a key".utf8))
            #expect(try RegularFile(file.path).text(limit: 5) == "a key")
            #expect(try RegularFile(file.path).contents(limit: 4) == nil)
            #expect(try RegularFile(file.path).text(limit: 4) == nil)
            try Data([0xFF]).write(to: file)
            #expect(try RegularFile(file.path).text(limit: 5) == nil)
        }
    }

    @Test("A read at an offset fills the memory, or is an error if the file ends before that") func offsets() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "file")
            let content = Data([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
            try content.write(to: url)
            let file = try RegularFile(url.path)
            var bytes = [UInt8](repeating: 0, count: 4)
            try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 6) }
            #expect(bytes == [6, 7, 8, 9])
            #expect(throws: FileError.cannotRead(path: url.path, reason: "it shrank while it was being read")) {
                try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 7) }
            }
            // A read from start to end does not depend on other reads.
            #expect(try file.contents(limit: 10) == content)
        }
    }

    @Test(
        "Devices and folders are rejected before they are read",
        arguments: [("/dev/zero", "a device"), ("/dev/null", "a device"), ("/tmp", "a folder")])
    func otherKinds(path: String, kind: String) {
        let error = FileError.cannotRead(path: path, reason: "it is \(kind), expected a regular file")
        #expect(throws: error) { _ = try RegularFile(path) }
        #expect(throws: error) { _ = try contents(ofFileOrPipe: path, limit: 5) }
    }

    @Test("A pipe without a writer is rejected instead of waited for", .timeLimit(.minutes(10))) func pipe() throws {
        try withTemporaryFolder { folder in
            let path = folder.appending(path: "pipe").path
            #expect(mkfifo(path, 0o600) == 0)
            let error = FileError.cannotRead(path: path, reason: "it is a pipe, expected a regular file")
            #expect(throws: error) { _ = try RegularFile(path) }
            #expect(throws: error) { _ = try contents(ofFileOrPipe: path, limit: 5) }
        }
    }
}
