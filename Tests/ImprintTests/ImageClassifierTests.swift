import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import Synchronization
import TestSupport
import Testing

@Suite("Image classifier") struct ImageClassifierTests {
    @Test("Evaluation, classification and the saved and reloaded model give the same confidences")
    func consistent() throws {
        try withImages(["down", "left", "up"], perLabel: 4) { folder in
            let model = try train(folder, quickTraining(epochs: 2))
            let images = try ImageFolder(at: folder)
            try withTemporaryFolder { scratch in
                let url = scratch.appending(path: "x.imprint")
                try model.write(to: url)
                let classifier = try ImageClassifier(model)
                let readBack = try ImageClassifier(contentsOf: url)
                for threads in [1, 3] {
                    let evaluation = try classifier.evaluate(on: images, threads: threads)
                    #expect(evaluation.results.map(\.url) == images.items.map(\.url))
                    for (result, item) in zip(evaluation.results, images.items) {
                        let classifications = try classifier.classify(item.url)
                        #expect(try readBack.classify(item.url) == classifications)
                        #expect(result.label == item.label)
                        #expect(classifications[0].label == model.labels[result.predicted])
                        for classification in classifications {
                            let label = try #require(model.labels.firstIndex(of: classification.label))
                            #expect(result.confidences[label] == classification.confidence)
                        }
                        #expect(classifications.map(\.confidence) == result.confidences.sorted(by: >))
                        #expect(abs(result.confidences.reduce(0, +) - 1) < 1e-5)
                    }
                }
            }
        }
    }

    @Test(
        "A model whose labels or preprocessing do not match its network is rejected",
        arguments: [
            (["a", "b"], 6, .labelCount(found: 2, outputs: 3)),
            (["a", "b", "c", "d"], 6, .labelCount(found: 4, outputs: 3)),
            (["a", "b", "a"], 6, .duplicateLabel("a")),
            (
                ["a", "b", "c"], 7,
                .inputShape(
                    found: TensorShape(height: 4, width: 7, channels: 3),
                    expected: TensorShape(height: 4, width: 6, channels: 3))
            ),
        ] as [([String], Int, ModelFileError.Problem)])
    func mismatch(labels: [String], width: Int, problem: ModelFileError.Problem) throws {
        let model = try smallModel().model
        let other = ModelFile(
            network: model.network, parameters: model.parameters, labels: labels,
            preprocessing: Preprocessing(width: width, height: 4))
        #expect(throws: ModelFileError(path: "the model small", problem: problem)) { try ImageClassifier(other) }
    }

    @Test(
        "A label that differs only in case, spaces or Unicode form is found",
        arguments: [
            ("left  Arrow", "left arrow"), ("\u{FF32}ing", "Ring"),
            ("ring", "Ring"), (" RING\n", "Ring"), ("Left arrow", "left arrow"), ("ÄRGER ", "ärger"), ("Ring", nil),
            ("rings", nil), ("", nil),
        ] as [(String, String?)])
    func similarLabels(text: String, label: String?) throws {
        let classifier = try smallModel(labels: ["Ring", "left arrow", "ärger"])
        #expect(classifier.similarLabel(to: text) == label)
    }

    @Test("A network without one score per label is not a classifier") func notAClassifier() throws {
        var builder = NetworkBuilder(name: "maps", input: TensorShape(height: 4, width: 6, channels: 3))
        builder.add(Convolution(outputChannels: 2, kernelSize: 1))
        let network = try builder.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 6, height: 4))
        let error = NetworkError.notAClassifier(network: "maps", output: TensorShape(height: 4, width: 6, channels: 2))
        #expect(throws: ModelFileError(path: "the model maps", problem: .notAClassifier(error))) {
            try ImageClassifier(model)
        }
    }

    @Test("Classification and evaluation fail if the model's output is not finite") func overflow() throws {
        try withImages(perLabel: 2) { folder in
            let model = try train(folder, quickTraining(epochs: 1))
            for entry in model.parameters.layout.entries {
                model.parameters[entry.name] = Array(repeating: 1e30, count: entry.parameter.count)
            }
            let classifier = try ImageClassifier(model)
            let error = ImprintError.nonFiniteOutput(network: "logonet")
            #expect(throws: error) { try classifier.classify(RasterImage(width: 16, height: 16, filledWith: 255)) }
            #expect(throws: error) { try classifier.evaluate(on: ImageFolder(at: folder)) }
        }
    }

    @Test("Several threads can use a classifier at once") func concurrent() throws {
        try withImages(perLabel: 8) { folder in
            let classifier = try ImageClassifier(train(folder, quickTraining(epochs: 1)))
            let files = try ImageFolder(at: folder).items.map(\.url)
            let expected = try files.map { try classifier.classify($0) }
            let results = Mutex([[[Classification]]?](repeating: nil, count: 4))
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                let classifications = try? files.map { try classifier.classify($0) }
                results.withLock { $0[thread] = classifications }
            }
            #expect(results.withLock { $0 } == Array(repeating: expected, count: 4))
        }
    }
}
