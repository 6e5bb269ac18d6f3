import Foundation
import ImprintImages
import TestSupport
import Testing

/// Folders of other layouts than one sub-folder of photos per label: splits, and data sets with bounding boxes.
@Suite("Layouts of data sets") struct DatasetLayoutTests {
    @Test(
        "The folder of a YOLO data set is an error, and other YAML or folders of labels are not",
        arguments: [
            (["images/a.jpg", "labels/a.txt"], "", "the folders images and labels"),
            (["train/images/a.jpg", "valid/images/b.jpg"], "names: [cat]\nval: valid/images", "data.yaml"),
            (["train/a.jpg", "valid/b.jpg", "bus/c.jpg"], "names: [cat]", nil),
            (["images/a.jpg", "labels/a.jpg", "labels/a.txt"], "", nil),
        ] as [([String], String, String?)])
    func yolo(paths: [String], yaml: String, found: String?) throws {
        try withFiles(paths) { root in
            try Data(yaml.utf8).write(to: root.appending(path: "data.yaml"))
            let folder = Result { () throws(ImageError) in try ImageFolder(at: root) }
            switch folder {
            case .success: #expect(found == nil)
            case .failure(let error): #expect(error == found.map { ImageError.hasBoxes(folder: root, found: $0) })
            }
        }
    }

    @Test(
        "Parts of a YOLO data set without data.yaml are an error, and labels with the names of parts are not",
        arguments: [
            (["images/train/a.jpg", "images/val/b.jpg", "labels/train/a.txt"], "images", "images/train and labels"),
            (["images/test2/a.jpg", "images/Valid/b.jpg", "labels/a.txt"], "images", "images/Valid and labels"),
            (
                ["images/train/a.jpg", "images/val/b.jpg", "images/more/c.jpg", "labels/train/a.txt"], "images",
                "images/train and labels"
            ),
            (
                ["train/images/a.jpg", "train/labels/a.txt", "valid/images/b.jpg", "valid/labels/b.txt"], "",
                "train/images and train/labels"
            ),
            (["images/train/a.jpg", "images/val/b.jpg", "images/bus/c.jpg"], "images", nil),
            (["images/train/a.jpg", "images/bus/b.jpg", "labels/train/a.txt"], "images", nil),
            (
                [
                    "images/train/a.jpg", "images/bus/c.jpg", "images/val/b.jpg", "labels/train/a.jpg",
                    "labels/train/a.txt",
                ],
                "images", nil
            ),
            (["photos/train/a.jpg", "photos/val/b.jpg", "photos/bus/c.jpg", "labels/train/a.txt"], "photos", nil),
            (["train/images/a.jpg", "train/labels/a.txt", "bus/b.jpg"], "", nil),
        ] as [([String], String, String?)])
    func partsOfYOLO(paths: [String], path: String, found: String?) throws {
        try withFiles(paths) { root in
            let url = path.isEmpty ? root : root.appending(path: path)
            let folder = Result { () throws(ImageError) in try ImageFolder(at: url) }
            switch folder {
            case .success: #expect(found == nil)
            case .failure(let error):
                #expect(error == found.map { ImageError.hasBoxes(folder: url, found: "the folders \($0)") })
            }
        }
    }

