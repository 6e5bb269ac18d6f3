internal import FlyingFox
internal import Foundation
internal import ImprintCore

/// The access control for browsers on this machine: only browsers that have opened the address with the token have access.
///
/// The token is exchanged for a cookie (HttpOnly, SameSite=Strict). Requests that change something must also have the origin of
/// the studio's page, which prevents cross-site request forgery.
struct Access: Sendable {
    /// The token in the printed address: 256 random bits.
    let token = randomToken(words: 4)
    private let secret = randomToken(words: 4)
    /// Browsers share cookies among all ports of a host, so two studios need two cookie names.
    private let cookie: String

    init(port: Int) { cookie = "imprint-studio-\(port)" }

    /// Returns the response to a rejected request or to one with a token; nil to allow the request.
    func authorize(_ request: HTTPRequest) -> HTTPResponse? {
        if let token = request.query.first(where: { $0.name == "token" })?.value {
            guard request.method == .GET, request.path == "/", isEqualInConstantTime(token, self.token) else {
                return Self.rejection(of: request)
            }
            return .home(settingCookie: "\(cookie)=\(secret); HttpOnly; SameSite=Strict; Path=/")
        }
        guard request.hasCookie(cookie, [secret]) else { return Self.rejection(of: request) }
        return request.rejectionOfOrigin(scheme: "http")
    }

    /// Returns the response to a rejected request.
    private static func rejection(of request: HTTPRequest) -> HTTPResponse {
        let message =
            "This studio is open to browsers that use the address printed by imprint studio. Open that address with the token."
        let instructions = """
            <p>This browser has no access to the studio yet.</p>
            <ol>
            <li>Find the address that <code>imprint studio</code> printed. It ends with <code>?token=…</code></li>
            <li>Open it in this browser, with the token. Each start of the studio has a new token.</li>
            </ol>
            <p>If you cannot find the address, end the studio with Ctrl-C and start it again.</p>
            """
        return .rejection(of: request, message, instructions)
    }
}

extension HTTPRequest {
    /// Returns whether a cookie has one of the expected values.
    func hasCookie(_ name: String, _ values: Set<String>) -> Bool {
        let cookies = (headers[.cookie] ?? "").split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
        return cookies.contains { cookie in
            guard cookie.hasPrefix("\(name)=") else { return false }
            let value = String(cookie.dropFirst(name.count + 1))
            return values.reduce(false) { isEqualInConstantTime(value, $1) || $0 }
        }
    }

    /// Returns the response to a request that changes something without coming from the page of the studio; nil to allow the
    /// request.
    func rejectionOfOrigin(scheme: String) -> HTTPResponse? {
        guard method != .GET && method != .HEAD else { return nil }
        let origin = headers[HTTPHeader("Origin")]
        if let host = headers[.host], RequestHosts.isSameOrigin(origin, scheme: scheme, host: host) { return nil }
        return .failure(
            .forbidden, "The request does not come from the page of the studio. Open the page and try again there.")
    }
}

extension HTTPResponse {
    /// Returns a redirection to the page; the browser keeps the cookie, if any.
    static func home(settingCookie cookie: String? = nil) -> HTTPResponse {
        var response = HTTPResponse(statusCode: .seeOther, headers: [.location: "/"], body: Data())
        response.headers[.setCookie] = cookie
        return response
    }

    /// Returns the response to a request without access: an HTML page with instructions for browsers, or JSON for programs.
    static func rejection(of request: HTTPRequest, _ message: String, _ instructions: String) -> HTTPResponse {
        guard request.headers[HTTPHeader("Accept")]?.contains("text/html") == true else {
            return .failure(.forbidden, message)
        }
        return .page("Imprint Studio", instructions, .forbidden, nonce: randomToken(words: 4))
    }
}
