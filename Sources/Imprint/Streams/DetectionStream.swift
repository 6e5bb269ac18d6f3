public import ImprintImages

/// An asynchronous sequence of the objects in frames, such as camera frames, with identities.
///
/// ```swift
/// for try await element in DetectionRequest(detector).detections(for: camera.frames, every: .milliseconds(100)) {
///     for tracked in element.objects { overlay.show(tracked.object.box, id: tracked.id) }
/// }
/// ```
///
/// The stream searches the newest frame whenever the interval has passed, and drops the frames in between, as `ClassificationStream` does.
/// `ObjectTracker` describes how objects keep their identities.
public struct DetectionStream: AsyncSequence, Sendable {
    /// The objects in one frame.
    public struct Element: Sendable {
        /// The objects by descending confidence.
        public let objects: [TrackedObject]
        /// The index of the frame among all frames of the source, from 0.
        public let frame: Int
        /// The number of frames dropped since the previous element, because they arrived too fast or during a pause.
        public let droppedCount: Int
        /// The errors of the most recent unreadable frames since the previous element, at most 16.
        public let unreadable: [ImageError]
        /// The number of unreadable frames since the previous element.
        public let unreadableCount: Int
    }

    private let request: DetectionRequest
    private let interval: Duration
    private let tracker: ObjectTracker
    private let pause = StreamPause()
    /// Starts to read frames.
    private let begin: @Sendable (StreamPause) -> FrameFeed

    fileprivate init<Frames: AsyncSequence & Sendable>(
        _ request: DetectionRequest, frames: Frames, interval: Duration, tracker: ObjectTracker
    ) where Frames.Element == ImageSource {
        (self.request, self.interval, self.tracker) = (request, interval, tracker)
        begin = { FrameFeed(frames, $0) }
    }

    /// Whether the stream is paused.
    ///
    /// A paused stream drops all frames, and its iterators wait. After the pause, an iterator continues with the first frame that arrives.
    /// Objects that have not moved keep their identities.
    public var isPaused: Bool {
        get { pause.isOn }
        nonmutating set { pause.isOn = newValue }
    }

    /// Creates an iterator, which starts to read frames.
    public func makeAsyncIterator() -> Iterator {
        Iterator(request, FrameReader(begin(pause), pause, interval: interval), tracker)
    }

    /// An iterator over the objects in frames.
    public struct Iterator: AsyncIteratorProtocol {
        private let request: DetectionRequest
        private var reader: FrameReader
        private var tracker: ObjectTracker

        fileprivate init(_ request: DetectionRequest, _ reader: FrameReader, _ tracker: ObjectTracker) {
            (self.request, self.reader, self.tracker) = (request, reader, tracker)
        }

        /// Waits for the next frame and finds its objects.
        /// - Returns: The objects; nil after the last frame.
        /// - Throws:
        ///   - `ImprintError.invalidSetting` if the interval is negative.
        ///   - The errors of `RequestHandler.perform(_:)` for detection requests, except that frames which cannot be read are skipped.
        ///   - `ImageError` if the stream ends and none of its frames could be read.
        ///   - The errors of the source of the frames, and `CancellationError` if the task is cancelled.
        public mutating func next() async throws -> Element? {
            try await next(isolation: nil)
        }

        /// Waits for the next frame and finds its objects.
        /// - Returns: The objects; nil after the last frame.
        /// - Throws: The errors of `next()`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            let request = request
            guard let frame = try await reader.next(isolation: actor, { try await request.perform(on: $0) }) else {
                return nil
            }
            return Element(
                objects: tracker.update(with: frame.result), frame: frame.index, droppedCount: frame.droppedCount,
                unreadable: frame.unreadable, unreadableCount: frame.unreadableCount)
        }
    }
}

extension DetectionRequest {
    /// Returns a stream of the objects in frames.
    /// - Parameters:
    ///   - frames: The frames, for example from a camera.
    ///   - interval: The minimum time between two searched frames. If it is zero, the stream searches the newest frame as soon as it is done
    ///     with the previous one.
    ///   - tracker: The tracker that gives objects their identities; nil for the default one.
    public func detections<Frames: AsyncSequence & Sendable>(
        for frames: Frames, every interval: Duration = .seconds(1), tracker: ObjectTracker? = nil
    ) -> DetectionStream where Frames.Element == ImageSource {
        DetectionStream(self, frames: frames, interval: interval, tracker: tracker ?? ObjectTracker())
    }
}
