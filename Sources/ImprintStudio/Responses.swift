internal import FlyingFox
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

extension HTTPResponse {
    /// Returns a response with a value as JSON.
    static func json(_ value: some Encodable, _ status: HTTPStatusCode = .ok) throws -> HTTPResponse {
        HTTPResponse(
            statusCode: status, headers: [.contentType: "application/json"], body: try JSONEncoder().encode(value))
    }

    /// Returns an HTML page with a title and content, which are inserted without escaping.
    /// - Parameter nonce: A random number that allows only the style of this page.
    static func page(
        _ title: String, _ content: String, _ status: HTTPStatusCode, nonce: String
    ) -> HTTPResponse {
        let html = """
            <!doctype html><html lang="en"><meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(title)</title>
            <style nonce="\(nonce)">
            :root { color-scheme: light dark; --ink: #1c2430; --paper: #fdfcfa; --panel: #f4f1eb }
            @media (prefers-color-scheme: dark) { :root { --ink: #e6e3dd; --paper: #16191d; --panel: #1f2328 } }
            body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
              max-width: 38rem; padding: 2rem 1.5rem; overflow-wrap: anywhere }
            h1 { font-size: 1.35rem; line-height: 1.25 } li { margin: .4rem 0 }
            code { padding: .1rem .3rem; border-radius: .3rem; background: var(--panel) }
            </style>
            <main><h1>\(title)</h1>\(content)</main></html>
            """
        return HTTPResponse(
            statusCode: status,
            headers: [
                .contentType: "text/html; charset=utf-8",
                HTTPHeader("Content-Security-Policy"):
                    "default-src 'none'; style-src 'nonce-\(nonce)'; base-uri 'none'; form-action 'none'; "
                    + "frame-ancestors 'none'",
            ], body: Data(html.utf8))
    }

    /// Returns an image, which cannot run or load anything if a browser opens it as a page.
    static func image(_ type: String, _ bytes: Data) -> HTTPResponse {
        HTTPResponse(
            statusCode: .ok,
            headers: [.contentType: type, HTTPHeader("Content-Security-Policy"): "default-src 'none'; sandbox"],
            body: bytes)
    }

    /// Returns an error response with a message, which begins with a capital letter unless it begins with the name of a file.
    static func failure(_ status: HTTPStatusCode, _ message: String) -> HTTPResponse {
        let start = message.firstIndex(of: ":").map { message[..<$0] } ?? ""
        let beginsWithFile = start.contains(".") && !start.contains(". ")
        let sentence = beginsWithFile ? message : message.prefix(1).uppercased() + message.dropFirst()
        let body = try? JSONEncoder().encode(["error": sentence])
        return HTTPResponse(statusCode: status, headers: [.contentType: "application/json"], body: body ?? Data())
    }
}

extension HTTPResponse {
    /// Returns the response to a request that failed with an error.
    static func failure(_ error: any Error) -> HTTPResponse {
        switch error {
        case let error as RequestError: failure(error.status, error.message)
        case is ImageError, is ImprintError, is BoxAnnotationsError: failure(.unprocessableContent, "\(error)")
        // Foundation copies, moves and removes files.
        case let error as CocoaError: failure(.internalServerError, error.localizedDescription)
        default: failure(.internalServerError, "\(error)")
        }
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

/// The labels and names that a user chooses.
///
/// In the messages, the subject is the first noun, and the fix the last sentence.
enum UserText {
    /// Checks a text that must be a valid folder name, like the labels of training data.
    static func checkFolderName(_ text: String, _ subject: String, fix: String) throws {
        try checkLength(text, subject, fix: fix)
        guard !text.contains("/"), !text.contains("\0"), !text.hasPrefix(".") else {
            throw RequestError("\(subject) must not contain \"/\" or begin with \".\". \(fix)")
        }
        try checkCharacters(text, subject, fix: fix)
        guard text.utf8.count <= 255 else {
            throw RequestError("\(subject) may have at most 255 bytes, but this one has \(text.utf8.count). \(fix)")
        }
    }

    /// Checks that a text has 1 to 100 characters, without spaces around them.
    static func checkLength(_ text: String, _ subject: String, fix: String) throws {
        guard !isBlank(text), text == text.trimmingWhiteSpace(), text.count <= 100 else {
            throw RequestError("\(subject) has 1 to 100 characters, without leading or trailing spaces. \(fix)")
        }
    }

    /// Checks that a text does not contain invisible characters that change the text around it.
    ///
    /// These are line breaks, control characters, and controls of the writing direction, which can make one label look like another.
    static func checkCharacters(_ text: String, _ subject: String, fix: String) throws {
        let hasControls = text.unicodeScalars.contains {
            [.control, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory)
                || $0.properties.isBidiControl
        }
        guard !hasControls else {
            throw RequestError(
                "\(subject) must not contain line breaks, control characters or controls of the writing direction. \(fix)"
            )
        }
    }
}

/// Returns a fraction as a percentage with one digit after the decimal point.
func percent(_ fraction: Double) -> String { String(format: "%.1f %%", 100 * fraction) }

extension HTTPRequest {
    /// Returns the value of a query parameter; nil if it is missing.
    func parameter(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// Returns the value of a query parameter.
    func required(_ name: String) throws -> String {
        guard let value = parameter(name) else {
            throw RequestError("The request has no parameter \(name). Add ?\(name)=….")
        }
        return value
    }

    /// The value of the parameter `label`.
    var label: String {
        get throws {
            guard let label = parameter("label") else { throw RequestError("The request has no label. Add ?label=….") }
            return label
        }
    }
}
