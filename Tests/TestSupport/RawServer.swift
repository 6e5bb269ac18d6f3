public import Foundation
internal import Synchronization

/// A web server that sends the bytes of a test as its response.
public final class RawServer: Sendable {
    public struct Request: Sendable {
        /// The index of the request.
        public let number: Int
        public let head: String

        /// The value of a header.
        public func header(_ name: String) -> String? {
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                .map { $0.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces) }
        }

        /// The first requested byte.
        public var range: Int? { header("Range").flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } }

        /// The requested path.
        public var path: String { String(head.split(separator: " ")[1]) }
    }

    public struct Connection: Sendable {
        fileprivate let descriptor: Int32

        /// Sends bytes; returns false if the client has closed the connection.
        @discardableResult public func send(_ bytes: Data) -> Bool {
            var rest = bytes
            while !rest.isEmpty {
                let piece = [UInt8](rest.prefix(1 << 16))
                let count = Foundation.send(descriptor, piece, piece.count, Int32(MSG_NOSIGNAL))
                if count <= 0 { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        @discardableResult public func send(_ text: String) -> Bool { send(Data(text.utf8)) }

        /// Ends the connection with a TCP reset.
        public func reset() {
            // With this time, or by dissolving the association of the socket, the system discards unsent bytes.
            var time = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &time, socklen_t(MemoryLayout<linger>.size))
            var none = sockaddr()
            none.sa_family = sa_family_t(AF_UNSPEC)
            connect(descriptor, &none, socklen_t(MemoryLayout<sockaddr>.size))
        }

        /// Reads bytes of the body of a request; returns fewer at the end of the connection.
        public func read(_ count: Int) -> Data {
            var bytes = Data()
            var piece = [UInt8](repeating: 0, count: 1 << 16)
            while bytes.count < count {
                let received = recv(descriptor, &piece, min(piece.count, count - bytes.count), 0)
                if received <= 0 { break }
                bytes += piece.prefix(received)
            }
            return bytes
        }

        /// Waits until the client closes the connection.
        public func waitForEnd() {
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
        }

        /// Sends a file or the requested part of it.
        /// - Parameter cutAfter: The number of bytes after which the connection is closed.
        public func sendFile(_ file: Data, tag: String, for request: Request, cutAfter: Int? = nil) {
            var start = request.range ?? 0
            if request.header("If-Range") != tag { start = 0 }
            let part = file[start...]
            let status = start > 0 ? "206 Partial Content" : "200 OK"
            let range = start > 0 ? "Content-Range: bytes \(start)-\(file.count - 1)/\(file.count)\r\n" : ""
            send(
                "HTTP/1.1 \(status)\r\nETag: \(tag)\r\n\(range)Content-Length: \(part.count)\r\nConnection: close\r\n\r\n"
            )
            send(Data(part.prefix(cutAfter ?? part.count)))
        }
    }

    private let listener: Int32
    private let port: UInt16
    private let seen = Mutex<[Request]>([])

    /// Starts a server that calls `answer` for the request of each connection on a new thread, then closes the connection.
    /// - Parameter readsRequest: Whether to read the request before the call; otherwise its head is empty.
    public init(
        readsRequest: Bool = true, _ answer: @escaping @Sendable (Request, Connection) -> Void
    ) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutableBytes(of: &address) { bytes in
            let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            return bind(listener, pointer, length) == 0 && listen(listener, 8) == 0
                && getsockname(listener, pointer, &length) == 0
        }
        guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                if descriptor < 0 {
                    // Closed here, not in `stop`: another server could receive the same descriptor before the next `accept`.
                    close(listener)
                    return
                }
                Thread.detachNewThread { [self] in
                    defer { close(descriptor) }
                    var head = Data()
                    // Byte by byte, so that `Connection.read` receives the body even if it arrives together with the head.
                    while readsRequest && !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                        var byte: UInt8 = 0
                        if recv(descriptor, &byte, 1, 0) <= 0 { return }
                        head.append(byte)
                    }
                    let text = String(decoding: head, as: UTF8.self)
                    let request = seen.withLock { seen in
                        let request = Request(number: seen.count, head: text)
                        seen.append(request)
                        return request
                    }
                    answer(request, Connection(descriptor: descriptor))
                    shutdown(descriptor, Int32(SHUT_WR))
                }
            }
        }
    }

    /// The URL of a model file.
    public var url: URL { URL(string: "http://127.0.0.1:\(port)/model.imprint")! }

    /// The requests so far.
    public var requests: [Request] { seen.withLock { $0 } }

    /// Ends the thread that accepts connections.
    public func stop() { shutdown(listener, Int32(SHUT_RDWR)) }
}
