import Foundation
import ImprintStore
import TestSupport
import Testing

@testable import ImprintFleet

/// The transport of fleets over the network.
@Suite struct HTTPTransportTests {
    @Test(
        "The time for a request grows with its bytes and those of the answer",
        arguments: [(0, 0, 60, 60), (9999, 20_000, 60, 62), (5 << 20, 256 << 10, 584, 610)])
    func timeLimits(sent: Int, received: Int, answer: Int, total: Int) {
        let limits = HTTPTransport.TimeLimits(sending: sent, receiving: received)
        #expect(limits.answer == .seconds(answer) && limits.total == .seconds(total))
    }

    @Test("A request is sent with its body, and the answer is returned") func exchange() async throws {
        let server = try RawServer { request, connection in
            let isPost = request.head.hasPrefix("POST ") && request.header("Content-Length") == "4"
            let body = connection.read(4)
            connection.send("HTTP/1.1 \(isPost ? 200 : 400) OK\r\nContent-Length: 4\r\n\r\n")
            connection.send(Data(body.reversed()))
            // A connection that is closed with unread bytes would be reset.
            connection.waitForEnd()
        }
        defer { server.stop() }
        let answer = try await HTTPTransport().post(server.url, headers: [:], body: Array("body".utf8), limit: 4)
        #expect(answer.status == 200 && answer.body == Array("ydob".utf8))
    }

    @Test(
        "Only a connection that may work later is tried again; a server that is not trusted is an error with advice",
        arguments: [
            (HTTPError.failed("it refused"), true, "Check the URL and that the SuperLink is running."),
            (.invalidResponse("no status line"), true, "Check the URL and that the SuperLink is running."),
            (.noProxy("the name is unknown"), true, "https_proxy"),
            (.untrusted("it is self-signed", certificates: nil), false, "SSL_CERT_FILE"),
            (.untrusted("it is self-signed", certificates: "/ca.pem"), false, "/ca.pem"),
        ])
    func failedConnection(error: HTTPError, isTransient: Bool, advice: String) throws {
        let failure = FleetError(error, of: try #require(URL(string: "https://user:secret@fleet.example:8000/v1")))
        #expect(failure.isTransient == isTransient)
        #expect(failure.description.hasPrefix("https://fleet.example:8000/v1: "), "\(failure)")
        #expect(failure.description.contains(advice), "\(failure)")
    }
}
