/// What a program adds to the description of an error, which other processes cannot derive because they do not have the error.
package struct ErrorAdvice: Equatable, Sendable {
    /// The hint of the program; nil if it has none.
    package let hint: String?
    /// Whether the error means wrong usage of the program, unlike a failure.
    package let isWrongUsage: Bool

    package init(hint: String? = nil, isWrongUsage: Bool = false) {
        (self.hint, self.isWrongUsage) = (hint, isWrongUsage)
    }
}

/// The error of a process that ends because another process of its group has failed.
package struct ProcessFailedError: Error, CustomStringConvertible, Equatable {
    /// The index of the process that has failed; of several, the lowest one.
    package let rank: Int
    /// The description of its error.
    package let reason: String
    /// The advice of the program about its error.
    package let advice: ErrorAdvice

    package init(rank: Int, reason: String, advice: ErrorAdvice = ErrorAdvice()) {
        (self.rank, self.reason, self.advice) = (rank, reason, advice)
    }

    package var description: String { "process \(rank) has failed: \(reason.sentence)" }
}

extension ProcessFailedError {
    /// Returns the message about an error for the other processes; it is not empty.
    fileprivate static func message(_ error: any Error, _ advice: ErrorAdvice) -> [UInt8] {
        var bytes: [UInt8] = [(advice.isWrongUsage ? 1 : 0) | (advice.hint == nil ? 0 : 2)]
        // A NUL ends the hint.
        bytes += (advice.hint ?? "").utf8.filter { $0 != 0 }
        bytes.append(0)
        bytes += "\(error)".utf8
        return bytes
    }

    /// Creates the error from the message of the process that has failed.
    fileprivate init(rank: Int, message: [UInt8]) {
        let parts = message.dropFirst().split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        let flags = message[0]
        self.init(
            rank: rank, reason: parts[1],
            advice: ErrorAdvice(hint: flags & 2 == 0 ? nil : parts[0], isWrongUsage: flags & 1 != 0))
    }
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
                message = [failed] + ProcessFailedError.message(error, advice(error))
                failure = error
            }
        }
        let messages = allGather(message)
        if let failure { throw failure }
        if let rank = messages.firstIndex(where: { $0.first == failed }) {
            throw ProcessFailedError(rank: rank, message: Array(messages[rank].dropFirst()))
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
