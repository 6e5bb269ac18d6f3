import Foundation
import ImprintStudio
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension Studio {
    /// Waits until a request waits for a new training status.
    func waitForRequest() async throws {
        while waitingRequestCount == 0 { try await Task.sleep(for: .milliseconds(5)) }
    }
}

/// A client of the studio without redirects that sends only the given cookies and headers.
struct StudioClient {
    /// A response of the studio.
    struct Answer {
        let status: Int
        let headers: [String: String]
        let body: Data

        var error: String? { (try? JSONDecoder().decode([String: String].self, from: body))?["error"] }
    }

    /// Returns the value of a response with status 200.
    static func decoded<Value: Decodable>(_ answer: Answer) throws -> Value {
        #expect(answer.status == 200, "\(answer.error ?? "")")
        return try JSONDecoder().decode(Value.self, from: answer.body)
    }

    let url: URL
    var cookie: String?
    var origin: String?
    var host: String?
    var accepts: String?

    private final class RedirectBlocker: NSObject, URLSessionTaskDelegate {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
        ) { completionHandler(nil) }
    }

    func ask(
        _ method: String = "GET", _ path: String = "", _ query: [String: String] = [:], _ body: Data? = nil
    ) async throws -> Answer {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpShouldSetCookies = false
        configuration.httpCookieAcceptPolicy = .never
        let session = URLSession(configuration: configuration, delegate: RedirectBlocker(), delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        let address =
            query.isEmpty
            ? url.appending(path: path)
            : url.appending(path: path).appending(queryItems: query.map(URLQueryItem.init))
        var request = URLRequest(url: address)
        request.httpMethod = method
        request.httpBody = body
        for (name, value) in [("Cookie", cookie), ("Origin", origin), ("Host", host), ("Accept", accepts)] {
            if let value { request.setValue(value, forHTTPHeaderField: name) }
        }
        let (data, response) = try await session.data(for: request)
        let answer = try #require(response as? HTTPURLResponse)
        let headers = answer.allHeaderFields.map { ("\($0.key)".lowercased(), "\($0.value)") }
        return Answer(status: answer.statusCode, headers: Dictionary(headers) { $1 }, body: data)
    }

    /// Returns a client with access, and the token.
    static func enter(_ studio: Studio) async throws -> (client: StudioClient, token: String) {
        let token = try Device.token(in: studio.url)
        let port = try #require(studio.url.port)
        let root = try #require(URL(string: "http://127.0.0.1:\(port)/"))
        var client = StudioClient(url: root)
        let answer = try await client.ask("GET", "", ["token": token])
        #expect(answer.status == 303 && answer.headers["location"] == "/")
        let cookie = try #require(answer.headers["set-cookie"])
        #expect(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict") && !cookie.contains(token))
        client.cookie = String(cookie.prefix { $0 != ";" })
        client.origin = "http://127.0.0.1:\(port)"
        return (client, token)
    }
}