    @Test(
        "The folders of a dataset split with the same labels are an error, and labels with the names of splits are not",
        arguments: [
            (
                ["train/A/a.jpg", "train/B/b.jpg", "val/A/c.jpg", "val/B/d.jpg", "test/A/e.jpg", "test/B/f.jpg"],
                ["test", "train", "val"], ["A", "B"]
            ),
            (["Training/A/x/a.jpg", "valid/A/b.jpg", "valid/B/c.jpg", "more/d.jpg"], ["Training", "valid"], ["A"]),
            (["train/images/a.jpg", "val/images/b.jpg"], ["train", "val"], ["images"]),
            (["train/a.jpg", "val/b.jpg", "test/c.jpg", "notes.txt"], ["test", "train", "val"], []),
            (["train2017/old/a.jpg", "val2017/new/b.jpg"], ["train2017", "val2017"], []),
            (["training_set/A/a.jpg", "test_set/A/b.jpg"], ["test_set", "training_set"], ["A"]),
            (["Trainset/A/a.jpg", "val images 2/A/b.jpg"], ["Trainset", "val images 2"], ["A"]),
            (["images_train/A/a.jpg", "images-test/A/b.jpg"], ["images-test", "images_train"], ["A"]),
            (["obj_Train_data/a.jpg", "obj_Validation_data/b.jpg"], ["obj_Train_data", "obj_Validation_data"], []),
            (["steam_train/A/a.jpg", "crash_test/A/b.jpg"], [], []),
            (
                [
                    "seg_train/seg_train/A/a.jpg", "seg_train/seg_train/B/b.jpg", "seg_test/seg_test/A/c.jpg",
                    "seg_test/seg_test/B/d.jpg", "seg_pred/seg_pred/e.jpg",
                ], ["seg_test/seg_test", "seg_train/seg_train"], ["A", "B"]
            ),
            (
                ["train/x/A/a.jpg", "train/x/B/b.jpg", "val/x/A/c.jpg", "val/x/B/d.jpg", "bus/e.jpg"],
                ["train/x", "val/x"], ["A", "B"]
            ),
            (["train/A/1/a.jpg", "train/A/2/b.jpg", "val/A/3/c.jpg", "val/A/4/d.jpg"], ["train", "val"], ["A"]),
            (["train/A/a.jpg", "test driver/A/b.jpg"], [], []), (["train/A/a.jpg", "dataset/A/b.jpg"], [], []),
            (["train/a.jpg", "val/b.jpg", "bus/c.jpg"], [], []),
            (["train/old/a.jpg", "val/new/b.jpg", "bus/c.jpg"], [], []),
            (["train/A/a.jpg", "val/A/notes.txt", "val/b.jpg", "bus/c.jpg"], [], []),
            (["train/A/a.jpg", "train2/A/b.jpg"], [], []), (["train/A/a.jpg", "bus/A/b.jpg"], [], []),
        ] as [([String], [String], [String])])
    func splitFolders(paths: [String], splits: [String], labels: [String]) throws {
        try withFiles(paths) { root in
            let folder = Result { () throws(ImageError) in try ImageFolder(at: root) }
            switch folder {
            case .success: #expect(splits.isEmpty)
            case .failure(let error):
                #expect(error == .splitFolders(folder: root, splits: splits, labels: labels))
            }
        }
    }

