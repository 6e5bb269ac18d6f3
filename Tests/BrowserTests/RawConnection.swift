import Foundation

/// A connection that sends raw bytes.
struct RawConnection {
    private let descriptor: Int32

    /// Connects to a server on this machine.
    init(to url: URL) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(url.port ?? 80).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        // Wait at most a minute for data.
        var timeout = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        let isConnected = withUnsafeBytes(of: &address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                connect(descriptor, $0.baseAddress, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard descriptor >= 0, isConnected else { throw POSIXError(.ECONNREFUSED) }
    }

    func send(_ text: String) { _ = text.withCString { Glibc.send(descriptor, $0, strlen($0), Int32(MSG_NOSIGNAL)) } }

    /// Returns the received data once the server closes the connection or sends nothing for a minute.
    ///
    /// It blocks its thread, so call it on a dedicated thread if the server runs in this process.
    func response() -> String {
        var response = Data()
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count <= 0 { return String(decoding: response, as: UTF8.self) }
            response += buffer.prefix(count)
        }
    }

    func close() { _ = Glibc.close(descriptor) }
}
