import Foundation
import ImprintCore
import ImprintImages
import Synchronization
import TestSupport
import Testing

@Suite("Batch loader") struct BatchLoaderTests {
    private static let rules = Preprocessing(width: 6, height: 5)
    private static let bytesPerImage = 90
    private let augmentation = Augmentation([.flip, .rotate, .crop])

    /// Creates a folder of noise images with the labels "a" and "b"; the files named in `unreadable` contain text.
    private func withItems<Result>(
        a: Int = 7, b: Int = 4, unreadable: Set<String> = [], _ body: ([TrainingPhoto]) throws -> Result
    ) throws -> Result {
        try withTemporaryFolder { root in
            var items: [TrainingPhoto] = []
            for (label, (name, count)) in [("a", a), ("b", b)].enumerated() {
                for index in 0..<count {
                    let file = "\(name)\(index).png"
                    let url = root.appending(path: file)
                    if unreadable.contains(file) {
                        try Data("not an image".utf8).write(to: url)
                    } else {
                        let seed = UInt64(label * 100 + index)
                        try ImageFile.write(RasterImage.noise(width: 9, height: 7, channels: 3, seed: seed), to: url)
                    }
                    items.append(TrainingPhoto(url: url, label: label))
                }
            }
            return try body(items)
        }
    }

    private func loader(
        _ items: [TrainingPhoto], augmentation: Augmentation? = nil, batchSize: Int = 4, shuffles: Bool = true,
        seed: UInt64 = 1, threads: Int = 1, memoryLimit: Int = 1 << 20
    ) throws -> BatchLoader {
        try BatchLoader(
            items: items, labels: ["a", "b"], preprocessing: Self.rules, augmentation: augmentation,
            batchSize: batchSize, shuffles: shuffles, seed: seed, workers: Workers(threads), memoryLimit: memoryLimit)
    }

    private func epoch(_ loader: BatchLoader, _ epoch: Int = 0) throws -> [CopiedBatch] {
        var batches: [CopiedBatch] = []
        try loader.forEachBatch(epoch: epoch, onUnreadable: { _ in }) { batches.append(CopiedBatch($0)) }
        return batches
    }

    // MARK: Order and content

