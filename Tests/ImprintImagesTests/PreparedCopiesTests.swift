import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Tests that copies are assigned to originals correctly after a user changed the folder of copies.
@Suite("Prepared copies") struct PreparedCopiesTests {
    private struct Folders {
        let (data, output): (URL, URL)

        func add(_ name: String, width: Int) throws {
            try write(.scene(UInt64(width), width: width, height: 50), to: data.appending(path: name))
        }

        func prepare() throws -> Preparation.Outcome {
            try Preparation(shortSide: 40).run(
                ImageFolder(at: data, minimumLabels: 1), into: output, workers: Workers(2))
        }

        func copy(_ name: String) throws -> Data { try Data(contentsOf: output.appending(path: name)) }
    }

    /// Creates folders with the photos `l/x.png` and `m/x.png` and their copies.
    private func withFolders(_ body: (Folders) throws -> Void) throws {
        try withTemporaryFolder { root in
            let folders = Folders(data: root.appending(path: "data"), output: root.appending(path: "out"))
            try folders.add("l/x.png", width: 60)
            try folders.add("m/x.png", width: 70)
            _ = try folders.prepare()
            try body(folders)
        }
    }

    @Test("A user's file in the folder of copies is kept and listed, even if another label has no copies")
    func emptyLabel() throws {
        try withFolders { folders in
            try FileManager.default.removeItem(at: folders.data.appending(path: "m"))
            try FileManager.default.removeItem(at: folders.output.appending(path: "m/x.jpg"))
            let userFile = folders.output.appending(path: "l/y.jpg")
            try write(.scene(2), to: userFile)
            let before = try Data(contentsOf: userFile)
            try folders.add("l/y.png", width: 80)
            let outcome = try folders.prepare()
            #expect(try Data(contentsOf: userFile) == before)
            #expect(outcome.images == 2 && outcome.unchanged == 1)
            #expect(outcome.strays.map(\.lastPathComponent) == ["y.jpg"])
            #expect(try ImageFile.decode(folders.output.appending(path: "l/y-png.jpg")).height == 40)
        }
    }

    @Test("Folders, files and links at the path of a copy are kept") func otherKinds() throws {
        try withFolders { folders in
            let files = FileManager.default
            try files.createDirectory(
                at: folders.output.appending(path: "l/a.jpg"), withIntermediateDirectories: true)
            try files.createSymbolicLink(
                atPath: folders.output.appending(path: "l/b.jpg").path, withDestinationPath: "nowhere")
            let elsewhere = folders.output.deletingLastPathComponent().appending(path: "elsewhere")
            try files.createDirectory(at: elsewhere, withIntermediateDirectories: true)
            try Data("own".utf8).write(to: elsewhere.appending(path: "c.jpg"))
            try files.createSymbolicLink(
                at: folders.output.appending(path: "l/deep"), withDestinationURL: elsewhere)
            for name in ["l/a.png", "l/b.png", "l/deep/c.png"] { try folders.add(name, width: 80) }
            #expect(try folders.prepare().images == 5)
            for name in ["l/a-png.jpg", "l/b-png.jpg", "l/deep/c-png.jpg"] {
                #expect(exists(folders.output.appending(path: name)), "\(name)")
            }
            #expect(try Data(contentsOf: elsewhere.appending(path: "c.jpg")) == Data("own".utf8))
            #expect(exists(folders.output.appending(path: "l/b.jpg")))
        }
    }

    @Test("Photos whose names differ only in Unicode normalization have separate copies") func composition() throws {
        try withFolders { folders in
            try folders.add("l/caf\u{E9}.png", width: 80)
            try folders.add("l/cafe\u{301}.png", width: 90)
            // Some file systems cannot hold both.
            let labels = try FileManager.default.contentsOfDirectory(atPath: folders.data.appending(path: "l").path)
            guard labels.count == 3 else { return }
            #expect(try folders.prepare().images == 4)
            let copies = try ImageFolder(at: folders.output).items.map { try Data(contentsOf: $0.url) }
            #expect(Set(copies).count == 4)
            let again = try folders.prepare()
            #expect(again.unchanged == 4 && again.strays.isEmpty)
            #expect(try ImageFolder(at: folders.output).items.map { try Data(contentsOf: $0.url) } == copies)
        }
    }

    @Test("Labels that differ only in U+FEFF at their start stay separate") func byteOrderMark() throws {
        try withFolders { folders in
            try folders.add("\u{FEFF}l/x.png", width: 90)
            #expect(try folders.prepare().images == 3)
            let labels = try ImageFolder(at: folders.output).labels.map { Array($0.utf8) }
            #expect(labels.contains(Array("\u{FEFF}l".utf8)) && labels.contains(Array("l".utf8)))
        }
    }

