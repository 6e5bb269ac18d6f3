import Foundation
import TestSupport
import Testing

/// The keys of the JSON lines in the pages.
@Suite struct DocumentedJSONTests {
    /// A line of a command, and its description in a page.
    struct Line: Sendable, CustomTestStringConvertible {
        let page: String
        let section: String
        let command: String
        /// The position of the description among those of the section.
        let position: Int
        /// Whether the line is the last one of the output instead of the first one.
        let isLast: Bool
        /// The documented keys that the page declares absent for this command.
        let absent: Set<String>
        /// The commands that write the inputs of this command, after `train`.
        let after: [String]

        var testDescription: String { command }

        init(
            _ page: String, _ section: String, _ command: String, at position: Int = 0, isLast: Bool = true,
            absent: Set<String> = [], after: [String] = []
        ) {
            (self.page, self.section, self.command, self.position) = (page, section, command, position)
            (self.isLast, self.absent, self.after) = (isLast, absent, after)
        }
    }

    private static let train =
        "train photos --output m.imprint --epochs 2 --validation 0.25 --network logonet --input-size 16 --width 0.25"
    private static let personalize = "personalize m.imprint photos --output me"
    private static let quantize = "quantize m.imprint --photos photos --output q.imprint"
    private static let export = "export m.imprint --to onnx --output m.onnx"
    private static let (training, results) = ("reference/json-output", "reference/json-results")
    private static let (folds, images) = ("how-to/cross-validation", "draw, augment, studio")

