import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// As the plugin makes it of a file.
private struct Shapes: TypedModel {
    enum Label: String, CaseIterable, Sendable {
        case circle = "a circle"
        case square = "a square"
    }

    let classifier: ImageClassifier

    init(_ classifier: ImageClassifier) throws { self.classifier = try Self.checked(classifier) }
}

@Suite struct TypedModelTests {
    private func weights(_ labels: [String]) throws -> ModelFile {
        let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 5), labels: labels,
            preprocessing: Preprocessing(width: 16, height: 16))
    }

    @Test("A typed model says what its classifier says, in either order of the labels")
    func classify() async throws {
        let image = RasterImage(width: 20, height: 20, filledWith: 90)
        for labels in [["a circle", "a square"], ["a square", "a circle"]] {
            let classifier = try ImageClassifier(weights(labels))
            let (expected, shapes) = (try classifier.classify(image), try Shapes(classifier))
            let seen = try await shapes.classify(.image(image))
            #expect(seen.map(\.observation) == expected)
            #expect(seen.map(\.label.rawValue) == expected.map(\.label))
            #expect(seen.map(\.confidence) == expected.map(\.confidence))
            #expect(try await shapes.best(in: .image(image)) == seen[0])
            let sure = ConfidenceRule(threshold: .confidence(seen[0].confidence.nextUp))
            #expect(try await shapes.best(in: .image(image), rule: sure) == nil)
            let half = ConfidenceRule(threshold: .confidence(seen[0].confidence))
            #expect(try await shapes.classify(.image(image), rule: half) == [seen[0]])
        }
    }

    @Test("A model with other labels is refused, and the sentence names the file and the labels")
    func otherLabels() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "Shapes.imprint")
            try weights(["a square", "a circle"]).write(to: file)
            #expect(try Shapes(contentsOf: file).classifier.labels == ["a square", "a circle"])
            for (labels, missing, unknown) in [
                (["a circle", "a triangle"], ["a square"], ["a triangle"]), (["a circle"], ["a square"], []),
                (["a circle", "a square", "Other"], [], ["Other"]),
            ] {
                try weights(labels).write(to: file)
                let error = #expect(throws: TypedModelError.self) { try Shapes(contentsOf: file) }
                #expect(
                    error == .otherLabels(model: file.path, type: "Shapes", missing: missing, unknown: unknown))
                #expect(throws: TypedModelError.self) { try Shapes(ImageClassifier(weights(labels))) }
            }
            try weights(["a circle", "a triangle"]).write(to: file)
            #expect(
                #expect(throws: TypedModelError.self) { try Shapes(contentsOf: file) }?.description
                    == "\(file.path): has other labels than the type Shapes was made of, without a square and with a triangle; "
                    + "Use a model with the same labels, or build the program again with this one in its resources")
        }
    }

    @Test(
        "The model among a module's resources is read by its name; where it is not there, the sentence says where it should be"
    )
    func resource() throws {
        try withTemporaryFolder { folder in
            try weights(["a circle", "a square"]).write(to: folder.appending(path: "Shapes.imprint"))
            let bundle = try #require(Bundle(url: folder))
            #expect(try Shapes(resource: "Shapes", in: bundle).classifier.labels == ["a circle", "a square"])
            let error = #expect(throws: TypedModelError.self) { try Shapes(resource: "Logo", in: bundle) }
            #expect(error == .noResource(name: "Logo.imprint", bundle: bundle.bundlePath))
        }
    }

    @Test("An observation of another label is refused")
    func unknownLabel() {
        #expect(
            throws: TypedModelError.otherLabels(model: "the classifier", type: "Label", missing: [], unknown: ["Other"])
        ) {
            try TypedObservation<Shapes.Label>(Classification(label: "Other", confidence: 1))
        }
    }
}
