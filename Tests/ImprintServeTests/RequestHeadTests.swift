import Testing

@testable import ImprintServe

@Suite("Heads of HTTP requests") struct RequestHeadTests {
    private func head(_ text: String) throws -> RequestHead { try RequestHead(parsing: text.utf8) }

    @Test("A head has a method, a path without the query, and fields with lowercase names") func valid() throws {
        let head = try head(
            "POST /v2/models/m/infer?x=1 HTTP/1.1\r\nHost: a:80\r\nContent-LENGTH:\t12 \r\nX-A: 1\r\nx-a: 2")
        #expect(head.method == "POST" && head.path == "/v2/models/m/infer" && head.minorVersion == 1)
        #expect(head.fields == ["host": "a:80", "content-length": "12", "x-a": "1, 2"])
        #expect(try head.contentLength == 12)
    }

    @Test(
        "The target may be an absolute URL, as clients send it to a proxy",
        arguments: [
            ("http://a:80/v2/health/ready?x=1", "/v2/health/ready"), ("HTTP://a/", "/"), ("http://a", "/"),
            ("http://a?x=/b", "/"), ("/http://a", "/http://a"), ("https://a/b", "https://a/b"),
        ])
    func absoluteTarget(target: String, path: String) throws {
        #expect(try head("GET \(target) HTTP/1.1\r\nHost: a:80").path == path)
    }

    @Test(
        "A connection stays open as the version and the field Connection say",
        arguments: [
            ("HTTP/1.1\r\nHost: a", true), ("HTTP/1.1\r\nHost: a\r\nConnection: Close", false),
            ("HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close", false), ("HTTP/1.0", false),
            ("HTTP/1.0\r\nConnection: keep-alive", true),
        ])
    func keepAlive(rest: String, expected: Bool) throws {
        #expect(try head("GET / \(rest)").keepsAlive == expected)
    }

    @Test(
        "Invalid heads are errors",
        arguments: [
            ("", Status.badRequest), ("GET", .badRequest), ("GET  / HTTP/1.1\r\nHost: a", .badRequest),
            ("GET / HTTP/1.1", .badRequest), ("GET / HTTP/2.0\r\nHost: a", .versionNotSupported),
            ("GET / http/1.1\r\nHost: a", .versionNotSupported), ("G@T / HTTP/1.1\r\nHost: a", .badRequest),
            ("GET / HTTP/1.1\nHost: a", .badRequest), ("GET /\u{1} HTTP/1.1\r\nHost: a", .badRequest),
            ("GET / HTTP/1.1\r\nHost : a", .badRequest), ("GET / HTTP/1.1\r\nHost: a\r\n folded", .badRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\n: b", .badRequest), ("GET / HTTP/1.1\r\nHost: a\r\nX: \0", .badRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b", .badRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2", .badRequest),
            ("\u{16}\u{3}\u{1}", .badRequest),
        ])
    func invalid(text: String, status: Status) {
        #expect { try head(text) } throws: { ($0 as? HTTPError)?.status == status }
    }

    @Test("A head that is not UTF-8 is an error") func bytes() {
        #expect(throws: HTTPError.self) { try RequestHead(parsing: [0xff, 0xfe]) }
    }

    @Test(
        "Lengths of bodies are whole numbers, and transfer encodings need a length instead",
        arguments: [
            ("Content-Length: -1", Status.badRequest), ("Content-Length: +1", .badRequest),
            ("Content-Length: 0x1", .badRequest), ("Content-Length: 1 1", .badRequest),
            ("Content-Length:", .badRequest),
            ("Transfer-Encoding: chunked", .lengthRequired),
            ("Content-Length: 1\r\nTransfer-Encoding: chunked", .lengthRequired),
        ])
    func lengths(field: String, status: Status) throws {
        let head = try head("POST / HTTP/1.1\r\nHost: a\r\n\(field)")
        #expect { try head.contentLength } throws: { ($0 as? HTTPError)?.status == status }
    }

    @Test("A length that overflows exceeds every limit") func overflow() throws {
        let head = try head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999")
        #expect(try head.contentLength == .max)
    }

    @Test(
        "Paths lead to endpoints",
        arguments: [
            ("GET /v2", Endpoint.server), ("GET /v2/", .server), ("GET /v2/health/live", .live),
            ("HEAD /v2/health/ready", .ready), ("GET /v2/models", .models), ("GET /v2/models/a%20b", .model),
            ("GET /v2/models/a%20b/versions/1", .model), ("GET /v2/models/a%20b/versions/1/ready", .modelReady),
            ("GET /v2/models/a%20b/ready", .modelReady), ("POST /v2/models/a%20b/infer", .infer),
            ("POST /v2/models/a%20b/versions/1/infer", .infer), ("GET /metrics", .metrics),
        ])
    func endpoints(request: String, expected: Endpoint) throws {
        #expect(try Endpoint(head("\(request) HTTP/1.1\r\nHost: a"), modelName: "a b") == expected)
    }

    @Test(
        "Unknown paths, models, versions and methods are errors",
        arguments: [
            ("GET /", Status.notFound), ("GET v2", .notFound), ("GET /v2/health", .notFound),
            ("GET /v2/models/other", .notFound), ("GET /v2/models/m/versions/2", .notFound),
            ("GET /v2/models/m/versions", .notFound), ("GET /v2/models/m/x", .notFound),
            ("GET /v2/models/m/infer", .methodNotAllowed), ("POST /v2/models/m", .methodNotAllowed),
            ("OPTIONS /v2", .methodNotAllowed),
        ])
    func unknown(request: String, status: Status) throws {
        let head = try head("\(request) HTTP/1.1\r\nHost: a")
        #expect { try Endpoint(head, modelName: "m") } throws: { ($0 as? HTTPError)?.status == status }
    }
}