    @Test("A duplicated or moved copy does not count as the copy of the photo")
    func duplicates() throws {
        try withFolders { folders in
            let files = FileManager.default
            let copy = folders.output.appending(path: "l/x.jpg")
            for name in ["l/x-mine.jpg", "m/other.jpg"] {
                try files.copyItem(at: copy, to: folders.output.appending(path: name))
                try files.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1)],
                    ofItemAtPath: folders.output.appending(path: name).path)
            }
            var edited = try folders.copy("l/x-mine.jpg")
            edited.append(0)
            try edited.write(to: folders.output.appending(path: "l/x-mine.jpg"))
            let outcome = try folders.prepare()
            #expect(outcome.unchanged == 2)
            #expect(outcome.strays.map(\.lastPathComponent) == ["x-mine.jpg", "other.jpg"])
            #expect(try folders.copy("l/x-mine.jpg") == edited)
            // The photo gets a new copy if its copy was moved.
            try files.removeItem(at: copy)
            #expect(try folders.prepare().unchanged == 1)
            #expect(exists(copy))
            #expect(try folders.copy("l/x-mine.jpg") == edited)
        }
    }

    @Test("Photos of equal size and time that swap names swap copies") func swap() throws {
        try withFolders { folders in
            let files = FileManager.default
            let (first, second) = (folders.data.appending(path: "l/a.png"), folders.data.appending(path: "l/b.png"))
            try folders.add("l/a.png", width: 80)
            try folders.add("l/b.png", width: 90)
            for file in [first, second] {
                var bytes = try Data(contentsOf: file)
                bytes.append(Data(count: 50_000 - bytes.count))
                try bytes.write(to: file)
                try files.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)], ofItemAtPath: file.path)
            }
            _ = try folders.prepare()
            let copies = try (folders.copy("l/a.jpg"), folders.copy("l/b.jpg"))
            let third = folders.data.appending(path: "third")
            try files.moveItem(at: first, to: third)
            try files.moveItem(at: second, to: first)
            try files.moveItem(at: third, to: second)
            #expect(try folders.prepare().unchanged == 2)
            // Each copy shows the photo that now has its name.
            let widths = try ["l/a.jpg", "l/b.jpg"].map {
                try ImageFile.decode(folders.output.appending(path: $0)).width
            }
            #expect(widths == [72, 64])
            #expect(try folders.copy("l/a.jpg") != copies.0 && folders.copy("l/b.jpg") != copies.1)
        }
    }

    @Test(
        "A photo with the longest possible name is copied; a photo whose copy's name is too long is skipped and listed"
    )
    func longNames() throws {
        try withFolders { folders in
            let (fits, tooLong) = (String(repeating: "n", count: 251), String(repeating: "o", count: 255))
            try folders.add("l/y.png", width: 80)
            let files = FileManager.default
            try files.copyItem(
                at: folders.data.appending(path: "l/y.png"), to: folders.data.appending(path: "l/\(fits).png"))
            try files.moveItem(
                at: folders.data.appending(path: "l/y.png"), to: folders.data.appending(path: "l/\(tooLong)"))
            let outcome = try folders.prepare()
            #expect(outcome.images == 3 && outcome.skipped.map(\.url.lastPathComponent) == [tooLong])
            #expect(outcome.skipped.first?.reason.description.contains("too long") == true)
            #expect(exists(folders.output.appending(path: "l/\(fits).jpg")))
            #expect(try ImageFolder(at: folders.output).items.count == 3)
        }
    }

    @Test("A name in the folder of copies that is not UTF-8 is an error, and nothing is written")
    func undecodableName() throws {
        try withFolders { folders in
            let creation = try run(
                URL(filePath: "/bin/sh"), ["-c", #"touch "$(printf 'caf\351.jpg')""#],
                folder: folders.output.appending(path: "l"))
            // Some file systems do not allow such names.
            guard creation.status == 0 else { return }
            let userFile = folders.output.appending(path: "l/y.jpg")
            try Data("own".utf8).write(to: userFile)
            try folders.add("l/y.png", width: 80)
            let error = #expect(throws: ImageError.self) { try folders.prepare() }
            #expect(error?.description.contains("caf\\xE9.jpg") == true)
            #expect(try Data(contentsOf: userFile) == Data("own".utf8))
        }
    }
}
