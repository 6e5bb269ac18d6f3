internal import FlyingFox
internal import Foundation

/// The access control of the studio: only browsers that have opened the address with the token have access.
///
/// The token is exchanged for a cookie (HttpOnly, SameSite=Strict). Requests that change something must also have the origin of
/// the studio's page, which prevents cross-site request forgery.
struct Access: Sendable {
    /// The token in the printed address: 256 random bits.
    let token = Self.random()
    private let secret = Self.random()
    /// Browsers share cookies among all ports of a host, so two studios need two cookie names.
    private let cookie: String

    init(port: Int) { cookie = "imprint-studio-\(port)" }

    /// Returns the response to a rejected request or to one with a token; nil to allow the request.
    func authorize(_ request: HTTPRequest) -> HTTPResponse? {
        if let token = request.query.first(where: { $0.name == "token" })?.value {
            guard request.method == .GET, request.path == "/", Self.equal(token, self.token) else {
                return Self.rejection(of: request)
            }
            return HTTPResponse(
                statusCode: .seeOther,
                headers: [
                    .location: "/", .setCookie: "\(cookie)=\(secret); HttpOnly; SameSite=Strict; Path=/",
                ], body: Data())
        }
        guard hasCookie(request) else { return Self.rejection(of: request) }
        guard request.method == .GET || hasStudioOrigin(request) else {
            return .failure(
                .forbidden, "The request does not come from the page of the studio. Open the page and try again there.")
        }
        return nil
    }

    /// Returns the response to a rejected request: an HTML page for browsers, or JSON for programs.
    private static func rejection(of request: HTTPRequest) -> HTTPResponse {
        let message =
            "This studio is open to browsers that use the address printed by imprint studio. Open that address with the token."
        guard request.headers[HTTPHeader("Accept")]?.contains("text/html") == true else {
            return .failure(.forbidden, message)
        }
        let instructions = """
            <p>This browser has no access to the studio yet.</p>
            <ol>
            <li>Find the address that <code>imprint studio</code> printed. It ends with <code>?token=…</code></li>
            <li>Open it in this browser, with the token. Each start of the studio has a new token.</li>
            </ol>
            <p>If you cannot find the address, end the studio with Ctrl-C and start it again.</p>
            """
        return .page("Imprint Studio", instructions, .forbidden, nonce: random())
    }

    private func hasCookie(_ request: HTTPRequest) -> Bool {
        let cookies = (request.headers[.cookie] ?? "").split(separator: ";").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        return cookies.contains {
            $0.hasPrefix("\(cookie)=") && Self.equal(String($0.dropFirst(cookie.count + 1)), secret)
        }
    }

    private func hasStudioOrigin(_ request: HTTPRequest) -> Bool {
        guard let host = request.headers[.host], let origin = request.headers[HTTPHeader("Origin")] else {
            return false
        }
        return origin == "http://\(host)"
    }

    /// Returns 256 bits from the random generator of the system, in hexadecimal.
    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Compares two strings in constant time.
    private static func equal(_ found: String, _ expected: String) -> Bool {
        let (found, expected) = (Array(found.utf8), Array(expected.utf8))
        guard found.count == expected.count else { return false }
        return zip(found, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
