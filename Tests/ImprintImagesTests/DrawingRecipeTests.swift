import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

private let recipeFile = packageFolder.appending(path: "datasets/two-circles.json")

private func recipe(replacing text: String, with other: String) throws -> DrawingRecipe {
    let json = try String(contentsOf: recipeFile, encoding: .utf8)
    try #require(json.contains(text), "the recipe has no \(text) to replace")
    return try DrawingRecipe(Data(json.replacing(text, with: other).utf8), file: recipeFile)
}

/// Returns the contents of the JPEG files below a folder, by relative path.
private func contents(of folder: URL) throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where path.hasSuffix(".jpg") {
        contents[path] = try Data(contentsOf: folder.appending(path: path))
    }
    return contents
}

@Suite("Recipes") struct DrawingRecipeTests {
    @Test("The recipe two-circles of the repository has its labels and each kind of logo once")
    func repositoryRecipe() throws {
        let recipe = try DrawingRecipe(contentsOf: recipeFile)
        #expect(recipe.name == "two-circles")
        #expect(recipe.labels.map(\.name) == ["TwoCircles", "Other"])
        #expect(recipe.labels[0].logos.map(\.kind) == [.twoCircles])
        let compositing = try #require(recipe.compositing)
        let drawn = recipe.labels.flatMap { $0.logos.map(\.kind) }
        let composited = (compositing.logos + compositing.hardNegatives).map(\.kind)
        #expect(Set(drawn).count == drawn.count && Set(composited).count == composited.count)
        // Another recipe contains the random logos.
        #expect(Set(drawn + composited).union([.invented]) == Set(LogoKind.allCases))
    }

    @Test("Encoding and decoding give the same recipe") func roundTrip() throws {
        let recipe = try DrawingRecipe(contentsOf: recipeFile)
        #expect(try JSONDecoder().decode(DrawingRecipe.self, from: JSONEncoder().encode(recipe)) == recipe)
    }

