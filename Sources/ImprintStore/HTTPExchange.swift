package import Dispatch
package import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    package import FoundationNetworking
#endif

/// One request, whose response is streamed chunk by chunk and never held in memory.
///
/// It reports redirects instead of following them.
package final class HTTPExchange: NSObject, URLSessionDataDelegate, Sendable {
    package enum Outcome {
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

    private let onResponse: @Sendable (HTTPURLResponse) throws -> Void
    private let onData: @Sendable (Data) throws -> Void
    /// The lock is held during callbacks, so that no callback runs after the end.
    private let state = Mutex(State.idle)

    /// - Parameters:
    ///   - onResponse: Receives the header of a response that is not a redirect.
    ///   - onData: Receives each chunk of the body.
    package init(
        onResponse: @escaping @Sendable (HTTPURLResponse) throws -> Void,
        onData: @escaping @Sendable (Data) throws -> Void
    ) {
        self.onResponse = onResponse
        self.onData = onData
    }

    /// Sends the request and waits for the end.
    /// - Throws: The errors of `onResponse` and `onData`, `URLError` if the connection fails, `StoreError` if the server is too
    ///   slow.
    package func run(
        _ request: URLRequest, until deadline: DispatchTime, _ limits: DownloadLimits
    ) async throws -> Outcome {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        // The timers below enforce the time limits.
        configuration.timeoutIntervalForRequest = 1e6
        let queue = DelegateQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
        defer { session.finishTasksAndInvalidate() }
        let task = session.dataTask(with: request)
        let timers = watch(task, url: request.url?.redacted ?? "", until: deadline, limits)
        defer { for timer in timers { timer.cancel() } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let starts = state.withLock { state in
                    guard case .idle = state else { return false }
                    state = .running(continuation, Received())
                    return true
                }
                if starts { task.resume() } else { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            end(.failure(CancellationError()))
            task.cancel()
        }
    }

    /// Ends the exchange if it takes too long or the server is too slow.
    private func watch(
        _ task: URLSessionTask, url: String, until deadline: DispatchTime, _ limits: DownloadLimits
    ) -> [any DispatchSourceTimer] {
        func timer(
            _ first: DispatchTime, every interval: DispatchTimeInterval,
            _ check: @escaping @Sendable (inout Received) throws -> Void
        ) -> any DispatchSourceTimer {
            let timer = DispatchSource.makeTimerSource()
            timer.schedule(deadline: first, repeating: interval)
            timer.setEventHandler { self.deliver(task, check) }
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
    private func deliver(_ task: URLSessionTask, _ body: (inout Received) throws -> Void) {
        let failure = state.withLock { state -> (any Error)? in
            guard case .running(let continuation, var received) = state else { return nil }
            do {
                try body(&received)
                state = .running(continuation, received)
                return nil
            } catch {
                return error
            }
        }
        guard let failure else { return }
        end(.failure(failure))
        // Asynchronously, because cancelling waits for operations that wait for a slot in the queue.
        DispatchQueue.global().async { task.cancel() }
    }

    package func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        state.withLock { state in
            // A cancelled task does not expect the completion handler.
            guard case .running(let continuation, _) = state else { return }
            completionHandler(nil)
            state = .ended
            // `request` is not used, because on Linux it drops the scheme of a file URL.
            continuation.resume(returning: .redirect(response.value(forHTTPHeaderField: "Location") ?? ""))
        }
    }

    package func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        deliver(dataTask) { received in
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            // On Linux, informational responses ("100 Continue") are delivered too.
            guard response.statusCode >= 200 else { return }
            try onResponse(response)
            received.hasResponse = true
        }
        completionHandler(.allow)
    }

    package func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        deliver(dataTask) { received in
            guard received.hasResponse else { throw URLError(.badServerResponse) }
            received.newByteCount += data.count
            try onData(data)
        }
    }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        deliver(task) { received in
            if let error { throw error }
            guard !received.hasResponse else { return }
            // URLSession does not deliver a redirect without a target as a response.
            guard let response = task.response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            try onResponse(response)
        }
        end(.success(.complete))
    }
}

/// The queue for delegate calls, with a limited length.
///
/// On Linux, a session queues received data without a limit: a whole file, if the disk is slower than the network. A semaphore makes the
/// session wait for a free slot, so the server waits too. Other sessions of the process share the thread of the session, and also wait.
private final class DelegateQueue: OperationQueue, @unchecked Sendable {
    #if canImport(FoundationNetworking)
        private let slots = DispatchSemaphore(value: 64)

        override func addOperation(_ block: @escaping @Sendable () -> Void) {
            slots.wait()
            super.addOperation { [slots] in
                block()
                slots.signal()
            }
        }
    #endif
}

extension Duration {
    /// The duration as an interval for timers, limited to about 136 years.
    package var dispatchInterval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        return .nanoseconds(Int(min(max(seconds, 0), 1 << 32) * 1_000_000_000 + attoseconds / 1_000_000_000))
    }
}
