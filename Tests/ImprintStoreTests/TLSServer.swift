import Foundation
import TestSupport

/// Certificates of a certificate authority for tests, and HTTPS servers with them, through the program openssl.
struct TestAuthority {
    /// The path of the program; nil if it is missing.
    static let openssl = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/opt/homebrew/bin/openssl"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    enum Certificate: String, CaseIterable { case valid, expired, otherHost }

    let folder: URL

    /// The certificate of the authority as a PEM file.
    var file: URL { folder.appending(path: "authority.pem") }

    /// Creates an authority in a folder.
    init(in folder: URL) throws {
        self.folder = folder
        try call(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "authority.key", "-out", "authority.pem",
            "-days", "2", "-subj", "/CN=Test", "-addext", "keyUsage=critical,keyCertSign")
    }

    @discardableResult private func call(_ arguments: String...) throws -> String {
        let program = URL(filePath: TestAuthority.openssl ?? "openssl")
        let result = try run(program, arguments, folder: folder)
        guard result.status == 0 else {
            throw CocoaError(.executableLoad, userInfo: [NSLocalizedDescriptionKey: result.errors])
        }
        return result.output
    }

    /// Starts a server that answers a request for `/NAME` with the bytes of the file NAME in the folder, a whole response.
    func serve(_ certificate: Certificate) throws -> RunningProgram {
        let name = certificate.rawValue
        let extensions = certificate == .otherHost ? "DNS:other.example" : "IP:127.0.0.1"
        try "subjectAltName=\(extensions)\n".write(
            to: folder.appending(path: "\(name).ext"), atomically: true, encoding: .utf8)
        try call(
            "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "\(name).key", "-out", "\(name).csr", "-subj",
            "/CN=Test server")
        try call(
            "x509", "-req", "-in", "\(name).csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-set_serial", "2",
            "-out", "\(name).pem", "-days", certificate == .expired ? "-1" : "2", "-extfile", "\(name).ext")
        return try RunningProgram(
            URL(filePath: TestAuthority.openssl ?? "openssl"),
            [
                "s_server", "-accept", "127.0.0.1:0", "-cert", "\(name).pem", "-key", "\(name).key", "-no_dhe", "-HTTP",
            ], folder: folder)
    }

    /// Writes the file NAME for `serve`.
    func write(_ header: String, _ body: Data = Data(), as name: String) throws {
        try (Data("\(header)\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body).write(
            to: folder.appending(path: name))
    }
}

extension RunningProgram {
    /// The URL of a file on a server, whose first line is, for example, "ACCEPT 127.0.0.1:4433".
    func url(of name: String) throws -> URL {
        let address = String(decoding: firstLine, as: UTF8.self).split(separator: " ").last ?? ""
        guard let url = URL(string: "https://\(address)/\(name)") else { throw URLError(.badURL) }
        return url
    }
}
