import Foundation
import ImprintImages
import TestSupport
import Testing

/// Evaluation of a detector on annotated photos.
@Suite struct DetectorEvaluationTests {
    private static let boxes = """
        {"images": [{"id": 1, "file_name": "dark/0.png", "width": WIDTH, "height": HEIGHT}, \
        {"id": 2, "file_name": "bright/1.png", "width": WIDTH, "height": HEIGHT}], \
        "categories": [{"id": 0, "name": "unused"}, {"id": 7, "name": "LABEL"}], \
        "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 1, 5, 6]}]}
        """

    /// Runs a closure in a folder with photos, boxes.json and the detector d.imprint.
    private func withDetector(label: String = "leaf", _ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let photos = folder.appending(path: "photos")
            try writeImages(to: photos, count: 4)
            let image = try ImageFile.decode(photos.appending(path: "dark/0.png"))
            let text = Self.boxes.replacing("WIDTH", with: "\(image.width)")
                .replacing("HEIGHT", with: "\(image.height)").replacing("LABEL", with: label)
            try Data(text.utf8).write(to: folder.appending(path: "boxes.json"))
            try writeRandomDetector(logos: ["bright", "leaf"], to: folder.appending(path: "d.imprint"))
            try body(folder)
        }
    }

    @Test("evaluate --annotations prints average precision, as text and as JSON") func averagePrecision() throws {
        try withDetector { folder in
            let json = try imprint(
                "evaluate", "d.imprint", "photos", "--annotations", "boxes.json", "--images", "--json", folder: folder)
            #expect(json.status == 0, "\(json.errors)")
            #expect(json.lines.count == 3 && json.lines[0]["detections"] is [[String: Any]])
            let line = try #require(json.lines.last)
            #expect(line["objects"] as? Int == 1 && line["images"] as? Int == 2)
            #expect((0...1).contains(line["meanAveragePrecision50"] as? Double ?? -1))
            #expect(line["falsePositivesPerEmptyPhoto"] is Double)
            let perLabel = try #require(line["perLabel"] as? [[String: Any]])
            #expect(perLabel.map { $0["label"] as? String } == ["bright", "leaf"])
            #expect(perLabel[0]["averagePrecision"] is NSNull)
            let text = try imprint(
                "evaluate", "d.imprint", "photos", "--annotations", "boxes.json", "--images", folder: folder)
            #expect(text.status == 0 && text.output.hasPrefix("mAP@.5 "), "\(text.errors)")
            #expect(text.output.contains("1 object in 2 photos, 1 without objects"))
            let lines = text.output.split(separator: "\n").prefix { !$0.hasPrefix("worst mistakes") }
            #expect(lines.allSatisfy { $0.count <= 80 }, "\(text.output)")
            for (label, objects) in zip(perLabel, [0, 1]) {
                let counts = ["truePositives", "falsePositives", "falseNegatives"].map { label[$0] as? Int ?? -1 }
                #expect(counts[0] + counts[2] == objects && counts[1] >= 0, "\(label)")
                #expect(label["recall"] is NSNull == (objects == 0) && label.keys.contains("precision"))
            }
            let total = perLabel.compactMap { $0["falsePositives"] as? Int }.reduce(0, +)
            #expect(line["falsePositives"] as? Int == total)
        }
    }

    @Test("evaluate --annotations rejects other labels, classifiers and missing photos") func errors() throws {
        try withDetector(label: "tree") { folder in
            let other = try imprint(
                "evaluate", "d.imprint", "photos", "--annotations", "boxes.json", folder: folder)
            #expect(other.status == 1 && other.output.isEmpty)
            #expect(
                other.errors.contains("boxes.json has labels that the model does not have: tree"), "\(other.errors)")
            let missing = try imprint("evaluate", "d.imprint", "--annotations", "boxes.json", folder: folder)
            #expect(missing.status == 1 && missing.errors.contains("boxes.json"), "\(missing.errors)")
            let nothing = try imprint("evaluate", "d.imprint", folder: folder)
            #expect(nothing.status == 64 && nothing.errors.contains("--annotations"))
            let file = try imprint("evaluate", "d.imprint", "d.imprint", "--annotations", "boxes.json", folder: folder)
            #expect(file.status == 1 && file.errors.contains("found a file. Expected the folder of the photos"))
            let over = try imprint(
                "evaluate", "d.imprint", "photos", "--annotations", "boxes.json", "--report", "boxes.json",
                folder: folder)
            #expect(over.status == 64 && over.errors.contains("the file is the annotations"), "\(over.errors)")
        }
        try withDetector { folder in
            try writeBrightnessModel(photos: [:], to: folder)
            let classifier = try imprint(
                "evaluate", "m.imprint", "photos", "--annotations", "missing.json", folder: folder)
            #expect(classifier.status == 64 && classifier.errors.contains("expected a detector"))
        }
    }

    @Test("For a folder without labels, evaluate names the boxes of a detector besides sub-folders")
    func missingLabels() throws {
        try withDetector { folder in
            try writeBrightnessModel(photos: [:], to: folder)
            for (model, names) in [("d.imprint", true), ("m.imprint", false)] {
                let run = try imprint("evaluate", model, "photos/dark", folder: folder)
                #expect(run.status == 1 && run.errors.contains("one sub-folder per label"), "\(run.errors)")
                #expect(run.errors.contains("--annotations names a file or folder of boxes") == names, "\(run.errors)")
            }
        }
    }

    @Test("evaluate --annotations fails if more than half of the photos are missing") func mostPhotosMissing() throws {
        try withDetector { folder in
            func missing(_ count: Int) throws -> CommandOutput {
                let photos = (0..<count).map { "{\"id\": \(10 + $0), \"file_name\": \"missing-\($0).png\"}, " }
                let text = try String(contentsOf: folder.appending(path: "boxes.json"), encoding: .utf8)
                try Data(text.replacing("\"images\": [", with: "\"images\": [\(photos.joined())").utf8)
                    .write(to: folder.appending(path: "more.json"))
                return try imprint("evaluate", "d.imprint", "photos", "--annotations", "more.json", folder: folder)
            }
            let half = try missing(2)
            #expect(half.status == 0 && half.errors.contains("Skipped: "), "\(half.errors)")
            let most = try missing(3)
            #expect(most.status == 1 && most.output.isEmpty)
            #expect(most.errors.contains("3 of 5 photos cannot be read, expected at most half"), "\(most.errors)")
        }
    }

    @Test("evaluate --annotations --report writes a page with the mistakes and their boxes") func report() throws {
        try withDetector { folder in
            let run = try imprint(
                "evaluate", "d.imprint", "photos", "--annotations", "boxes.json", "--report", "r.html", folder: folder)
            #expect(run.status == 0 && run.errors.contains("Wrote r.html."), "\(run.errors)")
            let html = try String(contentsOf: folder.appending(path: "r.html"), encoding: .utf8)
            #expect(html.contains("<p class=\"kind\">Evaluation report · "))
            #expect(html.contains("mean average precision (mAP@.5) of 1 object in 2 photos"))
            #expect(html.contains("<section id=\"mistakes\"") && html.contains("class=\"mistake\""))
            #expect(html.contains("imprint evaluate d.imprint photos --annotations boxes.json"))
            for word in ["<script", "http:", "https:", "url("] { #expect(!html.contains(word), "\(word)") }
        }
    }

    @Test("audit --annotations takes the same values of --validation as train-detector, and a folder of the photos")
    func auditedValidation() throws {
        try withDetector { folder in
            func run(_ validation: String) throws -> (status: Int32, labels: [[String: Any]], errors: String) {
                let run = try imprint(
                    "audit", "photos", "--annotations", "boxes.json", "--validation", validation, "--json",
                    folder: folder)
                return (run.status, run.lines.last?["labels"] as? [[String: Any]] ?? [], run.errors)
            }
            func counts(_ labels: [[String: Any]]) -> [[Int?]] {
                labels.filter { $0["label"] as? String == "leaf" }
                    .map { [$0["images"] as? Int, $0["validationImages"] as? Int] }
            }
            let dark = try run("photos/dark")
            #expect(dark.status == 0 && counts(dark.labels) == [[0, 1]], "\(dark.errors)")
            let bright = try run("photos/bright")
            #expect(bright.status == 0 && counts(bright.labels) == [[1, 0]], "\(bright.errors)")
            let other = folder.appending(path: "other")
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
            try FileManager.default.copyItem(
                at: folder.appending(path: "boxes.json"), to: other.appending(path: "boxes.json"))
            let file = try run("other/boxes.json")
            #expect(file.status == 0 && counts(file.labels) == [[1, 1]], "\(file.errors)")
            // The photos of other annotations are beside them, even if --annotations has a folder of photos.
            try writeImages(to: other.appending(path: "new"), count: 4)
            let boxes = try String(contentsOf: folder.appending(path: "boxes.json"), encoding: .utf8)
            try Data(boxes.replacing("file_name\": \"", with: "file_name\": \"new/").utf8).write(
                to: other.appending(path: "boxes.json"))
            let beside = try run("other/boxes.json")
            #expect(beside.status == 0 && counts(beside.labels) == [[1, 1]], "\(beside.errors)")
            let all = try run("photos")
            #expect(all.status == 64 && all.errors.contains("contains all 2 photos of --annotations"))
        }
    }

    @Test("audit --annotations prints findings about boxes, as text and as JSON") func audit() throws {
        try withDetector { folder in
            let text = try String(contentsOf: folder.appending(path: "boxes.json"), encoding: .utf8)
            let more = "{\"id\": 2, \"image_id\": 1, \"category_id\": 7, \"bbox\": [5, 5, 0, 6]}, "
            try Data(text.replacing("\"annotations\": [", with: "\"annotations\": [\(more)").utf8)
                .write(to: folder.appending(path: "boxes.json"))
            let json = try imprint(
                "audit", "photos", "--annotations", "boxes.json", "--report", "a.html", "--json", folder: folder)
            #expect(json.status == 0, "\(json.errors)")
            let finished = try #require(json.lines.last)
            let findings = try #require(finished["findings"] as? [String: Int])
            #expect(findings["emptyBoxes"] == 1 && findings["withoutBoxes"] == 1 && findings["fewObjects"] == 2)
            let objects = try #require(finished["objects"] as? [[String: Any]])
            #expect(objects.map { $0["objects"] as? Int } == [1, 0])
            #expect((objects[0]["sizes"] as? [Double])?.count == 3)
            let empty = json.lines.first { $0["kind"] as? String == "emptyBoxes" }
            #expect(empty?["reason"] as? String == "annotation 2: leaf, x 5, y 5, 0 x 6 pixels", "\(json.output)")
            let page = try String(contentsOf: folder.appending(path: "a.html"), encoding: .utf8)
            #expect(page.contains("Boxes without area"))
            let output = try imprint("audit", "photos", "--annotations", "boxes.json", folder: folder)
            #expect(
                output.status == 0 && output.output.hasPrefix("2 photos with 1 object of 2 labels"), "\(output.output)")
            #expect(output.output.contains("Labels with few objects: 2"))
            let none = try imprint("audit", folder: folder)
            #expect(none.status == 64 && none.errors.contains("--annotations FILE"))
        }
    }

    @Test("train-detector --annotations trains on boxes, and rejects what boxes do not support") func training() throws
    {
        try withDetector { folder in
            try FileManager.default.moveItem(
                at: folder.appending(path: "boxes.json"), to: folder.appending(path: "photos/boxes.json"))
            let trained = try imprint(
                "train-detector", "--annotations", "photos/boxes.json", "--output", "m.imprint", "--epochs", "1",
                "--validation", "0", "--json", folder: folder)
            #expect(trained.status == 0, "\(trained.errors)")
            let classifier = try imprint(
                "train", "photos", "--base", "m.imprint", "--output", "c.imprint", "--epochs", "1", "--validation", "0",
                "--recipe", "manual", folder: folder)
            #expect(classifier.status == 0, "\(classifier.errors)")
            let detect = try imprint("detect", "m.imprint", "photos", "--json", folder: folder)
            #expect(detect.status == 0 && detect.lines.count == 4, "\(detect.errors)")
            let evaluation = try imprint(
                "evaluate", "m.imprint", "--annotations", "photos/boxes.json", "--json", folder: folder)
            #expect(evaluation.status == 0 && evaluation.lines.first?["objects"] as? Int == 1, "\(evaluation.errors)")
            let none = try imprint("detect", "m.imprint", "photos/dark/0.png", "--threshold", "1", folder: folder)
            #expect(none.output == "photos/dark/0.png: nothing found\n", "\(none.errors)")
            let backbone = try startDetectorTraining(
                "--annotations photos/boxes.json --base built-in --validation 0", folder: folder)
            #expect(backbone.errors.contains("logonet-detector"), "\(backbone.errors)")
            for (options, text) in [
                ([], "expected --artwork LABEL=FILE or --annotations FILE"),
                (
                    ["--annotations", "photos/boxes.json", "--photos", "photos", "--folds", "3"],
                    "Leave out --photos"
                ),
                (["--annotations", "photos/boxes.json", "--folds", "2", "--validation", "photos"], "--validation 0.1"),
                (["--annotations", "photos/boxes.json", "--folds", "2", "--mirror"], "--mirror averages"),
                (
                    ["--annotations", "photos/boxes.json", "--base", "nothing"],
                    "--base: nothing is neither a file nor an installed base model"
                ),
                (
                    ["--annotations", "photos/boxes.json", "--validation", "photos"],
                    "contains all 2 photos of --annotations"
                ),
            ] {
                let invalid = try run(
                    tool, ["train-detector", "--output", "x.imprint"] + options, folder: folder)
                #expect(invalid.status == 64 && invalid.errors.contains(text), "\(invalid.errors)")
            }
        }
    }
}
