internal import Foundation
internal import ImprintCore

/// The endpoint of a request.
enum Endpoint: Equatable {
    case live
    case ready
    case server
    case models
    case model
    case modelReady
    case infer
    case metrics

    /// Finds the endpoint of a request.
    /// - Throws: `HTTPError` if the path is unknown, or if the endpoint does not support the method.
    init(_ head: RequestHead, modelName: String) throws(HTTPError) {
        let parts = head.path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        let endpoint = try Self.find(parts[...], modelName)
        guard let endpoint, head.path.hasPrefix("/") else {
            throw HTTPError(.notFound, "there is nothing at \(head.path.prefix(200)), see /v2/models/\(modelName)")
        }
        let methods = endpoint == .infer ? ["POST"] : ["GET", "HEAD"]
        guard methods.contains(head.method) else {
            throw HTTPError(
                .methodNotAllowed, "the method is \(head.method.prefix(20)), expected \(methods[0])",
                fields: ["Allow": methods.joined(separator: ", ")])
        }
        self = endpoint
    }

    private static func find(_ parts: ArraySlice<String>, _ modelName: String) throws(HTTPError) -> Endpoint? {
        switch Array(parts) {
        case ["v2"]: return .server
        case ["v2", "health", "live"]: return .live
        case ["v2", "health", "ready"]: return .ready
        case ["v2", "models"]: return .models
        case ["metrics"]: return .metrics
        default: break
        }
        guard parts.count >= 3, parts.starts(with: ["v2", "models"]) else { return nil }
        guard parts[2] == modelName else {
            throw HTTPError(
                .notFound,
                "there is no model \(String(parts[2].prefix(100)).debugDescription), expected \(modelName.debugDescription)"
            )
        }
        var rest = parts.dropFirst(3)
        if rest.first == "versions", rest.count >= 2 {
            guard rest[rest.startIndex + 1] == "1" else {
                throw HTTPError(
                    .notFound,
                    "there is no version \(String(rest[rest.startIndex + 1].prefix(20)).debugDescription), expected 1")
            }
            rest = rest.dropFirst(2)
        }
        switch Array(rest) {
        case []: return .model
        case ["ready"]: return .modelReady
        case ["infer"]: return .infer
        default: return nil
        }
    }

    /// The kind of the endpoint in the metrics.
    var route: Metrics.Route {
        switch self {
        case .live, .ready, .modelReady: .health
        case .server, .models, .model: .metadata
        case .infer: .infer
        case .metrics: .metrics
        }
    }
}

/// The access control of a server.
struct AccessControl: Sendable {
    private let token: String?
    /// The values of the Host header that requests without a token may have.
    private let hosts: RequestHosts
    /// The address of the server, as in a Host header.
    private let address: String

    /// - Parameter host: The address that the server listens on.
    init(token: String?, host: String, port: Int) {
        self.token = token
        let name = host.contains(":") ? "[\(host)]" : host
        hosts = RequestHosts(["127.0.0.1", "localhost", "[::1]", name], port: port)
        address = "\(name):\(port)"
    }

    /// The paths of the probes of a cluster, which have no token.
    private static let probes = ["/v2/health/live", "/v2/health/ready"]

    /// Checks that a client may send requests to the server.
    ///
    /// Without a token, only programs on this machine have access. Web pages that a browser on this machine shows do not: the Host
    /// header prevents DNS rebinding, and the Origin header cross-site requests.
    func check(_ head: RequestHead) throws(HTTPError) {
        if Self.probes.contains(head.path) { return }
        if let token {
            let scheme = "bearer "
            let value = head.fields["authorization"] ?? ""
            guard value.lowercased().hasPrefix(scheme),
                isEqualInConstantTime(String(value.dropFirst(scheme.count)), token)
            else {
                throw HTTPError(
                    .unauthorized, "the request has no valid token, expected the header Authorization: Bearer TOKEN",
                    fields: ["WWW-Authenticate": "Bearer"])
            }
            return
        }
        let host = head.fields["host"] ?? ""
        guard hosts.contains(host) else {
            throw HTTPError(
                .forbidden,
                "the Host header is \(String(host.prefix(100)).debugDescription), expected \(address), the address of this server. "
                    + "Set a token to use another name")
        }
        if let origin = head.fields["origin"], !RequestHosts.isSameOrigin(origin, scheme: "http", host: host) {
            throw HTTPError(
                .forbidden,
                "the request comes from a web page of another address. Set a token to use the server from web pages")
        }
    }
}
