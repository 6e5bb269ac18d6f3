import Foundation
import ImprintCore
import TestSupport
import Testing

@Suite struct FileDigestTests {
    @Test(
        "The digest of a file is the digest of its bytes, also for several chunks",
        arguments: [0, 1000, 1 << 18, (1 << 18) + 1])
    func digest(length: Int) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "file")
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7) }
            try Data(bytes).write(to: file)
            #expect(try FileDigest.sha256(of: file) == SHA256.hexadecimal(of: bytes))
        }
    }

    @Test("A file that cannot be read is an error")
    func unreadable() throws {
        try withTemporaryFolder { folder in
            #expect(throws: FileError.self) { try FileDigest.sha256(of: folder.appending(path: "missing")) }
            #expect(throws: FileError.self) { try FileDigest.sha256(of: folder) }
        }
    }

    @Test(
        "A digest has 64 hexadecimal digits in lower case",
        arguments: [
            (String(repeating: "0af9", count: 16), true), (String(repeating: "0aF9", count: 16), false),
            (String(repeating: "0", count: 63), false), (String(repeating: "é", count: 32), false),
            (String(repeating: "g", count: 64), false), ("", false),
        ])
    func form(text: String, expected: Bool) {
        #expect(FileDigest.isDigest(text) == expected)
    }
}
