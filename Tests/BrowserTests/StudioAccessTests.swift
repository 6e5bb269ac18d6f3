import Foundation
import Imprint
import ImprintCore
import ImprintModel
import ImprintNetwork
import ImprintStudio
import ImprintSynthesis
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The access control and the responses of the studio.
@Suite("Studio access") struct StudioAccessTests {
    /// Returns a client with access, and the token.
    private func enter(_ studio: Studio) async throws -> (client: StudioClient, token: String) {
        try await StudioClient.enter(studio)
    }

    @Test("Only the token and then the cookie give access") func access() async throws {
        try await StudioSamples.withStudio { studio, _ in
            let (client, token) = try await enter(studio)
            #expect(token.count == 64 && token.allSatisfy(\.isHexDigit))
            var stranger = StudioClient(url: client.url)
            for path in ["", "studio.js", "model", "examples", "examples/1", "training", "learned", "elsewhere"] {
                #expect(try await stranger.ask("GET", path).status == 403)
            }
            for wrong in ["", "0", String(token.dropLast()), token + "0", String(token.reversed())] {
                #expect(try await stranger.ask("GET", "", ["token": wrong]).status == 403)
            }
            // People get a page, and programs get JSON.
            #expect(try await stranger.ask().error?.contains("with the token") == true)
            stranger.accepts = "text/html,application/xhtml+xml"
            let page = try await stranger.ask()
            #expect(page.status == 403 && page.headers["content-type"] == "text/html; charset=utf-8")
            #expect(String(decoding: page.body, as: UTF8.self).contains("<p>This browser has no access"))
            let policies = try [page, await stranger.ask()].map { try #require($0.headers["content-security-policy"]) }
            #expect(policies.allSatisfy { $0.hasPrefix("default-src 'none'; style-src 'nonce-") })
            #expect(policies[0] != policies[1])
            // The token opens only the page, and is not valid as a cookie.
            #expect(try await stranger.ask("GET", "model", ["token": token]).status == 403)
            stranger.cookie = client.cookie.map { "\($0.prefix { $0 != "=" })=\(token)" }
            #expect(try await stranger.ask("GET", "model").status == 403)
            stranger.cookie = client.cookie.map { "other=1; \($0)" }
            #expect(try await stranger.ask("GET", "model").status == 200)
            #expect(try await client.ask("GET", "elsewhere").status == 404)
            #expect(try await client.ask("PATCH", "model").status == 404)
        }
    }

    @Test("The response to HEAD is that to GET without its body, and the connection stays usable") func head()
        async throws
    {
        try await StudioSamples.withStudio { studio, _ in
            let client = try await enter(studio).client
            let (get, head) = (try await client.ask("GET", "model"), try await client.ask("HEAD", "model"))
            #expect(head.status == 200 && head.body.isEmpty && !get.body.isEmpty)
            #expect(head.headers["content-length"] == "\(get.body.count)")
            let response = try await onDedicatedThread {
                let connection = try RawConnection(to: client.url)
                defer { connection.close() }
                // A rejection has a body, too.
                connection.send("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
                connection.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                return connection.response()
            }
            let parts = response.components(separatedBy: "\r\n\r\n")
            #expect(parts.count == 3 && parts[1].hasPrefix("HTTP/1.1 403") && parts[2].hasPrefix("The Host header is"))
        }
    }

    @Test("Requests with another host or origin are rejected") func hostAndOrigin() async throws {
        try await StudioSamples.withStudio { studio, _ in
            var client = try await enter(studio).client
            let port = try #require(client.url.port)
            for host in ["pictures.example", "pictures.example:\(port)", "127.0.0.1", "127.0.0.1:\(port).example"] {
                client.host = host
                let answer = try await client.ask("GET", "model")
                #expect(answer.status == 403)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(text.contains("only requests for http://127.0.0.1:\(port)/"))
                #expect(text.hasPrefix("The Host header is \"\(host)\". "))
            }
            for host in ["localhost:\(port)", "LOCALHOST:\(port)"] {
                client.host = host
                #expect(try await client.ask("GET", "model").status == 200)
            }
            client.host = nil
            for origin in [
                nil, "null", "http://pictures.example", "http://127.0.0.1", "http://127.0.0.1:\(port)0",
                "https://127.0.0.1:\(port)",
            ] {
                client.origin = origin
                #expect(try await client.ask("POST", "classes", ["label": "Cup"]).status == 403)
                #expect(try await client.ask("POST", "revert").status == 403)
                #expect(try await client.ask("DELETE", "training").status == 403)
            }
            client.origin = "http://127.0.0.1:\(port)"
            #expect(try await client.ask("POST", "classes", ["label": "Cup"]).status == 200)
        }
    }

    @Test("The page may load only its own resources") func headers() async throws {
        try await StudioSamples.withStudio { studio, _ in
            let client = try await enter(studio).client
            let page = try await client.ask()
            #expect(page.status == 200)
            let policy = try #require(page.headers["content-security-policy"])
            for part in [
                "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
                "frame-ancestors 'none'", "base-uri 'none'",
            ] {
                #expect(policy.contains(part))
            }
            #expect(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains("*"))
            #expect(page.headers["permissions-policy"]?.contains("camera=(self)") == true)
            for (name, value) in [
                "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store",
                "cross-origin-resource-policy": "same-origin", "cross-origin-opener-policy": "same-origin",
            ] {
                #expect(page.headers[name] == value)
                #expect(try await client.ask("GET", "model").headers[name] == value)
            }
            // All files of the page, without inline styles, inline scripts or external URLs.
            let html = String(decoding: page.body, as: UTF8.self)
            #expect(
                !html.contains("<style") && !html.contains("style=") && !html.contains("onclick")
                    && !html.contains("https:"))
            for file in [
                "studio.js", "server.js", "camera.js", "source.js", "gauge.js", "results.js", "training.js",
                "curves.js", "base.js",
                "cards.js", "examples.js", "files.js", "history.js", "store.js", "zip.js", "parts.js",
            ] {
                let script = try await client.ask("GET", file)
                #expect(script.status == 200 && script.headers["content-type"] == "text/javascript; charset=utf-8")
                #expect(!String(decoding: script.body, as: UTF8.self).contains("innerHTML"))
            }
        }
    }

    @Test("Invalid images, names and requests are errors with a message") func invalidRequests() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let client = try await enter(studio).client
            let photo = try Data(contentsOf: StudioSamples.write(.bright, to: folder))
            let noise = Data((0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 3) })
            let bad: [(Data, Int, String)] = [
                (Data(), 400, "no photo"), (Data("text".utf8), 422, "expected an image"),
                (noise, 422, "expected an image"),
                (photo.prefix(500), 422, "the"), (photo.prefix(photo.count / 2), 422, "the"),
                (Data(repeating: 0xff, count: (20 << 20) + 1), 413, "at most 20 MB"),
            ]
            _ = try await client.ask("POST", "classes", ["label": "Cup"])
            for (body, status, text) in bad {
                for (path, query) in [("classify", [:]), ("examples", ["label": "Cup"])] {
                    let answer = try await client.ask("POST", path, query, body)
                    #expect(answer.status == status && answer.error?.contains(text) == true, "\(answer)")
                }
            }
            let names = [
                ("", "1 to 100"), (" Cup", "spaces"), ("a/b", "contain \"/\""), (".hidden", "begin with"),
                ("x\0y", "another"), ("Cup\nSaucer", "line breaks"), ("Cup\u{2028}Saucer", "line breaks"),
                ("Cup\u{202E}puC", "writing direction"), ("\u{2067}Cup", "writing direction"), ("Cup\u{7}x", "control"),
                (String(repeating: "a", count: 101), "1 to 100"), (String(repeating: "👩‍🔬", count: 80), "has 880"),
            ]
            for (label, text) in names {
                let answer = try await client.ask("POST", "classes", ["label": label])
                #expect(answer.status == 400 && answer.error?.contains(text) == true, "\(label)")
            }
            #expect(try await client.ask("POST", "classes").status == 400)
            #expect(try await client.ask("POST", "examples", ["label": "Unknown"], photo).status == 404)
            #expect(try await client.ask("DELETE", "classes", ["label": "Unknown"]).status == 404)
            let early = try await client.ask("POST", "training")
            #expect(early.status == 409 && early.error == "“Cup” has 0 of the 3 examples that a class needs.")
            #expect(try await client.ask("GET", "learned").status == 404)
            // The studio still answers.
            #expect(try await client.ask("POST", "classify", [:], photo).status == 200)
        }
    }

    @Test("A logo detector learns only its own labels") func detector() async throws {
        let network = try Network.logoDetector(logos: 1)
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["nothing", "leaf/1"],
            preprocessing: .logoDetector,
            detector: DetectorHead(
                levels: [96, 136], stride: 16, span: 44,
                logos: [DetectorHead.Logo(label: "leaf/1", slope: 0.5, offset: -1)]
            ))
        try await StudioSamples.withStudio(name: "leaves", installer: StudioSamples.installer) { _ in
            try ImageClassifier(model)
        } _: { studio, _ in
            let client = try await enter(studio).client
            let learning = try JSONDecoder().decode(Learning.self, from: try await client.ask("GET", "model").body)
            #expect(learning.personalizes && !learning.learnsNewLabels)
            let refused = try await client.ask("POST", "classes", ["label": "Cup"])
            #expect(refused.status == 400 && refused.error?.contains("new labels from artwork or boxes") == true)
            // Labels of the model may have names that are invalid for new classes.
            for label in ["leaf/1", "nothing"] {
                #expect(try await client.ask("POST", "classes", ["label": label]).status == 200)
            }
        }
    }

    private struct Learning: Decodable {
        let personalizes: Bool
        let learnsNewLabels: Bool
    }

    @Test("Requests that wait for training progress are answered when the studio ends", .timeLimit(.minutes(10)))
    func ending() async throws {
        try await StudioSamples.withStudio { studio, _ in
            let client = try await enter(studio).client
            async let progress = client.ask("GET", "training", ["after": "1000"])
            try await studio.waitForRequest()
            await studio.stop()
            #expect(try await progress.status == 200)
        }
    }

    @Test(
        "A malformed body is an error with a message, and the next request is answered",
        arguments: ["zz\r\nab\r\n0\r\n\r\n", "-1\r\nab\r\n0\r\n\r\n", "ffffffffffffffffff\r\nab\r\n"])
    func malformed(body: String) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await enter(studio).client
            let (cookie, origin) = (try #require(client.cookie), try #require(client.origin))
            let port = try #require(client.url.port)
            let head = "Host: 127.0.0.1:\(port)\r\nCookie: \(cookie)\r\nOrigin: \(origin)\r\nConnection: close\r\n"
            let answer = try await onDedicatedThread {
                let connection = try RawConnection(to: client.url)
                defer { connection.close() }
                connection.send("POST /classify HTTP/1.1\r\n\(head)Transfer-Encoding: chunked\r\n\r\n\(body)")
                return connection.response()
            }
            #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            #expect(answer.hasSuffix("\r\n\r\nThe request body does not have the announced length.\n"))
            #expect(try await client.ask("GET", "model").status == 200)
        }
    }

    @Test("A body that is too large is an error for every client") func large() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await enter(studio).client
            let large = Data(repeating: 0xff, count: (20 << 20) + 1)
            let stranger = StudioClient(url: client.url, origin: client.origin)
            #expect(try await stranger.ask("POST", "classify", [:], large).status == 403)
            #expect(try await client.ask("POST", "classify", [:], large).status == 413)
        }
    }

    @Test("A new studio removes the temporary folders of a killed one") func leftoverFolders() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "imprint-studio-1-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(
            at: folder.appending(path: "files/examples"), withIntermediateDirectories: true)
        try Data().write(to: folder.appending(path: "lock"))
        try await StudioSamples.withStudio(hasModel: false) { _, _ in }
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }
}
