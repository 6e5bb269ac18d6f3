internal import ImprintCore
public import ImprintImages

/// An asynchronous sequence of the classifications of frames, such as camera frames.
///
/// ```swift
/// for try await element in classifier.classifications(for: camera.frames, every: .milliseconds(100)) {
///     let confidence = element.classifications.groupedConfidence(
///         excluding: ["Other"], sumToOne: classifier.confidencesSumToOne)
///     gauge.setConfidence(confidence)
/// }
/// ```
///
/// The stream classifies the newest frame whenever the interval has passed, and drops the frames in between. Latency and memory therefore
/// stay constant, no matter how fast the frames arrive. The stream skips a frame that it cannot read, and reports it in the next element.
public struct ClassificationStream: AsyncSequence, Sendable {
    /// The classifications of one frame.
    public struct Element: Sendable {
        /// The classifications that the request's rule accepts, by descending confidence, smoothed over time.
        public let classifications: [Classification]
        /// The novelty of the frame, as `ImageClassifier.novelty(of:cropAndScale:)` returns it; it is not smoothed.
        public let novelty: Float?
        /// The index of the frame among all frames of the source, from 0.
        public let frame: Int
        /// The number of frames dropped since the previous element, because they arrived too fast or during a pause.
        public let droppedCount: Int
        /// The errors of the most recent unreadable frames since the previous element, at most 16.
        public let unreadable: [ImageError]
        /// The number of unreadable frames since the previous element.
        public let unreadableCount: Int
    }

    private let request: ClassificationRequest
    private let interval: Duration
    private let smoothing: Float
    private let clock: FrameClock
    private let pause = StreamPause()
    /// Starts to read frames.
    private let begin: @Sendable (StreamPause) -> FrameFeed

    init<Frames: AsyncSequence & Sendable>(
        _ request: ClassificationRequest, frames: Frames, interval: Duration, smoothing: Float,
        clock: FrameClock = FrameClock()
    ) where Frames.Element == ImageSource {
        self.request = request
        self.interval = interval
        self.smoothing = smoothing
        self.clock = clock
        begin = { FrameFeed(frames, $0) }
    }

    /// Whether the stream is paused.
    ///
    /// A paused stream drops all frames, and its iterators wait. After the pause, an iterator continues with the first frame that arrives,
    /// and smoothing restarts.
    public var isPaused: Bool {
        get { pause.isOn }
        nonmutating set { pause.isOn = newValue }
    }

    /// Creates an iterator, which starts to read frames.
    public func makeAsyncIterator() -> Iterator {
        Iterator(request, FrameReader(begin(pause), pause, interval: interval, clock: clock), smoothing: smoothing)
    }

    /// An iterator over the classifications of frames.
    public struct Iterator: AsyncIteratorProtocol {
        private let request: ClassificationRequest
        private var reader: FrameReader
        private var smoothed: SmoothedConfidences

        init(_ request: ClassificationRequest, _ reader: FrameReader, smoothing: Float) {
            self.request = request
            self.reader = reader
            smoothed = SmoothedConfidences(smoothing: smoothing)
        }

        /// Waits for the next frame and classifies it.
        /// - Returns: The classifications; nil after the last frame.
        /// - Throws:
        ///   - `ImprintError.invalidSetting` if the interval, the smoothing or a setting of the request is out of range.
        ///   - `ImprintError.missingMetric` or `ImprintError.nonFiniteOutput`, as `RequestHandler.perform(_:)`.
        ///   - `ImageError` if the stream ends and none of its frames could be read.
        ///   - The errors of the source of the frames, and `CancellationError` if the task is cancelled.
        public mutating func next() async throws -> Element? {
            try await next(isolation: nil)
        }

        /// Waits for the next frame and classifies it.
        /// - Returns: The classifications; nil after the last frame.
        /// - Throws: The errors of `next()`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            guard (0..<1).contains(smoothed.smoothing) else {
                throw ImprintError.invalidSetting(
                    name: "smoothing", found: messageText(smoothed.smoothing), expected: "0 or more, and less than 1")
            }
            let request = request
            guard let frame = try await reader.next(isolation: actor, { try await request.all(in: $0) }) else {
                return nil
            }
            if frame.followsPause { smoothed = SmoothedConfidences(smoothing: smoothed.smoothing) }
            let (all, novelty, classifier) = frame.result
            return Element(
                classifications: request.accepted(smoothed.take(all, of: classifier), novelty: novelty),
                novelty: novelty, frame: frame.index, droppedCount: frame.droppedCount,
                unreadable: frame.unreadable, unreadableCount: frame.unreadableCount)
        }
    }
}

extension ClassificationRequest {
    /// Returns a stream of the classifications of frames.
    /// - Parameters:
    ///   - frames: The frames, for example from a camera.
    ///   - interval: The minimum time between two classified frames. If it is zero, the stream classifies the newest frame as soon as it is
    ///     done with the previous one.
    ///   - smoothing: The weight of the previous frames in each confidence, 0 (no smoothing) to less than 1: s ← `smoothing` · s +
    ///     (1 − `smoothing`) · c.
    public func classifications<Frames: AsyncSequence & Sendable>(
        for frames: Frames, every interval: Duration = .seconds(1), smoothing: Float = 0
    ) -> ClassificationStream where Frames.Element == ImageSource {
        ClassificationStream(self, frames: frames, interval: interval, smoothing: smoothing)
    }

    /// Returns one classification per label without applying the rule, and also the novelty of the image and the classifier.
    @concurrent
    fileprivate func all(
        in source: ImageSource
    ) async throws -> ([Classification], novelty: Float?, of: ImageClassifier) {
        let request = try PreparedRequest(self)
        let (all, novelty) = try request.all(source.stored(coveringShortSide: request.shortSideToDecode))
        return (all, novelty, of: request.classifier)
    }
}

extension ImageClassifier {
    /// Returns a stream of all classifications of frames.
    ///
    /// Use `ClassificationRequest.classifications(for:every:smoothing:)` for a region of interest or a confidence rule.
    /// - Parameters:
    ///   - frames: The frames, for example from a camera.
    ///   - interval: The minimum time between two classified frames.
    ///   - smoothing: The weight of the previous frames in each confidence, 0 (no smoothing) to less than 1.
    public func classifications<Frames: AsyncSequence & Sendable>(
        for frames: Frames, every interval: Duration = .seconds(1), smoothing: Float = 0
    ) -> ClassificationStream where Frames.Element == ImageSource {
        ClassificationRequest(self).classifications(for: frames, every: interval, smoothing: smoothing)
    }
}
