import Foundation
import Imprint
import Testing

@testable import ImprintServe

@Suite("Hostile clients") struct HostileClientTests {
    private func isHealthy(_ port: Int) throws -> Bool {
        try TestClient(port: port).request("GET", "/v2/health/live", ["Host": "x"]).status == 200
    }

    @Test(
        "Malformed requests get an error and end the connection",
        arguments: [
            ("GARBAGE\r\n\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 400), ("GET /v2 HTTP/3\r\nHost: a\r\n\r\n", 505),
            ("GET /v2/health/live HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
            ("POST /v2/models/light/infer HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
            ("POST /v2/models/light/infer HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1048577\r\n\r\n", 413),
            ("POST /v2/models/light/infer HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
            (
                "POST /v2/models/light/infer HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9999999\r\nExpect: 100-continue\r\n\r\n",
                413
            ),
            ("GET /v2/health/live HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", 413),
            ("GET /v2 HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
            ("GET /v2 HTTP/1.1\r\nHost: HOST\r\nOrigin: http://evil.example\r\n\r\n", 403),
            ("GET /\(String(repeating: "a", count: 17_000)) HTTP/1.1\r\nHost: a\r\n\r\n", 431),
            ("GET /v2 HTTP/1.1\r\nHost: HOST\r\nX: \(String(repeating: "a", count: 100_000))", 431),
        ])
    func malformed(text: String, status: Int) throws {
        try withServer {
            $0.maximumRequestByteCount = 1 << 20
        } _: { _, port in
            let client = try TestClient(port: port)
            client.send(text.replacing("HOST", with: "127.0.0.1:\(port)"))
            let answer = try client.answer()
            #expect(answer.status == status && answer.error != nil && answer.fields["connection"] == "close")
            #expect(client.isClosedByServer)
            #expect(try isHealthy(port))
        }
    }

    @Test("The case of the host does not matter, and the error about another host names the address of the server")
    func hosts() throws {
        try withServer { _, port in
            let client = try TestClient(port: port)
            let fields = ["Host": "LOCALHOST:\(port)", "Origin": "http://localhost:\(port)"]
            #expect(try client.request("GET", "/v2", fields).status == 200)
            let other = try client.request("GET", "/v2", ["Host": "Evil.example"])
            let text = "The Host header is \"Evil.example\", expected 127.0.0.1:\(port), the address of this server. "
            #expect(other.status == 403 && other.error?.hasPrefix(text) == true, "\(other.error ?? "")")
        }
    }

    @Test("A client that sends a body that is too large still gets the response") func oversized() throws {
        try withServer {
            $0.maximumRequestByteCount = 1 << 20
        } _: { _, port in
            let client = try TestClient(port: port)
            client.send(
                "POST /v2/models/light/infer HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: 5000000\r\n\r\n")
            client.send(Data(count: 5_000_000))
            #expect(try client.answer().status == 413)
        }
    }

    @Test("Requests can follow each other without waiting, and after an error in the protocol") func pipelining() throws
    {
        try withServer { _, port in
            let client = try TestClient(port: port)
            let head = "HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
            client.send(
                "POST /v2/models/light/infer \(head)Content-Length: 2\r\n\r\n{}GET /v2/health/live \(head)\r\nGET /v2/health/ready \(head)\r\n"
            )
            #expect(try client.answer().error?.contains("inputs is missing") == true)
            #expect(try client.answer().body == Data(#"{"live":true}"#.utf8))
            #expect(try client.answer().body == Data(#"{"ready":true}"#.utf8))
        }
    }

    @Test("A client that waits before it sends the body receives 100 Continue") func expectation() throws {
        try withServer { _, port in
            let client = try TestClient(port: port)
            client.send(
                "POST /v2/models/light/infer HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
            )
            #expect(try client.answer().status == 100)
            client.send("{}")
            #expect(try client.answer().status == 400)
        }
    }

    @Test("An eviction ends the connection that has waited longest") func evictions() throws {
        try withServer { server, port in
            #expect(!server.connections.evict())
            let first = try TestClient(port: port)
            first.send("GET /v2")
            expectSoon { server.connections.count(in: .head) == 1 }
            let second = try TestClient(port: port)
            expectSoon { server.connections.count == 2 }
            #expect(server.connections.evict() && first.isClosedByServer)
            #expect(try second.request("GET", "/v2/health/live", ["Host": "x"]).status == 200)
        }
    }

    @Test("Slow clients that fill all connections are replaced, and requests in progress are not") func slowClients()
        throws
    {
        try withServer {
            $0.maximumConnectionCount = 4
        } _: { server, port in
            let slow = try (0..<12).map { _ in
                let client = try TestClient(port: port)
                client.send("GET /v2 HTTP/1.1\r\nHost: ")
                return client
            }
            for _ in 0..<8 { #expect(try isHealthy(port)) }
            #expect(server.connections.count <= 4)
            #expect(slow[0].isClosedByServer)
            let client = try TestClient(port: port)
            let text = String(
                decoding: try client.request("GET", "/metrics", ["Host": "127.0.0.1:\(port)"]).body, as: UTF8.self)
            #expect(!text.contains("imprint_evictions_total 0\n"))
        }
    }

    @Test("A client beyond the limit of connections gets a response, and then the end of the connection") func full()
        throws
    {
        try withServer {
            $0.maximumConnectionCount = 1
            $0.slowTransferDuration = .seconds(3600)
        } _: { server, port in
            let busy = try TestClient(port: port)
            busy.send(
                "POST /v2/models/light/infer HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: 2\r\n\r\n{")
            expectSoon { server.connections.count(in: .transfer) == 1 }
            let client = try TestClient(port: port)
            let answer = try client.request("GET", "/v2/health/live", ["Host": "x"])
            #expect(answer.status == 503 && answer.fields["retry-after"] == "1")
            // A server that closes its socket with unread data resets the connection.
            #expect(client.isClosedByServer)
            client.close()
            busy.send("}")
            #expect(try busy.answer().status == 400)
        }
    }

    @Test("A new client replaces one whose request body is slow") func slowBody() throws {
        try withServer {
            $0.maximumConnectionCount = 1
            $0.slowTransferDuration = .zero
        } _: { server, port in
            let slow = try TestClient(port: port)
            slow.send("POST /v2/models/light/infer HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: 2\r\n\r\n{")
            expectSoon { server.connections.count(in: .transfer) == 1 }
            #expect(try isHealthy(port))
            #expect(slow.isClosedByServer)
        }
    }

    @Test("Clients that disconnect in the middle of a request leave nothing behind") func disconnection() throws {
        try withServer { server, port in
            for text in [
                "", "G", "GET /v2 HTTP/1.1\r\n",
                "POST /v2/models/light/infer HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: 900\r\n\r\n{",
            ] {
                for _ in 0..<5 {
                    let client = try TestClient(port: port)
                    client.send(text)
                    client.close()
                }
            }
            #expect(try isHealthy(port))
            expectSoon { server.connections.count == 0 }
            // All bytes of the bodies have been given back.
            #expect(server.bodies.take(8 * server.options.maximumRequestByteCount))
        }
    }

    @Test("With a token, only the probes of a cluster work without it") func token() throws {
        try withServer {
            $0.token = "0123456789abcdef"
        } _: { _, port in
            let client = try TestClient(port: port)
            #expect(try client.request("GET", "/v2/health/ready", ["Host": "pod"]).status == 200)
            #expect(
                try client.request(
                    "GET", "/v2/models/light", ["Host": "name.example", "Authorization": "bearer 0123456789abcdef"]
                ).status == 200)
            for value in ["Bearer 0123456789abcdeF", "Bearer", "Basic 0123456789abcdef", "Bearer 0123456789abcdef0"] {
                let answer = try TestClient(port: port).request(
                    "GET", "/metrics", ["Host": "127.0.0.1:\(port)", "Authorization": value])
                #expect(answer.status == 401 && answer.fields["www-authenticate"] == "Bearer")
            }
            // Without a token, unknown paths do not name the model.
            for path in ["/v2/models/light/infer", "/v2/models/other/infer", "/elsewhere"] {
                let without = try TestClient(port: port).request("POST", path, ["Host": "a"])
                #expect(without.status == 401 && without.error?.contains("light") == false)
            }
        }
    }

    @Test("An address of other machines needs a token, and an address that is not available is an error")
    func addresses() throws {
        var options = ServeOptions(modelName: "m", version: "1")
        (options.host, options.port) = ("0.0.0.0", 0)
        let classifier = try ImageClassifier(brightnessModel())
        #expect(throws: ServeError.missingToken(host: "0.0.0.0")) { try InferenceServer(classifier, options: options) }
        try withServer { _, port in
            (options.host, options.port) = ("127.0.0.1", port)
            #expect {
                try InferenceServer(classifier, options: options)
            } throws: {
                "\($0)".hasPrefix("The server cannot listen on port \(port) of 127.0.0.1: Address already in use.")
            }
        }
        (options.host, options.port) = ("203.0.113.9", 0)
        options.token = "0123456789abcdef"
        #expect {
            try InferenceServer(classifier, options: options)
        } throws: { error in
            guard case .unavailableAddress("203.0.113.9", 0, _)? = error as? ServeError else { return false }
            return true
        }
    }

    @Test("Stopping ends idle connections, finishes the request in progress, and releases the port") func stopping()
        throws
    {
        var options = ServeOptions(modelName: "light", version: "1")
        options.port = 0
        let server = try InferenceServer(ImageClassifier(brightnessModel()), options: options)
        let port = try #require(URL(string: server.url)?.port)
        let (idle, busy) = (try TestClient(port: port), try TestClient(port: port))
        #expect(try idle.request("GET", "/v2/health/ready", ["Host": "a"]).fields["connection"] == "keep-alive")
        busy.send("POST /v2/models/light/infer HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: 2\r\n\r\n{")
        // The server waits for the next request of one client, and for the rest of the body of the other.
        expectSoon { server.connections.count(in: .idle) == 1 && server.connections.count(in: .transfer) == 1 }
        let group = DispatchGroup()
        Thread.detachNewThread(in: group) { server.stop() }
        #expect(idle.isClosedByServer)
        busy.send("}")
        let answer = try busy.answer()
        #expect(answer.status == 400 && answer.fields["connection"] == "close")
        #expect(busy.isClosedByServer)
        group.wait()
        #expect(throws: POSIXError.self) { try TestClient(port: port) }
    }
}
