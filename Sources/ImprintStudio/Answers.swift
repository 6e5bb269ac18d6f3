internal import FlyingFox
internal import Foundation

extension HTTPResponse {
    /// A value as JSON.
    static func json(_ value: some Encodable, _ status: HTTPStatusCode = .ok) throws -> HTTPResponse {
        HTTPResponse(
            statusCode: status, headers: [.contentType: "application/json"], body: try JSONEncoder().encode(value))
    }

    /// A page of one sentence, which is shown as it stands.
    static func page(_ title: String, _ sentence: String, _ status: HTTPStatusCode) -> HTTPResponse {
        let html = """
            <!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <title>\(title)</title><h1>\(title)</h1><p>\(sentence)</p></html>
            """
        return HTTPResponse(
            statusCode: status,
            headers: [
                .contentType: "text/html; charset=utf-8", HTTPHeader("Content-Security-Policy"): "default-src 'none'",
            ], body: Data(html.utf8))
    }

    /// A sentence that says why there is nothing else.
    static func failure(_ status: HTTPStatusCode, _ sentence: String) -> HTTPResponse {
        let body = try? JSONEncoder().encode(["error": sentence.prefix(1).uppercased() + sentence.dropFirst()])
        return HTTPResponse(statusCode: status, headers: [.contentType: "application/json"], body: body ?? Data())
    }
}

/// A request that cannot be answered as it is asked.
struct Refusal: Error {
    let status: HTTPStatusCode
    let sentence: String

    init(_ sentence: String, _ status: HTTPStatusCode = .badRequest) {
        self.status = status
        self.sentence = sentence
    }
}

extension HTTPRequest {
    /// The value of a parameter; nil if it is not given.
    func parameter(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// The label that is asked about.
    var label: String {
        get throws {
            guard let label = parameter("label") else { throw Refusal("The request names no label; add ?label=….") }
            return label
        }
    }
}
