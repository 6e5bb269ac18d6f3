import Foundation
import ImprintCore
import ImprintLive
import ImprintStudio
import Synchronization
import TestSupport
import Testing

/// The encrypted connections of a shared studio, and its ports.
@Suite("Encryption of the shared studio", .enabled(if: Device.isAvailable, Device.skipReason))
struct StudioEncryptionTests {
    @Test("The certificate has the printed fingerprint, and is new at each start") func certificate() async throws {
        var fingerprints: Set<String> = []
        for _ in 0..<2 {
            try await Device.withSharedStudio { _, access, folder in
                let file = folder.appending(path: "certificate.der")
                _ = try await Device(access.invite()).ask("GET", "", certificate: file)
                let certificate = try Data(contentsOf: file)
                let digest = SHA256.hexadecimal(of: Array(certificate)).uppercased()
                #expect(access.fingerprint.replacing(":", with: "") == digest && access.fingerprint.count == 95)
                // The subject alternative name is the address: the tag of an IP address, its length and its bytes.
                #expect(certificate.range(of: Data([0x87, 4, 127, 0, 0, 1])) != nil)
                fingerprints.insert(digest)
            }
        }
        #expect(fingerprints.count == 2)
    }

    @Test("Only TLS 1.2 and 1.3 are accepted") func versions() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let accepted: [String: Bool] = try await Device.run(["versions", access.invite().absoluteString])
            #expect(accepted == ["TLSv1": false, "TLSv1_1": false, "TLSv1_2": true, "TLSv1_3": true])
        }
    }

    private struct Raw: Decodable, Sendable {
        let received: String
        let isClosed: Bool
    }

    @Test("Plain HTTP and garbage are closed without an answer") func garbage() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let address = access.invite()
            let texts = ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-x\r\n\r\n", "\0\0\0\0\0\0\0\0"]
            let raw: [Raw] = try await Device.run(
                ["send", address.absoluteString]
                    + texts.map { Data($0.utf8).map { String(format: "%02x", $0) }.joined() }
                    // A handshake record whose content is not a handshake.
                    + ["1603010005ffffffffff"])
            #expect(raw.count == 4 && raw.allSatisfy(\.isClosed))
            // A TLS alert has seven bytes.
            #expect(raw.allSatisfy { $0.received.isEmpty || $0.received.hasPrefix("15") && $0.received.count == 14 })
            #expect(raw[0].received.isEmpty)
            #expect(try await Device.enter(address).ask("GET", "model").status == 200)
        }
    }

    private struct Crowd: Decodable, Sendable {
        let seconds: Double
        let open: Int
    }

    @Test("A device with many silent connections does not block others, and loses them") func crowd() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let device = try await Device.enter(access.invite())
            // On Linux, all of 127.0.0.0/8 belongs to this machine.
            let address = device.page.absoluteString
            let hasEnded = Mutex(false)
            let crowd = Task { () async throws -> Crowd in
                defer { hasEnded.withLock { $0 = true } }
                return try await Device.run(["crowd", address, "100", "--from", "127.0.0.2"])
            }
            // The studio closes an incomplete handshake after ten seconds.
            while !hasEnded.withLock({ $0 }) { #expect(try await device.ask("GET", "model").status == 200) }
            let result = try await crowd.value
            #expect(result.open == 0 && result.seconds > 9)
        }
    }

    @Test("The ports are closed after the studio ends", .timeLimit(.minutes(10))) func ending() async throws {
        // No other test shares a studio on this address, or uses this port, so nothing else listens there afterwards.
        let (address, port) = ("127.0.0.3", TestPorts.endedStudio)
        func accepted(shared: Int) async throws -> [Bool] {
            let own: [Bool] = try await Device.run(["connects", "127.0.0.1", "\(port)"])
            let other: [Bool] = try await Device.run(["connects", address, "\(shared)"])
            return own + other
        }
        let shared = try await Device.withSharedStudio(on: address, port: port) { studio, access, _ in
            let device = try await Device.enter(access.invite())
            // This request waits for news when the studio ends.
            async let progress = device.ask("GET", "training", ["after": "1000"])
            try await studio.waitForRequest()
            let shared = try #require(device.page.port)
            #expect(try await accepted(shared: shared) == [true, true])
            await studio.stop()
            _ = try? await progress
            return shared
        }
        #expect(try await accepted(shared: shared) == [false, false])
    }

    @Test("A studio that is not shared listens only on 127.0.0.1", arguments: [false, true])
    func loopback(isShared: Bool) async throws {
        let port = isShared ? TestPorts.sharedStudio : TestPorts.privateStudio
        try await StudioSamples.withStudio(hasModel: false, port: port) { studio, _ in
            let shared = isShared ? try studio.share(on: "127.0.0.1").invite() : nil
            // A server that listens on all addresses would accept connections to 127.0.0.2.
            for port in [port, shared?.port].compactMap(\.self) {
                let own: [Bool] = try await Device.run(["connects", "127.0.0.1", "\(port)"])
                let other: [Bool] = try await Device.run(["connects", "127.0.0.2", "\(port)"])
                #expect(own == [true] && other == [false])
            }
        }
    }

    @Test("A studio is shared at most once, and not after its end") func repeatedSharing() async throws {
        try await Device.withSharedStudio { studio, access, _ in
            let error = #expect(throws: ShareError.self) { _ = try studio.share(on: "127.0.0.1") }
            let device = try await Device.enter(access.invite())
            #expect(error == .alreadyShared(url: device.page.absoluteString))
            #expect(try await device.ask("GET", "model").status == 200)
        }
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            await studio.stop()
            #expect(throws: ShareError.serverStopped) { _ = try studio.share(on: "127.0.0.1") }
        }
    }

    @Test("An address of another machine is an error that says what to choose") func foreignAddress() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let error = #expect(throws: ShareError.self) { _ = try studio.share(on: "198.51.100.7") }
            #expect(error?.description.hasSuffix("Choose an IPv4 address of this machine.") == true)
        }
    }
}

