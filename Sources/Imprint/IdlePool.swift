internal import Synchronization

/// A pool of values of which only one thread at a time may use each, such as execution plans.
///
/// It makes a value if all are in use, so it has as many as there were uses at the same time.
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
