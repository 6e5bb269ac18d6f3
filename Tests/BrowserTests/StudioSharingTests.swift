import Foundation
import ImprintCore
import ImprintLive
import ImprintStudio
import TestSupport
import Testing

/// The access of other devices to a shared studio.
@Suite("Sharing the studio", .enabled(if: Device.isAvailable, Device.skipReason)) struct StudioSharingTests {
    @Test("A token gives access once, and only to the page") func once() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let address = access.invite()
            let token = try Device.token(in: address)
            #expect(token.count == 32 && token.allSatisfy(\.isHexDigit))
            var stranger = try Device(address)
            for path in ["", "studio.js", "model", "examples", "elsewhere"] {
                #expect(try await stranger.ask("GET", path).status == 403)
            }
            // Failed attempts do not use up the token.
            for wrong in ["", "0", String(token.dropLast()), String(token.reversed())] {
                #expect(try await stranger.ask("GET", "", ["token": wrong]).status == 403)
            }
            for (method, path) in [("GET", "model"), ("HEAD", ""), ("POST", "")] {
                #expect(try await stranger.ask(method, path, ["token": token]).status == 403)
            }
            let device = try await Device.enter(address)
            #expect(try await device.ask("GET", "model").status == 200)
            #expect(access.takeArrivals() == ["127.0.0.1"] && access.takeArrivals() == [])
            // The same device may open the address again, and other devices may not.
            #expect(try await device.ask("GET", "", ["token": token]).status == 303)
            #expect(try await stranger.ask("GET", "", ["token": token]).status == 403)
            #expect(access.takeArrivals() == [])
            // People get a page, and programs get JSON.
            stranger.headers["Accept"] = "text/html"
            let page = try await stranger.ask("GET", "", ["token": token])
            #expect(page.status == 403 && page.body.contains("Press Return in the terminal"))
            #expect(page.headers["content-security-policy"]?.hasPrefix("default-src 'none'; style-src 'nonce-") == true)
        }
    }

    @Test("A new token replaces an unused one, and each device has its own access") func devices() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let (first, second) = (access.invite(), access.invite())
            let token = try Device.token(in: first)
            #expect(try await Device(first).ask("GET", "", ["token": token]).status == 403)
            let phone = try await Device.enter(second)
            let tablet = try await Device.enter(access.invite())
            #expect(phone.cookie != tablet.cookie)
            for device in [phone, tablet] { #expect(try await device.ask("GET", "model").status == 200) }
        }
    }

    @Test("Two devices that open an address at the same time do not both get access") func race() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let address = access.invite()
            let token = try Device.token(in: address)
            let stranger = try Device(address)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<6 { group.addTask { try await stranger.ask("GET", "", ["token": token]).status } }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(statuses.sorted() == [303, 403, 403, 403, 403, 403] && access.takeArrivals().count == 1)
        }
    }

    @Test("Tokens and cookies of this machine are not valid for devices, and vice versa") func separation()
        async throws
    {
        try await Device.withSharedStudio { studio, access, _ in
            let (client, token) = try await StudioClient.enter(studio)
            var device = try await Device.enter(access.invite())
            let unused = try Device.token(in: access.invite())
            #expect(try await client.ask("GET", "", ["token": unused]).status == 403)
            var stranger = try Device(device.page)
            #expect(try await stranger.ask("GET", "", ["token": token]).status == 403)
            let secret = try #require(client.cookie?.split(separator: "=").last)
            stranger.cookie = client.cookie
            #expect(try await stranger.ask("GET", "model").status == 403)
            stranger.cookie = device.cookie.map { "\($0.prefix { $0 != "=" })=\(secret)" }
            #expect(try await stranger.ask("GET", "model").status == 403)
            // The server on this machine does not answer requests for the shared address, and the proxy only these.
            var local = StudioClient(url: client.url, cookie: device.cookie, origin: device.origin)
            #expect(try await local.ask("GET", "model").status == 403)
            local.host = "127.0.0.1:\(device.page.port ?? 0)"
            #expect(try await local.ask("GET", "model").status == 403)
            device.headers["Host"] = "127.0.0.1:\(client.url.port ?? 0)"
            device.headers["Cookie"] = client.cookie
            #expect(try await device.ask("GET", "model").status == 403)
        }
    }

    @Test("Requests with another host or origin are rejected") func hostAndOrigin() async throws {
        try await Device.withSharedStudio { _, access, _ in
            var device = try await Device.enter(access.invite())
            let port = try #require(device.page.port)
            for host in ["pictures.example", "localhost:\(port)", "127.0.0.1", "127.0.0.1:\(port).example"] {
                device.headers["Host"] = host
                let answer = try await device.ask("GET", "model")
                #expect(answer.status == 403 && answer.body.contains("only requests for https://127.0.0.1:\(port)/"))
            }
            device.headers["Host"] = nil
            for origin in ["null", "https://pictures.example", "http://127.0.0.1:\(port)", "https://127.0.0.1"] {
                device.headers["Origin"] = origin
                #expect(try await device.ask("POST", "classes", ["label": "Cup"]).status == 403)
                #expect(try await device.ask("DELETE", "training").status == 403)
            }
            device.headers["Origin"] = nil
            #expect(try await device.ask("POST", "classes", ["label": "Cup"]).status == 200)
        }
    }

    @Test("Large requests and responses arrive complete") func large() async throws {
        try await Device.withSharedStudio { _, access, _ in
            let device = try await Device.enter(access.invite())
            #expect(try await device.ask("POST", "classes", ["label": "Cup"]).status == 200)
            let photo = try await device.ask("POST", "examples", ["label": "Cup"], bodySize: 5 << 20)
            #expect(photo.status == 422 && photo.body.contains("expected an image"))
            #expect(try await device.ask("POST", "classify", bodySize: (20 << 20) + 1).status == 413)
            #expect(try await Device(device.page).ask("POST", "classify", bodySize: 5 << 20).status == 403)
            let script = try await device.ask("GET", "studio.js")
            #expect(script.headers["content-length"] == "\(script.body.utf8.count)")
        }
    }
}
