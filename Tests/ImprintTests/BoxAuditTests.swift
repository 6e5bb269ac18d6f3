import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Audit of boxes") struct BoxAuditTests {
    private func audit(_ folder: URL, validation: URL? = nil) throws -> Audit {
        let annotations = try BoxAnnotations(contentsOf: folder, photos: nil, recordsProblems: true)
        let other = try validation.map { try BoxAnnotations(contentsOf: $0, photos: nil, recordsProblems: true) }
        return Audit(annotations, validation: other, threads: 2)
    }

    private func findings(_ audit: Audit, _ kind: Audit.Finding.Kind) -> [Audit.Finding] {
        audit.findings.filter { $0.kind == kind }
    }

    /// A valid box that an audit has no finding about, apart from the number of objects.
    private static let valid = cocoBox("60, 10, 40, 40", id: 1)

    @Test(
        "A box that is dropped or changed is a finding with its values",
        arguments: [
            ("5, 5, 0, 4", Audit.Finding.Kind.emptyBoxes, "cat, x 5, y 5, 0 x 4 pixels"),
            ("160, 60, 30, -40", .swappedBoxes, "cat, x 160, y 60, 30 x -40 pixels"),
            ("5, 5, -3, 0", .emptyBoxes, "cat, x 5, y 5, -3 x 0 pixels"),
            ("1e308, 5, 1e308, 4", .nonFiniteBoxes, "cat, x 1e+308, y 5, 1e+308 x 4 pixels"),
            ("200, 5, 3, 4", .outsideBoxes, "cat, x 200, y 5, 3 x 4 pixels"),
            ("-9.5, 40, 49.5, 40", .clippedBoxes, "cat, x -9.5, y 40, 49.5 x 40 pixels"),
        ])
    func unusable(numbers: String, kind: Audit.Finding.Kind, details: String) throws {
        try withAnnotatedPhotos(["set.json": cocoText("\(Self.valid), \(cocoBox(numbers))")]) { folder in
            let audit = try audit(folder)
            #expect(findings(audit, kind).map(\.reason) == ["annotation 12: \(details)"])
            #expect(findings(audit, kind).first?.names.first?.hasSuffix("a.png") == true)
            #expect(Set(audit.findings.map(\.kind)) == [kind, .fewObjects])
        }
    }

    @Test("A photo whose boxes were all dropped is not counted, but its boxes are findings, and a warning names it")
    func withoutUsableBoxes() throws {
        let images = "{\"id\": 7, \"file_name\": \"a.png\"}, {\"id\": 8, \"file_name\": \"sub/b.png\"}"
        let boxes =
            "\(Self.valid), \(cocoBox("5, 5, 0, 4", image: "8")), \(cocoBox("200, 5, 3, 4", image: "8", id: 13))"
        try withAnnotatedPhotos(["set.json": cocoText(boxes, images: images)]) { folder in
            let audit = try audit(folder)
            #expect(audit.images == 1 && audit.objects.map(\.photos) == [1])
            #expect(Set(audit.findings.map(\.kind)) == [.emptyBoxes, .outsideBoxes, .fewObjects])
            for kind in [Audit.Finding.Kind.emptyBoxes, .outsideBoxes] {
                #expect(findings(audit, kind).map { $0.files.map(\.lastPathComponent) } == [["b.png"]])
            }
            let warnings = try BoxAnnotations(contentsOf: folder, recordsProblems: true).warnings
            #expect(warnings.count == 1 && warnings[0].hasSuffix("photos whose boxes were all dropped: 1 (b.png)"))
        }
    }

    @Test(
        "Almost equal boxes, and boxes that a detector cannot see, are findings",
        arguments: [
            ([("60, 10, 40, 40", "cat"), ("61, 10, 40, 40", "cat")], Audit.Finding.Kind.duplicateBoxes),
            ([("61, 10, 40, 40", "cat"), ("60, 10, 40, 40", "dog")], .conflictingBoxes),
            ([("60, 10, 40, 40", "cat"), ("70, 10, 40, 40", "cat")], nil),
            // The largest copy of a photo of 200x100 pixels has 973x486 pixels.
            ([("60, 10, 5, 5", "cat")], .smallBoxes), ([("60, 10, 6, 6", "cat")], nil),
            ([("10, 10, 161, 20", "cat")], .elongatedBoxes), ([("10, 2, 9, 90", "cat")], .elongatedBoxes),
            ([("10, 10, 159, 20", "cat")], nil),
        ])
    func geometry(boxes: [(String, String)], kind: Audit.Finding.Kind?) throws {
        let text = boxes.enumerated().map {
            cocoBox($1.0, category: $1.1 == "cat" ? "1" : "2", id: $0 + 1)
        }.joined(separator: ",")
        let categories = "{\"id\": 1, \"name\": \"cat\"}, {\"id\": 2, \"name\": \"dog\"}"
        try withAnnotatedPhotos(["set.json": cocoText(text, categories: categories)]) { folder in
            let audit = try audit(folder)
            #expect(Set(audit.findings.map(\.kind)) == Set([.fewObjects, kind].compactMap { $0 }))
            let found = kind.map { findings(audit, $0) } ?? []
            #expect(found.allSatisfy { $0.boxes.count == boxes.count && $0.reason.contains("pixels") })
            #expect(found.count <= 1)
        }
    }

    @Test("Missing, unreadable, resized and rotated photos, photos without boxes and rare labels are findings")
    func photos() throws {
        let images = ["a.png", "b.jpg", "c.png", "d.png", "e.png"].enumerated()
            .map { "{\"id\": \($0 + 7), \"file_name\": \"\($1)\"}" }
        let sized = "{\"id\": 20, \"file_name\": \"f.png\", \"width\": 100, \"height\": 50}"
        let boxes = [
            Self.valid, cocoBox("60, 10, 40, 40", image: "8", id: 2), cocoBox("60, 10, 20, 20", image: "20", id: 3),
        ]
        let text = cocoText(boxes.joined(separator: ","), images: (images + [sized]).joined(separator: ","))
        try withAnnotatedPhotos(["set.json": text, "d.png": "text"]) { folder in
            try writeAnnotatedPhoto(folder.appending(path: "b.jpg"), orientation: .down)
            try writeAnnotatedPhoto(folder.appending(path: "e.png"))
            try writeAnnotatedPhoto(folder.appending(path: "f.png"))
            let audit = try audit(folder)
            func files(_ kind: Audit.Finding.Kind) -> [[String]] {
                findings(audit, kind).map { $0.files.map(\.lastPathComponent) }
            }
            #expect(files(.missing) == [["c.png"]] && files(.unreadable) == [["d.png"]])
            #expect(files(.withoutBoxes) == [["e.png"]] && files(.ambiguousOrientation) == [["b.jpg"]])
            #expect(files(.otherSize) == [["f.png"]])
            #expect(findings(audit, .fewObjects).map(\.reason) == ["cat: 3 objects in 3 photos"])
            #expect(audit.images == 4 && audit.objects.map(\.objects) == [3])
            #expect(audit.objects[0].aspectRatios.allSatisfy { abs($0 - 1) < 1e-5 })
            #expect(audit.objects[0].sizes.map { $0.rounded() } == [195, 195, 195])
            #expect(findings(audit, .outsideCrop).isEmpty)
        }
    }

    @Test("Labels of objects that are reserved for photos without an object are findings") func reservedLabels() throws
    {
        let categories = ["None", "cat", "none of these"].enumerated().map {
            "{\"id\": \($0 + 1), \"name\": \"\($1)\"}"
        }
        let text = cocoText(
            "\(Self.valid), \(cocoBox("10, 50, 40, 40", category: "2", id: 2))",
            categories: categories.joined(separator: ", "))
        try withAnnotatedPhotos(["set.json": text]) { folder in
            let reserved = findings(try audit(folder), .reservedLabels)
            #expect(reserved.map(\.reason) == ["None: 1 object in 1 photo"] && reserved.allSatisfy(\.files.isEmpty))
        }
    }

    @Test("Near-duplicates in the folders of several splits, or in a validation set, are leakage") func splits() throws
    {
        try withTemporaryFolder { root in
            let (folder, validation) = (root.appending(path: "set"), root.appending(path: "other"))
            let files = [
                "data.yaml": "names: [cat]", "labels/train/a.txt": "0 .5 .5 .5 .5", "labels/val/b.txt": "0 .5 .5 .4 .4",
                "labels/val/c.txt": "0 .5 .5 .4 .4",
            ]
            try writeAnnotations(files, in: folder)
            for (path, seed) in [("train/a", 1), ("val/b", 1), ("val/c", 2)] {
                var stream = RandomStream(seed: UInt64(seed), "noise")
                var image = RasterImage(width: 64, height: 64)
                for index in image.samples.indices { image.samples[index] = UInt8(stream.index(below: 256)) }
                try writeFile(Data(ImageFile.encodePNG(image)), to: folder.appending(path: "images/\(path).png"))
            }
            let audit = try audit(folder)
            let leaks = findings(audit, .acrossSplits)
            #expect(leaks.map { $0.files.map(\.lastPathComponent) } == [["b.png", "a.png"]])
            #expect(audit.randomSplit == nil && audit.labels.map(\.validationImages) == [2])
            try writeAnnotations(["images/a.txt": "0 .5 .5 .4 .4", "data.yaml": "names: [cat]"], in: validation)
            try FileManager.default.copyItem(
                at: folder.appending(path: "images/val/c.png"), to: validation.appending(path: "images/a.png"))
            let compared = try self.audit(folder, validation: validation)
            #expect(findings(compared, .acrossSplits).map(\.files.count) == [2])
            #expect(findings(compared, .fewObjects).count == 1)
        }
    }

    @Test(
        "The keys of data.yaml tell the parts of a dataset split",
        arguments: [
            "train: images/2019\nval: images/2020", "train: first.txt\nval: second.txt",
            "train: images/2019\ntest: images/2020",
        ])
    func statedParts(keys: String) throws {
        try withTemporaryFolder { folder in
            let files = [
                "data.yaml": "names: [cat, dog]\n" + keys, "labels/2019/a.txt": "0 .5 .5 .5 .5",
                "labels/2020/b.txt": "1 .5 .5 .5 .5", "first.txt": "images/2019/a.png\n",
                "second.txt": "images/2020/b.png\n",
            ]
            try writeAnnotations(files, in: folder)
            for photo in ["2019/a", "2020/b"] {
                try writeAnnotatedPhoto(folder.appending(path: "images/\(photo).png"))
            }
            let audit = try audit(folder)
            let leaks = findings(audit, .acrossSplits).map { finding in finding.files.map { $0.lastPathComponent } }
            #expect(leaks == [["b.png", "a.png"]])
            #expect(findings(audit, .untrainedLabels).map { $0.reason } == ["\"dog\": 1 photo"])
            #expect(audit.randomSplit == nil)
        }
    }

    @Test("The photos of the validation set and of the test set are counted separately") func testSet() throws {
        try withTemporaryFolder { folder in
            var files = ["data.yaml": "names: [cat]"]
            for (part, count) in [("train", 3), ("val", 2), ("test", 1)] {
                for index in 0..<count {
                    try writeAnnotatedPhoto(folder.appending(path: "images/\(part)/\(index).png"))
                    files["labels/\(part)/\(index).txt"] = "0 .5 .5 .5 .5"
                }
            }
            try writeAnnotations(files, in: folder)
            let audit = try audit(folder)
            #expect((audit.trainingImages, audit.validationImages, audit.testImages) == (3, 2, 1))
            #expect(audit.labels.map { $0.validationImages } == [2] && audit.labels.map { $0.testImages } == [1])
            let page = AuditReport(audit, title: "Audit").html
            #expect(page.contains("photos for training, 2 for validation and 1 for testing, of 1 label"))
            #expect(page.contains("3 + 2 + 1</span>"))
            try FileManager.default.removeItem(at: folder.appending(path: "images/test"))
            let line = try JSONEncoder().encode(try self.audit(folder).labels)
            #expect(!String(decoding: line, as: UTF8.self).contains("testImages"))
        }
    }

    @Test("The names of files include the folder of their set at any depth") func nestedSets() throws {
        try withTemporaryFolder { folder in
            let texts = [
                "train/2019/day1/a": "0 .5 .5 .5 .5", "train/2019/day1/b": "", "val/2020/day2/c": "", "val/d": "",
            ]
            for (path, text) in texts {
                try writeAnnotatedPhoto(folder.appending(path: "images/\(path).png"))
                try writeAnnotations(["labels/\(path).txt": text], in: folder)
            }
            try writeAnnotations(["data.yaml": "names: [cat]"], in: folder)
            let audit = try audit(folder)
            #expect(
                findings(audit, .withoutBoxes).map(\.names) == [
                    ["train/2019/day1/b.png"], ["val/2020/day2/c.png"], ["images/val/d.png"],
                ])
        }
    }

    @Test("Names of files begin with a slash only if they are whole paths") func names() throws {
        try withAnnotatedPhotos(["set.json": cocoText(Self.valid)], photoFolder: ".") { folder in
            try withAnnotatedPhotos(["set.json": cocoText(Self.valid)], photoFolder: ".") { validation in
                let leaks = findings(try audit(folder, validation: validation), .acrossSplits)
                #expect(leaks.map(\.files.count) == [2])
                for name in leaks.flatMap(\.names) {
                    #expect(!name.hasPrefix("//"))
                    #expect(name.hasPrefix("/") || !FileManager.default.fileExists(atPath: "/" + name), "\(name)")
                }
            }
        }
    }

    @Test(
        "The names of folders tell the parts of a dataset split",
        arguments: [
            (["train2014", "train2017"], [0, 0]), (["train2017", "val2017"], [0, 1]), (["test", "val"], [2, 1]),
            (["Training", "valid", "validation", "test_1"], [0, 1, 1, 2]), (["photos", "val"], [0, 1]),
            (["a", "training-plan"], [0, 0]), (["val2014", "val2017"], [0, 0]),
        ])
    func parts(folders: [String], parts: [Int]) {
        let photos = folders.map { name in
            AnnotatedPhoto(url: URL(filePath: "/set/images/\(name)/a.png"), width: 9, height: 9, objects: [])
        }
        #expect(BoxAnnotations(uncheckedLabels: [], photos: photos).parts == parts)
    }

    @Test("Thousands of equal boxes are compared in a short time") func manyBoxes() throws {
        let boxes = (0..<3000).map { cocoBox("60, 10, 40, 40", id: $0) }.joined(separator: ",")
        try withAnnotatedPhotos(["set.json": cocoText(boxes)]) { folder in
            let report = try audit(folder)
            #expect(findings(report, .duplicateBoxes).count == 2999)
        }
    }
}
