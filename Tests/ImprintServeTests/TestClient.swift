import Foundation
import Testing

@testable import ImprintServe

/// Waits until a condition is true, and records an issue if it is still false after a minute.
func expectSoon(sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool) {
    let deadline = ContinuousClock.now + .seconds(60)
    while !condition() {
        guard .now < deadline else {
            Issue.record("the condition is still false", sourceLocation: sourceLocation)
            return
        }
        usleep(1000)
    }
}

/// A connection to a server on this machine that sends raw bytes.
final class TestClient {
    private let descriptor: Int32
    private var received = Data()
    private var isClosed = false

    /// A response.
    struct Answer {
        let status: Int
        let fields: [String: String]
        let body: Data

        /// The object in the body.
        var json: [String: Any] {
            get throws { try #require(try JSONSerialization.jsonObject(with: body) as? [String: Any]) }
        }

        /// The message of an error.
        var error: String? { (try? json)?["error"] as? String }
    }

    init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        // Wait at most 30 seconds for data.
        var timeout = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        let isConnected = withUnsafeBytes(of: &address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                connect(descriptor, $0.baseAddress, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard descriptor >= 0, isConnected else { throw POSIXError(.ECONNREFUSED) }
    }

    deinit { close() }

    func close() {
        if !isClosed { _ = Glibc.close(descriptor) }
        isClosed = true
    }

    /// Sends bytes.
    /// - Returns: Whether the server still receives.
    @discardableResult func send(_ bytes: Data) -> Bool {
        bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) } == bytes.count
    }

    @discardableResult func send(_ text: String) -> Bool { send(Data(text.utf8)) }

    /// Whether the server has closed the connection, after waiting for that.
    var isClosedByServer: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 0
    }

    /// The number of received bytes after the last response.
    var unusedByteCount: Int { received.count }

    /// Receives the next response.
    func answer(hasBody: Bool = true) throws -> Answer {
        let end = Data("\r\n\r\n".utf8)
        while received.firstRange(of: end) == nil { try receive() }
        let range = try #require(received.firstRange(of: end))
        let lines = String(decoding: received[..<range.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let fields = Dictionary(
            lines.dropFirst().map { line in
                let parts = line.split(separator: ":", maxSplits: 1)
                return (parts[0].lowercased(), parts[1].trimmingCharacters(in: .whitespaces))
            }, uniquingKeysWith: { $1 })
        received = Data(received[range.upperBound...])
        let length = hasBody ? Int(fields["content-length"] ?? "0") ?? 0 : 0
        while received.count < length { try receive() }
        let body = Data(received.prefix(length))
        received = Data(received.dropFirst(length))
        return Answer(status: try #require(Int(lines[0].split(separator: " ")[1])), fields: fields, body: body)
    }

    private func receive() throws {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { throw POSIXError(.ECONNRESET) }
        received += buffer.prefix(count)
    }

    /// Sends a request and receives its response.
    func request(
        _ method: String, _ path: String, _ fields: [String: String] = [:], body: Data? = nil
    ) throws -> Answer {
        var head = "\(method) \(path) HTTP/1.1\r\n"
        var fields = fields
        if let body { fields["Content-Length"] = "\(body.count)" }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { head += "\(name): \(value)\r\n" }
        send(Data("\(head)\r\n".utf8) + (body ?? Data()))
        return try answer(hasBody: method != "HEAD")
    }
}
