import Foundation
import ImprintNetwork
import Synchronization
import Testing

@testable import Imprint

@Suite("Execution plan pool") struct ExecutionPlanPoolTests {
    @Test("If memory suffices for only one plan, threads wait for it") func sharesOnePlan() throws {
        var builder = NetworkBuilder(name: "small", input: TensorShape(channels: 8))
        builder.add(Dense(outputChannels: 4))
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 1)
        let attempts = Atomic(0)
        let pool = try ExecutionPlanPool(network) { _ throws(NetworkError) in
            guard attempts.add(1, ordering: .relaxed).oldValue == 0 else { throw .outOfMemory(bytes: 1 << 40) }
            return try ExecutionPlan(network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1))
        }
        let input = (0..<8).map { Float($0) }
        let expected = pool(input)
        // The plan is in use, so other threads cannot take it.
        let results = Mutex<[[Float]]>([])
        let group = DispatchGroup()
        pool.withPlan { _ in
            for _ in 0..<3 {
                DispatchQueue.global().async(group: group) {
                    let output = pool(input)
                    results.withLock { $0.append(output) }
                }
            }
            while attempts.load(ordering: .relaxed) == 1 { usleep(1000) }
            #expect(results.withLock { $0.isEmpty })
        }
        group.wait()
        let outputs = results.withLock { $0 }
        #expect(outputs == [expected, expected, expected])
    }
}
