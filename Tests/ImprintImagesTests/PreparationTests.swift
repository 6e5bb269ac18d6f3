import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Preparation") struct PreparationTests {
    private func prepare(
        _ data: URL, _ output: URL, shortSide: Int = 40, quality: Int = 90
    ) throws -> Preparation.Outcome {
        try Preparation(shortSide: shortSide, quality: quality).run(
            ImageFolder(at: data, minimumLabels: 1), into: output, workers: Workers(2))
    }

    /// Returns the relative paths of all files, including hidden files.
    private func files(_ folder: URL) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { path in
            var isFolder = ObjCBool(false)
            return FileManager.default.fileExists(atPath: folder.appending(path: path).path, isDirectory: &isFolder)
                && !isFolder.boolValue
        }.sorted()
    }

    @Test("Photos become upright JPEGs with the requested short side; smaller photos keep their size") func sizes()
        throws
    {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            try write(.scene(1, width: 160, height: 80), to: data.appending(path: "a/wide.png"))
            try write(.scene(2, width: 30, height: 20), to: data.appending(path: "a/deep/small.jpg"))
            let turned = inserting(
                0xE1, Array("Exif\0\0".utf8) + exif(orientation: 6, isBigEndian: true),
                into: try ImageFile.encodeJPEG(.scene(3, width: 160, height: 80)))
            try FileManager.default.createDirectory(at: data.appending(path: "b"), withIntermediateDirectories: true)
            try Data(turned).write(to: data.appending(path: "b/turned.jpg"))
            let outcome = try prepare(data, output)
            #expect(outcome.images == 3 && outcome.unchanged == 0 && outcome.skipped.isEmpty)
            #expect(try files(output) == [".prepared.json", "a/deep/small.jpg", "a/wide.jpg", "b/turned.jpg"])
            for (path, width, height) in [
                ("a/wide.jpg", 80, 40), ("a/deep/small.jpg", 30, 20), ("b/turned.jpg", 40, 80),
            ] {
                let image = try ImageFile.decode(output.appending(path: path))
                #expect(image.width == width && image.height == height, "\(path)")
            }
            let upright = try ImageFile.decode(output.appending(path: "b/turned.jpg"))
            let expected = Orientation.right.upright(RasterImage.scene(3, width: 160, height: 80)).shrunk(
                toShortSide: 40)
            #expect(largestDifference(upright.samples, expected.samples) < 24)
            #expect(try ImageFolder(at: output).labels == ["a", "b"])
        }
    }

    @Test("Copies keep the capture time, so bursts are also found among copies") func captureTime() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            try write(.scene(1, width: 60, height: 50), to: data.appending(path: "a/plain.jpg"))
            let timed = CaptureTime.inserting(
                "2019:07:21 14:03:59", into: try ImageFile.encodeJPEG(.scene(2, width: 60, height: 50)))
            try Data(timed).write(to: data.appending(path: "a/timed.jpg"))
            _ = try prepare(data, output)
            #expect(CaptureTime.text(of: output.appending(path: "a/timed.jpg")) == "2019:07:21 14:03:59")
            #expect(CaptureTime.text(of: output.appending(path: "a/plain.jpg")) == nil)
            #expect(try ImageFile.decode(output.appending(path: "a/timed.jpg")).height == 40)
        }
    }

    @Test("Copies of moved or removed photos are listed and not changed") func strays() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            for name in ["a/moved.jpg", "a/stays.jpg", "b/removed.jpg", "b/stays.jpg"] {
                try write(.scene(1, width: 60, height: 50), to: data.appending(path: name))
            }
            #expect(try prepare(data, output).strays.isEmpty)
            try FileManager.default.moveItem(
                at: data.appending(path: "a/moved.jpg"), to: data.appending(path: "b/moved.jpg"))
            try FileManager.default.removeItem(at: data.appending(path: "b/removed.jpg"))
            let names = try prepare(data, output).strays.map { $0.pathComponents.suffix(2).joined(separator: "/") }
            #expect(names == ["a/moved.jpg", "b/removed.jpg"])
            #expect(try files(output).count == 6)
        }
    }

    @Test("A pipe with the name of a photo is skipped, not waited for", .timeLimit(.minutes(10))) func pipe() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            try write(.scene(1, width: 60, height: 50), to: data.appending(path: "a/photo.jpg"))
            try #require(mkfifo(data.appending(path: "a/pipe.jpg").path, 0o600) == 0)
            for unchanged in [0, 1] {
                let outcome = try prepare(data, output)
                #expect(outcome.images == 1 && outcome.unchanged == unchanged)
                #expect(outcome.skipped.map(\.url.lastPathComponent) == ["pipe.jpg"])
            }
            // In the folder of copies, too.
            try #require(mkfifo(output.appending(path: "a/pipe-2.jpg").path, 0o600) == 0)
            #expect(try prepare(data, output).unchanged == 1)
        }
    }

    @Test("Clashing names get distinct, deterministic names") func names() throws {
        try withTemporaryFolder { root in
            let data = root.appending(path: "data")
            for name in ["a.png", "a.jpg", "A.PNG", "a.jpeg", "b.png", "b", "c.x.png", "d-png.jpg", "d.png", "d.jpg"] {
                try write(.scene(1, width: 8, height: 8), to: data.appending(path: "l/temporary.png"))
                try FileManager.default.moveItem(
                    at: data.appending(path: "l/temporary.png"), to: data.appending(path: "l/\(name)"))
            }
            let folder = try ImageFolder(at: data, minimumLabels: 1)
            let targets = try Preparation.targets(of: folder, in: root.appending(path: "out")).map(\.lastPathComponent)
            let pairs = Dictionary(uniqueKeysWithValues: zip(folder.items.map(\.url.lastPathComponent), targets))
            #expect(
                pairs == [
                    "A.PNG": "A-png.jpg", "a.jpeg": "a-jpeg.jpg", "a.jpg": "a.jpg", "a.png": "a-png-2.jpg",
                    "b": "b.jpg",
                    "b.png": "b-png.jpg", "c.x.png": "c.x.jpg", "d-png.jpg": "d-png.jpg", "d.jpg": "d.jpg",
                    "d.png": "d-png-2.jpg",
                ])
            #expect(try prepare(data, root.appending(path: "out")).images == 10)
            #expect(try files(root.appending(path: "out")).count == 11)
        }
    }

    @Test("A second run copies only missing and changed photos") func resumes() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            for index in 0..<4 { try write(.scene(UInt64(index)), to: data.appending(path: "l/\(index).png")) }
            try Data("not an image".utf8).write(to: data.appending(path: "l/note.jpg"))
            let originals = try files(data).map { try Data(contentsOf: data.appending(path: $0)) }
            #expect(try prepare(data, output).skipped.map(\.url.lastPathComponent) == ["note.jpg"])
            let first = try Data(contentsOf: output.appending(path: "l/0.jpg"))
            try FileManager.default.removeItem(at: output.appending(path: "l/0.jpg"))
            let copy = output.appending(path: "l/1.jpg")
            let (content, stamp) = (try Data(contentsOf: copy), FileStamp(copy))
            let again = try prepare(data, output)
            #expect(again.images == 4 && again.unchanged == 3 && again.skipped.count == 1)
            #expect(try Data(contentsOf: output.appending(path: "l/0.jpg")) == first)
            #expect(FileStamp(copy) == stamp)
            // A changed original is copied again.
            try write(.scene(50), to: data.appending(path: "l/1.png"))
            #expect(try prepare(data, output).unchanged == 3)
            #expect(try Data(contentsOf: copy) != content)
            // The copy of an original that has become unreadable is removed.
            try Data("not an image".utf8).write(to: data.appending(path: "l/2.png"))
            #expect(try prepare(data, output).skipped.count == 2)
            #expect(try files(output) == [".prepared.json", "l/0.jpg", "l/1.jpg", "l/3.jpg"])
            #expect(originals.count == 5)
            #expect(try Data(contentsOf: data.appending(path: "l/0.png")) == originals[0])
        }
    }

    @Test(
        "A copy whose data was lost in a power cut is made again",
        arguments: [(0, 0), (1, 0), (1, 1)])
    func lostData(keptHalves: Int, zeroHalves: Int) throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            for index in 0..<2 { try write(.scene(UInt64(index)), to: data.appending(path: "l/\(index).png")) }
            _ = try prepare(data, output)
            let copy = output.appending(path: "l/1.jpg")
            let whole = try Data(contentsOf: copy)
            let time = try #require(FileManager.default.attributesOfItem(atPath: copy.path)[.modificationDate] as? Date)
            // The first half has the comment.
            let half = whole.count / 2
            try (whole.prefix(keptHalves * half) + Data(count: zeroHalves * (whole.count - half))).write(to: copy)
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: copy.path)
            let again = try prepare(data, output)
            #expect(again.images == 2 && again.unchanged == 1 && again.strays.isEmpty)
            #expect(try Data(contentsOf: copy) == whole)
            #expect(try prepare(data, output).unchanged == 2)
        }
    }

    @Test(
        "A copy belongs to its original: after a photo is removed or replaced, no other photo's copy is used for it")
    func sources() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            let time = Date(timeIntervalSince1970: 1_500_000_000)
            func write(_ name: String, scene: UInt64) throws {
                let file = data.appending(path: "l/\(name)")
                try ImprintImagesTests.write(.scene(scene, width: 60 + Int(scene), height: 50), to: file)
                try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
            }
            func width(_ copy: String) throws -> Int { try ImageFile.decode(output.appending(path: "l/\(copy)")).width }
            try write("a.jpg", scene: 20)
            try write("a.png", scene: 80)
            _ = try prepare(data, output)
            let widths = try (width("a.jpg"), width("a-png.jpg"))
            // The remaining photo keeps its copy; the copy of the removed photo is reported.
            try FileManager.default.removeItem(at: data.appending(path: "l/a.jpg"))
            let removed = try prepare(data, output)
            #expect(removed.unchanged == 1 && removed.strays.map(\.lastPathComponent) == ["a.jpg"])
            #expect(try width("a.jpg") == widths.0 && width("a-png.jpg") == widths.1)
            // A new photo with the name and the time of the removed photo gets a new copy.
            try write("a.jpg", scene: 90)
            let replaced = try prepare(data, output)
            #expect(replaced.unchanged == 1 && replaced.strays.isEmpty)
            #expect(try width("a.jpg") != widths.0)
        }
    }

    @Test("The user's files in the folder of copies are neither replaced nor removed") func userFiles() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            try write(.scene(1), to: data.appending(path: "l/a.png"))
            _ = try prepare(data, output)
            let userFile = output.appending(path: "l/b.jpg")
            try write(.scene(2), to: userFile)
            let before = try Data(contentsOf: userFile)
            try write(.scene(3), to: data.appending(path: "l/b.png"))
            try Data("not an image".utf8).write(to: data.appending(path: "l/c.jpg"))
            let outcome = try prepare(data, output)
            #expect(outcome.images == 2 && outcome.strays.map(\.lastPathComponent) == ["b.jpg"])
            #expect(try Data(contentsOf: userFile) == before)
            #expect(try files(output) == [".prepared.json", "l/a.jpg", "l/b-png.jpg", "l/b.jpg"])
        }
    }

    @Test("A folder prepared by an earlier version is an error and does not change")
    func earlierVersion() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            try write(.scene(1), to: data.appending(path: "l/a.png"))
            _ = try prepare(data, output)
            try Data(#"{"quality":90,"shortSide":40}"#.utf8).write(to: output.appending(path: ".prepared.json"))
            let before = try Data(contentsOf: output.appending(path: "l/a.jpg"))
            #expect(throws: PreparationError.otherVersion(folder: output)) { try prepare(data, output) }
            #expect(try Data(contentsOf: output.appending(path: "l/a.jpg")) == before)
        }
    }

    @Test("A panorama that is too long for a JPEG is skipped and listed") func panorama() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "out"))
            try write(.scene(1), to: data.appending(path: "l/a.png"))
            try write(RasterImage(width: 66_000, height: 20, filledWith: 90), to: data.appending(path: "l/wide.png"))
            let outcome = try prepare(data, output)
            #expect(outcome.images == 1 && outcome.skipped.map(\.url.lastPathComponent) == ["wide.png"])
            #expect(outcome.skipped.first?.reason.description.contains("wide.png") == true)
        }
    }

    /// Expects that preparing into `output` is rejected with `originalsAtRisk` and changes no file.
    private func expectAtRisk(_ data: URL, _ output: URL, in root: URL) throws {
        let before = try files(root)
        let error = #expect(throws: PreparationError.self) { try prepare(data, output) }
        guard case .originalsAtRisk = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try files(root) == before)
    }

    @Test(
        "An output folder inside or around the originals is an error",
        arguments: ["data", "data/", "data/l", "data/new/deep", ".", "link", "link/new", "data/../data/x"])
    func risks(output: String) throws {
        try withTemporaryFolder { root in
            let data = root.appending(path: "data")
            try write(.scene(1), to: data.appending(path: "l/1.png"))
            try FileManager.default.createSymbolicLink(at: root.appending(path: "link"), withDestinationURL: data)
            try expectAtRisk(data, root.appending(path: output), in: root)
        }
    }

    @Test(
        "An output folder inside a linked folder of originals is an error", arguments: ["photos/l/new", "photos/l"])
    func linkedLabels(output: String) throws {
        try withTemporaryFolder { root in
            let data = root.appending(path: "data")
            try write(.scene(1), to: root.appending(path: "photos/l/1.png"))
            try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                at: data.appending(path: "l"), withDestinationURL: root.appending(path: "photos/l"))
            try expectAtRisk(data, root.appending(path: output), in: root)
        }
    }

    @Test("A folder with other files is an error that names one of them") func foreignFolders() throws {
        try withTemporaryFolder { root in
            let (data, output) = (root.appending(path: "data"), root.appending(path: "data2"))
            try write(.scene(1), to: data.appending(path: "l/1.png"))
            try write(.scene(1), to: output.appending(path: "other/1.png"))
            #expect(throws: PreparationError.foreignFolder(folder: output, found: "other")) {
                try prepare(data, output)
            }
            let prepared = root.appending(path: "prepared")
            _ = try prepare(data, prepared)
            let error = PreparationError.otherRules(
                folder: prepared, found: Preparation(shortSide: 40), expected: Preparation(shortSide: 40, quality: 80))
            #expect(throws: error) { try prepare(data, prepared, quality: 80) }
            #expect(
                "\(error)".contains("a short side of 40 and quality 90, expected a short side of 40 and quality 80"))
            #expect(try prepare(data, prepared).unchanged == 1)
            try Data("{".utf8).write(to: prepared.appending(path: ".prepared.json"))
            #expect(throws: PreparationError.self) { try prepare(data, prepared) }
        }
    }
}
