internal import FlyingFox
package import Foundation
internal import Imprint
internal import ImprintModel
package import ImprintTraining
internal import Synchronization

/// Serves a page that follows a training run, only to browsers on this machine.
///
/// The page requests changes by long polling.
package final class LiveServer: Sendable {
    /// The default port; if it is in use, the server takes the next free one.
    package static let defaultPort = 8093

    /// The address of the page.
    package let url: URL
    private let server: LocalServer
    private let run = Mutex(LiveRun())
    /// The last responses to the open pages.
    let lastResponses = Mutex(PageResponses())

    /// Starts the server.
    /// - Parameter port: The port, 1…65,535; if nil, the default port or the next free one.
    /// - Throws: `LocalServerError.noPort` if the port is not available.
    package init(port: Int? = nil) async throws {
        server = try await LocalServer(port: port, defaultPort: Self.defaultPort)
        url = server.url
        // The server keeps its routes, which must not keep this object and with it the server.
        await server.serve { [weak self] request, _ in
            try await self?.answer(request) ?? HTTPResponse(statusCode: .notFound)
        }
    }

    /// Shows a training event.
    package func show(_ event: TrainingEvent) { run.withLock { $0.take(event) } }

    /// Shows the end, waits until the open pages have loaded it, and stops.
    /// - Parameters:
    ///   - error: The error of a failed run.
    ///   - limit: The longest time to wait for a page.
    package func finish(_ error: (any Error)? = nil, waitingAtMost limit: Duration = .seconds(2)) async {
        let last = run.withLock {
            $0.end(error)
            return $0.version
        }
        let deadline = ContinuousClock().now + limit
        while .now < deadline,
            lastResponses.withLock({ $0.hasOlder(than: last, since: ContinuousClock.now - .seconds(10) - limit) })
        {
            try? await Task.sleep(for: .milliseconds(20))
        }
        // The last responses may still be on their way.
        if lastResponses.withLock({ $0.count > 0 }) { try? await Task.sleep(for: .milliseconds(200)) }
        await server.stop()
    }
}

// MARK: Responses

extension LiveServer {
    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        switch (request.method, request.path) {
        case (.GET, "/"): page()
        case (.GET, "/follow.js"): response(Self.follow, "text/javascript; charset=utf-8")
        case (.GET, "/state"): try await state(request)
        default: HTTPResponse(statusCode: .notFound)
        }
    }

    private func page() -> HTTPResponse {
        let run = run.withLock { $0 }
        let page = Page(
            title: run.title, header: "",
            body: """
                <div id="head">\(run.head)</div>
                <div id="body">\(run.body)</div>
                <p id="connection" role="alert" hidden>The run does not answer: it has ended or was stopped.</p>
                <style>progress { width: 100%; height: .6rem; accent-color: var(--second) } .phase { margin: 1.5rem 0 .25rem }
                .notes { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere }</style>
                <script src="follow.js"></script>
                """)
        return response(page.html, "text/html; charset=utf-8")
    }

    private struct State: Encodable {
        let version: Int
        let bodyVersion: Int
        let isFinished: Bool
        let title: String
        let head: String
        /// The body; nil if the page already has this version.
        let body: String?
    }

    /// Returns the state of the run as soon as it is newer than the state on the page, or after ten seconds.
    private func state(_ request: HTTPRequest) async throws -> HTTPResponse {
        // Browsers set this header. A page of another site must not keep the server waiting for it.
        guard ["same-origin", "none", nil].contains(request.headers[HTTPHeader("Sec-Fetch-Site")]) else {
            return HTTPResponse(statusCode: .forbidden)
        }
        func value(_ name: String) -> String { request.query.first { $0.name == name }?.value ?? "" }
        let (version, body) = (Int(value("after")) ?? -1, Int(value("body")) ?? -1)
        let deadline = ContinuousClock().now + .seconds(10)
        while run.withLock({ $0.version <= version && !$0.isFinished }), .now < deadline {
            try await Task.sleep(for: .milliseconds(50))
        }
        // A copy, so that the run does not wait while its page is rendered.
        let run = run.withLock { $0 }
        let state = State(
            version: run.version, bodyVersion: run.bodyVersion, isFinished: run.isFinished, title: run.title,
            head: run.head, body: run.bodyVersion == body ? nil : run.body)
        lastResponses.withLock { $0.record(value("page"), version: state.version) }
        return response(String(decoding: try JSONEncoder().encode(state), as: UTF8.self), "application/json")
    }

    private func response(_ text: String, _ type: String) -> HTTPResponse {
        HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: type,
                HTTPHeader("Content-Security-Policy"):
                    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'",
            ], body: Data(text.utf8))
    }

    /// The script that polls for changes and updates the page.
    private static let follow = """
        const pause = (time) => new Promise((done) => setTimeout(done, time));
        const page = Math.random().toString(36).slice(2);
        async function follow() {
          let version = -1, bodyVersion = -1, failures = 0;
          while (failures < 5) {
            try {
              const state = await (await fetch(`state?page=${page}&after=${version}&body=${bodyVersion}`)).json();
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

/// The time and version of the last response to each open page, for a limited number of pages.
struct PageResponses {
    /// The maximum number of pages; a response to another page replaces the oldest one.
    static let pageLimit = 100
    /// The maximum number of bytes in the identifier of a page, which the page chooses.
    static let identifierLimit = 32

    private var last: [String: (time: ContinuousClock.Instant, version: Int)] = [:]

    /// The number of pages.
    var count: Int { last.count }

    /// Records a response, unless the identifier of the page is missing or too long.
    mutating func record(_ page: String, version: Int) {
        guard 1...Self.identifierLimit ~= page.utf8.count else { return }
        last[page] = (.now, version)
        if count > Self.pageLimit, let oldest = last.min(by: { $0.value.time < $1.value.time })?.key {
            last[oldest] = nil
        }
    }

    /// Returns whether the last response to a page was sent after `start` with a version older than `version`.
    func hasOlder(than version: Int, since start: ContinuousClock.Instant) -> Bool {
        last.values.contains { $0.version < version && $0.time > start }
    }
}
