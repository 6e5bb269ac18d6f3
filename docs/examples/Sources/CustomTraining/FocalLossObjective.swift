import Foundation
import ImprintNetwork

/// A training objective: the focal loss, L = −(1 − p)² · log p with p = softmax(logits)[label].
///
/// It reduces the weight of samples that the network already classifies well (Lin et al., "Focal loss for dense object detection",
/// 2017).
final class FocalLossObjective: TrainingObjective {
    static let labels = ["warm", "cold"]
    static let size = 8
    static let batchSize = 32

    let plan: ExecutionPlan
    private let stepsPerEpoch: Int
    private var validationPlan: ExecutionPlan?

    init(_ network: Network, stepsPerEpoch: Int, seed: UInt64) throws {
        self.stepsPerEpoch = stepsPerEpoch
        plan = try ExecutionPlan(
            network, parameters: Parameters(network, seed: seed),
            options: ExecutionPlan.Options(batchSize: Self.batchSize, mode: .training))
    }

    func trainingStep(round: Int, step: Int) -> StepLoss? {
        guard step < stepsPerEpoch else { return nil }
        let labels = Self.fill(plan.input, seed: UInt64(1 + round * stepsPerEpoch + step))
        plan.forward(count: Self.batchSize)
        let result = Self.loss(plan.output, labels, gradient: plan.outputGradient)
        return StepLoss(loss: result.loss, correct: result.correct, count: Self.batchSize)
    }

    func validate(_ parameters: Parameters) throws -> ValidationLoss? {
        let options = ExecutionPlan.Options(batchSize: Self.batchSize)
        let plan = try validationPlan ?? ExecutionPlan(self.plan.network, parameters: parameters, options: options)
        validationPlan = plan
        let labels = Self.fill(plan.input, seed: 0)
        plan.forward(count: Self.batchSize)
        let result = Self.loss(plan.output, labels, gradient: nil)
        return ValidationLoss(loss: result.loss, accuracy: Float(result.correct) / Float(Self.batchSize))
    }

    /// Returns the mean loss and the number of correct samples, and writes the gradient with respect to the logits.
    private static func loss(
        _ logits: UnsafeMutableBufferPointer<Float>, _ labels: [Int], gradient: UnsafeMutableBufferPointer<Float>?
    ) -> (loss: Float, correct: Int) {
        let classes = Self.labels.count
        var (loss, correct): (Float, Int) = (0, 0)
        for (sample, label) in labels.enumerated() {
            let row = (0..<classes).map { logits[sample * classes + $0] }
            let exponentials = row.map { exp($0 - row.max()!) }
            let probabilities = exponentials.map { $0 / exponentials.reduce(0, +) }
            let p = max(probabilities[label], 1e-7)
            loss -= (1 - p) * (1 - p) * log(p) / Float(labels.count)
            if p > 0.5 { correct += 1 }
            // dL/dlogit[c] = (2 p (1 − p) log p − (1 − p)²) · ([c = label] − softmax[c])
            let slope = (2 * p * (1 - p) * log(p) - (1 - p) * (1 - p)) / Float(labels.count)
            for c in 0..<classes {
                gradient?[sample * classes + c] = slope * ((c == label ? 1 : 0) - probabilities[c])
            }
        }
        return (loss, correct)
    }

    /// Fills a batch [N, H, W, C] with noisy colour patches, more red than blue if the label is "warm", and returns the labels.
    ///
    /// The batch depends only on the seed, so a resumed run sees the same batches.
    private static func fill(_ input: UnsafeMutableBufferPointer<Float>, seed: UInt64) -> [Int] {
        var random = SplitMix64(state: seed)
        return (0..<batchSize).map { sample in
            let label = Int.random(in: 0..<labels.count, using: &random)
            let patch = patch(label, using: &random)
            for (index, value) in patch.enumerated() { input[sample * patch.count + index] = Float(value) / 127.5 - 1 }
            return label
        }
    }

    /// Returns the samples of a patch, 0…255.
    static func patch(_ label: Int, using random: inout SplitMix64) -> [UInt8] {
        let color = [label == 0 ? 150 : 110, 128, label == 0 ? 110 : 150]
        return (0..<(size * size * 3)).map { UInt8(color[$0 % 3] + Int.random(in: -60...60, using: &random)) }
    }
}

/// A small random number generator with a seed (Steele et al., "Fast splittable pseudorandom number generators", 2014).
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
