import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite struct MirroredTests {
    /// Returns a model whose outputs change if the image is mirrored.
    private func asymmetricModel(_ last: some Layer, labels: [String]) throws -> ModelFile {
        var net = NetworkBuilder(name: "sides", input: TensorShape(height: 2, width: 3, channels: 3))
        net.add(Flatten())
        net.add(Dense(outputChannels: labels.count))
        net.add(last)
        let network = try net.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 7), labels: labels,
            preprocessing: Preprocessing(width: 3, height: 2))
    }

    private let image = RasterImage(
        width: 3, height: 2, channels: 3, samples: (0..<18).map { UInt8(truncatingIfNeeded: $0 * 53) })

    @Test("Mirroring swaps left and right; mirroring twice restores the image")
    func mirrored() {
        let pixels = RasterImage(width: 3, height: 2, channels: 1, samples: [1, 2, 3, 4, 5, 6])
        #expect(pixels.mirrored.samples == [3, 2, 1, 6, 5, 4])
        #expect(image.mirrored.mirrored == image && image.mirrored != image)
    }

    @Test(
        "Test-time augmentation averages the logits, for softmax and sigmoid outputs", arguments: [true, false])
    func mean(isSoftmax: Bool) throws {
        let labels = ["a", "b", "c"]
        let model =
            isSoftmax
            ? try asymmetricModel(Softmax(), labels: labels) : try asymmetricModel(Sigmoid(), labels: labels)
        func confidences(_ classifier: ImageClassifier, _ image: RasterImage) throws -> [Float] {
            let classifications = try classifier.classify(image)
            return labels.map { label in classifications.first { $0.label == label }?.confidence ?? -1 }
        }
        let plain = try ImageClassifier(model)
        let pairs = zip(try confidences(plain, image), try confidences(plain, image.mirrored))
        let averaging = try ImageClassifier(model, averagesFlipped: true)
        let found = try confidences(averaging, image)
        #expect(found == (try confidences(averaging, image.mirrored)))
        let expected: [Float]
        if isSoftmax {
            let odds = pairs.map { exp((log($0) + log($1)) / 2) }
            expected = odds.map { $0 / odds.reduce(0, +) }
        } else {
            expected = pairs.map { p, q in 1 / (1 + exp(-(log(p / (1 - p)) + log(q / (1 - q))) / 2)) }
        }
        for (found, expected) in zip(found, expected) { #expect(abs(found - expected) < 1e-5) }
        // Personalized classifiers inherit the setting.
        #expect(try averaging.personalized(with: nil).averagesFlipped)
    }
}
