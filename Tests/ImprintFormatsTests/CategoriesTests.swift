import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

@Suite struct CategoriesTests {
    @Test("Each label is in the category that lists it")
    func membership() throws {
        let categories = try Categories(["computer": ["laptop", "desktop"], "animal": ["cat"]])
        #expect(categories.names == ["animal", "computer"])
        #expect(categories.category(of: "desktop") == "computer" && categories.category(of: "cat") == "animal")
        #expect(categories.category(of: "tree") == nil)
        try categories.check(labels: ["cat", "laptop", "desktop", "tree"])
    }

    @Test(
        "What is not unequivocal is refused, in code, in a file and in a weights file",
        arguments: [
            ([:], "found no category, expected at least one"), (["": ["a"]], "no name but \"\""),
            ([" \n\u{A0}": ["a"]], "no name but \" \\n"), (["x": []], "no labels"),
            (["x": ["a"], "y": ["a"]], "\"x\" and in \"y\""),
            (["x": ["a", "a"]], "\"x\" and in \"x\""),
        ] as [([String: [String]], String)])
    func equivocal(labels: [String: [String]], reason: String) throws {
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

    @Test("Labels that a model lacks and names that it has are refused")
    func check() throws {
        let unknown = #expect(throws: CategoriesError.self) {
            try Categories(["computer": ["laptop"]]).check(labels: ["desktop"])
        }
        #expect("\(try #require(unknown))".contains("\"laptop\""))
        let taken = #expect(throws: CategoriesError.self) {
            try Categories(["tree": ["oak"], "plant": ["tree"]]).check(labels: ["oak", "tree"])
        }
        #expect("\(try #require(taken))".contains("the category \"tree\" is called as a label of \"plant\""))
        // A category may be called as a label, which is in it then.
        for labels in [["oak"], ["oak", "tree"]] {
            let categories = try Categories(["tree": labels])
            try categories.check(labels: ["oak", "tree"])
            #expect(categories.category(of: "tree") == "tree")
        }
    }

    @Test("A category that is there twice is refused, for a reader of JSON would forget the first")
    func twice() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "groups.json")
            try Data(#" {"a": ["b"], "a": ["c"]}"#.utf8).write(to: url)
            let error = #expect(throws: CategoriesError.self) { try Categories(contentsOf: url, labels: []) }
            #expect(
                "\(try #require(error))".hasSuffix("the category \"a\" is there twice; put its labels into one list"))
            try Data("\n{\"a\": [\"b\\u0301\", \"c\"], \"d\": [\"e\"]}\n".utf8).write(to: url)
            #expect(
                try Categories(contentsOf: url, labels: ["b\u{301}", "c", "e"]).labels == [
                    "a": ["b\u{301}", "c"], "d": ["e"],
                ])
        }
    }

    @Test("Files that hold none", arguments: ["", "[]", "{\"a\": 1}", "{\"a\": [1]}", "{\"a\": [\"b\"]"])
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

    @Test("Groups that are none, as they were written once, are read as none, and blank names as they are")
    func formerly() throws {
        try withChanged(sampleWeights(), metadata: ["imprint.categories": "{}"]) { url in
            let weights = try ModelFile(contentsOf: url)
            #expect(weights.categories == nil)
        }
        let label = try #require(sampleWeights().labels.first)
        try withChanged(sampleWeights(), metadata: ["imprint.categories": json([" ": [label]])]) { url in
            let weights = try ModelFile(contentsOf: url)
            #expect(weights.categories?.labels == [" ": [label]])
        }
        try withChanged(sampleWeights(), metadata: ["imprint.categories": json([" ": [String]()])]) { url in
            _ = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
        }
    }

    @Test("They travel in a weights file, and with what is made of it")
    func travel() throws {
        try withTemporaryFolder { folder in
            let categories = try Categories(["device": ["laptop", "desktop"]])
            let network = try Network.logonet(labels: 3, inputSize: 16, width: 0.1)
            let weights = ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["laptop", "desktop", "cat"],
                preprocessing: Preprocessing(width: 16, height: 16), categories: categories)
            let url = folder.appending(path: "m.imprint")
            try weights.write(to: url)
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
