internal import ImprintCore
internal import ImprintNetwork
internal import Synchronization

/// Plans of one network for one image at a time, for any number of threads.
final class PlanPool: Sendable {
    let network: Network
    private let parameters: Parameters
    private let workers: Workers
    /// Plans that no thread is using at the moment.
    private let idle: Mutex<[Idle]>

    private struct Idle: @unchecked Sendable {
        let plan: Plan
    }

    init(_ network: Network, parameters: Parameters, workers: Workers) throws(NetworkError) {
        self.network = network
        self.parameters = parameters
        self.workers = workers
        idle = Mutex([Idle(plan: try Self.plan(network, parameters, workers))])
    }

    /// Lends a plan to `body`.
    func withPlan<Result, Failure>(_ body: (Plan) throws(Failure) -> Result) throws(Failure) -> Result {
        let plan = idle.withLock { $0.popLast() }?.plan
        // The network compiled in `init`, so only memory can be short.
        guard let plan = plan ?? (try? Self.plan(network, parameters, workers)) else {
            preconditionFailure("there is no memory for one more classification at the same time")
        }
        defer {
            let plan = Idle(plan: plan)
            idle.withLock { $0.append(plan) }
        }
        return try body(plan)
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
