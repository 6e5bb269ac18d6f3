internal import CImprintShare
package import FlyingFox
internal import FlyingSocks
package import Foundation
internal import ImprintCore
internal import Synchronization

/// An HTTP server for browsers on this machine only.
///
/// It listens on 127.0.0.1 and serves only requests with this address or localhost in the Host header, which prevents DNS
/// rebinding. The headers of every response forbid caching and access by other origins. Other devices have access only after
/// `share(on:)`, through an encrypted connection.
package final class LocalServer: Sendable {
    /// The address of the server.
    package let url: URL
    private let server: HTTPServer
    private let hosts: RequestHosts
    private let state: State

    private final class State: Sendable {
        let isStopped = Atomic(false)
        let failure = Mutex<LocalServerError?>(nil)
        let proxy = Mutex<TLSProxy?>(nil)
    }

    /// The number of ports to try, starting with the default port.
    private static let portCount = 100

    /// Starts to listen.
    /// - Parameters:
    ///   - port: The port, 1…65,535; if nil, the first free port from `defaultPort` on. Consecutive servers therefore have the
    ///     same port, so that browsers keep their data for it.
    ///   - defaultPort: The first port to try if `port` is nil.
    /// - Throws: `LocalServerError.noPort` if no port is available.
    package init(port: Int?, defaultPort: Int) async throws {
        let ports = port.map { $0...$0 } ?? defaultPort...(defaultPort + Self.portCount - 1)
        var started: (server: HTTPServer, port: Int, run: Task<Void, any Error>)?
        for port in ports where started == nil && UInt16(exactly: port) ?? 0 > 0 {
            let address = try sockaddr_in.inet(ip4: "127.0.0.1", port: UInt16(port))
            let server = HTTPServer(address: address, timeout: 60, logger: .disabled)
            started = await Self.listening(server).map { (server, port, $0) }
        }
        guard let started, let url = URL(string: "http://127.0.0.1:\(started.port)/") else {
            throw LocalServerError.noPort(of: ports)
        }
        (server, self.url) = (started.server, url)
        hosts = RequestHosts(["127.0.0.1", "localhost"], port: started.port)
        state = State()
        Task { [state, server] in await Self.keepListening(server, started.run, started.port, state) }
    }

    /// Starts a server and returns its task once it listens; nil if it cannot listen.
    private static func listening(_ server: HTTPServer) async -> Task<Void, any Error>? {
        let hasEnded = Atomic(false)
        let run = Task {
            defer { hasEnded.store(true, ordering: .releasing) }
            try await server.run()
        }
        while await !server.isListening {
            if hasEnded.load(ordering: .acquiring) { return nil }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return run
    }

    /// Restarts a server that ends by itself, for example because the process has no free file descriptors.
    ///
    /// The descriptors of its connections are free by then.
    private static func keepListening(
        _ server: HTTPServer, _ run: Task<Void, any Error>, _ port: Int, _ state: State
    ) async {
        var run = run
        while true {
            var reason = "the server has ended"
            do { try await run.value } catch { reason = error.localizedDescription }
            var next: Task<Void, any Error>?
            for _ in 0..<100 where next == nil && !state.isStopped.load(ordering: .acquiring) {
                try? await Task.sleep(for: .milliseconds(100))
                next = await listening(server)
            }
            if state.isStopped.load(ordering: .acquiring) { return await server.stop() }
            guard let next else {
                return state.failure.withLock { $0 = .ended(port: port, reason: reason) }
            }
            run = next
        }
    }

    /// The reason why the server ended without being stopped; nil while it runs.
    package var failure: LocalServerError? { state.failure.withLock { $0 } }

    /// Starts to answer requests; requests for another host get status 403.
    /// - Parameters:
    ///   - bodyLimit: The maximum number of bytes in the body of a request.
    ///   - authorize: Returns the response to a rejected request, based on its head and on the IP address of another device, which
    ///     is nil for browsers on this machine; returns nil to allow the request.
    ///   - answer: Returns the response to a request and its body; the body is nil if it exceeds the limit.
    package func serve(
        bodyLimit: Int = 0, authorize: @escaping @Sendable (HTTPRequest, String?) -> HTTPResponse? = { _, _ in nil },
        _ answer: @escaping @Sendable (HTTPRequest, Data?) async throws -> HTTPResponse
    ) async {
        await server.appendRoute("*") { [hosts, url, state] received in
            // HEAD is answered like GET, without the body. `authorize` still sees HEAD, so HEAD does not use up a token.
            var request = received
            if received.method == .HEAD { request.method = .GET }
            let (proxy, relay) = Self.origin(of: request, state)
            let url = proxy?.url ?? url
            let hosts = proxy.map { RequestHosts([$0.url.host() ?? ""], port: $0.url.port ?? 0) } ?? hosts
            let host = request.headers[.host]
            let contentLength = request.headers[.contentLength].flatMap { Int($0) }
            let rejection = hosts.contains(host) ? authorize(received, relay?.device) : Self.otherHost(host, url)
            if rejection == nil {
                relay?.admit()
            } else {
                // At least as many bytes as these fields have arrived, so the allowance for the next head does not grow.
                relay?.allow(request.headers.reduce(0) { $0 + $1.key.rawValue.utf8.count + $1.value.utf8.count + 2 })
                relay?.allow(contentLength ?? 0)
            }
            // The body is always read to its end, where the next request of the connection begins.
            var (body, count) = (Data(), 0)
            var isWhole = true
            do {
                for try await part in request.bodySequence {
                    count += part.count
                    if rejection == nil && count <= bodyLimit { body += part } else { body = Data() }
                    if rejection != nil && contentLength == nil { relay?.allow(part.count) }
                }
            } catch {
                isWhole = false
            }
            var response =
                if let rejection {
                    rejection
                } else if isWhole {
                    try await answer(request, count <= bodyLimit ? body : nil)
                } else {
                    HTTPResponse(
                        statusCode: .badRequest, headers: [.contentType: "text/plain"],
                        body: Data("The request body does not have the announced length.\n".utf8))
                }
            for (name, value) in Self.headers where response.headers[name] == nil { response.headers[name] = value }
            if received.method == .HEAD, case .httpBody(let body) = response.payload {
                // All bodies of these servers have a known length.
                if let count = body.count { response.headers[.contentLength] = "\(count)" }
                response.payload = .httpBody(HTTPBodySequence(data: Data()))
            }
            return response
        }
    }

    /// Returns the proxy and the connection through which another device sent a request; nil for requests of this machine.
    private static func origin(of request: HTTPRequest, _ state: State) -> (TLSProxy?, TLSRelay?) {
        guard case .ip4(_, let port)? = request.remoteAddress, let proxy = state.proxy.withLock({ $0 }),
            let relay = proxy.relay(fromPort: port)
        else { return (nil, nil) }
        return (proxy, relay)
    }

    /// Whether other devices can be served: OpenSSL 3 is installed, and the build has the package trait `Share`.
    package static var canShare: Bool { imprint_can_use_tls() != 0 }

    /// Also serves other devices, through encrypted connections to an address of this machine.
    /// - Returns: The address for the devices, and the SHA-256 digest of the certificate.
    /// - Throws: `ShareError`; `alreadyShared` and `serverStopped` if there is a proxy already, or if `stop()` was called.
    package func share(on address: String) throws(ShareError) -> (url: URL, fingerprint: String) {
        // The server treats requests through an unknown proxy as requests of this machine, so there is at most one proxy.
        let proxy = try state.proxy.withLock { current throws(ShareError) in
            if let current { throw .alreadyShared(url: current.url.absoluteString) }
            guard !state.isStopped.load(ordering: .acquiring) else { throw .serverStopped }
            let started = try TLSProxy(on: address, target: UInt16(url.port ?? 80))
            current = started
            return started
        }
        return (proxy.url, proxy.fingerprint)
    }

    /// Returns the response to a request for another host.
    private static func otherHost(_ host: String?, _ url: URL) -> HTTPResponse {
        let found = String((host ?? "").prefix(100)).debugDescription
        let text =
            "The Host header is \(found). This server answers only requests for \(url.absoluteString). Open that address.\n"
        return HTTPResponse(
            statusCode: .forbidden, headers: [.contentType: "text/plain; charset=utf-8"], body: Data(text.utf8))
    }

    private static let headers: [HTTPHeader: String] = [
        .cacheControl: "no-store", HTTPHeader("X-Content-Type-Options"): "nosniff",
        HTTPHeader("Referrer-Policy"): "no-referrer", HTTPHeader("Cross-Origin-Resource-Policy"): "same-origin",
        HTTPHeader("Cross-Origin-Opener-Policy"): "same-origin",
    ]

    /// Stops the server; responses in progress have one second to finish.
    package func stop() async { await Self.stop(server, state) }

    private static func stop(_ server: HTTPServer, _ state: State) async {
        state.isStopped.store(true, ordering: .releasing)
        await state.proxy.withLock { $0 }?.stop()
        await server.stop(timeout: 1)
    }

    deinit { Task { [server, state] in await Self.stop(server, state) } }
}

/// An error of the local server.
package enum LocalServerError: DescribedError, Equatable {
    /// None of the ports is available.
    case noPort(of: ClosedRange<Int>)
    /// The server ended and could not be restarted.
    case ended(port: Int, reason: String)

    /// The error and its remedy.
    package var description: String {
        switch self {
        case .noPort(let ports) where ports.count == 1:
            "Port \(ports.lowerBound) is not available: another program is using it, or it is reserved. "
                + "Choose another port, or choose none to use a free one."
        case .noPort(let ports):
            "None of the ports \(ports.lowerBound) to \(ports.upperBound) is available: other programs are using them, "
                + "or the process cannot open more files. "
                + "Choose another port, or raise the limit of open files (ulimit -n)."
        case .ended(let port, let reason):
            "The server on port \(port) has ended: \(reason). Start it again."
        }
    }
}
