import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

@Suite struct AtomicFileTests {
    @Test("A new file contains exactly the written bytes, and no temporary file remains")
    func newFile() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "new.bin")
            try AtomicFile.write(to: url) { output in
                try output.write([1, 2])
                try output.write([])
                try output.write([3])
            }
            #expect(try Data(contentsOf: url) == Data([1, 2, 3]))
            #expect(try permissions(of: url) & ~0o644 == 0)
            #expect(try names(in: folder) == ["new.bin"])
        }
    }

    @Test("The old file stays in place until the new one is complete, so a crash cannot damage it")
    func crash() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try AtomicFile.write([1, 2, 3], to: url)
            try AtomicFile.write(to: url) { output in
                try output.write([9, 9])
                #expect(try Data(contentsOf: url) == Data([1, 2, 3]))
            }
            #expect(try Data(contentsOf: url) == Data([9, 9]))
        }
    }

    @Test("A temporary file of a killed process does not block a new write")
    func leftOver() throws {
        try withTemporaryFolder { folder in
            let leftOver = ".imprint-\(getpid())-0.partial"
            try Data([7]).write(to: folder.appending(path: leftOver))
            try AtomicFile.write([1], to: folder.appending(path: "a"))
            #expect(try names(in: folder) == [leftOver, "a"])
        }
    }

    @Test("The name of a draft is chosen later, never replaces a file, and no temporary file remains")
    func draft() throws {
        try withTemporaryFolder { folder in
            try AtomicFile.write([7], to: folder.appending(path: "taken"))
            do {
                let drafts = try (1...3).map { number in
                    try AtomicFile.Draft(in: folder) { try $0.write([UInt8(number)]) }
                }
                #expect(try names(in: folder).count == 4)
                #expect(try drafts[0].create("taken") == false)
                #expect(try drafts[0].create("first"))
                #expect(try drafts[1].create("second"))
            }
            #expect(try names(in: folder) == ["first", "second", "taken"])
            #expect(try Data(contentsOf: folder.appending(path: "first")) == Data([1]))
            #expect(try Data(contentsOf: folder.appending(path: "second")) == Data([2]))
            #expect(try Data(contentsOf: folder.appending(path: "taken")) == Data([7]))
        }
    }

    @Test("A draft that cannot be written leaves no temporary file") func failedDraft() throws {
        struct Failure: Error {}
        try withTemporaryFolder { folder in
            #expect(throws: Failure.self) {
                try AtomicFile.Draft(in: folder) { output in
                    try output.write([9])
                    throw Failure()
                }
            }
            let remaining = try names(in: folder)
            #expect(remaining.isEmpty)
            let error = #expect(throws: FileError.self) {
                try AtomicFile.Draft(in: folder.appending(path: "missing")) { try $0.write([9]) }
            }
            #expect(error?.description.contains("missing: cannot be written") == true)
        }
    }

    @Test("A write under a lock replaces the temporary file of a killed process") func lockedLeftOver() throws {
        try withTemporaryFolder { folder in
            let (url, leftOver) = (folder.appending(path: "key"), folder.appending(path: "key.partial"))
            try Data([7, 7]).write(to: leftOver)
            try AtomicFile.write(to: url, permissions: 0o600, isLocked: true) { output in
                #expect(try names(in: folder) == ["key.partial"])
                #expect(try permissions(of: leftOver) == 0o600)
                try output.write([1])
            }
            #expect(try names(in: folder) == ["key"])
            #expect(try Data(contentsOf: url) == Data([1]))
        }
    }

    @Test("A failed write keeps the old file and removes the temporary one")
    func failure() throws {
        struct Failure: Error {}
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try AtomicFile.write([1, 2, 3], to: url)
            #expect(throws: Failure.self) {
                try AtomicFile.write(to: url) { output in
                    try output.write([9])
                    throw Failure()
                }
            }
            #expect(try Data(contentsOf: url) == Data([1, 2, 3]))
            #expect(try names(in: folder) == ["model.imprint"])
        }
    }

    @Test("An existing file keeps its permissions")
    func keepsPermissions() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "private")
            try AtomicFile.write([1], to: url)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
            try AtomicFile.write([2], to: url)
            #expect(try permissions(of: url) == 0o600)
        }
    }

    @Test(
        "A private file is also private while it is written",
        arguments: [(nil, 0o600), (0o644, 0o600), (0o600, nil)] as [(existing: Int?, permissions: mode_t?)])
    func privateFile(existing: Int?, permissions: mode_t?) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "private")
            if let existing {
                try AtomicFile.write([1], to: url)
                try FileManager.default.setAttributes([.posixPermissions: existing], ofItemAtPath: url.path)
            }
            try AtomicFile.write(to: url, permissions: permissions) { output in
                let temporary = try #require(try names(in: folder).first { $0.hasSuffix(".partial") })
                #expect(try self.permissions(of: folder.appending(path: temporary)) == 0o600)
                try output.write([2])
            }
            #expect(try self.permissions(of: url) == 0o600)
            #expect(try Data(contentsOf: url) == Data([2]))
        }
    }

    @Test("Writing to a symbolic link replaces its target and keeps the link", arguments: [true, false])
    func link(targetExists: Bool) throws {
        try withTemporaryFolder { folder in
            let models = folder.appending(path: "models")
            try FileManager.default.createDirectory(at: models, withIntermediateDirectories: false)
            let target = models.appending(path: "v3")
            if targetExists { try AtomicFile.write([1], to: target) }
            let first = folder.appending(path: "current")
            let second = folder.appending(path: "model")
            try FileManager.default.createSymbolicLink(atPath: first.path, withDestinationPath: "models/v3")
            try FileManager.default.createSymbolicLink(atPath: second.path, withDestinationPath: first.path)
            try AtomicFile.write([2], to: second)
            #expect(try Data(contentsOf: target) == Data([2]))
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: first.path) == "models/v3")
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: second.path) == first.path)
        }
    }

    @Test(
        "The target of a link in a linked folder is the same as for the system: \"..\" is the parent of the real folder"
    )
    func linkInLinkedFolder() throws {
        try withTemporaryFolder { folder in
            let manager = FileManager.default
            for path in ["real/models", "real/archive", "archive"] {
                try manager.createDirectory(at: folder.appending(path: path), withIntermediateDirectories: true)
            }
            for path in ["real/archive/v3", "archive/v3"] {
                try AtomicFile.write([1], to: folder.appending(path: path))
            }
            let link = folder.appending(path: "real/models/current")
            try manager.createSymbolicLink(atPath: link.path, withDestinationPath: "../archive/v3")
            try manager.createSymbolicLink(
                atPath: folder.appending(path: "alias").path, withDestinationPath: "real/models")
            let file = folder.appending(path: "alias/current")
            try AtomicFile.checkWritable(file)
            try AtomicFile.write([2], to: file)
            #expect(try Data(contentsOf: folder.appending(path: "real/archive/v3")) == Data([2]))
            #expect(try Data(contentsOf: folder.appending(path: "archive/v3")) == Data([1]))
        }
    }

    @Test("A cycle of links is an error")
    func circle() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "a")
            try FileManager.default.createSymbolicLink(atPath: url.path, withDestinationPath: "a")
            #expect(throws: FileError.self) { try AtomicFile.write([1], to: url) }
        }
    }

    @Test("A file name may have the maximum length of the file system")
    func longName() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: String(repeating: "n", count: 255))
            try AtomicFile.write([1], to: url)
            #expect(try Data(contentsOf: url) == Data([1]))
        }
    }

    @Test("The error for a missing folder, or a file instead of a folder, includes the fix")
    func noFolder() throws {
        try withTemporaryFolder { folder in
            try AtomicFile.write([1], to: folder.appending(path: "file"))
            let missing = #expect(throws: FileError.self) {
                try AtomicFile.write([1], to: folder.appending(path: "missing/model"))
            }
            #expect(
                missing?.description.contains("missing/model: cannot be written (No such file or directory)") == true)
            #expect(missing?.description.contains("Create its folder first") == true)
            let notAFolder = #expect(throws: FileError.self) {
                try AtomicFile.write([1], to: folder.appending(path: "file/model"))
            }
            #expect(notAFolder?.description.contains("not a folder") == true)
        }
    }

    @Test("The error for a broken link names the missing folder of its target")
    func brokenLink() throws {
        try withTemporaryFolder { folder in
            for (name, target) in [("current", "models/v3"), ("alias", "models")] {
                try FileManager.default.createSymbolicLink(
                    atPath: folder.appending(path: name).path, withDestinationPath: target)
            }
            let files = ["current", "alias/v3"].map { folder.appending(path: $0) }
            for file in files {
                let error = #expect(throws: FileError.self) { try AtomicFile.write([1], to: file) }
                let remedy =
                    "A symbolic link leads to the folder \(folder.path)/models, which does not exist. Create it first."
                #expect(
                    error?.description == "\(file.path): cannot be written (No such file or directory). \(remedy)")
                #expect(throws: FileError.self) { try AtomicFile.checkWritable(file) }
            }
            try AtomicFile.makeFolder(folder.appending(path: "models"))
            for file in files { try AtomicFile.write([1], to: file) }
        }
    }

    @Test("checkWritable detects an unwritable path and changes nothing")
    func checkWritable() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            try AtomicFile.checkWritable(url)
            #expect(try names(in: folder) == [])
            try AtomicFile.write([1], to: url)
            try AtomicFile.checkWritable(url)
            #expect(try Data(contentsOf: url) == Data([1]))
            #expect(throws: FileError.self) { try AtomicFile.checkWritable(folder) }
            #expect(throws: FileError.self) { try AtomicFile.checkWritable(folder.appending(path: "missing/model")) }
        }
    }

    @Test(
        "An existing folder that cannot contain new files is not called missing",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self")))
    func systemFolder() throws {
        let error = #expect(throws: FileError.self) { try AtomicFile.write([1], to: URL(filePath: "/proc/model")) }
        #expect(error?.description.contains("Create its folder first") == false, "\(String(describing: error))")
    }

    @Test("A folder without write permission is rejected", .disabled(if: geteuid() == 0, "root can write anywhere"))
    func unwritableFolder() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            try AtomicFile.write([1], to: url)
            try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: folder.path)
            defer { try? FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path) }
            let error = #expect(throws: FileError.self) { try AtomicFile.write([2], to: url) }
            #expect(error?.description.contains("Choose a folder that you may write to") == true)
            #expect(try Data(contentsOf: url) == Data([1]))
        }
    }

    @Test("A folder is created with its parents, and is an error with its path if a part of it is a file")
    func folders() throws {
        try withTemporaryFolder { folder in
            let deep = folder.appending(path: "a/b/c")
            try AtomicFile.makeFolder(deep)
            try AtomicFile.makeFolder(deep)
            let file = deep.appending(path: "file")
            try AtomicFile.write([1], to: file)
            let below = file.appending(path: "x")
            for (url, reason) in [(file, "it is a file, not a folder"), (below, "Not a directory")] {
                let error = #expect(throws: FileError.self) { try AtomicFile.makeFolder(url) }
                #expect(error?.description.hasPrefix("\(url.path): cannot be written (\(reason)). ") == true)
            }
        }
    }

    @Test("The error for a folder at a broken link names the link and the missing folder")
    func folderAtBrokenLink() throws {
        try withTemporaryFolder { folder in
            let (link, loop) = (folder.appending(path: "link"), folder.appending(path: "loop"))
            for (file, target) in [(link, "target"), (loop, "loop")] {
                try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: target)
            }
            let deep = link.appending(path: "a/b")
            for url in [link, deep] {
                let error = #expect(throws: FileError.self) { try AtomicFile.makeFolder(url) }
                let remedy =
                    "A symbolic link leads to the folder \(folder.path)/target, which does not exist. Create it first."
                #expect(
                    error?.description == "\(link.path): cannot be written (No such file or directory). \(remedy)")
            }
            let error = #expect(throws: FileError.self) { try AtomicFile.makeFolder(loop) }
            #expect(error?.description.contains("Its symbolic links form a loop.") == true)
            try AtomicFile.makeFolder(folder.appending(path: "target"))
            try AtomicFile.makeFolder(deep)
            #expect(FileManager.default.fileExists(atPath: folder.appending(path: "target/a/b").path))
        }
    }

    @Test(
        "The reason of an error of Foundation is the system's message",
        arguments: [
            (CocoaError.Code.fileNoSuchFile, "No such file or directory"), (.fileWriteFileExists, "File exists"),
            (.fileWriteNoPermission, "Permission denied"), (.fileWriteVolumeReadOnly, "Read-only file system"),
        ])
    func reasons(code: CocoaError.Code, text: String) { #expect(reason(of: CocoaError(code)) == text) }

    @Test(
        "A description of a file error ends with a full stop",
        arguments: [
            FileError.cannotRead(path: "a", reason: "b"), .cannotWrite(path: "a", reason: "b", remedy: "Choose c."),
            .cannotWrite("a", errno: EIO), .cannotWrite("a", errno: ELOOP), .notConfirmed(path: "a", reason: "b"),
        ])
    func sentences(error: FileError) {
        #expect(error.description.hasSuffix(".") && !error.description.hasSuffix(".."))
        #expect(!error.description.contains(";"))
    }

    @Test("Folders and devices are never replaced", arguments: ["/dev/null", "/tmp"])
    func notAFile(path: String) {
        let error = #expect(throws: FileError.self) { try AtomicFile.write([1], to: URL(filePath: path)) }
        #expect(error?.description.contains("Choose the name of a file") == true)
    }

    @Test(
        "The error for a full disk suggests freeing space",
        .enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
    func fullDisk() throws {
        let descriptor = open("/dev/full", O_WRONLY)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        #expect(throws: FileError.cannotWrite("model", errno: ENOSPC)) {
            try AtomicFile.Output(descriptor: descriptor, path: "model").write([1])
        }
        #expect(FileError.cannotWrite("model", errno: ENOSPC).description.contains("Free some space"))
    }

    private func permissions(of url: URL) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
        return try #require(attributes[.posixPermissions] as? NSNumber).intValue
    }

    private func names(in folder: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }
}
