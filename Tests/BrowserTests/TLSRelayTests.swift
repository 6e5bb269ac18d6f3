import FlyingSocks
import Foundation
import ImprintCore
import Synchronization
import TestSupport
import Testing

@testable import ImprintLive

/// The connections of other devices to a shared server.
@Suite("Connections of other devices", .timeLimit(.minutes(10))) struct TLSRelayTests {
    /// Numbers of bytes: none, one, as many as the buffer of a relay, one more, and more than the buffers of the sockets.
    static let counts = [0, 1, 1 << 14, 1 << 14 + 1, 3_000_000]

    /// Returns bytes that differ from their neighbours.
    private static func bytes(_ count: Int) -> Data { Data((0..<count).map { UInt8($0 % 251) }) }

    /// Writes all bytes to a blocking socket.
    private static func write(_ bytes: Data, to socket: Socket) throws {
        var index = bytes.startIndex
        while index < bytes.endIndex { index = try socket.write(bytes, from: index) }
    }

    /// Reads bytes from a blocking socket until the other side ends them, or until there are `count`.
    private static func read(from socket: Socket, count: Int = .max) -> Data {
        var bytes = Data()
        while bytes.count < count, let part = try? socket.read(atMost: min(count - bytes.count, 1 << 16)) {
            bytes += part
        }
        return bytes
    }

    // MARK: The end of the connection to the server

    /// Returns the two ends of a connection.
    private func socketPair() throws -> (Socket, Socket) {
        var files: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &files) == 0)
        return (Socket(file: .init(rawValue: files[0])), Socket(file: .init(rawValue: files[1])))
    }

    @Test(
        "A connection keeps its port until the server has sent all bytes and ended it, also after the time limit",
        arguments: counts, [true, false])
    func draining(count: Int, serverEndsFirst: Bool) throws {
        let (socket, server) = try socketPair()
        defer { try? socket.close() }
        try socket.setFlags(.nonBlocking)
        let relay = TLSRelay(socket, device: "192.0.2.1", start: ContinuousClock.now - .seconds(3600))
        /// Whether the server has sent all bytes, before it ends the connection.
        let hasSentAll = Mutex(false)
        Thread.detachNewThread {
            defer { try? server.close() }
            // Until the end of the requests.
            if !serverEndsFirst { _ = Self.read(from: server) }
            guard (try? Self.write(Self.bytes(count), to: server)) != nil else { return }
            hasSentAll.withLock { $0 = true }
        }
        relay.drain(socket)
        #expect(hasSentAll.withLock { $0 })
    }

    @Test("If sharing ends, a connection does not wait for the server") func drainingAfterEnd() throws {
        // Two connections, because `end` shuts down the one to the device.
        let (socket, device) = try socketPair()
        let (connection, server) = try socketPair()
        defer { for end in [socket, device, connection, server] { try? end.close() } }
        let relay = TLSRelay(socket, device: "192.0.2.1")
        relay.end()
        relay.drain(connection)
        // The server has not ended the connection.
        try Self.write(Self.bytes(1), to: server)
        #expect(Self.read(from: connection, count: 1) == Self.bytes(1))
    }

    // MARK: Whole connections

    /// What a device has received.
    private struct Received: Decodable, Equatable, Sendable {
        let count: Int
        let digest: String

        init(_ bytes: Data) {
            (count, digest) = (bytes.count, SHA256.hexadecimal(of: Array(bytes)))
        }
    }

    /// Connects a device to a server through a relay, and returns what each of them has received.
    /// - Parameters:
    ///   - requestCount: The number of bytes that the device sends.
    ///   - readCount: The number of bytes that the server reads of them; nil for all.
    ///   - responseCount: The number of bytes that the server sends after it has received those of the device.
    ///   - deviceEndsFirst: Whether the device ends the connection after its bytes, instead of the server.
    ///   - readUnadmitted: Reads bytes before the server admits the request.
    private func exchange(
        requestCount: Int, readCount: Int? = nil, responseCount: Int, deviceEndsFirst: Bool,
        readUnadmitted: @escaping @Sendable (Socket) -> Data = { _ in Data() }
    ) async throws -> (server: Received, device: Received) {
        let listener = try Socket(domain: AF_INET)
        defer { try? listener.close() }
        try listener.bind(to: sockaddr_in.inet(ip4: "127.0.0.1", port: 0))
        try listener.listen()
        guard case .ip4(_, let port) = try listener.sockname() else { throw CocoaError(.featureUnsupported) }
        let proxy = try TLSProxy(on: "127.0.0.1", target: port)
        async let atServer = onDedicatedThread {
            // If the device fails, nothing connects.
            guard listener.isReadable(within: 60_000) else { throw CocoaError(.featureUnsupported) }
            let server = Socket(file: try listener.accept().file)
            defer { try? server.close() }
            var bytes = readUnadmitted(server)
            guard case .ip4(_, let origin) = try server.remotePeer() else { throw CocoaError(.featureUnsupported) }
            proxy.relay(fromPort: origin)?.admit()
            bytes += Self.read(
                from: server, count: deviceEndsFirst ? .max : (readCount ?? requestCount) - bytes.count)
            try Self.write(Self.bytes(responseCount), to: server)
            return Received(bytes)
        }
        let atDevice: Received = try await Device.run(
            ["exchange", proxy.url.absoluteString, "\(requestCount)"] + (deviceEndsFirst ? ["close"] : []))
        let received = try await (atServer, atDevice)
        await proxy.stop()
        return received
    }

    @Test(
        "A device receives everything that the server sends before it ends the connection",
        .enabled(if: Device.isAvailable, Device.skipReason), arguments: counts)
    func serverEndsFirst(count: Int) async throws {
        let received = try await exchange(requestCount: 1, responseCount: count, deviceEndsFirst: false)
        #expect(received.server == Received(Self.bytes(1)))
        #expect(received.device == Received(Self.bytes(count)))
    }

    @Test(
        "The server receives everything that a device sends before it ends the connection, and may answer afterwards",
        .enabled(if: Device.isAvailable, Device.skipReason), arguments: counts, [0, 3_000_000])
    func deviceEndsFirst(count: Int, responseCount: Int) async throws {
        let received = try await exchange(requestCount: count, responseCount: responseCount, deviceEndsFirst: true)
        #expect(received.server == Received(Self.bytes(count)))
        #expect(received.device == Received(Data()))
    }

    @Test(
        "A device receives the response of a server that does not read its whole request",
        .enabled(if: Device.isAvailable, Device.skipReason), arguments: [1, 1 << 14 + 1])
    func rejectedRequest(responseCount: Int) async throws {
        let received = try await exchange(
            requestCount: 3_000_000, readCount: 1, responseCount: responseCount, deviceEndsFirst: false)
        #expect(received.server == Received(Self.bytes(1)))
        #expect(received.device == Received(Self.bytes(responseCount)))
    }

    @Test(
        "The server receives only the start of a request that it has not admitted, and the rest afterwards",
        .enabled(if: Device.isAvailable, Device.skipReason))
    func unadmittedRequest() async throws {
        let start = Mutex(0)
        let received = try await exchange(requestCount: 3_000_000, responseCount: 1, deviceEndsFirst: false) { server in
            let bytes = Self.read(from: server, count: 1 << 16)
            start.withLock { $0 = server.isReadable(within: 500) ? -1 : bytes.count }
            return bytes
        }
        #expect(start.withLock { $0 } == 1 << 16)
        #expect(received.server == Received(Self.bytes(3_000_000)))
    }

    @Test(
        "Large requests and responses arrive completely", .enabled(if: Device.isAvailable, Device.skipReason))
    func largeExchange() async throws {
        let received = try await exchange(requestCount: 3_000_000, responseCount: 2_000_000, deviceEndsFirst: false)
        #expect(received.server == Received(Self.bytes(3_000_000)))
        #expect(received.device == Received(Self.bytes(2_000_000)))
    }
}
