package import Dispatch
package import Foundation
internal import ImprintCore
internal import Synchronization

/// One request, whose response is streamed chunk by chunk and never held in memory.
///
/// It reports redirects instead of following them, and does not decompress the body.
package final class HTTPExchange: Sendable {
    package enum Outcome: Sendable {
        case complete
        /// A redirect with the value of the header `Location`.
        case redirect(String)
    }

    private enum State {
        case idle
        case running(CheckedContinuation<Outcome, any Error>, Received)
        case ended
    }

    /// The progress of the response.
    private struct Received {
        var hasResponse = false
        /// The number of bytes of the body received in this interval.
        var newByteCount = 0
    }

    private let onResponse: @Sendable (HTTPResponse) throws -> Void
    private let onData: @Sendable (Data) throws -> Void
    /// The lock is held during callbacks, so that no callback runs after the end.
    private let state = Mutex(State.idle)
    /// A cancelled exchange calls no further callback, even before it has ended.
    private let cancellation = CancellationFlag()

    /// - Parameters:
    ///   - onResponse: Receives the header of a response that is not a redirect.
    ///   - onData: Receives each chunk of the body.
    package init(
        onResponse: @escaping @Sendable (HTTPResponse) throws -> Void,
        onData: @escaping @Sendable (Data) throws -> Void
    ) {
        self.onResponse = onResponse
        self.onData = onData
    }

    /// Sends the request and waits for the end.
    /// - Throws: The errors of `onResponse` and `onData`, `HTTPError` if the connection fails or the response is invalid, `StoreError` if
    ///   the server is too slow, `CancellationError` if the task is cancelled.
    package func run(
        _ request: HTTPRequest, until deadline: DispatchTime, _ limits: DownloadLimits
    ) async throws -> Outcome {
        #if canImport(Darwin)
            let transfer = SessionTransfer(request, self)
        #else
            let transfer = CurlTransfer(request, self)
        #endif
        var timers: [any DispatchSourceTimer] = []
        defer { for timer in timers { timer.cancel() } }
        return try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await withCheckedThrowingContinuation { continuation in
                do {
                    try begin(continuation, request, until: deadline, limits)
                } catch {
                    return continuation.resume(throwing: error)
                }
                // A timer that fires before the exchange runs would cancel the transfer without an error.
                timers = watch(transfer, url: request.url.redacted, until: deadline, limits)
                transfer.start()
            }
        } onCancel: {
            cancellation.set()
            // A callback that cancels the task runs this handler while its thread holds the lock, so another thread waits for the lock.
            DispatchQueue.global().async { [self] in
                end(.failure(CancellationError()))
                transfer.cancel()
            }
        }
    }

    /// Begins the exchange, unless it has been cancelled or the deadline has passed.
    private func begin(
        _ continuation: CheckedContinuation<Outcome, any Error>, _ request: HTTPRequest, until deadline: DispatchTime,
        _ limits: DownloadLimits
    ) throws {
        try state.withLock { state in
            guard case .idle = state else { throw CancellationError() }
            guard deadline > .now() else {
                state = .ended
                throw StoreError.timedOut(url: request.url.redacted, limit: limits.time)
            }
            state = .running(continuation, Received())
        }
    }

    /// Ends the exchange if it takes too long or the server is too slow.
    private func watch(
        _ transfer: some HTTPTransfer, url: String, until deadline: DispatchTime, _ limits: DownloadLimits
    ) -> [any DispatchSourceTimer] {
        func timer(
            _ first: DispatchTime, every interval: DispatchTimeInterval,
            _ check: @escaping @Sendable (inout Received) throws -> Void
        ) -> any DispatchSourceTimer {
            let timer = DispatchSource.makeTimerSource()
            timer.schedule(deadline: first, repeating: interval)
            timer.setEventHandler { if !self.deliver(check) { transfer.cancel() } }
            timer.resume()
            return timer
        }
        let interval = limits.interval.dispatchInterval
        return [
            timer(deadline, every: .seconds(1)) { _ in throw StoreError.timedOut(url: url, limit: limits.time) },
            timer(.now() + interval, every: interval) { received in
                guard received.newByteCount >= limits.bytesPerInterval else {
                    throw StoreError.tooSlow(
                        url: url, byteCount: received.newByteCount, interval: limits.interval,
                        expected: limits.bytesPerInterval)
                }
                received.newByteCount = 0
            },
        ]
    }

    private func end(_ result: Result<Outcome, any Error>) {
        let continuation = state.withLock { state -> CheckedContinuation<Outcome, any Error>? in
            defer { state = .ended }
            if case .running(let continuation, _) = state { return continuation } else { return nil }
        }
        continuation?.resume(with: result)
    }

    /// Runs a callback unless the exchange has ended; an error ends the exchange.
    /// - Returns: Whether the exchange continues.
    private func deliver(_ body: (inout Received) throws -> Void) -> Bool {
        let result = state.withLock { state -> Result<Bool, any Error> in
            guard case .running(let continuation, var received) = state else { return .success(false) }
            do {
                try cancellation.check()
                try body(&received)
                state = .running(continuation, received)
                return .success(true)
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success(let continues): return continues
        case .failure(let error):
            end(.failure(error))
            return false
        }
    }
}

/// The calls of the transfer.
extension HTTPExchange {
    var isRunning: Bool { state.withLock { if case .running = $0 { true } else { false } } }

    /// Receives the header of the response; returns whether the transfer continues.
    func receive(_ response: HTTPResponse) -> Bool {
        if let location = response.redirectLocation {
            end(.success(.redirect(location)))
            return false
        }
        return deliver { received in
            try onResponse(response)
            received.hasResponse = true
        }
    }

    /// Receives a chunk of the body; returns whether the transfer continues.
    func receive(_ data: Data) -> Bool {
        deliver { received in
            guard received.hasResponse else { throw HTTPError.invalidResponse("it has no header") }
            received.newByteCount += data.count
            try onData(data)
        }
    }

    /// Receives the end of the transfer.
    func finish(_ error: HTTPError?) {
        let continues = deliver { received in
            if let error { throw error }
            guard received.hasResponse else {
                throw HTTPError.failed("the server closed the connection within the header of its response")
            }
        }
        if continues { end(.success(.complete)) }
    }
}

extension Duration {
    /// The duration as an interval for timers, limited to about 136 years.
    package var dispatchInterval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        return .nanoseconds(Int(min(max(seconds, 0), 1 << 32) * 1_000_000_000 + attoseconds / 1_000_000_000))
    }
}

extension String {
    /// Whether the string has a character that a header cannot contain, such as a line break.
    var hasControlCharacter: Bool { utf8.contains { ($0 < 32 && $0 != 9) || $0 == 127 } }
}
