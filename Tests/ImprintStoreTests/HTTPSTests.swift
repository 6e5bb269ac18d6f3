import Foundation
import TestSupport
import Testing

@testable import ImprintStore

/// Downloads over HTTPS from servers with certificates of a certificate authority for tests.
@Suite(.enabled(if: TestAuthority.openssl != nil, "openssl is missing"))
struct HTTPSTests {
    private let model = TestModel.all[0]

    /// Calls `body` with an empty store, an authority and a server with the model.
    private func withServer(
        _ certificate: TestAuthority.Certificate,
        _ body: (ModelStore, TestAuthority, RunningProgram) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let authority = try TestAuthority(in: folder)
            try authority.write("HTTP/1.1 200 OK", model.bytes, as: "model.imprint")
            let server = try authority.serve(certificate)
            defer { server.stop() }
            try await body(try ModelStore(at: folder.appending(path: "store")), authority, server)
        }
    }

    private func limits(trusting file: URL?) -> DownloadLimits {
        var limits = DownloadLimits.patient
        limits.certificates = file
        return limits
    }

    @Test("A model downloads from a server whose certificate authority is in the file of trusted ones")
    func trusted() async throws {
        try await withServer(.valid) { store, authority, server in
            let installed = try await store.install(
                from: server.url(of: "model.imprint"), verification: model.verification,
                limits: limits(trusting: authority.file))
            #expect(installed.source.hasPrefix("https://127.0.0.1:"))
            #expect(try store.answer == model.answer)
        }
    }

    enum Refusal: CaseIterable { case unknownAuthority, otherAuthority, expired, otherHost, missingFile, invalidFile }

    @Test("A server whose certificate is not trusted receives no request", arguments: Refusal.allCases)
    func refused(_ refusal: Refusal) async throws {
        let certificate: TestAuthority.Certificate =
            switch refusal {
            case .expired: .expired
            case .otherHost: .otherHost
            default: .valid
            }
        try await withServer(certificate) { store, authority, server in
            var file: URL? = authority.file
            var expected = "certificate"
            switch refusal {
            case .unknownAuthority: file = nil
            case .otherAuthority:
                let folder = authority.folder.appending(path: "other")
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                file = try TestAuthority(in: folder).file
            case .expired: expected = "expired"
            case .otherHost: break
            case .missingFile:
                file = authority.folder.appending(path: "missing.pem")
                expected = "missing.pem"
            case .invalidFile:
                file = authority.folder.appending(path: "model.imprint")
                expected = "model.imprint"
            }
            await #expect {
                try await store.install(
                    from: server.url(of: "model.imprint"), verification: model.verification,
                    limits: limits(trusting: file))
            } throws: { error in
                guard case .untrusted(_, let reason, let certificates)? = error as? StoreError else { return false }
                #expect(!"\(error)".contains("resume") && "\(error)".contains(certificates ?? "SSL_CERT_FILE"))
                return reason.contains(expected) && (file == nil || certificates == file?.path)
            }
            #expect(try store.current == nil)
        }
    }

    @Test(
        "The environment variable SSL_CERT_FILE names the trusted certificate authorities, unless the request does",
        arguments: [
            (nil, [:], nil), (nil, ["SSL_CERT_FILE": ""], nil), (nil, ["SSL_CERT_FILE": "/a"], "/a"),
            ("/b", ["SSL_CERT_FILE": "/a"], "/b"), ("/b", [:], "/b"),
        ] as [(String?, [String: String], String?)])
    func environment(_ file: String?, _ environment: [String: String], _ expected: String?) throws {
        let url = try #require(URL(string: "https://models.example/x"))
        let request = HTTPRequest(url, certificates: file.map { URL(filePath: $0) })
        #expect(request.certificateFile(in: environment) == expected)
    }

    @Test("A redirect from https to http is an error, and one to https is followed")
    func redirects() async throws {
        try await withServer(.valid) { store, authority, server in
            let plain = try RawServer { request, connection in
                connection.sendFile(model.bytes, tag: "\"1\"", for: request)
            }
            defer { plain.stop() }
            try authority.write("HTTP/1.1 302 Found\r\nLocation: \(plain.url)", as: "less")
            try authority.write("HTTP/1.1 302 Found\r\nLocation: /model.imprint", as: "same")
            let limits = limits(trusting: authority.file)
            await #expect {
                try await store.install(from: server.url(of: "less"), verification: model.verification, limits: limits)
            } throws: { error in
                guard case .redirectRejected(_, _, "from https to http")? = error as? StoreError else { return false }
                return true
            }
            #expect(plain.requests.isEmpty)
            try await store.install(from: server.url(of: "same"), verification: model.verification, limits: limits)
            #expect(try store.answer == model.answer)
        }
    }

    @Test("A redirect from http to https is followed")
    func upgrade() async throws {
        try await withServer(.valid) { store, authority, server in
            let target = try server.url(of: "model.imprint")
            let plain = try RawServer { _, connection in
                connection.send("HTTP/1.1 301 Moved Permanently\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n")
            }
            defer { plain.stop() }
            try await store.install(
                from: plain.url, verification: model.verification, limits: limits(trusting: authority.file))
            #expect(try store.answer == model.answer)
        }
    }

    @Test("A server that speaks no TLS is an error")
    func plainServer() async throws {
        try await withTemporaryFolder { folder in
            let server = try RawServer(readsRequest: false) { _, connection in
                connection.send("HTTP/1.1 200 OK\r\n\r\n")
            }
            defer { server.stop() }
            let url = try #require(URL(string: server.url.absoluteString.replacing("http:", with: "https:")))
            await #expect {
                try await ModelStore(at: folder).install(from: url, verification: model.verification, limits: .patient)
            } throws: { InvalidResponse.Effect($0) == .interrupted }
        }
    }
}
