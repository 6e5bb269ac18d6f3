package import FlyingFox
internal import FlyingSocks
package import Foundation
internal import ImprintCore
internal import Synchronization

/// An HTTP server for browsers on this machine alone.
///
/// It listens on 127.0.0.1, and answers only those who ask for that address or for localhost by name, so that no page from elsewhere can
/// read along. Every answer says that it is for nobody else, and not to be kept.
package final class LocalServer: Sendable {
    /// Where it is.
    package let url: URL
    private let server: HTTPServer
    private let hosts: Set<String>
    private let state: State

    private final class State: Sendable {
        let isStopped = Atomic(false)
        let failure = Mutex<LocalServerError?>(nil)
    }

    /// How many ports are tried, from the usual one on.
    private static let portCount = 100

    /// Starts to listen.
    /// - Parameters:
    ///   - port: The port, 1…65,535; if nil, the first that can be had from `usualPort` on. So those that follow one another have the
    ///     same port, with what a browser keeps for it.
    ///   - usualPort: The port that is tried first where none is asked for.
    /// - Throws: `LocalServerError.noPort` if none can be had.
    package init(port: Int?, usualPort: Int) async throws {
        let ports = port.map { $0...$0 } ?? usualPort...(usualPort + Self.portCount - 1)
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
        // Browsers leave out the port if it is that of HTTP.
        hosts = Set(
            ["127.0.0.1", "localhost"].flatMap {
                started.port == 80 ? [$0, "\($0):80"] : ["\($0):\(started.port)"]
            })
        state = State()
        Task { [state, server] in await Self.keepListening(server, started.run, started.port, state) }
    }

    /// What a server does that listens from now on; nil if it cannot.
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

    /// Lets a server go on where it ends by itself, as when the process has no file descriptor left for the next connection: those of the
    /// connections that it had are free by then.
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

    /// Why it does not answer any more, though it was not stopped; `nil` while it does.
    package var failure: LocalServerError? { state.failure.withLock { $0 } }

    /// Answers requests from now on; those that ask for another host get 403.
    /// - Parameters:
    ///   - bodyLimit: How many bytes a request may bring.
    ///   - gate: The answer to a request that is not let in, by its head alone; `nil` for what may be answered.
    ///   - answer: The answer to a request and what it brought; nil if that was more.
    package func serve(
        bodyLimit: Int = 0, gate: @escaping @Sendable (HTTPRequest) -> HTTPResponse? = { _ in nil },
        _ answer: @escaping @Sendable (HTTPRequest, Data?) async throws -> HTTPResponse
    ) async {
        await server.appendRoute("*") { [hosts] request in
            let isForUs = hosts.contains(request.headers[.host] ?? "")
            let refusal = isForUs ? gate(request) : HTTPResponse(statusCode: .forbidden)
            // To its end, whatever comes of it: behind it, the next request of the connection begins.
            var (body, count) = (Data(), 0)
            var isWhole = true
            do {
                for try await part in request.bodySequence {
                    count += part.count
                    if refusal == nil && count <= bodyLimit { body += part } else { body = Data() }
                }
            } catch {
                isWhole = false
            }
            var response =
                if let refusal {
                    refusal
                } else if isWhole {
                    try await answer(request, count <= bodyLimit ? body : nil)
                } else {
                    HTTPResponse(
                        statusCode: .badRequest, headers: [.contentType: "text/plain"],
                        body: Data("What the request brings is not as long as it says.\n".utf8))
                }
            for (name, value) in Self.headers where response.headers[name] == nil { response.headers[name] = value }
            return response
        }
    }

    private static let headers: [HTTPHeader: String] = [
        .cacheControl: "no-store", HTTPHeader("X-Content-Type-Options"): "nosniff",
        HTTPHeader("Referrer-Policy"): "no-referrer", HTTPHeader("Cross-Origin-Resource-Policy"): "same-origin",
        HTTPHeader("Cross-Origin-Opener-Policy"): "same-origin",
    ]

    /// Ends; answers that are being sent have a second to arrive.
    package func stop() async { await Self.stop(server, state) }

    private static func stop(_ server: HTTPServer, _ state: State) async {
        state.isStopped.store(true, ordering: .releasing)
        await server.stop(timeout: 1)
    }

    deinit { Task { [server, state] in await Self.stop(server, state) } }
}

/// Why a page is not served.
package enum LocalServerError: DescribedError, Equatable {
    /// None of the ports could be had.
    case noPort(of: ClosedRange<Int>)
    /// The page was served on a port, and cannot be any more.
    case ended(port: Int, reason: String)

    /// What to do.
    package var description: String {
        switch self {
        case .noPort(let ports) where ports.count == 1:
            "the port \(ports.lowerBound) of this machine cannot be listened on, since another program does or it is reserved; choose "
                + "another with --port, or leave it out to take one that is free"
        case .noPort(let ports):
            "none of the ports \(ports.lowerBound) to \(ports.upperBound) of this machine can be listened on, since other programs do or "
                + "the process may open no more files; choose one with --port, or see ulimit -n"
        case .ended(let port, let reason):
            "the page on port \(port) of this machine is not served any more, and does not come back: \(reason); start again"
        }
    }
}
