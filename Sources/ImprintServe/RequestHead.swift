/// The head of an HTTP request: the request line and the header fields.
struct RequestHead: Equatable {
    let method: String
    /// The path, percent-encoded and without the query.
    let path: String
    /// The values of the header fields by their lowercase names.
    let fields: [String: String]
    /// The minor version of HTTP/1.
    let minorVersion: Int

    /// The maximum number of bytes.
    static let maximumByteCount = 16 << 10

    /// Parses the bytes of a head up to and including the empty line.
    /// - Throws: `HTTPError` if the bytes are not a valid head of HTTP/1.1 or HTTP/1.0.
    init(parsing bytes: some Collection<UInt8>) throws(HTTPError) {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw HTTPError(.badRequest, "the head of the request is not UTF-8")
        }
        var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)[...]
        let first = lines.popFirst() ?? ""
        let parts = first.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, Self.isToken(parts[0]), !parts[1].isEmpty, Self.isPlain(first) else {
            throw HTTPError(.badRequest, "the request line is invalid, expected METHOD PATH HTTP/1.1")
        }
        guard parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else {
            throw HTTPError(.versionNotSupported, "the protocol is \(parts[2].prefix(20)), expected HTTP/1.1")
        }
        method = String(parts[0])
        path = Self.path(of: parts[1].prefix { $0 != "?" })
        minorVersion = parts[2] == "HTTP/1.1" ? 1 : 0
        var fields: [String: String] = [:]
        for line in lines where !line.isEmpty {
            let (name, value) = try Self.field(line)
            if let other = fields[name] {
                // Two lengths or hosts are a sign of request smuggling.
                guard !["content-length", "host", "authorization", "transfer-encoding"].contains(name) else {
                    throw HTTPError(.badRequest, "the request has two fields \(name), expected one")
                }
                fields[name] = "\(other), \(value)"
            } else {
                fields[name] = value
            }
        }
        guard minorVersion == 0 || fields["host"] != nil else {
            throw HTTPError(.badRequest, "the request has no field Host")
        }
        self.fields = fields
    }

    /// Returns the path of a request target without its query.
    ///
    /// The target is a path, or an absolute URL as clients send it to a proxy (RFC 9112, section 3.2.2).
    private static func path(of target: Substring) -> String {
        let scheme = "http://"
        guard target.prefix(scheme.count).lowercased() == scheme else { return String(target) }
        let rest = target.dropFirst(scheme.count)
        return rest.firstIndex(of: "/").map { String(rest[$0...]) } ?? "/"
    }

    /// Parses a header field; its name is in lowercase.
    private static func field(_ line: Substring) throws(HTTPError) -> (name: String, value: String) {
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        // A name must not end in a space, and a line must not continue the line before it.
        guard parts.count == 2, isToken(parts[0]), isPlain(parts[1]) else {
            throw HTTPError(.badRequest, "a header field is invalid, expected NAME: VALUE")
        }
        return (parts[0].lowercased(), parts[1].trimming())
    }

    /// Whether a text is a token of RFC 9110.
    private static func isToken(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains($0)
                }
            }
    }

    /// Whether a text has no control characters except tabs.
    private static func isPlain(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { $0 >= 32 && $0 != 127 || $0 == UInt8(ascii: "\t") }
    }
}

extension RequestHead {
    /// The number of bytes in the body; 0 without a body.
    var contentLength: Int {
        get throws(HTTPError) {
            guard fields["transfer-encoding"] == nil else {
                throw HTTPError(
                    .lengthRequired, "the body has a transfer encoding. Send it with the field Content-Length instead")
            }
            guard let text = fields["content-length"] else { return 0 }
            guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
                throw HTTPError(.badRequest, "Content-Length is \(text.prefix(20)), expected a number of bytes")
            }
            return Int(text) ?? .max
        }
    }

    /// Whether the client keeps the connection open for further requests.
    var keepsAlive: Bool {
        let options = (fields["connection"] ?? "").split(separator: ",").map { $0.trimming().lowercased() }
        return minorVersion == 1 ? !options.contains("close") : options.contains("keep-alive")
    }

    /// Whether the client waits for `100 Continue` before it sends the body.
    var expectsContinue: Bool { minorVersion == 1 && fields["expect"]?.lowercased() == "100-continue" }

    /// The media type of the body in lowercase, without parameters; nil if the request has none.
    var mediaType: String? { fields["content-type"].map { $0.prefix { $0 != ";" }.trimming().lowercased() } }
}

extension StringProtocol {
    /// The text without spaces and tabs at both ends.
    func trimming() -> String {
        let start = drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
