import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Writes a picture, and creates the folders of its path.
func write(_ image: RasterImage, to file: URL, original: String? = nil) throws {
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    guard let original else { return try ImageFile.write(image, to: file) }
    let time = Array("Exif\0\0".utf8) + exif(dateTime: nil, original: original)
    try Data(inserting(0xE1, time, into: try ImageFile.encodeJPEG(image))).write(to: file)
}

@Suite("Image groups") struct ImageGroupsTests {
    /// The groups as lists of file names.
    private func names(_ folders: [ImageFolder], _ lists: [[Int]]) -> [[String]] {
        let items = folders.flatMap(\.items)
        return lists.map { $0.map { items[$0].url.deletingPathExtension().lastPathComponent } }
    }

    @Test("Copies, near-duplicates and rotated pictures are found under any name and label") func duplicates() throws {
        try withTemporaryFolder { root in
            let scenes = (0..<6).map { RasterImage.scene(UInt64($0) + 20) }
            for (index, scene) in scenes.enumerated() {
                try write(scene, to: root.appending(path: "a/x\(10 * index).png"))
            }
            let files = FileManager.default
            try files.createDirectory(at: root.appending(path: "b"), withIntermediateDirectories: true)
            try files.copyItem(at: root.appending(path: "a/x0.png"), to: root.appending(path: "b/copy.png"))
            try write(scenes[1], to: root.appending(path: "b/compressed.jpg"))
            try write(Orientation.right.upright(scenes[2]), to: root.appending(path: "b/turned.png"))
            try write(Orientation.upMirrored.upright(scenes[3]), to: root.appending(path: "b/mirrored.jpg"))
            try Data("no picture".utf8).write(to: root.appending(path: "b/note.jpg"))
            try Data("no picture".utf8).write(to: root.appending(path: "b/other.jpg"))
            let folder = try ImageFolder(at: root)
            var read: [Int] = []
            let groups = ImageGroups([folder], workers: Workers(2)) { read.append($0) }
            // Unreadable files can be copies too.
            #expect(names([folder], groups.copies) == [["x0", "copy"], ["note", "other"]])
            let expected = [
                ["x0", "copy"], ["x10", "compressed"], ["x20", "turned"], ["x30", "mirrored"], ["note", "other"],
            ]
            #expect(names([folder], groups.nearDuplicates) == expected)
            #expect(names([folder], groups.groups) == expected)
            #expect(read.last == 12)
            for list in groups.groups { #expect(Set(list.map(groups.group(of:))).count == 1) }
            #expect(Set((0..<12).map(groups.group(of:))).count == 7)
            #expect(groups.sketches.count { (try? $0.get()) == nil } == 2)
        }
    }

    /// Writes twelve scenes of three pictures each: parts of one wide view.
    private func writeWalk(
        to root: URL, name: (_ scene: Int, _ shot: Int) -> String, time: (Int, Int) -> String? = { _, _ in nil }
    )
        throws
    {
        for scene in 0..<12 {
            let view = RasterImage.scene(UInt64(scene) + 300, width: 160, height: 80)
            for shot in 0..<3 {
                let part = view.part(left: shot * 20, top: 0, width: 120, height: 80)
                let path = "\(shot == 1 ? "b" : "a")/\(name(scene, shot))"
                try write(part, to: root.appending(path: path), original: time(scene, shot))
            }
        }
    }

    /// The number of pairs in the same group with the same scene and with different scenes.
    private func pairs(_ folder: ImageFolder, _ groups: ImageGroups, scene: (String) -> Int) -> (right: Int, wrong: Int)
    {
        var (right, wrong) = (0, 0)
        for names in names([folder], groups.groups) {
            for first in names.indices {
                for second in names.indices.dropFirst(first + 1) {
                    if scene(names[first]) == scene(names[second]) { right += 1 } else { wrong += 1 }
                }
            }
        }
        return (right, wrong)
    }

    @Test("Neighbours by number form a group across labels if they look alike") func numbers() throws {
        try withTemporaryFolder { root in
            try writeWalk(to: root, name: { "IMG_\(1000 + 4 * $0 + $1).png" })
            let folder = try ImageFolder(at: root)
            let groups = ImageGroups([folder], workers: Workers(1))
            let (right, wrong) = pairs(folder, groups) { (Int($0.dropFirst(4)) ?? 0) / 4 }
            // Two scenes may look alike.
            #expect(right >= 30 && wrong <= 9, "\(right) of 36 pairs, \(wrong) wrong ones")
            #expect(groups.nearDuplicates.count <= 2)
            #expect(groups.groups == ImageGroups([folder], workers: Workers(3)).groups)
        }
    }

    @Test("Uninformative numbers are ignored") func meaninglessNumbers() throws {
        try withTemporaryFolder { root in
            // Pictures of one scene are twelve numbers apart.
            try writeWalk(to: root, name: { "\(12 * $1 + $0).png" })
            let folder = try ImageFolder(at: root)
            let groups = ImageGroups([folder], workers: Workers(2))
            #expect(groups.groups == groups.nearDuplicates)
        }
    }

    @Test("Photos taken within seconds of each other form a group if they look alike") func times() throws {
        try withTemporaryFolder { root in
            let letters = Array("abcdefghijklmnop")
            try writeWalk(
                to: root, name: { "\(letters[$0])\(letters[$1]).jpg" },
                time: { String(format: "2019:07:21 14:%02d:%02d", $0, 20 + $1 * 9) })
            let folder = try ImageFolder(at: root)
            let groups = ImageGroups([folder], workers: Workers(2))
            let (right, wrong) = pairs(folder, groups) { letters.firstIndex(of: $0.first ?? "z") ?? -1 }
            #expect(right >= 30 && wrong == 0, "\(right) of 36 pairs, \(wrong) wrong ones")
        }
    }

    @Test("Several folders are compared as if they were one") func folders() throws {
        try withTemporaryFolder { root in
            for scene in 0..<4 {
                try write(.scene(UInt64(scene)), to: root.appending(path: "train/a/t\(10 * scene).png"))
                try write(.scene(UInt64(scene) + 2), to: root.appending(path: "test/a/v\(10 * scene).jpg"))
            }
            let folders = try ["train", "test"].map { try ImageFolder(at: root.appending(path: $0), minimumClasses: 1) }
            let groups = ImageGroups(folders, workers: Workers(2))
            #expect(names(folders, groups.groups) == [["t20", "v0"], ["t30", "v10"]])
            #expect(groups.leaks(from: 4..<8, into: 0..<4) == 2)
            #expect(groups.leaks(from: 0..<2, into: 4..<8) == 0)
        }
    }

    @Test("Union-find does not depend on the order of the pairs") func unionFind() {
        for pairs in [[(0, 1), (1, 2), (4, 5)], [(5, 4), (2, 1), (2, 0), (0, 1)]] {
            var union = UnionFind(count: 6)
            for (a, b) in pairs { union.join(a, b) }
            #expect(union.sets() == [[0, 1, 2], [4, 5]])
            #expect((0..<6).map { union.root(of: $0) } == [0, 0, 0, 3, 4, 4])
        }
    }
}
