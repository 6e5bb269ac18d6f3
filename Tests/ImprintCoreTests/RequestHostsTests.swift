import ImprintCore
import Testing

@Suite("Hosts of requests") struct RequestHostsTests {
    @Test(
        "The case of a host does not matter",
        arguments: ["localhost:8420", "LOCALHOST:8420", "[::1]:8420", "[FE80::A]:8420"])
    func accepted(host: String) {
        #expect(RequestHosts(["127.0.0.1", "localhost", "[::1]", "[fe80::A]"], port: 8420).contains(host))
    }

    @Test(
        "Another name or port is not accepted",
        arguments: ["", "localhost", "localhost:80", "localhost:84200", "localhost.example:8420", "::1:8420", nil]
            as [String?])
    func rejected(host: String?) {
        #expect(!RequestHosts(["127.0.0.1", "localhost", "[::1]"], port: 8420).contains(host))
    }

    @Test("Clients may omit the port 80") func defaultPort() {
        let hosts = RequestHosts(["localhost"], port: 80)
        #expect(hosts.contains("Localhost") && hosts.contains("localhost:80") && !hosts.contains("localhost:8080"))
    }

    @Test(
        "The origin has the scheme, the host and the port",
        arguments: [
            ("http://localhost:8420", true), ("HTTP://localhost:8420", true), ("https://localhost:8420", false),
            ("http://localhost", false), ("null", false), (nil, false),
        ] as [(String?, Bool)])
    func origins(origin: String?, isSame: Bool) {
        #expect(RequestHosts.isSameOrigin(origin, scheme: "http", host: "LOCALHOST:8420") == isSame)
    }
}
