internal import FlyingFox
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintInterop
internal import ImprintModel
internal import ImprintTraining

extension ExampleTrainer {
    /// Starts training a classifier on photos, which then replaces the classifier in use.
    /// - Parameters:
    ///   - audit: The audit of the photos for the report; nil to audit them again.
    ///   - onEvaluation: Receives the evaluation of the new model, or nil without a validation set.
    func start(
        _ source: PhotoSource, audit: Audit?, _ configuration: ClassifierConfiguration,
        onEvaluation: @escaping @Sendable (Evaluation?) -> Void
    ) throws {
        if let shortage = source.shortage { throw RequestError(shortage, .conflict) }
        try begin("Comparing the photos …", panel: .photos) { trainer, _, _ in
            { await trainer.train(on: source, audit: audit, configuration, onEvaluation) }
        }
    }

    private func train(
        on source: PhotoSource, audit: Audit?, _ configuration: ClassifierConfiguration,
        _ onEvaluation: @Sendable (Evaluation?) -> Void
    ) async {
        let text = await attempt(ifStopped: "Stopped; the model did not change.") {
            let (result, text) = try await learn(source, configuration)
            let report = try await makeReport(of: result, on: source, audit: audit)
            try Task.checkCancellation()
            let classifier = try ImageClassifier(result.model, threads: threads)
            let note = await use(classifier, .classifier(result.model), report: report)
            onEvaluation(result.evaluation)
            return text + note + result.featureNote
        }
        if let text { end(.learned, text) }
    }

    /// Trains like `imprint train`, and returns the result with a message.
    private func learn(
        _ source: PhotoSource, _ configuration: ClassifierConfiguration
    ) async throws -> (TrainingResult, String) {
        var configuration = configuration
        configuration.threads = threads
        var base: InstalledBase?
        if case .automatic = configuration.start {
            base = usesBuiltInBase ? nil : try installer.bases.first
            configuration.start = try base.map { .pretrained(try $0.model()) } ?? .builtInBase
        }
        let run = ClassifierTrainer(photos: source, configuration: configuration).start()
        state.withLock { $0.keepBest = { run.stop() } }
        defer { state.withLock { $0.keepBest = nil } }
        var result: TrainingResult?
        var count = 0
        do {
            for try await event in run {
                update { $0.updatePhotos(with: event) }
                if case .started(let start) = event { count = start.trainingImages }
                if case .finished(let finished) = event { result = finished }
            }
        } catch ImprintError.stoppedTooEarly {
            throw CancellationError()
        }
        guard let result, !Task.isCancelled else { throw CancellationError() }
        if let error = result.photoError { throw error }
        if let error = result.divergence { throw error }
        let start = base.map { ", starting from \(BaseModelOffer.title(of: $0.name))" } ?? ""
        let early = result.ending == .stopped ? "Stopped early, and kept the best model so far. " : ""
        return (result, "\(early)Trained on \(count) photos\(start). \(Self.text(result.evaluation))")
    }

    /// Returns the accuracy on the validation set as a sentence.
    private static func text(_ evaluation: Evaluation?) -> String {
        guard let evaluation, !evaluation.results.isEmpty else {
            return "There are too few photos for a validation set, so the accuracy on new photos is unknown."
        }
        let interval = evaluation.accuracyInterval
        return "Accuracy on \(counted(evaluation.results.count, "validation photo")): \(percent(evaluation.accuracy)) "
            + "(95 % confidence interval: \(percent(interval.lowerBound)) to \(percent(interval.upperBound)))."
    }

    /// Returns the report of a run as HTML, which another thread writes.
    private func makeReport(of result: TrainingResult, on source: PhotoSource, audit: Audit?) async throws -> Data {
        update { $0.complete("Writing the report …") }
        let html = try await onDedicatedThread { [threads] in
            let workers = Workers(threads)
            let report = Report(
                result.model, evaluation: result.modelEvaluation, audit: audit ?? Audit(source, workers: workers),
                seconds: result.seconds, workers: workers)
            return report.html
        }
        return Data(html.utf8)
    }

    /// The report of the learned model, as HTML; nil if the model was not trained in the panel Photos.
    var report: Data? { state.withLock { $0.report } }
}

extension Studio {
    /// The content security policy of a report, which has styles and images of its own, and no scripts.
    private static let reportPolicy =
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        + "frame-ancestors 'none'"

    func report() throws -> HTTPResponse {
        guard let report = trainer.report else {
            throw RequestError("There is no report. Train a model in the panel Photos first.", .notFound)
        }
        return HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: "text/html; charset=utf-8",
                HTTPHeader("Content-Security-Policy"): Self.reportPolicy,
            ], body: report)
    }

    /// Exports the learned model on another thread.
    /// - Parameter format: "onnx" or "coreml".
    @concurrent
    func export(_ format: String) async throws -> HTTPResponse {
        guard let name = ["onnx": "model.onnx", "coreml": "model.mlmodel"][format] else {
            throw RequestError("The request does not name an export format. Add ?format=onnx or ?format=coreml.")
        }
        guard let model = try requiredLearned.model else {
            throw RequestError("A personalization cannot be exported. Train a new model first.", .conflict)
        }
        let exported = try await withPrivateTemporaryFolder(in: trainer.temporaryFolder) { folder in
            let file = folder.appending(path: name)
            do {
                if format == "onnx" { try model.writeONNX(to: file) } else { try model.writeCoreML(to: file) }
            } catch let error as ExportError {
                let message = "\(error)".replacingOccurrences(of: file.path, with: name)
                throw RequestError("The export failed: \(message)", .unprocessableContent)
            }
            return try Data(contentsOf: file)
        }
        return HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: "application/octet-stream",
                .contentDisposition: "attachment; filename=\"\(name)\"",
            ], body: exported)
    }
}
