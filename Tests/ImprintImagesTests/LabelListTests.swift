import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@Suite("Label list") struct LabelListTests {
    /// Creates the photos a.jpg, b.jpg, "c, d.jpg" and sub/e.jpg and a list, and calls `body` with the list.
    private func withList<Result>(_ content: Data, _ body: (URL) throws -> Result) throws -> Result {
        try withTemporaryFolder { root in
            try FileManager.default.createDirectory(at: root.appending(path: "sub"), withIntermediateDirectories: true)
            for photo in ["a.jpg", "b.jpg", "c, d.jpg", "sub/e.jpg"] {
                try Data(photo.utf8).write(to: root.appending(path: photo))
            }
            let list = root.appending(path: "photos.list")
            try content.write(to: list)
            return try body(list)
        }
    }

    /// Returns each photo of a list with its labels, as in "a.jpg: cat dog".
    private func photos(_ text: String) throws -> [String] {
        try withList(Data(text.utf8)) { url in
            let list = try LabelList(at: url, minimumLabels: 0)
            return list.items.map { item in
                "\(list.identifier(of: item)): " + item.labels.map { list.labels[$0] }.joined(separator: " ")
            }
        }
    }

    @Test(
        "Lists give photos with their labels",
        arguments: [
            ("photo,label\na.jpg,cat\nb.jpg,dog\n", ["a.jpg: cat", "b.jpg: dog"]),
            ("\u{FEFF}photo,label\r\nb.jpg,dog\r\na.jpg,cat", ["a.jpg: cat", "b.jpg: dog"]),
            ("photo,label\ra.jpg,cat\rb.jpg,dog\r", ["a.jpg: cat", "b.jpg: dog"]),
            ("Label , PHOTO\ncat,a.jpg\n\n  \ndog,b.jpg\n", ["a.jpg: cat", "b.jpg: dog"]),
            ("photo,label\n\"c, d.jpg\",\"say \"\"hi\"\"\"\nsub/e.jpg,x\n", ["c, d.jpg: say \"hi\"", "sub/e.jpg: x"]),
            ("photo,label\na.jpg,\"two\nlines\"\nb.jpg,dog", ["b.jpg: dog", "a.jpg: two\nlines"]),
            ("photo,label\na.jpg,cat; dog\nb.jpg,dog\n", ["a.jpg: cat dog", "b.jpg: dog"]),
            ("photo,labels\na.jpg,\nb.jpg,dog;cat;dog\n", ["a.jpg: ", "b.jpg: cat dog"]),
            ("photo,label\na.jpg,cat\n./a.jpg,cat\nsub/../a.jpg,cat\n", ["a.jpg: cat"]),
            ("photo,label\na.jpg,日本\nb.jpg,é\n", ["b.jpg: é", "a.jpg: 日本"]),
            (
                "[{\"photo\": \"a.jpg\", \"labels\": [\"cat\", \"d]}\\\"og\"]},\n {\"photo\":\"b.jpg\",\"label\":\"cat\"}]",
                ["b.jpg: cat", "a.jpg: cat d]}\"og"]
            ),
            (
                "{\"photo\": \"a.jpg\", \"labels\": []}\r\n\r\n{\"labels\":[\"x;y\"],\"photo\":\"b.jpg\"}\r\n",
                ["a.jpg: ", "b.jpg: x;y"]
            ),
        ])
    func reads(text: String, expected: [String]) throws { #expect(try photos(text) == expected) }

    @Test("Labels keep invisible characters at their ends", arguments: ["\u{200B}", "\u{FEFF}", "\u{200D}", "\u{AD}"])
    func invisible(character: String) throws {
        let expected = ["a.jpg: cat", "b.jpg: cat\(character)"]
        #expect(try photos("photo,label\na.jpg, cat\nb.jpg,cat\(character) \n") == expected)
        let lines =
            "{\"photo\": \"a.jpg\", \"label\": \"cat\"}\n{\"photo\": \"b.jpg\", \"label\": \"cat\(character) \"}"
        #expect(try photos(lines) == expected)
    }

    @Test(
        "Errors name the line and the problem",
        arguments: [
            ("a.jpg,cat\nb.jpg,dog\n", 1, .noHeader(found: "a.jpg,cat")),
            ("photo;label\na.jpg;cat\n", 1, .noHeader(found: "photo;label")),
            ("photo,label,width\na.jpg,cat,3\n", 1, .unknownColumn("width", missing: nil)),
            ("path,label\na.jpg,cat\n", 1, .unknownColumn("path", missing: "photo")),
            ("photo,class,label\na.jpg,3,cat\n", 1, .unknownColumn("class", missing: nil)),
            ("photo,class\na.jpg,cat\n", 1, .unknownColumn("class", missing: "label or labels")),
            ("photo,label,label\n", 1, .wrongColumns(found: ["label", "label"], expected: "label or labels")),
            ("photo,label,labels\n", 1, .wrongColumns(found: ["label", "labels"], expected: "label or labels")),
            ("photo,photo\n", 1, .wrongColumns(found: ["photo", "photo"], expected: "photo")),
            ("label,labels\n", 1, .wrongColumns(found: [], expected: "photo")),
            ("photo,label\n\na.jpg,cat,dog\n", 3, .fieldCount(found: 3, expected: 2)),
            ("photo,label\na.jpg\n", 2, .fieldCount(found: 1, expected: 2)),
            ("photo,label\na.jpg,\"cat\n", 2, .invalidQuotes),
            ("photo,label\na.jpg,\"cat\" x\n", 2, .invalidQuotes),
            ("photo,label\n ,cat\n", 2, .emptyPath),
            ("photo,label\na.jpg,\n", 2, .emptyLabel(photo: "a.jpg")),
            ("photo,labels\na.jpg,cat;\n", 2, .emptyLabel(photo: "a.jpg")),
            ("photo,label\na.jpg,\u{2060}\n", 2, .emptyLabel(photo: "a.jpg")),
            ("{\"photo\": \"a.jpg\", \"label\": \"\u{2060}\"}\n", 1, .emptyLabel(photo: "a.jpg")),
            ("photo,label\na.jpg,\"x\ny\"\nnone.jpg,cat\n", 4, .missingPhoto("none.jpg")),
            ("photo,label\r\nsub,cat\r\n", 2, .missingPhoto("sub")),
            ("photo,label\nhttps://example.org/a.jpg,cat\n", 2, .url("https://example.org/a.jpg")),
            (
                "{\"images\": [{\"id\": 1}],\n\"categories\": [], \"annotations\": [{\"bbox\": []}]}", nil,
                .hasBoxes(format: "COCO")
            ),
            ("{\"info\": {},\n\"annotations\": [],\n\"images\": []\n}\n", nil, .hasBoxes(format: "COCO")),
            (
                "[{\"image\": \"a.jpg\", \"annotations\": [{\"label\": \"x\"}]}]", nil,
                .hasBoxes(format: "Create ML")
            ),
            ("[{\"annotation\": [], \"imagefilename\": \"a.jpg\"}]", nil, .hasBoxes(format: "Create ML")),
            ("<annotation>\n<folder/></annotation>", nil, .hasBoxes(format: "Pascal VOC")),
            ("<?xml version=\"1.0\"?>\n<annotation/>", nil, .hasBoxes(format: "Pascal VOC")),
            ("<?xml version=\"1.0\"?>\n<plist/>", nil, .otherKind(found: "XML")),
            ("<!doctype html><html></html>", nil, .otherKind(found: "a web page (HTML)")),
            ("photo,label\na.jpg,cat\nb.jpg,cat\n./a.jpg,dog\n", 4, .differentLabels(photo: "./a.jpg", line: 2)),
            ("photo,label\n", nil, .noPhotos), ("", nil, .otherKind(found: "empty")), ("[]", nil, .noPhotos),
            ("photo,label\na.jpg,cat\n", nil, .tooFewLabels(found: ["cat"], minimum: 2)),
            ("photo,labels\na.jpg,cat\nb.jpg,cat\n", nil, .tooFewLabels(found: ["cat"], minimum: 2)),
            ("photo,labels\na.jpg,\nb.jpg,\n", nil, .tooFewLabels(found: [], minimum: 1)),
            (
                "[{\"photo\": \"a.jpg\", \"label\": \"x\"}\n,\n{\"photo\": 3}]", 3,
                .invalidJSON(reason: "\"photo\" is missing or not a string")
            ),
            (
                "{\"photo\": \"a.jpg\", \"labels\": \"cat\"}", 1,
                .invalidJSON(reason: "\"labels\" is not a list of strings")
            ),
            ("{\"photo\": \"a.jpg\", \"label\": 3}", 1, .invalidJSON(reason: "\"label\" is not a string")),
            ("{\"photo\": \"a.jpg\"}", 1, .invalidJSON(reason: "\"label\" and \"labels\" are missing")),
            (
                "{\"photo\": \"a.jpg\", \"label\": \"cat\", \"labels\": []}", 1,
                .invalidJSON(reason: "found both \"label\" and \"labels\"")
            ),
            (
                "{\"photo\": \"a.jpg\", \"label\": \"cat\"}\n{\"photo\"", 2,
                .invalidJSON(reason: "the entry is not a JSON object")
            ),
            ("{\"photo\": \"a.jpg\", \"label\": \"cat\", \"size\": 3}", 1, .unknownColumn("size", missing: nil)),
            ("{\"path\": \"a.jpg\", \"label\": \"cat\"}", 1, .unknownColumn("path", missing: "photo")),
            ("{\"photo\": \"a.jpg\", \"class\": \"cat\"}", 1, .unknownColumn("class", missing: "label or labels")),
            (
                "[\n{\"photo\": \"a.jpg\", \"label\": \"cat\"} {", 2,
                .invalidJSON(reason: "the array contains something other than objects separated by commas")
            ),
            ("[{\"photo\": \"a.jpg\", \"label\": \"cat\"}", 1, .invalidJSON(reason: "the array does not end")),
        ] as [(String, Int?, LabelListError.Problem)])
    func problems(text: String, line: Int?, problem: LabelListError.Problem) throws {
        try withList(Data(text.utf8)) { url in
            let error = LabelListError(file: url, line: line, problem: problem)
            #expect(throws: error) { try LabelList(at: url) }
            #expect("\(error)".hasPrefix(url.path(percentEncoded: false)))
            if let line { #expect("\(error)".contains("line \(line)")) }
        }
    }

    @Test("Photos whose names differ only in their Unicode normalization are different photos") func normalization()
        throws
    {
        try withTemporaryFolder { root in
            let names = ["caf\u{E9}.jpg", "cafe\u{301}.jpg"]
            for name in names { try Data(name.utf8).write(to: root.appending(path: name)) }
            // Some file systems normalize names and cannot hold both.
            guard try FileManager.default.contentsOfDirectory(atPath: root.path).count == 2 else { return }
            let list = root.appending(path: "photos.csv")
            try Data("photo,label\n\(names[0]),cat\n\(names[1]),dog\n".utf8).write(to: list)
            let photos = try LabelList(at: list)
            #expect(photos.items.map { photos.labels[$0.label] } == ["cat", "dog"])
            #expect(photos.items.map { Array(photos.identifier(of: $0).utf8) } == names.map { Array($0.utf8) })
        }
    }

    @Test(
        "A photo without labels, or with several, makes one label enough",
        arguments: ["photo,labels\na.jpg,cat\nb.jpg,\n"])
    func oneLabel(text: String) throws {
        try withList(Data(text.utf8)) { url in
            let list = try LabelList(at: url)
            #expect(list.labels == ["cat"] && list.items.map(\.labels) == [[], [0]])
        }
    }

    @Test("An error message contains the columns or labels of the list and those that are required") func messages() {
        func text(_ problem: LabelListError.Problem) -> String {
            "\(LabelListError(file: URL(filePath: "/l.csv"), problem: problem))"
        }
        #expect(
            text(.tooFewLabels(found: ["cat"], minimum: 2)).hasPrefix(
                "/l.csv: found 1 label (cat), expected at least 2."))
        #expect(text(.tooFewLabels(found: [], minimum: 1)).hasPrefix("/l.csv: found 0 labels, expected at least 1."))
        #expect(
            text(.wrongColumns(found: ["label", "labels"], expected: "label or labels")).hasPrefix(
                "/l.csv: the header has the columns label and labels. Expected exactly one column label or labels."))
        #expect(
            text(.wrongColumns(found: [], expected: "photo")).hasPrefix(
                "/l.csv: the header has no column photo. Expected exactly one."))
        #expect(
            text(.unknownColumn("path", missing: "photo"))
                == "/l.csv: \"path\" is not a known column, and the column photo is missing. Expected only photo, and label or labels. "
                + "Rename the column of paths to photo and the column of labels to label, and remove the other columns."
        )
        #expect(text(.unknownColumn("\u{FEFF}photo", missing: "photo")).hasPrefix(#"/l.csv: "\u{FEFF}photo" is not"#))
        #expect(
            text(.unknownColumn("width", missing: nil)).hasSuffix(
                "Expected only photo, and label or labels. Remove it."))
        #expect(text(.noHeader(found: "path,class")).hasSuffix("Add this line, or replace the header by it."))
    }

    @Test("A file that is not text is an error", arguments: [[0x70, 0xFF, 0x2C], [0x70, 0, 0x2C]] as [[UInt8]])
    func notText(bytes: [UInt8]) throws {
        try withList(Data(bytes)) { url in
            _ = #expect(throws: LabelListError(file: url, problem: .notText)) { try LabelList(at: url) }
        }
    }

    @Test(
        "A file of another kind is an error that states its kind",
        arguments: [
            ([0xFF, 0xD8, 0xFF, 0xE0], "a JPEG image"), (Array("PK\u{3}\u{4}".utf8), "a ZIP archive"),
            (onnxStart, "an ONNX model"),
            ([0x40, 0, 0, 0, 0, 0, 0, 0] + Array("{\"__metadata__\"".utf8), "a model file (safetensors)"),
            (
                [0x40, 0, 0, 0, 0, 0, 0, 0] + Array("{\"__metadata__\":{\"imprint.checkpoint\":\"3\"".utf8),
                "the checkpoint of a training run"
            ),
        ] as [([UInt8], String)])
    func otherKinds(bytes: [UInt8], found: String) throws {
        try withList(Data(bytes)) { url in
            let error = LabelListError(file: url, problem: .otherKind(found: found))
            #expect(throws: error) { try labelledPhotos(at: url, minimumLabels: 2) }
            #expect("\(error)".contains("the file is \(found). Expected a folder"))
        }
    }

    @Test("A missing path, a pipe or a device is an error that names the sources of labelled photos") func noSource()
        throws
    {
        try withTemporaryFolder { folder in
            let (missing, pipe) = (folder.appending(path: "nope.csv"), folder.appending(path: "pipe"))
            try #require(mkfifo(pipe.path, 0o600) == 0)
            let expected: [(URL, LabelListError.Problem)] = [
                (missing, .missing), (pipe, .otherKind(found: "a pipe")),
                (URL(filePath: "/dev/null"), .otherKind(found: "a device")),
            ]
            for (url, problem) in expected {
                let error = LabelListError(file: url, problem: problem)
                #expect(throws: error) { try labelledPhotos(at: url, minimumLabels: 2) }
                #expect("\(error)".contains("one sub-folder of photos per label, or a CSV, JSON or JSON Lines list"))
            }
        }
    }

    @Test(
        "A YAML file is an error that states its kind",
        arguments: [
            ("train: images/train\nnames: [cat]\n", .hasBoxes(format: "YOLO")),
            ("path: data\nnames:\n  0: cat\n", .hasBoxes(format: "YOLO")),
            ("epochs: 3\nmodel: lenet\n", .otherKind(found: "YAML")), ("[a, b]", .otherKind(found: "YAML")),
        ] as [(String, LabelListError.Problem)])
    func yaml(text: String, problem: LabelListError.Problem) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "cfg.yaml")
            try Data(text.utf8).write(to: file)
            #expect(throws: LabelListError(file: file, problem: problem)) { try LabelList(at: file) }
        }
    }

    @Test("Absolute paths work, and the order of the lines does not change the digest") func digest() throws {
        try withList(Data()) { url in
            let folder = url.deletingLastPathComponent().path(percentEncoded: false)
            func list(_ lines: String...) throws -> LabelList {
                try Data((["photo,label"] + lines).joined(separator: "\n").utf8).write(to: url)
                return try LabelList(at: url)
            }
            let first = try list("a.jpg,cat", "b.jpg,dog")
            let second = try list("b.jpg,dog", "a.jpg,cat")
            #expect(first.digest == second.digest && first.items == second.items)
            #expect(try list("a.jpg,dog", "b.jpg,cat").digest != first.digest)
            let absolute = try list("\(folder)/a.jpg,cat", "b.jpg,dog")
            #expect(absolute.items.map { FileManager.default.fileExists(atPath: $0.url.path) } == [true, true])
        }
    }

    @Test("Photos in memory keep their order, labels and identifiers") func memory() throws {
        var source = InMemorySource(labels: ["b", "a"])
        let image = RasterImage(width: 2, height: 1, filledWith: 7)
        try source.append(image, labels: ["a"])
        try source.append(Data([1, 2]), labels: ["a", "b"], identifier: "x y/1.jpg")
        #expect(source.items.map(\.labels) == [[1], [0, 1]])
        #expect(source.items.map(source.identifier) == ["1", "x y/1.jpg"])
        #expect(source.isMultiLabel)
        var other = InMemorySource(labels: ["b", "a"])
        try other.append(image, labels: ["b"])
        try other.append(Data([1, 2]), labels: ["a", "b"], identifier: "x y/1.jpg")
        #expect(other.digest != source.digest)
    }

    @Test("The digest of photos in memory covers their identifiers, contents and labels") func inMemoryDigest() throws {
        var source = InMemorySource(labels: ["a", "b"])
        #expect(source.digest == SHA256.hexadecimal(of: []))
        try source.append(Data([1, 2]), labels: ["b", "a"], identifier: "x")
        try source.append(Data([3]), labels: [])
        let lines = "x\t\(SHA256.hexadecimal(of: [1, 2]))\ta\tb\n2\t\(SHA256.hexadecimal(of: [3]))\n"
        #expect(source.digest == SHA256.hexadecimal(of: Array(lines.utf8)))
    }

    @Test(
        "A photo in memory with an unknown label, or with the identifier of another photo, is not added",
        arguments: [
            ("b", "y", "the label \"b\" of the photo \"y\""), ("a", "x", "two photos with the identifier \"x\""),
        ])
    func rejected(label: String, identifier: String, found: String) throws {
        var source = InMemorySource(labels: ["a"])
        try source.append(Data([1]), labels: ["a"], identifier: "x")
        let digest = source.digest
        let error = #expect(throws: ImageError.self) {
            try source.append(Data([2]), labels: [label], identifier: identifier)
        }
        guard case .invalidSource("photos in memory", found, _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(source.items.count == 1 && source.digest == digest)
        try source.append(Data([2]), labels: ["a"])
        #expect(source.items.map(source.identifier) == ["x", "2"])
    }

    @Test("A subset of a list has the digest and the paths of a list of its photos, and all labels") func subset()
        throws
    {
        try withList(Data("photo,label\na.jpg,cat\nb.jpg,dog\nsub/e.jpg,dog\n".utf8)) { url in
            let all = try LabelList(at: url)
            let subset = TrainingSubset(all, items: [all.items[0], all.items[2]])
            let one = TrainingSubset(all, items: [all.items[0]])
            try Data("photo,label\na.jpg,cat\nsub/e.jpg,dog\n".utf8).write(to: url)
            let list = try LabelList(at: url)
            #expect(subset.digest == list.digest && subset.items == list.items)
            #expect(subset.items.map(subset.identifier) == ["a.jpg", "sub/e.jpg"] && subset.name == list.name)
            #expect(one.labels == ["cat", "dog"] && one.digest != subset.digest)
        }
    }

    @Test("The split of photos with several labels holds out photos of every label and of none") func split() throws {
        var source = InMemorySource(labels: ["a", "b"])
        for index in 0..<40 {
            let labels = [[], ["a"], ["b"], ["a", "b"]][index % 4]
            try source.append(RasterImage(width: 1, height: 1, filledWith: UInt8(index)), labels: labels)
        }
        let (training, validation) = source.split(.fraction(0.25), seed: 1)
        #expect(training.count + validation.count == 40)
        for label in [0, 1] { #expect((2...5).contains(validation.count { $0.labels.contains(label) })) }
        #expect(validation.contains { $0.labels.isEmpty })
    }
}
