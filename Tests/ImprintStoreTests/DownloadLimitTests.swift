import Foundation
import Imprint
import TestSupport
import Testing

@testable import ImprintStore

/// Limits on the size and the time of a download.
extension DownloadTests {
    private var small: DownloadLimits {
        var limits = DownloadLimits.patient
        limits.byteCount = 100_000
        return limits
    }

    @Test("An interval that is not positive is an error", arguments: [Duration.zero, .seconds(-1)])
    func limits(interval: Duration) async throws {
        try await withStore { _, _ in
        } _: { store, server, _ in
            let expected = ImprintError.invalidSetting(
                name: "interval", found: "\(interval)", expected: "more than 0 seconds")
            await #expect(throws: expected) {
                try await store.install(
                    from: server.url, verification: model.verification, limits: DownloadLimits(interval: interval))
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test(
        "Sizes and times out of range are errors",
        arguments: [
            (DownloadLimits(byteCount: 0), "byteCount"), (DownloadLimits(byteCount: -1), "byteCount"),
            (DownloadLimits(bytesPerInterval: -1), "bytesPerInterval"), (DownloadLimits(time: .zero), "time"),
            (DownloadLimits(time: .seconds(-1)), "time"),
        ])
    func ranges(limits: DownloadLimits, name: String) async throws {
        try await withStore { _, _ in
        } _: { store, server, _ in
            let error = await #expect(throws: ImprintError.self) {
                try await store.install(from: server.url, verification: model.verification, limits: limits)
            }
            guard case .invalidSetting(name, _, _)? = error else {
                Issue.record("\(error.map { "\($0)" } ?? "")")
                return
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A signature that does not arrive within the interval is an error without advice about the speed")
    func slowSignature() async throws {
        var limits = DownloadLimits()
        limits.interval = .milliseconds(300)
        try await withStore { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n")
            connection.send(Data(count: 10))
            connection.waitForEnd()
        } _: { store, server, _ in
            let verification = try Verification(publicKey: Data(count: 32), signature: .file(server.url))
            let error = await #expect(throws: StoreError.self) {
                try await store.install(from: server.url, verification: verification, limits: limits)
            }
            guard case .interrupted(_, _, let reason)? = error else {
                Issue.record("\(error.map { "\($0)" } ?? "")")
                return
            }
            #expect(reason == "the signature did not arrive within \(limits.interval)")
        }
    }

    @Test("Bodies beyond the limit are errors, announced or not", arguments: [true, false])
    func tooLarge(announced: Bool) async throws {
        try await expect(limits: small) {
            $0 == .tooLarge(url: $0.url ?? "", byteCount: announced ? 1 << 40 : nil, limit: 100_000)
        } answer: { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\(announced ? "Content-Length: \(1 << 40)\r\n" : "")\r\n")
            // At network speed: a tight loop would leave the session no time to process the cancellation.
            while connection.send(Data(count: 10_000)) { usleep(1000) }
        }
    }

    enum Slowness: CaseIterable { case answer, header, body, chunks, trailer, silence }

    @Test("Servers that send nothing or single bytes are errors", arguments: Slowness.allCases)
    func tooSlow(_ slowness: Slowness) async throws {
        let bytes = model.bytes
        var limits = DownloadLimits()
        (limits.interval, limits.bytesPerInterval) = (.milliseconds(300), 100)
        try await expect(limits: limits) {
            if case .tooSlow(_, let count, _, 100) = $0 { count < 100 } else { false }
        } answer: { _, connection in
            func drip() { while connection.send("x") { usleep(20_000) } }
            switch slowness {
            case .answer: connection.waitForEnd()
            case .header:
                connection.send("HTTP/1.1 200 OK\r\nX: ")
                drip()
            case .body:
                connection.send("HTTP/1.1 200 OK\r\n\r\n")
                drip()
            case .chunks:
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while connection.send("1\r\nx\r\n") { usleep(20_000) }
            case .trailer:
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ")
                drip()
            case .silence:
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(bytes.count)\r\n\r\n")
                connection.send(bytes.prefix(10))
                connection.waitForEnd()
            }
        }
    }

    @Test("A download that does not end in time is an error")
    func timedOut() async throws {
        let limits = DownloadLimits(interval: .seconds(60), bytesPerInterval: 1, time: .milliseconds(500))
        try await expect(limits: limits) {
            $0 == .timedOut(url: $0.url ?? "", limit: .milliseconds(500))
        } answer: {
            _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\r\n")
            while connection.send("x") { usleep(10_000) }
        }
    }

    @Test("A request whose deadline has passed times out without a connection")
    func passedDeadline() async throws {
        let server = try RawServer { _, connection in connection.waitForEnd() }
        defer { server.stop() }
        let url = server.url.absoluteString
        // Often enough for a timer to fire at any time during the start.
        for nanoseconds in 0..<200 {
            let exchange = HTTPExchange(onResponse: { _ in }, onData: { _ in })
            await #expect(throws: StoreError.timedOut(url: url, limit: DownloadLimits.patient.time)) {
                _ = try await exchange.run(
                    HTTPRequest(server.url), until: .now() - .nanoseconds(nanoseconds), .patient)
            }
        }
        #expect(server.requests.isEmpty)
    }

    @Test("A request whose deadline passes during its start times out")
    func deadlineDuringStart() async throws {
        let server = try RawServer { _, connection in connection.waitForEnd() }
        defer { server.stop() }
        let url = server.url.absoluteString
        for microseconds in 0..<200 {
            let exchange = HTTPExchange(onResponse: { _ in }, onData: { _ in })
            await #expect(throws: StoreError.timedOut(url: url, limit: DownloadLimits.patient.time)) {
                _ = try await exchange.run(
                    HTTPRequest(server.url), until: .now() + .microseconds(microseconds), .patient)
            }
        }
    }
}

extension StoreError {
    /// The URL in the error.
    fileprivate var url: String? {
        switch self {
        case .tooLarge(let url, _, _), .timedOut(let url, _): url
        default: nil
        }
    }
}
