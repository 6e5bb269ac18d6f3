internal import FlyingFox
package import Foundation
internal import ImprintCore
internal import Synchronization

/// The access control for devices on the local network: each device needs an address with a token that works once.
///
/// The token is exchanged for a cookie (Secure, HttpOnly, SameSite=Strict). The token and the cookie of browsers on this machine do
/// not give access to other devices.
package final class SharedAccess: Sendable {
    /// The SHA-256 digest of the certificate, which browsers show.
    package let fingerprint: String
    private let page: URL
    /// The prefix makes browsers accept the cookie only from an encrypted page of this host.
    private let cookie: String
    private let state = Mutex(State())

    private struct State {
        /// The token that no device has used yet: 128 random bits, which keep the QR code small.
        var token: String?
        /// The values of the cookie, one for each device.
        var secrets: Set<String> = []
        var arrivals: [String] = []
    }

    init(_ page: URL, fingerprint: String) {
        (self.page, self.fingerprint) = (page, fingerprint)
        cookie = "__Host-imprint-studio-\(page.port ?? 443)"
    }

    /// Returns an address that gives access to the first device that opens it.
    ///
    /// Earlier unused addresses become invalid.
    package func invite() -> URL {
        let token = randomToken(words: 2)
        state.withLock { $0.token = token }
        return page.appending(queryItems: [URLQueryItem(name: "token", value: token)])
    }

    /// Returns the IP addresses of the devices that have used a token since the last call.
    package func takeArrivals() -> [String] {
        state.withLock { state in
            defer { state.arrivals = [] }
            return state.arrivals
        }
    }

    /// Returns the response to a rejected request or to one with a token; nil to allow the request.
    /// - Parameter device: The IP address of the device.
    func authorize(_ request: HTTPRequest, from device: String) -> HTTPResponse? {
        let hasAccess = request.hasCookie(cookie, state.withLock { $0.secrets })
        if let token = request.parameter("token") {
            guard request.method == .GET, request.path == "/" else { return Self.rejection(of: request) }
            // A device that opens its address again keeps its access.
            if hasAccess { return .home() }
            guard let secret = exchange(token, device) else { return Self.rejection(of: request) }
            return .home(settingCookie: "\(cookie)=\(secret); Secure; HttpOnly; SameSite=Strict; Path=/")
        }
        guard hasAccess else { return Self.rejection(of: request) }
        return request.rejectionOfOrigin(scheme: "https")
    }

    /// Returns the cookie's value for a device with the valid token, which is used up; nil for other tokens.
    private func exchange(_ token: String, _ device: String) -> String? {
        state.withLock {
            guard let expected = $0.token, isEqualInConstantTime(token, expected) else { return nil }
            let secret = randomToken(words: 4)
            $0.token = nil
            $0.secrets.insert(secret)
            $0.arrivals.append(device)
            return secret
        }
    }

    /// Returns the response to a rejected request.
    private static func rejection(of request: HTTPRequest) -> HTTPResponse {
        let message =
            "This studio is open to devices that scan a new QR code of imprint studio. Each code works once. Show a new one."
        let instructions = """
            <p>This device has no access to the studio. Each QR code works once, so this one was used, or a newer one has replaced it.</p>
            <ol>
            <li>Press Return in the terminal of <code>imprint studio</code>. It shows a new code.</li>
            <li>Scan the new code with this device.</li>
            </ol>
            <p>If the terminal does not respond, end the studio with Ctrl-C and start it again.</p>
            """
        return .rejection(of: request, message, instructions)
    }
}
