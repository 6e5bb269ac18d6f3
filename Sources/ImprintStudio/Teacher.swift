internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining
internal import Synchronization

/// The classifier in use, and how it learns from examples.
final class Teacher: Sendable {
    /// The classifier that the studio began with; nil if it began with none.
    let given: ImageClassifier?
    private let threads: Int
    private let state: Mutex<State>

    private struct State {
        var classifier: ImageClassifier?
        var examples = Examples()
        var lesson = Lesson()
        /// What learns, and how it is ended.
        var work: (task: Task<Void, Never>, control: PersonalizationControl)?
        /// The file of what was learned.
        var learned: Data?
        /// Whether no lesson may begin any more.
        var hasEnded = false
    }

    init(_ given: ImageClassifier?, threads: Int) {
        self.given = given
        self.threads = threads
        state = Mutex(State(classifier: given))
    }

    /// The classifier in use; nil if there is none yet.
    var classifier: ImageClassifier? { state.withLock { $0.classifier } }
    var lesson: Lesson { state.withLock { $0.lesson } }
    var examples: Examples { state.withLock { $0.examples } }
    /// What was learned, as a file: a personalization of the model given, or a new model; nil if nothing was.
    var learned: Data? { state.withLock { $0.learned } }

    /// Whether no lesson begins any more.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Adds a class: a label of the classifier given, or one that may be learned.
    func add(class label: String) throws -> Examples {
        if let given, !given.learnsNewLabels, !given.labels.contains(label) {
            throw Refusal(
                "The model spots marks, and learns no new ones: choose a label that it has, "
                    + "or train a model with --artwork of both.")
        }
        return try collect { try $0.add(class: label, known: given?.labels ?? []) }
    }

    /// Changes what was collected.
    func collect(_ change: (inout Examples) throws -> Void) throws -> Examples {
        try state.withLock { state in
            try change(&state.examples)
            return state.examples
        }
    }

    /// What is missing to learn; nil if nothing is.
    func shortage(of examples: Examples) -> String? { examples.shortage(minimum: given == nil ? 2 : 1) }

    /// Begins to learn from what was collected: by personalizing the classifier given, or else by training a new one.
    func start() throws {
        try state.withLock { state in
            guard !state.hasEnded else {
                throw Refusal("The studio ends; no lesson begins any more.", .serviceUnavailable)
            }
            guard state.lesson.stage != .running else {
                throw Refusal("A lesson is under way; stop it first.", .conflict)
            }
            let examples = state.examples
            if let shortage = shortage(of: examples) { throw Refusal(shortage, .conflict) }
            state.lesson.begin()
            let control = PersonalizationControl()
            state.work = (Task { await learn(from: examples, control) }, control)
        }
    }

    /// Ends the lesson; the classifier stays as it was.
    func stop() async {
        guard let work = state.withLock({ $0.work }) else { return }
        work.control.cancel()
        work.task.cancel()
        await work.task.value
    }

    /// Ends the lesson, and begins no other one.
    func end() async {
        state.withLock { $0.hasEnded = true }
        await stop()
    }

    /// Goes back to what there was at first.
    func revert() throws {
        try state.withLock { state in
            guard state.lesson.stage != .running else {
                throw Refusal("A lesson is under way; stop it first.", .conflict)
            }
            state.classifier = given
            state.learned = nil
            state.lesson.end(.none, "")
        }
    }

    private func learn(from examples: Examples, _ control: PersonalizationControl) async {
        do {
            let (classifier, file) = try await withPrivateFolder { folder in
                if let given {
                    try await personalized(given, examples, control, folder)
                } else {
                    try await trained(examples, folder)
                }
            }
            let count = examples.classes.reduce(0) { $0 + $1.photos.count }
            state.withLock { state in
                (state.classifier, state.learned) = (classifier, file)
                state.lesson.end(.learned, "Learned from \(count) examples.")
            }
        } catch is CancellationError {
            state.withLock { $0.lesson.end(.stopped, "Stopped; the model is as it was.") }
        } catch {
            state.withLock { $0.lesson.end(.failed, "\(error)") }
        }
    }

    private func personalized(
        _ given: ImageClassifier, _ examples: Examples, _ control: PersonalizationControl, _ folder: URL
    ) async throws -> (ImageClassifier, Data) {
        try await onThreadOfItsOwn { [self] in
            var configuration = PersonalizationConfiguration()
            configuration.threads = threads
            configuration.blocks = try given.changedBlocks
            let session = try PersonalizationSession(given, configuration: configuration)
            let photos = examples.classes.flatMap { part in
                part.photos.map { (photo: ImageSource.data($0), label: part.label) }
            }
            try session.teach(photos, control: control) { progress in self.state.withLock { $0.lesson.take(progress) } }
            let file = folder.appending(path: "learned")
            try session.save(to: file)
            return (session.classifier, try Data(contentsOf: file))
        }
    }

    private func trained(_ examples: Examples, _ folder: URL) async throws -> (ImageClassifier, Data) {
        let photos = folder.appending(path: "examples", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: false)
        let labelled = try examples.write(to: photos)
        let configuration = try self.configuration(count: examples.classes.reduce(0) { $0 + $1.photos.count })
        state.withLock { $0.lesson.epochs = configuration.epochs }
        var result: TrainingResult?
        for try await event in ClassifierTrainer(photos: labelled, configuration: configuration).start() {
            state.withLock { $0.lesson.take(event) }
            if case .finished(let finished) = event { result = finished }
        }
        guard let result, !Task.isCancelled else { throw CancellationError() }
        let file = folder.appending(path: "learned")
        try result.weights.write(to: file)
        let bytes = try Data(contentsOf: file)
        return (
            try ImageClassifier(ModelFile([UInt8](bytes), named: "the new model"), threads: threads),
            bytes
        )
    }

    /// Training that takes seconds on a handful of examples.
    private func configuration(count: Int) throws -> ClassifierConfiguration {
        var configuration = ClassifierConfiguration()
        configuration.threads = threads
        configuration.start = .builtInBase
        configuration.batchSize = 8
        // As many steps for few examples as for more.
        configuration.epochs = min(max(1600 / count, 8), 40)
        configuration.augmentation = Augmentation([.flip, .crop, .exposure])
        // Examples of a class are one burst, of which no part says how well the others are known.
        configuration.validation = .none
        configuration.keepsGroupsTogether = false
        configuration.learningRate = 0.01
        return configuration
    }
}
