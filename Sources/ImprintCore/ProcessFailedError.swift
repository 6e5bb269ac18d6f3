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
    /// - Returns: The result of the closure, if it succeeds in all processes.
    /// - Throws: The error of the closure; `ProcessFailedError` if it fails only in other processes.
    package func failTogether<Value>(_ body: () throws -> Value) throws -> Value {
        let result = Result { try body() }
        var message: [UInt8] = []
        // The first byte distinguishes an error without a description from success.
        if case .failure(let error) = result { message = [1] + Array("\(error)".utf8) }
        let messages = gather(message)
        let value = try result.get()
        guard let rank = messages.firstIndex(where: { !$0.isEmpty }) else { return value }
        throw ProcessFailedError(rank: rank, reason: String(decoding: messages[rank].dropFirst(), as: UTF8.self))
    }
}

extension ProcessGroup? {
    /// Runs a closure that can fail in some of the processes, and throws in all of them if it fails in any; only runs it for a single process.
    /// - Throws: The error of the closure; `ProcessFailedError` if it fails only in other processes.
    package func failTogether<Value>(_ body: () throws -> Value) throws -> Value {
        guard let processes = self else { return try body() }
        return try processes.failTogether(body)
    }
}
