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
            #expect(text.output.contains("1 objects in 2 photos") || text.output.contains("1 object in 2 photos"))
        }
    }

    @Test("evaluate --annotations rejects other labels, classifiers and missing photos") func errors() throws {
        try withDetector(label: "tree") { folder in
            let other = try imprint(
                "evaluate", "d.imprint", "photos", "--annotations", "boxes.json", folder: folder)
            #expect(other.status == 1 && other.errors.contains("tree") && other.output.isEmpty, "\(other.errors)")
            let missing = try imprint("evaluate", "d.imprint", "--annotations", "boxes.json", folder: folder)
            #expect(missing.status == 1 && missing.errors.contains("boxes.json"), "\(missing.errors)")
            let nothing = try imprint("evaluate", "d.imprint", folder: folder)
            #expect(nothing.status == 64 && nothing.errors.contains("--annotations"))
            let report = try imprint(
                "evaluate", "d.imprint", "--annotations", "boxes.json", "--report", "r.html", folder: folder)
            #expect(report.status == 64 && report.errors.contains("--report is not available"))
        }
        try withDetector { folder in
            try writeBrightnessModel(photos: [:], to: folder)
            let classifier = try imprint(
                "evaluate", "m.imprint", "photos", "--annotations", "boxes.json", folder: folder)
            #expect(classifier.status == 1 && classifier.errors.contains("expected a detector"))
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
            for (options, text) in [
                ([], "expected --artwork LABEL=FILE or --annotations FILE"),
                (
                    ["--annotations", "photos/boxes.json", "--folds", "3"],
                    "--folds is not available with --annotations"
                ),
                (["--annotations", "photos/boxes.json", "--validation", "photos"], "--validation is a folder"),
            ] {
                let invalid = try run(
                    tool, ["train-detector", "--output", "x.imprint"] + options, folder: folder)
                #expect(invalid.status == 64 && invalid.errors.contains(text), "\(invalid.errors)")
            }
        }
    }
}
