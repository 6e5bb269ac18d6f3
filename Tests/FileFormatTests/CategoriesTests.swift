import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

@Suite struct CategoriesTests {
    @Test("A label belongs to the category that lists it")
    func membership() throws {
        let categories = try Categories(["computer": ["laptop", "desktop"], "animal": ["cat"]])
        #expect(categories.names == ["animal", "computer"])
        #expect(categories.category(of: "desktop") == "computer" && categories.category(of: "cat") == "animal")
        #expect(categories.category(of: "tree") == nil)
        try categories.check(labels: ["cat", "laptop", "desktop", "tree"])
    }

    @Test(
        "Ambiguous categories are rejected, in code and in a file",
        arguments: [
            ([:], "found no category, expected at least one"), (["": ["a"]], "the blank name \"\""),
            ([" \n\u{A0}": ["a"]], "the blank name \" \\u{A}\\u{A0}\""), (["x": []], "no labels"),
            (["\u{200B}": ["a"]], "the blank name \"\\u{200B}\""),
            (["x": ["a"], "y": ["a"]], "\"x\" and in \"y\""),
            (["x": ["a", "a"]], "the category \"x\" lists the label \"a\" twice"),
            (["x": ["x", "x"]], "the category \"x\" lists the label \"x\" twice"),
        ] as [([String: [String]], String)])
    func ambiguous(labels: [String: [String]], reason: String) throws {
        let error = #expect(throws: CategoriesError.self) { try Categories(labels) }
        #expect(try #require(error).description.contains(reason))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "groups.json")
            try JSONEncoder().encode(labels).write(to: url)
            let error = #expect(throws: CategoriesError.self) { try Categories(contentsOf: url, labels: []) }
            let text = try #require(error).description
            #expect(text.contains(reason) && text.hasPrefix(url.path))
        }
    }

    @Test("Labels that the model does not have, and categories named like a label of another category, are rejected")
    func check() throws {
        let unknown = #expect(throws: CategoriesError.self) {
            try Categories(["computer": ["laptop"]]).check(labels: ["desktop"])
        }
        #expect("\(try #require(unknown))".contains("\"laptop\""))
        let similar = #expect(throws: CategoriesError.self) {
            try Categories(["computer": ["Laptop"]]).check(labels: ["desktop", "laptop"])
        }
        #expect("\(try #require(similar))".contains("\"Laptop\" (similar to \"laptop\") of the category \"computer\""))
        let taken = #expect(throws: CategoriesError.self) {
            try Categories(["tree": ["oak"], "plant": ["tree"]]).check(labels: ["oak", "tree"])
        }
        #expect("\(try #require(taken))".contains("the category \"tree\" has the name of a label in \"plant\""))
        // A category may have the name of a label that it contains.
        for labels in [["oak"], ["oak", "tree"]] {
            let categories = try Categories(["tree": labels])
            try categories.check(labels: ["oak", "tree"])
            #expect(categories.category(of: "tree") == "tree")
        }
    }

    @Test(
        "A file must not name a category like a label that it does not list, or like the text for rejected photos",
        arguments: [
            (
                #"{"Circles": ["Other"]}"#,
                "the category \"Circles\" has the name of the label \"Circles\", which it does not list. Rename the category, or put"
            ),
            (#"{"None of these": ["Other"]}"#, "the category \"None of these\" has a reserved name"),
            (#"{"Circles": ["Other", "Circles"]}"#, nil), (#"{"mine": ["Other"]}"#, nil),
            (#"{"none": ["Other"]}"#, nil),
        ] as [(String, String?)])
    func misleadingNames(text: String, reason: String?) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "groups.json")
            try Data(text.utf8).write(to: url)
            do {
                _ = try Categories(contentsOf: url, labels: ["Other", "Circles"], personalLabels: ["mine"])
                #expect(reason == nil)
            } catch {
                #expect("\(error)".contains(try #require(reason)), "\(error)")
            }
        }
    }

    @Test("A duplicate category is rejected, because JSON decoders drop the first one")
    func twice() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "groups.json")
            try Data(#" {"a": ["b"], "a": ["c"]}"#.utf8).write(to: url)
            let error = #expect(throws: CategoriesError.self) { try Categories(contentsOf: url, labels: []) }
            #expect(
                "\(try #require(error))".hasSuffix("the category \"a\" appears twice. Put its labels into one list."))
            try Data("\n{\"a\": [\"b\\u0301\", \"c\"], \"d\": [\"e\"]}\n".utf8).write(to: url)
            #expect(
                try Categories(contentsOf: url, labels: ["b\u{301}", "c", "e"]).labels == [
                    "a": ["b\u{301}", "c"], "d": ["e"],
                ])
        }
    }

    @Test("A file may start with a byte order mark") func byteOrderMark() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "groups.json")
            try Data("\u{FEFF}{\"a\": [\"b\"]}".utf8).write(to: url)
            #expect(try Categories(contentsOf: url, labels: ["b"]).labels == ["a": ["b"]])
        }
    }

    @Test(
        "Files without categories are rejected with an example",
        arguments: ["", "[]", "{\"a\": 1}", "{\"a\": [1]}", "{\"a\": [\"b\"]"])
    func foreign(text: String) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "groups.json")
            try Data(text.utf8).write(to: url)
            let error = #expect(throws: CategoriesError.self) { try Categories(contentsOf: url, labels: []) }
            #expect("\(try #require(error))".contains("{\"computer\": [\"laptop\", \"desktop\"]}"))
            #expect(throws: CategoriesError.self) {
                try Categories(contentsOf: folder.appending(path: "none.json"), labels: [])
            }
        }
    }

    @Test(
        "An error about annotations as categories names their format",
        arguments: [
            #"{"images": [], "annotations": [], "categories": []}"#,
            #"{"info": {}, "images": [{"id": 1}], "annotations": [], "categories": []}"#,
        ])
    func annotations(text: String) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "boxes.json")
            try Data(text.utf8).write(to: url)
            let error = #expect(throws: CategoriesError.self) { try Categories(contentsOf: url, labels: ["a"]) }
            #expect(
                "\(try #require(error))".contains(
                    "boxes.json: the file has bounding boxes in the COCO format, expected"))
        }
    }

    @Test("A file that is too large for categories is rejected") func large() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "photos.tar")
            try Data().write(to: url)
            #expect(truncate(url.path, (16 << 20) + 1) == 0)
            let error = #expect(throws: CategoriesError.self) { try Categories(contentsOf: url, labels: []) }
            #expect("\(try #require(error))".contains("photos.tar: the file has more than 16777216 bytes"))
        }
    }

    @Test("Empty categories of older versions are read as no categories, and blank names are kept")
    func olderFiles() throws {
        try withChanged(sampleModel(), metadata: ["imprint.categories": "{}"]) { url in
            let model = try ModelFile(contentsOf: url)
            #expect(model.categories == nil)
        }
        let label = try #require(sampleModel().labels.first)
        try withChanged(sampleModel(), metadata: ["imprint.categories": json([" ": [label]])]) { url in
            let model = try ModelFile(contentsOf: url)
            #expect(model.categories?.labels == [" ": [label]])
        }
        try withChanged(sampleModel(), metadata: ["imprint.categories": json([" ": [String]()])]) { url in
            _ = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
        }
    }

    @Test("Categories are stored in a model file and kept by calibration")
    func stored() throws {
        try withTemporaryFolder { folder in
            let categories = try Categories(["device": ["laptop", "desktop"]])
            let network = try Network.logonet(labels: 3, inputSize: 16, width: 0.1)
            let model = ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["laptop", "desktop", "cat"],
                preprocessing: Preprocessing(width: 16, height: 16), categories: categories)
            let url = folder.appending(path: "m.imprint")
            try model.write(to: url)
            var read = try ModelFile(contentsOf: url)
            #expect(read.categories == categories)
            #expect(try read.calibrated(2)?.categories == categories)
            read.categories = nil
            let plain = folder.appending(path: "plain.imprint")
            try read.write(to: plain)
            #expect(try ModelFile(contentsOf: plain).categories == nil)
            read.categories = try Categories(["device": ["phone"]])
            let error = #expect(throws: ModelFileError.self) { try read.write(to: plain) }
            #expect("\(try #require(error))".contains("imprint.categories"))
        }
    }
}
