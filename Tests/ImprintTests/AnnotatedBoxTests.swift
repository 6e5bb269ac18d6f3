import Foundation
import Imprint
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

@Suite("Boxes of annotations") struct AnnotatedBoxTests {
    private let valid = cocoBox("20, 10, 40, 20", id: 1)

    @Test(
        "An invalid box is dropped with a warning",
        arguments: [
            ("5, 5, 0, 4", "not positive"), ("5, 5, 3, 0", "not positive"), ("5, 5, 1e-300, 4", "not positive"),
            ("200, 5, 3, 4", "outside"), ("-9, 5, 9, 4", "outside"), ("1e300, 5, 1, 4", "outside"),
            ("1e308, 5, 1e308, 4", "not a finite"),
        ])
    func dropped(numbers: String, part: String) throws {
        try withAnnotatedPhotos(["set.json": cocoText("\(valid), \(cocoBox(numbers))")]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["cat 20 10 40 20"]])
            #expect(annotations.warnings.count == 1)
            #expect(annotations.warnings.first?.contains(part) == true)
            #expect(annotations.warnings.first?.hasSuffix("1 (annotation 12 of a.png)") == true)
        }
    }

    @Test(
        "The edges of a box of negative width or height are swapped, with a warning",
        arguments: ["60, 10, -40, 20", "20, 30, 40, -20", "60, 30, -40, -20"])
    func swapped(numbers: String) throws {
        try withAnnotatedPhotos(["set.json": cocoText(cocoBox(numbers))]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["cat 20 10 40 20"]])
            #expect(annotations.warnings.count == 1)
            #expect(annotations.warnings.first?.contains("swapped their edges: 1 (annotation 12 of a.png)") == true)
        }
    }

    @Test("The corners of a VOC box may be in any order") func swappedCorners() throws {
        let box = "<bndbox><xmin>60</xmin><ymin>30</ymin><xmax>20</xmax><ymax>10</ymax></bndbox>"
        let xml = "<annotation><object><name>cat</name>\(box)</object></annotation>"
        try withAnnotatedPhotos(["a.xml": xml]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["cat 20 10 40 20"]] && annotations.warnings.count == 1)
        }
    }

    @Test(
        "A photo whose boxes were all dropped is left out, with a warning; a photo without boxes is not",
        arguments: ["5, 5, 0, 4", "200, 5, 3, 4", "1e308, 5, 1e308, 4"])
    func onlyDropped(numbers: String) throws {
        let images = ["a.png", "sub/b.png", "c.png"].enumerated()
            .map { "{\"id\": \($0 + 7), \"file_name\": \"\($1)\"}" }.joined(separator: ",")
        let boxes = "\(cocoBox(numbers)), \(cocoBox("20, 10, 40, 20", image: "8", id: 13))"
        try withAnnotatedPhotos(["set.json": cocoText(boxes, images: images)]) { folder in
            try writeAnnotatedPhoto(folder.appending(path: "images/c.png"))
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(\.url.lastPathComponent) == ["c.png", "b.png"])
            #expect(annotations.photos.map(boxTexts) == [[], ["cat 20 10 40 20"]])
            #expect(annotations.withoutUsableBoxes.map(\.lastPathComponent) == ["a.png"])
            #expect(annotations.warnings.count == 2)
            let lines = annotations.warnings.joined(separator: "\n")
            #expect(lines.contains("left out photos whose boxes were all dropped: 1 (a.png)"), "\(lines)")
        }
    }

    @Test(
        "A box is clipped to its photo, with a warning beyond 1 pixel",
        arguments: [
            ("-1, 10, 41, 20", "cat 0 10 40 20", 0), ("-2, 10, 42, 20", "cat 0 10 40 20", 1),
            ("150, -5, 1e300, 1e300", "cat 150 0 50 100", 1), ("100, 50, 101, 51", "cat 100 50 100 50", 0),
        ])
    func clipped(numbers: String, expected: String, warnings: Int) throws {
        try withAnnotatedPhotos(["set.json": cocoText(cocoBox(numbers))]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [[expected]])
            #expect(annotations.warnings.count == warnings)
            #expect(annotations.photos[0].objects[0].box.isWithinImage)
        }
    }

    @Test("Many problems give one line with a number and three examples") func aggregated() throws {
        let bad = (2...100).map { cocoBox("5, 5, 0, 4", id: $0) }
        try withAnnotatedPhotos(["set.json": cocoText(([valid] + bad).joined(separator: ","))]) { folder in
            let warnings = try BoxAnnotations(contentsOf: folder).warnings
            let end = ": 99 (annotation 2 of a.png, annotation 3 of a.png, annotation 4 of a.png and 96 more)"
            #expect(warnings.count == 1 && warnings[0].hasSuffix(end), "\(warnings)")
        }
    }

    @Test("Boxes of unknown images, repeated photos, equal names and labels without boxes give warnings")
    func structure() throws {
        let photo = "\"file_name\": \"a.png\""
        let text = cocoText(
            [valid, cocoBox("1, 1, 2, 2", category: "\"x\"", image: "8"), cocoBox("5, 5, 3, 4", image: "99")].joined(
                separator: ","),
            images: "{\"id\": 7, \(photo)}, {\"id\": 8, \(photo)}",
            categories:
                "{\"id\": 1, \"name\": \"cat\"}, {\"id\": \"x\", \"name\": \"cat \"}, {\"id\": 3, \"name\": \"dog\"}")
        try withAnnotatedPhotos(["set.json": text]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.labels == ["cat", "dog"])
            #expect(annotations.photos.map(boxTexts) == [["cat 20 10 40 20", "cat 1 1 2 2"]])
            #expect(annotations.warnings.count == 4)
            let lines = annotations.warnings.joined(separator: "\n")
            for part in [
                "image_id 99", "of the entries: 1 (a.png)", "ids; combined their boxes: 1 (cat)", ": 1 (dog)",
            ] {
                #expect(lines.contains(part), "\(lines)")
            }
        }
    }

    private func photo(_ name: String, _ boxes: [[Float]], label: String = "cat", width: Int = 200) -> AnnotatedPhoto {
        AnnotatedPhoto(
            url: URL(filePath: "/photos/\(name)"), width: width, height: 100,
            objects: boxes.map {
                AnnotatedPhoto.Object(
                    label: label, box: NormalizedRectangle(x: $0[0], y: $0[1], width: $0[2], height: $0[3]))
            })
    }

    @Test("Boxes of an app are resolved as those of a file, and its labels and photos are sorted") func ofApp() throws {
        let boxes: [[Float]] = [
            [0.1, 0.1, 0.2, 0.2], [0, 0, 0, 0.5], [1.5, 0, 0.2, 0.2], [.nan, 0, 0.1, 0.1], [-0.1, 0.5, 0.5, 0.5],
        ]
        let photos = [photo("b.png", boxes), photo("a.png", []), photo("b.png", [[0.5, 0.5, 0.25, 0.25]])]
        let annotations = try BoxAnnotations(labels: ["dog", "cat"], photos: photos)
        #expect(annotations.labels == ["cat", "dog"])
        #expect(annotations.photos.map(\.url.lastPathComponent) == ["a.png", "b.png"])
        #expect(boxTexts(annotations.photos[1]) == ["cat 20 10 40 20", "cat 0 50 80 50", "cat 100 50 50 25"])
        #expect(annotations.photos[1].objects[0] == photos[0].objects[0])
        let lines = annotations.warnings.joined(separator: "\n")
        for part in [
            "beyond the photo: 1 (box 5 of b.png)", "a finite number: 1 (box 4 of b.png)",
            "not positive: 1 (box 2 of b.png)", "outside of the photo: 1 (box 3 of b.png)",
            "of the entries: 1 (b.png)", "labels without boxes: 1 (dog)",
        ] {
            #expect(lines.contains(part), "\(lines)")
        }
        #expect(annotations.warnings.count == 6)
        let recorded = try BoxAnnotations(labels: ["cat"], photos: photos, recordsProblems: true)
        #expect(recorded.problems.map(\.kind) == [.empty, .outside, .notFinite, .clipped])
        #expect(recorded.warnings.count == 1)
    }

    @Test(
        "Invalid labels and photos of an app are errors",
        arguments: [
            (["cat", "cat"], "cat", 200, "a list with \"cat\" twice"),
            (["cat", "dog"], "dgo", 200, "a.png: box 1: the label \"dgo\". Expected one of the labels cat, dog."),
            (["cat"], "cat", 0, "a.png: the photo: a size of 0x100 pixels."),
        ])
    func invalidOfApp(labels: [String], label: String, width: Int, part: String) {
        let photo = photo("a.png", [[0, 0, 0.5, 0.5]], label: label, width: width)
        let error = #expect(throws: (any Error).self) { _ = try BoxAnnotations(labels: labels, photos: [photo]) }
        #expect(error.map { "\($0)" }?.contains(part) == true)
    }

    @Test("Annotations of an app without photos, or without a usable box, are errors") func nothingOfApp() {
        #expect(throws: ImprintError.self) { _ = try BoxAnnotations(labels: ["cat"], photos: []) }
        let empty = photo("a.png", [[0.5, 0.5, 0, 0.1]])
        #expect(throws: BoxAnnotationsError.self) { _ = try BoxAnnotations(labels: ["cat"], photos: [empty]) }
    }

    @Test("Missing and damaged photos are skipped") func skipped() throws {
        let images = ["a.png", "c.png", "d.png"].enumerated()
            .map { "{\"id\": \($0 + 7), \"file_name\": \"\($1)\"}" }.joined(separator: ",")
        try withAnnotatedPhotos(["set.json": cocoText(valid, images: images), "d.png": "text"]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.count == 1)
            #expect(annotations.skipped.map(\.url.lastPathComponent) == ["c.png", "d.png"])
        }
    }

    @Test("Boxes relative to another size are scaled, with a warning", arguments: [AnnotationFormat.coco, .voc])
    func scaled(format: AnnotationFormat) throws {
        try withTemporaryFolder { folder in
            try writeAnnotations(format.files, in: folder)
            for photo in ["a.png", "sub/b.png"] {
                try writeAnnotatedPhoto(folder.appending(path: "images/\(photo)"), width: 400, height: 300)
            }
            let annotations = try BoxAnnotations(contentsOf: folder)
            let objects = boxTexts(annotations.photos[0])
            #expect(objects == ["cat 40 30 80 60", "dog 200 150 100 150*"])
            #expect(annotations.warnings.count == 1)
            #expect(annotations.warnings[0].contains("(a.png: stated 200x100, actual 400x300)"))
        }
    }

    @Test("A stated size that is not positive is ignored, with a warning", arguments: ["0", "-3", "1e300"])
    func invalidSize(width: String) throws {
        let image = "{\"id\": 7, \"file_name\": \"a.png\", \"width\": \(width), \"height\": 100}"
        try withAnnotatedPhotos(["set.json": cocoText(valid, images: image)]) { folder in
            guard width != "1e300" else {
                // Relative to this width, the box is empty.
                _ = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
                return
            }
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["cat 20 10 40 20"]] && annotations.warnings.count == 1)
        }
    }

    /// The stored photo of 200x100 pixels has a box at (20, 10) of 40x20 pixels.
    @Test(
        "Boxes of the stored photo are rotated upright, with a warning",
        arguments: [
            (.leftMirrored, "cat 10 20 20 40"), (.right, "cat 70 20 20 40"), (.rightMirrored, "cat 70 140 20 40"),
            (.left, "cat 10 140 20 40"),
        ] as [(Orientation, String)])
    func stored(orientation: Orientation, expected: String) throws {
        let image = "{\"id\": 7, \"file_name\": \"a.jpg\", \"width\": 200, \"height\": 100}"
        try withTemporaryFolder { folder in
            try writeAnnotations(["set.json": cocoText(valid, images: image)], in: folder)
            try writeAnnotatedPhoto(folder.appending(path: "a.jpg"), orientation: orientation)
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map { [$0.width, $0.height] } == [[100, 200]])
            #expect(annotations.photos.map(boxTexts) == [[expected]])
            #expect(annotations.warnings.count == 1 && annotations.warnings[0].contains("stored picture"))
            #expect(annotations.warnings[0].hasSuffix("1 (a.jpg)"))
        }
    }

    @Test("A box of the stored photo is where decoding puts its pixels", arguments: Orientation.allCases)
    func decodedPixels(orientation: Orientation) throws {
        guard orientation.swapsSides else { return }
        try withTemporaryFolder { folder in
            var image = RasterImage(width: 200, height: 100)
            for y in 10..<30 { for x in 20..<60 { for c in 0..<3 { image.samples[(y * 200 + x) * 3 + c] = 255 } } }
            let upright = orientation.upright(image)
            let white = (0..<(200 * 100)).filter { upright.samples[3 * $0] == 255 }
            let (columns, rows) = (white.map { $0 % upright.width }, white.map { $0 / upright.width })
            let stated = "{\"id\": 7, \"file_name\": \"a.jpg\", \"width\": 200, \"height\": 100}"
            try writeAnnotations(["set.json": cocoText(valid, images: stated)], in: folder)
            try writeAnnotatedPhoto(folder.appending(path: "a.jpg"), orientation: orientation)
            let photo = try BoxAnnotations(contentsOf: folder).photos[0]
            let (x, y) = (try #require(columns.min()), try #require(rows.min()))
            let (width, height) = (try #require(columns.max()) - x + 1, try #require(rows.max()) - y + 1)
            #expect(boxTexts(photo) == ["cat \(x) \(y) \(width) \(height)"])
        }
    }

    @Test(
        "The boxes of a rotated photo are upright if the stated size is, and otherwise assumed to be",
        arguments: [
            (", \"width\": 100, \"height\": 200", .right, 0), ("", .right, 1), ("", .down, 1),
            (", \"width\": 200, \"height\": 100", .down, 1), ("", .up, 0),
        ] as [(String, Orientation, Int)])
    func upright(size: String, orientation: Orientation, warnings: Int) throws {
        try withTemporaryFolder { folder in
            try writeAnnotations(
                ["set.json": cocoText(valid, images: "{\"id\": 7, \"file_name\": \"a.jpg\"\(size)}")], in: folder)
            try writeAnnotatedPhoto(folder.appending(path: "a.jpg"), orientation: orientation)
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["cat 20 10 40 20"]])
            #expect(annotations.warnings.count == warnings)
        }
    }

    @Test("The COCO file has relative names and ids from 1, and reads back", arguments: AnnotationFormat.allCases)
    func writing(format: AnnotationFormat) throws {
        try withAnnotatedPhotos(format.files) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            let data = try annotations.cocoData()
            #expect(try data == annotations.cocoData())
            #expect(String(decoding: data, as: UTF8.self).contains("\"file_name\":\"sub/b.png\""))
            let inFolder = String(decoding: try annotations.cocoData(relativeTo: folder), as: UTF8.self)
            #expect(inFolder.contains("\"file_name\":\"images/sub/b.png\""))
            let copy = folder.appending(path: "images/copy.json")
            try data.write(to: copy)
            let read = try BoxAnnotations(contentsOf: copy)
            #expect(read.labels == annotations.labels && read.warnings.isEmpty)
            #expect(read.photos.map(boxTexts) == annotations.photos.map(boxTexts))
            // Photos outside of the folder have absolute paths.
            try annotations.cocoData(relativeTo: folder.appending(path: "other")).write(to: copy)
            let outside = try BoxAnnotations(contentsOf: copy)
            #expect(outside.photos.count == 2)
        }
    }
}
