public import Foundation
internal import Imprint
internal import ImprintCore
public import ImprintImages
internal import ImprintModel
public import ImprintSynthesis

/// Estimates the accuracy of a trainer on new photos by K-fold cross-validation.
///
/// The run splits the photos into K folds. For each fold, it trains a model on the other folds and evaluates it on the fold. Groups of
/// copies, near-duplicates and bursts stay in one fold, so a model never predicts near-duplicates of its training photos.
///
/// ```swift
/// var options = CrossValidation.Options()
/// options.folds = 10
/// let validation = CrossValidation(photos: try ImageFolder(at: photos), options: options)
/// for try await event in validation.start() {
///     switch event {
///     case .fold(let fold): print(fold.number, fold.evaluation?.accuracy ?? 0)
///     case .finished(let result): print(result.metrics?.accuracy.value ?? 0, result.metrics?.accuracy.interval ?? 0...1)
///     default: break
///     }
/// }
/// ```
///
/// If any photo has several labels or none, or if `ClassifierConfiguration.isMultiLabel` is set, the run trains multi-label models, whose
/// results are `multiLabelEvaluation` and `multiLabelMetrics`.
///
/// The same photos, configuration and options give the same result, for any number of threads.
public struct CrossValidation: Sendable {
    /// The settings of a cross-validation.
    public struct Options: Sendable, Hashable {
        /// The number of folds, at least 2.
        public var folds = 5
        /// The random seeds of the repeats: each splits the photos again and trains with the seed.
        ///
        /// Nil means the seed of the configuration.
        public var seeds: [UInt64]?
        /// Further groups of photos that stay in one fold, as paths relative to the folder of photos, or as written in a list of photos or
        /// an annotation file.
        ///
        /// They are joined with the groups of near-duplicates and bursts that Imprint finds.
        public var groups: [[String]] = []
        /// Whether to average predictions over a photo and its horizontal flip; an error for logo detectors.
        public var averagesFlipped = false
        /// The folder in which the run saves the model and the predictions of each finished fold; nil to save nothing.
        ///
        /// A later run with the same photos and settings reads the finished folds and trains only the others. Only one run at a time uses the
        /// folder.
        public var foldsFolder: URL?

        /// Creates the default options.
        public init() {}
    }

    let photos: any TrainingSource
    let options: Options
    let training: FoldTraining

    /// Creates the cross-validation of a classifier.
    /// - Parameters:
    ///   - photos: The photos: a folder (`ImageFolder`), a list (`LabelList`), or photos in memory (`InMemorySource`).
    ///   - configuration: The hyperparameters and the base model. Validation photos are a fraction of the training photos of a fold; a
    ///     separate validation folder is an error, because its photos could resemble the test photos of a fold.
    ///   - options: The number of folds and other settings.
    public init(
        photos: some TrainingSource, configuration: ClassifierConfiguration = ClassifierConfiguration(),
        options: Options = Options()
    ) {
        self.photos = photos
        self.options = options
        training = FoldTraining(photos, configuration)
    }

    /// Creates the cross-validation of a logo detector.
    /// - Parameters:
    ///   - artwork: The artwork by label, as for `DetectorTrainer`.
    ///   - photos: The photos, with one label each, as for `DetectorTrainer`.
    ///   - backgrounds: The backgrounds of composites, as for `DetectorTrainer`; the run excludes photos of the evaluated fold.
    ///   - configuration: The hyperparameters; a separate validation folder is an error.
    ///   - options: The number of folds and other settings.
    public init(
        artwork: [String: [Artwork]], photos: some TrainingSource, backgrounds: [URL]? = nil,
        configuration: DetectorConfiguration = DetectorConfiguration(), options: Options = Options()
    ) {
        self.photos = photos
        self.options = options
        training = FoldTraining(artwork, photos, backgrounds, configuration)
    }

    /// Creates the cross-validation of a detector on photos with boxes.
    ///
    /// The results are `CrossValidationResult.detectionEvaluation` and `CrossValidationResult.detectorMetrics`.
    /// - Parameters:
    ///   - artwork: The artwork by label, as for `DetectorTrainer`; may be empty.
    ///   - annotations: The photos with the boxes of all objects.
    ///   - backgrounds: The backgrounds of composites, as for `DetectorTrainer`; the run excludes photos of the evaluated fold.
    ///   - configuration: The hyperparameters; a separate validation folder is an error.
    ///   - options: The number of folds and other settings.
    public init(
        artwork: [String: [Artwork]] = [:], annotations: BoxAnnotations, backgrounds: [URL]? = nil,
        configuration: DetectorConfiguration = DetectorConfiguration(), options: Options = Options()
    ) {
        let annotations = annotations.withoutUnusedLabels
        photos = AnnotatedSource(annotations)
        self.options = options
        training = FoldTraining(artwork, annotations, backgrounds, configuration)
    }

    /// Starts the cross-validation on a background thread.
    /// - Returns: The run's events.
    public func start() -> CrossValidationRun { start(shouldStop: { false }) }

    /// Starts a run that also ends if `shouldStop`, called after each training step on the run's thread, returns true.
    package func start(shouldStop: @escaping @Sendable () -> Bool) -> CrossValidationRun {
        CrossValidationRun(self, shouldStop: shouldStop)
    }

    /// Runs the cross-validation on the caller's thread.
    /// - Throws: See `CrossValidationRun`.
    package func run(
        onEvent: @escaping (CrossValidationEvent) -> Void = { _ in }, shouldStop: @escaping () -> Bool = { false }
    ) throws -> CrossValidationResult {
        try CrossValidationRunner(self, onEvent: onEvent, shouldStop: shouldStop).run()
    }
}
