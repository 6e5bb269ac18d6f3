import Foundation
import Imprint
import ImprintModel
import TestSupport
import Testing

@testable import ImprintStore

/// Downloads of models from correct and from misbehaving web servers.
@Suite struct DownloadTests {
    let model = TestModel.all[0]
    private let other = TestModel.all[1]

    /// Calls `body` with an empty store in a folder and a server.
    func withStore(
        answer: @escaping @Sendable (RawServer.Request, RawServer.Connection) -> Void,
        _ body: (ModelStore, RawServer, URL) async throws -> Void
    ) async throws {
        let server = try RawServer(answer)
        defer { server.stop() }
        try await withTemporaryFolder { folder in
            try await body(try ModelStore(at: folder), server, folder)
        }
    }

    /// Checks that an installation from a server with this answer fails and leaves no model.
    func expect(
        limits: DownloadLimits = .patient, sourceLocation: SourceLocation = #_sourceLocation,
        _ isExpected: @escaping (StoreError) -> Bool,
        answer: @escaping @Sendable (RawServer.Request, RawServer.Connection) -> Void
    ) async throws {
        try await withStore(answer: answer) { store, server, folder in
            let verification = try model.verification
            await #expect(sourceLocation: sourceLocation) {
                try await store.install(from: server.url, verification: verification, limits: limits)
            } throws: { error in (error as? StoreError).map(isExpected) ?? false }
            #expect(try store.current == nil, sourceLocation: sourceLocation)
            #expect(try modelFiles(in: folder) == [], sourceLocation: sourceLocation)
        }
    }

    @Test("Models download with redirects, with a length, in chunks and until the connection closes")
    func plain() async throws {
        let bytes = model.bytes
        try await withStore { request, connection in
            switch request.path.prefix(while: { $0 != "?" }) {
            case "/model.imprint":
                connection.send("HTTP/1.1 302 Found\r\nLocation: /there?secret=1\r\nContent-Length: 0\r\n\r\n")
            case "/there", "/length": connection.sendFile(bytes, tag: "\"1\"", for: request)
            case "/chunks":
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for start in stride(from: 0, to: bytes.count, by: 1000) {
                    let chunk = bytes[start..<min(start + 1000, bytes.count)]
                    connection.send("\(String(chunk.count, radix: 16))\r\n")
                    connection.send(Data(chunk))
                    connection.send("\r\n")
                }
                connection.send("0\r\n\r\n")
            default:
                connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                connection.send(bytes)
            }
        } _: { store, server, folder in
            for path in ["/model.imprint", "/length", "/chunks", "/end"] {
                let url = try #require(URL(string: path + "?token=x#y", relativeTo: server.url))
                let installed = try await store.install(from: url, verification: model.verification, limits: .patient)
                #expect(installed.sha256 == model.sha256 && installed.byteCount == bytes.count)
                #expect(installed.source.hasSuffix(path))
                #expect(try store.answer == model.answer)
            }
            // All downloads were the same model.
            #expect(try modelFiles(in: folder) == [model.sha256 + ".imprint"])
        }
    }

    @Test("An interrupted download is resumed")
    func resume() async throws {
        let (bytes, cuts) = (model.bytes, [1000, 700, nil])
        try await withStore { request, connection in
            connection.sendFile(bytes, tag: "\"1\"", for: request, cutAfter: cuts[request.number])
        } _: { store, server, folder in
            for expected in [1000, 1700] {
                await #expect {
                    try await store.install(from: server.url, verification: model.verification, limits: .patient)
                } throws: { error in
                    guard case .interrupted(_, let count, _)? = error as? StoreError else { return false }
                    return count == expected
                }
            }
            // Another store in the folder, as after a restart.
            try await ModelStore(at: folder).install(
                from: server.url, verification: model.verification, limits: .patient)
            #expect(try store.answer == model.answer)
            #expect(server.requests.map(\.range) == [nil, 1000, 1700])
            #expect(server.requests.last?.header("If-Range") == "\"1\"")
        }
    }

    @Test("If the file on the server has changed, the download starts over")
    func changed() async throws {
        let (first, second) = (model, other)
        try await withStore { request, connection in
            if request.number == 0 {
                connection.sendFile(first.bytes, tag: "\"1\"", for: request, cutAfter: 1000)
            } else {
                connection.sendFile(second.bytes, tag: "\"2\"", for: request)
            }
        } _: { store, server, _ in
            await #expect(throws: StoreError.self) {
                try await store.install(from: server.url, verification: second.verification, limits: .patient)
            }
            try await store.install(from: server.url, verification: second.verification, limits: .patient)
            #expect(try store.answer == second.answer)
            #expect(server.requests.map(\.range) == [nil, 1000])
        }
    }

    @Test("If the partial file is longer than the file on the server, the download starts over") func shrunk()
        async throws
    {
        let bytes = model.bytes
        try await withStore { request, connection in
            if request.range != nil {
                connection.send(
                    "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */10\r\nContent-Length: 0\r\n\r\n")
            } else {
                connection.sendFile(bytes, tag: "\"1\"", for: request, cutAfter: request.number == 0 ? 1000 : nil)
            }
        } _: { store, server, _ in
            _ = try? await store.install(from: server.url, verification: model.verification, limits: .patient)
            try await store.install(from: server.url, verification: model.verification, limits: .patient)
            #expect(try store.answer == model.answer)
            #expect(server.requests.map(\.range) == [nil, 1000, nil])
        }
    }

    @Test("If the partial file is damaged, the whole file is downloaded again once")
    func damagedBeginning() async throws {
        let bytes = model.bytes
        try await withStore { request, connection in
            connection.sendFile(bytes, tag: "\"1\"", for: request, cutAfter: request.number == 0 ? 1000 : nil)
        } _: { store, server, folder in
            _ = try? await store.install(from: server.url, verification: model.verification, limits: .patient)
            let partial = folder.appending(path: Download.fileName)
            var damaged = try Data(contentsOf: partial)
            damaged[500] ^= 1
            try damaged.write(to: partial)
            try await store.install(from: server.url, verification: model.verification, limits: .patient)
            #expect(try store.answer == model.answer)
            #expect(server.requests.map(\.range) == [nil, 1000, nil])
        }
    }

    @Test("A complete download that was not verified is not repeated")
    func complete() async throws {
        let bytes = model.bytes
        try await withStore { request, connection in
            if let range = request.range, range >= bytes.count {
                let head = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */\(bytes.count)\r\n"
                connection.send(head + "Content-Length: 5\r\n\r\nsorry")
            } else {
                connection.sendFile(bytes, tag: "\"1\"", for: request, cutAfter: bytes.count - 1)
            }
        } _: { store, server, folder in
            _ = try? await store.install(from: server.url, verification: model.verification, limits: .patient)
            try bytes.write(to: folder.appending(path: Download.fileName))
            try await store.install(from: server.url, verification: model.verification, limits: .patient)
            #expect(try store.answer == model.answer)
            #expect(server.requests.map(\.range) == [nil, bytes.count])
        }
    }

    @Test(
        "Redirects to files, to other schemes and in cycles are errors",
        arguments: [
            "file:///etc/passwd", "FILE:///etc/passwd", "ftp://127.0.0.1/x", "data:text/plain,x", "//", "http://",
            "/model.imprint", "",
            "http://a b/", ":80",
        ])
    func redirects(_ location: String) async throws {
        try await expect { error in
            switch error {
            case .redirectRejected: true
            // A redirect without a valid target is not followed.
            case .unexpectedStatus(_, status: 302), .interrupted:
                ["", "//", "http://", "http://a b/", ":80"].contains(location)
            default: false
            }
        } answer: { request, connection in
            connection.send("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 4\r\n\r\nbody")
        }
    }

    @Test("Redirects may go from http to https, but not back") func redirectsToLess() throws {
        let secure = try #require(URL(string: "https://models.example/a/logo.imprint?token=1"))
        let plain = try #require(URL(string: "http://models.example/logo.imprint"))
        for scheme in ["http", "HTTP"] {
            #expect {
                try secure.redirected(to: "\(scheme)://models.example/logo.imprint")
            } throws: { error in
                guard case .redirectRejected(_, _, "from https to http")? = error as? StoreError else { return false }
                return true
            }
        }
        #expect(try secure.redirected(to: "b.imprint").absoluteString == "https://models.example/a/b.imprint")
        #expect(try secure.redirected(to: "//other.example/x").absoluteString == "https://other.example/x")
        #expect(try plain.redirected(to: secure.absoluteString) == secure)
    }

    @Test(
        "Unexpected responses are errors",
        arguments: [
            "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno.",
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 3\r\n\r\nno.",
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 3\r\n\r\nno.",
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Bearer\r\nContent-Length: 3\r\n\r\nno.",
            "HTTP/1.1 301 Moved\r\nContent-Length: 3\r\n\r\nno.",
            "HTTP/1.1 304 Not Modified\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-2/3\r\nContent-Length: 3\r\n\r\nyes",
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n",
            "SMTP ready\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 999\r\n\r\n", "\r\n\r\n",
            "",
            "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: x\r\nnothing\r\n\r\nbody",
        ])
    func answers(_ answer: String) async throws {
        try await expect { error in
            switch error {
            case .unexpectedStatus, .invalidResponse, .interrupted, .wrongDigest: true
            case .tooLarge: answer.contains("99999")
            default: false
            }
        } answer: { _, connection in
            connection.send(answer)
        }
    }

    @Test(
        "A wrong range is an error, and the next attempt starts over",
        arguments: [
            "bytes 0-9999/10000", "bytes 999-1500/1501", "bytes 1000-1200/5000", "bytes 1000-99999999999999999999/5000",
            "pages 1-2/3", nil,
            "bytes 1000-999/1000",
        ])
    func wrongRange(_ range: String?) async throws {
        let bytes = model.bytes
        try await withStore { request, connection in
            switch request.number {
            case 0: connection.sendFile(bytes, tag: "\"1\"", for: request, cutAfter: 1000)
            case 1:
                let header = range.map { "Content-Range: \($0)\r\n" } ?? ""
                connection.send("HTTP/1.1 206 Partial Content\r\n\(header)Connection: close\r\n\r\n")
                connection.send(Data(bytes.dropFirst(1000)))
            default: connection.sendFile(bytes, tag: "\"1\"", for: request)
            }
        } _: { store, server, _ in
            _ = try? await store.install(from: server.url, verification: model.verification, limits: .patient)
            await #expect {
                try await store.install(from: server.url, verification: model.verification, limits: .patient)
            } throws: { error in
                if case .invalidResponse? = error as? StoreError { true } else { false }
            }
            try await store.install(from: server.url, verification: model.verification, limits: .patient)
            #expect(server.requests.map(\.range) == [nil, 1000, nil])
        }
    }

    @Test("Cancelling the task ends a download immediately")
    func cancelled() async throws {
        try await withStore { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\r\n")
            while connection.send("x") { usleep(10_000) }
        } _: { store, server, _ in
            let verification = try model.verification
            let url = server.url
            let task = Task { try await store.install(from: url, verification: verification, limits: .patient) }
            while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            // The next installation can start.
            try await model.install(into: store)
        }
    }

    @Test("Installations are exclusive, but a rollback works during one")
    func oneAtATime() async throws {
        try await withStore { _, connection in
            while connection.send("HTTP/1.1 200 OK\r\nX: ") { usleep(10_000) }
        } _: { store, server, folder in
            try await model.install(into: store)
            try await other.install(into: store)
            let verification = try model.verification
            let url = server.url
            let task = Task { try await store.install(from: url, verification: verification, limits: .patient) }
            while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            for second in [store, try ModelStore(at: folder)] {
                await #expect(throws: StoreError.inUse(folder: folder.path)) { try await other.install(into: second) }
            }
            try store.rollBack()
            #expect(try store.answer == model.answer)
            task.cancel()
            _ = try? await task.value
        }
    }

    @Test(
        "Schemes other than file, http and https are errors",
        arguments: ["ftp://x/y", "data:,x", "model.imprint", "http:///x"])
    func schemes(_ text: String) async throws {
        try await withTemporaryFolder { folder in
            let url = try #require(URL(string: text))
            await #expect(throws: StoreError.unsupportedURL(url.redacted)) {
                try await ModelStore(at: folder).install(from: url, verification: model.verification, limits: .patient)
            }
        }
    }
}
