internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

/// The accuracy on the examples with the base model that comes with Imprint and with a pretrained one.
///
/// Cross-validation with the same folds estimates both accuracies: a model that was trained without an example classifies it. The folds
/// split the examples of a class in the order of their collection, because camera images of one moment are near-duplicates.
struct BaseComparison: Encodable, Sendable {
    /// The number of folds.
    static let folds = 4

    /// The name of the pretrained base model.
    let base: String
    /// The number of examples.
    let count: Int
    /// The number of folds.
    let folds: Int
    /// The accuracy with the base model that comes with Imprint, 0…1.
    let before: Double
    /// The accuracy with the pretrained base model, 0…1.
    let after: Double

    /// Both accuracies as a sentence.
    var sentence: String {
        guard prefersBuiltInBase else {
            return
                "Accuracy on examples that were left out of training: \(percent(before)) before, \(percent(after)) now."
        }
        return
            "Accuracy on examples that were left out of training: \(percent(before)) with the base model of Imprint, "
            + "\(percent(after)) with \(base). So models start from the base model of Imprint, unless you choose the other one."
    }

    /// Whether models start from the base model that comes with Imprint, because the accuracy with it is higher.
    var prefersBuiltInBase: Bool { before > after }
}

extension BaseComparison {

    /// Trains and evaluates the models of all folds.
    /// - Parameters:
    ///   - examples: The examples, without copies.
    ///   - base: The pretrained base model.
    ///   - name: The name of the pretrained base model.
    ///   - temporaryFolder: The folder that contains the temporary files.
    ///   - note: Receives the current activity.
    /// - Throws: `CancellationError` if the task is cancelled; the errors of `CrossValidationRun`.
    init(
        _ examples: Examples, _ base: ModelFile, name: String, threads: Int, temporaryFolder: URL,
        note: @Sendable (String) -> Void
    ) async throws {
        let trainingCount = examples.count * (Self.folds - 1) / Self.folds
        func accuracy(_ start: ClassifierConfiguration.Start, _ description: String) async throws -> Double {
            let configuration = ClassifierConfiguration(start, exampleCount: trainingCount, threads: threads)
            return try await withPrivateTemporaryFolder(in: temporaryFolder) { folder in
                var options = CrossValidation.Options()
                options.folds = Self.folds
                options.groups = examples.pathsOfBlocks(count: Self.folds)
                let photos = try examples.write(to: folder)
                let run = CrossValidation(photos: photos, configuration: configuration, options: options).start()
                var result: CrossValidationResult?
                note("Measuring the accuracy with \(description): fold 1 of \(Self.folds)")
                for try await event in run {
                    switch event {
                    case .fold(let fold) where fold.number < Self.folds:
                        note("Measuring the accuracy with \(description): fold \(fold.number + 1) of \(Self.folds)")
                    case .finished(let finished): result = finished
                    default: break
                    }
                }
                guard !Task.isCancelled, let result, result.isComplete, let evaluation = result.evaluation else {
                    throw CancellationError()
                }
                return evaluation.accuracy
            }
        }
        before = try await accuracy(.builtInBase, "the base model of Imprint")
        after = try await accuracy(.pretrained(base, recipe: .head), name)
        self.base = name
        count = examples.count
        folds = Self.folds
    }
}

extension ClassifierConfiguration {
    /// Creates a configuration for training on a few examples in seconds.
    init(_ start: Start, exampleCount: Int, threads: Int) {
        self.init()
        self.start = start
        self.threads = threads
        // The examples of a class are one burst, so a validation set would not measure generalization.
        self.validation = .none
        self.keepsGroupsTogether = false
        // The recipe of a pretrained base model has its own hyperparameters.
        guard case .builtInBase = start else { return }
        self.batchSize = 8
        // The number of steps is about the same for few and for many examples.
        self.epochs = min(max(1600 / max(exampleCount, 1), 8), 40)
        self.augmentation = Augmentation([.flip, .crop, .exposure])
        self.learningRate = 0.01
    }
}
