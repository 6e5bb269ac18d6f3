/// The error of a process that ends because another process of its group has failed.
package struct ProcessFailedError: Error, CustomStringConvertible, Equatable {
    /// The index of the process that has failed; of several, the lowest one.
    package let rank: Int
    /// The description of its error.
    package let reason: String

    package var description: String { "process \(rank) has failed: \(reason.sentence)" }
}

extension ProcessGroup {
    /// Runs a closure that can fail in some of the processes, and throws in all of them if it fails in any.
    ///
    /// Otherwise, the other processes would wait forever for a message of the failed one. Use it between two exchanges for everything that depends
    /// on the machine, such as files and memory. All processes must call it at the same point. The closure must not exchange messages.
    ///
    /// A closure that throws `CancellationError` in one process is cancelled in all of them. If it also fails in another one, the failure counts.
    /// - Returns: The result of the closure, if it succeeds in all processes.
    /// - Throws: The error of the closure; `ProcessFailedError` if it fails only in other processes; `CancellationError`.
    package func failTogether<Value>(_ body: () throws -> Value) throws -> Value {
        // The first byte distinguishes a cancellation, and an error without a description, from success.
        let (failed, cancelled): (UInt8, UInt8) = (1, 2)
        let result = Result { try body() }
        var message: [UInt8] = []
        var failure: (any Error)?
        if case .failure(let error) = result {
            if error is CancellationError {
                message = [cancelled]
            } else {
                message = [failed] + Array("\(error)".utf8)
                failure = error
            }
        }
        let messages = allGather(message)
        if let failure { throw failure }
        if let rank = messages.firstIndex(where: { $0.first == failed }) {
            throw ProcessFailedError(rank: rank, reason: String(decoding: messages[rank].dropFirst(), as: UTF8.self))
        }
        if messages.contains(where: { $0.first == cancelled }) { throw CancellationError() }
        return try result.get()
    }
}

extension ProcessGroup? {
    /// Runs a closure that can fail in some of the processes, and throws in all of them if it fails in any; only runs it for a single process.
    /// - Throws: The error of the closure; `ProcessFailedError` if it fails only in other processes; `CancellationError`.
    package func failTogether<Value>(_ body: () throws -> Value) throws -> Value {
        guard let processes = self else { return try body() }
        return try processes.failTogether(body)
    }
}
