internal import Foundation
internal import Imprint
internal import ImprintBaseModels
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining
internal import Synchronization

/// The classifier in use, the collected examples, and training on them.
final class ExampleTrainer: Sendable {
    /// The classifier at the start of the studio; nil if there was none.
    let initialClassifier: ImageClassifier?
    let threads: Int
    let installer: BaseModelInstaller
    /// The folder for temporary folders.
    let temporaryFolder: URL
    let state: Mutex<State>

    struct State {
        var classifier: ImageClassifier? {
            didSet { (matching, classifierVersion) = (nil, classifierVersion + 1) }
        }
        /// The number of changes of the classifier.
        var classifierVersion = 0
        /// Matching of the artwork, which replaces the classifier; nil if the classifier is in use.
        var matching: ArtworkMatching? {
            didSet { modelVersion += 1 }
        }
        /// The number of changes of the classifier or of matching.
        var modelVersion = 0
        /// Ends training with the best model so far; nil if that is not possible.
        var keepBest: (@Sendable () -> Void)?
        var examples = Examples()
        /// Whether a task waits to forget removed examples.
        var forgetsLater = false
        var status = TrainingStatus()
        /// The training task and its control.
        var training: (task: Task<Void, Never>, control: PersonalizationControl)?
        /// The learned model; nil before training.
        var learned: LearnedModel? {
            didSet { report = nil }
        }
        /// The report of the learned model, as HTML; nil if the model was not trained in the panel Photos.
        var report: Data?
        /// The contact sheet of the images that a detector learns from, as a JPEG.
        var sheet: Data?
        /// The installed base model that new models start from, or nil if there is none or if none is needed.
        var base: InstalledBase?
        /// Whether new models start from the base model that comes with Imprint although another one is installed.
        var usesBuiltInBase = false
        /// Whether the studio is ending, which prevents new training.
        var hasEnded = false
    }

    init(
        _ initialClassifier: ImageClassifier?, threads: Int, installer: BaseModelInstaller,
        temporaryFolder: URL = FileManager.default.temporaryDirectory
    ) {
        self.initialClassifier = initialClassifier
        self.threads = threads
        self.installer = installer
        self.temporaryFolder = temporaryFolder
        // Training reports the error of a folder that cannot be read.
        let base = initialClassifier == nil ? try? installer.bases.first : nil
        state = Mutex(State(classifier: initialClassifier, base: base))
    }

    /// The classifier in use; nil if there is none yet.
    var classifier: ImageClassifier? { state.withLock { $0.classifier } }
    /// A number that increases with each change of the model in use.
    var modelVersion: Int { state.withLock { $0.modelVersion } }
    /// The classifier, the matching that replaces it, if any, and their version.
    var modelInUse: (classifier: ImageClassifier?, matching: ArtworkMatching?, version: Int) {
        state.withLock { ($0.classifier, $0.matching, $0.modelVersion) }
    }
    var status: TrainingStatus { state.withLock { $0.status } }
    var examples: Examples { state.withLock { $0.examples } }
    /// The learned model; nil before training.
    var learned: LearnedModel? { state.withLock { $0.learned } }
    /// The contact sheet of the images that a detector learns from, as a JPEG; nil without a contact sheet.
    var sheet: Data? { state.withLock { $0.sheet } }

    /// The installed base model that new models start from, or nil if there is none or if the studio has an initial classifier.
    var base: InstalledBase? { state.withLock { $0.base } }
    /// Whether new models start from the base model that comes with Imprint although another one is installed.
    var usesBuiltInBase: Bool { state.withLock { $0.usesBuiltInBase } }
    /// The base model that can be installed, or nil if there is none or if the studio has an initial classifier.
    var offer: BaseModelOffer? {
        initialClassifier == nil ? BaseModelOffer(installer.catalog, installed: base) : nil
    }

    /// Whether the studio is ending, which prevents new training.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Adds a class: a label of the initial classifier, or a new label if the classifier can learn it.
    func add(class label: String) throws -> Examples {
        try checkLearnable(label)
        return try updateExamples { try $0.add(class: label, known: initialClassifier?.labels ?? []) }
    }

    /// Changes the name of a class to a label of the initial classifier, or to a new label if the classifier can learn it.
    func rename(class label: String, to name: String) throws -> Examples {
        try checkLearnable(name)
        return try updateExamples { try $0.rename(label, to: name, known: initialClassifier?.labels ?? []) }
    }

    private func checkLearnable(_ label: String) throws {
        if let initialClassifier, !initialClassifier.learnsNewLabels, !initialClassifier.labels.contains(label) {
            throw RequestError(
                "The model is a detector, which learns new labels from artwork or boxes, not from examples. Choose one of "
                    + "its labels here. For a new label, train a new detector in the panel Boxes, "
                    + "or personalize the model outside of the studio with artwork or photos with boxes.")
        }
    }

