import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@Suite("Split") struct SplitTests {
    /// Returns an image folder whose classes have these numbers of images.
    private func folder(_ counts: [Int]) throws -> ImageFolder {
        try withTemporaryFolder { root in
            for (label, count) in counts.enumerated() {
                let folder = root.appending(path: "class \(label)")
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                for index in 0..<count { try Data().write(to: folder.appending(path: "\(index).jpg")) }
            }
            return try ImageFolder(at: root, minimumLabels: 1)
        }
    }

    @Test(
        "The automatic rule is the same as in Create ML, but holds out at least 50 of 200 images",
        arguments: [(0, 0), (49, 0), (50, 0.1), (199, 0.1), (200, 0.25), (500, 0.1), (1000, 0.05), (100_000, 0.05)])
    func automatic(count: Int, fraction: Double) {
        #expect(ValidationRule.automatic.fraction(ofImages: count) == fraction)
    }

    @Test(
        "The split is stratified, with at least one image of each class in each set",
        arguments: [
            (.automatic, [20, 20], [0, 0]), (.automatic, [50, 10], [5, 1]),
            (.automatic, [190, 4, 2, 1], [19, 1, 1, 0]),
            (.automatic, [900, 300], [45, 15]), (.fraction(0.25), [8, 3, 2, 1], [2, 1, 1, 0]),
            (.fraction(0.99), [10, 2, 1], [9, 1, 0]), (.fraction(0), [10, 10], [0, 0]), (.none, [300, 100], [0, 0]),
        ] as [(ValidationRule, [Int], [Int])])
    func counts(rule: ValidationRule, images: [Int], expected: [Int]) throws {
        // The automatic rule uses the total: the third case has 197 images, fewer than 200.
        let folder = try folder(images)
        let (training, validation) = folder.split(rule, seed: 1)
        #expect(folder.labels.indices.map { label in validation.count { $0.label == label } } == expected)
        #expect(Set(training).isDisjoint(with: validation))
        #expect(Set(training + validation) == Set(folder.items))
        #expect(training.count + validation.count == folder.items.count)
        // Both sets keep the order of the folder.
        #expect(folder.items.filter(Set(training).contains) == training)
        #expect(folder.items.filter(Set(validation).contains) == validation)
    }

    @Test("The same seed gives the same split, another seed another split") func deterministic() throws {
        let folder = try folder([40, 60])
        let first = folder.split(.fraction(0.3), seed: 7).validation
        #expect(folder.split(.fraction(0.3), seed: 7).validation == first)
        #expect(folder.split(.fraction(0.3), seed: 8).validation != first)
    }

    /// Creates a folder of groups of identical images, whose file names contain the group.
    private func withGroups<Result>(
        _ sizes: [[Int]], _ body: (ImageFolder, ImageGroups) throws -> Result
    ) throws -> Result {
        try withTemporaryFolder { root in
            for (group, counts) in sizes.enumerated() {
                let bytes = try Data(ImageFile.encodePNG(.noise(width: 8, height: 8, channels: 3, seed: UInt64(group))))
                for (label, count) in counts.enumerated() {
                    let folder = root.appending(path: "class \(label)")
                    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                    for index in 0..<count {
                        try bytes.write(to: folder.appending(path: "group \(group), \(index)a.png"))
                    }
                }
            }
            let folder = try ImageFolder(at: root, minimumLabels: 1)
            return try body(folder, ImageGroups([folder], workers: Workers(1)))
        }
    }

    private func groupNames(_ items: [TrainingPhoto]) -> Set<Substring> {
        Set(items.map { $0.url.lastPathComponent.prefix { $0 != "," } })
    }

    @Test("A group stays in one set, also across labels", arguments: [0, 1, 2, 3] as [UInt64])
    func groups(seed: UInt64) throws {
        let sizes = [
            [9, 0], [3, 2], [1, 0], [2, 0], [0, 1], [1, 1], [0, 6], [2, 2], [1, 0], [1, 0], [0, 1], [0, 2], [0, 1],
        ]
        try withGroups(sizes) { folder, groups in
            #expect(groups.groups.count == 7)
            let (training, validation) = folder.split(.fraction(0.3), seed: seed, groups: groups)
            #expect(groupNames(training).isDisjoint(with: groupNames(validation)))
            #expect(training.count + validation.count == folder.items.count)
            #expect(folder.items.filter(Set(validation).contains) == validation)
            // The labels have 20 and 16 images: the validation set gets at least 1 and at most 6 and 5 of them.
            for (label, maximum) in [(0, 6), (1, 5)] {
                #expect((1...maximum).contains(validation.count { $0.label == label }))
            }
            #expect(folder.split(.fraction(0.3), seed: seed, groups: groups).validation == validation)
        }
    }

    @Test(
        "A class with few groups holds out one group even if it is too large, but never its only group",
        arguments: [
            ([[10], [5]], [5]), ([[10]], [0]), ([[4, 3], [1, 0]], [1, 0]), ([[4, 3], [5, 4]], [4, 3]),
        ] as [([[Int]], [Int])])
    func largeGroups(sizes: [[Int]], expected: [Int]) throws {
        try withGroups(sizes) { folder, groups in
            let validation = folder.split(.fraction(0.1), seed: 1, groups: groups).validation
            #expect(expected.indices.map { label in validation.count { $0.label == label } } == expected)
        }
    }

    @Test("Groups without copies do not change the split") func noGroups() throws {
        try withGroups(Array(repeating: [1, 0], count: 12) + Array(repeating: [0, 1], count: 9)) { folder, groups in
            for seed in 0..<5 as Range<UInt64> {
                let split = folder.split(.fraction(0.25), seed: seed)
                #expect(folder.split(.fraction(0.25), seed: seed, groups: groups).validation == split.validation)
                let leaks = folder.randomSplitLeaks(.fraction(0.25), seed: seed, groups: groups)
                #expect(leaks.images == 0 && leaks.of == 5)
            }
        }
    }

    @Test("Leaks of a random split are counted") func leaks() throws {
        try withGroups([[10, 10]]) { folder, groups in
            for (rule, count) in [(.fraction(0.2), 4), (.none, 0)] as [(ValidationRule, Int)] {
                let leaks = folder.randomSplitLeaks(rule, seed: 1, groups: groups)
                #expect(leaks.images == count && leaks.of == count)
            }
        }
    }
}
