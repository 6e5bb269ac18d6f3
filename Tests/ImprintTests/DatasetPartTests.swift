import Foundation
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

@Suite("Parts of a YOLO data set") struct DatasetPartTests {
    /// Calls `body` with a folder of the photos images/train/a.png, images/val/b.png and images/test/c.png, each with one box.
    private func withDataset(_ keys: String, _ files: [String: String] = [:], _ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            for photo in ["train/a", "val/b", "test/c"] {
                try writeAnnotatedPhoto(folder.appending(path: "set/images/\(photo).png"))
                try writeAnnotations(["set/labels/\(photo).txt": "0 .5 .5 .5 .5"], in: folder)
            }
            try writeAnnotations(["set/data.yaml": "names: [cat]\n" + keys], in: folder)
            try writeAnnotations(files, in: folder)
            try body(folder)
        }
    }

    private func names(_ annotations: BoxAnnotations) -> [String] { annotations.photos.map(\.url.lastPathComponent) }

    @Test(
        "A key of data.yaml names the photos of a part, in each notation of paths",
        arguments: [
            "train: images/train", "train: 'images/train'  # photos", "train: [images/train]", "train:\n- images/train",
            "train:\n  images/train", "path: ../set\ntrain: images/train", "path: set\ntrain: images/train",
            "path: /home/someone/set\ntrain: images/train", "train: ../images/train", "train: ./images/train/",
            "train: list.txt", "train: lists/list.txt", "path: images\ntrain: train",
            "\"train\": images/train", "'train' : images/train", "train : images/train",
            "'path': '../set'\ntrain: images/train",
            "train: images\\train", "train: .\\images\\train", "train: windows.txt", "path: .\\images\ntrain: train",
        ])
    func paths(key: String) throws {
        let lists = [
            "set/list.txt": "./images/train/a.png\r\n\n", "set/lists/list.txt": "images/train/a.png\n",
            "set/windows.txt": "images\\train\\a.png\r\n",
        ]
        try withDataset(key + "\nval: images/val\ntest:", lists) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder.appending(path: "set"), part: .training)
            #expect(names(annotations) == ["a.png"] && annotations.photos.map(\.objects.count) == [1])
            #expect(annotations.availableParts == [.training, .validation])
            #expect(annotations.warnings.count == 1 && annotations.warnings[0].contains("read the photos of train ("))
        }
    }

    @Test("An absolute path and a list of folders name the photos of a part, each photo once") func severalFolders()
        throws
    {
        try withDataset("train: x") { folder in
            let set = folder.appending(path: "set")
            let path = set.path + "/images/train"
            try writeAnnotations(
                ["data.yaml": "names: [cat]\ntrain: [\(path), images/test, images/train]"], in: set)
            #expect(try names(BoxAnnotations(contentsOf: set, part: .training)).sorted() == ["a.png", "c.png"])
        }
    }

    @Test(
        "A part without a key is the nearest part before it",
        arguments: [
            ("train: images/train\nval: images/val\ntest: images/test", ["a.png"], ["b.png"], ["c.png"]),
            ("train: images/train\nvalidation: images/val", ["a.png"], ["b.png"], ["b.png"]),
            ("train: images/train\nval: null\ntest: ", ["a.png"], ["a.png"], ["a.png"]),
            ("nc: 1", ["c.png", "a.png", "b.png"], ["c.png", "a.png", "b.png"], ["c.png", "a.png", "b.png"]),
        ] as [(String, [String], [String], [String])])
    func parts(keys: String, training: [String], validation: [String], test: [String]) throws {
        try withDataset(keys) { folder in
            let file = folder.appending(path: "set/data.yaml")
            for (part, expected) in zip(DatasetPart.allCases, [training, validation, test]) {
                #expect(try names(BoxAnnotations(contentsOf: file, part: part)) == expected)
            }
            let all = try BoxAnnotations(contentsOf: file)
            #expect(Set(names(all)) == Set(training + validation + test))
        }
    }

    @Test(
        "A part that does not exist is an error that names the key",
        arguments: [
            ("train: photos", "train: there is no "), ("train: photos", "set/photos. Expected a folder of photos"),
            ("val: images/val", "there is no key train, but val"),
            ("trian: images/train\nval: images/val", "there is no key train, but the similar key trian and val"),
            ("\ttrain: images/train", "line 2: the line starts with a tab"), ("train: {a: b}", "train has \"a: b\""),
            ("train: [images/train", "train does not end"),
            ("train: images/*.png", "data.yaml cannot have wildcards"),
            ("train: folder.txt", "line 2: the list names the folder "),
            ("train: empty.txt", "empty.txt: the list is empty. Expected one path of a photo per line"),
            ("train: https://example.com/set.zip", "train: https://example.com/set.zip is a URL. Expected "),
            (
                "path: https://example.com/set.zip\ntrain: photos",
                "path: https://example.com/set.zip is a URL. Expected "
            ),
            ("path: images\ntrain: images/train", "set/images/images/train. Expected a folder of photos"),
            ("train: []\nval: images/val", "data.yaml: train names no path, but val does. Expected "),
            ("train:\nval: images/val", "data.yaml: train names no path, but val does. Expected "),
        ])
    func errors(keys: String, text: String) throws {
        let lists = ["set/folder.txt": "\nimages/train\n", "set/empty.txt": "\n"]
        try withDataset(keys, lists) { folder in
            let set = folder.appending(path: "set")
            let error = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: set, part: .training)
            }
            #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
        }
    }

    @Test(
        "Keys in braces are an error that asks for one key per line",
        arguments: [
            "{names: [cat], train: images/train}", "# A data set\n\n--- {names: [cat],\n  train: images/train}",
            "---\n{\"names\": [\"cat\"], \"train\": \"images/train\"}",
        ])
    func flowStyle(text: String) throws {
        try withDataset("", ["set/data.yaml": text]) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: folder.appending(path: "set"))
            }
            let found =
                ": the keys are in braces (flow style). Expected one key per line without braces, such as train: "
            #expect(error?.description.contains(found) == true, "\(error?.description ?? "")")
        }
    }

    @Test(
        "The error about a missing validation set names an empty key, and a key that does not exist",
        arguments: [
            ("train: []", "data.yaml: train names no path, and there is no key val, but test. "),
            ("valid: ''", "data.yaml: valid names no path, and there is no key train, but test. "),
            ("val:\ntrain: null", "data.yaml: val names no path, and train names no path, but test does. "),
        ])
    func emptyKeys(keys: String, text: String) throws {
        try withDataset(keys + "\ntest: images/test") { folder in
            let error = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: folder.appending(path: "set"), part: .validation)
            }
            #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
        }
    }

    @Test(
        "A note names the empty keys if no key names photos",
        arguments: [
            ("train: []", "train names"), ("train:\nvalid: null", "train and valid name"),
            ("train:\nval:\ntest:", "train, val and test name"),
        ])
    func onlyEmptyKeys(keys: String, text: String) throws {
        try withDataset(keys) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder.appending(path: "set"), part: .training)
            #expect(names(annotations).count == 3)
            let note =
                "data.yaml: \(text) no path, so data.yaml does not split the photos; a split needs paths, such as train: "
            #expect(annotations.warnings.contains { $0.contains(note) }, "\(annotations.warnings)")
        }
    }

    @Test(
        "The error about a part of a data set names the data.yaml above it, or else the content of a new one",
        arguments: [
            ("set/images", true), ("set/images/train", true), ("set", false),
        ])
    func withoutYAML(path: String, hasYAML: Bool) throws {
        try withDataset("train: images/train") { folder in
            if !hasYAML { try FileManager.default.removeItem(at: folder.appending(path: "set/data.yaml")) }
            let error = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: folder.appending(path: path))
            }
            let fix =
                hasYAML
                ? "set/data.yaml, which describes the data set."
                : "Create a file data.yaml in the folder that lists the names of the classes in order: names: [cat, dog]"
            #expect(error?.description.hasSuffix(fix) == true, "\(error?.description ?? "")")
        }
    }

    @Test("The error about the folder of a dataset split names the annotation file of its training set")
    func annotationsOfParts() throws {
        try withTemporaryFolder { folder in
            for part in ["test", "train", "valid"] {
                let location = folder.appending(path: part)
                try FileManager.default.createDirectory(at: location, withIntermediateDirectories: true)
                try Data("{}".utf8).write(to: location.appending(path: "_annotations.coco.json"))
            }
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            #expect(error?.description.hasSuffix("Use \(folder.path)/train/_annotations.coco.json.") == true)
        }
    }

    @Test(
        "If the only key of a part is misspelt, a note says that all photos are read",
        arguments: [("tain: images/train", true), ("tain: images/train\nval: images/val", false), ("pth: .", false)])
    func misspeltPart(keys: String, readsAll: Bool) throws {
        try withDataset(keys) { folder in
            let warnings = try BoxAnnotations(contentsOf: folder.appending(path: "set")).warnings
            let text = "; all photos are read, including those for validation and testing, because no key names the "
            #expect(warnings.contains { $0.contains(text) } == readsAll, "\(warnings)")
        }
    }

    @Test("The error about a missing validation set names the keys that can name it") func missingValidation() throws {
        try withDataset("test: images/test") { folder in
            let error = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: folder.appending(path: "set"), part: .validation)
            }
            let text =
                "there is no key val or train, but test. Expected the photos of the validation set, such as val: "
            #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
        }
    }

    @Test("The note about the parts that are read has commas and a single and") func notedParts() throws {
        try withDataset("train: images/train\nval: images/val\ntest: images/test") { folder in
            let set = folder.appending(path: "set")
            let warnings = try BoxAnnotations(contentsOf: set).warnings
            let note = try #require(warnings.first).replacing("/)", with: ")")
            let photos = "\(set.path)/images"
            let parts = "train (\(photos)/train), val (\(photos)/val) and test (\(photos)/test)"
            #expect(note.hasSuffix("read the photos of \(parts)"), "\(note)")
        }
    }

    @Test("Missing photos of a list are skipped, and the error names the folders if all are missing")
    func missingPhotos() throws {
        let lists = ["set/some.txt": "images/train/a.png\nx.png\n", "set/none.txt": "x.png\ny.png\n"]
        try withDataset("train: some.txt\nval: none.txt", lists) { folder in
            let set = folder.appending(path: "set")
            let annotations = try BoxAnnotations(contentsOf: set, part: .training)
            #expect(names(annotations) == ["a.png"])
            #expect(annotations.skipped.map(\.url.lastPathComponent) == ["x.png"])
            let error = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: set, part: .validation)
            }
            #expect(error?.description.contains("none of the 2 photos can be read") == true)
        }
        let text = cocoText(cocoBox("1, 2, 3, 4"), images: "{\"id\": 7, \"file_name\": \"c.png\"}")
        try withAnnotatedPhotos(["set.json": text]) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            let path = folder.path(percentEncoded: false)
            #expect(error?.description.contains("Expected the photos in \(path)/ or \(path)/images. ") == true)
        }
    }

    @Test("Photos without text files are noted per folder if they are at least half of its photos")
    func missingTextFiles() throws {
        try withDataset("train: images/train\nval: images/val\ntest: images/test") { folder in
            let set = folder.appending(path: "set")
            for name in ["b", "c"] { try writeAnnotatedPhoto(set.appending(path: "images/train/\(name).png")) }
            let note = "2 of 3 photos of train have no text file in \(set.path)/labels/train/: "
            for records in [false, true] {
                let annotations = try BoxAnnotations(contentsOf: set, recordsProblems: records)
                #expect(annotations.warnings.contains { $0.contains(note) }, "\(annotations.warnings)")
            }
            try writeAnnotations(["labels/train/b.txt": ""], in: set)
            let warnings = try BoxAnnotations(contentsOf: set).warnings
            #expect(!warnings.contains { $0.contains("no text file") }, "\(warnings)")
        }
    }

    @Test("The error about missing text files counts the photos of one folder, and names the folder of the text files")
    func onlyMissingTextFiles() throws {
        try withDataset("train: images/train\nval: images/val") { folder in
            let set = folder.appending(path: "set")
            try FileManager.default.removeItem(at: set.appending(path: "labels"))
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: set) }
            let text =
                ": found 1 photo but no text file of boxes for any of them in \(set.path)/labels/train/. "
            #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
        }
    }

    @Test(
        "An audit reports photos that data.yaml names for several parts",
        arguments: [
            ("val: images/train", ["a.png"], ["in the training and the validation set"]),
            ("val: list.txt", ["a.png"], ["in the training and the validation set"]),
            ("val: images/val\ntest: list.txt", ["a.png"], ["in the training and the test set"]),
            ("val: images/val\ntest: [images/test, images/val]", ["b.png"], ["in the validation and the test set"]),
            (
                "val: images/test\ntest: list.txt", ["c.png", "a.png"],
                ["in the validation and the test set", "in the training and the test set"]
            ),
            (
                "val: list.txt\ntest: list.txt", ["c.png", "a.png"],
                ["in the validation and the test set", "in the training and the validation set"]
            ),
            ("val: [images/val, images/val]", [], []),
        ] as [(String, [String], [String])])
    func sharedPhotos(key: String, photos: [String], reasons: [String]) throws {
        try withDataset("train: images/train\n" + key, ["set/list.txt": "images/train/a.png\nimages/test/c.png\n"]) {
            folder in
            let annotations = try BoxAnnotations(contentsOf: folder.appending(path: "set"), recordsProblems: true)
            let shared = Audit(annotations).findings.filter { $0.kind == .sharedPhotos }
            #expect(shared.map { $0.files.map(\.lastPathComponent) } == photos.map { [$0] })
            #expect(shared.map(\.reason) == reasons)
        }
    }

    @Test(
        "A probable mistake in the keys of data.yaml gives a warning",
        arguments: [
            ("trian: images/train\nval: images/val", "ignored the key trian, which resembles train", ["b.png"]),
            ("Train: images/train\nval: images/val", "ignored the key Train, which resembles train", ["b.png"]),
            (
                "train: images/val\ntrain: images/train", "2 lines have the key train; the last one counts, line 3",
                ["a.png"]
            ),
            ("nc: 3\ntrain: images/train", "nc is 3, but names has 1 name", ["a.png"]),
            ("valid: images/val\ndate: 2026\ntask: detect", nil, ["b.png"]),
            (
                "valid: images/test\nval: images/val",
                "ignored the key valid, because the key val also names the validation set", ["b.png"]
            ),
            (
                "validation: images/test\nval: []\nvalid: images/val",
                "ignored the key validation, because the key valid also names the validation set", ["b.png"]
            ),
            ("val: images/val\nvalid: [images/val]", nil, ["b.png"]),
        ] as [(String, String?, [String])])
    func keys(keys: String, warning: String?, photos: [String]) throws {
        try withDataset(keys) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder.appending(path: "set"))
            #expect(names(annotations) == photos)
            let others = annotations.warnings.filter { !$0.contains("read the photos of ") }
            #expect(others.count == (warning == nil ? 0 : 1), "\(others)")
            if let warning { #expect(others.first?.hasSuffix(": " + warning) == true, "\(others)") }
        }
    }
}
