import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("File sequence") struct FileSequenceTests {
    @Test(
        "The position of a file is the last number in its name",
        arguments: [
            ("IMG_3123.jpg", "IMG_", 3123), ("walk/IMG_0007.jpg", "walk/IMG_", 7), ("00042.png", "", 42),
            ("DSC 5 of 9.jpg", "DSC 5 of ", 9), ("IMG_12_edited.jpg", "IMG_", 12), ("2024/a.1.2.jpg", "2024/a.1.", 2),
            ("photo7", "photo", 7),
        ])
    func positions(path: String, series: String, number: Int) {
        let expected: SequencePosition? = SequencePosition(series: series, number: number)
        #expect(SequencePosition(path) == expected)
    }

    @Test(
        "Names without a number have no position",
        arguments: ["cat.jpg", "", "3/cat.jpg", "a99999999999999999999.jpg", "٣.jpg"])
    func noPosition(path: String) {
        #expect(SequencePosition(path) == nil)
    }

    @Test("A series spans labels unless two of them have the same number") func labels() throws {
        try withTemporaryFolder { root in
            for path in [
                "a/IMG_1.jpg", "a/IMG_1-edited.jpg", "b/IMG_2.jpg", "a/x/IMG_3.jpg", "b/x/IMG_4.jpg", "a/P7.jpg",
                "b/P7.jpg", "b/P8.jpg",
            ] {
                let file = root.appending(path: path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data().write(to: file)
            }
            let folder = try ImageFolder(at: root)
            let positions = SequencePosition.positions(in: [folder])
            let series = Dictionary(
                zip(
                    folder.items.map { $0.url.pathComponents.suffix(2).joined(separator: "/") },
                    positions.map { $0?.series }),
                uniquingKeysWith: { first, _ in first })
            #expect(series["a/IMG_1.jpg"] == series["b/IMG_2.jpg"])
            #expect(series["a/IMG_1.jpg"] == series["a/IMG_1-edited.jpg"])
            #expect(series["x/IMG_3.jpg"] == series["x/IMG_4.jpg"])
            #expect(series["a/IMG_1.jpg"] != series["x/IMG_3.jpg"])
            #expect(series["a/P7.jpg"] != series["b/P7.jpg"])
            #expect(series["b/P8.jpg"] == series["b/P7.jpg"])
        }
    }

    @Test("Background photos directly in the folder have positions in the series of the other photos") func background()
        throws
    {
        try withTemporaryFolder { root in
            for path in ["IMG_1.jpg", "IMG_2.jpg", "Logo/IMG_3.jpg", "street/IMG_4.jpg"] {
                let file = root.appending(path: path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data().write(to: file)
            }
            let folder = try ImageFolder(at: root, logos: ["Logo"])
            let names = folder.items.map(\.url.lastPathComponent)
            #expect(names == ["IMG_3.jpg", "IMG_1.jpg", "IMG_2.jpg", "IMG_4.jpg"])
            let expected: [SequencePosition?] = [3, 1, 2, 4].map { SequencePosition(series: "IMG_", number: $0) }
            #expect(SequencePosition.positions(in: [folder]) == expected)
        }
    }

    @Test("Folders of background photos with equal numbers have separate series") func backgroundFolders() throws {
        try withTemporaryFolder { root in
            for path in ["Logo/IMG_9.jpg", "park/IMG_1.jpg", "park/IMG_2.jpg", "street/IMG_1.jpg", "street/IMG_2.jpg"] {
                let file = root.appending(path: path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data().write(to: file)
            }
            let folder = try ImageFolder(at: root, logos: ["Logo"])
            let positions = SequencePosition.positions(in: [folder]).compactMap { $0 }
            #expect(positions.count == 5 && Set(positions).count == 5)
            let park = positions.filter { $0.series.contains("park") }
            #expect(park.map(\.number) == [1, 2] && Set(park.map(\.series)).count == 1)
        }
    }
}
