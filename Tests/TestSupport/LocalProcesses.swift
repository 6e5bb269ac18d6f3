internal import Foundation
package import ImprintCore

/// Runs a closure in several simulated processes, each on a thread of its own, and returns their results in the order of the ranks.
///
/// The threads exchange messages through memory. If one fails, the others receive no more messages, and their results do not matter. If one waits
/// for a message of another that has returned, the program ends, because it would wait forever.
/// - Parameters:
///   - count: The number of processes.
///   - body: The work of a process.
///   - advice: Returns the advice about an error of a process.
package func inProcesses<Value: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (ProcessGroup) throws -> Value,
    advice: @escaping @Sendable (any Error) -> ErrorAdvice = { _ in ErrorAdvice() }
) async throws -> [Value] {
    let mailbox = Mailbox()
    return try await withThrowingTaskGroup(of: (Int, Value).self) { group in
        for rank in 0..<count {
            group.addTask {
                try await withCheckedThrowingContinuation { continuation in
                    let thread = Thread {
                        let transport = ThreadTransport(rank: rank, count: count, mailbox: mailbox)
                        let result = Result { (rank, try body(ProcessGroup(transport, advice: advice))) }
                        if case .failure = result { mailbox.close() } else { mailbox.end(rank) }
                        continuation.resume(with: result)
                    }
                    thread.stackSize = 8 << 20
                    thread.start()
                }
            }
        }
        var values: [Int: Value] = [:]
        for try await (rank, value) in group { values[rank] = value }
        return (0..<count).compactMap { values[$0] }
    }
}

/// Messages between threads that simulate processes.
private final class Mailbox: @unchecked Sendable {
    struct Address: Hashable {
        let from: Int
        let to: Int
        let channel: ProcessChannel
    }

    private let state = NSCondition()
    private var messages: [Address: [Data]] = [:]
    private var isClosed = false
    /// The processes that have returned.
    private var ended: Set<Int> = []

    func send(_ message: Data, _ address: Address) {
        state.lock()
        messages[address, default: []].append(message)
        state.broadcast()
        state.unlock()
    }

    /// Waits for a message; returns nil after `close`.
    func receive(_ address: Address) -> Data? {
        state.lock()
        defer { state.unlock() }
        while messages[address, default: []].isEmpty {
            if isClosed { return nil }
            precondition(
                !ended.contains(address.from),
                "process \(address.to) waits for a message, but process \(address.from) has returned")
            state.wait()
        }
        return messages[address]?.removeFirst()
    }

    /// Records that a process has returned, and sends no more messages.
    func end(_ rank: Int) {
        state.lock()
        ended.insert(rank)
        state.broadcast()
        state.unlock()
    }

    func close() {
        state.lock()
        isClosed = true
        state.broadcast()
        state.unlock()
    }
}

private struct ThreadTransport: ProcessTransport {
    let rank: Int
    let count: Int
    let mailbox: Mailbox

    func exchange(
        with partner: Int, sending: UnsafeRawBufferPointer, receiving: UnsafeMutableRawBufferPointer,
        channel: ProcessChannel
    ) {
        mailbox.send(Data(sending), Mailbox.Address(from: rank, to: partner, channel: channel))
        guard let message = mailbox.receive(Mailbox.Address(from: partner, to: rank, channel: channel)) else { return }
        precondition(message.count == receiving.count, "received \(message.count) bytes, expected \(receiving.count)")
        message.copyBytes(to: receiving)
    }
}
