package import Foundation

/// A GET or POST request.
package struct HTTPRequest: Sendable {
    package let url: URL
    package let headers: [String: String]
    /// The body of a POST request; nil for a GET request.
    package let body: [UInt8]?
    /// A PEM file of the only trusted certificate authorities; nil for those of the environment variable `SSL_CERT_FILE` or, without it, of
    /// the operating system.
    package let certificates: URL?

    package init(_ url: URL, headers: [String: String] = [:], body: [UInt8]? = nil, certificates: URL? = nil) {
        (self.url, self.headers, self.body, self.certificates) = (url, headers, body, certificates)
    }

    /// The path of the file of trusted certificate authorities; nil for those of the operating system.
    func certificateFile(in environment: [String: String]) -> String? {
        if let certificates { return certificates.path }
        let path = environment["SSL_CERT_FILE"] ?? ""
        return path.isEmpty ? nil : path
    }
}

/// The status and the header of a response.
package struct HTTPResponse: Sendable {
    package let status: Int
    /// The value of the header `Content-Length`; nil without one, and `Int.max` for a larger number.
    package let contentLength: Int?
    private let fields: [(name: String, value: String)]

    /// - Throws: `HTTPError.invalidResponse` for a status, lengths or a transfer encoding that HTTP does not allow.
    init(status: Int, fields: [(name: String, value: String)]) throws(HTTPError) {
        guard 100...999 ~= status else { throw .invalidResponse("its status is \(status), expected 100 to 999") }
        (self.status, self.fields) = (status, fields)
        // Some versions of libcurl pass on the compressed bytes of other encodings, which the request does not accept.
        for (name, value) in fields where name.lowercased() == "transfer-encoding" {
            guard ["chunked", "identity"].contains(value.lowercased()) else {
                throw .invalidResponse(
                    "its Transfer-Encoding is \(value.prefix(40).debugDescription), expected chunked or none")
            }
        }
        // The end of the body would be ambiguous.
        let lengths = Set(fields.filter { $0.name.lowercased() == "content-length" }.map(\.value))
        guard lengths.count <= 1 else {
            throw .invalidResponse("it has \(lengths.count) different values of Content-Length, expected one")
        }
        guard let length = lengths.first else {
            contentLength = nil
            return
        }
        guard !length.isEmpty, length.utf8.allSatisfy({ 48...57 ~= $0 }) else {
            throw .invalidResponse("its Content-Length is \(length.prefix(40).debugDescription), expected a number")
        }
        contentLength = Int(length) ?? .max
    }

    /// The value of the first header with this name.
    package func header(_ name: String) -> String? {
        fields.first { $0.name.caseInsensitiveCompare(name) == .orderedSame }?.value
    }

    /// The target of a redirect: the value of the header `Location`.
    var redirectLocation: String? { [301, 302, 303, 307, 308].contains(status) ? header("Location") : nil }
}

/// A failed request; the reasons are parts of sentences.
package enum HTTPError: Error, Equatable {
    /// The connection failed.
    case failed(String)
    /// The response violates HTTP.
    case invalidResponse(String)
    /// The certificate of the server is not trusted; `certificates` is the path of the file of trusted certificate authorities, or nil.
    case untrusted(String, certificates: String?)
    /// The address of the proxy is unknown.
    case noProxy(String)

    package var reason: String {
        switch self {
        case .failed(let reason), .invalidResponse(let reason), .untrusted(let reason, _), .noProxy(let reason): reason
        }
    }

    /// Returns the error of a download.
    /// - Parameter byteCount: The number of bytes received so far.
    package func storeError(url: URL, byteCount: Int) -> StoreError {
        switch self {
        case .failed(let reason): .interrupted(url: url.redacted, byteCount: byteCount, reason: reason)
        case .invalidResponse(let reason): .invalidResponse(url: url.redacted, reason: reason)
        case .untrusted(let reason, let certificates):
            .untrusted(url: url.redacted, reason: reason, certificates: certificates)
        case .noProxy(let reason): .noProxy(url: url.redacted, reason: reason)
        }
    }
}

/// Assembles the header of a response from its lines.
struct HTTPHeaderReader {
    /// The maximum size of the header, of informational responses and of trailers together, in bytes.
    static let maximumByteCount = 256 << 10

    private var fields: [(name: String, value: String)] = []
    private var byteCount = 0
    private var isComplete = false

    /// Reads a line and returns the response at the end of its header.
    /// - Throws: `HTTPError.invalidResponse` for a header that is too large or has a control character.
    mutating func read(_ bytes: UnsafeRawBufferPointer, status: Int) throws(HTTPError) -> HTTPResponse? {
        byteCount += bytes.count
        guard byteCount <= Self.maximumByteCount else {
            throw .invalidResponse("its header has more than \(Self.maximumByteCount) bytes")
        }
        // Trailers follow a complete header.
        guard !isComplete else { return nil }
        let line = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        // The header ends with an empty line, not with one of spaces.
        guard line.isEmpty, bytes.count <= 2 else {
            guard !line.hasControlCharacter else {
                throw .invalidResponse("its header has a control character")
            }
            if let colon = line.firstIndex(of: ":") {
                let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
                fields.append((String(line[..<colon]), value))
            }
            return nil
        }
        let response = try HTTPResponse(status: status, fields: fields)
        fields = []
        // After an informational response, such as "100 Continue", another one follows.
        guard !(100...199 ~= status) || status == 101 else { return nil }
        isComplete = true
        return response
    }
}
