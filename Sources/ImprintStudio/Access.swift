internal import FlyingFox
internal import Foundation

/// Who may use the studio: browsers that are given the address with the token.
///
/// The token becomes a cookie that no script reads and no other site's page sends; what changes something must also come from the
/// studio's own page.
struct Access: Sendable {
    /// What the printed address has, 256 bits at random.
    let token = Self.random()
    private let secret = Self.random()
    /// Browsers keep cookies by name for all ports of a machine, so that two studios need two names.
    private let cookie: String

    init(port: Int) { cookie = "imprint-studio-\(port)" }

    /// The answer to a request that is not let in, or that is let in by its token; `nil` for what may be answered.
    func gate(_ request: HTTPRequest) -> HTTPResponse? {
        if let token = request.query.first(where: { $0.name == "token" })?.value {
            guard request.method == .GET, request.path == "/", Self.equal(token, self.token) else {
                return Self.refusal(request)
            }
            return HTTPResponse(
                statusCode: .seeOther,
                headers: [
                    .location: "/", .setCookie: "\(cookie)=\(secret); HttpOnly; SameSite=Strict; Path=/",
                ], body: Data())
        }
        guard isKnown(request) else { return Self.refusal(request) }
        guard request.method == .GET || isOwn(request) else {
            return .failure(.forbidden, "The request does not come from the studio's own page; open it and try there.")
        }
        return nil
    }

    /// The answer to those who are not let in: a page for people, or a sentence for programs.
    private static func refusal(_ request: HTTPRequest) -> HTTPResponse {
        let sentence =
            "This studio is open to browsers that are given the address which imprint studio printed: use it, with its token."
        guard request.headers[HTTPHeader("Accept")]?.contains("text/html") == true else {
            return .failure(.forbidden, sentence)
        }
        return .page("Imprint Studio", sentence, .forbidden)
    }

    private func isKnown(_ request: HTTPRequest) -> Bool {
        let cookies = (request.headers[.cookie] ?? "").split(separator: ";").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        return cookies.contains {
            $0.hasPrefix("\(cookie)=") && Self.equal(String($0.dropFirst(cookie.count + 1)), secret)
        }
    }

    private func isOwn(_ request: HTTPRequest) -> Bool {
        guard let host = request.headers[.host], let origin = request.headers[HTTPHeader("Origin")] else {
            return false
        }
        return origin == "http://\(host)"
    }

    /// 256 bits of the system's generator, in hexadecimal.
    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<4).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// Whether two texts are equal, in a time that does not tell how much of them is.
    private static func equal(_ found: String, _ expected: String) -> Bool {
        let (found, expected) = (Array(found.utf8), Array(expected.utf8))
        guard found.count == expected.count else { return false }
        return zip(found, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
