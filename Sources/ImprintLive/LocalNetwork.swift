internal import FlyingSocks
internal import Foundation
internal import ImprintCore

/// The addresses of this machine in its local networks.
package enum LocalNetwork {
    /// Returns the IPv4 address of this machine in its private network, preferably that of the default route.
    /// - Throws: `ShareError.noLocalAddress` if this machine has no such address.
    package static func address() throws(ShareError) -> String {
        guard let address = choose(from: addresses(), default: defaultAddress()) else { throw .noLocalAddress }
        return address
    }

    /// Returns the private address to use; the default address is that of the default route.
    package static func choose(from addresses: [String], default defaultAddress: String?) -> String? {
        let privateAddresses = addresses.filter(isPrivate)
        return privateAddresses.first { $0 == defaultAddress } ?? privateAddresses.first
    }

    /// Returns whether an IPv4 address belongs to a private network (RFC 1918), which the Internet cannot reach.
    package static func isPrivate(_ address: String) -> Bool {
        let parts = address.split(separator: ".").compactMap { UInt8($0) }
        guard isAddress(address), parts.count == 4 else { return false }
        return switch parts[0] {
        case 10: true
        case 172: 16...31 ~= parts[1]
        case 192: parts[1] == 168
        default: false
        }
    }

    /// Returns whether a text is an IPv4 address.
    package static func isAddress(_ text: String) -> Bool {
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1
    }

    /// Returns the IPv4 addresses of the active networks, without tunnels such as those of a VPN.
    private static func addresses() -> [String] {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        return sequence(first: first) { $0?.pointee.ifa_next }.compactMap { entry in
            guard let entry = entry?.pointee, let address = entry.ifa_addr,
                address.pointee.sa_family == sa_family_t(AF_INET)
            else { return nil }
            let flags = Int(entry.ifa_flags)
            guard flags & Int(IFF_UP) != 0, flags & Int(IFF_LOOPBACK) == 0, flags & Int(IFF_POINTOPOINT) == 0 else {
                return nil
            }
            var name = [CChar](repeating: 0, count: Int(INET_ADDRSTRLEN))
            let isNamed = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                inet_ntop(AF_INET, &$0.pointee.sin_addr, &name, socklen_t(name.count)) != nil
            }
            return isNamed ? String(buffer: name) : nil
        }
    }

    /// Returns the address of this machine from which it reaches other networks; it does not send anything.
    private static func defaultAddress() -> String? {
        guard let socket = try? Socket(domain: AF_INET, type: .datagram) else { return nil }
        defer { try? socket.close() }
        // An address for documentation (RFC 5737), which belongs to no network.
        guard (try? socket.connect(to: sockaddr_in.inet(ip4: "198.51.100.1", port: 9))) != nil,
            case .ip4(let address, _)? = try? socket.sockname()
        else { return nil }
        return address
    }
}
