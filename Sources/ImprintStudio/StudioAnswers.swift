internal import FlyingFox
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The response about the model in use.
struct ModelAnswer: Encodable {
    /// The name of the model; nil if there is none yet.
    let name: String?
    let labels: [String]
    /// Whether examples personalize the model; if false, they train a new one.
    let personalizes: Bool
    /// Whether the model can learn new labels.
    let learnsNewLabels: Bool
    /// Whether there is a learned model to save or to discard.
    let hasLearned: Bool

    init(_ teacher: Teacher, name: String?) {
        let classifier = teacher.classifier
        self.name = classifier.map { _ in name ?? "A new model" }
        labels = classifier?.labels ?? []
        personalizes = teacher.initialClassifier != nil
        learnsNewLabels = teacher.initialClassifier?.learnsNewLabels ?? true
        hasLearned = teacher.learned != nil
    }
}

/// The response about the collected examples.
struct ExamplesAnswer: Encodable {
    struct Class: Encodable {
        let label: String
        let count: Int
    }

    let classes: [Class]
    let byteCount: Int
    let byteLimit: Int
    /// The reason why the examples are not sufficient for training; nil if they are.
    let shortage: String?

    init(_ examples: Examples, _ teacher: Teacher) {
        classes = examples.classes.map { Class(label: $0.label, count: $0.photos.count) }
        byteCount = examples.byteCount
        byteLimit = Examples.byteLimit
        shortage = teacher.shortage(of: examples)
    }
}

/// The response with the classification of a picture.
private struct ClassificationAnswer: Encodable {
    struct Item: Encodable {
        let label: String
        let confidence: Float
        let box: NormalizedRectangle?
        /// The category of the label in the model; nil if it has none.
        let category: String?
    }

    /// All labels, best first.
    let observations: [Item]

    init(_ observations: [Classification], _ categories: Categories?) {
        self.observations = observations.map {
            Item(
                label: $0.label, confidence: $0.confidence, box: $0.box, category: categories?.category(of: $0.label))
        }
    }
}

extension Studio {
    func classify(_ photo: Data) async throws -> HTTPResponse {
        guard let classifier = teacher.classifier else {
            throw RequestError("There is no model yet. Teach two classes to train one.", .conflict)
        }
        let observations = try await ClassificationRequest(classifier).perform(on: .data(photo))
        return try .json(ClassificationAnswer(observations, classifier.weights.categories))
    }

    /// Checks that the bytes are a readable picture.
    @concurrent
    func check(_ photo: Data) async throws {
        _ = try ImageSource.data(photo).stored(coveringShortSide: 64)
    }

    func collected(_ change: (inout Examples) throws -> Void) throws -> HTTPResponse {
        try .json(ExamplesAnswer(teacher.collect(change), teacher))
    }

    /// Returns the training progress as soon as it is newer than that of the page, after ten seconds, or when the studio ends.
    func lesson(_ request: HTTPRequest) async throws -> HTTPResponse {
        let known = request.parameter("after").flatMap { Int($0) } ?? -1
        let deadline = ContinuousClock().now + .seconds(10)
        while teacher.lesson.version <= known, !teacher.hasEnded, .now < deadline {
            try await Task.sleep(for: .milliseconds(30))
        }
        return try .json(teacher.lesson)
    }

    func learned() throws -> HTTPResponse {
        guard let file = teacher.learned else { throw RequestError("There is no learned model yet.", .notFound) }
        return HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: "application/octet-stream",
                .contentDisposition:
                    "attachment; filename=\"\(teacher.initialClassifier == nil ? "model" : "personalization").imprint\"",
            ], body: file)
    }
}
