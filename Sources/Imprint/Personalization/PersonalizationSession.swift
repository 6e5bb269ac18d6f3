public import Foundation
internal import ImprintCore
public import ImprintImages
public import ImprintModel
internal import Synchronization

/// A session that personalizes a classifier with a user's photos, while other threads keep using the classifier.
///
/// ```swift
/// let session = try PersonalizationSession(ImageClassifier(contentsOf: base))
/// try session.teach(photo, as: "MyLogo")
/// try session.correct(otherPhoto, isNot: "MyLogo")
/// let best = try session.classifier.classify(thirdPhoto)[0]
/// try session.save(to: file)
/// ```
///
/// Load the saved file again with `Personalization.init(contentsOf:)` and apply it with `ImageClassifier.personalized(with:)`.
///
/// After each change, the session trains again on the features of all its photos, which it computes only once. The result therefore depends
/// only on the base model, the initial personalization and the photos. `undo()` restores the previous state exactly, and the same photos in
/// the same order give a bitwise identical result.
///
/// A session is thread-safe. The methods that change it run one after another. Reading `classifier`, `personalization` or `exampleCount` does not
/// wait for training: until a call has finished training, they return the previous state. The session never changes the base model.
///
/// A progress closure can read the session, but must not change it. During training, `teach`, `correct`, `forget` and `undo()` then throw
/// `ImprintError.sessionIsTraining`. While `teach` reads photos, the session is not locked, and a change by the closure would mix with its call.
///
/// Methods that train throw `ImprintError.personalizationDiverged` if a parameter is not finite, or is beyond the range of float16, and
/// `NetworkError.outOfMemory`.
public final class PersonalizationSession: Sendable {
    /// The classifier without any personalization.
    public let base: ImageClassifier
    /// The hyperparameters and limits.
    public let configuration: PersonalizationConfiguration
    /// Held while a call changes the session, including its training.
    let training = TrainingLock()
    /// The training data, locked only to read it or to commit a change.
    private let history: Mutex<TrainingHistory>
    private let published: LiveClassifier

    /// Creates a session.
    /// - Parameters:
    ///   - classifier: The classifier to personalize. If it has a personalization, the session continues from it.
    ///   - configuration: The hyperparameters and limits.
    /// - Throws: `ImprintError` if a setting is out of range, or the model does not have a trainable head.
    public init(
        _ classifier: ImageClassifier, configuration: PersonalizationConfiguration = PersonalizationConfiguration()
    ) throws {
        try configuration.check()
        base = try classifier.personalized(with: nil)
        self.configuration = configuration
        guard base.model.head.isTrainable else {
            throw ImprintError.cannotTrainImportedDetector(network: base.model.network.name)
        }
        guard base.model.head != .sigmoid else {
            throw ImprintError.cannotPersonalizeMultiLabel(network: base.model.network.name)
        }
        _ = try base.model.split(blocks: configuration.blocks)
        let minimum = try classifier.changedBlocks
        guard configuration.blocks >= minimum else {
            throw ImprintError.invalidSetting(
                name: "blocks", found: "\(configuration.blocks)",
                expected: "at least \(minimum), the number of blocks that the initial personalization changes")
        }
        history = Mutex(TrainingHistory(TrainingData(initial: classifier.personalization)))
        published = LiveClassifier(classifier)
    }

    /// The classifier with the current personalization.
    public var classifier: ImageClassifier { published.current }

    /// The current personalization; nil if there is none.
    public var personalization: Personalization? { classifier.personalization }

    /// The number of photos in the session, without those that were undone or forgotten.
    public var exampleCount: Int { history.withLock { $0.data.examples.count } }

    /// The number of bytes of all features in the session, including those of forgotten photos.
    var byteCount: Int { history.withLock { $0.byteCount } }

    /// Adds a photo of a label and trains.
    ///
    /// If the model does not have the label, the session adds it.
    /// - Throws: `ImageError` if the file cannot be read as an image, `ImprintError` if the label cannot be added or the memory limit is
    ///   exceeded.
    public func teach(_ photo: URL, as label: String) throws { try add(.file(photo), .isLabel(label)) }

    /// Adds an image of a label and trains.
    ///
    /// If the model does not have the label, the session adds it.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - label: The label.
    /// - Throws: `ImprintError` if the label cannot be added or the memory limit is exceeded.
    public func teach(_ image: RasterImage, as label: String) throws {
        try add(.image(image), .isLabel(label))
    }

