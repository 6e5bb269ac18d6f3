internal import FlyingFox
internal import FlyingSocks
public import Foundation
public import Imprint
internal import Synchronization

/// Serves a page that follows a run of training, to browsers on this machine alone.
///
/// It listens on 127.0.0.1, and answers only those who ask for that address or for localhost by name, so that no page from
/// elsewhere can read along. The page asks for what is new and is answered as soon as there is some.
public final class LiveServer: Sendable {
    /// The port that is tried where none is asked for; any free one is taken where it is in use.
    public static let usualPort = 8093

    /// Where the page is.
    public let url: URL
    private let server: HTTPServer
    private let run = Mutex(LiveRun())
    /// What was asked for last: when, and which version the answer had.
    let asked = Mutex<(at: ContinuousClock.Instant, answered: Int)?>(nil)

    /// Starts to serve.
    /// - Parameter port: The port; the usual or a free one where `nil`.
    /// - Throws: `LiveServerError` where the port cannot be had.
    public init(port: Int? = nil) async throws {
        do {
            server = try await Self.listening(port ?? Self.usualPort)
        } catch {
            if let port { throw LiveServerError(port: port) }
            server = try await Self.listening(0)
        }
        guard case .ip4(_, let found)? = await server.listeningAddress,
            let url = URL(string: "http://127.0.0.1:\(found)/")
        else { throw LiveServerError(port: port ?? Self.usualPort) }
        self.url = url
        // Browsers leave out the port where it is that of HTTP.
        let hosts = ["127.0.0.1", "localhost"].flatMap { found == 80 ? [$0, "\($0):80"] : ["\($0):\(found)"] }
        for (route, answer) in [
            ("GET /", page), ("GET /follow.js", script), ("GET /state", state),
        ] as [(HTTPRoute, @Sendable (HTTPRequest) async throws -> HTTPResponse)] {
            await server.appendRoute(route) { request in
                guard hosts.contains(request.headers[.host] ?? "") else { return HTTPResponse(statusCode: .forbidden) }
                return try await answer(request)
            }
        }
    }

    /// A server that listens on a port of this machine, on any free one where it is 0.
    private static func listening(_ port: Int) async throws -> HTTPServer {
        let address = try sockaddr_in.inet(ip4: "127.0.0.1", port: UInt16(clamping: port))
        let server = HTTPServer(address: address, timeout: 60, logger: .disabled)
        let failure = Failure()
        Task {
            do {
                try await server.run()
            } catch {
                failure.error.withLock { $0 = error }
            }
        }
        while await !server.isListening {
            if let error = failure.error.withLock({ $0 }) { throw error }
            try await Task.sleep(for: .milliseconds(5))
        }
        return server
    }

    /// What ended a server.
    private final class Failure: Sendable {
        let error = Mutex<(any Error)?>(nil)
    }

    /// Shows what happened.
    public func show(_ event: TrainingEvent) { run.withLock { $0.take(event) } }

    /// Shows the end, gives open pages two seconds to see it, and stops.
    /// - Parameter error: What the run ended with, where it did not end well.
    public func finish(_ error: (any Error)? = nil) async {
        let last = run.withLock {
            $0.end(error)
            return $0.version
        }
        let deadline = ContinuousClock().now + .seconds(2)
        while let asked = asked.withLock({ $0 }), asked.answered < last, asked.at + .seconds(12) > .now,
            .now < deadline
        {
            try? await Task.sleep(for: .milliseconds(20))
        }
        // What was answered last may be on its way.
        if asked.withLock({ $0 != nil }) { try? await Task.sleep(for: .milliseconds(200)) }
        await server.stop()
    }
}

/// Why a page cannot be served.
public struct LiveServerError: Error, Equatable, CustomStringConvertible {
    /// The port that was asked for.
    public let port: Int

    /// What to do.
    public var description: String {
        "the port \(port) of this machine cannot be listened on, since another program does or it is reserved; choose another "
            + "with --port, or leave it out to take any"
    }
}

// MARK: Answers

extension LiveServer {
    @Sendable private func page(_ request: HTTPRequest) -> HTTPResponse {
        let run = run.withLock { $0 }
        let page = Page(
            title: run.title, header: "",
            body: """
                <div id="head">\(run.head)</div>
                <div id="body">\(run.body)</div>
                <p id="connection" role="alert" hidden>The run does not answer any more: it has ended, or was stopped.</p>
                <style>progress { width: 100%; height: .6rem; accent-color: var(--second) } .phase { margin: 1.5rem 0 .25rem }
                .notes { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere }</style>
                <script src="follow.js"></script>
                """)
        return response(page.html, "text/html; charset=utf-8")
    }

    @Sendable private func script(_ request: HTTPRequest) -> HTTPResponse {
        response(Self.follow, "text/javascript; charset=utf-8")
    }

    private struct State: Encodable {
        let version: Int
        let bodyVersion: Int
        let isFinished: Bool
        let title: String
        let head: String
        /// Missing where the asker has it.
        let body: String?
    }

    /// What the run has come to, as soon as that is more than the asker knows, or after ten seconds.
    @Sendable private func state(_ request: HTTPRequest) async throws -> HTTPResponse {
        func known(_ name: String) -> Int { request.query.first { $0.name == name }.flatMap { Int($0.value) } ?? -1 }
        let (version, body) = (known("after"), known("body"))
        let deadline = ContinuousClock().now + .seconds(10)
        while run.withLock({ $0.version <= version && !$0.isFinished }), .now < deadline {
            try await Task.sleep(for: .milliseconds(50))
        }
        // A copy: the run does not wait while its page is made.
        let run = run.withLock { $0 }
        let state = State(
            version: run.version, bodyVersion: run.bodyVersion, isFinished: run.isFinished, title: run.title,
            head: run.head, body: run.bodyVersion == body ? nil : run.body)
        asked.withLock { $0 = (.now, state.version) }
        return response(String(decoding: try JSONEncoder().encode(state), as: UTF8.self), "application/json")
    }

    private func response(_ text: String, _ type: String) -> HTTPResponse {
        HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: type, HTTPHeader("Cache-Control"): "no-store",
                HTTPHeader("X-Content-Type-Options"): "nosniff",
                HTTPHeader("Content-Security-Policy"):
                    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'",
            ], body: Data(text.utf8))
    }

    /// Asks for what is new, again and again, and puts it into the page.
    private static let follow = """
        const pause = (time) => new Promise((done) => setTimeout(done, time));
        async function follow() {
          let version = -1, bodyVersion = -1, failures = 0;
          while (failures < 5) {
            try {
              const state = await (await fetch(`state?after=${version}&body=${bodyVersion}`)).json();
              failures = 0;
              document.title = state.title;
              document.getElementById("head").innerHTML = state.head;
              if (state.body !== undefined) document.getElementById("body").innerHTML = state.body;
              bodyVersion = state.bodyVersion;
              document.body.dataset.version = version = state.version;
              if (state.isFinished) { document.body.dataset.finished = "true"; return; }
              await pause(200);
            } catch {
              failures += 1;
              await pause(400);
            }
          }
          document.getElementById("connection").hidden = false;
        }
        follow();
        """
}
