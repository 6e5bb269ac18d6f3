import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@Suite("Batch loader: early ends") struct BatchLoaderEndTests {
    /// Writes `count` images of each label; the files named in `unreadable` contain text.
    private func withItems<Result>(
        labels: Int, count: Int, unreadable: Set<String>, _ body: ([TrainingPhoto]) throws -> Result
    ) throws -> Result {
        try withTemporaryFolder { root in
            var items: [TrainingPhoto] = []
            for label in 0..<labels {
                for index in 0..<count {
                    let name = "\(label)-\(index).png"
                    let url = root.appending(path: name)
                    if unreadable.contains(name) {
                        try Data("not an image".utf8).write(to: url)
                    } else {
                        try ImageFile.write(RasterImage.noise(width: 40, height: 30, channels: 3), to: url)
                    }
                    items.append(TrainingPhoto(url: url, label: label))
                }
            }
            return try body(items)
        }
    }

    private func loader(_ items: [TrainingPhoto], labels: [String]) throws -> BatchLoader {
        try BatchLoader(
            items: items, labels: labels, preprocessing: Preprocessing(width: 24, height: 24), batchSize: 4,
            shuffles: true, seed: 1, workers: Workers(2), memoryLimit: 0)
    }

    @Test("The error for a label without a readable image lists only the files of this label") func emptyLabel()
        throws
    {
        let unreadable: Set = ["0-1.png", "1-0.png", "1-1.png", "1-2.png", "1-3.png", "2-3.png"]
        try withItems(labels: 4, count: 4, unreadable: unreadable) { items in
            let error = #expect(throws: ImageError.self) { try loader(items, labels: ["a", "b", "c", "d"]) }
            let reasons = items[4..<8].map {
                SkippedImage(url: $0.url, reason: .notAnImage(file: $0.url, found: "text"))
            }
            #expect(error == .noReadableImages(label: "b", skipped: reasons))
            let text = error.map { "\($0)" } ?? ""
            for part in ["\"b\"", "4 in all", "1-0.png", "1-1.png", "1-2.png", "And 1 more"] {
                #expect(text.contains(part))
            }
            for name in ["0-1.png", "2-3.png"] { #expect(!text.contains(name)) }
        }
    }

    @Test("Background reading ends after an early stop or an error", arguments: [false, true]) func earlyEnd(
        throwing: Bool
    )
        throws
    {
        struct Stop: Error {}
        try withItems(labels: 2, count: 10, unreadable: []) { items in
            for _ in 0..<20 {
                var running: BatchLoader? = try loader(items, labels: ["a", "b"])
                // A background task that fills a batch holds a reference to the loader.
                weak let unreleased = running
                do {
                    if throwing {
                        try running?.forEachBatch(epoch: 0, onUnreadable: { _ in }) { _ in throw Stop() }
                    } else {
                        _ = try running?.batches(epoch: 0).next { _ in }
                    }
                } catch is Stop {}
                running = nil
                #expect(unreleased == nil)
            }
        }
    }
}
