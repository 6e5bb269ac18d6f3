import Foundation
import TestSupport
import Testing

@testable import ImprintCore

@Suite struct StampedFolderTests {
    private struct Stamp: Codable, Equatable {
        var quality: Int
    }

    private func claim(_ folder: URL, quality: Int = 90) throws -> StampedFolder<Stamp> {
        try StampedFolder(claiming: folder, for: Stamp(quality: quality), named: ".stamp.json")
    }

    @Test("A missing or empty folder gets a stamp, which later runs with any settings find", arguments: [true, false])
    func newFolder(isMissing: Bool) throws {
        try withTemporaryFolder { parent in
            let folder = isMissing ? parent.appending(path: "a/b") : parent
            guard case .new = try claim(folder) else {
                Issue.record("the folder is not new")
                return
            }
            guard case .stamped(let found) = try claim(folder, quality: 80) else {
                Issue.record("the folder has no stamp")
                return
            }
            #expect(found == Stamp(quality: 90))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [".stamp.json"])
        }
    }

    @Test("A folder is new if a killed process left only the temporary file of its stamp") func killedClaim() throws {
        try withTemporaryFolder { folder in
            try Data("{".utf8).write(to: folder.appending(path: ".imprint-123-0.partial"))
            guard case .new = try claim(folder) else {
                Issue.record("the folder is not new")
                return
            }
        }
    }

    @Test("A stamp that cannot be decoded stays as it is") func damagedStamp() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: ".stamp.json")
            try Data("{".utf8).write(to: file)
            guard case .stamped(nil) = try claim(folder) else {
                Issue.record("the stamp was decoded")
                return
            }
            #expect(try Data(contentsOf: file) == Data("{".utf8))
        }
    }

    @Test("A folder with other files, hidden ones too, gets no stamp", arguments: ["other", ".hidden"])
    func foreignFolder(name: String) throws {
        try withTemporaryFolder { folder in
            try Data().write(to: folder.appending(path: name))
            guard case .foreign(name) = try claim(folder) else {
                Issue.record("the folder was claimed")
                return
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [name])
        }
    }
}
