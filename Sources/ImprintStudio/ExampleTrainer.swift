internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining
internal import Synchronization

/// The classifier in use, the collected examples, and training on them.
final class ExampleTrainer: Sendable {
    /// The classifier at the start of the studio; nil if there was none.
    let initialClassifier: ImageClassifier?
    private let threads: Int
    private let state: Mutex<State>

    private struct State {
        var classifier: ImageClassifier?
        var examples = Examples()
        var status = TrainingStatus()
        /// The training task and its control.
        var training: (task: Task<Void, Never>, control: PersonalizationControl)?
        /// The file of the learned model.
        var learned: Data?
        /// Whether the studio is ending, which prevents new training.
        var hasEnded = false
    }

    init(_ initialClassifier: ImageClassifier?, threads: Int) {
        self.initialClassifier = initialClassifier
        self.threads = threads
        state = Mutex(State(classifier: initialClassifier))
    }

    /// The classifier in use; nil if there is none yet.
    var classifier: ImageClassifier? { state.withLock { $0.classifier } }
    var status: TrainingStatus { state.withLock { $0.status } }
    var examples: Examples { state.withLock { $0.examples } }
    /// The file of the learned model: a personalization of the initial model or a new model; nil if there is none.
    var learned: Data? { state.withLock { $0.learned } }

    /// Whether the studio is ending, which prevents new training.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Adds a class: a label of the initial classifier, or a new label if the classifier can learn it.
    func add(class label: String) throws -> Examples {
        if let initialClassifier, !initialClassifier.learnsNewLabels, !initialClassifier.labels.contains(label) {
            throw RequestError(
                "The model detects logos and cannot learn new labels. Choose one of its labels, "
                    + "or train a model with the artwork of all logos.")
        }
        return try updateExamples { try $0.add(class: label, known: initialClassifier?.labels ?? []) }
    }

    /// Changes the collected examples.
    func updateExamples(_ change: (inout Examples) throws -> Void) throws -> Examples {
        try state.withLock { state in
            try change(&state.examples)
            return state.examples
        }
    }

    /// Returns the reason why the examples are not sufficient for training; nil if they are.
    func shortage(of examples: Examples) -> String? { examples.shortage(minimum: initialClassifier == nil ? 2 : 1) }

    /// Starts training on the examples: personalizes the initial classifier, or trains a new one.
    func start() throws {
        try state.withLock { state in
            guard !state.hasEnded else {
                throw RequestError("The studio is ending. Start it again to train.", .serviceUnavailable)
            }
            guard state.status.stage != .running else {
                throw RequestError("Training is running. Stop it first.", .conflict)
            }
            let examples = state.examples
            if let shortage = shortage(of: examples) { throw RequestError(shortage, .conflict) }
            state.status.begin()
            let control = PersonalizationControl()
            state.training = (Task { await train(on: examples, control) }, control)
        }
    }

    /// Stops training; the classifier does not change.
    func stop() async {
        guard let training = state.withLock({ $0.training }) else { return }
        training.control.cancel()
        training.task.cancel()
        await training.task.value
    }

    /// Stops training and prevents new training.
    func end() async {
        state.withLock { $0.hasEnded = true }
        await stop()
    }

    /// Restores the initial classifier.
    func revert() throws {
        try state.withLock { state in
            guard state.status.stage != .running else {
                throw RequestError("Training is running. Stop it first.", .conflict)
            }
            state.classifier = initialClassifier
            state.learned = nil
            state.status.end(.none, "")
        }
    }

    private func train(on examples: Examples, _ control: PersonalizationControl) async {
        do {
            let (classifier, file) = try await withPrivateTemporaryFolder { folder in
                if let initialClassifier {
                    try await personalize(initialClassifier, examples, control, folder)
                } else {
                    try await trainNewModel(examples, folder)
                }
            }
            let count = examples.classes.reduce(0) { $0 + $1.photos.count }
            state.withLock { state in
                (state.classifier, state.learned) = (classifier, file)
                state.status.end(.learned, "Learned from \(count) examples.")
            }
        } catch is CancellationError {
            state.withLock { $0.status.end(.stopped, "Stopped; the model did not change.") }
        } catch {
            state.withLock { $0.status.end(.failed, "\(error)") }
        }
    }

    private func personalize(
        _ initialClassifier: ImageClassifier, _ examples: Examples, _ control: PersonalizationControl, _ folder: URL
    ) async throws -> (ImageClassifier, Data) {
        try await onDedicatedThread { [self] in
            var configuration = PersonalizationConfiguration()
            configuration.threads = threads
            configuration.blocks = try initialClassifier.changedBlocks
            let session = try PersonalizationSession(initialClassifier, configuration: configuration)
            let photos = examples.classes.flatMap { part in
                part.photos.map { (photo: ImageSource.data($0), label: part.label) }
            }
            try session.teach(photos, control: control) { progress in
                self.state.withLock { $0.status.update(with: progress) }
            }
            let file = folder.appending(path: "learned")
            try session.save(to: file)
            return (session.classifier, try Data(contentsOf: file))
        }
    }

    private func trainNewModel(_ examples: Examples, _ folder: URL) async throws -> (ImageClassifier, Data) {
        let photos = folder.appending(path: "examples", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: false)
        let labelled = try examples.write(to: photos)
        let configuration = try self.configuration(count: examples.classes.reduce(0) { $0 + $1.photos.count })
        state.withLock { $0.status.epochs = configuration.epochs }
        var result: TrainingResult?
        for try await event in ClassifierTrainer(photos: labelled, configuration: configuration).start() {
            state.withLock { $0.status.update(with: event) }
            if case .finished(let finished) = event { result = finished }
        }
        guard let result, !Task.isCancelled else { throw CancellationError() }
        let file = folder.appending(path: "learned")
        try result.model.write(to: file)
        let bytes = try Data(contentsOf: file)
        return (
            try ImageClassifier(ModelFile([UInt8](bytes), named: "the new model"), threads: threads),
            bytes
        )
    }

    /// Returns a configuration for training on a few examples in seconds.
    private func configuration(count: Int) throws -> ClassifierConfiguration {
        var configuration = ClassifierConfiguration()
        configuration.threads = threads
        configuration.start = .builtInBase
        configuration.batchSize = 8
        // The number of steps is about the same for few and for many examples.
        configuration.epochs = min(max(1600 / count, 8), 40)
        configuration.augmentation = Augmentation([.flip, .crop, .exposure])
        // The examples of a class are one burst, so a validation set would not measure generalization.
        configuration.validation = .none
        configuration.keepsGroupsTogether = false
        configuration.learningRate = 0.01
        return configuration
    }
}