    @Test(
        "A JSON line has the keys that its page lists",
        arguments: [
            Line(training, "train", train, isLast: false),
            Line(training, "train", train, at: 1, absent: ["recipe", "recipeReason", "changedPhotos"]),
            Line(training, "personalize", personalize),
            Line(folds, "JSON", train.replacing("--output m.imprint", with: "--folds 2"), isLast: false),
            Line(folds, "JSON", train.replacing("--output m.imprint", with: "--folds 2"), at: 1),
            Line(training, "merge", "merge m.imprint me --output new.imprint", after: [personalize]),
            Line(training, "quantize", quantize),
            Line(results, "classify", "classify m.imprint photos/dark/0.png", absent: ["boxes"]),
            Line(results, "classify", "classify d.imprint photos/dark/0.png --boxes", absent: ["novelty", "rejected"]),
            Line(results, "classify", "classify m.imprint photos/dark/broken.png", at: 1),
            Line(results, "detect", "detect d.imprint photos/dark/0.png --threshold 0", absent: ["confidences"]),
            Line(results, "detect", "detect --artwork Logo=logo.svg photos/dark/0.png"),
            Line(results, "detect", "detect d.imprint photos/dark/0.png --count", at: 1, absent: ["confidences"]),
            Line(results, "detect", "detect --artwork Logo=logo.svg photos/dark/0.png --count", at: 1),
            Line(results, "evaluate", "evaluate m.imprint photos --images", isLast: false),
            Line(results, "evaluate", "evaluate m.imprint photos --unknown others", at: 1),
            Line(results, "evaluate", "evaluate d.imprint --annotations boxes.json --images", at: 2, isLast: false),
            Line(results, "evaluate", "evaluate d.imprint --annotations boxes.json", at: 3),
            Line(results, "compare", "compare m.imprint m.imprint --images photos"),
            Line(results, "inspect", "inspect m.imprint --plan", absent: ["int8Layers"]),
            Line(results, "inspect", "inspect m.imprint", absent: ["int8Layers", "plan", "engine"]),
            Line(results, "inspect", "inspect q.imprint --plan", after: [quantize]),
            Line(results, "inspect", "inspect me", at: 1, after: [personalize]),
            Line(results, "models", "models list"),
            Line(results, "import", "import m.onnx --output imported.imprint", after: [export]),
            Line(results, "export", export),
            Line(results, "audit", "audit photos", isLast: false, absent: ["boxes"]),
            Line(results, "audit", "audit photos", at: 1, absent: ["objects"]),
            Line(results, "audit", "audit --annotations boxes.json", at: 1),
            Line(results, "prepare", "prepare photos --output prepared"),
            Line(results, images, "draw two-circles --count 2 --output drawn"),
            Line(results, images, "augment photos --contact-sheet sheet.png", at: 1),
            Line(
                results, images, "augment --artwork Logo=logo.svg --contact-sheet sheet.png --cut-out logo.png", at: 2),
        ])
    func keys(of line: Line) throws {
        var description = try Self.description(of: line)
        try withTemporaryFolder { folder in
            try writeFiles(to: folder)
            for command in [Self.train] + line.after {
                let run = try shell("$imprint \(command)", folder: folder)
                #expect(run.status == 0, "\(run.errors)")
            }
            let run = try shell("$imprint \(line.command) --json", folder: folder)
            let object = try #require(line.isLast ? run.lines.last : run.lines.first, "\(run.errors)")
            for key in line.absent { #expect(description.removeValue(forKey: key) != nil, "\(key): is not documented") }
            Self.compare(object, with: description, path: "")
        }
    }

    /// Compares the keys of an object with its description, and those of the objects that it contains.
    private static func compare(_ object: [String: Any], with description: [String: Any], path: String) {
        #expect(object.keys.sorted() == description.keys.sorted(), "\(path)")
        // The keys of these objects are data, such as labels.
        for (key, value) in object where !["counts", "findings", "orientations", "profiles"].contains(key) {
            let elementDescription = (description[key] as? [Any])?.first ?? description[key]
            guard let described = elementDescription as? [String: Any], !described.isEmpty else { continue }
            for case let element as [String: Any] in value as? [Any] ?? [value] {
                compare(element, with: described, path: "\(path)\(key).")
            }
        }
    }

    /// Reads the description of a line in its section, such as `{"file":…,"counts":{…}}`.
    private static func description(of line: Line) throws -> [String: Any] {
        let file = packageFolder.appending(path: "docs/\(line.page).md")
        let parts = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n## \(line.section)\n")
        try #require(parts.count == 2, "\(line.page): the section \(line.section) is missing")
        var texts: [String] = []
        for row in parts[1].components(separatedBy: "\n## ")[0].components(separatedBy: "\n") {
            if row.hasPrefix("    {") {
                texts.append(row)
            } else if row.hasPrefix("     "), let text = texts.popLast() {
                texts.append(text + row)
            }
        }
        try #require(texts.count > line.position, "\(line.page): \(line.section) has \(texts.count) descriptions")
        let json = texts[line.position].replacing("{…}", with: "{}").replacing(",…}", with: "}")
            .replacing("…", with: "null")
        let object = try? JSONSerialization.jsonObject(with: Data(json.utf8))
        return try #require(object as? [String: Any], "\(texts[line.position])")
    }

    /// Writes photos with their boxes, photos without labels, unreadable photos, the artwork of a logo, and a detector.
    private func writeFiles(to folder: URL) throws {
        let photos = folder.appending(path: "photos")
        try writeImages(to: photos, count: 40)
        let others = folder.appending(path: "others")
        try writeImages(to: others, count: 4)
        for parent in [photos, others] {
            try Data("no image".utf8).write(to: parent.appending(path: "dark/broken.png"))
        }
        try writeRandomDetector(logos: ["leaf"], to: folder.appending(path: "d.imprint"))
        for (name, text) in [
            (
                "boxes.json",
                """
                {"images": [{"id": 1, "file_name": "photos/dark/0.png", "width": 20, "height": 24}], \
                "categories": [{"id": 7, "name": "leaf"}], \
                "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 1, 12, 15]}]}
                """
            ),
            (
                "logo.svg",
                """
                <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><circle cx="40" cy="60" r="30"/>\
                <circle cx="80" cy="20" r="15"/></svg>
                """
            ),
        ] { try Data(text.utf8).write(to: folder.appending(path: name)) }
    }
}
