import Foundation
import ImprintImages
import TestSupport
import Testing

/// Subcommands with a YOLO data set whose data.yaml names the training and the validation photos.
@Suite struct YOLODatasetTests {
    /// Runs a closure in a folder with the detector d.imprint and a data set `set` of two training photos and a validation photo.
    private func withDataset(
        _ keys: String = "train: images/train\nval: images/val", _ body: (URL) throws -> Void
    ) throws {
        try withTemporaryFolder { folder in
            let set = folder.appending(path: "set")
            try writeImages(to: set, count: 4)
            try writeRandomDetector(logos: ["leaf"], to: folder.appending(path: "d.imprint"))
            for (from, to) in [
                ("bright/0", "train/0"), ("dark/0", "train/1"), ("bright/1", "val/2"), ("dark/1", "other/3"),
            ] {
                let file = set.appending(path: "images/\(to).png")
                let text = set.appending(path: "labels/\(to).txt")
                for url in [file, text] {
                    try FileManager.default.createDirectory(
                        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                }
                try FileManager.default.moveItem(at: set.appending(path: "\(from).png"), to: file)
                try Data("0 .5 .5 .5 .5\n".utf8).write(to: text)
            }
            try Data("names: [leaf]\n\(keys)\n".utf8).write(to: set.appending(path: "data.yaml"))
            try body(folder)
        }
    }

    @Test(
        "evaluate reads the test set of data.yaml, or else its validation set, and names it",
        arguments: [("", "val", 1), ("test: images/train", "test", 2)])
    func evaluate(key: String, part: String, count: Int) throws {
        try withDataset("train: images/other\nval: images/val\n\(key)") { folder in
            let run = try imprint("evaluate", "d.imprint", "--annotations", "set/data.yaml", "--json", folder: folder)
            #expect(run.status == 0 && run.lines.last?["images"] as? Int == count, "\(run.errors)")
            #expect(run.errors.contains("data.yaml: read the photos of \(part) ("), "\(run.errors)")
        }
    }

    @Test(
        "audit --validation takes the validation set of data.yaml, and a folder of its photos",
        arguments: ["set/data.yaml", "set/images/val", "set/images/other"])
    func audit(validation: String) throws {
        try withDataset { folder in
            let run = try imprint(
                "audit", "--annotations", "set/data.yaml", "--validation", validation, "--json", folder: folder)
            let labels = run.lines.last?["labels"] as? [[String: Any]]
            #expect(run.status == 0, "\(run.errors)")
            #expect(
                labels?.map { $0["images"] as? Int } == [2] && labels?.map { $0["validationImages"] as? Int } == [1])
        }
    }

    @Test("train-detector reads the training photos from train and the validation photos from val of data.yaml")
    func train() throws {
        try withDataset { folder in
            let run = try startDetectorTraining("--annotations set/data.yaml", folder: folder)
            for part in ["train", "val"] {
                #expect(run.errors.contains("read the photos of \(part) ("), "\(run.errors)")
            }
            let all = try imprint(
                "train-detector", "--annotations", "set/data.yaml", "--output", "m.imprint", "--validation",
                "set/images/train", folder: folder)
            #expect(all.status == 64 && all.errors.contains("contains all 2 photos of --annotations"), "\(all.errors)")
        }
    }

