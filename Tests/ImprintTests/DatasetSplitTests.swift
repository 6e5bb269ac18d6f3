import Foundation
import ImprintCore
import ImprintImages
import Testing

@testable import ImprintModel
@testable import ImprintTraining

@Suite("Dataset split of a resumed run") struct DatasetSplitTests {
    @Test("Photos whose names differ only in their Unicode normalization stay in their sets") func normalization()
        throws
    {
        var photos = InMemorySource(labels: ["left"])
        for name in ["\u{E9}.jpg", "e\u{301}.jpg"] {
            try photos.append(RasterImage(width: 8, height: 8), labels: ["left"], identifier: name)
        }
        let earlier = Checkpoint.Images(
            digests: [photos.digest], training: ["e\u{301}.jpg"], validation: ["\u{E9}.jpg"], leakage: nil)
        let rule = DatasetSplitRule(
            validation: .split(.fraction(0.5)), keepsGroupsTogether: false, seed: 0, threads: 1)
        let split = try DatasetSplit(photos, rule, earlier: earlier, onEvent: { _ in })
        #expect(split.validation.map(\.url) == [photos.items[0].url])
        #expect(split.training.map(\.url) == [photos.items[1].url])
    }

    @Test(
        "A photo that was unreadable when the run started joins the validation photos that it resembles",
        arguments: [true, false])
    func readableAgain(isReadable: Bool) throws {
        func noise(_ index: Int) -> RasterImage {
            var random = RandomStream(seed: 1, "photo", index)
            return RasterImage(
                width: 20, height: 20, channels: 3,
                samples: (0..<(20 * 20 * 3)).map { _ in UInt8(random.index(below: 256)) })
        }
        var photos = InMemorySource(labels: ["left"])
        // Without numbers, which could be those of a burst.
        let names = "abcdefghijkl".map { "photo \($0)" }
        for (index, name) in names.enumerated() {
            try photos.append(noise(index), labels: ["left"], identifier: name)
        }
        if isReadable {
            try photos.append(noise(0), labels: ["left"], identifier: "photo m")
        } else {
            try photos.append(Data("no image".utf8), labels: ["left"], identifier: "photo m")
        }
        let earlier = Checkpoint.Images(
            digests: [photos.digest], training: Array(names[2...]), validation: Array(names[..<2]),
            leakage: nil)
        let rule = DatasetSplitRule(validation: .split(.fraction(0.2)), keepsGroupsTogether: true, seed: 0, threads: 1)
        var compared = 0
        let split = try DatasetSplit(
            photos, rule, earlier: earlier,
            onEvent: { if case .comparing(let done, _) = $0 { compared = done } })
        let expected = names[..<2] + (isReadable ? ["photo m"] : [])
        #expect(split.validation.map(\.identifier) == Array(expected))
        #expect(split.training.count == (isReadable ? 10 : 11))
        // The photos are compared only if the readable ones have changed.
        #expect(compared == (isReadable ? 13 : 0))
    }
}