    /// Changes the collected examples.
    func updateExamples(_ change: (inout Examples) throws -> Void) throws -> Examples {
        let examples = try state.withLock { state in
            try change(&state.examples)
            return state.examples
        }
        if examples.undo.last != nil { forgetLater() }
        return examples
    }

    /// Forgets expired removals from time to time.
    private func forgetLater() {
        let isWaiting = state.withLock { state in
            defer { state.forgetsLater = true }
            return state.forgetsLater
        }
        guard !isWaiting else { return }
        Task { [weak self] in
            repeat { try await Task.sleep(for: .seconds(10)) } while self?.forgetExpiredRemovals() == true
        }
    }

    /// Forgets expired removals, and returns whether others are left.
    private func forgetExpiredRemovals() -> Bool {
        state.withLock { state in
            state.examples.undo.removeExpired()
            state.forgetsLater = state.examples.undo.last != nil && !state.hasEnded
            return state.forgetsLater
        }
    }

    /// Returns the reason why the examples are not sufficient for training; nil if they are.
    func shortage(of examples: Examples) -> String? { examples.shortage(minimum: initialClassifier == nil ? 2 : 1) }

    /// Starts training on the examples: personalizes the initial classifier, or trains a new one.
    func start() throws {
        try begin("Reading the examples …") { trainer, examples, control in
            if let shortage = trainer.shortage(of: examples) { throw RequestError(shortage, .conflict) }
            return { await trainer.train(on: examples, control) }
        }
    }

    /// Starts the installation of the offered base model, followed by training and comparing a new model.
    /// - Parameters:
    ///   - name: The name of the base model, which must match the offer.
    ///   - acceptsLicense: Whether the user accepts the licence of the offer.
    func install(_ name: String, acceptsLicense: Bool) throws {
        guard let offer, offer.name == name else {
            throw RequestError(
                "The studio does not offer to install the base model \(name.debugDescription).", .conflict)
        }
        guard acceptsLicense else {
            let error = BaseInstallationError.licenseNotAccepted(name: name, license: offer.license.statement)
            throw RequestError("\(error)", .conflict)
        }
        try begin("Installing \(offer.title) …") { trainer, _, control in
            { await trainer.install(offer, control) }
        }
    }

    /// Chooses the base model that new models start from: the one that comes with Imprint, or the installed one.
    func chooseBase(isBuiltIn: Bool) throws {
        try state.withLock { state in
            guard state.base != nil else {
                throw RequestError("No pretrained base model is installed, so there is no choice.", .conflict)
            }
            guard state.status.stage != .running else {
                throw RequestError("Training is running. Stop it first.", .conflict)
            }
            state.usesBuiltInBase = isBuiltIn
        }
    }

    /// Starts a task that changes the status.
    /// - Parameters:
    ///   - panel: The panel of the page that shows the run.
    ///   - work: Returns the work for the current examples.
    func begin(
        _ message: String, panel: TrainingStatus.Panel = .teach,
        _ work: (ExampleTrainer, Examples, PersonalizationControl) throws -> @Sendable () async -> Void
    ) throws {
        try state.withLock { state in
            guard !state.hasEnded else {
                throw RequestError("The studio is shutting down. Start it again to train.", .serviceUnavailable)
            }
            guard state.status.stage != .running else {
                throw RequestError("Training is running. Stop it first.", .conflict)
            }
            let control = PersonalizationControl()
            var examples = state.examples
            examples.undo.removeAll()
            let work = try work(self, examples, control)
            state.examples = examples
            state.status.begin(message, panel: panel)
            state.sheet = nil
            state.training = (Task { await work() }, control)
        }
    }

    /// Stops training; the classifier does not change.
    func stop() async {
        guard let training = state.withLock({ $0.training }) else { return }
        training.control.cancel()
        training.task.cancel()
        await training.task.value
    }

