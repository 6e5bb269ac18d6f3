import Foundation
import Testing

@testable import ImprintTraining

/// The calibration of added logos on images without them.
@Suite struct FalsePositiveLimitTests {
    private func confidence(_ score: Float, _ curve: PlattScaling) -> Double {
        1 / (1 + exp(-(curve.slope * Double(score) + curve.offset)))
    }

    /// 100 images with and without the logo, whose scores overlap.
    private let positives = (0..<100).map { 1 + Float($0) / 25 }
    private let negatives = (0..<100).map { -3 + Float($0) / 20 }

    @Test("At 0.5, fewer than 5 % of the images without the logo have a detection, and most others are candidates")
    func rate() {
        let plain = PlattScaling(positives: positives, negatives: negatives)
        #expect(negatives.count { confidence($0, plain) >= 0.5 } > 5)
        var limit = FalsePositiveLimit()
        limit.add(negatives.map { [$0, $0 - 2] })
        let curve = limit.applied(to: plain, positives: positives)
        #expect(negatives.count { confidence($0, curve) >= 0.5 } == 4)
        #expect(positives.count { confidence($0, curve) >= 0.5 } > 70)
        #expect(curve.slope > 0 && curve.slope <= plain.slope)
    }

    @Test("A limit far above the scores of the logo keeps 95 % of its images as candidates") func candidates() {
        let plain = PlattScaling(positives: positives, negatives: negatives)
        var limit = FalsePositiveLimit()
        limit.add([[40], [-1]])
        let curve = limit.applied(to: plain, positives: positives)
        #expect(confidence(40, curve) < 0.5)
        #expect(positives.count { confidence($0, curve) > 0.01 } >= 95)
    }

    @Test("Several false positives in an image count, and the strictest kind of images decides") func kinds() {
        var limit = FalsePositiveLimit()
        limit.add([])
        limit.add([[], []])
        #expect(limit.score == -.infinity)
        // Five false positives in 100 images are one too many, also if they are in one image.
        limit.add([[5, 4, 3, 2, 1]] + (0..<99).map { _ in [0] })
        #expect(limit.score == 1)
        limit.add((0..<10).map { [Float($0) / 10] })
        #expect(limit.score == 1)
        limit.add([[7]])
        #expect(limit.score == 7)
    }

    @Test("A curve with few false positives does not change") func unchanged() {
        let plain = PlattScaling(positives: positives.map { $0 + 9 }, negatives: negatives)
        var limit = FalsePositiveLimit()
        #expect(limit.applied(to: plain, positives: positives) == plain)
        limit.add(negatives.map { [$0] })
        #expect(limit.applied(to: plain, positives: positives) == plain)
    }
}
