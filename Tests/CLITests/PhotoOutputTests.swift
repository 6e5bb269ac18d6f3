import Foundation
import ImprintImages
import TestSupport
import Testing

/// CSV, sorted copies and annotated copies of classify and detect.
@Suite struct PhotoOutputTests {
    /// Returns the files below a folder, relative to it.
    private func files(in folder: URL) throws -> Set<String> {
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        return Set(
            names.filter { name in
                var isFolder: ObjCBool = false
                _ = FileManager.default.fileExists(
                    atPath: folder.appending(path: name).path, isDirectory: &isFolder)
                return !isFolder.boolValue
            })
    }

    private func bytes(_ file: URL) throws -> Data { try Data(contentsOf: file) }

    @Test("Python's csv module reads the CSV of any names and labels", .enabled(if: Python.path != nil, "needs Python"))
    func csv() throws {
        try withTemporaryFolder { folder in
            let labels = ["say \"hi\", you\r\n", "=1+1"]
            try writeBrightnessModel(
                labels: labels, photos: ["a,b.png": 240, "line\nbreak\".png": 20, "grey.png": 128], to: folder)
            let run = try shell(
                "$imprint classify m.imprint a,b.png line*.png missing,.png grey.png --csv --threshold 0.6 > out.csv",
                folder: folder)
            #expect(run.status == 1)
            let output = try Python.output(
                of: "CLITests/Fixtures/read-csv.py", [folder.appending(path: "out.csv").path])
            let rows = try #require(try JSONSerialization.jsonObject(with: output) as? [[String]])
            #expect(rows.map(\.count) == [5, 5, 5, 5, 5])
            #expect(rows[0] == ["file", "rank", "label", "confidence", "error"])
            #expect(rows[1].prefix(3) == ["a,b.png", "1", labels[0]] && (Float(rows[1][3]) ?? 0) > 0.6)
            #expect(rows[2].prefix(3) == ["line\nbreak\".png", "1", labels[1]])
            #expect(
                rows[3].prefix(4) == ["missing,.png", "", "", ""] && rows[3][4].contains("the file does not exist"))
            #expect(rows[4] == ["grey.png", "", "", "", ""])
        }
    }

    @Test("detect --csv has the columns of the box, and detect takes folders, lists and shards")
    func detections() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeRandomDetector(logos: ["bright", "leaf"], to: folder.appending(path: "d.imprint"))
            let run = try imprint("detect", "d.imprint", "photos", "--csv", "--threshold", "0", folder: folder)
            let lines = run.output.split(separator: "\n").map {
                $0.split(separator: ",", omittingEmptySubsequences: false)
            }
            #expect(run.status == 0 && Set(lines.dropFirst().map { $0[0] }).count == 4, "\(run.errors)")
            #expect(lines.first == ["file", "rank", "label", "confidence", "x", "y", "width", "height", "error"])
            #expect(lines.allSatisfy { $0.count == 9 })
            // A photo has a row for each detection, in the order of the ranks.
            for rows in Dictionary(grouping: lines.dropFirst(), by: { $0[0] }).values {
                #expect(rows.map { $0[1] } == (1...rows.count).map { "\($0)" })
            }
            #expect(lines.dropFirst().allSatisfy { $0[4...7].allSatisfy { Float($0) != nil } })
            let shard = try shell(
                "find photos -name '*.png' | sort | $imprint detect d.imprint missing.png --files-from - --shard 1/2 --json",
                folder: folder)
            #expect(shard.status == 1)
            #expect(
                shard.lines.map { $0["file"] as? String } == [
                    "missing.png", "photos/bright/1.png", "photos/dark/1.png",
                ])
            #expect(shard.lines[0].keys.sorted() == ["error", "file"])
        }
    }

    @Test("--copy-to sorts photos into folders of their labels, keeps their times, and never replaces a file")
    func sortedCopies() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(
                photos: ["p/a/x.png": 250, "p/b/x.png": 240, "p/c/x.png": 250, "p/d.png": 10, "p/grey.png": 128],
                to: folder)
            let time = Date(timeIntervalSince1970: 1_000_000_000)
            let photo = folder.appending(path: "p/d.png")
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: photo.path)
            let sorted = folder.appending(path: "s")
            try FileManager.default.createDirectory(
                at: sorted.appending(path: "dark"), withIntermediateDirectories: true)
            try Data("mine".utf8).write(to: sorted.appending(path: "dark/d.png"))
            let expected: Set = [
                "bright/x.png", "bright/x-2.png", "dark/d.png", "dark/d-2.png", "none of these/grey.png",
            ]
            let command = ["classify", "m.imprint", "p", "--threshold", "0.6", "--copy-to", "s"]
            for summary in [
                "Copied 4 photos to s; 1 more had a copy there.", "Copied 0 photos to s; 5 more had a copy there.",
            ] {
                let run = try run(tool, command, folder: folder)
                #expect(run.status == 0 && run.errors.contains(summary), "\(run.errors)")
                #expect(try files(in: sorted) == expected)
            }
            #expect(try bytes(sorted.appending(path: "dark/d.png")) == Data("mine".utf8))
            #expect(try bytes(sorted.appending(path: "dark/d-2.png")) == bytes(photo))
            #expect(try bytes(sorted.appending(path: "bright/x-2.png")) == bytes(folder.appending(path: "p/b/x.png")))
            let attributes = try FileManager.default.attributesOfItem(
                atPath: sorted.appending(path: "dark/d-2.png").path)
            #expect(attributes[.modificationDate] as? Date == time)
        }
    }

    @Test(
        "Copies stay in the folder for any label",
        arguments: [
            "..", ".", "../../up", "a/b", "/etc", "C:\\x", "nul\u{1}\n", ".hidden", "dot. ",
            String(repeating: "ü", count: 300),
        ])
    func hostileLabels(label: String) throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(labels: [label, label + "/"], photos: ["a.png": 250, "b.png": 5], to: folder)
            let run = try imprint("classify", "m.imprint", "a.png", "b.png", "--copy-to", "s/t", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let outside: Set = try files(in: folder).filter { !$0.hasPrefix("s/t/") }
            #expect(outside == ["m.imprint", "a.png", "b.png"])
            let paths = try files(in: folder.appending(path: "s/t")).map { $0.split(separator: "/") }
            #expect(paths.map(\.count) == [2, 2] && Set(paths.map { $0[0] }).count == 2, "\(paths)")
            for name in paths.map({ $0[0] }) {
                #expect(!name.hasPrefix(".") && name.utf8.count <= 255, "\(name)")
                #expect(!name.unicodeScalars.contains { $0.value < 32 || "\\:*?\"<>|".unicodeScalars.contains($0) })
            }
        }
    }

    @Test("Rejected photos and photos of a label with the name of their folder have separate folders")
    func labelOfNone() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(
                labels: ["none of these", "dark"], photos: ["a.png": 250, "grey.png": 128], to: folder)
            let run = try imprint(
                "classify", "m.imprint", "a.png", "grey.png", "--threshold", "0.6", "--copy-to", "s", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let copies = try files(in: folder.appending(path: "s")).sorted()
            #expect(copies.count == 2 && copies.contains("none of these/grey.png"), "\(copies)")
            #expect(copies.contains { $0.hasPrefix("none of these-") && $0.hasSuffix("/a.png") }, "\(copies)")
        }
    }

    @Test(
        "Output folders in a folder of photos, or in the way of a file, are an error",
        arguments: [
            ("--copy-to p/sorted", "is in the folder of photos p"), ("--annotate p", "is in the folder of photos p"),
            ("--copy-to m.imprint", "is a file"), ("--copy-to s --annotate ./s", "expected two folders"),
            ("--annotate ''", "A path is empty"),
        ])
    func wrongFolders(options: String, message: String) throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: ["p/a.png": 250], to: folder)
            let run = try shell("$imprint classify m.imprint p \(options)", folder: folder)
            #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
            #expect(try files(in: folder) == ["m.imprint", "p/a.png"])
        }
    }

    @Test("--annotate writes a JPEG for each photo, mirrors folders, and replaces only its own copies")
    func annotatedCopies() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: ["p/a/x.png": 250, "p/x.png": 10, "o/x.png": 20, "x.jpg": 30], to: folder)
            let photo = try bytes(folder.appending(path: "x.jpg"))
            let expected: Set = ["a/x.jpg", "x.jpg", "x-2.jpg", "x-3.jpg"]
            var copies: [Data] = []
            for threads in ["1", "3", "3"] {
                let run = try imprint(
                    "classify", "m.imprint", "p", "o/x.png", "x.jpg", "--annotate", "n", "--threads", threads,
                    folder: folder)
                #expect(run.status == 0 && run.errors.contains("Wrote 4 annotated photos to n."), "\(run.errors)")
                #expect(try files(in: folder.appending(path: "n")) == expected)
                copies.append(try bytes(folder.appending(path: "n/a/x.jpg")))
            }
            #expect(copies[0] == copies[1] && copies[1] == copies[2])
            let image = try ImageFile.decode(folder.appending(path: "n/a/x.jpg"))
            let original = try ImageFile.decode(folder.appending(path: "p/a/x.png"))
            // The photo is enlarged, and a dark band with light text is below it.
            #expect(image.width > original.width && image.height > image.width * 12 / 9)
            #expect(image.samples[0] > 240)
            #expect(image.samples.contains { $0 < 60 })
            #expect(image.samples.suffix(image.width * 3 * 20).contains { $0 > 200 })
            // Photos in the folder of the copies are not annotated, and not replaced.
            let here = try imprint("classify", "m.imprint", "x.jpg", "n/x.jpg", "--annotate", "n", folder: folder)
            #expect(here.status == 1 && here.errors.contains("the folder of the annotated copies"), "\(here.errors)")
            let same = try imprint("classify", "m.imprint", "x.jpg", "--annotate", ".", folder: folder)
            #expect(same.status == 1 && same.errors.contains("Annotate into another folder."), "\(same.errors)")
            #expect(try bytes(folder.appending(path: "x.jpg")) == photo)
        }
    }

    @Test("A photo that is too long for a JPEG is also annotated") func annotatedPanorama() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: [:], to: folder)
            let photo = folder.appending(path: "wide.png")
            try ImageFile.write(RasterImage(width: 66_000, height: 20, filledWith: 240), to: photo)
            let run = try imprint("classify", "m.imprint", "wide.png", "--annotate", "n", folder: folder)
            #expect(run.status == 0 && run.output.contains("wide.png: bright"), "\(run.errors)")
            #expect(try ImageFile.information(of: folder.appending(path: "n/wide.jpg")).width == 64_800)
        }
    }

    @Test("detect --annotate draws the boxes on the photo")
    func annotatedBoxes() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            try writeRandomDetector(logos: ["bright", "leaf"], to: folder.appending(path: "d.imprint"))
            let run = try imprint(
                "detect", "d.imprint", "photos/dark/0.png", "--threshold", "0", "--annotate", "n", "--copy-to", "s",
                folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let image = try ImageFile.decode(folder.appending(path: "n/0.jpg"))
            // The photo is 20 x 24 pixels; there is no band below it, because the captions are at the boxes.
            #expect(image.width * 24 == image.height * 20 && image.width % 20 == 0 && image.width > 200)
            let colored = stride(from: 0, to: image.samples.count, by: 3).count { pixel in
                let color = image.samples[pixel..<(pixel + 3)].map(Int.init)
                return (color.max() ?? 0) - (color.min() ?? 0) > 100
            }
            #expect(colored > 200, "\(colored)")
            #expect(try files(in: folder.appending(path: "s")).count == 1)
        }
    }
}
