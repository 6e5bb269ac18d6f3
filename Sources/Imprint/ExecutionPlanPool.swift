internal import Atomics
internal import Foundation
internal import ImprintCore
internal import ImprintNetwork

/// A thread-safe pool of execution plans for one network, with a batch size of 1.
///
/// A thread waits for another thread only if there is not enough memory for one more plan.
final class ExecutionPlanPool: Sendable {
    let network: Network
    /// Compiles a plan of the network for a batch size.
    let makePlan: @Sendable (_ batchSize: Int) throws(NetworkError) -> ExecutionPlan
    /// The slots for idle plans; plans that find no free slot are released.
    private let idle: [ManagedAtomic<Idle?>]

    private final class Idle: AtomicReference, @unchecked Sendable {
        let plan: ExecutionPlan
        init(_ plan: ExecutionPlan) { self.plan = plan }
    }

    /// - Parameter keepsHeadInput: Whether `ExecutionPlan.headInput` can be read after a pass.
    convenience init(
        _ network: Network, parameters: Parameters, workers: Workers, precision: Precision = .automatic,
        keepsHeadInput: Bool = false
    ) throws(NetworkError) {
        try self.init(network) { (batchSize) throws(NetworkError) in
            var options = ExecutionPlan.Options(batchSize: batchSize, workers: workers).limitingThreads(for: network)
            options.keepsHeadInput = keepsHeadInput
            options.precision = precision
            return try ExecutionPlan(network, parameters: parameters, options: options)
        }
    }

    /// - Parameter makePlan: A closure that compiles a plan of the network for a batch size. Only the first call must succeed.
    init(
        _ network: Network, makePlan: @escaping @Sendable (_ batchSize: Int) throws(NetworkError) -> ExecutionPlan
    ) throws(NetworkError) {
        self.network = network
        self.makePlan = makePlan
        let first = Idle(try makePlan(1))
        idle = (0..<16).map { ManagedAtomic($0 == 0 ? first : nil) }
    }

    /// Calls `body` with a plan that no other thread uses during the call.
    func withPlan<Result, Failure>(_ body: (ExecutionPlan) throws(Failure) -> Result) throws(Failure) -> Result {
        let lent = lend()
        defer {
            _ = idle.first {
                $0.compareExchange(expected: nil, desired: lent, ordering: .acquiringAndReleasing).exchanged
            }
        }
        return try body(lent.plan)
    }

    /// Returns an idle plan, or compiles a new one.
    private func lend() -> Idle {
        if let plan = take() { return plan }
        if let plan = try? makePlan(1) { return Idle(plan) }
        // The network compiled in `init`, so memory is short: wait until another thread returns a plan.
        while true {
            if let plan = take() { return plan }
            usleep(1000)
        }
    }

    private func take() -> Idle? {
        for slot in idle {
            if let plan = slot.exchange(nil, ordering: .acquiringAndReleasing) { return plan }
        }
        return nil
    }

    /// Returns the output of the network for one input.
    func callAsFunction(_ values: [Float]) -> [Float] {
        withPlan { plan in
            _ = plan.input.update(fromContentsOf: values)
            plan.forward(count: 1)
            return Array(plan.output)
        }
    }
}
