package import FlyingFox
internal import FlyingSocks
package import Foundation
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

    /// Starts to listen.
    /// - Parameters:
    ///   - port: The port; `usualPort`, or a free one where that is in use, where `nil`.
    ///   - usualPort: The port that is tried where none is asked for.
    /// - Throws: `LocalServerError` where the port cannot be had.
    package init(port: Int?, usualPort: Int) async throws {
        do {
            server = try await Self.listening(port ?? usualPort)
        } catch {
            if let port { throw LocalServerError(port: port) }
            server = try await Self.listening(0)
        }
        guard case .ip4(_, let found)? = await server.listeningAddress,
            let url = URL(string: "http://127.0.0.1:\(found)/")
        else { throw LocalServerError(port: port ?? usualPort) }
        self.url = url
        // Browsers leave out the port where it is that of HTTP.
        hosts = Set(["127.0.0.1", "localhost"].flatMap { found == 80 ? [$0, "\($0):80"] : ["\($0):\(found)"] })
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

    /// Answers requests from now on; those that ask for another host get 403.
    /// - Parameters:
    ///   - bodyLimit: How many bytes a request may bring.
    ///   - gate: The answer to a request that is not let in, by its head alone; `nil` for what may be answered.
    ///   - answer: The answer to a request and what it brought; `nil` where that was more.
    package func serve(
        bodyLimit: Int = 0, gate: @escaping @Sendable (HTTPRequest) -> HTTPResponse? = { _ in nil },
        _ answer: @escaping @Sendable (HTTPRequest, Data?) async throws -> HTTPResponse
    ) async {
        await server.appendRoute("*") { [hosts] request in
            let isForUs = hosts.contains(request.headers[.host] ?? "")
            let refusal = isForUs ? gate(request) : HTTPResponse(statusCode: .forbidden)
            // To its end, whatever comes of it: behind it, the next request of the connection begins.
            var (body, count) = (Data(), 0)
            for try await part in request.bodySequence {
                count += part.count
                if refusal == nil && count <= bodyLimit { body += part } else { body = Data() }
            }
            var response =
                if let refusal { refusal } else { try await answer(request, count <= bodyLimit ? body : nil) }
            for (name, value) in Self.headers where response.headers[name] == nil { response.headers[name] = value }
            return response
        }
    }

    private static let headers: [HTTPHeader: String] = [
        .cacheControl: "no-store", HTTPHeader("X-Content-Type-Options"): "nosniff",
        HTTPHeader("Referrer-Policy"): "no-referrer", HTTPHeader("Cross-Origin-Resource-Policy"): "same-origin",
        HTTPHeader("Cross-Origin-Opener-Policy"): "same-origin",
    ]

    /// Ends.
    package func stop() async { await server.stop() }

    deinit { Task { [server] in await server.stop() } }
}

/// Why a page cannot be served.
public struct LocalServerError: Error, Equatable, CustomStringConvertible {
    /// The port that was asked for.
    public let port: Int

    /// What to do.
    public var description: String {
        "the port \(port) of this machine cannot be listened on, since another program does or it is reserved; choose another "
            + "with --port, or leave it out to take any"
    }
}
