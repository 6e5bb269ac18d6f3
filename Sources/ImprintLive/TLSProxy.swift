internal import CImprintShare
internal import FlyingSocks
internal import Foundation
internal import ImprintCore
internal import Synchronization

/// A TLS proxy that forwards the connections of other devices to a server on this machine.
///
/// It listens on one address of this machine, with a new self-signed certificate. Its limits keep slow or hostile clients from
/// blocking others; see `TLSRelay` for the time limits.
final class TLSProxy: Sendable {
    /// The ports to try.
    private static let ports = 8194...8293
    /// The maximum numbers of connections in total, and of one device; browsers open up to six.
    private static let limits = (total: 64, perDevice: 16)

    /// The address for other devices.
    let url: URL
    /// The SHA-256 digest of the certificate, as browsers show it.
    let fingerprint: String
    private let server: TLSServer
    private let listener: Socket
    private let state = Mutex(State())

    private struct State {
        var isListening = true
        var isStopped = false
        var relays: [TLSRelay] = []
        var waiting: [CheckedContinuation<Void, Never>] = []

        /// Returns the tasks that wait for the end, if all threads have ended.
        mutating func takeWaiting() -> [CheckedContinuation<Void, Never>] {
            guard !isListening && relays.isEmpty else { return [] }
            defer { waiting = [] }
            return waiting
        }
    }

    /// Starts to listen.
    /// - Parameters:
    ///   - address: The IPv4 address of this machine to listen on.
    ///   - target: The port of the server on 127.0.0.1.
    init(on address: String, target: UInt16) throws(ShareError) {
        server = try TLSServer(address: address)
        let (listener, port) = try Self.listen(on: address)
        guard let url = URL(string: "https://\(address):\(port)/") else {
            throw .unavailableAddress(address, reason: "it is invalid")
        }
        (self.listener, self.url) = (listener, url)
        fingerprint = server.fingerprint
        Thread.detachNewThread { [self] in acceptConnections(target) }
    }

    /// Returns a socket that listens on the first free port.
    private static func listen(on address: String) throws(ShareError) -> (Socket, port: Int) {
        var reason = ""
        for port in ports {
            var opened: Socket?
            do {
                let socket = try Socket(domain: AF_INET)
                opened = socket
                try socket.setValue(true, for: .localAddressReuse)
                try socket.bind(to: sockaddr_in.inet(ip4: address, port: UInt16(port)))
                // Closes the socket if it fails.
                opened = nil
                try socket.listen()
                opened = socket
                try socket.setFlags(.nonBlocking)
                return (socket, port)
            } catch {
                reason = Self.reason(error)
                try? opened?.close()
            }
        }
        throw .unavailableAddress(address, reason: reason)
    }

    private static func reason(_ error: any Error) -> String {
        if case SocketError.failed(_, _, let message) = error { return message }
        return error.localizedDescription
    }

    /// Accepts connections until `stop()`, and starts a thread for each.
    private func acceptConnections(_ target: UInt16) {
        while !state.withLock({ $0.isStopped }) {
            guard listener.isReadable(within: 100) else { continue }
            do {
                let (file, address) = try listener.accept()
                start(Socket(file: file), address, target)
            } catch SocketError.blocked {
                continue
            } catch {
                // The process may have no free file descriptors.
                Thread.sleep(forTimeInterval: 0.1)
            }
        }
        try? listener.close()
        let waiting = state.withLock {
            $0.isListening = false
            return $0.takeWaiting()
        }
        for task in waiting { task.resume() }
    }

    private func start(_ socket: Socket, _ address: sockaddr_storage, _ target: UInt16) {
        guard case .ip4(let device, _)? = try? Socket.makeAddress(from: address) else {
            try? socket.close()
            return
        }
        let relay = TLSRelay(socket, device: device)
        let isAccepted = state.withLock {
            let isFull =
                $0.relays.count >= Self.limits.total
                || $0.relays.count { $0.device == device } >= Self.limits.perDevice
            if isFull || $0.isStopped { return false }
            $0.relays.append(relay)
            return true
        }
        guard isAccepted else {
            try? socket.close()
            return
        }
        Thread.detachNewThread { [self] in
            relay.run(server, target)
            let waiting = state.withLock {
                $0.relays.removeAll { $0 === relay }
                return $0.takeWaiting()
            }
            for task in waiting { task.resume() }
        }
    }

    /// Returns the connection whose requests arrive at the server from a port of this machine; nil if the proxy does not use it.
    func relay(fromPort port: UInt16) -> TLSRelay? {
        state.withLock { $0.relays.first { $0.port == port } }
    }

    /// Closes the port and all connections.
    func stop() async {
        await withCheckedContinuation { continuation in
            let waiting = state.withLock {
                $0.isStopped = true
                for relay in $0.relays { relay.end() }
                $0.waiting.append(continuation)
                return $0.takeWaiting()
            }
            for task in waiting { task.resume() }
        }
    }
}

/// The certificate, the key and the settings of a TLS server.
final class TLSServer: @unchecked Sendable {
    // OpenSSL protects it from concurrent access.
    let pointer: OpaquePointer
    /// The SHA-256 digest of the certificate in hexadecimal, with colons.
    let fingerprint: String

    init(address: String) throws(ShareError) {
        guard imprint_can_use_tls() != 0 else { throw .missingLibrary }
        var digest = [UInt8](repeating: 0, count: 32)
        var message = [CChar](repeating: 0, count: 128)
        guard let pointer = imprint_tls_create(address, &digest, &message) else {
            throw .noCertificate(reason: String(buffer: message))
        }
        self.pointer = pointer
        fingerprint = digest.map { String(format: "%02X", $0) }.joined(separator: ":")
    }

    deinit { imprint_tls_free(pointer) }
}

extension Socket {
    /// Waits until the socket is readable, at most for some milliseconds.
    func isReadable(within milliseconds: Int32) -> Bool {
        var descriptor = pollfd(fd: file.rawValue, events: Int16(POLLIN), revents: 0)
        return poll(&descriptor, 1, milliseconds) > 0
    }
}
