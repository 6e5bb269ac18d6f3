internal import Synchronization

/// The open connections of a server, whose number is limited.
///
/// If the table is full, a new connection replaces the one that has waited longest for the head of a request, or whose body or response is
/// slow. Clients that open many connections and send or read little therefore cannot keep others out.
final class ConnectionTable: Sendable {
    /// The state of a connection.
    enum Phase {
        /// The server waits for the first byte of a request.
        case idle
        /// The server receives the head of a request.
        case head
        /// The server receives the body of a request, or sends the response.
        case transfer
        /// The server computes the response.
        case computing
    }

    private struct Entry {
        let socket: ClientSocket
        var phase = Phase.idle
        var since = ContinuousClock.now
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var nextNumber = 0
        var isClosed = false
    }

    private let state = Mutex(State())
    private let limit: Int
    private let slowTransferDuration: Duration

    /// - Parameters:
    ///   - limit: The maximum number of connections.
    ///   - slowTransferDuration: The duration of a transfer after which it is slow.
    init(limit: Int, slowTransferDuration: Duration) {
        (self.limit, self.slowTransferDuration) = (limit, slowTransferDuration)
    }

    /// The number of open connections.
    var count: Int { state.withLock { $0.entries.count } }

    /// Returns the number of open connections in a phase.
    func count(in phase: Phase) -> Int { state.withLock { $0.entries.values.count(where: { $0.phase == phase }) } }

    /// The result of adding a connection.
    enum Admission: Equatable {
        /// The connection has a number; `evicts` is true if it replaces another one.
        case admitted(number: Int, evicts: Bool)
        /// All connections are in use.
        case full
    }

    /// Adds a new connection.
    func add(_ socket: ClientSocket) -> Admission {
        state.withLock { state in
            guard !state.isClosed else { return .full }
            let isFull = state.entries.count >= limit
            if isFull && !evict(from: &state) { return .full }
            state.nextNumber += 1
            state.entries[state.nextNumber] = Entry(socket: socket)
            return .admitted(number: state.nextNumber, evicts: isFull)
        }
    }

    /// Ends the connection that has waited longest.
    /// - Returns: `false` if all connections are in use.
    func evict() -> Bool { state.withLock { evict(from: &$0) } }

    private func evict(from state: inout State) -> Bool {
        let candidates = state.entries.filter { canEvict($0.value) }
        guard let number = candidates.min(by: { $0.value.since < $1.value.since })?.key else { return false }
        // Its thread closes the socket.
        state.entries.removeValue(forKey: number)?.socket.shutDown()
        return true
    }

    private func canEvict(_ entry: Entry) -> Bool {
        switch entry.phase {
        case .idle, .head: true
        case .transfer: entry.since + slowTransferDuration < .now
        case .computing: false
        }
    }

    /// Records the phase of a connection.
    /// - Returns: `false` if the connection must end: it was evicted, or the server is stopping and the connection is idle.
    func enter(_ phase: Phase, _ number: Int) -> Bool {
        state.withLock { state in
            guard state.entries[number] != nil, !(state.isClosed && phase == .idle) else { return false }
            state.entries[number]?.phase = phase
            state.entries[number]?.since = .now
            return true
        }
    }

    /// Removes a connection and closes its socket.
    func remove(_ number: Int, _ socket: ClientSocket) {
        state.withLock { state in
            state.entries[number] = nil
            // Within the lock, because another thread must not shut down a socket that is closed and whose descriptor is in use again.
            socket.close()
        }
    }

    /// Ends idle connections, and rejects new ones and new requests.
    func close() {
        state.withLock { state in
            state.isClosed = true
            for entry in state.entries.values where entry.phase == .idle { entry.socket.shutDown() }
        }
    }

    /// Ends all connections, even if they wait for a response.
    func endAll() { state.withLock { for entry in $0.entries.values { entry.socket.shutDown() } } }

    /// Whether the server is stopping.
    var isClosed: Bool { state.withLock { $0.isClosed } }
}
