import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Writes an image and creates the folders of its path.
func write(_ image: RasterImage, to file: URL, original: String? = nil) throws {
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    guard let original else { return try ImageFile.write(image, to: file) }
    let time = Array("Exif\0\0".utf8) + exif(dateTime: nil, original: original)
    try Data(inserting(0xE1, time, into: try ImageFile.encodeJPEG(image))).write(to: file)
}

@Suite("Image groups") struct ImageGroupsTests {
    /// Returns groups of indices as groups of file names without extensions.
    private func names(_ folders: [ImageFolder], _ lists: [[Int]]) -> [[String]] {
        let items = folders.flatMap(\.items)
        return lists.map { $0.map { items[$0].url.deletingPathExtension().lastPathComponent } }
    }

    @Test("Copies, near-duplicates and rotated images are found under any name and label") func duplicates() throws {
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
            try Data("not an image".utf8).write(to: root.appending(path: "b/note.jpg"))
            try Data("not an image".utf8).write(to: root.appending(path: "b/other.jpg"))
            let folder = try ImageFolder(at: root)
            var read: [Int] = []
            let groups = ImageGroups([folder], workers: Workers(2)) { read.append($0) }
            // Identical unreadable files are also copies.
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

    /// Writes twelve bursts of three images each, which are overlapping crops of one scene.
    private func writeBursts(
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

    /// Returns the number of pairs of images in one group that show the same scene, and that show different scenes.
    private func pairs(
        _ folder: ImageFolder, _ groups: ImageGroups, scene: (String) -> Int
    ) -> (correct: Int, wrong: Int) {
        var (correct, wrong) = (0, 0)
        for names in names([folder], groups.groups) {
            for first in names.indices {
                for second in names.indices.dropFirst(first + 1) {
                    if scene(names[first]) == scene(names[second]) { correct += 1 } else { wrong += 1 }
                }
            }
        }
        return (correct, wrong)
    }

    @Test("Similar photos with consecutive numbers form a group across labels") func numbers() throws {
        try withTemporaryFolder { root in
            try writeBursts(to: root, name: { "IMG_\(1000 + 4 * $0 + $1).png" })
            let folder = try ImageFolder(at: root)
            let groups = try ImageGroups([folder], workers: Workers(1))
            let (correct, wrong) = pairs(folder, groups) { (Int($0.dropFirst(4)) ?? 0) / 4 }
            // Different scenes can be similar by chance.
            #expect(correct >= 30 && wrong <= 9, "\(correct) of 36 pairs, \(wrong) wrong pairs")
            #expect(groups.nearDuplicates.count <= 2)
            let sameGroups = try ImageGroups([folder], workers: Workers(3))
            #expect(groups.groups == sameGroups.groups)
        }
    }

    @Test("Photos of one folder with the same number are compared with each other and with their neighbours")
    func equalNumbers() throws {
        try withTemporaryFolder { root in
            for scene in 0..<12 {
                let number = 1000 + 20 * scene
                let view = RasterImage.scene(UInt64(scene) + 300, width: 160, height: 80)
                for (name, left) in [("\(number)", 20), ("\(number + 1)", 0), ("\(number + 1)-edited", 40)] {
                    let part = view.part(left: left, top: 0, width: 120, height: 80)
                    try write(part, to: root.appending(path: "a/IMG_\(name).png"))
                }
                // Only the same number links these two.
                let other = RasterImage.scene(UInt64(scene) + 400, width: 160, height: 80)
                for (name, left) in [("\(number + 10)", 0), ("\(number + 10)-edited", 20)] {
                    let part = other.part(left: left, top: 0, width: 120, height: 80)
                    try write(part, to: root.appending(path: "a/IMG_\(name).png"))
                }
            }
            let folder = try ImageFolder(at: root, minimumLabels: 1)
            let groups = try ImageGroups([folder], workers: Workers(2))
            let (correct, wrong) = pairs(folder, groups) { (Int($0.dropFirst(4).prefix(4)) ?? 0) / 10 }
            #expect(correct >= 40 && wrong <= 9, "\(correct) of 48 pairs, \(wrong) wrong pairs")
            #expect(groups.nearDuplicates.count <= 4)
        }
    }

    @Test("File numbers that do not correlate with similarity are ignored") func uninformativeNumbers() throws {
        try withTemporaryFolder { root in
            // The numbers of the images of one scene differ by twelve.
            try writeBursts(to: root, name: { "\(12 * $1 + $0).png" })
            let folder = try ImageFolder(at: root)
            let groups = try ImageGroups([folder], workers: Workers(2))
            #expect(groups.groups == groups.nearDuplicates)
        }
    }

    @Test("Similar photos taken within seconds of each other form a group") func times() throws {
        try withTemporaryFolder { root in
            let letters = Array("abcdefghijklmnop")
            try writeBursts(
                to: root, name: { "\(letters[$0])\(letters[$1]).jpg" },
                time: { String(format: "2019:07:21 14:%02d:%02d", $0, 20 + $1 * 9) })
            let folder = try ImageFolder(at: root)
            let groups = try ImageGroups([folder], workers: Workers(2))
            let (correct, wrong) = pairs(folder, groups) { letters.firstIndex(of: $0.first ?? "z") ?? -1 }
            #expect(correct >= 30 && wrong == 0, "\(correct) of 36 pairs, \(wrong) wrong pairs")
        }
    }

    @Test("Groups and leaks span several folders") func folders() throws {
        try withTemporaryFolder { root in
            for scene in 0..<4 {
                try write(.scene(UInt64(scene)), to: root.appending(path: "train/a/t\(10 * scene).png"))
                try write(.scene(UInt64(scene) + 2), to: root.appending(path: "test/a/v\(10 * scene).jpg"))
            }
            let folders = try ["train", "test"].map { try ImageFolder(at: root.appending(path: $0), minimumLabels: 1) }
            let groups = try ImageGroups(folders, workers: Workers(2))
            #expect(names(folders, groups.groups) == [["t20", "v0"], ["t30", "v10"]])
            #expect(groups.leaks(from: 4..<8, into: 0..<4) == 2)
            #expect(groups.leaks(from: 0..<2, into: 4..<8) == 0)
        }
    }

    @Test("Files beyond the maximum size of an image are not read for copies") func digestLimit() throws {
        try withTemporaryFolder { root in
            let (small, large) = (root.appending(path: "small.jpg"), root.appending(path: "large.jpg"))
            let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try Data(bytes).write(to: small)
            #expect(TrainingPhoto(url: small, label: 0).contentDigest() == SHA256.hexadecimal(of: bytes))
            // A sparse file, which needs no space on the disk.
            try Data().write(to: large)
            #expect(truncate(large.path, off_t(ImageFile.byteLimit + 1)) == 0)
            #expect(TrainingPhoto(url: large, label: 0).contentDigest() == nil)
            #expect(TrainingPhoto(url: root, label: 0).contentDigest() == nil)
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
