internal import FlyingSocks
internal import Foundation
internal import ImprintCore

/// The socket that accepts the connections of a server.
struct Listener: Sendable {
    private let socket: Socket
    /// The port.
    let port: Int

    /// Starts to listen.
    /// - Parameters:
    ///   - host: An IPv4 or IPv6 address of this machine.
    ///   - port: The port; 0 for a free one.
    /// - Throws: `ServeError.unavailableAddress` if the address or the port is not available.
    init(host: String, port: Int) throws(ServeError) {
        func failure(_ reason: String) -> ServeError { .unavailableAddress(host: host, port: port, reason: reason) }
        guard let number = UInt16(exactly: port) else { throw failure("the port is not within 0 to 65535") }
        var opened: Socket?
        do {
            let isIPv6 = host.contains(":")
            let socket = try Socket(domain: isIPv6 ? AF_INET6 : AF_INET)
            opened = socket
            try socket.setValue(true, for: .localAddressReuse)
            if isIPv6 {
                try socket.bind(to: sockaddr_in6.inet6(ip6: host, port: number))
            } else {
                try socket.bind(to: sockaddr_in.inet(ip4: host, port: number))
            }
            // Closes the socket if it fails.
            opened = nil
            try socket.listen()
            opened = socket
            try socket.setFlags(.nonBlocking)
            self.socket = socket
            self.port =
                switch try socket.sockname() {
                case .ip4(_, let port), .ip6(_, let port): Int(port)
                case .unix: port
                }
        } catch {
            try? opened?.close()
            if case SocketError.failed(_, _, let message) = error { throw failure(message) }
            throw failure(error.localizedDescription)
        }
    }

    /// Waits for a connection, at most for 100 ms.
    /// - Returns: The new connection; nil after the time limit.
    /// - Throws: `SocketError` if the connection cannot be accepted, for example because the process has no free file descriptors.
    func accept() throws -> ClientSocket? {
        var descriptor = pollfd(fd: socket.file.rawValue, events: Int16(POLLIN), revents: 0)
        guard poll(&descriptor, 1, 100) > 0 else { return nil }
        do {
            let accepted = Socket(file: try socket.accept().file)
            do {
                return try ClientSocket(accepted)
            } catch {
                try? accepted.close()
                return nil
            }
        } catch SocketError.blocked {
            return nil
        }
    }

    /// Whether a connection was not accepted because the process or the system has no free file descriptors.
    static func lacksDescriptors(_ error: any Error) -> Bool {
        if case SocketError.failed(_, let code, _) = error { code == EMFILE || code == ENFILE } else { false }
    }

    /// Closes the port.
    func close() { try? socket.close() }
}
