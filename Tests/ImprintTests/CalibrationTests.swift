import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import Testing

@Suite struct CalibrationTests {
    /// Returns random logits, and labels sampled from the softmax of the logits divided by `temperature`.
    private func sample(
        images: Int, labels: Int, temperature: Double
    ) -> (logits: [[Float]], labels: [Int]) {
        let calibrated = Calibration(temperature: temperature, errorBefore: 0, errorAfter: 0, images: 0)
        var sample: (logits: [[Float]], labels: [Int]) = ([], [])
        for image in 0..<images {
            var stream = RandomStream(seed: 3, "sample", image)
            let logits = (0..<labels).map { _ in 3 * Float(temperature) * stream.normal() }
            var left = stream.uniform()
            let label = calibrated.confidences(logits).firstIndex { confidence in
                left -= confidence
                return left < 0
            }
            sample.logits.append(logits)
            sample.labels.append(label ?? labels - 1)
        }
        return sample
    }

    @Test(
        "Fitting recovers the temperature of an overconfident or underconfident network",
        arguments: [(2, 1.0), (2, 3.0), (5, 0.25), (100, 1.0), (100, 2.5)])
    func found(labels: Int, temperature: Double) throws {
        let sample = sample(images: 1500, labels: labels, temperature: temperature)
        let calibration = try #require(Calibration(logits: sample.logits, labels: sample.labels))
        #expect(abs(log(calibration.temperature / temperature)) < 0.12)
        #expect(calibration.errorAfter < 0.05)
        if temperature != 1 { #expect(calibration.errorAfter < calibration.errorBefore / 2) }
        #expect(calibration.images == 1500)
    }

    @Test("Without any misclassified image the temperature stays in bounds and confidences stay below 1")
    func withoutErrors() throws {
        let logits: [[Float]] = (0..<50).map { $0 % 2 == 0 ? [5, 0] : [0, 5] }
        let calibration = try #require(Calibration(logits: logits, labels: (0..<50).map { $0 % 2 }))
        // All images have the same confidence, so it equals the smoothed target: 51 / 52, and T = 5 / log 51.
        #expect(abs(calibration.temperature - 5 / log(51)) < 1e-9)
        #expect(abs(calibration.confidences([5, 0])[0] - 51.0 / 52) < 1e-6)
    }

    @Test("The temperature is limited to its bounds, and 1 if all logits of an image are equal")
    func bounds() throws {
        let wrong = try #require(Calibration(logits: [[5, 0], [0, 5]], labels: [1, 0]))
        #expect(abs(wrong.temperature - 100) < 1e-6)
        let underconfident = try #require(
            Calibration(logits: Array(repeating: [1e-4, 0], count: 100), labels: Array(repeating: 0, count: 100)))
        #expect(abs(underconfident.temperature - 0.01) < 1e-9)
        let constant = try #require(Calibration(logits: [[0.3, 0.3, 0.3], [7, 7, 7]], labels: [1, 0]))
        #expect(constant.temperature == 1)
        let single = try #require(Calibration(logits: [[2], [3]], labels: [0, 0]))
        #expect(single.temperature == 1 && single.errorAfter == 0)
    }

    @Test(
        "Logits of any magnitude do not overflow, and the temperature scales with them",
        arguments: [Float(1e-3), 1, 1e6, 1e30])
    func magnitudes(factor: Float) throws {
        let sample = sample(images: 300, labels: 3, temperature: 1)
        let plain = try #require(Calibration(logits: sample.logits, labels: sample.labels))
        let scaled = try #require(
            Calibration(logits: sample.logits.map { $0.map { $0 * factor } }, labels: sample.labels))
        let expected = min(max(plain.temperature * Double(factor), 0.01), 100)
        #expect(abs(scaled.temperature / expected - 1) < 1e-5)
    }

    @Test("There is no calibration without images, or if logits are not finite")
    func noCalibration() {
        #expect(Calibration(logits: [], labels: []) == nil)
        #expect(Calibration(logits: [[1, .nan]], labels: [0]) == nil)
        #expect(Calibration(logits: [[1, .infinity]], labels: [0]) == nil)
    }

    @Test("Calibrated confidences are the softmax of logits divided by the temperature")
    func confidences() {
        let calibration = Calibration(temperature: 2, errorBefore: 0, errorAfter: 0, images: 1)
        let confidences = calibration.confidences([2, 0, 1000])
        #expect(confidences == [0, 0, 1])
        let two = calibration.confidences([2 * Float(log(3.0)), 0])
        #expect(abs(two[0] - 0.75) < 1e-6 && abs(two[1] - 0.25) < 1e-6)
    }

    @Test("A calibrated model has the predicted calibration error, and the same predictions as before")
    func folded() throws {
        try withImages(["down", "left", "up"], perLabel: 8) { folder in
            let model = try train(folder, quickTraining(epochs: 4))
            let images = try ImageFolder(at: folder)
            let before = try ImageClassifier(model).evaluate(on: images)
            // log p equals the logits up to a constant, which does not change the softmax.
            let logits = before.results.map { $0.confidences.map { log($0) } }
            let calibration = try #require(Calibration(logits: logits, labels: before.results.map(\.label)))
            #expect(abs(calibration.temperature - 1) > 0.01)
            #expect(abs(calibration.errorBefore - before.calibrationError) < 1e-4)
            let calibrated = try #require(try model.calibrated(calibration.temperature))
            let after = try ImageClassifier(calibrated).evaluate(on: images)
            #expect(abs(calibration.errorAfter - after.calibrationError) < 1e-4)
            #expect(after.results.map(\.predicted) == before.results.map(\.predicted))
            #expect(after.logLoss < before.logLoss)
            for (result, logits) in zip(after.results, logits) {
                for (found, expected) in zip(result.confidences, calibration.confidences(logits)) {
                    #expect(abs(found - expected) < 1e-5)
                }
            }
        }
    }
}
