import Foundation
import ImprintStudio
import TestSupport
import Testing

/// The page of a shared studio on a phone, and `imprint studio --share`.
@Suite("Shared studio on a phone", .enabled(if: Device.isAvailable && Browser.isAvailable, Browser.skipReason))
struct StudioSharingPageTests {
    private static let phone = Browser.View(width: 390, acceptsCertificates: true)
    private static let overflow = "document.documentElement.scrollWidth - innerWidth"

    private struct Seen: Decodable, Sendable {
        let address: String
        let isSecure: Bool
        let percent: String
        let added: Int
        let overflow: Int
        let cookie: String
    }

    @Test("The page classifies the camera image of a phone over TLS") func camera() async throws {
        try await Device.withSharedStudio(hasModel: true) { studio, access, folder in
            var phone = Self.phone
            phone.camera = try StudioSamples.camera([.bright], in: folder)
            let address = access.invite()
            let sight: Browser.Sight<Seen> = try await Browser.visit(
                address, phone, waitingFor: "document.body.dataset.source === 'live'",
                steps: [
                    .wait("document.getElementById('percent').textContent.endsWith('%')"),
                    .note("percent", "document.getElementById('percent').textContent"),
                    .note(
                        "added",
                        "fetch('classes?label=Cup', { method: 'POST' }).then(response => response.status)"),
                    .note("address", "location.href"), .note("isSecure", "window.isSecureContext"),
                    .note("cookie", "document.cookie"), .note("overflow", Self.overflow),
                ])
            let seen = sight.values
            #expect(seen.isSecure && seen.added == 200 && seen.overflow <= 0 && seen.percent.hasSuffix("%"))
            // Neither the address nor scripts contain the token or the cookie.
            #expect(seen.address == "https://127.0.0.1:\(address.port ?? 0)/" && seen.cookie.isEmpty)
            #expect(sight.console == [] && access.takeArrivals() == ["127.0.0.1"])
        }
    }

    private struct Used: Decodable, Sendable {
        let text: String
        let overflow: Int
    }

    @Test("A used address shows what to do") func used() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let address = access.invite()
            _ = try await Device.enter(address)
            let sight: Browser.Sight<Used> = try await Browser.visit(
                address, Self.phone, for: ["text": "document.body.innerText", "overflow": Self.overflow])
            #expect(sight.values.text.contains("Each QR code works once") && sight.values.overflow <= 0)
        }
    }
}