    @Test("Every image occurs once per epoch, with its label", arguments: [1, 3, 4, 11, 50], [false, true])
    func onceEach(batchSize: Int, shuffles: Bool) throws {
        try withItems { items in
            let loader = try loader(items, batchSize: batchSize, shuffles: shuffles)
            #expect(loader.count == 11)
            for number in 0..<3 {
                let batches = try epoch(loader, number)
                #expect(batches.map(\.indices.count).dropLast().allSatisfy { $0 == batchSize })
                #expect(batches.count == (11 + batchSize - 1) / batchSize)
                let indices = batches.flatMap(\.indices)
                #expect(indices.sorted() == Array(0..<11))
                #expect(shuffles || indices == Array(0..<11))
                #expect(batches.flatMap(\.labels) == indices.map { items[$0].label })
                for batch in batches { #expect(batch.values.count == batch.indices.count * Self.bytesPerImage) }
            }
        }
    }

    @Test("The values are the same as in the preprocessed file") func values() throws {
        try withItems { items in
            for (index, values) in try imagesByIndex(epoch(loader(items))) {
                var expected = [Float](repeating: 0, count: Self.bytesPerImage)
                let image = try Self.rules.prepare(items[index].url)
                expected.withUnsafeMutableBufferPointer { Self.rules.normalize(image, into: $0) }
                #expect(values == expected)
            }
        }
    }

    @Test("Order and augmentation differ between epochs and seeds, and the same seed repeats them")
    func seeds() throws {
        try withItems { items in
            let first = try epoch(loader(items, augmentation: augmentation))
            #expect(try epoch(loader(items, augmentation: augmentation)) == first)
            for (seed, number) in [(1, 1), (2, 0)] {
                let other = try epoch(loader(items, augmentation: augmentation, seed: UInt64(seed)), number)
                #expect(other.flatMap(\.indices) != first.flatMap(\.indices))
                #expect(imagesByIndex(other) != imagesByIndex(first))
            }
        }
    }

    @Test("Epochs may run repeatedly and in any order") func anyEpoch() throws {
        try withItems { items in
            let loader = try loader(items, augmentation: augmentation)
            let inOrder = try (0..<3).map { try epoch(loader, $0) }
            for number in [2, 0, 1, 1] { #expect(try epoch(loader, number) == inOrder[number]) }
        }
    }

    @Test(
        "The batches do not depend on threads or memory", arguments: [1, 2, 4],
        [0, 1, bytesPerImage * 5, bytesPerImage * 11, -1])
    func threadsAndMemory(threads: Int, memoryLimit: Int) throws {
        try withItems(unreadable: ["a2.png", "b0.png"]) { items in
            for batchSize in [2, 5] {
                let expected = try loader(items, augmentation: augmentation, batchSize: batchSize)
                let loader = try loader(
                    items, augmentation: augmentation, batchSize: batchSize, threads: threads, memoryLimit: memoryLimit)
                #expect(loader.items == expected.items)
                #expect(loader.skipped == expected.skipped)
                for number in 0..<2 { #expect(try epoch(loader, number) == epoch(expected, number)) }
            }
        }
    }

    @Test("The augmentation of an image does not depend on its batch", arguments: [1, 3, 11])
    func batchSizes(batchSize: Int) throws {
        try withItems { items in
            let expected = try epoch(loader(items, augmentation: augmentation, batchSize: 4))
            let batches = try epoch(loader(items, augmentation: augmentation, batchSize: batchSize))
            #expect(imagesByIndex(batches) == imagesByIndex(expected))
            #expect(batches.flatMap(\.indices) == expected.flatMap(\.indices))
        }
    }

    @Test("Epochs may run on several threads at once") func concurrentEpochs() throws {
        try withItems { items in
            let loader = try loader(items, augmentation: augmentation, threads: 2, memoryLimit: Self.bytesPerImage * 3)
            let expected = try (0..<4).map { try epoch(loader, $0) }
            let results = Mutex([[CopiedBatch]?](repeating: nil, count: 4))
            DispatchQueue.concurrentPerform(iterations: 4) { number in
                let batches = try? epoch(loader, number)
                results.withLock { $0[number] = batches }
            }
            #expect(results.withLock { $0 } == expected)
        }
    }

    // MARK: Unreadable images

    @Test("Unreadable images are listed with the reason, and all others are loaded", arguments: [1, 3])
    func skipped(threads: Int) throws {
        try withItems(unreadable: ["a1.png", "a6.png", "b3.png"]) { items in
            let loader = try loader(items, threads: threads)
            #expect(loader.count == 8)
            #expect(
                loader.items == items.filter { !["a1.png", "a6.png", "b3.png"].contains($0.url.lastPathComponent) })
            #expect(loader.skipped.map(\.url) == [1, 6, 10].map { items[$0].url })
            for image in loader.skipped { #expect(image.reason == .notAnImage(file: image.url, found: "text")) }
            let indices = try epoch(loader).flatMap(\.indices)
            #expect(indices.sorted() == Array(0..<8))
        }
    }

    @Test("A label without a readable image is an error") func emptyLabel() throws {
        try withItems(b: 2, unreadable: ["b0.png", "b1.png"]) { items in
            let reasons = items[7...].map {
                SkippedImage(url: $0.url, reason: .notAnImage(file: $0.url, found: "text"))
            }
            let error = ImageError.noReadableImages(label: "b", skipped: reasons)
            #expect(throws: error) { try loader(items) }
            for word in ["\"b\"", "b0.png", "b1.png"] { #expect("\(error)".contains(word)) }
        }
    }

    @Test("A label without items is not an error") func absentLabel() throws {
        try withItems(b: 0) { items in
            let loader = try loader(items)
            #expect(loader.count == 7)
        }
    }

    @Test("More than half unreadable images is an error, exactly half is not") func tooMany() throws {
        let half: Set = ["a0.png", "a1.png", "a2.png", "b0.png", "b1.png"]
        try withItems(a: 6, b: 4, unreadable: half) { items in
            let loader = try loader(items)
            #expect(loader.count == 5)
        }
        try withItems(a: 6, b: 4, unreadable: half.union(["a5.png"])) { items in
            let skipped = [0, 1, 2, 5, 6, 7].map { index in
                SkippedImage(url: items[index].url, reason: .notAnImage(file: items[index].url, found: "text"))
            }
            let error = ImageError.tooManyUnreadable(images: 10, skipped: skipped)
            #expect(throws: error) { try loader(items) }
            for word in ["6 of 10", "a0.png", "And 3 more"] { #expect("\(error)".contains(word)) }
        }
    }

    @Test("An image removed between epochs is reported and missing from its batch", arguments: [1, 2])
    func vanished(threads: Int) throws {
        try withItems { items in
            let loader = try loader(items, threads: threads, memoryLimit: Self.bytesPerImage * 3)
            _ = try epoch(loader)
            let removed = items[5].url
            try FileManager.default.removeItem(at: removed)
            var unreadable: [SkippedImage] = []
            var indices: [Int] = []
            try loader.forEachBatch(epoch: 1, onUnreadable: { unreadable.append($0) }) { batch in
                let values = CopiedBatch(batch).values
                for (row, index) in batch.indices.enumerated() {
                    let image = try loader.image(at: index, epoch: 1)
                    var expected = [Float](repeating: 0, count: image.samples.count)
                    expected.withUnsafeMutableBufferPointer { Self.rules.normalize(image, into: $0) }
                    let start = row * expected.count
                    #expect(Array(values[start..<(start + expected.count)]) == expected)
                    #expect(batch.labels[row] == items[index].label)
                }
                indices += batch.indices
            }
            #expect(unreadable.map(\.url) == [removed])
            #expect(indices.sorted() == items.indices.filter { $0 != 5 })
            // Cached images need no file.
            let cached = try self.loader(Array(items[..<3]), memoryLimit: Self.bytesPerImage * 3)
            try FileManager.default.removeItem(at: items[0].url)
            #expect(try epoch(cached).flatMap(\.indices).count == 3)
        }
    }

    @Test("A batch without readable images is skipped") func vanishedBatch() throws {
        try withItems { items in
            let loader = try loader(items, batchSize: 1, memoryLimit: 0)
            try FileManager.default.removeItem(at: items[5].url)
            #expect(try epoch(loader).flatMap(\.indices).sorted() == items.indices.filter { $0 != 5 })
        }
    }

    @Test("If more than half of the images become unreadable, the error names a file") func vanishedFolder() throws {
        try withItems { items in
            let loader = try loader(items, batchSize: 1, memoryLimit: 0)
            for item in items.dropFirst(items.count / 2 - 1) { try FileManager.default.removeItem(at: item.url) }
            let error = #expect(throws: ImageError.self) { try epoch(loader) }
            #expect(error.map { "\($0)".contains("cannot be read") } == true)
        }
    }

    // MARK: Early ends

    @Test("After an early stop the next epoch is complete", arguments: [0, bytesPerImage * 11])
    func earlyStop(memoryLimit: Int) throws {
        try withItems { items in
            let loader = try loader(
                items, augmentation: augmentation, batchSize: 2, threads: 2, memoryLimit: memoryLimit)
            let expected = try epoch(loader, 1)
            for stopAfter in 1...6 {
                var seen = 0
                let batches = loader.batches(epoch: 0)
                while seen < stopAfter, try batches.next(onUnreadable: { _ in }) != nil { seen += 1 }
                #expect(seen == stopAfter)
                #expect(try epoch(loader, 1) == expected)
            }
        }
    }

    @Test("A batch stays valid if its iterator is released") func lifetime() throws {
        try withItems { items in
            let loader = try loader(items)
            let expected = try epoch(loader)[0]
            let batch = try #require(try loader.batches(epoch: 0).next { _ in })
            #expect(CopiedBatch(batch) == expected)
        }
    }

    @Test("Errors of the closure are rethrown, and the next epoch is complete") func throwing() throws {
        struct Failure: Error {}
        try withItems { items in
            let loader = try loader(items, augmentation: augmentation, batchSize: 2, threads: 2, memoryLimit: 0)
            let expected = try epoch(loader, 1)
            for throwAt in 1...6 {
                var seen = 0
                #expect(throws: Failure.self) {
                    try loader.forEachBatch(epoch: 0, onUnreadable: { _ in }) { _ in
                        seen += 1
                        if seen == throwAt { throw Failure() }
                    }
                }
                #expect(seen == throwAt)
                #expect(try epoch(loader, 1) == expected)
            }
        }
    }

    @Test("A loader without items has no batches") func nothing() throws {
        let loader = try loader([])
        #expect(loader.count == 0)
        #expect(try epoch(loader).isEmpty)
    }
}

private struct CopiedBatch: Equatable {
    let values: [Float]
    let labels: [Int]
    let indices: [Int]

    init(_ batch: Batch) {
        // The buffer has space after the images, filled with a value that does not occur in images.
        var values = [Float](repeating: 99, count: (batch.count + 1) * 90)
        values.withUnsafeMutableBufferPointer { batch.write(to: $0) }
        self.values = Array(values.prefix { $0 != 99 })
        labels = batch.labels
        indices = batch.indices
    }
}

private func imagesByIndex(_ batches: [CopiedBatch]) -> [Int: [Float]] {
    var images: [Int: [Float]] = [:]
    for batch in batches {
        let length = batch.values.count / batch.indices.count
        for (row, index) in batch.indices.enumerated() {
            images[index] = Array(batch.values[(row * length)..<((row + 1) * length)])
        }
    }
    return images
}
