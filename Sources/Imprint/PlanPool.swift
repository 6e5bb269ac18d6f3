internal import Atomics
internal import ImprintCore
internal import ImprintNetwork

/// Plans of one network for one image at a time, for any number of threads, none of which ever waits for another.
final class PlanPool: Sendable {
    let network: Network
    private let parameters: Parameters
    private let workers: Workers
    /// Plans that no thread is using at the moment; more of them than there are places are not kept.
    private let idle: [ManagedAtomic<Idle?>]

    private final class Idle: AtomicReference, @unchecked Sendable {
        let plan: Plan
        init(_ plan: Plan) { self.plan = plan }
    }

    init(_ network: Network, parameters: Parameters, workers: Workers) throws(NetworkError) {
        self.network = network
        self.parameters = parameters
        self.workers = workers
        let first = Idle(try Self.plan(network, parameters, workers))
        idle = (0..<16).map { ManagedAtomic($0 == 0 ? first : nil) }
    }

    /// Lends a plan to `body`.
    func withPlan<Result, Failure>(_ body: (Plan) throws(Failure) -> Result) throws(Failure) -> Result {
        // The network compiled in `init`, so only memory can be short.
        guard let lent = take() ?? (try? Self.plan(network, parameters, workers)).map(Idle.init) else {
            preconditionFailure("there is no memory for one more classification at the same time")
        }
        defer {
            _ = idle.first {
                $0.compareExchange(expected: nil, desired: lent, ordering: .acquiringAndReleasing).exchanged
            }
        }
        return try body(lent.plan)
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
    ) throws(NetworkError) -> Plan {
        try Plan(network, parameters: parameters, options: Plan.Options(batchSize: 1, workers: workers))
    }
}