    @Test("A validation set without the key val is an error that names the key") func missingValidation() throws {
        try withDataset("train: images/train\ntest: images/val") { folder in
            let run = try imprint(
                "train-detector", "--annotations", "set/data.yaml", "--validation", "set/data.yaml", "--output",
                "m.imprint", folder: folder)
            #expect(run.status == 64, "\(run.errors)")
            #expect(
                run.errors.contains("set/data.yaml names no validation set, expected the key val. "), "\(run.errors)")
        }
    }

    @Test("Notes about the keys of data.yaml are printed once, and those about both parts of the split are printed")
    func notesOfKeys() throws {
        try withDataset("train: images/train\nval: images/val\nnc: 3\ntset: images/other") { folder in
            let training = try startDetectorTraining("--annotations set/data.yaml", folder: folder)
            let audit = try imprint(
                "audit", "--annotations", "set/data.yaml", "--validation", "set/data.yaml", folder: folder)
            #expect(audit.status == 0, "\(audit.errors)")
            for run in [training, audit] {
                let notes = run.errors.split(separator: "\n")
                let keys = "ignored the key tset, which resembles test; nc is 3, but names has 1 name"
                #expect(notes.count { $0.hasSuffix(keys) } == 1, "\(notes)")
                for part in ["train", "val"] {
                    #expect(notes.count { $0.contains("read the photos of \(part) (") } == 1, "\(notes)")
                }
            }
        }
    }

    @Test(
        "--quiet omits the note about the parts of data.yaml, but not the warning about its keys",
        arguments: ["evaluate d.imprint", "train-detector", "audit --validation set/data.yaml"])
    func quiet(command: String) throws {
        try withDataset("train: images/train\nval: images/val\nnc: 3") { folder in
            let options = "--annotations set/data.yaml --quiet"
            let run =
                try command == "train-detector"
                ? startDetectorTraining(options, folder: folder)
                : shell("$imprint \(command) \(options)", folder: folder)
            #expect(command == "train-detector" || run.status == 0, "\(run.errors)")
            #expect(run.errors.contains("data.yaml: nc is 3"), "\(run.errors)")
            #expect(!run.errors.contains("Note: ") && !run.errors.contains("read the photos of"), "\(run.errors)")
        }
    }

    @Test(
        "The warning about the folders of several splits advises what the subcommand has",
        arguments: [
            ("train-detector", false, "val: images/val, or name the validation photos with --validation /"),
            ("train-detector", true, "such as train: images/train, val: images/val and test: images/test\n"),
            ("train-detector --validation set/images/val", true, "val: images/val and test: images/test\n"),
            ("train-detector --validation set/images/val", false, nil), ("train-detector --validation .2", false, nil),
            ("evaluate d.imprint", false, "or pass the folder of the photos as an argument, such as /"),
        ] as [(String, Bool, String?)])
    func splitAdvice(command: String, hasTest: Bool, advice: String?) throws {
        try withDataset("") { folder in
            for kind in hasTest ? ["images", "labels"] : [] {
                let location = folder.appending(path: "set/\(kind)")
                try FileManager.default.moveItem(
                    at: location.appending(path: "other"), to: location.appending(path: "test"))
            }
            // The run ends before it trains.
            let options = command.hasPrefix("train") ? " --photos missing --output m.imprint" : ""
            let run = try shell("$imprint \(command) --annotations set\(options)", folder: folder)
            let isWarned = run.errors.contains("are read together. To separate them, add the paths of the photos, ")
            #expect(isWarned == (advice != nil), "\(run.errors)")
            // The boxes are read before the other photos.
            #expect(run.errors.contains("missing") == command.hasPrefix("train"), "\(run.errors)")
            if let advice { #expect(run.errors.contains(advice), "\(run.errors)") }
        }
    }

    @Test(
        "Objects with the label of photos without an object are an error that names the annotations",
        arguments: ["none", "None"], ["", "--photos photos"])
    func reservedLabel(label: String, options: String) throws {
        try withDataset { folder in
            try Data("names: [\(label)]\ntrain: images/train\n".utf8).write(to: folder.appending(path: "set/data.yaml"))
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            let run = try shell(
                "$imprint train-detector --annotations set --output m.imprint \(options)", folder: folder)
            let error = "set/data.yaml has the label \"\(label)\", which is reserved for photos without an object."
            #expect(run.status == 1 && run.errors.contains(error), "\(run.errors)")
        }
    }

    @Test("train-detector warns if val has the same photos as train") func equalParts() throws {
        try withDataset("train: images/train\nval: images/train") { folder in
            let run = try startDetectorTraining("--annotations set", folder: folder)
            #expect(run.errors.contains("val has all photos of train"), "\(run.errors)")
        }
    }

    @Test("train-detector notes the number of photos that are in train and val") func sharedPhotos() throws {
        try withDataset("train: [images/train, images/other]\nval: [images/val, images/other]") { folder in
            let run = try startDetectorTraining("--annotations set", folder: folder)
            let note = "1 photo is in both the training and the validation set, and only used for validation."
            #expect(run.errors.contains(note), "\(run.errors)")
        }
    }

    @Test(
        "train-detector warns if the photos for artwork have boxes, which it does not read",
        arguments: [("set", "data.yaml"), ("outer", "data.yaml in set")])
    func boxesOfPhotos(photos: String, found: String) throws {
        try withDataset { folder in
            if photos != "set" {
                let outer = folder.appending(path: photos)
                try FileManager.default.createDirectory(at: outer, withIntermediateDirectories: true)
                try FileManager.default.moveItem(at: folder.appending(path: "set"), to: outer.appending(path: "set"))
            }
            let run = try startDetectorTraining("--artwork Leaf=two-circles --photos \(photos)", folder: folder)
            let warning =
                "\(photos) is a data set with bounding boxes (\(found)), which --photos does not read: photos outside of a folder"
            #expect(run.errors.contains(warning), "\(run.errors)")
        }
    }
}
