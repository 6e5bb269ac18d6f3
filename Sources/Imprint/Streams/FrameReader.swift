internal import ImprintImages
internal import Synchronization

/// A reader that processes the newest frame whenever an interval has passed, and drops the frames in between.
struct FrameReader {
    /// The result for one frame.
    struct Output<Result: Sendable>: Sendable {
        let result: Result
        /// The index of the frame among all frames of the source, from 0.
        let index: Int
        /// Whether the stream was paused since the previous result.
        let followsPause: Bool
        /// The number of frames dropped since the previous result.
        let droppedCount: Int
        /// The errors of the most recent unreadable frames since the previous result, at most 16.
        let unreadable: [ImageError]
        /// The number of unreadable frames since the previous result.
        let unreadableCount: Int
    }

    private let feed: FrameFeed
    private var frames: AsyncThrowingStream<FrameFeed.Frame, any Error>.Iterator
    private let pause: StreamPause
    private let interval: Duration
    private let clock: FrameClock
    /// The earliest time for the next frame.
    private var due: ContinuousClock.Instant?
    /// The pause generation of the last frame.
    private var generation = 0
    /// The index after the frame of the last result.
    private var next = 0

    init(_ feed: FrameFeed, _ pause: StreamPause, interval: Duration, clock: FrameClock = FrameClock()) {
        (self.feed, self.pause, self.interval, self.clock) = (feed, pause, interval, clock)
        frames = feed.frames.makeAsyncIterator()
    }

    /// Waits for the next frame and processes it; a frame that cannot be read is skipped and counted.
    /// - Returns: The result; nil after the last frame.
    /// - Throws: `ImprintError.invalidSetting` if the interval is negative, `ImageError` if the stream ends and none of its frames could be
    ///   read, `CancellationError` if the task is cancelled, and the errors of the source of the frames and of `process`.
    mutating func next<Result>(
        isolation actor: isolated (any Actor)?, _ process: (ImageSource) async throws -> Result
    ) async throws -> Output<Result>? {
        guard interval >= .zero else {
            throw ImprintError.invalidSetting(name: "interval", found: "\(interval)", expected: "0 seconds or more")
        }
        var (unreadable, unreadableCount): ([ImageError], Int) = ([], 0)
        while true {
            if let due { try await clock.sleep(due) }
            guard let frame = try await frames.next(isolation: actor) else {
                try Task.checkCancellation()
                // The stream ended without a readable frame: throw the reason.
                if next == 0, let error = unreadable.first { throw error }
                return nil
            }
            // The frame arrived before or during a pause.
            guard pause.isCurrent(frame.generation) else { continue }
            due = clock.now() + interval
            do {
                let result = try await process(frame.source)
                defer { (next, generation) = (frame.index + 1, frame.generation) }
                return Output(
                    result: result, index: frame.index, followsPause: generation != frame.generation,
                    droppedCount: frame.index - next - unreadableCount, unreadable: unreadable,
                    unreadableCount: unreadableCount)
            } catch let error as ImageError {
                unreadableCount += 1
                // Bounded: a camera may deliver only unreadable frames for days.
                unreadable = unreadable.suffix(15) + [error]
            }
        }
    }
}

/// The clock of a frame reader.
struct FrameClock: Sendable {
    /// Returns the current time.
    var now: @Sendable () -> ContinuousClock.Instant = { .now }
    /// Waits until a time.
    var sleep: @Sendable (ContinuousClock.Instant) async throws -> Void = {
        try await Task.sleep(until: $0, clock: .continuous)
    }
}

/// Whether a stream is paused.
final class StreamPause: Sendable {
    /// Whether the stream is paused, and the number of changes between paused and running.
    private let state = Mutex((isOn: false, generation: 0))

    var isOn: Bool {
        get { state.withLock { $0.isOn } }
        set {
            state.withLock { state in
                if state.isOn != newValue { state = (newValue, state.generation + 1) }
            }
        }
    }

    /// The number of changes.
    var generation: Int { state.withLock { $0.generation } }

    /// Returns whether the stream is not paused, and has not been since `generation` changes.
    func isCurrent(_ generation: Int) -> Bool { state.withLock { !$0.isOn && $0.generation == generation } }
}

/// A task that reads frames as they arrive and buffers only the newest; releasing the feed cancels the task.
final class FrameFeed: Sendable {
    /// A frame, with its index and the pause generation in which it arrived.
    typealias Frame = (index: Int, generation: Int, source: ImageSource)

    let frames: AsyncThrowingStream<Frame, any Error>
    private let task: Task<Void, Never>

    init<Frames: AsyncSequence & Sendable>(
        _ source: Frames, _ pause: StreamPause
    ) where Frames.Element == ImageSource {
        let (frames, newest) = AsyncThrowingStream.makeStream(
            of: Frame.self, bufferingPolicy: .bufferingNewest(1))
        self.frames = frames
        task = Task {
            do {
                var index = 0
                for try await frame in source {
                    try Task.checkCancellation()
                    newest.yield((index, pause.generation, frame))
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
