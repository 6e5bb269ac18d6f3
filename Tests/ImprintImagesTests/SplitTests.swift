import Foundation
import ImprintImages
import TestSupport
import Testing

@Suite("Split") struct SplitTests {
    /// A folder with the given numbers of images in its classes.
    private func folder(_ counts: [Int]) throws -> ImageFolder {
        try withTemporaryFolder { root in
            for (label, count) in counts.enumerated() {
                let folder = root.appending(path: "class \(label)")
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                for index in 0..<count { try Data().write(to: folder.appending(path: "\(index).jpg")) }
            }
            return try ImageFolder(at: root, minimumClasses: 1)
        }
    }

    @Test(
        "The automatic rule is that of Create ML",
        arguments: [(0, 0), (49, 0), (50, 0.1), (199, 0.1), (200, 0.05), (100_000, 0.05)])
    func automatic(count: Int, fraction: Double) {
        #expect(ValidationRule.automatic.fraction(ofImages: count) == fraction)
    }

    @Test(
        "Each class gives its part, and no less than one image to either side",
        arguments: [
            (.automatic, [20, 20], [0, 0]), (.automatic, [50, 10], [5, 1]),
            (.automatic, [190, 4, 2, 1], [19, 1, 1, 0]),
            (.automatic, [300, 100], [15, 5]), (.fraction(0.25), [8, 3, 2, 1], [2, 1, 1, 0]),
            (.fraction(0.99), [10, 2, 1], [9, 1, 0]), (.fraction(0), [10, 10], [0, 0]), (.none, [300, 100], [0, 0]),
        ] as [(ValidationRule, [Int], [Int])])
    func counts(rule: ValidationRule, images: [Int], expected: [Int]) throws {
        // The automatic rule goes by the total: 195 and a few more stay below 200.
        let folder = try folder(images)
        let (training, validation) = folder.split(rule, seed: 1)
        #expect(folder.labels.indices.map { label in validation.count { $0.label == label } } == expected)
        #expect(Set(training).isDisjoint(with: validation))
        #expect(Set(training + validation) == Set(folder.items))
        #expect(training.count + validation.count == folder.items.count)
        // Both keep the order of the folder.
        #expect(folder.items.filter(Set(training).contains) == training)
        #expect(folder.items.filter(Set(validation).contains) == validation)
    }

    @Test("The same seed gives the same split, another seed another") func deterministic() throws {
        let folder = try folder([40, 60])
        let first = folder.split(.fraction(0.3), seed: 7).validation
        #expect(folder.split(.fraction(0.3), seed: 7).validation == first)
        #expect(folder.split(.fraction(0.3), seed: 8).validation != first)
    }
}
