internal import FlyingFox
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// What the page is told of the model in use.
struct ModelAnswer: Encodable {
    /// What it is called; missing if there is none yet.
    let name: String?
    let labels: [String]
    /// Whether examples personalize the model; a new one is trained of them if it is false.
    let personalizes: Bool
    /// Whether classes may be other than the labels that there are.
    let learnsNewLabels: Bool
    /// Whether there is something to take away, or to go back from.
    let hasLearned: Bool

    init(_ teacher: Teacher, name: String?) {
        let classifier = teacher.classifier
        self.name = classifier.map { _ in name ?? "A new model" }
        labels = classifier?.labels ?? []
        personalizes = teacher.given != nil
        learnsNewLabels = teacher.given?.learnsNewLabels ?? true
        hasLearned = teacher.learned != nil
    }
}

/// What the page is told of what was collected.
struct ExamplesAnswer: Encodable {
    struct Class: Encodable {
        let label: String
        let count: Int
    }

    let classes: [Class]
    let byteCount: Int
    let byteLimit: Int
    /// What is missing to learn from them; left out where nothing is.
    let shortage: String?

    init(_ examples: Examples, _ teacher: Teacher) {
        classes = examples.classes.map { Class(label: $0.label, count: $0.photos.count) }
        byteCount = examples.byteCount
        byteLimit = Examples.byteLimit
        shortage = teacher.shortage(of: examples)
    }
}

/// What was seen in a picture.
private struct Sight: Encodable {
    struct Seen: Encodable {
        let label: String
        let confidence: Float
        let box: NormalizedRectangle?
        /// The category that the model has for the label; left out if it has none.
        let category: String?
    }

    /// All labels, best first.
    let observations: [Seen]

    init(_ observations: [Classification], _ categories: Categories?) {
        self.observations = observations.map {
            Seen(
                label: $0.label, confidence: $0.confidence, box: $0.box, category: categories?.category(of: $0.label))
        }
    }
}

extension Studio {
    func classify(_ photo: Data) async throws -> HTTPResponse {
        guard let classifier = teacher.classifier else {
            throw Refusal("There is no model yet: teach two classes, and one is trained.", .conflict)
        }
        let observations = try await ClassificationRequest(classifier).perform(on: .data(photo))
        return try .json(Sight(observations, classifier.weights.categories))
    }

    /// Checks that bytes are those of a picture, before they are kept.
    @concurrent
    func check(_ photo: Data) async throws {
        _ = try ImageSource.data(photo).stored(coveringShortSide: 64)
    }

    func collected(_ change: (inout Examples) throws -> Void) throws -> HTTPResponse {
        try .json(ExamplesAnswer(teacher.collect(change), teacher))
    }

    /// What the lesson has come to, as soon as that is more than the asker knows, after ten seconds, or when the studio ends.
    func lesson(_ request: HTTPRequest) async throws -> HTTPResponse {
        let known = request.parameter("after").flatMap { Int($0) } ?? -1
        let deadline = ContinuousClock().now + .seconds(10)
        while teacher.lesson.version <= known, !teacher.hasEnded, .now < deadline {
            try await Task.sleep(for: .milliseconds(30))
        }
        return try .json(teacher.lesson)
    }

    func learned() throws -> HTTPResponse {
        guard let file = teacher.learned else { throw Refusal("Nothing was learned yet.", .notFound) }
        return HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: "application/octet-stream",
                .contentDisposition:
                    "attachment; filename=\"\(teacher.given == nil ? "model" : "personalization").imprint\"",
            ], body: file)
    }
}
