internal import FlyingFox
internal import Foundation

extension HTTPResponse {
    /// Returns a response with a value as JSON.
    static func json(_ value: some Encodable, _ status: HTTPStatusCode = .ok) throws -> HTTPResponse {
        HTTPResponse(
            statusCode: status, headers: [.contentType: "application/json"], body: try JSONEncoder().encode(value))
    }

    /// Returns an HTML page with a message, which is inserted without escaping.
    static func page(_ title: String, _ message: String, _ status: HTTPStatusCode) -> HTTPResponse {
        let html = """
            <!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <title>\(title)</title><h1>\(title)</h1><p>\(message)</p></html>
            """
        return HTTPResponse(
            statusCode: status,
            headers: [
                .contentType: "text/html; charset=utf-8", HTTPHeader("Content-Security-Policy"): "default-src 'none'",
            ], body: Data(html.utf8))
    }

    /// Returns an error response with a message.
    static func failure(_ status: HTTPStatusCode, _ message: String) -> HTTPResponse {
        let body = try? JSONEncoder().encode(["error": message.prefix(1).uppercased() + message.dropFirst()])
        return HTTPResponse(statusCode: status, headers: [.contentType: "application/json"], body: body ?? Data())
    }
}

/// The error of an invalid request.
struct RequestError: Error {
    let status: HTTPStatusCode
    let message: String

    init(_ message: String, _ status: HTTPStatusCode = .badRequest) {
        self.status = status
        self.message = message
    }
}

/// The characters of a label that a user types.
enum LabelText {
    /// Checks that a label has no invisible characters that change the text around it: line breaks, control characters, and marks of
    /// the writing direction, with which one label can look like another.
    static func check(_ label: String, _ subject: String) throws {
        let hasControls = label.unicodeScalars.contains {
            [.control, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory)
                || $0.properties.isBidiControl
        }
        guard !hasControls else {
            throw RequestError(
                "\(subject) must not contain line breaks, control characters or marks of the writing direction. "
                    + "Choose another one.")
        }
    }
}

extension HTTPRequest {
    /// Returns the value of a query parameter; nil if it is missing.
    func parameter(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// The value of the parameter `label`.
    var label: String {
        get throws {
            guard let label = parameter("label") else { throw RequestError("The request has no label. Add ?label=….") }
            return label
        }
    }
}
