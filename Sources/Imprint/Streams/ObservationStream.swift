public import ImprintImages
internal import Synchronization

/// What a classifier sees in frames that keep coming, at a rate of its own.
///
/// ```swift
/// for try await seen in classifier.observations(for: camera.frames) {
///     needle.turn(to: seen.observations.groupedConfidence(excluding: ["Other"]))
/// }
/// ```
///
/// The newest frame wins: one is looked at as soon as it is time, and those that came before it meanwhile are dropped, so that
/// nothing queues and memory stays as it is, however fast the frames come. A frame that cannot be read is left out and named with the
/// next one that can.
public struct ObservationStream: AsyncSequence, Sendable {
    /// What was seen in one frame.
    public struct Element: Sendable {
        /// What the request's rule accepts, best first, smoothed over time.
        public let observations: [Classification]
        /// The frame's place among all that came, from 0.
        public let frame: Int
        /// How many frames were not looked at since the element before: they came too fast, or during a pause.
        public let droppedCount: Int
        /// Why frames since the element before could not be read, the latest of them; empty where all could.
        public let unreadable: [ImageError]
        /// How many could not be read.
        public let unreadableCount: Int
    }

    typealias Frame = (place: Int, turn: Int, source: ImageSource)

    private let request: ClassificationRequest
    private let interval: Duration
    private let smoothing: Float
    private let pause = Pause()
    /// Begins to take frames; the newest waits until it is asked for.
    private let begin: @Sendable (Pause) -> FrameFeed

    init<Frames: AsyncSequence & Sendable>(
        _ request: ClassificationRequest, frames: Frames, interval: Duration, smoothing: Float
    ) where Frames.Element == ImageSource {
        self.request = request
        self.interval = interval
        self.smoothing = smoothing
        begin = { FrameFeed(frames, $0) }
    }

    /// Whether frames are dropped unseen for the time being; what iterates waits meanwhile, and goes on with a frame that comes after it.
    ///
    /// Smoothing begins again then: what was seen before is no part of what is seen after.
    public var isPaused: Bool {
        get { pause.state.withLock { $0.isOn } }
        nonmutating set {
            pause.state.withLock { state in
                if state.isOn != newValue { state = (newValue, state.turn + 1) }
            }
        }
    }

    /// Begins to take frames.
    public func makeAsyncIterator() -> Iterator {
        Iterator(request, begin(pause), pause, interval: interval, smoothing: smoothing)
    }

    final class Pause: Sendable {
        /// Whether it is on, and how often that has changed.
        let state = Mutex((isOn: false, turn: 0))
    }

    /// Looks at the newest frame whenever it is time.
    public struct Iterator: AsyncIteratorProtocol {
        private let request: ClassificationRequest
        private let feed: FrameFeed
        private var frames: AsyncThrowingStream<Frame, any Error>.Iterator
        private let pause: Pause
        private let interval: Duration
        private var smoothed: SmoothedConfidences
        private var due: ContinuousClock.Instant?
        /// How often the pause had changed when the last frame came.
        private var turn = 0
        /// The frame after the one of the last element.
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

        /// What is seen in the next frame that is looked at; `nil` after the last.
        /// - Throws: `ImprintError.invalidSetting` for an interval or a smoothing out of range, what the frames throw, `ImprintError` as `RequestHandler.perform(_:)`, `ImageError` if none of the frames looked at
        ///   could be read, and `CancellationError`.
        public mutating func next() async throws -> Element? {
            try await next(isolation: nil)
        }

        /// What is seen in the next frame that is looked at; `nil` after the last.
        /// - Throws: As `next()`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            try check()
            var (unreadable, unreadableCount): ([ImageError], Int) = ([], 0)
            while true {
                if let due { try await Task.sleep(until: due, clock: .continuous) }
                guard let frame = try await frames.next(isolation: actor) else {
                    try Task.checkCancellation()
                    // Of frames none of which could be read, nothing was seen.
                    if next == 0, let error = unreadable.first { throw error }
                    return nil
                }
                // A frame from before or during a pause is not what is to be seen after it.
                if pause.state.withLock({ $0.isOn || $0.turn != frame.turn }) { continue }
                due = .now + interval
                if turn != frame.turn {
                    smoothed = SmoothedConfidences(smoothing: smoothed.smoothing)
                    turn = frame.turn
                }
                do {
                    let (all, classifier) = try await request.all(in: frame.source)
                    defer { next = frame.place + 1 }
                    return Element(
                        observations: smoothed.take(all, of: classifier).filter(request.rule.accepts),
                        frame: frame.place, droppedCount: frame.place - next - unreadableCount, unreadable: unreadable,
                        unreadableCount: unreadableCount)
                } catch let error as ImageError {
                    unreadableCount += 1
                    // A camera that gives nothing else for days must not fill memory.
                    unreadable = unreadable.suffix(15) + [error]
                }
            }
        }
    }
}

/// Takes frames as they come and keeps the newest; it ends with what owns it.
final class FrameFeed: Sendable {
    let frames: AsyncThrowingStream<ObservationStream.Frame, any Error>
    private let task: Task<Void, Never>

    init<Frames: AsyncSequence & Sendable>(
        _ source: Frames, _ pause: ObservationStream.Pause
    ) where Frames.Element == ImageSource {
        let (frames, newest) = AsyncThrowingStream.makeStream(
            of: ObservationStream.Frame.self, bufferingPolicy: .bufferingNewest(1))
        self.frames = frames
        task = Task {
            do {
                var place = 0
                for try await frame in source {
                    try Task.checkCancellation()
                    newest.yield((place, pause.state.withLock { $0.turn }, frame))
                    place += 1
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
    /// What is seen in frames that keep coming, once per second where nothing else is said.
    /// - Parameters:
    ///   - frames: The frames, as fast as they come.
    ///   - interval: The least time from one observed frame to the next; with zero, each frame that comes while none is looked at.
    ///   - smoothing: What of the frames before stays in the confidences, 0 (nothing) to less than 1: each becomes
    ///     `smoothing` · before + (1 − `smoothing`) · now.
    public func observations<Frames: AsyncSequence & Sendable>(
        for frames: Frames, every interval: Duration = .seconds(1), smoothing: Float = 0
    ) -> ObservationStream where Frames.Element == ImageSource {
        ObservationStream(self, frames: frames, interval: interval, smoothing: smoothing)
    }

    /// One observation for each label, whatever the rule, and whose they are.
    @concurrent
    fileprivate func all(in source: ImageSource) async throws -> ([Classification], of: ImageClassifier) {
        let request = try PreparedRequest(self)
        return (
            try request.all(source.stored(coveringShortSide: request.shortSideToDecode)), of: request.classifier
        )
    }
}

extension ImageClassifier {
    /// What is seen in frames that keep coming, once per second where nothing else is said.
    ///
    /// As `ClassificationRequest.observations(for:every:smoothing:)`, with all observations of each frame.
    public func observations<Frames: AsyncSequence & Sendable>(
        for frames: Frames, every interval: Duration = .seconds(1), smoothing: Float = 0
    ) -> ObservationStream where Frames.Element == ImageSource {
        ClassificationRequest(self).observations(for: frames, every: interval, smoothing: smoothing)
    }
}
