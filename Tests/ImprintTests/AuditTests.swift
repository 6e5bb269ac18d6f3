import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

@Suite("Audit") struct AuditTests {
    /// Returns an image of random blocks, a different one for each seed.
    private func blockImage(_ seed: UInt64, width: Int = 96, height: Int = 72) -> RasterImage {
        var stream = RandomStream(seed: seed, "blocks")
        let colors = (0..<64).map { _ in UInt8(stream.index(below: 256)) }
        var image = RasterImage(width: width, height: height)
        for sample in image.samples.indices {
            let (x, y) = (sample / 3 % width * 4 / width, sample / 3 / width * 4 / height)
            image.samples[sample] = colors[(y * 4 + x) * 3 % 61 + sample % 3]
        }
        return image
    }

    private func write(_ image: RasterImage, to file: URL) throws {
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try ImageFile.write(image, to: file)
    }

    /// Calls `body` with a folder that contains every kind of problem.
    private func withFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
        try withTemporaryFolder { root in
            let files = FileManager.default
            for index in 0..<8 {
                try write(
                    blockImage(UInt64(index)),
                    to: root.appending(path: "train/\(index % 2 == 0 ? "cat" : "dog")/x\(10 * index).png"))
            }
            try files.copyItem(
                at: root.appending(path: "train/cat/x0.png"), to: root.appending(path: "train/cat/copy.png"))
            let plain = try ImageFile.encodeJPEG(blockImage(1))
            let brokenProfile = [0xFF, 0xE2, 0, 20] + Array("ICC_PROFILE\0".utf8) + [1, 1] + Array("none".utf8)
            try Data(plain[..<2] + brokenProfile + plain[2...]).write(to: root.appending(path: "train/cat/wrong.jpg"))
            try write(blockImage(90, width: 40, height: 30), to: root.appending(path: "train/dog/tiny.png"))
            var wide = RasterImage(width: 200, height: 80, filledWith: 200)
            for sample in 0..<40 * 3 { wide.samples[30 * 200 * 3 + sample] = UInt8(sample % 7) }
            try write(wide, to: root.appending(path: "train/dog/wide.png"))
            let bytes = try ImageFile.encodeJPEG(blockImage(91))
            try Data(bytes.prefix(bytes.count / 2)).write(to: root.appending(path: "train/dog/short.jpg"))
            try Data("text".utf8).write(to: root.appending(path: "train/dog/text.jpg"))
            try Data("text".utf8).write(to: root.appending(path: "train/notes.txt"))
            try write(blockImage(2), to: root.appending(path: "test/cat/v0.jpg"))
            try write(blockImage(60), to: root.appending(path: "test/cat/v10.jpg"))
            return try body(root)
        }
    }

    private func findings(_ audit: Audit) -> [Audit.Finding.Kind: [[String]]] {
        Dictionary(grouping: audit.findings, by: \.kind).mapValues { $0.map { $0.files.map(\.lastPathComponent) } }
    }

    @Test("Every kind of problem is found, with its files") func kinds() throws {
        try withFolder { root in
            let audit = Audit(try ImageFolder(at: root.appending(path: "train")), workers: Workers(2))
            #expect(
                findings(audit) == [
                    .acrossLabels: [["wrong.jpg", "x10.png"]], .unreadable: [["text.jpg"]], .truncated: [["short.jpg"]],
                    .unusableColors: [["wrong.jpg"]], .tiny: [["tiny.png"]], .copies: [["copy.png", "x0.png"]],
                    .nearDuplicates: [["wrong.jpg", "x10.png"]],
                    .outsideCrop: [["wide.png"]],
                ])
            #expect(audit.labels.map(\.label) == ["cat", "dog"])
            #expect(audit.labels.map(\.images) == [6, 8])
            #expect(audit.labels.map(\.validationImages) == [0, 0])
            #expect(audit.images == 14 && audit.ignored == 1)
            #expect(audit.groups == 2 && audit.imagesInGroups == 4)
            #expect(audit.orientations == [.up: 13] && audit.rotatedImages == 0)
            #expect(audit.profiles.values.reduce(0, +) == 13)
            #expect(audit.randomSplit == nil)
            #expect(audit.findings.first?.reason == "cat, dog")
        }
    }

    @Test("A second folder is compared with the first") func validation() throws {
        try withFolder { root in
            let folders = try ["train", "test"].map { try ImageFolder(at: root.appending(path: $0), minimumLabels: 1) }
            var read = 0
            let audit = Audit(folders[0], validation: folders[1], workers: Workers(1)) { read = $0 }
            #expect(findings(audit)[.acrossSplits] == [["v0.jpg", "x20.png"]])
            let finding = try #require(audit.findings.first { $0.kind == .acrossSplits })
            #expect(finding.names == ["test/cat/v0.jpg", "train/cat/x20.png"])
            let tiny = audit.findings.filter { $0.kind == .tiny }
            #expect(tiny.map(\.names) == [["train/dog/tiny.png"]])
            #expect(audit.labels.map(\.validationImages) == [2, 0])
            #expect(audit.images == 16 && read == 16)
            #expect(audit.trainingImages == 14 && audit.validationImages == 2)
            let html = AuditReport(audit, title: "t", workers: Workers(1)).html
            #expect(html.contains("14<span> photos for training and 2 for validation, of 2 labels</span>"))
        }
    }

    @Test("A photo of both sets is one finding, and is not compared with itself") func sharedPhotos() throws {
        try withFolder { root in
            let folder = try ImageFolder(at: root.appending(path: "train"))
            let alone = Audit(folder, workers: Workers(1))
            let audit = Audit(folder, validation: folder, workers: Workers(1))
            let shared = audit.findings.filter { $0.kind == .sharedPhotos }
            #expect(shared.map(\.files) == folder.items.map { [$0.url] })
            #expect(shared.allSatisfy { $0.reason == "in the training and the validation set" })
            func texts(_ findings: [Audit.Finding]) -> [[String]] {
                findings.map { [$0.kind.rawValue, $0.reason] + $0.files.map(\.path) }
            }
            #expect(texts(audit.findings.filter { $0.kind != .sharedPhotos }) == texts(alone.findings))
            #expect(audit.images == 14 && audit.trainingImages == 14 && audit.validationImages == 14)
            #expect(audit.groups == alone.groups && audit.imagesInGroups == alone.imagesInGroups)
            #expect(audit.orientations == alone.orientations)
        }
    }

    @Test("The labels of near-duplicates are in the order of their files, and a photo of both sets names its labels")
    func labelOrder() throws {
        try withTemporaryFolder { root in
            for (path, seed) in [("train/dog/x.png", 1), ("train/cat/y.png", 2), ("test/cat/v.png", 1)] {
                try write(blockImage(UInt64(seed)), to: root.appending(path: path))
            }
            let files = FileManager.default
            try files.createSymbolicLink(
                at: root.appending(path: "test/cat/w.png"), withDestinationURL: root.appending(path: "train/dog/x.png"))
            let folders = try ["train", "test"].map { try ImageFolder(at: root.appending(path: $0), minimumLabels: 1) }
            let audit = Audit(folders[0], validation: folders[1], workers: Workers(1))
            #expect(findings(audit)[.acrossLabels] == [["x.png", "v.png"]])
            #expect(audit.findings.filter { $0.kind == .acrossLabels }.map(\.reason) == ["dog, cat"])
            #expect(findings(audit)[.sharedPhotos] == [["x.png"]])
            #expect(
                audit.findings.filter { $0.kind == .sharedPhotos }.map(\.reason) == [
                    "dog for training, cat for validation"
                ])
        }
    }

    @Test("The audit reports how many images a random split would leak") func leakage() throws {
        try withTemporaryFolder { root in
            for index in 0..<60 {
                try write(blockImage(UInt64(index / 6)), to: root.appending(path: "\(index % 2)/\(index)z.png"))
            }
            let audit = Audit(try ImageFolder(at: root), workers: Workers(2))
            let split = try #require(audit.randomSplit)
            #expect(split.images == 6 && split.leaked == 6)
            #expect(findings(audit)[.copies]?.count == 10)
        }
    }

    @Test("The report shows the findings, escapes names and loads no other resources") func report() throws {
        try withFolder { root in
            try FileManager.default.moveItem(
                at: root.appending(path: "train/cat"), to: root.appending(path: "train/a <b>&\"cat\""))
            let audit = Audit(try ImageFolder(at: root.appending(path: "train")), workers: Workers(2))
            let html = AuditReport(audit, title: "My <photos>", workers: Workers(2)).html
            for kind in Set(audit.findings.map(\.kind)) {
                #expect(html.contains("<h2 id=\"\(kind.rawValue)\">\(kind.title)</h2>"))
                #expect(html.contains("href=\"#\(kind.rawValue)\""))
            }
            #expect(html.contains("<title>My &lt;photos&gt;</title>"))
            #expect(html.contains("a &lt;b&gt;&amp;&quot;cat&quot;"))
            #expect(!html.contains("<b>&"))
            // 2 across labels, 1 with a broken profile, 1 tiny, 2 copies, 2 near-duplicates, 1 with its subject outside.
            #expect(html.components(separatedBy: "<img src=\"data:image/jpeg;base64,").count == 10)
            #expect(html.contains("photo crop wide"))
            for word in ["<script", "http:", "https:", "url("] { #expect(!html.contains(word)) }
            let file = root.appending(path: "page.html")
            try AuditReport(audit, title: "My <photos>", workers: Workers(1)).write(to: file)
            #expect(try String(contentsOf: file, encoding: .utf8) == html)
        }
    }

    @Test("Long lists are truncated with a note") func longLists() throws {
        try withTemporaryFolder { root in
            for index in 0..<30 {
                for copy in 0..<(index == 0 ? 15 : 2) {
                    try write(
                        blockImage(UInt64(index), width: 80, height: 64),
                        to: root.appending(path: "l/\(index)-\(copy)z.png"))
                }
            }
            let audit = Audit(try ImageFolder(at: root, minimumLabels: 1), workers: Workers(2))
            let html = AuditReport(audit, title: "t", workers: Workers(2)).html
            #expect(findings(audit)[.copies]?.count == 30)
            #expect(html.contains("and 6 more") && html.contains("and 3 more"))
        }
    }
}
