/// The values of the Host header with which clients may address a server; any other value can be a sign of DNS rebinding.
///
/// The case of a host does not matter (RFC 9110, section 4.2.3).
package struct RequestHosts: Sendable {
    private let values: Set<String>

    /// Creates the values for the names and addresses of a server; IPv6 addresses are in brackets.
    package init(_ names: [String], port: Int) {
        // Clients omit the port 80.
        values = Set(names.map { $0.lowercased() }.flatMap { port == 80 ? [$0, "\($0):80"] : ["\($0):\(port)"] })
    }

    /// Returns whether a client may send this value; nil if the request has none.
    package func contains(_ host: String?) -> Bool { host.map { values.contains($0.lowercased()) } ?? false }

    /// Returns whether the value of the Origin header is the origin of the server that the Host header names.
    package static func isSameOrigin(_ origin: String?, scheme: String, host: String) -> Bool {
        origin?.lowercased() == "\(scheme)://\(host.lowercased())"
    }
}
