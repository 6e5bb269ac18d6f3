import ImprintCore
import Testing

@testable import ImprintNetwork

/// Tests the number of threads that a plan uses, which depends on the work of the network.
@Suite struct ThreadChoiceTests {
    private func threads(
        _ name: String, batchSize: Int, mode: ExecutionPlan.Mode = .prediction, of maximum: Int
    ) throws -> Int {
        let network = try Network.named(name, labels: 4).logits()
        let options = ExecutionPlan.Options(batchSize: batchSize, mode: mode, workers: Workers(maximum))
        return options.limitingThreads(for: network).workers.count
    }

    @Test("A small network runs on one thread, a large network on all threads")
    func bySize() throws {
        #expect(try threads("lenet", batchSize: 1, of: 8) == 1)
        #expect(try threads("lenet", batchSize: 32, mode: .training, of: 2) == 2)
        #expect(try threads("logonet", batchSize: 1, of: 2) == 2)
        #expect(try threads("resnet-50", batchSize: 1, of: 16) == 16)
        #expect(try threads("resnet-50", batchSize: 32, mode: .training, of: 64) == 64)
        #expect(try threads("resnet-50", batchSize: 32, of: 1) == 1)
    }

    @Test("The thread count of a network without multiplications depends on the elements that it writes")
    func withoutProducts() throws {
        let network = try Network(
            name: "relu", input: TensorShape(height: 4096, width: 4096, channels: 1),
            nodes: [Network.Node(name: "relu", layer: ReLU(), inputs: [Network.inputName])])
        let options = ExecutionPlan.Options(batchSize: 1, workers: Workers(64))
        #expect(options.limitingThreads(for: network).workers.count == 8)
    }
}
