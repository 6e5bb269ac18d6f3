internal import Foundation
internal import ImprintCore

/// The status of an HTTP response.
enum Status: Int {
    case ok = 200
    case badRequest = 400
    case unauthorized = 401
    case forbidden = 403
    case notFound = 404
    case methodNotAllowed = 405
    case requestTimeout = 408
    case lengthRequired = 411
    case contentTooLarge = 413
    case unsupportedMediaType = 415
    case unprocessableContent = 422
    case fieldsTooLarge = 431
    case internalServerError = 500
    case serviceUnavailable = 503
    case versionNotSupported = 505

    /// The reason phrase.
    var phrase: String {
        switch self {
        case .ok: "OK"
        case .badRequest: "Bad Request"
        case .unauthorized: "Unauthorized"
        case .forbidden: "Forbidden"
        case .notFound: "Not Found"
        case .methodNotAllowed: "Method Not Allowed"
        case .requestTimeout: "Request Timeout"
        case .lengthRequired: "Length Required"
        case .contentTooLarge: "Content Too Large"
        case .unsupportedMediaType: "Unsupported Media Type"
        case .unprocessableContent: "Unprocessable Content"
        case .fieldsTooLarge: "Request Header Fields Too Large"
        case .internalServerError: "Internal Server Error"
        case .serviceUnavailable: "Service Unavailable"
        case .versionNotSupported: "HTTP Version Not Supported"
        }
    }
}

/// The error of a request; the message starts in lowercase and has no full stop.
struct HTTPError: Error, Equatable {
    let status: Status
    let message: String
    /// Additional header fields of the response.
    var fields: [String: String] = [:]

    init(_ status: Status, _ message: String, fields: [String: String] = [:]) {
        (self.status, self.message, self.fields) = (status, message, fields)
    }

    /// The error of a server that is too busy, with the time after which a client should try again.
    static func busy(_ message: String) -> HTTPError {
        HTTPError(.serviceUnavailable, message, fields: ["Retry-After": "1"])
    }

    /// The error of a request with more images than may wait.
    static func tooManyImages(_ count: Int, limit: Int) -> HTTPError {
        HTTPError(
            .contentTooLarge, "the request has \(count) images, expected at most \(limit). Send several requests")
    }
}

/// An HTTP response.
struct Response: Equatable {
    var status = Status.ok
    var fields: [String: String] = [:]
    var body = Data()
    /// The number of images that the request contained.
    var imageCount = 0

    /// Creates a response with a text.
    init(_ status: Status = .ok, type: String, body: Data) {
        self.status = status
        fields = ["Content-Type": type]
        self.body = body
    }

    /// Creates a response with a value as JSON.
    init(_ status: Status = .ok, json value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self.init(status, type: "application/json", body: try encoder.encode(value))
    }

    /// Creates the response to an invalid request.
    init(_ error: HTTPError) {
        let text = (error.message.prefix(1).uppercased() + error.message.dropFirst()).sentence
        // A dictionary of strings can always be encoded.
        let body = (try? JSONEncoder().encode(["error": text])) ?? Data()
        self.init(error.status, type: "application/json", body: body)
        fields.merge(error.fields) { $1 }
    }

    /// Returns the bytes of the response.
    /// - Parameters:
    ///   - keepsAlive: Whether the connection stays open for further requests.
    ///   - omitsBody: Whether to omit the body, as in the response to a HEAD request.
    func encoded(keepsAlive: Bool, omitsBody: Bool = false) -> Data {
        var head = "HTTP/1.1 \(status.rawValue) \(status.phrase)\r\n"
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { head += "\(name): \(value)\r\n" }
        head += """
            Content-Length: \(body.count)\r
            Cache-Control: no-store\r
            X-Content-Type-Options: nosniff\r
            Connection: \(keepsAlive ? "keep-alive" : "close")\r
            \r

            """
        return Data(head.utf8) + (omitsBody ? Data() : body)
    }
}