    @Test(
        "A folder above the folders of labels is an error that names the inner folder",
        arguments: [
            (["archive/A/a.jpg", "archive/B/x/b.jpg", "read.me"], 2, "archive", ["A", "B"]),
            (["train/A/a.jpg", "train/B/b.jpg", "train/C/notes.txt"], 2, "train", ["A", "B"]),
            (["A/1/a.jpg", "A/2/read.me"], 2, nil, []), (["A/1/a.jpg", "A/2/read.me"], 1, nil, []),
            (["A/1/a.jpg", "A/2/b.jpg"], 1, "A", ["1", "2"]), (["A/1/a.jpg", "A/2/b.jpg", "A/c.jpg"], 1, nil, []),
            (["A/1/a.jpg", "A/2/b.jpg", "A/c.jpg"], 2, "A", ["1", "2"]), (["A/a.jpg"], 2, nil, []),
            (["seg_train/seg_train/A/a.jpg", "seg_train/seg_train/B/b.jpg"], 2, "seg_train/seg_train", ["A", "B"]),
            (["x/y/z/A/a.jpg", "x/y/z/B/b.jpg", "x/read.me", "x/more/read.me"], 1, "x/y/z", ["A", "B"]),
            (["A/x/y/a.jpg"], 2, nil, []), (["A/x/y/a.jpg"], 1, nil, []),
        ] as [([String], Int, String?, [String])])
    func nested(files: ([String], Int, String?, [String])) throws {
        let (paths, minimum, name, labels) = files
        try withFiles(paths) { root in
            let error = name.map { ImageError.labelsInSubfolder(folder: root, name: $0, labels: labels) }
            let folder = Result { () throws(ImageError) in try ImageFolder(at: root, minimumLabels: minimum) }
            switch folder {
            case .success: #expect(error == nil && minimum == 1)
            case .failure(let found):
                #expect(found == error ?? .tooFewLabels(folder: root, found: ["A"], minimum: minimum))
            }
            guard let error, let name else { return }
            #expect(
                error.description.contains(
                    "found only the sub-folder \"\(name)\", which has sub-folders of photos (\(labels[0]), \(labels[1])"
                ))
            #expect(
                error.description.contains(
                    "If these are the labels, use \(root.path)/\(name). If \"\(name)\" is a label"))
        }
    }

    @Test("A folder that links to the folder above it is a label, without an endless search", .timeLimit(.minutes(10)))
    func circle() throws {
        try withFiles(["A/", "b.jpg", "B/train/A/", "B/test/A/", "B/train/a.jpg"]) { root in
            for (link, destination) in [("A/circle", ".."), ("B/train/A/x", ".."), ("B/test/A/x", "..")] {
                try FileManager.default.createSymbolicLink(
                    atPath: root.appending(path: link).path, withDestinationPath: destination)
            }
            #expect(throws: ImageError.self) { try ImageFolder(at: root.appending(path: "B")) }
            try FileManager.default.removeItem(at: root.appending(path: "B"))
            #expect(throws: ImageError.labelWithoutImages(folder: root, label: "A")) {
                try ImageFolder(at: root, minimumLabels: 1)
            }
        }
    }

    @Test(
        "The only sub-folder is a label if it is known, and not if it contains folders of known labels",
        arguments: [
            (["A/1/a.jpg", "A/2/b.jpg"], true), (["A/a.jpg", "A/a.xml"], true), (["more/A/a.jpg"], false),
            (["more/A/a.jpg", "more/b.jpg"], false), (["more/1/a.jpg"], true),
        ])
    func knownLabels(paths: [String], isLabel: Bool) throws {
        try withFiles(paths) { root in
            let name = String(try #require(paths[0].split(separator: "/").first))
            for path in paths where path.hasSuffix(".xml") {
                try Data("<annotation></annotation>".utf8).write(to: root.appending(path: path))
            }
            func folder(_ known: [String]) throws -> ImageFolder {
                try ImageFolder(at: root, minimumLabels: 1, knownLabels: known)
            }
            if isLabel {
                #expect(try folder(["A"]).labels == [name])
            } else {
                let error = ImageError.labelsInSubfolder(folder: root, name: name, labels: ["A"])
                #expect(throws: error) { try folder(["A"]) }
                #expect(try folder([]).labels == [name])
            }
        }
    }

    @Test(
        "A folder with only a data set with bounding boxes or a dataset split is an error that names the inner folder",
        arguments: [1, 2])
    func nestedSets(minimum: Int) throws {
        try withFiles(["set/images/a.jpg", "set/labels/a.txt"]) { root in
            let error = ImageError.hasBoxes(folder: root.appending(path: "set"), found: "the folders images and labels")
            #expect(throws: error) { try ImageFolder(at: root, minimumLabels: minimum) }
        }
        try withFiles(["set/a.jpg", "set/_annotations.coco.json"]) { root in
            let error = ImageError.hasBoxes(folder: root.appending(path: "set"), found: "_annotations.coco.json")
            #expect(throws: error) { try ImageFolder(at: root, minimumLabels: minimum) }
        }
        try withFiles(["set/train/A/a.jpg", "set/val/A/b.jpg"]) { root in
            let error = ImageError.splitFolders(
                folder: root.appending(path: "set"), splits: ["train", "val"], labels: ["A"])
            #expect(throws: error) { try ImageFolder(at: root, minimumLabels: minimum) }
        }
    }

    @Test(
        "A dataset split with a file of boxes beside its photos is an error that names the file",
        arguments: [
            ("_annotations.coco.json", "{}", true), ("_annotations.csv", "", false),
            ("a.xml", "<annotation></annotation>", true), ("a.xml", "<rdf></rdf>", false), ("notes.json", "{}", false),
        ])
    func boxesInSplit(name: String, content: String, isFound: Bool) throws {
        try withFiles(["train/a.jpg", "valid/b.jpg"]) { root in
            try Data(content.utf8).write(to: root.appending(path: "valid/\(name)"))
            let expected: ImageError =
                isFound
                ? .hasBoxes(folder: root, found: "valid/\(name)")
                : .splitFolders(folder: root, splits: ["train", "valid"], labels: [])
            #expect(throws: expected) { try ImageFolder(at: root) }
            try FileManager.default.moveItem(at: root.appending(path: "train"), to: root.appending(path: "bus"))
            #expect(try ImageFolder(at: root).labels == ["bus", "valid"])
        }
    }

    @Test(
        "Boxes beside photos, or in a folder annotations, are an error that names the file; a label may have this name",
        arguments: [
            (["a.jpg", "_annotations.coco.json"], "_annotations.coco.json"), (["a.jpg", "a.xml"], "a.xml"),
            (["val/a.jpg", "annotations/instances_val.json"], "annotations/instances_val.json"),
            (["JPEGImages/a.jpg", "Annotations/a.xml"], "Annotations/a.xml"),
            (["annotations/a.jpg", "annotations/notes.json", "plain/b.jpg"], nil),
            (["cat/a.jpg", "dog/b.jpg", "a.xml"], nil),
            (["a.jpg", "a.txt", "classes.txt"], "classes.txt"),
            (["train/a.jpg", "train/a.txt", "train/classes.txt"], "train/classes.txt"),
            (["cat/a.jpg", "dog/b.jpg", "classes.txt"], nil),
            (["obj_train_data/a.jpg", "obj_train_data/a.txt", "obj.data", "obj.names", "train.txt"], "obj.names"),
            (["obj_train_data/more/a.jpg", "obj_train_data/more/a.txt", "obj.names"], "obj.names"),
        ] as [([String], String?)])
    func separateBoxes(paths: [String], found: String?) throws {
        try withFiles(paths) { root in
            for path in paths where path.hasSuffix(".xml") {
                try Data("<annotation></annotation>".utf8).write(to: root.appending(path: path))
            }
            let folder = Result { () throws(ImageError) in try ImageFolder(at: root) }
            switch folder {
            case .success: #expect(found == nil)
            case .failure(let error): #expect(error == found.map { .hasBoxes(folder: root, found: $0) })
            }
        }
    }

    @Test("The photos of a logo in a deeper folder are an error instead of background photos") func deeperLogo() throws
    {
        try withFiles(["train/Leaf/a.jpg", "val/Leaf/b.jpg", "notes/Ring/read.me"]) { root in
            let error = ImageError.logoInSubfolder(folder: root, path: "train/Leaf")
            #expect(throws: error) { try ImageFolder(at: root, logos: ["Leaf"]) }
            #expect(
                error.description.contains(": found the folder \"train/Leaf\", which has the name of a logo, among"))
            #expect(error.description.contains("/train as the folder of photos."))
            let other = try ImageFolder(at: root, logos: ["Ring"])
            #expect(other.items.count == 2)
            let similar = ImageError.similarToLogo(source: root.displayPath, label: "train/Leaf", logo: "leaf")
            #expect(throws: similar) { try ImageFolder(at: root, logos: ["leaf"]) }
        }
    }

    @Test("The error about a dataset split names the use of each folder, and the first labels") func splitText() {
        let folder = URL(filePath: "/data")
        let error = ImageError.splitFolders(
            folder: folder, splits: ["test", "train", "valid"], labels: ["A", "B", "C", "D"])
        #expect(
            error.description
                == "/data: found the folders test, train and valid of a dataset split, which have the same sub-folders of photos (A, B, C, "
                + "…). Expected one sub-folder of photos per label. Use /data/train as the training photos, /data/valid as the "
                + "validation photos and /data/test as the test photos.")
        let nested = ImageError.splitFolders(folder: folder, splits: ["test/test", "train/x"], labels: ["A"])
        #expect(
            nested.description.hasSuffix(
                "Use /data/train/x as the training photos and /data/test/test as the test photos."))
        let unlabelled = ImageError.splitFolders(folder: folder, splits: ["test", "train"], labels: [])
        #expect(
            unlabelled.description
                == "/data: found only the folders test and train of a dataset split, without a sub-folder of photos that all of them have. "
                + "Expected one sub-folder of photos per label. Sort the photos in each folder into sub-folders by label; if test and train "
                + "are labels, rename the folders.")
    }
}
