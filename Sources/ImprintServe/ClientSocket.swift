internal import FlyingSocks
internal import Foundation

/// The connection to a client, on which reading and writing wait at most until a deadline.
struct ClientSocket: Sendable {
    private let socket: Socket

    /// An error of the connection.
    enum Failure: Error {
        /// The client has closed the connection, or the server is ending it.
        case closed
        /// The deadline has passed.
        case timedOut
    }

    /// - Parameter socket: An accepted connection; this type closes it only in `close`.
    init(_ socket: Socket) throws {
        self.socket = socket
        try socket.setFlags(.nonBlocking)
        var isEnabled: Int32 = 1
        // A response is written at once, so waiting for more data only delays it.
        setsockopt(
            socket.file.rawValue, Int32(IPPROTO_TCP), TCP_NODELAY, &isEnabled, socklen_t(MemoryLayout<Int32>.size))
        #if canImport(Darwin)
            try socket.setValue(true, for: .noSIGPIPE)
        #endif
    }

    /// Reads at least one byte into a buffer.
    /// - Returns: The number of bytes; 0 at the end of the connection.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, until deadline: ContinuousClock.Instant
    ) throws(Failure) -> Int {
        while true {
            let count = recv(socket.file.rawValue, buffer.baseAddress, buffer.count, 0)
            if count >= 0 { return count }
            try wait(for: POLLIN, until: deadline)
        }
    }

    /// Writes all bytes.
    func write(_ data: Data, until deadline: ContinuousClock.Instant) throws(Failure) {
        var start = 0
        while start < data.count {
            let count = data.withUnsafeBytes { bytes in
                send(socket.file.rawValue, bytes.baseAddress.map { $0 + start }, bytes.count - start, Self.sendFlags)
            }
            if count >= 0 { start += count } else { try wait(for: POLLOUT, until: deadline) }
        }
    }

    #if canImport(Darwin)
        private static let sendFlags: Int32 = 0
    #else
        // A write to a closed connection must not end the process.
        private static let sendFlags = Int32(MSG_NOSIGNAL)
    #endif

    /// Waits after a call that has failed; throws its error unless the call would have blocked.
    private func wait(for event: Int32, until deadline: ContinuousClock.Instant) throws(Failure) {
        let code = errno
        if code == EINTR { return }
        guard code == EWOULDBLOCK || code == EAGAIN else { throw .closed }
        let rest = (deadline - .now) / .milliseconds(1)
        guard rest > 0 else { throw .timedOut }
        var descriptor = pollfd(fd: socket.file.rawValue, events: Int16(event), revents: 0)
        let result = poll(&descriptor, 1, Int32(min(rest.rounded(.up), 1e9)))
        if result == 0 { throw .timedOut }
        if result < 0 && errno != EINTR { throw .closed }
    }

    /// Whether the client has closed the connection, or its side of it.
    var isClosedByClient: Bool {
        var byte: UInt8 = 0
        let count = recv(socket.file.rawValue, &byte, 1, Int32(MSG_PEEK))
        return count == 0 || count < 0 && ![EWOULDBLOCK, EAGAIN, EINTR].contains(errno)
    }

    /// Ends the connection, so that a thread that waits for it continues.
    func shutDown() { _ = shutdown(socket.file.rawValue, Int32(SHUT_RDWR)) }

    /// Ends the server's side of the connection, and discards data until the client ends its side.
    ///
    /// If the server closed the connection while data arrives, the client would lose the response.
    func drain(until deadline: ContinuousClock.Instant) {
        guard shutdown(socket.file.rawValue, Int32(SHUT_WR)) == 0 else { return }
        withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { buffer in
            while let count = try? read(into: buffer, until: deadline), count > 0, .now < deadline {}
        }
    }

    /// Closes the socket.
    func close() { try? socket.close() }
}
