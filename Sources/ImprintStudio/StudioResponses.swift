internal import FlyingFox
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import Synchronization

/// The response with the properties of the model in use.
struct ModelResponse: Encodable {
    /// A number that increases with each change of the model in use.
    let version: Int
    /// The name of the model; nil if there is none yet.
    let name: String?
    let labels: [String]
    /// Whether examples personalize the model; if false, they train a new one.
    let personalizes: Bool
    /// Whether the model can learn new labels.
    let learnsNewLabels: Bool
    /// The labels of the objects that the model in use finds; nil for a classifier of whole images.
    let objectLabels: [String]?
    /// The aspect ratio (width / height) of the centre crop that the model sees; nil without a model, or if it sees whole images.
    let cropAspectRatio: Double?
    /// Whether matching of the artwork is in use instead of a model.
    let isMatching: Bool
    /// The kind of the learned model, which can be saved or discarded; nil before training.
    let learned: String?
    /// The name of the file of the learned model.
    let learnedFile: String
    /// Whether there is a report of the learned model.
    let hasReport: Bool
    /// The installed base model, or nil without one.
    let base: String?
    /// Whether new models start from the base model that comes with Imprint although another one is installed.
    let usesBuiltInBase: Bool
    /// The base model that can be installed, or nil if there is none.
    let offer: BaseModelOffer?

    init(_ trainer: ExampleTrainer, name: String?) {
        // Read first: if the model changes meanwhile, the page sees a newer version with the next classification.
        version = trainer.modelVersion
        let classifier = trainer.classifier
        let learned = trainer.learned
        let matching = trainer.matching
        isMatching = matching != nil
        self.name =
            isMatching
            ? "Matching of the artwork"
            : classifier.map { _ in learned?.newName ?? name ?? "A new model" }
        labels = matching?.labels ?? classifier?.labels ?? []
        personalizes = trainer.initialClassifier != nil
        learnsNewLabels = trainer.initialClassifier?.learnsNewLabels ?? true
        objectLabels = matching?.labels ?? classifier?.objectLabels
        // Matching sees whole images.
        cropAspectRatio = isMatching ? nil : Self.cropAspectRatio(of: classifier)
        self.learned = learned?.kind
        learnedFile = learned?.fileName ?? "model.imprint"
        hasReport = trainer.report != nil
        base = trainer.base.map { BaseModelOffer.title(of: $0.name) }
        usesBuiltInBase = trainer.usesBuiltInBase
        offer = trainer.offer
    }

    /// Returns the width of the part that a classifier cuts out of an image, relative to its height; nil if it uses whole images.
    private static func cropAspectRatio(of classifier: ImageClassifier?) -> Double? {
        guard let classifier, classifier.objectLabels == nil else { return nil }
        let preprocessing = classifier.model.preprocessing
        guard preprocessing.cropAndScale == .centerCrop else { return nil }
        return Double(preprocessing.width) / Double(preprocessing.height)
    }
}

/// The response with the classification of an image.
private struct ClassificationResponse: Encodable {
    struct Item: Encodable {
        let label: String
        let confidence: Float
        let box: NormalizedRectangle?
        /// The category of the label in the model; nil if it has none.
        let category: String?
    }

    /// The version of the model (`ModelResponse.version`) that classified the image.
    let modelVersion: Int
    /// All labels, best first.
    let classifications: [Item]
    /// Whether the novelty rule rejects the image, because it is unlike the training photos.
    let isRejected: Bool
    /// All objects in the image, by descending confidence; nil for a classifier of whole images.
    let objects: [DetectedObject]?

    private enum CodingKeys: String, CodingKey {
        case classifications = "observations"
        case isRejected = "rejected"
        case modelVersion, objects
    }

    /// Creates the response of matching: every label with its confidence, and the logos that reach the threshold.
    init(matches: (classifications: [Classification], objects: [DetectedObject]), modelVersion: Int) {
        self.modelVersion = modelVersion
        isRejected = false
        classifications = matches.classifications.map {
            Item(label: $0.label, confidence: $0.confidence, box: $0.box, category: nil)
        }
        objects = matches.objects.filter { $0.confidence >= ArtworkMatching.threshold }
    }

    init(_ result: ImageResult, _ categories: Categories?, modelVersion: Int) {
        self.modelVersion = modelVersion
        isRejected = NoveltyRule.rejects(result.novelty)
        objects = result.objects
        classifications = result.classifications.map {
            Item(
                label: $0.label, confidence: $0.confidence, box: $0.box, category: categories?.category(of: $0.label))
        }
    }
}

extension Studio {
    func classify(_ photo: Data) async throws -> HTTPResponse {
        let (classifier, matching, version) = trainer.modelInUse
        if let matching {
            return try .json(ClassificationResponse(matches: try await matching.search(photo), modelVersion: version))
        }
        guard let classifier else {
            throw RequestError("There is no model yet. Collect examples of two classes to train one.", .conflict)
        }
        let result = try await result(for: photo, classifier)
        return try .json(ClassificationResponse(result, classifier.model.categories, modelVersion: version))
    }

    /// Runs a model on a photo, on another thread.
    @concurrent
    private func result(for photo: Data, _ classifier: ImageClassifier) async throws -> ImageResult {
        try classifier.result(for: .data(photo))
    }

    /// Checks that the bytes are a readable photo.
    @concurrent
    func check(_ photo: Data) async throws {
        _ = try ImageSource.data(photo).stored(coveringShortSide: 64)
    }

    /// Returns the training status as soon as it is newer than the status on the page, after ten seconds, or when the studio ends.
    func trainingStatus(_ request: HTTPRequest) async throws -> HTTPResponse {
        let known = request.parameter("after").flatMap { Int($0) } ?? -1
        waitingRequests.add(1, ordering: .relaxed)
        defer { waitingRequests.subtract(1, ordering: .relaxed) }
        let deadline = ContinuousClock().now + .seconds(10)
        while trainer.status.version <= known, !trainer.hasEnded, .now < deadline {
            try await Task.sleep(for: .milliseconds(30))
        }
        return try .json(trainer.status)
    }
}
