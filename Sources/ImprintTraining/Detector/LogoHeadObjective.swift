internal import ImprintCore
internal import ImprintNetwork

/// The inputs of a detector's head for training patches, and the logos in them.
struct HeadSamples {
    /// The shape of the features of a patch, [rows, columns, channels].
    let shape: TensorShape
    /// The features, [samples, rows, columns, channels].
    private(set) var features: [Float] = []
    /// The logos in each sample.
    private(set) var targets: [[HeatMapLoss.Target]] = []

    init(_ shape: TensorShape) { self.shape = shape }

    var count: Int { targets.count }

    /// Adds the features of patches, [patches, rows, columns, channels].
    mutating func add(_ values: some Sequence<Float>, _ targets: [[HeatMapLoss.Target]]) {
        features += values
        self.targets += targets
        precondition(features.count == count * shape.count, "there are \(features.count) values for \(count) samples")
    }
}

/// An objective that trains the heat maps of new logos on cached features of a frozen detector.
///
/// The heat map of a logo is a 1x1 convolution of the features. The loss is `HeatMapLoss` without boxes. AdamW takes steps over random batches
/// of patches and of replayed features; the channels are standardized, so that rarely active channels learn as fast as others.
final class LogoHeadObjective: TrainingObjective {
    /// The trained convolution, converted for features that are not standardized.
    struct Head {
        /// The weights, [channels, logos].
        let weight: [Float]
        /// The biases, [logos].
        let bias: [Float]
    }

    private static let batchSize = 128
    private static let learningRate: Float = 0.004
    /// The share of a batch that is replayed, if there are features to replay.
    private static let replayShare = 0.25
    private static let nodeName = "head"

    let plan: ExecutionPlan
    private let samples: HeadSamples
    private let replay: HeadSamples
    private let loss: HeatMapLoss
    private let standardization: Standardization
    private let logos: Int
    private var random: RandomStream

    /// - Parameters:
    ///   - logos: The number of new logos.
    ///   - samples: Patches with and without the new logos, at least one.
    ///   - replay: Features of photos without the new logos.
    init(logos: Int, _ samples: HeadSamples, replay: HeadSamples, seed: UInt64, workers: Workers) throws {
        (self.logos, self.samples, self.replay) = (logos, samples, replay)
        random = RandomStream(seed: seed, "new logos")
        let network = try Network(
            name: "new logos", input: samples.shape,
            nodes: [
                Network.Node(
                    name: Self.nodeName, layer: Convolution(outputChannels: logos, kernelSize: 1),
                    inputs: [Network.inputName])
            ])
        let parameters = try Parameters(ParameterLayout(network))
        // A negative bias, so that the head initially detects no logos.
        parameters["\(Self.nodeName).bias"] = [Float](repeating: -2, count: logos)
        plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: Self.batchSize, mode: .training, workers: workers))
        loss = HeatMapLoss(network.output)
        standardization = samples.features.withUnsafeBufferPointer {
            Standardization($0, channels: samples.shape.channels)
        }
    }

    /// Trains the head.
    /// - Parameters:
    ///   - steps: The number of steps, at least 1.
    ///   - shouldStop: Called after each step; the head is returned early if it returns true.
    /// - Throws: `TrainingDivergedError` if a parameter is not finite, and the errors of `shouldStop`.
    func run(steps: Int, shouldStop: () throws -> Bool) throws -> Head {
        var options = TrainingLoop.Options(
            rounds: .phases([
                .init(
                    steps: steps, learningRate: Self.learningRate,
                    schedule: LearningRateSchedule(.cosine(final: 0), warmUpSteps: min(20, steps / 10)))
            ]), optimizer: .adamW(AdamW.Options(weightDecay: 0.01)))
        options.keepsBest = false
        _ = try TrainingLoop(self, options: options).run(shouldStop: shouldStop)
        return head
    }

    func trainingStep(round: Int, step: Int) -> StepLoss? {
        let replayed = replay.count == 0 ? 0 : Int(Double(Self.batchSize) * Self.replayShare)
        let targets = (0..<Self.batchSize).map { row in
            let source = row < replayed ? replay : samples
            let index = random.index(below: source.count)
            load(source, index, row)
            return source.targets[index]
        }
        plan.forward(count: Self.batchSize)
        let result = loss(logits: plan.output, targets: targets, gradient: plan.outputGradient)
        return StepLoss(loss: result.loss, correct: result.correct, count: Self.batchSize)
    }

    /// Writes the standardized features of a sample into a row of the batch.
    private func load(_ source: HeadSamples, _ index: Int, _ row: Int) {
        let length = source.shape.count
        let input = UnsafeMutableBufferPointer(rebasing: plan.input[(row * length)..<((row + 1) * length)])
        _ = input.update(fromContentsOf: source.features[(index * length)..<((index + 1) * length)])
        standardization.apply(to: input)
    }

    private var head: Head {
        var weight = plan.parameters["\(Self.nodeName).weight"] ?? []
        var bias = plan.parameters["\(Self.nodeName).bias"] ?? []
        standardization.absorb(into: &weight, bias: &bias)
        return Head(weight: weight, bias: bias)
    }
}
