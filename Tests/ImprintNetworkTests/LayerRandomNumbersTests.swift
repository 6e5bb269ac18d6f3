import ImprintNetwork
import Testing

/// A custom layer whose output is random numbers.
private struct RandomNumbers: Layer {
    static let kind = "test.randomNumbers"
    let name: String

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape { inputs[0] }

    func forward(_ context: LayerContext, batch: Int) {
        let count = context.output.shape.count
        context.worker.forEachChunk(batch) { image in
            var random = context.randomNumbers(name, image: image)
            for index in 0..<count { context.output.values[image * count + index] = random.uniform() }
        }
    }

    func backward(_ context: LayerContext, batch: Int) {}
}

@Suite struct LayerRandomNumbersTests {
    /// Returns the numbers of three nodes for two images in two passes, four each.
    private func numbers(seed: UInt64, threads: Int = 1) throws -> [[Float]] {
        var builder = NetworkBuilder(name: "random", input: TensorShape(channels: 4))
        let nodes = ["noise", "noise", "drop"].map {
            builder.add(RandomNumbers(name: $0), to: [Network.inputName])
        }
        builder.add(Concat(), to: nodes)
        let network = try builder.network()
        let plan = try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1),
            options: ExecutionPlan.Options(batchSize: 2, threads: threads, seed: seed))
        return (0..<2).flatMap { _ in
            plan.forward(count: 2)
            return (0..<6).map { Array(plan.output[($0 * 4)..<($0 * 4 + 4)]) }
        }
    }

    @Test("The seed, the node, the name, the image and the pass determine the random numbers of a custom layer")
    func areDetermined() throws {
        let numbers = try numbers(seed: 7)
        #expect(numbers.count == 12 && Set(numbers).count == 12)
        #expect(numbers.joined().allSatisfy { (0..<1).contains($0) })
        #expect(try self.numbers(seed: 7, threads: 3) == numbers)
        #expect(Set(try self.numbers(seed: 8)).isDisjoint(with: numbers))
    }
}
