import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// A typed model as the plugin generates it.
private struct Shapes: TypedModel {
    enum Label: String, CaseIterable, Sendable {
        case circle = "a circle"
        case square = "a square"
    }

    let classifier: ImageClassifier

    init(_ classifier: ImageClassifier) throws { self.classifier = try Self.checked(classifier) }
}

@Suite struct TypedModelTests {
    private func model(_ labels: [String]) throws -> ModelFile {
        let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 5), labels: labels,
            preprocessing: Preprocessing(width: 16, height: 16))
    }

    @Test("A typed model returns the classifications of its classifier, for any order of the labels")
    func classify() async throws {
        let image = RasterImage(width: 20, height: 20, filledWith: 90)
        for labels in [["a circle", "a square"], ["a square", "a circle"]] {
            let classifier = try ImageClassifier(model(labels))
            let (expected, shapes) = (try classifier.classify(image), try Shapes(classifier))
            let classifications = try await shapes.classify(.image(image))
            #expect(classifications.map(\.classification) == expected)
            #expect(classifications.map(\.label.rawValue) == expected.map(\.label))
            #expect(classifications.map(\.confidence) == expected.map(\.confidence))
            #expect(try await shapes.best(in: .image(image)) == classifications[0])
            let stricter = ConfidenceRule(threshold: .confidence(classifications[0].confidence.nextUp))
            #expect(try await shapes.best(in: .image(image), rule: stricter) == nil)
            let satisfied = ConfidenceRule(threshold: .confidence(classifications[0].confidence))
            #expect(try await shapes.classify(.image(image), rule: satisfied) == [classifications[0]])
        }
    }

    @Test("A model with other labels is rejected, and the error names the file and the labels")
    func otherLabels() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "Shapes.imprint")
            try model(["a square", "a circle"]).write(to: file)
            #expect(try Shapes(contentsOf: file).classifier.labels == ["a square", "a circle"])
            for (labels, missing, unknown) in [
                (["a circle", "a triangle"], ["a square"], ["a triangle"]), (["a circle"], ["a square"], []),
                (["a circle", "a square", "Other"], [], ["Other"]),
            ] {
                try model(labels).write(to: file)
                let error = #expect(throws: TypedModelError.self) { try Shapes(contentsOf: file) }
                #expect(
                    error == .labelMismatch(model: file.path, type: "Shapes", missing: missing, unknown: unknown))
                #expect(throws: TypedModelError.self) { try Shapes(ImageClassifier(model(labels))) }
            }
            try model(["a circle", "a triangle"]).write(to: file)
            #expect(
                #expect(throws: TypedModelError.self) { try Shapes(contentsOf: file) }?.description
                    == "\(file.path): the labels do not match the type Shapes (missing: a square; "
                    + "unexpected: a triangle). Use a model with the labels of the type, or rebuild the program with "
                    + "this model in its resources.")
        }
    }

    @Test(
        "A model is loaded from the resources of a module by its name; if it is missing, the error names the bundle")
    func resource() throws {
        try withTemporaryFolder { folder in
            try model(["a circle", "a square"]).write(to: folder.appending(path: "Shapes.imprint"))
            let bundle = try #require(Bundle(url: folder))
            #expect(try Shapes(resource: "Shapes", in: bundle).classifier.labels == ["a circle", "a square"])
            let error = #expect(throws: TypedModelError.self) { try Shapes(resource: "Logo", in: bundle) }
            #expect(error == .missingResource(name: "Logo.imprint", bundle: bundle.bundlePath))
        }
    }

    @Test("A classification with another label is rejected")
    func unknownLabel() {
        #expect(
            throws: TypedModelError.labelMismatch(
                model: "the classifier", type: "Label", missing: [], unknown: ["Other"])
        ) {
            try TypedClassification<Shapes.Label>(Classification(label: "Other", confidence: 1))
        }
    }
}