    @Test(
        "An invalid field is an error with its path, the value found and the expected value",
        arguments: [
            ("\"format\": 1", "\"format\": 2", "format", "2"),
            ("\"size\": 128", "\"size\": 4000", "size", "4000"),
            ("\"size\": 128", "\"size\": \"big\"", "size", "\"big\""),
            ("\"size\": 128", "\"side\": 128", "size", "missing"),
            ("\"name\": \"Other\"", "\"name\": \"TwoCircles\"", "labels", "a list with a duplicate name"),
            ("\"name\": \"Other\"", "\"name\": \"../x\"", "labels[1].name", "\"../x\""),
            ("\"kind\": \"ovals\"", "\"kind\": \"ufo\"", "labels[1].marks[7].kind", "\"ufo\""),
            (
                "\"kind\": \"twoCircles\", \"weight\": 1", "\"kind\": \"ring\", \"weight\": 0",
                "labels[0].marks[0].weight", "0"
            ),
            ("[{ \"kind\": \"twoCircles\", \"weight\": 1 }]", "[]", "labels[0].marks", "none"),
            (
                "\"kind\": \"touching\", \"weight\": 3", "\"kind\": \"touching\", \"weight\": -3",
                "compositing.nearMisses[8].weight", "-3"
            ),
            ("[{ \"kind\": \"looseTwoCircles\", \"weight\": 1 }]", "[]", "compositing.marks", "none"),
            (
                "\"compositing\": {", "\"compositing\": { \"effects\": [\"tilt\", \"colors\"],",
                "compositing.effects[1]",
                "\"colors\""
            ),
            (
                "\"compositing\": {", "\"compositing\": { \"effects\": \"tilt\",", "compositing.effects", "\"tilt\""
            ),
            ("\"span\": [", "\"span\": [3, ", "ranges.span", nil),
            ("\"rotationDegrees\": [-", "\"rotationDegrees\": [-9", "ranges.rotationDegrees", nil),
            ("\"plate\": 0.", "\"plate\": 7.", "shares.plate", nil),
            ("\"worn\": 0.", "\"worn\": 1.", "shares.worn", nil),
            ("\"count\": 5000", "\"count\": 1", "count", "1"),
        ] as [(String, String, String, String?)])
    func invalidField(text: String, other: String, field: String, found: String?) throws {
        let error = try #require(throws: DrawingError.self) { try recipe(replacing: text, with: other) }
        guard case .invalidField(let file, field, let value, let expected) = error else {
            Issue.record("unexpected: \(error)")
            return
        }
        #expect(file == recipeFile && !expected.isEmpty)
        if let found { #expect(value == found) }
        for part in ["two-circles.json", field, value, expected] { #expect("\(error)".contains(part)) }
    }

    @Test("A list instead of a recipe, or invalid JSON, is an error", arguments: ["[]", "hello", ""])
    func notARecipe(text: String) {
        #expect(throws: DrawingError.notAnObject(file: recipeFile)) {
            try DrawingRecipe(Data(text.utf8), file: recipeFile)
        }
    }

    @Test(
        "Bounding boxes instead of a recipe are an error that names their format",
        arguments: [
            ("{\"images\": [], \"annotations\": [], \"categories\": []}", "COCO"),
            ("[{\"image\": \"a.jpg\", \"annotations\": []}]", "Create ML"),
            ("[{\"imagefilename\": \"a.jpg\", \"annotation\": []}]", "Create ML"),
        ])
    func boxes(text: String, format: String) {
        let error = DrawingError.hasBoxes(file: recipeFile, format: format)
        #expect(throws: error) { try DrawingRecipe(Data(text.utf8), file: recipeFile) }
        #expect("\(error)".contains("the file has bounding boxes in the \(format) format. Expected a recipe."))
    }

    @Test(
        "A recipe that is not a regular file is an error that states its kind",
        .timeLimit(.minutes(10)), arguments: [("/dev/zero", "a device"), ("/tmp", "a folder"), ("pipe", "a pipe")])
    func otherKinds(path: String, kind: String) throws {
        try withTemporaryFolder { folder in
            let file = path.hasPrefix("/") ? URL(filePath: path) : folder.appending(path: path)
            if kind == "a pipe" { try #require(mkfifo(file.path, 0o600) == 0) }
            let error = DrawingError.unreadable(file: file, reason: "it is \(kind), expected a regular file")
            #expect(throws: error) { try DrawingRecipe(contentsOf: file) }
        }
    }

    @Test(
        "A name is looked up in datasets/ of the parent folders or of an installation; a path is used unchanged",
        arguments: ["datasets", "share/imprint/datasets"])
    func lookUp(path: String) throws {
        try withTemporaryFolder { folder in
            let datasets = folder.appending(path: path)
            let deep = folder.appending(path: "a/b")
            for folder in [datasets, deep] {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            }
            try FileManager.default.copyItem(at: recipeFile, to: datasets.appending(path: "mine.json"))
            let expected = try DrawingRecipe(contentsOf: recipeFile)
            #expect(try DrawingRecipe.load(named: "mine", from: [deep]) == expected)
            #expect(try DrawingRecipe.load(named: recipeFile.path, from: []) == expected)

            let error = #expect(throws: DrawingError.self) { try DrawingRecipe.load(named: "yours", from: [deep]) }
            guard case .noSuchRecipe("yours", let available, let folders) = error else {
                Issue.record("unexpected: \(String(describing: error))")
                return
            }
            #expect(available.contains("mine"))
            #expect(folders.map(\.path).contains(datasets.path))
            // Searched folders without recipes are not listed.
            #expect(folders.allSatisfy { FileManager.default.fileExists(atPath: $0.path) })
        }
    }

    @Test("The error about an unknown recipe lists the recipes, or states that there are none")
    func unknownRecipe() {
        let folders = [URL(filePath: "/data/datasets")]
        let some = DrawingError.noSuchRecipe(name: "fruits", available: ["plain", "shapes"], folders: folders)
        #expect(
            "\(some)" == "There is no recipe \"fruits\". Recipes in /data/datasets: plain, shapes. "
                + "Use one of these names, or the path of a .json file.")
        let none = DrawingError.noSuchRecipe(name: "fruits", available: [], folders: [])
        #expect("\(none)".hasSuffix("has a folder named datasets with recipes. Use the path of a .json file."))
    }

    @Test(
        "Images are distributed evenly over the labels", arguments: [(7, [4, 3]), (2, [1, 1]), (2000, [1000, 1000])])
    func balance(count: Int, expected: [Int]) throws {
        let recipe = try DrawingRecipe(contentsOf: recipeFile)
        #expect(recipe.labels.indices.map { recipe.imageCount(ofLabel: $0, count: count) } == expected)
    }

    @Test("A drawn folder is identical for any number of threads and on every run") func folder() throws {
        let recipe = try recipe(replacing: "\"size\": 128", with: "\"size\": 24")
        try withTemporaryFolder { folder in
            let one = folder.appending(path: "one")
            let three = folder.appending(path: "three")
            var reported: [Int] = []
            try recipe.write(to: one, count: 71, seed: 5, workers: Workers(1), onProgress: { reported.append($0) })
            try recipe.write(to: three, count: 71, seed: 5, workers: Workers(3))
            let files = try contents(of: one)
            #expect(try files == contents(of: three))
            #expect(files.keys.count { $0.hasPrefix("TwoCircles/") } == 36)
            #expect(files["Other/00035.jpg"] != nil && files["Other/00036.jpg"] == nil)
            #expect(reported.last == 71 && reported == reported.sorted())

            try FileManager.default.removeItem(at: one.appending(path: "Other/00001.jpg"))
            try recipe.write(to: one, count: 71, seed: 5, workers: Workers(2))
            #expect(try files == contents(of: one))
        }
    }

    @Test("A folder with other files is an error and does not change") func foreignFolder() throws {
        let recipe = try recipe(replacing: "\"size\": 128", with: "\"size\": 24")
        try withTemporaryFolder { folder in
            let drawn = folder.appending(path: "drawn")
            try recipe.write(to: drawn, count: 4, seed: 5, workers: Workers(1))
            let error = #expect(throws: DrawingError.self) {
                try recipe.write(to: drawn, count: 4, seed: 6, workers: Workers(1))
            }
            guard case .otherDrawing(drawn, let found, let expected) = error else {
                Issue.record("unexpected: \(String(describing: error))")
                return
            }
            #expect(found.contains("seed 5") && expected.contains("seed 6"))

            #expect(throws: DrawingError.foreignFolder(folder: folder, found: "drawn")) {
                try recipe.write(to: folder, count: 4, seed: 5, workers: Workers(1))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["drawn"])
        }
    }

    @Test("A count below the number of labels is an error", arguments: [-1, 0, 1]) func tooFewImages(count: Int) throws
    {
        let recipe = try DrawingRecipe(contentsOf: recipeFile)
        try withTemporaryFolder { folder in
            let error = #expect(throws: DrawingError.self) {
                try recipe.write(to: folder, count: count, seed: 1, workers: Workers(1))
            }
            #expect(error.map { "\($0)".contains("cannot have \(count) image") } == true)
        }
    }
}
