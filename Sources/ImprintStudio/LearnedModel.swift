internal import FlyingFox
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintModel
internal import ImprintTraining

/// A learned model, which stays in memory.
///
/// Its file is written each time the model is downloaded.
enum LearnedModel: Sendable {
    /// A personalization of the initial classifier.
    case personalization(Personalization)
    /// A new classifier.
    case classifier(ModelFile)
    /// A new detector.
    case detector(ModelFile)

    /// The kind in responses.
    var kind: String {
        switch self {
        case .personalization: "personalization"
        case .classifier: "model"
        case .detector: "detector"
        }
    }

    /// The name of a new model in the page; nil for a personalization, which has the name of its model.
    var newName: String? {
        switch self {
        case .personalization: nil
        case .classifier: "A new model"
        case .detector: "A new detector"
        }
    }

    /// The name of the file.
    var fileName: String { newName == nil ? "personalization.imprint" : "model.imprint" }

    /// The new model; nil for a personalization.
    var model: ModelFile? {
        switch self {
        case .personalization: nil
        case .classifier(let model), .detector(let model): model
        }
    }

    /// Writes the file.
    /// - Throws: The errors of `ModelFile.write(to:as:)` and `Personalization.write(to:)`.
    fileprivate func write(to file: URL) throws {
        switch self {
        case .personalization(let personalization): try personalization.write(to: file)
        case .classifier(let model), .detector(let model): try model.write(to: file)
        }
    }
}

extension ExampleTrainer {
    /// Uses a learned model instead of the classifier, also if its file cannot be written now.
    /// - Parameter report: The report of the model, as HTML.
    /// - Returns: The reason why the file cannot be written, as the end of a message; empty if it can be.
    func use(_ classifier: ImageClassifier, _ learned: LearnedModel, report: Data? = nil) async -> String {
        state.withLock { state in
            (state.classifier, state.learned) = (classifier, learned)
            state.report = report
        }
        do {
            _ = try await file(of: learned)
            return ""
        } catch {
            let text =
                switch error {
                case FileError.cannotWrite(_, let reason, _), FileError.cannotRead(_, let reason): reason
                default: reason(of: error)
                }
            return " The model is in use, but it cannot be downloaded yet: \(temporaryFolder.path): cannot be written "
                + "(\(text)). Free space there, or allow the studio to write to it, and then download the model."
        }
    }

    /// Writes the file of a learned model to a temporary folder, and returns its content.
    @concurrent
    func file(of learned: LearnedModel) async throws -> Data {
        try await withPrivateTemporaryFolder(in: temporaryFolder) { folder in
            let file = folder.appending(path: learned.fileName)
            try learned.write(to: file)
            return try Data(contentsOf: file)
        }
    }
}

extension Studio {
    /// The learned model.
    /// - Throws: `RequestError` before training.
    var requiredLearned: LearnedModel {
        get throws {
            guard let learned = trainer.learned else {
                throw RequestError("There is no learned model yet. Train one first.", .notFound)
            }
            return learned
        }
    }

    /// Returns the file of the learned model as a download.
    func learnedModel() async throws -> HTTPResponse {
        let learned = try requiredLearned
        return HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: "application/octet-stream",
                .contentDisposition: "attachment; filename=\"\(learned.fileName)\"",
            ], body: try await trainer.file(of: learned))
    }
}

extension TrainingResult {
    /// A sentence about features that the model lacks, after a space; empty if it has all of them.
    var featureNote: String {
        guard let featureFailure else { return "" }
        let reason = "\(featureFailure)".sentence
        return model.rehearsal == nil
            ? " The model may forget when it is personalized, because it has no features of its training photos. \(reason)"
            : " The model does not recognize photos that are unlike the training photos. \(reason)"
    }
}
