import Foundation
import ImprintCore
import ImprintNetwork

/// A whole training step on made-up images: forward, loss, backward, SGD.
struct TrainingStep {
    let name: String
    let network: String
    let inputSize: Int
    let batchSize: Int
    let labels: Int

    static let all = [
        TrainingStep(name: "lenet-28", network: "lenet", inputSize: 28, batchSize: 32, labels: 10),
        TrainingStep(name: "logonet-96", network: "logonet", inputSize: 96, batchSize: 32, labels: 2),
        TrainingStep(name: "logonet-224", network: "logonet", inputSize: 224, batchSize: 32, labels: 2),
        TrainingStep(name: "mobilenet-v1-224", network: "mobilenet-v1", inputSize: 224, batchSize: 16, labels: 1000),
        TrainingStep(name: "resnet-50-224", network: "resnet-50", inputSize: 224, batchSize: 8, labels: 1000),
    ]

    static let heading = line(
        "training step", "threads", "images/s: median", "least", "most", "allocations", "arena MB")

    func measure(threads: Int) throws -> String {
        let network = try Network.named(network, labels: labels, inputSize: inputSize).logits()
        let parameters = try Parameters(network, seed: 1)
        let plan = try Plan(
            network, parameters: parameters,
            options: Plan.Options(batchSize: batchSize, mode: .training, workers: Workers(threads)))
        let optimizer = try SGD(SGD.Options(learningRate: 0.001), for: parameters.layout)
        let loss = SoftmaxCrossEntropy()
        let labels = (0..<batchSize).map { $0 % self.labels }
        plan.input.fill(named: "images")

        let measurement = Measurement(seconds: 4) {
            plan.forward(count: batchSize)
            _ = loss(logits: plan.output, labels: labels, gradient: plan.outputGradient)
            plan.backward(count: batchSize)
            optimizer.step(plan)
        }
        let rate = measurement.rate(of: Double(batchSize))
        return Self.line(
            name, "\(threads)", decimal(rate.median), decimal(rate.least), decimal(rate.most),
            decimal(measurement.allocations), decimal(Double(plan.arenaByteCount) / 1e6))
    }

    private static func line(_ columns: String...) -> String { row(columns, widths: [24, 8, 18, 9, 9, 12, 10]) }
}
