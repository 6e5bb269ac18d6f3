import CAllocationCounter
import Foundation
import ImprintCore
import ImprintNetwork

/// One network at one size, as DESIGN's tables of speed have it.
struct Case {
    let name: String
    let network: String
    let inputSize: Int
    let batchSize: Int
    let labels: Int
}

let cases = [
    Case(name: "lenet-28", network: "lenet", inputSize: 28, batchSize: 32, labels: 10),
    Case(name: "logonet-96", network: "logonet", inputSize: 96, batchSize: 32, labels: 2),
    Case(name: "logonet-224", network: "logonet", inputSize: 224, batchSize: 32, labels: 2),
    Case(name: "mobilenet-v1-224", network: "mobilenet-v1", inputSize: 224, batchSize: 16, labels: 1000),
    Case(name: "resnet-50-224", network: "resnet-50", inputSize: 224, batchSize: 8, labels: 1000),
]

/// A training step on made-up images: forward, loss, backward, SGD.
struct TrainingStepBenchmark {
    let plan: Plan
    let optimizer: SGD
    let loss = SoftmaxCrossEntropy()
    let labels: [Int]

    init(_ benchmark: Case, threads: Int) throws {
        let network = try Network.named(
            benchmark.network, labels: benchmark.labels, inputSize: benchmark.inputSize
        ).logits()
        let parameters = Parameters(network, seed: 1)
        plan = try Plan(
            network, parameters: parameters,
            options: Plan.Options(batchSize: benchmark.batchSize, mode: .training, workers: Workers(threads)))
        optimizer = SGD(SGD.Options(learningRate: 0.001), for: parameters.layout)
        labels = (0..<benchmark.batchSize).map { $0 % benchmark.labels }
        var stream = RandomStream(seed: 1, "images")
        for i in plan.input.indices { plan.input[i] = stream.uniform(in: -1...1) }
    }

    func run() {
        plan.forward(count: labels.count)
        _ = loss(logits: plan.output, labels: labels, gradient: plan.outputGradient)
        plan.backward(count: labels.count)
        optimizer.step(plan)
    }
}

/// Runs `body` for about `seconds`, at least five times, after two runs that do not count.
func measure(seconds: Double, _ body: () -> Void) -> (times: [Double], allocationsPerRun: Double) {
    body()
    body()
    var times = [Double]()
    times.reserveCapacity(100_000)
    let clock = ContinuousClock()
    let start = clock.now
    let allocations = allocation_count()
    repeat {
        let before = clock.now
        body()
        let time = clock.now - before
        times.append(Double(time.components.seconds) + Double(time.components.attoseconds) * 1e-18)
    } while times.count < 5 || clock.now - start < .seconds(seconds)
    let counted = allocation_count() - allocations
    return (times.sorted(), Double(counted) / Double(times.count))
}

@main
struct Main {
    static func main() throws {
        let names = CommandLine.arguments.dropFirst().filter { !$0.hasPrefix("-") }
        let unknown = names.filter { name in !cases.contains { $0.name == name } }
        guard unknown.isEmpty else {
            print("There is no case \(unknown[0]); choose from \(cases.map(\.name).joined(separator: ", ")).")
            exit(64)
        }
        print("training step             threads   images/s: median     min     max   allocations a step   arena MB")
        for benchmark in cases where names.isEmpty || names.contains(benchmark.name) {
            for threads in [1, 2] {
                let step = try TrainingStepBenchmark(benchmark, threads: threads)
                let (times, allocations) = measure(seconds: 4) { step.run() }
                let rates = [times[times.count / 2], times[times.count - 1], times[0]].map {
                    Double(benchmark.batchSize) / $0
                }
                let name = benchmark.name.padding(toLength: 25, withPad: " ", startingAt: 0)
                print(
                    name
                        + String(
                            format: " %7d %19.1f %7.1f %7.1f %20.1f %10.1f", threads, rates[0], rates[1], rates[2],
                            allocations, Double(step.plan.arenaByteCount) / 1e6))
            }
        }
    }
}
