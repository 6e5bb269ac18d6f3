public import Foundation
internal import ImprintCore
public import ImprintImages
public import ImprintModel
internal import Synchronization

/// Teaches a classifier one person's photos, one at a time or many at once, while other threads go on using it.
///
/// ```swift
/// let session = try PersonalizationSession(ImageClassifier(contentsOf: base))
/// try session.teach(photo, as: "MyLogo")
/// try session.correct(other, isNot: "MyLogo")
/// let best = try session.classifier.classify(third)[0]
/// try session.save(to: mine)
/// ```
///
/// What is learned depends on the base, what the session began with and the photos shown, and on nothing else: training begins again with
/// every photo, over features that were computed once. So `undo()` gives exactly what was there before, and the same photos in the same
/// order give the same bits.
///
/// `classifier` is read without a lock, whatever another thread teaches at the moment. The base is never changed.
public final class PersonalizationSession: Sendable {
    /// The model without what is taught.
    public let base: ImageClassifier
    /// How it is taught.
    public let configuration: PersonalizationConfiguration
    private let state: Mutex<State>
    private let published: LiveClassifier

    /// What has been taught.
    struct Lesson: Sendable {
        /// What there was before the first photo.
        var before: Personalization?
        var examples: [Example] = []

        var byteCount: Int { examples.reduce(0) { $0 + $1.byteCount } }
    }

    private struct State {
        var lesson: Lesson
        /// What could be undone, the last at the end.
        var earlier: [Lesson] = []
    }

    /// Begins to teach a classifier.
    /// - Parameters:
    ///   - classifier: The model; if it is personalized already, the session goes on from there.
    ///   - configuration: How it is taught.
    /// - Throws: `ImprintError` if a setting is out of range or the model has no head that could be tuned.
    public init(
        _ classifier: ImageClassifier, configuration: PersonalizationConfiguration = PersonalizationConfiguration()
    ) throws {
        try configuration.check()
        base = try classifier.personalized(with: nil)
        self.configuration = configuration
        _ = try base.weights.split(blocks: configuration.blocks)
        let least = try classifier.changedBlocks
        guard configuration.blocks >= least else {
            throw ImprintError.invalidSetting(
                name: "blocks", found: "\(configuration.blocks)",
                expected: "at least \(least), as the personalization to go on from has")
        }
        state = Mutex(State(lesson: Lesson(before: classifier.personalization)))
        published = LiveClassifier(classifier)
    }

    /// The classifier with all that has been taught so far.
    public var classifier: ImageClassifier { published.current }

    /// What has been taught so far; nil if it is nothing.
    public var personalization: Personalization? { classifier.personalization }

    /// How many photos have been shown and not taken back.
    public var exampleCount: Int { state.withLock { $0.lesson.examples.count } }

    /// Shows a photo of a label; a label that the model does not know is added.
    /// - Throws: `ImageError` if the file cannot be read as an image, `ImprintError` where the label cannot be added or there is no
    ///   memory left within the limit.
    public func teach(_ photo: URL, as label: String) throws { try show([example(.file(photo), .isLabel(label))]) }

    /// Shows an image in memory (upright, sRGB) of a label.
    /// - Throws: As `teach(_:as:)` of a file.
    public func teach(_ image: RasterImage, as label: String) throws {
        try show([example(.image(image), .isLabel(label))])
    }

    /// Shows a photo that is not of a label, which the classifier took it for.
    /// - Throws: As `teach(_:as:)`; also if the model does not know the label.
    public func correct(_ photo: URL, isNot label: String) throws { try show([example(.file(photo), .isNot(label))]) }

    /// Shows an image in memory (upright, sRGB) that is not of a label.
    /// - Throws: As `correct(_:isNot:)` of a file.
    public func correct(_ image: RasterImage, isNot label: String) throws {
        try show([example(.image(image), .isNot(label))])
    }

    /// Shows several photos at once.
    /// - Parameters:
    ///   - photos: The photos with their labels; labels that the model does not know are added.
    ///   - control: What may end the work.
    ///   - onProgress: Told on the caller's thread how far it is.
    /// - Throws: As `teach(_:as:)` of a file, and `CancellationError` if the control says so; then the classifier is as it was.
    public func teach(
        _ photos: [(photo: ImageSource, label: String)], control: PersonalizationControl = PersonalizationControl(),
        onProgress: @escaping (PersonalizationProgress) -> Void = { _ in }
    ) throws {
        let workers = Workers(configuration.threads)
        var examples: [Example] = []
        for start in stride(from: 0, to: photos.count, by: 2 * workers.count) {
            try control.check()
            let portion = photos[start..<min(start + 2 * workers.count, photos.count)]
            examples += try workers.parallelMap(portion.count) { place in
                try example(portion[start + place].photo, .isLabel(portion[start + place].label))
            }
            // Features may take many times the bytes of their photos.
            if let each = examples.first?.byteCount, examples.count > room(for: each) {
                let byteCount = state.withLock { $0.lesson.byteCount } + examples.reduce(0) { $0 + $1.byteCount }
                throw ImprintError.featuresExceedMemoryLimit(byteCount: byteCount, limit: configuration.memoryLimit)
            }
            onProgress(.looked(done: examples.count, of: photos.count))
        }
        try show(examples) {
            try control.check(waits: false)
            return false
        } onStep: {
            onProgress(.step($0))
        }
    }