    /// Adds a photo that does not have a label, for example because the classifier was wrong about it, and trains.
    /// - Throws: `ImageError` if the file cannot be read as an image, `ImprintError` if the model does not know the label or the memory
    ///   limit is exceeded.
    public func correct(_ photo: URL, isNot label: String) throws { try add(.file(photo), .isNot(label)) }

    /// Adds an image that does not have a label, for example because the classifier was wrong about it, and trains.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - label: The label.
    /// - Throws: `ImprintError` if the model does not know the label or the memory limit is exceeded.
    public func correct(_ image: RasterImage, isNot label: String) throws {
        try add(.image(image), .isNot(label))
    }

    /// Adds several photos and trains once.
    ///
    /// If the call throws, the session and its classifier do not change.
    /// - Parameters:
    ///   - photos: The photos with their labels. The session adds labels that the model does not have.
    ///   - control: A control to pause or cancel the call from another thread.
    ///   - onProgress: A closure that receives the progress, on the caller's thread. It can read the session, but not change it.
    /// - Throws: `ImageError` if an image cannot be read, `ImprintError` if a label cannot be added or the memory limit is exceeded,
    ///   `CancellationError` if `control` is cancelled.
    public func teach(
        _ photos: [(photo: ImageSource, label: String)], control: PersonalizationControl = PersonalizationControl(),
        onProgress: @escaping (PersonalizationProgress) -> Void = { _ in }
    ) throws {
        try checkLabels(of: photos.map { .isLabel($0.label) })
        let workers = Workers(configuration.threads)
        var examples: [Example] = []
        for start in stride(from: 0, to: photos.count, by: 2 * workers.count) {
            try control.check()
            let chunk = photos[start..<min(start + 2 * workers.count, photos.count)]
            examples += try workers.parallelMap(chunk.count) { index in
                try example(chunk[start + index].photo, .isLabel(chunk[start + index].label))
            }
            // Checked for every chunk, because features may take many times the bytes of their photos.
            if let each = examples.first?.byteCount, examples.count > capacity(for: each) {
                let byteCount = history.withLock { $0.data.byteCount } + examples.reduce(0) { $0 + $1.byteCount }
                throw ImprintError.featuresExceedMemoryLimit(byteCount: byteCount, limit: configuration.memoryLimit)
            }
            onProgress(.extractedFeatures(done: examples.count, of: photos.count))
        }
        try add(examples) {
            try control.check(waits: false)
            return false
        } onStep: {
            onProgress(.step($0))
        }
    }

    /// Undoes the last call of `teach`, `correct` or `forget` that has not been undone.
    ///
    /// For this, the session keeps the features of forgotten photos. If they and the features of its photos exceed
    /// `PersonalizationConfiguration.memoryLimit`, the session drops the oldest forgotten photos. You then cannot undo that call of `forget`
    /// or the calls before it. The last call can always be undone.
    /// - Returns: Whether there was a call to undo.
    /// - Throws: The errors of training; the session then stays unchanged.
    @discardableResult
    public func undo() throws -> Bool {
        try training.withLock {
            guard let data = history.withLock({ $0.previousData }) else { return false }
            try publish(data)
            history.withLock { $0.undo() }
            return true
        }
    }

    /// Removes the photos of a label from the session, and trains.
    ///
    /// The call removes an added label from the classifier, and undoes the change that earlier sessions made to the label's column
    /// in the head. It does not undo the effect of earlier sessions on the columns of other labels and on the layers before the
    /// head. The session keeps the features of the photos for `undo()`, which describes when it drops them.
    /// - Throws: `ImprintError.unknownLabel` if the classifier does not have the label.
    public func forget(_ label: String) throws {
        try change { data in
            guard classifier.labels.contains(label) else {
                throw ImprintError.unknownLabel(label, known: classifier.labels)
            }
            return data.forget(label)
        }
    }

    /// Saves the current personalization, and replaces an existing file atomically.
    /// - Returns: The size of the file in bytes.
    /// - Throws: `ImprintError.nothingToSave` if there is no personalization, `FileError` if the file cannot be written.
    @discardableResult
    public func save(to url: URL) throws -> Int {
        guard let personalization else { throw ImprintError.nothingToSave }
        return try personalization.write(to: url)
    }

    // MARK: Training