/// The choice of the address of this machine, and the QR code.
@Suite("Address of the shared studio") struct StudioAddressTests {
    @Test("Only private addresses are chosen, that of the default route first") func choice() {
        for address in ["10.0.0.1", "172.16.0.1", "172.31.255.1", "192.168.178.20"] {
            #expect(LocalNetwork.isPrivate(address))
        }
        for address in ["172.15.0.1", "172.32.0.1", "192.169.0.1", "8.8.8.8", "11.0.0.1", "10.0.0", "10.0.0.256", ""] {
            #expect(!LocalNetwork.isPrivate(address))
        }
        let addresses = ["203.0.113.9", "172.17.0.1", "192.168.1.5"]
        #expect(LocalNetwork.choose(from: addresses, default: "192.168.1.5") == "192.168.1.5")
        #expect(LocalNetwork.choose(from: addresses, default: "203.0.113.9") == "172.17.0.1")
        #expect(LocalNetwork.choose(from: addresses, default: nil) == "172.17.0.1")
        #expect(LocalNetwork.choose(from: ["203.0.113.9"], default: "203.0.113.9") == nil)
        #expect(LocalNetwork.isAddress("192.168.1.5"))
        #expect(!LocalNetwork.isAddress("192.168.1") && !LocalNetwork.isAddress("::1"))
    }

    @Test("Without OpenSSL, the error says what to install") func missingLibrary() {
        #expect(ShareError.missingLibrary.description.contains("Install libssl3"))
        #expect(ShareError.noLocalAddress.description.contains("192.168.x"))
    }

    @Test(
        "A QR code has its three finder patterns, a light border, and its own colours",
        .enabled(if: QRCode("text") != nil, "libqrencode is not installed"))
    func code() throws {
        let token = String(repeating: "0123456789abcdef", count: 2)
        let code = try #require(QRCode("https://192.168.100.105:8194/?token=\(token)"))
        #expect(code.columns == 41 && code.lines.count == 21)
        let rows = try code.lines.map { line in
            let text = try #require(line.wholeMatch(of: /\u{1B}\[38;5;16;48;5;231m([ ▀▄█]{41})\u{1B}\[0m/)).1
            return Array(text)
        }
        let border = [rows[0], rows[1], rows[19], rows.map { $0[3] }, rows.map { $0[37] }]
        #expect(border.allSatisfy { $0.allSatisfy { $0 == " " } })
        // Rows of seven dark modules, of one at each side, and of a dark square in the middle.
        let pattern = [Array("█▀▀▀▀▀█"), Array("█ ███ █"), Array("█ ▀▀▀ █"), Array("▀▀▀▀▀▀▀")]
        for (row, column) in [(2, 4), (2, 30), (15, 4)] {
            for (offset, expected) in pattern.enumerated() {
                #expect(Array(rows[row + offset][column..<(column + 7)]) == expected)
            }
        }
    }
}
