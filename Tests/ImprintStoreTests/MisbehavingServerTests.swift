import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ImprintStore

/// Responses that violate HTTP, and the requests that servers receive. With URLSession on Linux, some of these responses ended the process.
extension DownloadTests {
    @Test("An invalid response is an error, and does not end the process", arguments: InvalidResponse.all)
    func invalidResponse(_ response: InvalidResponse) async throws {
        let body = model.bytes
        try await withStore { _, connection in
            response.answer(connection, body)
        } _: { store, server, folder in
            var effect: InvalidResponse.Effect? = .installed
            do {
                try await store.install(from: server.url, verification: model.verification, limits: .patient)
            } catch {
                effect = .init(error)
                #expect(effect != nil, "\(error)")
            }
            #expect(effect.map(response.effects.contains) == true, "\(String(describing: effect))")
            #expect(try modelFiles(in: folder).count == (effect == .installed ? 1 : 0))
            // The partial file, if any, does not disturb the next installation.
            try await model.install(into: store)
            #expect(try store.answer == model.answer)
        }
    }

    @Test("A server that closes the connection without reading the request is an error", arguments: [false, true])
    func unread(resets: Bool) async throws {
        let server = try RawServer(readsRequest: false) { _, connection in if resets { connection.reset() } }
        defer { server.stop() }
        try await withTemporaryFolder { folder in
            let store = try ModelStore(at: folder)
            await #expect {
                try await store.install(
                    from: server.url, verification: model.verification, limits: .patient)
            } throws: { InvalidResponse.Effect($0) == .interrupted }
        }
    }

    @Test(
        "A server that cannot be reached is an error",
        arguments: ["http://127.0.0.1:1/x", "http://[::1]:1/x", "http://x.invalid/"])
    func unreachable(_ text: String) async throws {
        try await withTemporaryFolder { folder in
            let url = try #require(URL(string: text))
            await #expect {
                try await ModelStore(at: folder).install(from: url, verification: model.verification, limits: .patient)
            } throws: { error in
                guard case .interrupted(text, 0, let reason)? = error as? StoreError else { return false }
                return !reason.isEmpty && !reason.hasSuffix(".")
            }
        }
    }

    @Test("A request has no cookies, no credentials of other servers and no more than the necessary headers")
    func requestHeaders() async throws {
        let bytes = model.bytes
        try await withStore { request, connection in
            let location = "http://\(request.header("Host") ?? "")/there?secret=1"
            if request.number == 0 {
                connection.send("HTTP/1.1 307 Temporary Redirect\r\nLocation: \(location)\r\nSet-Cookie: a=b\r\n\r\n")
            } else {
                connection.sendFile(bytes, tag: "\"1\"", for: request)
            }
        } _: { store, server, _ in
            try await store.install(from: server.url, verification: model.verification, limits: .patient)
            #expect(server.requests.map(\.path) == ["/model.imprint", "/there?secret=1"])
            for request in server.requests {
                let lines = request.head.split(separator: "\r\n")
                let names = lines.dropFirst().map { String($0.prefix { $0 != ":" }).lowercased() }
                #expect(lines.first?.hasSuffix(" HTTP/1.1") == true)
                #expect(Set(names) == ["host", "user-agent", "accept", "accept-encoding"] && names.count == 4)
                #expect(request.header("Accept-Encoding") == "identity" && request.header("User-Agent") == "Imprint")
            }
        }
    }

    @Test("A POST request sends its body at once", arguments: [0, 1, 3_000_000])
    func post(byteCount: Int) async throws {
        let server = try RawServer { request, connection in
            let announced = request.header("Content-Length").flatMap { Int($0) } ?? 0
            let body = connection.read(announced)
            let isExpected = announced == byteCount && body.count == byteCount && request.header("Expect") == nil
            connection.send("HTTP/1.1 \(isExpected ? 200 : 400) X\r\nContent-Length: 0\r\n\r\n")
        }
        defer { server.stop() }
        let status = Mutex(0)
        let exchange = HTTPExchange(
            onResponse: { response in status.withLock { $0 = response.status } }, onData: { _ in })
        let request = HTTPRequest(
            server.url, headers: ["Content-Type": "application/protobuf"],
            body: [UInt8](repeating: 120, count: byteCount))
        _ = try await exchange.run(request, until: .now() + .seconds(100), .patient)
        #expect(status.withLock(\.self) == 200)
        #expect(server.requests.map { $0.head.hasPrefix("POST ") } == [true])
        #expect(server.requests.first?.header("Content-Type") == "application/protobuf")
    }

    @Test("A line break in the version of a partial file does not add a header to the request")
    func injectedHeader() async throws {
        let bytes = model.bytes
        try await withStore { request, connection in
            connection.sendFile(bytes, tag: "\"1\"", for: request, cutAfter: request.number == 0 ? 1000 : nil)
        } _: { store, server, folder in
            _ = try? await store.install(from: server.url, verification: model.verification, limits: .patient)
            let record = folder.appending(path: Download.recordName)
            let text = try String(contentsOf: record, encoding: .utf8)
            try text.replacing(#"\"1\""#, with: #"\"1\"\r\nX-Injected: y"#).write(
                to: record, atomically: true, encoding: .utf8)
            try await store.install(from: server.url, verification: model.verification, limits: .patient)
            #expect(server.requests.map(\.range) == [nil, nil])
            #expect(server.requests.allSatisfy { $0.header("X-Injected") == nil })
        }
    }

    @Test("If the disk is slow, the server waits", .timeLimit(.minutes(10)))
    func backPressure() async throws {
        let (byteCount, isBlocked) = (64 << 20, DispatchSemaphore(value: 0))
        let sent = Mutex(0)
        let server = try RawServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(byteCount)\r\n\r\n")
            let chunk = Data(count: 1 << 16)
            for _ in 0..<(byteCount / chunk.count) {
                guard connection.send(chunk) else { return }
                sent.withLock { $0 += chunk.count }
            }
        }
        defer { server.stop() }
        let received = Mutex(0)
        let exchange = HTTPExchange(
            onResponse: { _ in },
            onData: { data in
                if received.withLock({ $0 == 0 }) { isBlocked.wait() }
                received.withLock { $0 += data.count }
            })
        let url = server.url
        async let outcome = exchange.run(HTTPRequest(url), until: .now() + .seconds(100), .patient)
        // Until the buffers of the system are full and the server waits.
        var last = -1
        while last != sent.withLock(\.self) || last == 0 {
            last = sent.withLock(\.self)
            try await Task.sleep(for: .milliseconds(500))
        }
        #expect(last < byteCount / 2)
        isBlocked.signal()
        guard case .complete = try await outcome else { throw CocoaError(.fileReadUnknown) }
        #expect(received.withLock(\.self) == byteCount)
    }

    @Test("Waiting for servers does not block other tasks", .timeLimit(.minutes(10)))
    func manyDownloads() async throws {
        // More downloads than the pool has threads.
        let (count, bytes) = (4 * ProcessInfo.processInfo.activeProcessorCount, model.bytes)
        let release = DispatchSemaphore(value: 0)
        let server = try RawServer { request, connection in
            release.wait()
            connection.sendFile(bytes, tag: "\"1\"", for: request)
        }
        defer { server.stop() }
        let fetch = try Fetch(server.url, .patient)
        try await withThrowingTaskGroup(of: Data.self) { group in
            for _ in 0..<count { group.addTask { try await fetch.small() } }
            while server.requests.count < count { try await Task.sleep(for: .milliseconds(5)) }
            await Task.detached { for _ in 0..<count { release.signal() } }.value
            for try await data in group { #expect(data == bytes) }
        }
    }

    @Test("Cancelling a task before or during a request closes the connection", arguments: [0, 1, 20])
    func cancelled(afterMilliseconds delay: Int) async throws {
        let ended = DispatchSemaphore(value: 0)
        let server = try RawServer { _, connection in
            connection.waitForEnd()
            ended.signal()
        }
        defer { server.stop() }
        let fetch = try Fetch(server.url, .patient)
        let task = Task { try await fetch.small() }
        if delay > 0 { while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(delay)) } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        if delay > 0 {
            // The connection ends without a further event, so this fails if cancelling does not wake the thread.
            #expect(await Task.detached { ended.wait(timeout: .now() + .seconds(20)) }.value == .success)
        }
    }
}
