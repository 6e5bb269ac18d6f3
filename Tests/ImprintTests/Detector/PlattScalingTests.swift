import Foundation
import ImprintCore
import Testing

@testable import Imprint
@testable import ImprintImages
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

@Suite struct PlattScalingTests {
    private func confidence(_ calibration: PlattScaling, _ score: Double) -> Double {
        1 / (1 + exp(-(calibration.slope * score + calibration.offset)))
    }

    @Test("Fitting recovers the curve that the scores were sampled from") func recovers() {
        var stream = RandomStream(seed: 2, "scores")
        var (positives, negatives): ([Float], [Float]) = ([], [])
        while positives.count + negatives.count < 20_000 {
            let score = stream.uniform(in: -6...10)
            let chance = Float(1 / (1 + exp(-(0.8 * (Double(score) - 2)))))
            if stream.chance(chance) { positives.append(score) } else { negatives.append(score) }
        }
        let calibration = PlattScaling(positives: positives, negatives: negatives)
        #expect(abs(calibration.slope - 0.8) < 0.05)
        #expect(abs(-calibration.offset / calibration.slope - 2) < 0.15)
    }

    @Test("Separable scores lead to high confidences below 1, with the middle of the curve between the scores")
    func separable() {
        let calibration = PlattScaling(positives: [8, 9, 10], negatives: [-3, -2, 0])
        #expect(confidence(calibration, 9) > 0.7 && confidence(calibration, 9) < 1)
        #expect(confidence(calibration, -2) < 0.3)
        #expect((0...8).contains(-calibration.offset / calibration.slope))
    }

    @Test("The slope is always positive, and without positives or negatives the curve is the default")
    func degenerate() {
        #expect(PlattScaling(positives: [1, 2], negatives: [3, 4]).slope > 0)
        #expect(PlattScaling(positives: [1], negatives: [1]).slope > 0)
        #expect(PlattScaling(positives: [], negatives: [1]) == PlattScaling(positives: [], negatives: []))
    }

    @Test("The loss is the cross-entropy, and weighs both kinds of scores equally, even far from the curve")
    func loss() {
        var curve = PlattScaling(positives: [], negatives: [])
        #expect(abs(curve.loss(positives: [0, 0, 0], negatives: [0]) - log(2)) < 1e-12)
        (curve.slope, curve.offset) = (2, 1)
        let expected = (log(1 + exp(-3.0)) + (log(1 + exp(1.0)) + log(1 + exp(-3.0))) / 2) / 2
        #expect(abs(curve.loss(positives: [1], negatives: [0, -2]) - expected) < 1e-12)
        #expect(curve.loss(positives: [-1000], negatives: [-1000]) == 999.5)
    }
}
