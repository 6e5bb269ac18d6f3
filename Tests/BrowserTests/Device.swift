import Foundation
import ImprintCore
import ImprintLive
import ImprintStudio
import TestSupport
import Testing

/// A device on the local network that uses a shared studio; `Fixtures/device.py` connects to it.
struct Device {
    /// Whether the studio can be shared, and the Python that connects to it is available.
    static let isAvailable = Python.path != nil && LocalServer.canShare

    /// The reason for skipping tests without sharing.
    static let skipReason: Comment = "OpenSSL 3 is not installed, or IMPRINT_PYTHON is not set; ./run test sets it"

    /// A response of the studio.
    struct Answer: Decodable, Sendable {
        let status: Int
        let headers: [String: String]
        let body: String
    }

    /// The address of the page, without a token.
    let page: URL
    var cookie: String?
    var origin: String?
    var headers: [String: String] = [:]

    /// Creates a device without access.
    init(_ address: URL) throws {
        var parts = try #require(URLComponents(url: address, resolvingAgainstBaseURL: false))
        parts.query = nil
        page = try #require(parts.url)
    }

    /// Returns the token of an address.
    static func token(in address: URL) throws -> String {
        let parts = try #require(URLComponents(url: address, resolvingAgainstBaseURL: false))
        return try #require(parts.queryItems?.first { $0.name == "token" }?.value)
    }

    /// Opens an address with a token, and returns a device with access.
    static func enter(_ address: URL) async throws -> Device {
        var device = try Device(address)
        let token = try Self.token(in: address)
        let answer = try await device.ask("GET", "", ["token": token])
        #expect(answer.status == 303 && answer.headers["location"] == "/")
        let cookie = try #require(answer.headers["set-cookie"])
        #expect(cookie.hasPrefix("__Host-imprint-studio-") && !cookie.contains(token))
        #expect(cookie.hasSuffix("; Secure; HttpOnly; SameSite=Strict; Path=/"))
        device.cookie = String(cookie.prefix { $0 != ";" })
        device.origin = String(device.page.absoluteString.dropLast())
        return device
    }

    /// Sends a request over a new connection.
    /// - Parameters:
    ///   - bodySize: The number of bytes of the body, which are not an image.
    ///   - certificate: A file that receives the certificate of the studio.
    func ask(
        _ method: String = "GET", _ path: String = "", _ query: [String: String] = [:], bodySize: Int = 0,
        certificate: URL? = nil
    ) async throws -> Answer {
        let address = page.appending(path: path)
            .appending(queryItems: query.map { URLQueryItem(name: $0.key, value: $0.value) })
        var headers = headers
        headers["Cookie"] = headers["Cookie"] ?? cookie
        headers["Origin"] = headers["Origin"] ?? origin
        return try await Self.run(
            ["request", address.absoluteString, "--method", method, "--body-size", "\(bodySize)"]
                + headers.flatMap { ["--header", "\($0.key):\($0.value)"] }
                + (certificate.map { ["--certificate", $0.path] } ?? []))
    }

    /// Runs an action of `Fixtures/device.py` on a thread outside the task pool.
    static func run<Value: Decodable & Sendable>(_ arguments: [String]) async throws -> Value {
        try await onDedicatedThread {
            let output = try Python.output(of: "BrowserTests/Fixtures/device.py", arguments)
            let lines = output.split(separator: UInt8(ascii: "\n"))
            return try JSONDecoder().decode(Value.self, from: lines.last ?? output)
        }
    }

    /// Runs `body` with a shared studio, its access, and a folder.
    /// - Parameters:
    ///   - address: The address of this machine on which the studio is shared.
    ///   - port: The port of the studio on 127.0.0.1; if nil, the first free default port.
    static func withSharedStudio<Value>(
        hasModel: Bool = false, on address: String = "127.0.0.1", port: Int? = nil,
        _ body: (Studio, SharedAccess, _ folder: URL) async throws -> Value
    ) async throws -> Value {
        try await StudioSamples.withStudio(hasModel: hasModel, port: port) { studio, folder in
            try await body(studio, try studio.share(on: address), folder)
        }
    }
}
