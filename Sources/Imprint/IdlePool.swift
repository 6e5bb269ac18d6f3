internal import Synchronization

/// A thread-safe pool of values that are not thread-safe, such as execution plans.
///
/// Each value is used by one thread at a time. The pool makes a new value if all others are in use.
package final class IdlePool<Value>: Sendable {
    /// A value that no thread uses.
    private struct Idle: @unchecked Sendable {
        let value: Value
    }

    private let idle = Mutex<[Idle]>([])

    /// Creates an empty pool.
    package init() {}

    /// Calls `body` with an idle value, or with a new one.
    package func withValue<Result, Failure>(
        make: () throws(Failure) -> Value, _ body: (Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let taken = idle.withLock { $0.popLast() }
        let value = if let taken { taken.value } else { try make() }
        defer {
            let returned = Idle(value: value)
            idle.withLock { $0.append(returned) }
        }
        return try body(value)
    }
}
