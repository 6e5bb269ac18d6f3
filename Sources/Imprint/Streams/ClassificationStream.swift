public import ImprintImages
internal import Synchronization

/// An asynchronous sequence of the classifications of frames, such as those of a camera.
///
/// ```swift
/// for try await element in classifier.classifications(for: camera.frames, every: .milliseconds(100)) {
///     let confidence = element.classifications.groupedConfidence(excluding: ["Other"])
///     gauge.setConfidence(confidence)
/// }
/// ```
///
/// The stream classifies the newest frame whenever the interval has passed, and drops the frames in between. Therefore latency and memory
/// stay constant, however fast frames arrive. The stream skips a frame that it cannot read, and reports it in the next element.
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
        /// The errors of the last frames since the previous element that could not be read, at most 16.
        public let unreadable: [ImageError]
        /// The number of all frames since the previous element that could not be read.
        public let unreadableCount: Int
    }

    /// A frame, with its index and the pause generation in which it arrived.
    typealias Frame = (index: Int, generation: Int, source: ImageSource)

    private let request: ClassificationRequest
    private let interval: Duration
    private let smoothing: Float
    private let pause = Pause()
    /// Starts to read frames.
    private let begin: @Sendable (Pause) -> FrameFeed

    init<Frames: AsyncSequence & Sendable>(
        _ request: ClassificationRequest, frames: Frames, interval: Duration, smoothing: Float
    ) where Frames.Element == ImageSource {
        self.request = request
        self.interval = interval
        self.smoothing = smoothing
        begin = { FrameFeed(frames, $0) }
    }

    /// Whether the stream is paused.
    ///
    /// A paused stream drops all frames, and its iterators wait. After the pause, an iterator continues with the first frame that arrives,
    /// and smoothing restarts.
    public var isPaused: Bool {
        get { pause.state.withLock { $0.isOn } }
        nonmutating set {
            pause.state.withLock { state in
                if state.isOn != newValue { state = (newValue, state.generation + 1) }
            }
        }
    }

    /// Creates an iterator, which starts to read frames.
    public func makeAsyncIterator() -> Iterator {
        Iterator(request, begin(pause), pause, interval: interval, smoothing: smoothing)
    }

    final class Pause: Sendable {
        /// Whether the stream is paused, and how often that has changed.
        let state = Mutex((isOn: false, generation: 0))
    }

    /// An iterator over the classifications of frames.
    public struct Iterator: AsyncIteratorProtocol {
        private let request: ClassificationRequest
        private let feed: FrameFeed
        private var frames: AsyncThrowingStream<Frame, any Error>.Iterator
        private let pause: Pause
        private let interval: Duration
        private var smoothed: SmoothedConfidences
        /// The earliest time for the next frame.
        private var due: ContinuousClock.Instant?
        /// The pause generation of the last frame.
        private var generation = 0
        /// The index after the frame of the last element.
        private var next = 0

        init(
            _ request: ClassificationRequest, _ feed: FrameFeed, _ pause: Pause, interval: Duration, smoothing: Float
        ) {
            self.request = request
            self.feed = feed
            self.pause = pause
            self.interval = interval
            frames = feed.frames.makeAsyncIterator()
            smoothed = SmoothedConfidences(smoothing: smoothing)
        }

        private func check() throws(ImprintError) {
            guard interval >= .zero else {
                throw .invalidSetting(name: "interval", found: "\(interval)", expected: "0 seconds or more")
            }
            guard (0..<1).contains(smoothed.smoothing) else {
                throw .invalidSetting(
                    name: "smoothing", found: "\(smoothed.smoothing)", expected: "0 or more, and less than 1")
            }
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
            try check()
            var (unreadable, unreadableCount): ([ImageError], Int) = ([], 0)
            while true {
                if let due { try await Task.sleep(until: due, clock: .continuous) }
                guard let frame = try await frames.next(isolation: actor) else {
                    try Task.checkCancellation()
                    // The stream ends without any element if no frame could be read: report why.
                    if next == 0, let error = unreadable.first { throw error }
                    return nil
                }
                // The frame arrived before or during a pause.
                if pause.state.withLock({ $0.isOn || $0.generation != frame.generation }) { continue }
                due = .now + interval
                if generation != frame.generation {
                    smoothed = SmoothedConfidences(smoothing: smoothed.smoothing)
                    generation = frame.generation
                }
                do {
                    let (all, novelty, classifier) = try await request.all(in: frame.source)
                    defer { next = frame.index + 1 }
                    return Element(
                        classifications: request.accepted(smoothed.take(all, of: classifier), novelty: novelty),
                        novelty: novelty, frame: frame.index, droppedCount: frame.index - next - unreadableCount,
                        unreadable: unreadable,
                        unreadableCount: unreadableCount)
                } catch let error as ImageError {
                    unreadableCount += 1
                    // Bounded: a camera may deliver only unreadable frames for days.
                    unreadable = unreadable.suffix(15) + [error]
                }
            }
        }
    }
}

/// A task that reads frames as they arrive and buffers only the newest; releasing the feed cancels the task.
final class FrameFeed: Sendable {
    let frames: AsyncThrowingStream<ClassificationStream.Frame, any Error>
    private let task: Task<Void, Never>

    init<Frames: AsyncSequence & Sendable>(
        _ source: Frames, _ pause: ClassificationStream.Pause
    ) where Frames.Element == ImageSource {
        let (frames, newest) = AsyncThrowingStream.makeStream(
            of: ClassificationStream.Frame.self, bufferingPolicy: .bufferingNewest(1))
        self.frames = frames
        task = Task {
            do {
                var index = 0
                for try await frame in source {
                    try Task.checkCancellation()
                    newest.yield((index, pause.state.withLock { $0.generation }, frame))
                    index += 1
                }
                newest.finish()
            } catch {
                newest.finish(throwing: error)
            }
        }
    }

    deinit { task.cancel() }
}

extension ClassificationRequest {
    /// Returns a stream of the classifications of frames.
    /// - Parameters:
    ///   - frames: The frames, for example those of a camera.
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
    ///   - frames: The frames, for example those of a camera.
    ///   - interval: The minimum time between two classified frames.
    ///   - smoothing: The weight of the previous frames in each confidence, 0 (no smoothing) to less than 1.
    public func classifications<Frames: AsyncSequence & Sendable>(
        for frames: Frames, every interval: Duration = .seconds(1), smoothing: Float = 0
    ) -> ClassificationStream where Frames.Element == ImageSource {
        ClassificationRequest(self).classifications(for: frames, every: interval, smoothing: smoothing)
    }
}
