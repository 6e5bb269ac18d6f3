internal import CImprintShare
internal import FlyingSocks
internal import Foundation
internal import Synchronization

/// A connection of another device, whose bytes it forwards to the server on this machine and back.
///
/// It ends if the handshake takes more than 10 seconds, if the server admits no request within 30 seconds, or if it transfers nothing
/// for 90 seconds; the server answers within 60 seconds. The connection to the server then stays open until the server has ended it.
final class TLSRelay: Sendable {
    /// The IP address of the device.
    let device: String
    private let socket: Socket
    private let state = Mutex(State())

    private struct State {
        var isAdmitted = false
        /// The number of bytes that the device may send before it is admitted.
        var allowance = TLSRelay.headLimit
        var hasEnded = false
        /// The connection to the server, and its port on this side.
        var server: (socket: Socket, port: UInt16)?
    }

    private static let limits = (
        handshake: Duration.seconds(10), admission: Duration.seconds(30), idle: Duration.seconds(90),
        linger: Duration.seconds(2)
    )
    private let start: ContinuousClock.Instant
    /// The maximum number of bytes of a request head from a device that is not admitted, because the server keeps the whole head in memory.
    private static let headLimit = 64 << 10

    /// - Parameter start: The time of the connection, from which the time limits for the handshake and the admission count.
    init(_ socket: Socket, device: String, start: ContinuousClock.Instant = .now) {
        (self.socket, self.device, self.start) = (socket, device, start)
    }

    /// The port from which the server receives the requests of the device; nil while there is no connection to the server.
    var port: UInt16? { state.withLock { $0.server?.port } }

    /// Accepts further bytes of rejected requests, which the server has consumed or does not keep in memory.
    func allow(_ byteCount: Int) { state.withLock { $0.allowance += min(max(byteCount, 0), 1 << 40) } }

    /// Ends the limits of time and bytes for unauthenticated clients.
    func admit() { state.withLock { $0.isAdmitted = true } }

    /// Lets `run` return soon.
    func end() {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.hasEnded = true
            // `run` closes the sockets afterwards, so their descriptors are still valid.
            socket.shutDown()
            state.server?.socket.shutDown()
        }
    }

    /// Forwards bytes until the device or the server ends the connection, then closes the sockets.
    func run(_ server: TLSServer, _ target: UInt16) {
        // OpenSSL writes to sockets whose other side may be closed; the signal then ends with the thread.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let wasConnected = forward(server, target)
        // The server must not take the last request for one of this machine, so the port belongs to the device until its end.
        if let server = state.withLock({ $0.server?.socket }) { drain(server) }
        if wasConnected { linger() }
        let other = state.withLock { state in
            state.hasEnded = true
            defer { state.server = nil }
            return state.server?.socket
        }
        try? other?.close()
        try? socket.close()
    }

    /// - Returns: Whether the device was connected to the server.
    private func forward(_ server: TLSServer, _ target: UInt16) -> Bool {
        guard (try? socket.setFlags(.nonBlocking)) != nil,
            let connection = imprint_tls_open(server.pointer, socket.file.rawValue)
        else { return false }
        defer { imprint_tls_close(connection) }
        guard performHandshake(connection), let upstream = connect(target) else { return false }
        transfer(connection, upstream)
        return true
    }

    private func performHandshake(_ connection: OpaquePointer) -> Bool {
        while true {
            let events: Int32
            switch imprint_tls_accept(connection) {
            case 1...: return true
            case IMPRINT_TLS_WANTS_READ.rawValue: events = POLLIN
            case IMPRINT_TLS_WANTS_WRITE.rawValue: events = POLLOUT
            default: return false
            }
            guard wait(events, until: start + Self.limits.handshake) else { return false }
        }
    }
}

extension TLSRelay {
    /// Connects to the server; nil if that fails.
    private func connect(_ target: UInt16) -> Socket? {
        guard let server = try? Socket(domain: AF_INET) else { return nil }
        let isConnected = state.withLock {
            guard !$0.hasEnded, (try? server.connect(to: sockaddr_in.inet(ip4: "127.0.0.1", port: target))) != nil,
                (try? server.setFlags(.nonBlocking)) != nil,
                case .ip4(_, let port)? = try? server.sockname()
            else { return false }
            $0.server = (server, port)
            return true
        }
        guard isConnected else {
            try? server.close()
            return nil
        }
        return server
    }

