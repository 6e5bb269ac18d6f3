import Foundation
import Imprint
import ImprintImages
import Synchronization
import TestSupport
import Testing

@Suite("Image classifier") struct ImageClassifierTests {
    @Test("Evaluating says of a file what classifying says, and both what the file read back says") func consistent()
        throws
    {
        try withPictures(["down", "left", "up"], perLabel: 4) { folder in
            let weights = try train(folder, quickTraining(epochs: 2))
            let images = try ImageFolder(at: folder)
            try withTemporaryFolder { place in
                let url = place.appending(path: "x.imprint")
                try weights.write(to: url)
                let classifier = try ImageClassifier(weights)
                let readBack = try ImageClassifier(contentsOf: url)
                for threads in [1, 3] {
                    let evaluation = try classifier.evaluate(on: images, threads: threads)
                    #expect(evaluation.results.map(\.url) == images.items.map(\.url))
                    for (result, item) in zip(evaluation.results, images.items) {
                        let observations = try classifier.classify(item.url)
                        #expect(try readBack.classify(item.url) == observations)
                        #expect(result.label == item.label)
                        #expect(observations[0].label == weights.labels[result.predicted])
                        for observation in observations {
                            let place = try #require(weights.labels.firstIndex(of: observation.label))
                            #expect(result.confidences[place] == observation.confidence)
                        }
                        #expect(observations.map(\.confidence) == result.confidences.sorted(by: >))
                        #expect(abs(result.confidences.reduce(0, +) - 1) < 1e-5)
                    }
                }
            }
        }
    }

    @Test("A model whose numbers overflow is an error, for an image and for a folder of them") func overflow() throws {
        try withPictures(perLabel: 2) { folder in
            let weights = try train(folder, quickTraining(epochs: 1))
            for entry in weights.parameters.layout.entries {
                weights.parameters[entry.name] = Array(repeating: 1e30, count: entry.parameter.count)
            }
            let classifier = try ImageClassifier(weights)
            let error = ImprintError.noConfidence(network: "logonet")
            #expect(throws: error) { try classifier.classify(RasterImage(width: 16, height: 16, filledWith: 255)) }
            #expect(throws: error) { try classifier.evaluate(on: ImageFolder(at: folder)) }
        }
    }

    @Test("A classifier may be used from several threads at once") func concurrent() throws {
        try withPictures(perLabel: 8) { folder in
            let classifier = try ImageClassifier(train(folder, quickTraining(epochs: 1)))
            let files = try ImageFolder(at: folder).items.map(\.url)
            let expected = try files.map { try classifier.classify($0) }
            let results = Mutex([[[Classification]]?](repeating: nil, count: 4))
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                let observations = try? files.map { try classifier.classify($0) }
                results.withLock { $0[thread] = observations }
            }
            #expect(results.withLock { $0 } == Array(repeating: expected, count: 4))
        }
    }
}
