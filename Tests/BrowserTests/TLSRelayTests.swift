import FlyingSocks
import Foundation
import Synchronization
import Testing

@testable import ImprintLive

/// The connections of other devices to a shared server.
@Suite("Connections of other devices") struct TLSRelayTests {
    @Test("A connection without access keeps its port until the server has ended it, also after its time limit")
    func draining() throws {
        var files: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &files) == 0)
        let (socket, server) = (Socket(file: .init(rawValue: files[0])), Socket(file: .init(rawValue: files[1])))
        defer { try? socket.close() }
        let relay = TLSRelay(socket, device: "192.0.2.1", start: ContinuousClock.now - .seconds(3600))
        let hasServerEnded = Mutex(false)
        Thread.detachNewThread {
            // Until the end of the requests.
            while (try? server.read(atMost: 1)) != nil {}
            hasServerEnded.withLock { $0 = true }
            try? server.close()
        }
        relay.drain(socket)
        #expect(hasServerEnded.withLock { $0 })
    }
}
