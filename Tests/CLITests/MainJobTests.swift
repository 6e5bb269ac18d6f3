import Foundation
import TestSupport
import Testing

/// The main workflow: train, inspect, evaluate and classify, and the errors for invalid inputs.
@Suite struct MainJobTests {
    @Test("train, inspect, evaluate and classify report consistent results as JSON")
    func mainJob() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            try Data("not an image".utf8).write(to: folder.appending(path: "photos/dark/note.jpg"))
            let trained = try imprint(
                "train", "photos", "--output", "m.imprint", "--epochs", "3", "--input-size", "16", "--batch-size", "8",
                "--seed", "1", "--validation", "0.25", "--json", folder: folder)
            #expect(trained.status == 0, "\(trained.errors)")
            let events = trained.lines
            #expect(events.map { $0["event"] as? String } == ["epoch", "epoch", "epoch", "finished"])
            let finished = try #require(events.last)
            #expect(finished["epochs"] as? Int == 3)
            #expect(finished["images"] as? Int == 24)
            #expect(finished["validationImages"] as? Int == 6)
            #expect(finished["output"] as? String == "m.imprint")
            #expect((finished["skipped"] as? [[String: Any]])?.count == 1)
            #expect(finished["accuracy"] as? Double == events[2]["validationAccuracy"] as? Double)

            let inspected = try #require(try imprint("inspect", "m.imprint", "--json", folder: folder).lines.first)
            #expect(inspected["format"] as? String == "1")
            #expect(inspected["network"] as? String == "logonet")
            #expect(inspected["labels"] as? [String] == ["bright", "dark"])
            #expect(inspected["parameters"] as? Int == 389_410)

            let evaluated = try imprint("evaluate", "m.imprint", "photos", "--json", folder: folder)
            let metrics = try #require(evaluated.lines.first)
            let confusion = try #require(metrics["confusion"] as? [[Int]])
            #expect(confusion.joined().reduce(0, +) == 24)
            #expect(metrics["images"] as? Int == 24)
            let accuracy = Double(confusion[0][0] + confusion[1][1]) / 24
            #expect(metrics["accuracy"] as? Double == accuracy)
            #expect(metrics["auc"] is Double)
            let reported = try imprint(
                "evaluate", "m.imprint", "photos", "--report", "r.html", "--json", folder: folder)
            #expect(reported.output == evaluated.output && reported.errors.contains("Wrote r.html."))
            let page = try String(contentsOf: folder.appending(path: "r.html"), encoding: .utf8)
            #expect(page.contains("Confusion matrix") && page.contains("imprint evaluate m.imprint photos"))

