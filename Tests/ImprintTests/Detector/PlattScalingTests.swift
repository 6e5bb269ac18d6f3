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

@Suite struct SpotCalibrationTests {
    private func confidence(_ calibration: PlattScaling, _ score: Double) -> Double {
        1 / (1 + exp(-(calibration.slope * score + calibration.offset)))
    }

    @Test("The curve that scores were drawn from is found again") func recovers() {
        var stream = RandomStream(seed: 2, "scores")
        var (with, without): ([Float], [Float]) = ([], [])
        while with.count + without.count < 20_000 {
            let score = stream.uniform(in: -6...10)
            let chance = Float(1 / (1 + exp(-(0.8 * (Double(score) - 2)))))
            if stream.chance(chance) { with.append(score) } else { without.append(score) }
        }
        let calibration = PlattScaling(with: with, without: without)
        #expect(abs(calibration.slope - 0.8) < 0.05)
        #expect(abs(-calibration.offset / calibration.slope - 2) < 0.15)
    }

    @Test("Separate scores give a curve that is sure but not certain, between them") func separate() {
        let calibration = PlattScaling(with: [8, 9, 10], without: [-3, -2, 0])
        #expect(confidence(calibration, 9) > 0.7 && confidence(calibration, 9) < 1)
        #expect(confidence(calibration, -2) < 0.3)
        #expect((0...8).contains(-calibration.offset / calibration.slope))
    }

    @Test("More of the mark is never less, and without scores there is a plain curve") func degenerate() {
        #expect(PlattScaling(with: [1, 2], without: [3, 4]).slope > 0)
        #expect(PlattScaling(with: [1], without: [1]).slope > 0)
        #expect(PlattScaling(with: [], without: [1]) == PlattScaling(with: [], without: []))
    }
}
