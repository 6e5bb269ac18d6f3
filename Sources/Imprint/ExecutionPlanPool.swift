internal import Atomics
internal import Foundation
internal import ImprintCore
internal import ImprintNetwork

/// Plans of one network for one image at a time, for any number of threads.
///
/// A thread waits for another only if there is no memory for one more plan.
final class ExecutionPlanPool: Sendable {
    let network: Network
    private let parameters: Parameters
    private let workers: Workers
    /// Plans that no thread is using at the moment; more of them than there are places are not kept.
    private let idle: [ManagedAtomic<Idle?>]

    private final class Idle: AtomicReference, @unchecked Sendable {
        let plan: ExecutionPlan
        init(_ plan: ExecutionPlan) { self.plan = plan }
    }

    init(_ network: Network, parameters: Parameters, workers: Workers) throws(NetworkError) {
        self.network = network
        self.parameters = parameters
        self.workers = workers
        let first = Idle(try Self.plan(network, parameters, workers))
        idle = (0..<16).map { ManagedAtomic($0 == 0 ? first : nil) }
    }

    /// Lends a plan to `body`.
    func withPlan<Result, Failure>(_ body: (ExecutionPlan) throws(Failure) -> Result) throws(Failure) -> Result {
        let lent = lend()
        defer {
            _ = idle.first {
                $0.compareExchange(expected: nil, desired: lent, ordering: .acquiringAndReleasing).exchanged
            }
        }
        return try body(lent.plan)
    }

    /// A plan that no other thread uses: an idle one, or a new one.
    private func lend() -> Idle {
        if let plan = take() { return plan }
        if let plan = try? Self.plan(network, parameters, workers) { return Idle(plan) }
        // The network compiled in `init`, so only memory is short. The first plan, at least, comes back.
        while true {
            if let plan = take() { return plan }
            usleep(1000)
        }
    }

    private func take() -> Idle? {
        for place in idle {
            if let plan = place.exchange(nil, ordering: .acquiringAndReleasing) { return plan }
        }
        return nil
    }

    /// What the network makes of one image's values.
    func callAsFunction(_ values: [Float]) -> [Float] {
        withPlan { plan in
            _ = plan.input.update(fromContentsOf: values)
            plan.forward(count: 1)
            return Array(plan.output)
        }
    }

    private static func plan(
        _ network: Network, _ parameters: Parameters, _ workers: Workers
    ) throws(NetworkError) -> ExecutionPlan {
        try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 1, workers: workers).limitingThreads(for: network))
    }
}