            let classified = try imprint(
                "classify", "m.imprint", "photos/dark/0.png", "photos/dark/note.jpg", "photos/bright/0.png", "--json",
                folder: folder)
            #expect(classified.status == 1)
            #expect(classified.errors.contains("note.jpg: expected an image (JPEG, PNG, WebP or HEIC), found text"))
            #expect(
                classified.lines.map { $0["file"] as? String } == [
                    "photos/dark/0.png", "photos/dark/note.jpg", "photos/bright/0.png",
                ])
            #expect(classified.lines[1]["error"] is String)
            for line in [classified.lines[0], classified.lines[2]] {
                let confidences = try #require(line["observations"] as? [[String: Any]])
                    .compactMap { $0["confidence"] as? Double }
                #expect(confidences.count == 2)
                #expect(confidences == confidences.sorted(by: >))
                let sum: Double = confidences.reduce(0, +)
                #expect(abs(sum - 1) < 1e-5)
            }
        }
    }

    @Test("Damaged photos are skipped in the training set and in the validation set", arguments: 0..<8)
    func damagedPhotos(seed: Int) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 40)
            for index in 0..<4 {
                try Data("not an image".utf8).write(to: folder.appending(path: "photos/dark/\(index).png"))
            }
            let run = try shell(
                "$imprint train photos --epochs 1 --input-size 16 --validation 0.05 --random-split --seed \(seed) "
                    + "--output m --json", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect((run.lines.last?["skipped"] as? [[String: Any]])?.count == 4)
        }
    }

    @Test("The model file depends only on the seed, not on the number of threads or the memory limit")
    func determinism() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 12)
            for (output, threads, memory) in [("a", "1", "1GB"), ("b", "2", "1.5 gb"), ("c", "2", "0")] {
                let run = try imprint(
                    "train", "photos", "--output", output, "--epochs", "2", "--input-size", "24", "--augment",
                    "flip,rotate,blur", "--threads", threads, "--memory", memory, folder: folder)
                #expect(run.status == 0, "\(run.errors)")
            }
            let files = try ["a", "b", "c"].map { try Data(contentsOf: folder.appending(path: $0)) }
            #expect(files[0] == files[1] && files[0] == files[2])
        }
    }

    @Test(
        "Invalid input is one error with exit code 1, and leaves no partial file",
        arguments: [
            ("empty", "contains neither sub-folders nor photos"),
            ("one", "has 1 label sub-folder (dark), expected at least 2"),
            ("photos/dark", "and no sub-folders"),
            ("missing", "does not exist"),
            ("broken", "None of the photos of the label \"bright\" can be read"),
        ])
    func wrongData(data: String, message: String) throws {
        try withTemporaryFolder { folder in
            let files = FileManager.default
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try files.createDirectory(at: folder.appending(path: "empty"), withIntermediateDirectories: true)
            try files.createDirectory(at: folder.appending(path: "one"), withIntermediateDirectories: true)
            for name in ["one/dark", "broken/dark"] {
                try? files.createDirectory(at: folder.appending(path: "broken"), withIntermediateDirectories: true)
                try files.copyItem(at: folder.appending(path: "photos/dark"), to: folder.appending(path: name))
            }
            try files.createDirectory(at: folder.appending(path: "broken/bright"), withIntermediateDirectories: true)
            let photo = try Data(contentsOf: folder.appending(path: "photos/bright/0.png"))
            try photo.prefix(photo.count / 2).write(to: folder.appending(path: "broken/bright/0.png"))
            let run = try imprint("train", data, "--output", "m.imprint", "--epochs", "1", folder: folder)
            #expect(run.status == 1)
            #expect(run.errors.contains(message), "\(run.errors)")
            #expect(run.output.isEmpty)
            #expect(try !files.contentsOfDirectory(atPath: folder.path).contains { $0.contains("imprint") })
        }
    }

    @Test("An output that cannot be written is reported before training")
    func unwritableOutput() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            let run = try imprint("train", "photos", "--output", "nowhere/m.imprint", folder: folder)
            #expect(run.status == 1)
            #expect(run.errors.contains("Create its folder first."))
            #expect(!run.errors.contains("epoch"))
        }
    }

    @Test("A truncated, foreign or newer model, or one with other labels, is an error with the file name")
    func wrongModels() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            let run = try imprint(
                "train", "photos", "--output", "m.imprint", "--epochs", "1", "--input-size", "16", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let note = "Without a validation set, the accuracy on new photos is unknown; --folds 2 estimates it by "
            #expect(run.errors.hasSuffix("\n\(note)cross-validation.\n"), "\(run.errors)")
            let model = try Data(contentsOf: folder.appending(path: "m.imprint"))
            try model.prefix(4000).write(to: folder.appending(path: "short.imprint"))
            try Data("a text".utf8).write(to: folder.appending(path: "foreign.imprint"))
            let newer = Array(model).replacing(
                Array(#""imprint.format":"1""#.utf8), with: Array(#""imprint.format":"6""#.utf8))
            try Data(newer).write(to: folder.appending(path: "newer.imprint"))
            for (file, message) in [
                ("short.imprint", "was cut off"),
                (
                    "foreign.imprint",
                    "foreign.imprint: the file is neither an Imprint model nor another safetensors file"
                ),
                ("newer.imprint", "was written by a newer Imprint (format 6)"),
            ] {
                let failed = try imprint("classify", file, "photos/dark/0.png", folder: folder)
                #expect(failed.status == 1)
                #expect(failed.errors.contains(message), "\(file): \(failed.errors)")
            }
            try FileManager.default.moveItem(
                at: folder.appending(path: "photos/dark"), to: folder.appending(path: "photos/night"))
            let mismatch = try imprint("evaluate", "m.imprint", "photos", folder: folder)
            #expect(mismatch.status == 1)
            #expect(mismatch.errors.contains("has labels that the model does not have: night"))
        }
    }

    @Test("evaluate fails if all images of a label are unreadable", arguments: ["bright", "dark"])
    func nothingReadable(label: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let run = try imprint(
                "train", "photos", "--output", "m.imprint", "--epochs", "1", "--input-size", "16", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let damaged = folder.appending(path: "photos/\(label)")
            for file in try FileManager.default.contentsOfDirectory(atPath: damaged.path) {
                try Data("not an image".utf8).write(to: damaged.appending(path: file))
            }
            let failed = try imprint("evaluate", "m.imprint", "photos", "--json", folder: folder)
            #expect(failed.status == 1)
            #expect(failed.output.isEmpty)
            #expect(failed.errors.contains("None of the photos of the label \"\(label)\" can be read"))
        }
    }

    @Test(
        "All photos of a real application are readable",
        .enabled(if: ReferenceData.has("data/viget-train"), "the reference photos are missing"))
    func realPhotos() throws {
        let photos = ReferenceData.folder.appending(path: "data/viget-train")
        try withTemporaryFolder { folder in
            let run = try imprint(
                "train", photos.path, "--output", "v.imprint", "--epochs", "1", "--input-size", "16", "--width", "0.25",
                "--json", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.lines.last?["images"] as? Int == 871)
            #expect((run.lines.last?["skipped"] as? [Any])?.isEmpty == true)
        }
    }
}
