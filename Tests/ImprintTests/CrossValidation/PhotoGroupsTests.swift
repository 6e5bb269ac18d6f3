import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Folds of groups") struct PhotoGroupsTests {
    /// The labels of photos and their groups.
    struct Case: CustomTestStringConvertible, Sendable {
        let name: String
        let labels: [[Int]]
        let groups: [[Int]]

        init(name: String, labelSets: [[Int]], groups: [[Int]]) {
            (self.name, labels, self.groups) = (name, labelSets, groups)
        }

        /// Creates a case of photos with one label each.
        init(name: String, labels: [Int], groups: [[Int]]) {
            self.init(name: name, labelSets: labels.map { [$0] }, groups: groups)
        }

        var testDescription: String { name }
    }

    /// Cases with groups of many sizes, labels of unequal size, and groups of several labels.
    static let cases: [Case] = [
        Case(name: "single photos", labels: (0..<40).map { $0 % 2 }, groups: (0..<40).map { [$0] }),
        Case(
            name: "bursts of three",
            labels: (0..<60).map { $0 / 3 % 3 }, groups: (0..<20).map { [3 * $0, 3 * $0 + 1, 3 * $0 + 2] }),
        Case(
            name: "a large group",
            labels: (0..<60).map { $0 < 30 ? 0 : 1 },
            groups: [Array(0..<20)] + (20..<60).map { [$0] }),
        Case(
            name: "rare label", labels: (0..<100).map { $0 < 5 ? 1 : 0 }, groups: (0..<100).map { [$0] }),
        Case(
            name: "groups of two labels", labels: (0..<60).map { $0 % 2 },
            groups: (0..<30).map { [2 * $0, 2 * $0 + 1] }),
        Case(
            name: "several labels or none",
            labelSets: (0..<120).map { divisors(of: $0, [2, 3, 7]) },
            groups: (0..<120).map { [$0] }),
        Case(
            name: "bursts with several labels",
            labelSets: (0..<120).map { divisors(of: $0 / 4, [2, 3, 5]) },
            groups: (0..<30).map { Array((4 * $0)..<(4 * $0 + 4)) }),
    ]

    /// Returns the indices of the numbers by which `value` is divisible.
    private static func divisors(of value: Int, _ numbers: [Int]) -> [Int] {
        numbers.indices.filter { value % numbers[$0] == 0 }
    }

    @Test("Each photo is in one fold, groups are never split, and the same seed gives the same folds", arguments: cases)
    func partition(_ example: Case) {
        for count in [2, 3, 5] {
            for seed in UInt64(0)..<4 {
                let folds = PhotoGroups.folds(of: example.groups, labels: example.labels, count: count, seed: seed)
                #expect(folds.count == count)
                #expect(folds.flatMap { $0 }.sorted() == Array(example.labels.indices))
                for group in example.groups {
                    #expect(folds.count { !Set(group).isDisjoint(with: $0) } == 1, "\(group)")
                }
                #expect(
                    folds == PhotoGroups.folds(of: example.groups, labels: example.labels, count: count, seed: seed))
            }
        }
        let seeds = (UInt64(0)..<4).map {
            PhotoGroups.folds(of: example.groups, labels: example.labels, count: 3, seed: $0)
        }
        #expect(Set(seeds).count > 1, "another seed gives other folds")
    }

    @Test("Each fold has the same share of each label, as far as groups and several labels allow", arguments: cases)
    func stratification(_ example: Case) {
        let largest = example.groups.map(\.count).max() ?? 1
        // Only one of the labels of a photo decides about its fold in the worst case.
        let tolerance = Double(largest * (example.labels.map(\.count).max() ?? 1))
        for count in [2, 5] {
            let folds = PhotoGroups.folds(of: example.groups, labels: example.labels, count: count, seed: 1)
            for label in Set(example.labels.joined()) {
                let share = Double(example.labels.count { $0.contains(label) }) / Double(count)
                for fold in folds {
                    let photos = Double(fold.count { example.labels[$0].contains(label) })
                    #expect(abs(photos - share) <= tolerance, "label \(label): \(photos) of \(share)")
                }
            }
            let unlabelled = folds.map { fold in fold.count { example.labels[$0].isEmpty } }
            #expect((unlabelled.max() ?? 0) - (unlabelled.min() ?? 0) <= largest, "without labels: \(unlabelled)")
        }
    }

    @Test("Each fold has photos of a label with few photos, even if they also have a common label") func rareLabel() {
        let labels: [[Int]] = (0..<200).map { photo in photo % 40 == 0 ? [0, 1] : photo % 3 == 0 ? [] : [0] }
        for seed in UInt64(0)..<4 {
            let folds = PhotoGroups.folds(of: (0..<200).map { [$0] }, labels: labels, count: 5, seed: seed)
            #expect(folds.map { fold in fold.count { labels[$0].contains(1) } } == [1, 1, 1, 1, 1])
        }
    }

    @Test("Near-duplicates and given groups are joined, unreadable photos are left out") func groups() throws {
        try withImages(perLabel: 6) { root in
            try FileManager.default.copyItem(
                at: root.appending(path: "left/0.png"), to: root.appending(path: "left/copy.png"))
            try Data("no image".utf8).write(to: root.appending(path: "right/broken.png"))
            let folder = try ImageFolder(at: root)
            func groups(_ additional: [[String]], together: Bool = true) throws -> PhotoGroups {
                try PhotoGroups(
                    folder, additional: additional, keepsGroupsTogether: together, workers: Workers(2)
                ) { _ in }
            }
            let index = Dictionary(
                uniqueKeysWithValues: folder.items.enumerated().map { (folder.identifier(of: $1), $0) })
            func group(_ groups: PhotoGroups, _ path: String) -> Int? {
                index[path].flatMap { groups.groupOfPhoto[$0] }
            }
            let found = try groups([])
            #expect(group(found, "left/0.png") == group(found, "left/copy.png"))
            #expect(group(found, "right/broken.png") == nil)
            #expect(found.skipped.map(\.url.lastPathComponent) == ["broken.png"])
            #expect(found.photoCount == 13)
            let joined = try groups([["left/copy.png", "right/1.png"], ["right/1.png", "right/2.png"]])
            #expect(Set(["left/0.png", "right/1.png", "right/2.png"].map { group(joined, $0) }).count == 1)
            let apart = try groups([["right/3.png", "right/4.png"]], together: false)
            #expect(group(apart, "left/0.png") != group(apart, "left/copy.png"))
            #expect(group(apart, "right/3.png") == group(apart, "right/4.png"))
            #expect(apart.skipped.map(\.url.lastPathComponent) == ["broken.png"] && apart.photoCount == 13)
            #expect(throws: CrossValidationError.unknownPhoto(path: "left/9.png", source: folder.name)) {
                try groups([["left/9.png"]])
            }
        }
    }

    @Test("Groups of annotated photos can have the paths of the annotation file") func pathsOfAnnotations() throws {
        try withTemporaryFolder { folder in
            _ = try annotatedFramesAndDiscs(in: folder.appending(path: "images"), count: 3, seed: 1)
            let images = (0..<3).map { "{\"id\": \($0), \"file_name\": \"images/1-\($0).png\"}" }
            let text = """
                {"images": [\(images.joined(separator: ", "))], "categories": [{"id": 1, "name": "disc"}],
                "annotations": [{"id": 1, "image_id": 0, "category_id": 1, "bbox": [10, 10, 20, 20]}]}
                """
            let file = folder.appending(path: "boxes.json")
            try Data(text.utf8).write(to: file)
            let source = AnnotatedSource(try BoxAnnotations(contentsOf: file).withoutUnusedLabels)
            #expect(source.items.map { source.identifier(of: $0) } == ["1-0.png", "1-1.png", "1-2.png"])
            func groups(_ path: String) throws -> [Int?] {
                try PhotoGroups(
                    source, additional: [["images/1-0.png", path]], keepsGroupsTogether: false, workers: Workers(1)
                ) { _ in }.groupOfPhoto
            }
            for path in ["1-1.png", "images/1-1.png", "./images/../images/1-1.png"] {
                #expect(try groups(path) == [0, 0, 1])
            }
            #expect(throws: CrossValidationError.unknownPhoto(path: "boxes/1-1.png", source: source.name)) {
                try groups("boxes/1-1.png")
            }
        }
    }

    @Test("The names in XML files of several folders find their photos, unless two photos have the same name")
    func namesInSeveralFolders() throws {
        try withTemporaryFolder { folder in
            for path in ["train/a", "train/c", "valid/b", "train/0", "valid/0"] {
                try writeAnnotatedPhoto(folder.appending(path: "\(path).png"))
                let name = path.split(separator: "/").last ?? ""
                let text = """
                    <annotation><filename>\(name).png</filename><object><name>cat</name>
                    <bndbox><xmin>10</xmin><ymin>10</ymin><xmax>30</xmax><ymax>30</ymax></bndbox></object></annotation>
                    """
                try writeAnnotations(["\(path).xml": text], in: folder)
            }
            let source = AnnotatedSource(try BoxAnnotations(contentsOf: folder))
            func join(_ paths: String...) throws {
                _ = try PhotoGroups(
                    source, additional: [paths], keepsGroupsTogether: false, workers: Workers(1)
                ) { _ in }
            }
            try join("a.png", "c.png", "b.png", "train/0.png", "valid/0.png")
            let error = CrossValidationError.ambiguousPhoto(path: "0.png", photos: ["train/0.png", "valid/0.png"])
            #expect(throws: error) { try join("0.png") }
            #expect(error.description.contains("Write the path of one of them"))
        }
    }

    @Test("A label with fewer groups than folds is an error that names the label") func tooFewGroups() throws {
        try withImages(perLabel: 6) { root in
            for index in 1..<6 { try FileManager.default.removeItem(at: root.appending(path: "right/\(index).png")) }
            let folder = try ImageFolder(at: root)
            let groups = try PhotoGroups(
                folder, additional: [], keepsGroupsTogether: true, workers: Workers(1)
            ) { _ in }
            let error = CrossValidationError.tooFewGroups(label: "right", groups: 1, photos: 1, folds: 2)
            #expect(throws: error) { try groups.folds(2, seed: 0) }
            #expect(error.description.contains("\"right\" has 1 photo in 1 group"))
        }
    }

    @Test("A label of few photos with several labels is an error that names it; photos without labels are none")
    func tooFewGroupsOfSeveralLabels() throws {
        try withImages(perLabel: 6) { root in
            let photos = try ImageFolder(at: root)
            func groups(_ labels: [String: [String]]) throws -> PhotoGroups {
                var source = InMemorySource(labels: ["bird", "cat"])
                for (index, item) in photos.items.enumerated() {
                    let path = photos.identifier(of: item)
                    try source.append(
                        Data(contentsOf: item.url), labels: labels[path] ?? ["cat"], identifier: "\(index)")
                }
                return try PhotoGroups(source, additional: [], keepsGroupsTogether: false, workers: Workers(1)) { _ in }
            }
            let rare = try groups(["left/0.png": ["bird", "cat"], "right/0.png": ["bird"]])
            #expect(throws: CrossValidationError.tooFewGroups(label: "bird", groups: 2, photos: 2, folds: 3)) {
                try rare.folds(3, seed: 0)
            }
            #expect(try rare.folds(2, seed: 0).joined().sorted() == Array(0..<12))
            let unlabelled = try groups(["left/0.png": [], "left/1.png": ["bird"], "right/0.png": ["bird", "cat"]])
            #expect(try unlabelled.folds(2, seed: 0).joined().sorted() == Array(0..<12))
        }
    }

    @Test("If all photos are in one group, there are no folds") func oneGroup() throws {
        try withImages(perLabel: 4) { root in
            let folder = try ImageFolder(at: root)
            let groups = try PhotoGroups(
                folder, additional: [folder.items.map(folder.identifier)], keepsGroupsTogether: false,
                workers: Workers(1)
            ) { _ in }
            #expect(throws: CrossValidationError.tooFewGroups(label: "left", groups: 1, photos: 4, folds: 2)) {
                try groups.folds(2, seed: 0)
            }
        }
    }
}