    /// Takes back what was done last: photos shown, or a label forgotten.
    /// - Returns: Whether there was anything to take back.
    @discardableResult
    public func undo() throws -> Bool {
        try state.withLock { state in
            guard let lesson = state.earlier.last else { return false }
            try publish(lesson)
            state.lesson = lesson
            state.earlier.removeLast()
            return true
        }
    }

    /// Forgets the photos of a label that were shown in this session, and what an earlier one changed of the label's own numbers; an added
    /// label is gone.
    ///
    /// What photos of it did to other labels in an earlier session, and to layers before the head, stays.
    /// - Throws: `ImprintError.unknownLabel` if the model does not know it.
    public func forget(_ label: String) throws {
        try change { lesson in
            guard classifier.labels.contains(label) else {
                throw ImprintError.unknownLabel(label, known: classifier.labels)
            }
            lesson.examples.removeAll { $0.evidence.label == label }
            lesson.before = lesson.before?.without(label)
        }
    }

    /// Writes what has been taught; the file is replaced as `AtomicFile` does it, so that it is always the old or the new one.
    /// - Returns: How many bytes it has.
    /// - Throws: `ImprintError.nothingToSave`, `FileError` if the file cannot be written.
    @discardableResult
    public func save(to url: URL) throws -> Int {
        guard let personalization else { throw ImprintError.nothingToSave }
        return try personalization.write(to: url)
    }

    // MARK: Parts

    func example(_ photo: ImageSource, _ evidence: Evidence) throws -> Example {
        Example(
            evidence: evidence, views: try base.runtime.features(of: photo, blocks: configuration.blocks, views: views)
        )
    }

    var views: ImageViews { ImageViews(count: base.weights.head.seesWholeImage ? configuration.views : 1) }

    /// Shows several examples at once.
    func show(
        _ examples: [Example], shouldStop: () throws -> Bool = { false },
        onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws {
        try change(shouldStop: shouldStop, onStep: onStep) { lesson in
            lesson.examples += examples
            if lesson.byteCount > configuration.memoryLimit {
                throw ImprintError.featuresExceedMemoryLimit(byteCount: lesson.byteCount, limit: configuration.memoryLimit)
            }
        }
    }

    /// How many more examples of so many bytes there is room for.
    func room(for byteCount: Int) -> Int {
        let free = configuration.memoryLimit - state.withLock { $0.lesson.byteCount }
        return max(free, 0) / max(byteCount, 1)
    }

    private func change(
        shouldStop: () throws -> Bool = { false }, onStep: ((PersonalizationProgress.Step) -> Void)? = nil,
        _ body: (inout Lesson) throws -> Void
    ) throws {
        try state.withLock { state in
            var lesson = state.lesson
            try body(&lesson)
            try publish(lesson, shouldStop: shouldStop, onStep: onStep)
            state.earlier.append(state.lesson)
            state.lesson = lesson
        }
    }

    /// Trains on all that was shown, and lets other threads use what comes out.
    private func publish(
        _ lesson: Lesson, shouldStop: () throws -> Bool = { false },
        onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws {
        let personalization = try PersonalizationTrainer(base, lesson, configuration).run(
            shouldStop: shouldStop, onStep: onStep)
        published.replace(with: try base.personalized(with: personalization))
    }

    /// The share of photos that is judged rightly, 0…1.
    public struct Accuracy: Sendable, Hashable {
        /// Before the session.
        public let before: Double
        /// By personalizations that did not learn from the photo judged.
        public let after: Double
    }

    /// How much of what was shown is judged rightly.
    ///
    /// The photos are divided into `folds`, in turn; each is judged by a classifier that was taught the others. Photos of one burst are in
    /// different folds, so that where there are bursts `after` is too high.
    /// - Returns: nil if there are fewer than two photos a fold, or a label has but one.
    public func crossValidated(folds: Int = 5) throws -> Accuracy? {
        try crossValidated(folds: folds) { false }
    }

    /// The same; `nil` also if it is to stop before the end.
    func crossValidated(folds: Int, shouldStop: () throws -> Bool) throws -> Accuracy? {
        precondition(folds >= 2, "photos are divided into at least 2 folds, not \(folds)")
        let lesson = state.withLock { $0.lesson }
        return try PersonalizationTrainer.crossValidated(
            base, lesson, configuration, folds: folds, shouldStop: shouldStop)
    }
}

extension ImageClassifier {
    /// Whether a session can add labels; a logo detector knows only the labels of its artwork.
    package var learnsNewLabels: Bool { weights.head.acceptsNewLabels }

    /// How many blocks of layers before the head its personalization changes; a session that goes on from it needs as many.
    package var changedBlocks: Int { get throws { try personalization.map(weights.blocks) ?? 0 } }
}
