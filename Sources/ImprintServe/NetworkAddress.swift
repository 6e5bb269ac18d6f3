internal import Foundation

/// The IP addresses that a server can listen on.
package enum NetworkAddress {
    /// Whether a text is an IPv4 or IPv6 address.
    private static func isValid(_ text: String) -> Bool {
        var (short, long) = (in_addr(), in6_addr())
        return inet_pton(AF_INET, text, &short) == 1 || inet_pton(AF_INET6, text, &long) == 1
    }

    /// Returns the IPv4 or IPv6 address for a text; "localhost" is 127.0.0.1, and other names have none.
    package static func address(_ text: String) -> String? {
        // RFC 6761 reserves the name for the loopback addresses, so it needs no name service.
        if text.lowercased() == "localhost" { return "127.0.0.1" }
        return isValid(text) ? text : nil
    }

    /// Whether an address reaches only this machine.
    package static func isLoopback(_ address: String) -> Bool { address == "::1" || address.hasPrefix("127.") }
}
