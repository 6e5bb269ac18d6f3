#if !canImport(Darwin)
    internal import CImprintHTTP
    internal import Foundation
    internal import Synchronization

    /// A transfer through libcurl on a thread of its own.
    ///
    /// While a callback of the exchange writes to the disk, the thread receives nothing, so the server waits.
    final class CurlTransfer: HTTPTransfer {
        private struct Handle: @unchecked Sendable { let pointer: OpaquePointer }

        private struct State {
            var handle: Handle?
            var isCancelled = false
        }

        private static let isInitialized = imprint_http_initialize() != 0

        private let request: HTTPRequest
        private let exchange: HTTPExchange
        private let state = Mutex(State())

        init(_ request: HTTPRequest, _ exchange: HTTPExchange) {
            (self.request, self.exchange) = (request, exchange)
        }

        func start() {
            let thread = Thread { [self] in
                Self.blockBrokenPipeSignal()
                exchange.finish(transfer())
            }
            thread.stackSize = 8 << 20
            thread.name = "imprint download"
            thread.start()
        }

        func cancel() {
            state.withLock { state in
                state.isCancelled = true
                if let handle = state.handle { imprint_http_wake(handle.pointer) }
            }
        }

        /// Blocks SIGPIPE, which TLS libraries can cause, on this thread.
        private static func blockBrokenPipeSignal() {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }

        /// Runs the transfer and returns its error.
        private func transfer() -> HTTPError? {
            guard Self.isInitialized else { return .failed("libcurl cannot be initialized") }
            let receiver = Receiver(exchange)
            let created: Handle?
            do throws(HTTPError) { created = try makeHandle(for: receiver) } catch { return error }
            guard let handle = created else { return .failed("there is not enough memory") }
            defer {
                // First, so that `cancel` does not wake a destroyed transfer.
                state.withLock { $0.handle = nil }
                withExtendedLifetime(receiver) { imprint_http_destroy(handle.pointer) }
            }
            state.withLock { $0.handle = handle }
            // Only `cancel` and the connection end the waiting.
            while !state.withLock(\.isCancelled), imprint_http_step(handle.pointer, 60_000) != 0 {}
            return receiver.error ?? error(of: handle)
        }

        /// The path of the file of trusted certificate authorities; nil for those of the operating system.
        private var certificates: String? { request.certificateFile(in: ProcessInfo.processInfo.environment) }

        private func error(of handle: Handle) -> HTTPError? {
            var text: UnsafePointer<CChar>?
            let result = imprint_http_get_result(handle.pointer, &text)
            let reason =
                text.map { String(cString: $0).trimmingCharacters(in: CharacterSet(charactersIn: ". \n")) } ?? ""
            switch result {
            case IMPRINT_HTTP_OK: return nil
            case IMPRINT_HTTP_INVALID_RESPONSE: return .invalidResponse(reason)
            case IMPRINT_HTTP_UNTRUSTED: return .untrusted(reason, certificates: certificates)
            case IMPRINT_HTTP_NO_PROXY: return .noProxy(reason)
            default: return .failed(reason)
            }
        }

        private func makeHandle(for receiver: Receiver) throws(HTTPError) -> Handle? {
            let lines = request.headers.map { "\($0): \($1)" }
            // A line break would start another header.
            guard lines.allSatisfy({ !$0.hasControlCharacter }) else {
                throw .failed("a header of the request has a control character")
            }
            let copies = lines.map { strdup($0) }
            defer { for copy in copies { free(copy) } }
            let strings = copies.map { UnsafePointer($0) }
            let body = request.body ?? []
            return request.url.absoluteString.withCString { url in
                strings.withUnsafeBufferPointer { headers in
                    body.withUnsafeBytes { bytes in
                        func create(_ certificates: UnsafePointer<CChar>?) -> Handle? {
                            var settings = imprint_http_request()
                            settings.url = url
                            settings.headers = headers.baseAddress
                            settings.header_count = headers.count
                            settings.has_body = request.body == nil ? 0 : 1
                            settings.body = bytes.baseAddress
                            settings.body_size = bytes.count
                            settings.certificates = certificates
                            return imprint_http_create(&settings, receiver.functions).map { Handle(pointer: $0) }
                        }
                        return certificates.map { $0.withCString(create) } ?? create(nil)
                    }
                }
            }
        }
    }

    /// Receives the response from libcurl on the thread of the transfer.
    private final class Receiver {
        private let exchange: HTTPExchange
        private var reader = HTTPHeaderReader()
        /// The violation of HTTP that ended the transfer.
        private(set) var error: HTTPError?

        init(_ exchange: HTTPExchange) { self.exchange = exchange }

        /// The functions that libcurl calls; the receiver must live until the end of the transfer.
        var functions: imprint_http_receiver {
            imprint_http_receiver(
                context: Unmanaged.passUnretained(self).toOpaque(),
                on_header: { context, line, size, status in
                    Receiver.at(context).receiveHeader(UnsafeRawBufferPointer(start: line, count: size), Int(status))
                        ? 1 : 0
                },
                on_data: { context, data, size in
                    guard let data else { return 1 }
                    return Receiver.at(context).exchange.receive(Data(bytes: data, count: size)) ? 1 : 0
                })
        }

        private static func at(_ context: UnsafeMutableRawPointer?) -> Receiver {
            guard let context else { preconditionFailure("libcurl passed no receiver") }
            return Unmanaged<Receiver>.fromOpaque(context).takeUnretainedValue()
        }

        /// Reads a line of the header; returns whether the transfer continues.
        private func receiveHeader(_ line: UnsafeRawBufferPointer, _ status: Int) -> Bool {
            do throws(HTTPError) {
                guard let response = try reader.read(line, status: status) else { return exchange.isRunning }
                return exchange.receive(response)
            } catch {
                self.error = error
                return false
            }
        }
    }
#endif
