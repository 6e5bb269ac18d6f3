import Foundation
import ImprintBaseModels
import ImprintCore
import ImprintStore
import ImprintTraining
import Synchronization
import TestSupport
import Testing

/// Installations from web servers.
@Suite struct DownloadInstallationTests {
    private func installer(_ bases: BaseModels) -> BaseModelInstaller {
        var installer = BaseModelInstaller(into: bases)
        // The machine may be busy.
        installer.limits = DownloadLimits(interval: .seconds(300))
        return installer
    }

    @Test("A model from a server is verified and installed, with its progress")
    func plain() async throws {
        let model = try SmallModel(seed: 1)
        let server = try RawServer { request, connection in connection.sendFile(model.bytes, tag: "\"1\"", for: request)
        }
        defer { server.stop() }
        try await withBases { bases, _ in
            let events = Events()
            let url = try #require(URL(string: "?token=secret", relativeTo: server.url))
            let base = try await installer(bases).install(
                from: url, sha256: model.sha256.uppercased(), onEvent: events.add)
            #expect(base.name == "model" && base.digest == model.sha256 && base.source?.kind == .https)
            #expect(base.source?.location == server.url.absoluteString)
            #expect(events.all.contains(.downloading(byteCount: model.bytes.count, total: model.bytes.count)))
            #expect(events.all.last == .converting)
            #expect(files(of: bases) == ["model.json", modelFileName("model", model.sha256)])
            // Installed already, so there is no second request.
            try await installer(bases).install(from: url, sha256: model.sha256)
            #expect(server.requests.count == 1)
        }
    }

    @Test("An interrupted download stays as a partial file, and the next installation resumes it")
    func resume() async throws {
        let model = try SmallModel(seed: 1)
        let server = try RawServer { request, connection in
            connection.sendFile(model.bytes, tag: "\"1\"", for: request, cutAfter: request.number == 0 ? 900 : nil)
        }
        defer { server.stop() }
        try await withBases { bases, _ in
            await #expect {
                try await installer(bases).install(from: server.url, sha256: model.sha256)
            } throws: { error in
                guard case .interrupted(_, 900, _)? = error as? StoreError else { return false }
                return true
            }
            #expect(try bases.installed.isEmpty)
            let partial = "model.partial"
            #expect(files(of: bases) == [partial, partial + "/download.json", partial + "/download.partial"])
            try await installer(bases).install(from: server.url, sha256: model.sha256)
            #expect(server.requests.map(\.range) == [nil, 900])
            #expect(files(of: bases) == ["model.json", modelFileName("model", model.sha256)])
        }
    }

    @Test("A partial download that cannot be resumed is removed, and remove deletes one that can")
    func partial() async throws {
        let model = try SmallModel(seed: 1)
        let server = try RawServer { request, connection in
            // Without a version, the download cannot be resumed.
            let tag = request.number == 0 ? "" : "ETag: \"1\"\r\n"
            connection.send(
                "HTTP/1.1 200 OK\r\n\(tag)Content-Length: \(model.bytes.count)\r\nConnection: close\r\n\r\n")
            connection.send(Data(model.bytes.prefix(900)))
        }
        defer { server.stop() }
        try await withBases { bases, _ in
            for expected in [nil, 900] {
                await #expect(throws: StoreError.self) {
                    try await installer(bases).install(from: server.url, sha256: model.sha256)
                }
                #expect(installer(bases).resumableByteCount(of: "model") == expected)
                #expect(files(of: bases).isEmpty == (expected == nil))
            }
            try bases.remove("model")
            #expect(files(of: bases).isEmpty)
        }
    }

    @Test("A flipped bit or a wrong digest leaves nothing behind")
    func damaged() async throws {
        let model = try SmallModel(seed: 1)
        let server = try RawServer { request, connection in
            var bytes = model.bytes
            bytes[100] ^= 4
            connection.sendFile(bytes, tag: "\"1\"", for: request)
        }
        defer { server.stop() }
        try await withBases { bases, _ in
            await #expect {
                try await installer(bases).install(from: server.url, sha256: model.sha256)
            } throws: { error in
                guard case .wrongDigest(_, _, model.sha256)? = error as? StoreError else { return false }
                return true
            }
            #expect(files(of: bases).isEmpty)
        }
    }

    @Test("A file that is no model leaves nothing behind, and the error names the URL")
    func noModel() async throws {
        let bytes = Data("<html>not found</html>".utf8)
        let server = try RawServer { request, connection in connection.sendFile(bytes, tag: "\"1\"", for: request) }
        defer { server.stop() }
        try await withBases { bases, _ in
            await #expect {
                try await installer(bases).install(from: server.url, sha256: SHA256.hexadecimal(of: [UInt8](bytes)))
            } throws: { "\($0)".hasPrefix(server.url.absoluteString) }
            #expect(files(of: bases).isEmpty)
        }
    }

    @Test("Cancelling ends a download that stalls")
    func cancel() async throws {
        let model = try SmallModel(seed: 1)
        let server = try RawServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: \(model.bytes.count)\r\n\r\n")
            connection.send(Data(model.bytes.prefix(900)))
            connection.waitForEnd()
        }
        defer { server.stop() }
        try await withBases { bases, _ in
            let installer = installer(bases)
            let events = Events()
            let task = Task {
                try await installer.install(from: server.url, sha256: model.sha256, onEvent: events.add)
            }
            while events.all.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(try bases.installed.isEmpty)
            #expect(installer.resumableByteCount(of: "model") == 900)
        }
    }

    @Test("A progress closure can cancel its installation", arguments: [nil, 900])
    func cancelInProgress(stallsAfter byteCount: Int?) async throws {
        let model = try SmallModel(seed: 1)
        let server = try RawServer { request, connection in
            connection.sendFile(model.bytes, tag: "\"1\"", for: request, cutAfter: byteCount)
            if byteCount != nil { connection.waitForEnd() }
        }
        defer { server.stop() }
        try await withBases { bases, _ in
            let installer = installer(bases)
            let running = Mutex<Task<InstalledBase, any Error>?>(nil)
            let task = Task {
                try await installer.install(from: server.url, sha256: model.sha256) { event in
                    guard case .downloading = event else { return }
                    // The first bytes may arrive before the task is known.
                    while running.withLock({ $0 == nil }) { usleep(1000) }
                    running.withLock { $0 }?.cancel()
                }
            }
            running.withLock { $0 = task }
            await #expect(throws: CancellationError.self) { try await task.value }
            let installed = try bases.installed
            #expect(installed.isEmpty)
        }
    }

    @Test(
        "A URL needs a digest, and https unless it is of this computer",
        arguments: [
            "http://example.org/m.imprint", "http://127.example.org/m.imprint", "ftp://127.0.0.1/m.imprint",
            "http://localhost.example.org/m", "https:///m",
        ])
    func urls(_ text: String) async throws {
        let zeros = String(repeating: "0", count: 64)
        try await withBases { bases, _ in
            let url = try #require(URL(string: text))
            await #expect(throws: BaseInstallationError.unsupportedURL(text)) {
                try await installer(bases).install(from: url, sha256: zeros)
            }
            let secure = try #require(URL(string: "https://example.org/m.imprint?key=1"))
            await #expect(throws: BaseInstallationError.digestRequired(url: "https://example.org/m.imprint")) {
                try await installer(bases).install(from: secure)
            }
            #expect(files(of: bases).isEmpty)
        }
    }
}
