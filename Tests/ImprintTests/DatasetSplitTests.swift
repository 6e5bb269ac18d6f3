import Foundation
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
}
