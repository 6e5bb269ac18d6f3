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

    @Test("Devices and folders are rejected before they are read", arguments: ["/dev/zero", "/dev/null", "/tmp"])
    func otherKinds(path: String) {
        let error = FileError.cannotRead(
            path: path, reason: "it is a folder, device or pipe, expected a regular file")
        #expect(throws: error) { _ = try RegularFile(path) }
    }

    @Test("A pipe without a writer is rejected instead of waited for", .timeLimit(.minutes(1))) func pipe() throws {
        try withTemporaryFolder { folder in
            let path = folder.appending(path: "pipe").path
            #expect(mkfifo(path, 0o600) == 0)
            #expect(throws: FileError.self) { _ = try RegularFile(path) }
        }
    }
}
