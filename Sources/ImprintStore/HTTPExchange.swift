internal import Dispatch
internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// One GET request, whose answer is given on piece by piece as it comes and never held in memory.
///
/// Redirects are not followed here, but told.
final class HTTPExchange: NSObject, URLSessionDataDelegate, Sendable {
    enum Outcome {
        case complete
        /// The answer's header alone matters: where to go instead.
        case redirect(String)
    }

    private enum State {
        case idle
        case running(CheckedContinuation<Outcome, any Error>, Received)
        case ended
    }

    /// What came until now.
    private struct Received {
        var hasResponse = false
        /// How many bytes of the body came in this interval.
        var newByteCount = 0
    }

    private let onResponse: @Sendable (HTTPURLResponse) throws -> Void
    private let onData: @Sendable (Data) throws -> Void
    /// Held while what came is given on, so that nothing more is after the end.
    private let state = Mutex(State.idle)

    /// - Parameters:
    ///   - onResponse: Takes the header of an answer that is no redirect.
    ///   - onData: Takes the pieces of the body.
    init(
        onResponse: @escaping @Sendable (HTTPURLResponse) throws -> Void,
        onData: @escaping @Sendable (Data) throws -> Void
    ) {
        self.onResponse = onResponse
        self.onData = onData
    }

    /// Sends the request and waits for the end.
    /// - Throws: What `onResponse` and `onData` throw, `URLError` if the connection fails, `StoreError` where the server is slower than
    ///   it may be.
    func run(_ request: URLRequest, until deadline: DispatchTime, _ limits: DownloadLimits) async throws -> Outcome {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        // Time is kept elsewhere.
        configuration.timeoutIntervalForRequest = 1e6
        let queue = DelegateQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
        defer { session.finishTasksAndInvalidate() }
        let task = session.dataTask(with: request)
        let timers = watch(task, url: request.url?.shown ?? "", until: deadline, limits)
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

    /// Ends the exchange where it takes too long, or too little comes.
    private func watch(
        _ task: URLSessionTask, url: String, until deadline: DispatchTime, _ limits: DownloadLimits
    ) -> [any DispatchSourceTimer] {
        func timer(
            _ first: DispatchTime, every interval: DispatchTimeInterval,
            _ check: @escaping @Sendable (inout Received) throws -> Void
        ) -> any DispatchSourceTimer {
            let timer = DispatchSource.makeTimerSource()
            timer.schedule(deadline: first, repeating: interval)
            timer.setEventHandler { self.giveOn(task, check) }
            timer.resume()
            return timer
        }
        let interval = limits.interval.dispatchInterval
        return [
            timer(deadline, every: .seconds(1)) { _ in throw StoreError.tookTooLong(url: url, limit: limits.time) },
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

    /// Gives on what came, unless the exchange has ended; what fails ends it.
    private func giveOn(_ task: URLSessionTask, _ body: (inout Received) throws -> Void) {
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
        // Not from here: cancelling waits for what waits for a place in the queue.
        DispatchQueue.global().async { task.cancel() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        state.withLock { state in
            // A task that was cancelled does not expect to be told.
            guard case .running(let continuation, _) = state else { return }
            completionHandler(nil)
            state = .ended
            // What `request` says is not used: on Linux it has lost the scheme of a file URL.
            continuation.resume(returning: .redirect(response.value(forHTTPHeaderField: "Location") ?? ""))
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        giveOn(dataTask) { received in
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            // On Linux, what a server says before its answer ("100 Continue") is told too.
            guard response.statusCode >= 200 else { return }
            try onResponse(response)
            received.hasResponse = true
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        giveOn(dataTask) { received in
            guard received.hasResponse else { throw URLError(.badServerResponse) }
            received.newByteCount += data.count
            try onData(data)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        giveOn(task) { received in
            if let error { throw error }
            guard !received.hasResponse else { return }
            // A redirect to nowhere is not told as a response.
            guard let response = task.response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            try onResponse(response)
        }
        end(.success(.complete))
    }
}

/// The queue that delegates are called on.
///
/// On Linux, a session puts what comes into it however long it is, which may be a whole file where the disk is slower than the network.
/// So who adds to it waits for a place, and the server for who adds; as do other sessions of the process, with which that one is shared.
private final class DelegateQueue: OperationQueue, @unchecked Sendable {
    #if canImport(FoundationNetworking)
        private let places = DispatchSemaphore(value: 64)

        override func addOperation(_ block: @escaping @Sendable () -> Void) {
            places.wait()
            super.addOperation { [places] in
                block()
                places.signal()
            }
        }
    #endif
}

extension Duration {
    /// The same for timers; at most some centuries.
    var dispatchInterval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        return .nanoseconds(Int(min(max(seconds, 0), 1 << 32) * 1_000_000_000 + attoseconds / 1_000_000_000))
    }
}
