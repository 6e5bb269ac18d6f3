import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import Testing

@Suite struct CalibrationTests {
    /// Logits, and labels drawn with the probabilities that these logits divided by `temperature` give.
    private func sample(
        images: Int, labels: Int, temperature: Double
    ) -> (logits: [[Float]], labels: [Int]) {
        let honest = Calibration(temperature: temperature, errorBefore: 0, errorAfter: 0, images: 0)
        var sample: (logits: [[Float]], labels: [Int]) = ([], [])
        for image in 0..<images {
            var stream = RandomStream(seed: 3, "sample", image)
            let logits = (0..<labels).map { _ in 3 * Float(temperature) * stream.normal() }
            var left = stream.uniform()
            let label = honest.confidences(logits).firstIndex { confidence in
                left -= confidence
                return left < 0
            }
            sample.logits.append(logits)
            sample.labels.append(label ?? labels - 1)
        }
        return sample
    }

    @Test(
        "The temperature by which a network is too sure, or not sure enough, is found",
        arguments: [(2, 1.0), (2, 3.0), (5, 0.25), (100, 1.0), (100, 2.5)])
    func found(labels: Int, temperature: Double) throws {
        let sample = sample(images: 1500, labels: labels, temperature: temperature)
        let calibration = try #require(Calibration(logits: sample.logits, labels: sample.labels))
        #expect(abs(log(calibration.temperature / temperature)) < 0.12)
        #expect(calibration.errorAfter < 0.05)
        if temperature != 1 { #expect(calibration.errorAfter < calibration.errorBefore / 2) }
        #expect(calibration.images == 1500)
    }

    @Test("Images without a mistake leave the temperature in bounds, and confidences below 1")
    func withoutMistakes() throws {
        let logits: [[Float]] = (0..<50).map { $0 % 2 == 0 ? [5, 0] : [0, 5] }
        let calibration = try #require(Calibration(logits: logits, labels: (0..<50).map { $0 % 2 }))
        // All images are alike, so the confidence is the target: 51 / 52, and T = 5 / log 51.
        #expect(abs(calibration.temperature - 5 / log(51)) < 1e-9)
        #expect(abs(calibration.confidences([5, 0])[0] - 51.0 / 52) < 1e-6)
    }

    @Test("A network worse than chance is as unsure as the bounds allow, one that says nothing stays as it is")
    func bounds() throws {
        let wrong = try #require(Calibration(logits: [[5, 0], [0, 5]], labels: [1, 0]))
        #expect(abs(wrong.temperature - 100) < 1e-6)
        let hesitant = try #require(
            Calibration(logits: Array(repeating: [1e-4, 0], count: 100), labels: Array(repeating: 0, count: 100)))
        #expect(abs(hesitant.temperature - 0.01) < 1e-9)
        let silent = try #require(Calibration(logits: [[0.3, 0.3, 0.3], [7, 7, 7]], labels: [1, 0]))
        #expect(silent.temperature == 1)
        let single = try #require(Calibration(logits: [[2], [3]], labels: [0, 0]))
        #expect(single.temperature == 1 && single.errorAfter == 0)
    }

    @Test("Logits of any size neither overflow nor lose the temperature", arguments: [Float(1e-3), 1, 1e6, 1e30])
    func sizes(factor: Float) throws {
        let sample = sample(images: 300, labels: 3, temperature: 1)
        let plain = try #require(Calibration(logits: sample.logits, labels: sample.labels))
        let scaled = try #require(
            Calibration(logits: sample.logits.map { $0.map { $0 * factor } }, labels: sample.labels))
        let expected = min(max(plain.temperature * Double(factor), 0.01), 100)
        #expect(abs(scaled.temperature / expected - 1) < 1e-5)
    }

    @Test("Nothing is found without images, or where logits are no numbers")
    func nothing() {
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

    @Test("A model with the temperature folded in has the calibration error that was found, and the same predictions")
    func folded() throws {
        try withPictures(["down", "left", "up"], perLabel: 8) { folder in
            let weights = try train(folder, quickTraining(epochs: 4))
            let images = try ImageFolder(at: folder)
            let before = try ImageClassifier(weights).evaluate(on: images)
            // log p is the logits but for a constant, which softmax does not see.
            let logits = before.results.map { $0.confidences.map { log($0) } }
            let calibration = try #require(Calibration(logits: logits, labels: before.results.map(\.label)))
            #expect(abs(calibration.temperature - 1) > 0.01)
            #expect(abs(calibration.errorBefore - before.calibrationError) < 1e-4)
            let calibrated = try #require(try weights.calibrated(calibration.temperature))
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
