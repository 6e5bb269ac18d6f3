import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import ImprintTraining

/// Counts, crops and COCO files of detect.
@Suite struct DetectionOutputTests {
    private func withDetector(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeRandomDetector(logos: ["bright/light", "leaf"], to: folder.appending(path: "d.imprint"))
            try body(folder)
        }
    }

    private func detections(_ folder: URL, threshold: String = "0") throws -> [[[String: Any]]] {
        let run = try imprint("detect", "d.imprint", "photos", "--threshold", threshold, "--json", folder: folder)
        return try run.lines.map { try #require($0["detections"] as? [[String: Any]]) }
    }

    @Test("--count prints the number of detections of each label, as text, JSON and CSV") func counts() throws {
        try withDetector { folder in
            let expected = try detections(folder).map { detections in
                ["bright/light", "leaf"].map { label in detections.count { $0["label"] as? String == label } }
            }
            let arguments = ["detect", "d.imprint", "photos", "--threshold", "0", "--count"]
            let json = try run(tool, arguments + ["--json"], folder: folder)
            let counts = json.lines.map { line in
                ["bright/light", "leaf"].map { (line["counts"] as? [String: Int])?[$0] ?? -1 }
            }
            #expect(counts == expected && json.lines.allSatisfy { $0.keys.sorted() == ["counts", "file"] })
            let csv = try run(tool, arguments + ["--csv", "missing.png"], folder: folder)
            let rows = csv.output.split(separator: "\n").map {
                $0.split(separator: ",", omittingEmptySubsequences: false)
            }
            #expect(csv.status == 1 && rows[0] == ["file", "bright/light", "leaf", "error"])
            let numbers: [[Int]] = rows.dropFirst().dropLast().map { row in row[1...2].map { Int($0) ?? -1 } }
            #expect(numbers == expected)
            #expect(rows.last?.prefix(3) == ["missing.png", "", ""] && csv.output.contains("the file does not exist"))
            let text = try run(tool, arguments, folder: folder)
            #expect(text.output.hasPrefix("photos/bright/0.png: \(expected[0][0]) bright/light, "))
            let total = expected.reduce(0) { $0 + $1[1] }
            #expect(text.errors.contains("Total: ") && text.errors.contains(", \(total) leaf."), "\(text.errors)")
            // This detector has no thresholds, so auto means 0.5.
            let auto = try imprint("detect", "d.imprint", "photos", "--threshold", "auto", "--count", folder: folder)
            let half = try imprint("detect", "d.imprint", "photos", "--threshold", "0.5", "--count", folder: folder)
            #expect(auto.status == 0 && auto.output == half.output, "\(auto.errors)")
            let none = try imprint("detect", "d.imprint", "photos", "--threshold", "1", "--count", folder: folder)
            #expect(none.output.hasPrefix("photos/bright/0.png: no logo\n"))
            #expect(none.errors.contains("Total: no logo."))
        }
    }

    @Test("The CSV columns of labels that are named like other columns have a prefix") func columnNames() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 1)
            let labels = ["error", "file", "label file"]
            try writeRandomDetector(logos: labels, to: folder.appending(path: "d.imprint"))
            let csv = try imprint("detect", "d.imprint", "photos", "--count", "--csv", folder: folder)
            #expect(csv.output.hasPrefix("file,label error,label label file,label file,error\n"), "\(csv.output)")
            let json = try imprint("detect", "d.imprint", "photos", "--count", "--json", folder: folder)
            #expect((json.lines.first?["counts"] as? [String: Int])?.keys.sorted() == labels)
        }
    }

    @Test("--crop-to cuts detections out of their photos, and a second run adds nothing") func crops() throws {
        try withDetector { folder in
            let found = try detections(folder)
            let arguments = ["detect", "d.imprint", "photos", "--threshold", "0", "--crop-to", "crops"]
            let first = try run(tool, arguments, folder: folder)
            let count = found.reduce(0) { $0 + $1.count }
            #expect(first.status == 0 && first.errors.contains("Wrote \(count) crops to crops."), "\(first.errors)")
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "crops").path)
            #expect(names.count == 2 && names.contains("leaf"))
            let leaf = try #require(found[0].first { $0["label"] as? String == "leaf" }?["box"] as? [String: Double])
            let photo = try ImageFile.decode(folder.appending(path: "photos/bright/0.png"))
            let crop = try ImageFile.decode(folder.appending(path: "crops/leaf/0.jpg"))
            // The box is extended to whole pixels.
            let width = try #require(leaf["width"]) * Double(photo.width)
            #expect(Double(crop.width) >= width - 0.01 && Double(crop.width) < width + 2)
            let second = try run(tool, arguments, folder: folder)
            #expect(
                second.errors.contains("Wrote 0 crops to crops; \(count) more were there already."), "\(second.errors)")
            let same = try run(tool, arguments + ["--annotate", "crops"], folder: folder)
            #expect(same.status == 64 && same.errors.contains("is also the folder of --annotate"), "\(same.errors)")
            let inside = try run(
                tool, ["detect", "d.imprint", "photos", "--crop-to", "photos/crops"], folder: folder)
            #expect(inside.status == 64 && inside.errors.contains("is in the folder of photos"), "\(inside.errors)")
        }
    }

    @Test("Crops of many photos with one name have different names, and a second run adds nothing") func equalNames()
        throws
    {
        try withDetector { folder in
            let photos = folder.appending(path: "many")
            try writeImages(to: photos, count: 24)
            for index in 0..<12 {
                let target = photos.appending(path: "\(index)")
                try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
                try FileManager.default.moveItem(
                    at: photos.appending(path: "bright/\(index).png"), to: target.appending(path: "a.png"))
            }
            try FileManager.default.removeItem(at: photos.appending(path: "dark"))
            let arguments = ["detect", "d.imprint", "many", "--threshold", "0", "--crop-to", "crops"]
            #expect(try run(tool, arguments, folder: folder).status == 0)
            let crops = folder.appending(path: "crops/leaf")
            let names = try FileManager.default.contentsOfDirectory(atPath: crops.path)
            let expected = (2...names.count).map { "a-\($0).jpg" } + ["a.jpg"]
            #expect(names.count >= 12 && Set(names) == Set(expected))
            let contents = try names.map { try Data(contentsOf: crops.appending(path: $0)) }
            #expect(Set(contents).count == names.count)
            let second = try run(tool, arguments, folder: folder)
            #expect(second.errors.contains("Wrote 0 crops to crops;"), "\(second.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: crops.path).count == names.count)
        }
    }

    @Test("--coco writes annotations that can be read again") func coco() throws {
        try withDetector { folder in
            let found = try detections(folder)
            let arguments = ["detect", "d.imprint", "photos", "--threshold", "0", "--coco", "boxes.json"]
            let run = try run(tool, arguments, folder: folder)
            #expect(run.status == 0 && run.errors.contains("detections in 4 photos to boxes.json."), "\(run.errors)")
            let file = folder.appending(path: "boxes.json")
            let annotations = try BoxAnnotations(contentsOf: file)
            #expect(
                annotations.labels == ["bright/light", "leaf"] && annotations.warnings.isEmpty,
                "\(annotations.warnings)")
            #expect(annotations.photos.map(\.objects.count) == found.map(\.count))
            for (object, detection) in zip(annotations.photos.flatMap(\.objects), found.joined()) {
                let box = try #require(detection["box"] as? [String: Double])
                #expect(object.label == detection["label"] as? String)
                #expect(abs(Double(object.box.x) - box["x", default: -1]) < 1e-5)
                #expect(abs(Double(object.box.height) - box["height", default: -1]) < 1e-5)
            }
            let object = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
            let first = try #require((object?["annotations"] as? [[String: Any]])?.first)
            #expect(first["score"] as? Double == found[0][0]["confidence"] as? Double)
            let missing = arguments.map { $0 == "boxes.json" ? "missing/boxes.json" : $0 }
            let unwritable = try TestSupport.run(tool, missing, folder: folder)
            #expect(unwritable.status == 1 && unwritable.output.isEmpty && unwritable.errors.contains("missing"))
            // An earlier file of detections is replaced, but no other file.
            #expect(try TestSupport.run(tool, arguments, folder: folder).status == 0)
            try Data("{}".utf8).write(to: file)
            let refused = try TestSupport.run(tool, arguments, folder: folder)
            #expect(
                refused.status == 64 && refused.errors.contains("is not a COCO file of detections that Imprint wrote"))
            #expect(try Data(contentsOf: file) == Data("{}".utf8))
        }
    }

    @Test("A photo that is named twice is once in the COCO file") func repeatedPhotos() throws {
        try withDetector { folder in
            let arguments = ["detect", "d.imprint", "photos", "photos/bright/0.png", "./photos/dark/../bright/0.png"]
            let run = try run(tool, arguments + ["--threshold", "0", "--coco", "boxes.json"], folder: folder)
            #expect(run.status == 0 && run.errors.contains("detections in 4 photos to boxes.json."), "\(run.errors)")
            let annotations = try BoxAnnotations(contentsOf: folder.appending(path: "boxes.json"))
            #expect(annotations.photos.map(\.objects.count) == (try detections(folder)).map(\.count))
        }
    }

    /// Starts to detect with a list of photos that is a pipe, and waits for the result of the first photo; the list stays open.
    private static let start = """
        mkfifo list
        touch found
        $imprint detect d.imprint --files-from list --json --coco boxes.json > found &
        exec 3> list
        echo photos/bright/0.png >&3
        attempts=0
        until grep -q png found || [ $attempts -gt 600 ]; do sleep 0.05; attempts=$((attempts + 1)); done
        """

    @Test(
        "Incomplete detections do not replace an earlier COCO file",
        arguments: [
            ("$imprint detect d.imprint photo.png --coco boxes.json", 1, "no photo was processed"),
            (
                "$imprint detect d.imprint photos --json --coco boxes.json > /dev/full", 1,
                "not all photos were processed"
            ), ("\(start)\nkill -INT $!\nwait $!", 130, "not all photos were processed"),
        ] as [(String, Int32, String)])
    func incompleteCOCO(script: String, status: Int32, reason: String) throws {
        try withDetector { folder in
            let complete = try imprint("detect", "d.imprint", "photos", "--coco", "boxes.json", folder: folder)
            #expect(complete.status == 0, "\(complete.errors)")
            let file = folder.appending(path: "boxes.json")
            let before = try Data(contentsOf: file)
            let run = try shell(script, folder: folder)
            #expect(run.status == status, "\(run.errors)")
            #expect(run.errors.contains("Did not replace boxes.json, because \(reason)."), "\(run.errors)")
            #expect(!run.errors.contains("Wrote "), "\(run.errors)")
            #expect(try Data(contentsOf: file) == before)
        }
    }

    @Test(
        "Without an earlier COCO file, an interrupted run writes the detections so far, and warns even with --quiet",
        arguments: ["", "--quiet"])
    func interruptedCOCO(option: String) throws {
        try withDetector { folder in
            let start = Self.start.replacing("--json", with: "--json \(option)")
            let run = try shell("\(start)\nkill -INT $!\nwait $!", folder: folder)
            #expect(run.status == 130)
            #expect(
                run.errors.contains(" in 1 photo to boxes.json, because not all photos were processed."),
                "\(run.errors)")
            #expect(try BoxAnnotations(contentsOf: folder.appending(path: "boxes.json")).photos.count == 1)
        }
    }

    @Test("If another file appears at the path of --coco, the summary names the new file") func occupiedCOCO() throws {
        try withDetector { folder in
            let run = try shell("\(Self.start)\necho mine > boxes.json\nexec 3>&-\nwait $!", folder: folder)
            #expect(run.status == 0 && run.errors.contains("boxes-2.json."), "\(run.errors)")
            #expect(!run.errors.contains("to boxes.json."), "\(run.errors)")
            #expect(try String(contentsOf: folder.appending(path: "boxes.json"), encoding: .utf8) == "mine\n")
            #expect(try BoxAnnotations(contentsOf: folder.appending(path: "boxes-2.json")).photos.count == 1)
        }
    }

    @Test("A COCO file has the names of photos as they were typed, also of symbolic links") func links() throws {
        try withDetector { folder in
            let (store, set) = (folder.appending(path: "store"), folder.appending(path: "set"))
            try FileManager.default.moveItem(at: folder.appending(path: "photos"), to: store)
            try FileManager.default.createDirectory(at: set, withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(
                atPath: set.appending(path: "a.png").path, withDestinationPath: "../store/bright/0.png")
            try FileManager.default.createSymbolicLink(
                atPath: set.appending(path: "dark").path, withDestinationPath: "../store/dark")
            let run = try imprint(
                "detect", "d.imprint", "set/a.png", "set/dark/1.png", "store/dark/0.png", "--coco", "set/boxes.json",
                folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let data = try Data(contentsOf: set.appending(path: "boxes.json"))
            let content = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
            let names = (content["images"] as? [[String: Any]])?.compactMap { $0["file_name"] as? String } ?? []
            #expect(names.prefix(2) == ["a.png", "dark/1.png"])
            #expect(names.count == 3 && names[2].hasPrefix("/") && names[2].hasSuffix("/store/dark/0.png"))
        }
    }

    @Test("draw --artwork writes composites with boxes, which evaluate and train-detector read") func composites()
        throws
    {
        try withTemporaryFolder { folder in
            let fixtures = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures")
            let artwork = ["leaf", "crest"].flatMap {
                ["--artwork", "\($0)=\(fixtures.appending(path: "artwork-\($0).png").path)"]
            }
            let arguments = ["draw", "--output", "set", "--count", "9", "--size", "96"] + artwork
            let drawn = try run(tool, arguments, folder: folder)
            #expect(drawn.status == 0 && drawn.errors.contains("Drew 9 images into set: 5 show "), "\(drawn.errors)")
            let annotations = try BoxAnnotations(contentsOf: folder.appending(path: "set/boxes.json"))
            #expect(
                annotations.photos.count == 9 && annotations.warnings.isEmpty
                    && annotations.labels == ["crest", "leaf"])
            let labels = annotations.photos.map { $0.objects.map(\.label) }
            #expect(labels == [["leaf"], [], ["crest"], [], ["leaf"], [], ["crest"], [], ["leaf"]])
            #expect(annotations.photos.flatMap(\.objects).allSatisfy { $0.box.width > 0.02 && $0.box.height > 0.02 })
            let again = try run(tool, arguments, folder: folder)
            #expect(
                again.status == 64 && again.errors.contains("set exists and is not an empty folder"), "\(again.errors)")
            let other = arguments.map { $0 == "set" ? "other" : $0 }
            #expect(try run(tool, other, folder: folder).status == 0)
            for name in ["000001.jpg", "000008.jpg", "boxes.json"] {
                #expect(
                    try Data(contentsOf: folder.appending(path: "set/\(name)"))
                        == Data(contentsOf: folder.appending(path: "other/\(name)")))
            }
        }
    }

    @Test(
        "draw needs either a recipe or artwork",
        arguments: [
            ([], "Expected the name of a recipe"), (["two-circles", "--artwork", "a=b.png"], "found both"),
            (["two-circles", "--size", "96"], "--size: expected only with --artwork"),
            (["--artwork", "a=b.png", "--user", "1"], "--user: expected only with a recipe"),
        ] as [([String], String)])
    func drawUsage(arguments: [String], message: String) throws {
        try withTemporaryFolder { folder in
            let drawn = try run(tool, ["draw", "--output", "set"] + arguments, folder: folder)
            #expect(drawn.status == 64 && drawn.errors.contains(message), "\(drawn.errors)")
        }
    }
}
