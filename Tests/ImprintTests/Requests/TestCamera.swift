import ImprintImages
import Synchronization
import TestSupport

@testable import Imprint

/// A camera whose frames a test delivers one by one.
final class TestCamera: AsyncSequence, Sendable {
    typealias Element = ImageSource

    private let frames: AsyncStream<ImageSource>
    private let newFrames: AsyncStream<ImageSource>.Continuation
    /// The number of delivered frames, and how many frames the reader has asked for.
    private let counts = Mutex((delivered: 0, requested: 0))

    init() { (frames, newFrames) = AsyncStream.makeStream(of: ImageSource.self) }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(camera: self, frames: frames.makeAsyncIterator()) }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let camera: TestCamera
        fileprivate var frames: AsyncStream<ImageSource>.Iterator

        mutating func next() async -> ImageSource? {
            camera.counts.withLock { $0.requested += 1 }
            return await frames.next()
        }
    }

    /// Delivers a frame without waiting for its reader.
    func send(_ frame: ImageSource) {
        counts.withLock { $0.delivered += 1 }
        newFrames.yield(frame)
    }

    /// Delivers a frame, and waits until the reader asks for the next one.
    func deliver(_ frame: ImageSource) async throws {
        send(frame)
        while counts.withLock({ $0.requested <= $0.delivered }) { try await Task.sleep(for: .milliseconds(1)) }
    }

    /// Ends the frames.
    func finish() { newFrames.finish() }
}

/// The clock of a stream, whose waits end immediately.
final class StreamClock: Sendable {
    private let clock = ManualClock()
    private let state = Mutex((waitCount: 0, onWait: { _ in } as @Sendable (Int) async throws -> Void))

    /// The current time.
    var now: ContinuousClock.Instant { clock.now }

    /// Sets a closure that each wait calls with its number, from 1.
    func onWait(_ action: @escaping @Sendable (_ number: Int) async throws -> Void) {
        state.withLock { $0.onWait = action }
    }

    /// The clock for the stream.
    var frameClock: FrameClock {
        FrameClock(now: { self.now }, sleep: { try await self.wait(until: $0) })
    }

    private func wait(until instant: ContinuousClock.Instant) async throws {
        let (number, action) = state.withLock { state in
            state.waitCount += 1
            return (state.waitCount, state.onWait)
        }
        try await action(number)
        clock.advance(to: instant)
    }
}
