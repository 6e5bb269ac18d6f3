internal import Foundation

extension Workers {
    /// Calls `body` for every item of a stream on any of the threads, and `receive` with the results in the order of the items.
    ///
    /// `next` and `receive` are called once at a time, on any of the threads. `receive` gets a result as soon as all earlier results are
    /// available, also while `next` waits for the next item. So a program that sends an item and waits for its result never waits forever.
    ///
    /// - Parameters:
    ///   - window: The maximum number of items between the last received result and the last item, at least 1; it bounds the memory.
    ///   - next: Returns the next item, or nil at the end. If it waits, it returns nil once `isStopped` returns true.
    ///   - body: Computes the result of an item.
    ///   - receive: Receives a result.
    /// - Throws: The error of `receive`, after which no further calls of `body` start; or the error of `next`, after the results of all earlier
    ///   items have been received.
    package func forEachInOrder<Item, Value>(
        window: Int, _ next: (_ isStopped: () -> Bool) throws -> Item?, _ body: (Item) -> Value,
        receive: (Item, Value) throws -> Void
    ) throws {
        precondition(window >= 1, "the window must have at least one item, not \(window)")
        let stream = OrderedStream<Item, Value>(window: window)
        forkJoin(count) { _ in
            while let (index, item) = stream.claim(next) { stream.add(item, body(item), at: index, receive) }
        }
        if let error = stream.failure ?? stream.sourceFailure { throw error }
    }
}

/// Passes items to threads in order, and their results, which are ready in any order, to a receiver in order.
private final class OrderedStream<Item, Value>: @unchecked Sendable {
    private let window: Int
    /// Held while the next item is read; protects `claimed`, `isAtEnd` and `sourceFailure`.
    private let source = NSLock()
    private var claimed = 0
    private var isAtEnd = false
    private(set) var sourceFailure: (any Error)?
    /// Protects the other properties, and signals that results have been received.
    private let results = NSCondition()
    private var received = 0
    private var waiting: [Int: (Item, Value)] = [:]
    /// The error of the receiver.
    private(set) var failure: (any Error)?

    init(window: Int) { self.window = window }

    /// Returns the next item with its index; nil at the end and after a failure.
    func claim(_ next: (_ isStopped: () -> Bool) throws -> Item?) -> (index: Int, item: Item)? {
        source.lock()
        defer { source.unlock() }
        guard !isAtEnd, isWithinWindow() else { return nil }
        do {
            if let item = try next({ self.hasFailed }) {
                defer { claimed += 1 }
                return (claimed, item)
            }
        } catch { sourceFailure = error }
        isAtEnd = true
        return nil
    }

    private var hasFailed: Bool {
        results.lock()
        defer { results.unlock() }
        return failure != nil
    }

    /// Waits until the next item is within the window; returns false after a failure.
    private func isWithinWindow() -> Bool {
        results.lock()
        defer { results.unlock() }
        while failure == nil, claimed - received >= window { results.wait() }
        return failure == nil
    }

    /// Adds a result and passes on all results without missing predecessors.
    func add(_ item: Item, _ value: Value, at index: Int, _ receive: (Item, Value) throws -> Void) {
        results.lock()
        defer { results.unlock() }
        waiting[index] = (item, value)
        do {
            while failure == nil, let (item, value) = waiting.removeValue(forKey: received) {
                try receive(item, value)
                received += 1
            }
        } catch { failure = error }
        results.broadcast()
    }
}
