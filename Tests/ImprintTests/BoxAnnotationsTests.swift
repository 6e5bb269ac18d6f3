import Foundation
import ImprintCore
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

@Suite("Box annotations") struct BoxAnnotationsTests {
    @Test("Each format gives the same photos and boxes", arguments: AnnotationFormat.allCases)
    func formats(format: AnnotationFormat) throws {
        try withAnnotatedPhotos(format.files) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.labels == ["cat", "dog"])
            #expect(annotations.photos.map(\.url.lastPathComponent) == ["a.png", "b.png"])
            #expect(annotations.photos.map(\.width) == [200, 200] && annotations.photos.map(\.height) == [100, 100])
            let crowd = format == .coco || format == .voc ? "*" : ""
            #expect(boxTexts(annotations.photos[0]) == ["cat 20 10 40 20", "dog 100 50 50 50\(crowd)"])
            #expect(annotations.photos[1].objects.isEmpty)
            #expect(annotations.warnings.isEmpty && annotations.skipped.isEmpty)
        }
    }

    @Test(
        "Boxes in the Create ML format are read with each pair of keys",
        arguments: ["image", "imagefilename"], ["annotations", "annotation"])
    func createMLKeys(file: String, boxes: String) throws {
        let coordinates = #"{"x": 40, "y": 20, "width": 40, "height": 20}"#
        let text = #"[{"\#(file)": "a.png", "\#(boxes)": [{"label": "cat", "coordinates": \#(coordinates)}]}]"#
        try withAnnotatedPhotos(["set.json": text]) { folder in
            let photos = try BoxAnnotations(contentsOf: folder).photos
            #expect(photos.map(boxTexts) == [["cat 20 10 40 20"]])
        }
    }

    @Test("Photos whose names differ only in their Unicode normalization are different") func normalization() throws {
        let photos = ["caf\u{e9}", "cafe\u{301}"].map { name in
            AnnotatedPhoto(
                url: URL(filePath: "/\(name).png"), width: 9, height: 9,
                objects: [AnnotatedPhoto.Object(label: "cat", box: .all)])
        }
        let annotations = try BoxAnnotations(labels: ["cat"], photos: photos)
        #expect(Set(annotations.photos) == Set(photos) && annotations.warnings.isEmpty)
    }

    @Test(
        "Of labels that differ only in their Unicode normalization, the first one in the order of scalars remains",
        arguments: [
            [
                "set.json": cocoText(
                    cocoBox("1, 2, 3, 4"),
                    categories: "{\"id\": 1, \"name\": \"caf\u{e9}\"}, {\"id\": 2, \"name\": \"cafe\u{301}\"}")
            ],
            ["data.yaml": "names: [caf\u{e9}, cafe\u{301}]", "labels/a.txt": "0 .5 .5 .5 .5"],
        ])
    func equalLabels(files: [String: String]) throws {
        try withAnnotatedPhotos(files) { folder in
            let labels = try BoxAnnotations(contentsOf: folder).labels
            #expect(labels.map { Array($0.unicodeScalars) } == [Array("cafe\u{301}".unicodeScalars)])
        }
    }

    @Test("The annotations do not depend on the number of threads that read the photos", arguments: [1, 2, 7])
    func threads(count: Int) throws {
        let images = (0..<9).map { "{\"id\": \($0 + 7), \"file_name\": \"\($0).png\"}" }.joined(separator: ",")
        let boxes = (0..<9).map { cocoBox("\($0), 10, 40, 20", image: "\($0 + 7)", id: $0 + 1) }
        try withAnnotatedPhotos(["set.json": cocoText(boxes.joined(separator: ","), images: images)]) { folder in
            for index in 0..<9 where index != 4 { try writeAnnotatedPhoto(folder.appending(path: "\(index).png")) }
            let annotations = try BoxAnnotations(contentsOf: folder, threads: count)
            #expect(annotations.photos.map(boxTexts) == [0, 1, 2, 3, 5, 6, 7, 8].map { ["cat \($0) 10 40 20"] })
            #expect(annotations.skipped.map(\.url.lastPathComponent) == ["4.png"])
        }
    }

    @Test("The photos can be in another folder", arguments: AnnotationFormat.allCases)
    func photoFolder(format: AnnotationFormat) throws {
        try withAnnotatedPhotos(format.files, photoFolder: "elsewhere") { folder in
            let photos = folder.appending(path: "elsewhere")
            let annotations = try BoxAnnotations(contentsOf: folder, photos: photos)
            #expect(annotations.photos.map { boxTexts($0).count } == [2, 0])
        }
    }

    @Test(
        "A file gives the same boxes as its folder, even with a byte order mark",
        arguments: [
            (.coco, "set.json"), (.createML, "set.json"), (.yolo, "data.yaml"), (.voc, "Annotations/a.xml"),
        ] as [(AnnotationFormat, String)])
    func singleFile(format: AnnotationFormat, path: String) throws {
        try withAnnotatedPhotos(format.files) { folder in
            let url = folder.appending(path: path)
            try writeFile(Data([0xEF, 0xBB, 0xBF]) + Data(contentsOf: url), to: url)
            #expect(try boxTexts(BoxAnnotations(contentsOf: url).photos[0]).count == 2)
        }
    }

    @Test(
        "A YOLO photo finds its text file in each layout",
        arguments: [
            ("images/train/a.png", "labels/train/a.txt"), ("train/images/a.png", "train/labels/a.txt"),
            ("photos/a.png", "photos/a.txt"), ("a.png", "a.txt"), ("images/a.png", "images/a.txt"),
        ])
    func layouts(photo: String, text: String) throws {
        try withTemporaryFolder { folder in
            try writeAnnotations(["data.yaml": "names: [cat]", text: "0 .5 .5 .5 .5"], in: folder)
            try writeAnnotatedPhoto(folder.appending(path: photo))
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["cat 50 25 100 50"]] && annotations.warnings.isEmpty)
        }
    }

    @Test("A YOLO data set warns about several splits and unused files") func unusedFiles() throws {
        try withTemporaryFolder { folder in
            try writeAnnotations(
                [
                    "data.yaml": "names: [cat]", "labels/train/a.txt": "0 .5 .5 .5 .5", "labels/val/c.txt": "",
                ], in: folder)
            for photo in ["images/train/a.png", "images/val/b.png", "plot.png"] {
                try writeAnnotatedPhoto(folder.appending(path: photo))
            }
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map { $0.objects.count } == [1, 0])
            let text = annotations.warnings.joined(separator: "\n")
            #expect(annotations.warnings.count == 4)
            for part in [
                "(labels/val/c.txt)", "(plot.png)", "the folders train and val are read together",
                "1 of 2 photos has no text file in ",
            ] {
                #expect(text.contains(part))
            }
            let fix = "To separate them, add the paths of the photos, such as train: images/train and val: images/val"
            #expect(text.contains(fix))
            let split = folder.appending(path: "images/train")
            #expect(try BoxAnnotations(contentsOf: folder, photos: split).warnings.isEmpty)
        }
    }

    @Test(
        "Class names are read in each notation of data.yaml",
        arguments: [
            ("names: [a, 'b c', \"d\"]", ["a", "b c", "d"]),
            ("names:\n- a\n- 'b # c'\n\n# x\n- d\nnc: 3", ["a", "b # c", "d"]),
            ("names:\n  0: a\n  1: \"b\\u0021\"\n  2: it's\npath: x", ["a", "b!", "it's"]),
            ("nc: 3\r\nnames: [a,\r\n  b, # two\r\n  c,\r\n]\r\n", ["a", "b", "c"]),
            ("names: {0: a, 1: 'b''s, c'}", ["a", "b's, c"]),
            ("names: {7: a}", ["a"]), ("names: [it's, Zoë]", ["Zoë", "it's"]),
            ("names: [rock 'n roll, \"a\\\"b\"] # x's", ["rock 'n roll", "a\"b"]), ("names:\n- a 'b # c\n", ["a 'b"]),
        ])
    func classNames(yaml: String, names: [String]) throws {
        let first = yaml.contains("7:") ? 7 : 0
        try withAnnotatedPhotos(["data.yaml": yaml, "labels/a.txt": "\(first) .5 .5 .5 .5"]) { folder in
            let labels = try BoxAnnotations(contentsOf: folder).labels
            #expect(labels == names.sorted(by: precedes))
        }
    }

    @Test(
        "Invalid class names are an error",
        arguments: [
            "nc: 3", "names: 3", "names:", "names: []", "names: [a", "names: [[a]]", "names: {a: b}",
            "names: {0: a, 0: b}",
            "names:\n  - a\n  - ", "names: ['a]", "names: {-1: a}", "names: \u{1}", "names: [&a]", "names: {0 a}",
        ])
    func invalidNames(yaml: String) throws {
        try withAnnotatedPhotos(["data.yaml": yaml, "labels/a.txt": "0 .5 .5 .5 .5"]) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            #expect(error?.description.contains("data.yaml") == true)
        }
    }

    @Test(
        "Files of a wrong structure are an error that names the entry",
        arguments: [
            ("set.json", "{}", "\"images\" is missing"), ("set.json", "{\"images\": 3}", "images"),
            ("set.json", "{\"images\": [", "not valid JSON"), ("set.json", "", "an empty file"),
            ("set.json", "text", "found text that is neither JSON nor XML"),
            ("set.json", "PK\u{3}\u{4}", "found a ZIP archive"), ("set.json", "[{\"image\": \"a.png\"}]", "[0]"),
            ("set.json", "[{\"annotations\": []}]", "\"image\" is missing"), ("set.json", "[]", "no photos"),
            ("set.json", "[3]", "[0]"), ("set.json", cocoText("", images: ""), "no photos"),
            ("set.json", cocoText(cocoBox("1, 2, 3")), "annotation 12: the bbox has 3 numbers"),
            ("set.json", cocoText(cocoBox("1, 2, \"x\", 3")), "annotations[0].bbox[2]"),
            ("set.json", cocoText(cocoBox("1, 2, NaN, 3")), "contains NaN"),
            ("set.json", cocoText(cocoBox("1, 2, 1e999, 3")), "too large"),
            ("set.json", cocoText(cocoBox("1, 2, 3, 4", category: "9")), "annotation 12 has the class 9"),
            (
                "set.json",
                cocoText("", images: "{\"id\": 1, \"file_name\": \"a.png\"}, {\"id\": 1, \"file_name\": \"b.png\"}"),
                "images[1]: an earlier entry has the id 1"
            ),
            ("set.json", cocoText("", categories: "{\"id\": 1, \"name\": \" \"}"), "categories[0]: the name is blank"),
            (
                "set.json", cocoText("", categories: "{\"id\": 1, \"name\": \"\u{2060}\"}"),
                #"categories[0]: the name is blank: "\u{2060}""#
            ),
            (
                "set.json",
                """
                [{"image": "a.png", "annotations": [
                {"label": "\u{2060}", "coordinates": {"x": 9, "y": 9, "width": 4, "height": 4}}]}]
                """, #"[0].annotations[0]: the label is blank: "\u{2060}""#
            ),
            (
                "Annotations/a.xml", "<annotation><object><name>\u{2060}</name></object></annotation>",
                "object 1: the name is missing or blank"
            ),
            ("set.json", cocoText("", images: "{\"id\": 1, \"file_name\": \"a\\u0000b\"}"), "images[0]"),
            ("set.json", cocoText("", images: "{\"id\": 1, \"file_name\": \"\"}"), "images[0]"),
            ("set.json", cocoText("", images: "{\"id\": 1, \"file_name\": \"c.png\"}"), "none of the 1 photos"),
            ("set.json", cocoText(cocoBox("5, 5, 0, 4")), "annotation 12 has a box with a width of 0 pixels"),
            ("set.json", cocoText(cocoBox("500, 5, 3, 4")), "annotation 12 has a box outside of the photo"),
            ("labels/a.txt", "0 .5 .5 .5", "line 1: found 3 numbers"),
            ("labels/a.txt", "0 .5 .5 .5 .5 .9", "sixth column"),
            ("labels/a.txt", "\n2 .5 .5 .5 .5", "line 2 has the class 2"),
            ("labels/a.txt", "0.5 .5 .5 .5 .5", "class 0.5"),
            ("labels/a.txt", "1e300 .5 .5 .5 .5", "class 1e300"),
            ("labels/a.txt", "cat .5 .5 .5 .5", "\"cat\" is not a number"),
            ("labels/a.txt", "0 1 2 3 4 5 6 7", "found 7 numbers"), ("labels/a.txt", "\0", "not in UTF-8"),
            ("labels/a.txt", "0 0 0 nan nan 1 1", "not a finite number"), ("labels/x.txt", "", "no text file"),
            ("Annotations/a.xml", "<annotation><object>", "ends early"), ("Annotations/a.xml", "<a/>", "root element"),
            ("Annotations/a.xml", "", "ends early"), ("Annotations/a.xml", "<annotation/><annotation/>", "second root"),
            ("Annotations/a.xml", "<annotation><object></object></annotation>", "object 1: the name is missing"),
            ("Annotations/a.xml", "<annotation><object><name>a</name></object></annotation>", "the bndbox is missing"),
            (
                "Annotations/a.xml",
                "<annotation><object><name>a</name><bndbox><xmin>a</xmin></bndbox></object></annotation>",
                "xmin is \"a\""
            ),
            (
                "Annotations/a.xml",
                "<annotation><object><name>a</name><bndbox><xmin>1</xmin></bndbox></object></annotation>", "incomplete"
            ),
            (
                "Annotations/a.xml", "<!DOCTYPE a [<!ENTITY b SYSTEM \"/etc/passwd\">]><annotation>&b;</annotation>",
                "line 1: a document type"
            ),
            ("Annotations/a.xml", "<annotation>" + String(repeating: "<a>", count: 100), "nested too deeply"),
        ])
    func errors(path: String, text: String, part: String) throws {
        let names = path.hasSuffix("txt") ? ["data.yaml": "names: [cat, dog]"] : [:]
        try withAnnotatedPhotos(names.merging([path: text]) { $1 }) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            let message = error?.description ?? ""
            #expect(message.contains(part), "\(message)")
            #expect(message.hasPrefix(folder.path(percentEncoded: false)))
        }
    }

    @Test(
        "The error about an unknown class number names the numbers",
        arguments: [
            ("[a]", "class 0"), ("[a, b]", "class 0 or 1"), ("[a, b, c]", "class 0 to 2"),
            ("{0: a, 2: b}", "class 0 or 2"),
            ("{0: a, 2: b, 5: c}", "class 0, 2 or 5"),
        ])
    func unknownClass(names: String, expected: String) throws {
        try withAnnotatedPhotos(["data.yaml": "names: \(names)", "labels/a.txt": "7 .5 .5 .5 .5"]) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            let text = "line 1 has the class 7, which has no name. Expected \(expected). "
            #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
        }
    }

    @Test(
        "XML with comments, CDATA, references and attributes is read",
        arguments: [
            ("<name>a &amp; &lt;b&#62; &#x43;</name>", "a & <b> C"), ("<name a='1' b=\"&gt;/>\" >a</name >", "a"),
            ("<name><![CDATA[a<b]]]></name><pose/>", "a<b]"), ("<!-- <name>b</name> --><name>a<!-- b --></name>", "a"),
            ("<?pi?><name>\n\tZoë\n</name>", "Zoë"),
        ])
    func elements(name: String, label: String) throws {
        let numbers = "<bndbox><xmax>60.0</xmax><xmin> 20 </xmin><ymin>10</ymin><ymax>30</ymax></bndbox>"
        let xml = "<?xml version='1.0'?>\n<annotation v=''><object>\(name)\(numbers)</object></annotation>\n<!-- -->\n"
        try withAnnotatedPhotos(["a.xml": xml]) { folder in
            let photos = try BoxAnnotations(contentsOf: folder).photos
            #expect(photos.map(boxTexts) == [["\(label) 20 10 40 20"]])
        }
    }

    @Test(
        "Invalid XML is an error that names the line",
        arguments: [
            "</a>", "<a></b>", "<a", "<a b>", "<a b=c/>", "<a b='<'/>", "<a b='1'c='2'/>", "&amp;", "<a>&b;</a>",
            "<a>&#0;</a>",
            "<a>&#xD800;</a>", "<a>&amp</a>", "<!-- ", "<![CDATA[", "<![CDATA[a]]>", "<!ELEMENT a>", "< a/>", "<>", "a",
            "<?pi",
        ])
    func invalidXML(xml: String) throws {
        try withAnnotatedPhotos(["a.xml": "<!-- -->\n\(xml == "a" || xml.hasPrefix("&") ? "" : "<annotation>")\(xml)"])
        { folder in
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            #expect(error?.description.contains("line 2: ") == true, "\(String(describing: error))")
        }
    }

    @Test("A photo is found by the name of its XML file, with a warning") func photoByStem() throws {
        try withAnnotatedPhotos(["a.xml": "<annotation><filename>x.png</filename></annotation>"]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(\.url.lastPathComponent) == ["a.png"] && annotations.warnings.count == 1)
        }
    }

    @Test("Ids are compared exactly, and long ones are cut in messages") func longIDs() throws {
        // As floating-point numbers, both ids are equal.
        let categories = """
            {"id": 18446744073709551615, "name": "cat"}, {"id": 18446744073709551614, "name": "dog"}
            """
        let boxes = [("18446744073709551614", 1), ("18446744073709551615", 2)].map {
            cocoBox("20, 10, 40, 20", category: $0, id: $1)
        }
        try withAnnotatedPhotos(["set.json": cocoText(boxes.joined(separator: ","), categories: categories)]) {
            folder in
            let photos = try BoxAnnotations(contentsOf: folder).photos
            #expect(photos.map(boxTexts) == [["dog 20 10 40 20", "cat 20 10 40 20"]])
            let long = "\"" + String(repeating: "x", count: 100_000) + "\""
            try writeAnnotations(["set.json": cocoText(cocoBox("1, 2, 3, 4", category: long))], in: folder)
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            #expect(error?.description.count ?? .max < 500)
        }
    }

    @Test("A warning shows only the beginning of a long name") func longNames() throws {
        let name = String(repeating: "x", count: 100_000)
        let categories = "{\"id\": 1, \"name\": \"cat\"}, {\"id\": 2, \"name\": \"\(name)\"}"
        try withAnnotatedPhotos(["set.json": cocoText(cocoBox("1, 2, 3, 4"), categories: categories)]) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.labels.contains(name) && annotations.warnings.count == 1)
            #expect(annotations.warnings[0].count < 500)
        }
    }

    @Test("JSON that is nested deeply is an error", arguments: ["[", "{\"a\":", "[{\"image\":", "{\"images\":["])
    func nestedJSON(opening: String) throws {
        try withAnnotatedPhotos(["set.json": String(repeating: opening, count: 200_000)]) { folder in
            _ = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
        }
    }

    @Test("A folder without annotations, or with several, is an error") func unknownFolder() throws {
        try withAnnotatedPhotos([:]) { folder in
            func message() -> String {
                #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }?.description ?? ""
            }
            #expect(message().contains("without data.yaml"))
            #expect(message().hasSuffix("or a YOLO folder with data.yaml or classes.txt."))
            try writeAnnotations(["a.json": "[]", "b.json": "[]"], in: folder)
            #expect(message().contains("2 JSON files"))
            try writeAnnotations(["data.yaml": "kpt_shape: [17, 3]\nnames: [a]"], in: folder)
            #expect(message().contains("keypoints"))
            let file = folder.appending(path: "data.yaml")
            let notFolder = #expect(throws: BoxAnnotationsError.self) {
                try BoxAnnotations(contentsOf: folder, photos: file)
            }
            #expect(notFolder == .noPhotoFolder(file: file, found: "a file"))
            let missing = folder.appending(path: "missing")
            for (url, photos) in [(missing, nil), (folder, missing)] as [(URL, URL?)] {
                _ = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: url, photos: photos) }
            }
        }
    }

    @Test("A file of more than 512 MiB is an error, and is not read") func largeFile() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "set.json")
            try Data("{".utf8).write(to: url)
            // A sparse file, which takes no space.
            let handle = try FileHandle(forWritingTo: url)
            try handle.truncate(atOffset: UInt64(BoxAnnotations.byteLimit) + 1)
            try handle.close()
            let error = BoxAnnotationsError.tooLarge(
                file: url, byteCount: BoxAnnotations.byteLimit + 1, limit: BoxAnnotations.byteLimit)
            #expect(throws: error) { try BoxAnnotations(contentsOf: url) }
        }
    }
}
