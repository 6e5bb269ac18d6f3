internal import Foundation

/// All-reduces that a background thread computes while the caller continues, like `DistributedDataParallel` of PyTorch.
final class BackgroundAllReduce: @unchecked Sendable {
    private struct Sum {
        let values: UnsafeMutablePointer<Float>
        let count: Int
        let parts: Int
    }

    private let transport: any ProcessTransport
    private let state = NSCondition()
    private let received = GrowingMemory()
    private var sums: [Sum] = []
    private var isComputing = false
    private var hasThread = false

    init(_ transport: any ProcessTransport) { self.transport = transport }

    /// Adds values to sum; the caller must not use them before `wait`.
    func add(_ values: UnsafeMutablePointer<Float>, count: Int, parts: Int) {
        guard parts > 1 else { return }
        state.lock()
        defer { state.unlock() }
        sums.append(Sum(values: values, count: count, parts: parts))
        if !hasThread {
            hasThread = true
            Thread.detachNewThread { [weak self] in
                while self?.computeNext() == true {}
            }
        }
        state.signal()
    }

    /// Waits until all sums are computed.
    func wait() {
        state.lock()
        while !sums.isEmpty || isComputing { state.wait() }
        state.unlock()
    }

    /// Computes the next sum, and waits for it for up to a second.
    /// - Returns: Whether the thread should call it again.
    private func computeNext() -> Bool {
        state.lock()
        if sums.isEmpty { _ = state.wait(until: Date(timeIntervalSinceNow: 1)) }
        guard !sums.isEmpty else {
            state.unlock()
            return true
        }
        let sum = sums.removeFirst()
        isComputing = true
        state.unlock()
        transport.allReduce(sum.values, count: sum.count, parts: sum.parts, received: received, channel: .background)
        state.lock()
        isComputing = false
        state.broadcast()
        state.unlock()
        return true
    }
}

/// Memory that grows to the largest size that was needed.
final class GrowingMemory {
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    deinit { memory.deallocate() }

    /// Returns memory for `count` values; the content is undefined.
    func memory<Value: BitwiseCopyable>(of type: Value.Type, _ count: Int) -> UnsafeMutablePointer<Value> {
        let byteCount = max(count, 1) * MemoryLayout<Value>.stride
        if memory.count < byteCount {
            memory.deallocate()
            memory = .allocate(byteCount: byteCount, alignment: 64)
        }
        guard let base = memory.baseAddress else { preconditionFailure("the memory must not be empty") }
        return base.assumingMemoryBound(to: Value.self)
    }
}
