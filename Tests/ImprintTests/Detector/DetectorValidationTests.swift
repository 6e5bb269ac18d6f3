import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintTraining

/// Tests of the validation loss of detectors, which chooses the phase of the model.
@Suite("Validation of detectors") struct DetectorValidationTests {
    @Test(
        "The validation loss also covers held-out composites if no validation photo shows the logo",
        arguments: [true, false])
    func loss(showsLogo: Bool) throws {
        try withTemporaryFolder { scratch in
            let artwork = try writeCross(to: scratch)
            let photos = scratch.appending(path: "photos")
            try writeNoise(to: photos, labels: showsLogo ? ["cross", "other"] : ["other"], count: 6) {
                label, image, left, top in
                guard label == "cross" else { return }
                for y in 0..<30 {
                    for x in 0..<30 where (10..<20).contains(x) || (10..<20).contains(y) {
                        let sample = ((top + y) * image.width + left + x) * 3
                        image.samples[sample] = 200
                        (image.samples[sample + 1], image.samples[sample + 2]) = (0, 0)
                    }
                }
            }
            let source = try ImageFolder(at: photos, minimumLabels: 1)
            let result = try trainDetector(["cross": [artwork]], photos: source, steps: [2, 2], poolSize: 8) {
                $0.validation = .fraction(0.34)
            }
            let kept = try #require(result.model.training?.bestEpochMetrics?.validationLoss)
            let logLoss = Float(try #require(result.evaluation).logLoss)
            #expect(showsLogo ? kept == logLoss : abs(kept - logLoss) > 1e-4, "\(kept), \(logLoss)")
        }
    }
}