    /// Ends training with the best model so far.
    func keepBest() throws {
        let keepBest = try state.withLock { state in
            guard state.status.canKeepBest, let keepBest = state.keepBest else {
                throw RequestError("There is nothing to keep yet: a phase of training must end first.", .conflict)
            }
            state.status.complete("Completing the best model so far …")
            return keepBest
        }
        keepBest()
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
            state.sheet = nil
            state.status.end(.none, "")
        }
    }

    private func train(on examples: Examples, _ control: PersonalizationControl) async {
        let text = await attempt(ifStopped: "Stopped; the model did not change.") {
            try await learn(examples, control)
        }
        if let text { end(.learned, text) }
    }

    /// Installs a base model, trains with it, and compares it with the base model that comes with Imprint.
    ///
    /// If the base model that comes with Imprint gives a higher accuracy, it trains again from that one.
    private func install(_ offer: BaseModelOffer, _ control: PersonalizationControl) async {
        let isInstalled = await attempt(ifStopped: "Stopped; the base model is not installed.") {
            try await installer.install(offer.name, acceptsLicense: true) { event in
                self.update { $0.update(with: event, title: offer.title) }
            }
            _ = try findBase()
            state.withLock { $0.usesBuiltInBase = false }
            return true
        }
        guard isInstalled != nil else { return }
        let installed = "\(offer.title) is installed."
        // Includes examples that were added during the installation.
        let examples = examples
        if let shortage = shortage(of: examples) { return end(.installed, "\(installed) \(shortage)") }
        let learned = await attempt(ifStopped: "\(installed) Training was stopped; the model did not change.") {
            try await learn(examples, control)
        }
        guard let learned else { return }
        if let shortage = examples.comparisonShortage { return end(.learned, "\(learned) \(shortage)") }
        let comparison = await attempt(ifStopped: "\(learned) The comparison was stopped.") {
            guard let base = try findBase() else {
                throw BaseModelError.notInstalled(name: offer.name, folder: installer.bases.folder.path)
            }
            return try await BaseComparison(
                examples.withoutCopies, try base.model(), name: BaseModelOffer.title(of: base.name), threads: threads,
                temporaryFolder: temporaryFolder
            ) { note in self.update { $0.note(note) } }
        }
        guard let comparison else { return }
        guard comparison.prefersBuiltInBase else {
            return end(.learned, "\(learned) \(comparison.sentence)", comparison)
        }
        state.withLock { $0.usesBuiltInBase = true }
        update { $0.begin("Training from the base model of Imprint, which is more accurate …") }
        let again = await attempt(
            ifStopped: "\(learned) The base model of Imprint is more accurate, but training from it was stopped."
        ) { try await learn(examples, control) }
        if let again { end(.learned, "\(again) \(comparison.sentence)", comparison) }
    }

    /// Returns the installed base model that new models start from.
    private func findBase() throws -> InstalledBase? {
        let base = try installer.bases.first
        state.withLock { $0.base = base }
        return base
    }

    func update(_ change: (inout TrainingStatus) -> Void) { state.withLock { change(&$0.status) } }

    func end(_ stage: TrainingStatus.Stage, _ message: String, _ comparison: BaseComparison? = nil) {
        update { $0.end(stage, message, comparison) }
    }

    /// Returns the result of `work`, or ends the run and returns nil if it is stopped or fails.
    func attempt<Value>(ifStopped message: String, _ work: () async throws -> Value) async -> Value? {
        do {
            return try await work()
        } catch is CancellationError {
            end(.stopped, message)
        } catch {
            end(.failed, "\(error)")
        }
        return nil
    }

    /// Trains, replaces the classifier, and returns a message.
    private func learn(_ examples: Examples, _ control: PersonalizationControl) async throws -> String {
        if let initialClassifier {
            let (classifier, personalization) = try await personalize(initialClassifier, examples, control)
            let note = await use(classifier, .personalization(personalization))
            return "Learned from \(examples.count) examples.\(note)"
        }
        let (result, base) = try await trainNewModel(examples)
        let model = result.model
        let note = await use(try ImageClassifier(model, threads: threads), .classifier(model)) + result.featureNote
        let start = base.map { ", starting from \(BaseModelOffer.title(of: $0.name))" } ?? ""
        return "Learned from \(examples.count) examples\(start).\(note)"
    }

    private func personalize(
        _ initialClassifier: ImageClassifier, _ examples: Examples, _ control: PersonalizationControl
    ) async throws -> (ImageClassifier, Personalization) {
        try await onDedicatedThread { [self] in
            var configuration = PersonalizationConfiguration()
            configuration.threads = threads
            configuration.blocks = try initialClassifier.changedBlocks
            let session = try PersonalizationSession(initialClassifier, configuration: configuration)
            let photos = examples.classes.flatMap { part in
                part.photos.map { (photo: ImageSource.data($0), label: part.label) }
            }
            try session.teach(photos, control: control) { progress in
                self.update { $0.update(with: progress) }
            }
            guard let personalization = session.personalization else { throw ImprintError.nothingToSave }
            return (session.classifier, personalization)
        }
    }

    /// Trains a new model, which starts from the first installed base model.
    ///
    /// It starts from the base model that comes with Imprint if none is installed, or if `usesBuiltInBase` is true.
    private func trainNewModel(_ examples: Examples) async throws -> (TrainingResult, InstalledBase?) {
        try await withPrivateTemporaryFolder(in: temporaryFolder) { folder in
            let photos = try examples.write(to: folder.appending(path: "examples", directoryHint: .isDirectory))
            let base = usesBuiltInBase ? nil : try findBase()
            let configuration = ClassifierConfiguration(
                try base.map { .pretrained(try $0.model(), recipe: .head) } ?? .builtInBase,
                exampleCount: examples.count, threads: threads)
            var result: TrainingResult?
            for try await event in ClassifierTrainer(photos: photos, configuration: configuration).start() {
                update { $0.update(with: event) }
                if case .finished(let finished) = event { result = finished }
            }
            guard let result, !Task.isCancelled else { throw CancellationError() }
            if let error = result.photoError { throw error }
            if let error = result.divergence { throw error }
            return (result, base)
        }
    }
}
