import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import Testing

@testable import Imprint

@Suite("Batches of predictions") struct BatchPredictorTests {
    /// Returns noise images of different sizes.
    private func images(_ count: Int) -> [RasterImage] {
        (0..<count).map { number in
            var stream = RandomStream(seed: 3, "batch", number)
            var image = RasterImage(width: 20 + number, height: 24)
            for index in image.samples.indices { image.samples[index] = UInt8(stream.index(below: 256)) }
            return image
        }
    }

    private func model(activation: any Layer = Softmax()) throws -> ModelFile {
        var builder = NetworkBuilder(name: "small", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 8, kernelSize: 3, padding: .same), named: "convolution")
        builder.add(ReLU(), named: "relu")
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Dense(outputChannels: 3), named: "head")
        builder.add(activation, named: "confidence")
        let network = try builder.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 5), labels: ["a", "b", "c"],
            preprocessing: Preprocessing(width: 16, height: 16))
    }

    @Test(
        "A batch has the predictions of its images, for any batch size, with threads and with test-time augmentation",
        arguments: [false, true], [1, 2])
    func sameAsSingle(averagesFlipped: Bool, threads: Int) throws {
        for activation in [Softmax(), Sigmoid()] as [any Layer] {
            let classifier = try ImageClassifier(
                model(activation: activation), threads: threads, averagesFlipped: averagesFlipped)
            let predictor = try classifier.batchPredictor(maximumBatchSize: 5)
            let images = images(5)
            let expected = try images.map {
                try classifier.predictor.predict(StoredImage($0), cropAndScale: nil).confidences
            }
            for count in [5, 1, 3] {
                let found = predictor.predict(images.prefix(count).map { .image(.image($0)) })
                #expect(found.count == count)
                for (result, expected) in zip(found, expected) {
                    let confidences = try result.get().confidences
                    #expect(zip(confidences, expected).allSatisfy { abs($0 - $1) < 1e-6 })
                }
            }
        }
    }

    @Test("Values are the input of the network after preprocessing", arguments: [false, true])
    func values(averagesFlipped: Bool) throws {
        let model = try model()
        let classifier = try ImageClassifier(model, averagesFlipped: averagesFlipped)
        let predictor = try classifier.batchPredictor(maximumBatchSize: 2)
        let image = model.preprocessing.prepare(images(1)[0])
        var values = [Float](repeating: 0, count: 16 * 16 * 3)
        values.withUnsafeMutableBufferPointer { model.preprocessing.normalize(image, into: $0) }
        let results = try predictor.predict([
            .values(values.withUnsafeBytes { Data($0) }), .image(.image(image)),
        ]).map { try $0.get().confidences }
        #expect(results[0] == results[1])
    }

    @Test("An unreadable image and values that are not finite are errors of these inputs only") func errors() throws {
        let predictor = try ImageClassifier(model()).batchPredictor(maximumBatchSize: 4)
        let infinite = [Float](repeating: .infinity, count: 16 * 16 * 3).withUnsafeBytes { Data($0) }
        let images = images(2).map { BatchInput.image(.image($0)) }
        let results = predictor.predict([.image(.data(Data("x".utf8))), images[0], .values(infinite), images[1]])
        #expect(throws: ImageError.self) { try results[0].get() }
        #expect(throws: ImprintError.nonFiniteOutput(network: "small")) { try results[2].get() }
        let expected = predictor.predict(images)
        #expect(try results[1].get().confidences == expected[0].get().confidences)
        #expect(try results[3].get().confidences == expected[1].get().confidences)
    }

    @Test("A batch of a detector has the predictions of its images", arguments: [1, 2])
    func detector(threads: Int) throws {
        let network = try Network.logoDetector(logos: 1)
        let model = try ModelFile(
            network: network, parameters: Parameters(network, seed: 2), labels: ["none", "logo"],
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill),
            detector: DetectorHead(
                levels: [96, 136], stride: 16, span: 44,
                logos: [DetectorHead.Logo(label: "logo", slope: 0.5, offset: -1)]))
        let classifier = try ImageClassifier(model, threads: threads)
        let predictor = try classifier.batchPredictor(maximumBatchSize: 3)
        let images = images(3)
        for count in [1, 3] {
            let found = try predictor.predict(images.prefix(count).map { .image(.image($0)) }).map { try $0.get() }
            for (prediction, image) in zip(found, images) {
                let expected = try classifier.predictor.predict(StoredImage(image), cropAndScale: nil)
                #expect(prediction.confidences == expected.confidences && prediction.objects == expected.objects)
            }
        }
    }
}
