// Not tested: Imprint is tested only on Linux, where URLSession ends the process for some invalid responses.
#if canImport(Darwin)
    internal import Foundation
    internal import Synchronization

    /// A transfer through URLSession.
    final class SessionTransfer: NSObject, HTTPTransfer, URLSessionDataDelegate {
        private let request: HTTPRequest
        private let exchange: HTTPExchange
        private let task = Mutex<URLSessionTask?>(nil)

        init(_ request: HTTPRequest, _ exchange: HTTPExchange) {
            (self.request, self.exchange) = (request, exchange)
        }

        func start() {
            guard request.certificates == nil else {
                exchange.finish(
                    .untrusted(
                        "certificates in a file are not supported on this platform; add them to the keychain",
                        certificates: request.certificates?.path))
                return
            }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = nil
            configuration.httpCookieStorage = nil
            configuration.urlCredentialStorage = nil
            // The exchange enforces the time limits.
            configuration.timeoutIntervalForRequest = 1e6
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            let session = URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
            var sessionRequest = URLRequest(url: request.url, cachePolicy: .reloadIgnoringLocalCacheData)
            for (name, value) in request.headers { sessionRequest.setValue(value, forHTTPHeaderField: name) }
            if let body = request.body {
                sessionRequest.httpMethod = "POST"
                sessionRequest.httpBody = Data(body)
            }
            let started = session.dataTask(with: sessionRequest)
            task.withLock { $0 = started }
            // An exchange that has ended meanwhile has found no task to cancel.
            if exchange.isRunning { started.resume() } else { started.cancel() }
            session.finishTasksAndInvalidate()
        }

        func cancel() {
            let task = task.withLock { $0 }
            task?.cancel()
        }

        /// Passes a response to the exchange; returns whether the transfer continues.
        private func receive(_ response: URLResponse) -> Bool {
            guard let response = response as? HTTPURLResponse else {
                exchange.finish(.invalidResponse("it is not an HTTP response"))
                return false
            }
            let fields = response.allHeaderFields.map { (name: "\($0.key)", value: "\($0.value)") }
            do throws(HTTPError) {
                return exchange.receive(try HTTPResponse(status: response.statusCode, fields: fields))
            } catch {
                exchange.finish(error)
                return false
            }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            _ = receive(response)
            completionHandler(nil)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            completionHandler(receive(response) ? .allow : .cancel)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            if !exchange.receive(data) { dataTask.cancel() }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            exchange.finish(error.map { .failed($0.localizedDescription) })
        }
    }
#endif
