import Foundation
import ImprintImages
import TestSupport
import Testing

/// The commands `audit`, which checks a dataset, and `prepare`, which writes a resized copy.
@Suite struct DataSetTests {
    /// Writes photos, a copy of one under another label, a truncated file and a text file.
    private func writePhotos(to folder: URL) throws {
        try writeImages(to: folder.appending(path: "photos"), count: 8)
        let files = FileManager.default
        try files.copyItem(
            at: folder.appending(path: "photos/dark/1.png"), to: folder.appending(path: "photos/bright/copy.png"))
        let photo = try Data(contentsOf: folder.appending(path: "photos/dark/0.png"))
        try photo.prefix(photo.count / 2).write(to: folder.appending(path: "photos/dark/short.png"))
        try Data("not an image".utf8).write(to: folder.appending(path: "photos/dark/note.jpg"))
    }

    // Fixtures/output-audit.txt is the expected output. Review a change before you accept it.
    @Test("The text output of audit matches the fixture, and the report is written")
    func auditText() throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            let run = try imprint("audit", "photos", "--report", "page.html", folder: folder)
            let fixture = packageFolder.appending(path: "Tests/CLITests/Fixtures/output-audit.txt")
            #expect(run.status == 0, "\(run.errors)")
            let output = run.output.replacing(folder.resolvingSymlinksInPath().path, with: "FOLDER")
            #expect(output == (try String(contentsOf: fixture, encoding: .utf8)))
            let page = try String(contentsOf: folder.appending(path: "page.html"), encoding: .utf8)
            #expect(page.contains("Near-duplicates with different labels"))
        }
    }

    @Test(
        "audit counts ignored files and rotated photos in the singular and in the plural",
        arguments: [
            (
                1, "1 file is not an image, or is not in the folder of a label\n",
                "1 photo is stored rotated; Imprint turns it"
            ),
            (
                2, "2 files are not images, or are not in the folder of a label\n",
                "2 photos are stored rotated; Imprint turns them"
            ),
        ])
    func auditCounts(count: Int, files: String, photos: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            // An EXIF segment with the orientation 6.
            let exif =
                Array("Exif\0\0MM\0*\0\0\0\u{8}\0\u{1}".utf8) + [1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
            let segment = [0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif
            for index in 0..<count {
                let photo = RasterImage(width: 40, height: 30, filledWith: UInt8(50 + 100 * index))
                let jpeg = try ImageFile.encodeJPEG(photo)
                try Data(jpeg.prefix(2) + segment + jpeg.dropFirst(2))
                    .write(to: folder.appending(path: "photos/dark/r\(index).jpg"))
                try Data("text".utf8).write(to: folder.appending(path: "photos/dark/n\(index).txt"))
            }
            let run = try imprint("audit", "photos", folder: folder)
            #expect(run.output.contains("\n" + files) && run.output.contains("\n" + photos), "\(run.output)")
        }
    }

    @Test("audit --json prints a line for each finding and a summary")
    func auditLines() throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            try FileManager.default.createDirectory(
                at: folder.appending(path: "test/dark"), withIntermediateDirectories: true)
            try FileManager.default.copyItem(
                at: folder.appending(path: "photos/dark/2.png"), to: folder.appending(path: "test/dark/other.png"))
            let run = try imprint("audit", "photos", "--validation", "test", "--json", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let findings = run.lines.dropLast()
            #expect(findings.allSatisfy { $0["event"] as? String == "finding" })
            let kinds = findings.compactMap { $0["kind"] as? String }
            #expect(
                Set(kinds).isSuperset(of: ["acrossLabels", "acrossSplits", "unreadable", "truncated", "tiny", "copies"])
            )
            let across = try #require(findings.first { $0["kind"] as? String == "acrossSplits" })
            let names = (across["files"] as? [String])?.map { URL(filePath: $0).lastPathComponent }
            #expect(names == ["other.png", "2.png"])
            let finished = try #require(run.lines.last)
            #expect(finished["event"] as? String == "finished")
            #expect(finished["images"] as? Int == 12)
            #expect((finished["findings"] as? [String: Int])?["truncated"] == 1)
            #expect(finished["randomSplit"] is NSNull && finished["imbalance"] is Double)
            #expect((finished["labels"] as? [[String: Any]])?.map { $0["validationImages"] as? Int } == [0, 1])
        }
    }

    @Test("audit does not compare the photos of both sets with themselves") func sharedPhotos() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let run = try imprint("audit", "photos", "--validation", "photos", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output.hasPrefix("8 photos for training and 8 for validation, of 2 labels\n"), "\(run.output)")
            #expect(run.output.contains("\nPhotos in more than one set: 8\n"), "\(run.output)")
            #expect(
                run.output.contains("\n  - photos/bright/0.png: in the training and the validation set\n"),
                "\(run.output)")
            for title in ["Exact duplicates", "Leakage"] { #expect(!run.output.contains(title), "\(run.output)") }
        }
    }

    @Test("Training reports near-duplicates of training images in the validation set, and its split avoids them")
    func leaks() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let files = FileManager.default
            for path in ["dark/0", "dark/1", "bright/0", "bright/1"] {
                for copy in 1...3 {
                    try files.copyItem(
                        at: folder.appending(path: "photos/\(path).png"),
                        to: folder.appending(path: "photos/\(path), copy \(copy)a.png"))
                }
            }
            func run(_ validation: String, _ more: String = "") throws -> CommandOutput {
                try shell(
                    "$imprint train photos --output m.imprint --epochs 1 --input-size 16 --json --validation \(validation) \(more)",
                    folder: folder)
            }
            let split = try run("0.4")
            #expect(split.status == 0, "\(split.errors)")
            #expect(split.errors.contains("stay together in the dataset split; in a random split,"))
            let avoided = try #require(split.lines.last?["leaksAvoided"] as? Int)
            #expect(avoided >= 2)
            #expect(split.lines.last?["leaked"] as? Int == 0)
            let same = try run("photos")
            #expect(same.errors.contains("Warning: 20 of 20 validation photos are near-duplicates"))
            #expect(same.lines.last?["leaked"] as? Int == 20)
            let random = try run("0.4", "--random-split")
            #expect(!random.errors.contains("split"))
            #expect(random.lines.last?["leaked"] == nil)
        }
    }

    @Test("prepare fails if it cannot read any photo") func preparesNothing() throws {
        try withTemporaryFolder { folder in
            let photos = folder.appending(path: "photos/dark")
            try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: true)
            for name in ["0.png", "1.png"] { try Data("text".utf8).write(to: photos.appending(path: name)) }
            let run = try imprint("prepare", "photos", "--output", "copy", folder: folder)
            #expect(run.status == 1 && run.errors.contains("skipped 2"), "\(run.errors)")
        }
    }

    @Test("prepare copies each photo once, reports skipped files, and its copy can be trained on")
    func prepares() throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            let first = try imprint("prepare", "photos", "--output", "copy", "--size", "16", "--json", folder: folder)
            #expect(first.status == 0, "\(first.errors)")
            #expect(first.errors.contains("Skipped: "))
            let line = try #require(first.lines.first)
            #expect(line["event"] as? String == "finished")
            #expect(line["images"] as? Int == 9 && line["unchanged"] as? Int == 0)
            #expect((line["skipped"] as? [[String: Any]])?.count == 2)
            #expect(line["output"] as? String == "copy")
            #expect(line["seconds"] is Double)
            let image = try ImageFile.decode(folder.appending(path: "copy/dark/0.jpg"))
            #expect(image.width == 16 && image.height == 19)
            let again = try imprint("prepare", "photos", "--output", "copy", "--size", "16", folder: folder)
            #expect(again.errors.contains("Prepared 9 photos into copy, 9 of them earlier, skipped 2"))
            #expect(again.output.isEmpty)
            let other = try imprint("prepare", "photos", "--output", "copy", folder: folder)
            #expect(other.status == 64 && other.errors.contains("was prepared with a short side of 16"))
            let inside = try imprint("prepare", "photos", "--output", "photos/dark/new", folder: folder)
            #expect(inside.status == 64 && inside.errors.contains("originals could be overwritten"))
            let trained = try imprint(
                "train", "copy", "--output", "m.imprint", "--epochs", "1", "--input-size", "16", folder: folder)
            #expect(trained.status == 0, "\(trained.errors)")
        }
    }
}
