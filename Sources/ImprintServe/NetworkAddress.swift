internal import Foundation

/// The IP addresses that a server can listen on.
package enum NetworkAddress {
    /// Whether a text is an IPv4 or IPv6 address.
    package static func isValid(_ text: String) -> Bool {
        var (short, long) = (in_addr(), in6_addr())
        return inet_pton(AF_INET, text, &short) == 1 || inet_pton(AF_INET6, text, &long) == 1
    }

    /// Whether an address reaches only this machine.
    package static func isLoopback(_ address: String) -> Bool { address == "::1" || address.hasPrefix("127.") }
}