    /// Forwards bytes in both directions until one side ends, or a time limit is over.
    private func transfer(_ connection: OpaquePointer, _ server: Socket) {
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        var (request, response) = (Data(), Data())
        var lastTransfer = ContinuousClock.now
        /// Whether the server still reads requests; if not, it may have sent a response, for example to a request that is too large.
        var acceptsRequests = true
        /// The number of bytes that the device has sent.
        var received = 0
        while true {
            // Checked before each transfer, because an unauthenticated client could send one byte at a time.
            guard .now < admissionDeadline else { return }
            var hasTransferred = false
            var (deviceEvents, serverEvents) = (Int32(0), Int32(0))
            /// Returns the number of transferred bytes, after recording the events to wait for; nil at the end of the connection.
            func count(_ result: Int32) -> Int? {
                switch result {
                case 1...: hasTransferred = true
                case IMPRINT_TLS_WANTS_READ.rawValue: deviceEvents |= POLLIN
                case IMPRINT_TLS_WANTS_WRITE.rawValue: deviceEvents |= POLLOUT
                default: return nil
                }
                return max(0, Int(result))
            }
            let limit = state.withLock { $0.isAdmitted ? buffer.count : min(buffer.count, $0.allowance - received) }
            if request.isEmpty && limit > 0 {
                guard let count = count(imprint_tls_read(connection, &buffer, Int32(limit))) else { return }
                request = Data(buffer[..<count])
                received += count
            }
            if !acceptsRequests { request = Data() }
            do {
                if !request.isEmpty {
                    request = request[try server.write(request, from: request.startIndex)...]
                    hasTransferred = true
                }
            } catch SocketError.blocked {
                serverEvents |= POLLOUT
            } catch {
                (acceptsRequests, hasTransferred) = (false, true)
            }
            do {
                if response.isEmpty {
                    response = Data(try server.read(atMost: buffer.count))
                    hasTransferred = true
                }
            } catch SocketError.blocked {
                serverEvents |= POLLIN
            } catch {
                return
            }
            if !response.isEmpty {
                let result = response.withUnsafeBytes { bytes in
                    imprint_tls_write(
                        connection, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(bytes.count))
                }
                guard let count = count(result) else { return }
                response = response.dropFirst(count)
            }
            if hasTransferred {
                lastTransfer = .now
            } else if limit <= 0 {
                // The decision of the server is not an event of a socket.
                _ = wait(deviceEvents, on: server, serverEvents, until: .now + .milliseconds(50))
                if state.withLock({ $0.hasEnded }) { return }
            } else if !wait(deviceEvents, on: server, serverEvents, until: lastTransfer + Self.limits.idle) {
                return
            }
        }
    }

    /// Ends the requests, and waits until the server has ended the connection.
    ///
    /// No time limit applies: the server may have received further requests, and without the port of this connection, they would count as
    /// requests of this machine.
    func drain(_ server: Socket) {
        server.shutDown(Int(SHUT_WR))
        while wait(0, on: server, POLLIN, until: nil) {
            do { _ = try server.read(atMost: 1 << 14) } catch SocketError.blocked { continue } catch { return }
        }
    }

    /// Ends the responses, and discards what the device still sends, until the device ends the connection or a time limit is over.
    ///
    /// A socket that is closed with unread bytes resets the connection, and the device could lose the last response.
    private func linger() {
        socket.shutDown(Int(SHUT_WR))
        let end = ContinuousClock.now + Self.limits.linger
        while wait(POLLIN, until: end) {
            do { _ = try socket.read(atMost: 1 << 14) } catch SocketError.blocked { continue } catch { return }
        }
    }

    /// The end of the time limit for unauthenticated clients.
    private var admissionDeadline: ContinuousClock.Instant {
        state.withLock { $0.isAdmitted } ? .now + Self.limits.idle : start + Self.limits.admission
    }

    /// Waits for events of the device or of the server.
    /// - Parameter deadline: The time limit, besides that for unauthenticated clients; nil for neither of them.
    /// - Returns: `false` if a time limit is over or the connection must end.
    private func wait(
        _ deviceEvents: Int32, on server: Socket? = nil, _ serverEvents: Int32 = 0,
        until deadline: ContinuousClock.Instant?
    ) -> Bool {
        // Without events to wait for, the end of a connection must not wake up the thread again and again.
        var descriptors = [(socket, deviceEvents)] + (server.map { [($0, serverEvents)] } ?? [])
        descriptors.removeAll { $0.1 == 0 }
        var polled = descriptors.map { pollfd(fd: $0.0.file.rawValue, events: Int16($0.1), revents: 0) }
        while !state.withLock({ $0.hasEnded }) {
            var timeout: Int32 = -1
            if let deadline {
                let rest = (min(deadline, admissionDeadline) - .now) / .milliseconds(1)
                guard rest > 0 else { return false }
                timeout = Int32(rest.rounded(.up))
            }
            if poll(&polled, nfds_t(polled.count), timeout) > 0 { return true }
        }
        return false
    }
}

extension Socket {
    /// Ends one or both directions, so that threads that wait for the socket continue.
    func shutDown(_ direction: Int = Int(SHUT_RDWR)) { _ = shutdown(file.rawValue, Int32(direction)) }
}
