internal import ImprintCore
internal import ImprintNetwork

/// A step of `TrainingLoop` on synthetic images: forward pass, loss, backward pass, SGD with momentum.
///
/// With several processes, each has a batch of the size of the case.
struct TrainingCase {
    let name: String
    let network: String
    /// The width multiplier of the network.
    var width = 1.0
    let inputSize: Int
    let batchSize: Int
    let labels: Int

    static let all = [
        TrainingCase(name: "lenet-28", network: "lenet", inputSize: 28, batchSize: 32, labels: 10),
        TrainingCase(name: "logonet-96", network: "logonet", inputSize: 96, batchSize: 32, labels: 2),
        // 24, 48, 96 and 192 channels: some are not multiples of the SIMD width.
        TrainingCase(
            name: "logonet-96-width-0.75", network: "logonet", width: 0.75, inputSize: 96, batchSize: 32, labels: 2),
        TrainingCase(name: "logonet-224", network: "logonet", inputSize: 224, batchSize: 32, labels: 2),
        TrainingCase(name: "mobilenet-v1-224", network: "mobilenet-v1", inputSize: 224, batchSize: 16, labels: 1000),
        TrainingCase(name: "resnet-50-224", network: "resnet-50", inputSize: 224, batchSize: 8, labels: 1000),
    ]

    var benchmark: BenchmarkCase { BenchmarkCase(suite: .train, name: name, measure: measure) }

    private func measure(_ options: BenchmarkOptions) throws -> BenchmarkResult {
        let network = try Network.named(network, labels: labels, inputSize: inputSize, width: width).logits()
        let parameters = try Parameters(network, seed: 1)
        let batchSize = batchSize * (options.processes?.count ?? 1)
        var planOptions = ExecutionPlan.Options(
            batchSize: batchSize, mode: .training, workers: Workers(options.threads, processes: options.processes))
        planOptions.precision = options.precision == .bfloat16 ? .bfloat16 : .float32
        let plan = try ExecutionPlan(network, parameters: parameters, options: planOptions)
        let objective = SyntheticObjective(plan, labels: (0..<batchSize).map { $0 % labels })
        let phase = TrainingLoop.Rounds.Phase(
            steps: .max, learningRate: 0.001, schedule: LearningRateSchedule(.constant))
        let loop = try TrainingLoop(objective, options: .init(rounds: .phases([phase]), optimizer: .sgd(SGD.Options())))
        let measurement = try Measurement(seconds: options.seconds, processes: options.processes) {
            _ = try loop.step()
        }
        return BenchmarkResult(
            .train, name, options, measurement.rates(of: Double(batchSize)), .imagesPerSecond, of: measurement,
            batch: batchSize)
    }
}

/// The cross-entropy of one batch of synthetic images, which every step repeats.
private final class SyntheticObjective: TrainingObjective {
    let plan: ExecutionPlan
    private let labels: [Int]
    private let loss = SoftmaxCrossEntropy()

    init(_ plan: ExecutionPlan, labels: [Int]) {
        self.plan = plan
        self.labels = labels
        plan.input.fill(named: "images")
    }

    func trainingStep(round: Int, step: Int) -> StepLoss? {
        plan.forward(count: labels.count)
        let result = loss(logits: plan.output, targets: labels, gradient: plan.outputGradient)
        return StepLoss(loss: result.loss, correct: result.correct, count: labels.count)
    }
}

/// Feature extraction with MobileNet without its head, as in training of only the head.
let mobileNetFeatures = BenchmarkCase(suite: .train, name: "mobilenet-v1-features-224") { options in
    let classifier = try Network.named("mobilenet-v1", labels: 1000)
    let nodes = classifier.nodes.prefix { $0.name != "head" }
    let network = try Network(name: classifier.name, input: classifier.input, nodes: Array(nodes))
    let batchSize = 32
    let measurement = try forwardPasses(of: network, batchSize: batchSize, options)
    return BenchmarkResult(
        .train, "mobilenet-v1-features-224", options, measurement.rates(of: Double(batchSize)), .imagesPerSecond,
        of: measurement, batch: batchSize)
}

/// Measures forward passes on a batch of synthetic images.
func forwardPasses(
    of network: Network, parameters: Parameters? = nil, batchSize: Int, _ options: BenchmarkOptions
) throws -> Measurement {
    var planOptions = ExecutionPlan.Options(batchSize: batchSize, workers: Workers(options.threads))
    planOptions.precision = options.precision
    var parameters = try parameters ?? Parameters(network, seed: 1)
    if options.precision == .int8, parameters.quantization == nil {
        parameters = try Quantizer(network, parameters: parameters, threads: options.threads)
            .quantize(
                for: (0..<8).map { image in
                    Quantizer.Image(shape: network.input) { $0.fill(named: "calibration \(image)") }
                })
    }
    let plan = try ExecutionPlan(network, parameters: parameters, options: planOptions)
    plan.input.fill(named: "images")
    return Measurement(seconds: options.seconds) { plan.forward(count: batchSize) }
}

extension UnsafeMutableBufferPointer<Float> {
    /// Fills the buffer with uniform values from −1 to 1 of the random stream of a name.
    func fill(named name: String) {
        var stream = RandomStream(seed: 1, name)
        for i in indices { self[i] = stream.uniform(in: -1...1) }
    }
}