    /// Checks the labels of further photos and corrections, before the session reads the photos.
    /// - Throws: `ImprintError.unknownLabel` or `ImprintError.cannotAddLabel`.
    func checkLabels(of supervision: [Supervision]) throws(ImprintError) {
        let data = history.withLock { $0.data }
        _ = try PersonalizationTrainer.newLabels(of: data.examples.map(\.supervision) + supervision, base, data.initial)
    }

    /// Adds a photo and trains.
    private func add(_ photo: ImageSource, _ supervision: Supervision) throws {
        try checkLabels(of: [supervision])
        try add([example(photo, supervision)])
    }

    /// Extracts the features of a photo.
    func example(_ photo: ImageSource, _ supervision: Supervision) throws -> Example {
        Example(
            supervision: supervision,
            views: try base.runtime.features(of: photo, blocks: configuration.blocks, views: views)
        )
    }

    var views: ImageViews { ImageViews(count: base.model.head.seesWholeImage ? configuration.views : 1) }

    /// Adds examples and trains.
    func add(
        _ examples: [Example], shouldStop: () throws -> Bool = { false },
        onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws {
        try change(shouldStop: shouldStop, onStep: onStep) { data in
            let step = data.add(examples)
            if data.byteCount > configuration.memoryLimit {
                throw ImprintError.featuresExceedMemoryLimit(
                    byteCount: data.byteCount, limit: configuration.memoryLimit)
            }
            return step
        }
    }

    /// Returns the number of further examples of a size that fit within the memory limit; undo steps are dropped for them.
    func capacity(for byteCount: Int) -> Int {
        let free = configuration.memoryLimit - history.withLock { $0.data.byteCount }
        return max(free, 0) / max(byteCount, 1)
    }

    /// Changes the training data, trains, and records the step that reverts the change for `undo()`.
    private func change(
        shouldStop: () throws -> Bool = { false }, onStep: ((PersonalizationProgress.Step) -> Void)? = nil,
        _ body: (inout TrainingData) throws -> UndoStep
    ) throws {
        try training.withLock {
            var data = history.withLock { $0.data }
            let step = try body(&data)
            try publish(data, shouldStop: shouldStop, onStep: onStep)
            history.withLock { $0.change(to: data, revertedBy: step, limit: configuration.memoryLimit) }
        }
    }

    /// Trains on all examples and publishes the new classifier.
    private func publish(
        _ data: TrainingData, shouldStop: () throws -> Bool = { false },
        onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws {
        let personalization = try PersonalizationTrainer(base, data, configuration).run(
            shouldStop: shouldStop, onStep: onStep)
        published.replace(with: try base.personalized(with: personalization))
    }

    /// The accuracy on the photos of a session, 0…1.
    public struct Accuracy: Sendable, Hashable {
        /// The accuracy of the classifier that the session started with.
        public let before: Double
        /// The cross-validated accuracy of the personalized classifier.
        public let after: Double
    }

    /// Measures the accuracy on the photos of the session by k-fold cross-validation.
    ///
    /// Each photo is classified by a personalization that was trained without the photo's fold. Photos of one burst are distributed over
    /// the folds, so `after` is too high if the session contains bursts.
    /// - Parameter folds: The number of folds, at least 2.
    /// - Returns: The accuracy; nil if there are fewer than two photos per fold, or a label has only one photo.
    /// - Throws: The errors of training.
    public func crossValidated(folds: Int = 5) throws -> Accuracy? {
        try crossValidated(folds: folds) { false }
    }

    /// Measures the accuracy; the result is also nil if `shouldStop` returns true.
    func crossValidated(folds: Int, shouldStop: () throws -> Bool) throws -> Accuracy? {
        precondition(folds >= 2, "cross-validation needs at least 2 folds, not \(folds)")
        let data = history.withLock { $0.data }
        return try PersonalizationTrainer.crossValidated(
            base, data, configuration, folds: folds, shouldStop: shouldStop)
    }
}

extension ImageClassifier {
    /// Whether photos can add labels; a logo detector learns new logos only from artwork or boxes.
    package var learnsNewLabels: Bool { model.head.learnsLabelsFromPhotos }

    /// The number of blocks before the head that the personalization changes; a session that continues from it needs at least as many.
    package var changedBlocks: Int { get throws { try personalization.map(model.blocks) ?? 0 } }
}
