import Foundation
import ImprintTraining
import TestSupport
import Testing

/// YOLO data sets without data.yaml.
@Suite("Lists of classes") struct ClassListTests {
    @Test(
        "A list of classes replaces data.yaml",
        arguments: [
            ("classes.txt", "a.png", "a.txt"), ("Classes.txt", "images/a.png", "labels/a.txt"),
            ("labels/classes.txt", "images/a.png", "labels/a.txt"), ("labels/classes.txt", "a.png", "labels/a.txt"),
            ("obj.names", "obj_train_data/a.png", "obj_train_data/a.txt"),
        ])
    func classList(list: String, photo: String, text: String) throws {
        try withTemporaryFolder { folder in
            try writeAnnotations(
                [list: "\u{FEFF}cat\r\ndog \n\n", text: "1 .5 .5 .5 .5", "notes.json": "{}"], in: folder)
            try writeAnnotatedPhoto(folder.appending(path: photo))
            for url in [folder, folder.appending(path: list)] {
                let annotations = try BoxAnnotations(contentsOf: url)
                #expect(annotations.labels == ["cat", "dog"])
                #expect(annotations.photos.map(boxTexts) == [["dog 50 25 100 50"]])
                #expect(annotations.warnings.filter { !$0.contains("labels without boxes") } == [])
            }
        }
    }

    @Test(
        "A folder of photos can be a link",
        arguments: [
            ("images", "set/labels/a.txt"), ("images", "photos/a.txt"), ("obj_train_data", "photos/a.txt"),
            ("train/images", "set/train/labels/a.txt"), ("images/train", "set/labels/train/a.txt"),
        ])
    func linkedPhotos(path: String, text: String) throws {
        try withTemporaryFolder { folder in
            try writeAnnotations(["set/classes.txt": "cat\ndog", text: "1 .5 .5 .5 .5"], in: folder)
            let photos = folder.appending(path: "photos")
            try writeAnnotatedPhoto(photos.appending(path: "a.png"))
            let set = folder.appending(path: "set")
            let link = set.appending(path: path)
            try FileManager.default.createDirectory(
                at: link.deletingLastPathComponent(), withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: photos)
            #expect(try BoxAnnotations(contentsOf: set).photos.map(boxTexts) == [["dog 50 25 100 50"]])
        }
    }

    @Test(
        "Links that would form a cycle are not followed, and photos with several paths are read once",
        arguments: [
            ("images", "", ""), ("images", "train/images", "train/labels"), ("images/x", "", ""),
            ("images", "photos", "photos"), ("images", "photos", "labels"),
        ])
    func repeatedPhotos(path: String, target: String, texts: String) throws {
        try withTemporaryFolder { folder in
            let text = texts.isEmpty ? "a.txt" : "\(texts)/a.txt"
            try writeAnnotations(["classes.txt": "cat", text: "0 .5 .5 .5 .5"], in: folder)
            let photos = target.isEmpty ? folder : folder.appending(path: target)
            try writeAnnotatedPhoto(photos.appending(path: "a.png"))
            let link = folder.appending(path: path)
            try FileManager.default.createDirectory(
                at: link.deletingLastPathComponent(), withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: photos)
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["cat 50 25 100 50"]])
            #expect(annotations.problems.isEmpty)
        }
    }

    @Test("A list of classes beside the single JSON file of another format is not read") func otherFormat() throws {
        try withAnnotatedPhotos(AnnotationFormat.coco.files.merging(["classes.txt": "bus"]) { $1 }) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.labels == ["cat", "dog"])
        }
    }

    @Test(
        "A folder with XML files and files of another format is read in the other format",
        arguments: [AnnotationFormat.coco, .createML, .yolo])
    func severalFormats(format: AnnotationFormat) throws {
        var files = format.files
        // LabelImg writes this list, and data.yaml would decide.
        if files.removeValue(forKey: "data.yaml") != nil { files["labels/classes.txt"] = "cat\ndog" }
        files["old.xml"] = "<annotation/>"
        files["tool/a.xml"] = "<project/>"
        try withAnnotatedPhotos(files) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.labels == ["cat", "dog"] && annotations.photos.map(\.objects.count) == [2, 0])
        }
    }

    @Test("A list of classes without text files does not hide Pascal VOC boxes") func unusedList() throws {
        try withAnnotatedPhotos(AnnotationFormat.voc.files.merging(["classes.txt": "bus"]) { $1 }) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.labels == ["cat", "dog"])
        }
    }

    @Test(
        "The error about a folder of a data set names the list of classes above it",
        arguments: [("images", "classes.txt"), ("images/sub", "labels/classes.txt"), ("labels", "obj.names")])
    func folderOfDataset(path: String, list: String) throws {
        try withAnnotatedPhotos([list: "cat", "labels/sub/b.txt": "0 .5 .5 .5 .5"]) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: folder.appending(path: path))
            }
            let fix = "/\(list), which lists the classes of the data set."
            #expect(error?.description.hasSuffix(fix) == true, "\(error?.description ?? "")")
        }
    }

    @Test("The list of classes beside the text files counts") func twoLists() throws {
        let files = ["classes.txt": "cat\ndog", "labels/classes.txt": "dog\ncat", "labels/a.txt": "1 .5 .5 .5 .5"]
        try withAnnotatedPhotos(files) { folder in
            let photos = try BoxAnnotations(contentsOf: folder).photos
            #expect(photos.flatMap(boxTexts) == ["cat 50 25 100 50"])
        }
    }

    @Test(
        "A list of classes without a name for a number is an error",
        arguments: [("\n\n", "list is empty"), ("cat\n\ndog", "line 2: the line is blank"), ("cat", "has the class 1")])
    func invalidClassList(text: String, part: String) throws {
        try withAnnotatedPhotos(["classes.txt": text, "labels/a.txt": "1 .5 .5 .5 .5"]) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
        }
    }
}
