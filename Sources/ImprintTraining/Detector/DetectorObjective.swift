internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Logo detection: the loss of heat maps over patches of composites and photos, with hard-negative mining between phases.
final class DetectorObjective: TrainingObjective {
    /// The validation result of some parameters: the evaluation, and the head with its calibration.
    struct Validation {
        let evaluation: Evaluation
        /// The loss, in nats: the log loss of the evaluation or, if the photos do not show all logos, its mean with the loss of composites.
        ///
        /// If all photos are negatives, a detector that never fires has the lowest loss, so composites are needed.
        let loss: Double
        let head: DetectorHead
        /// The mean average precision (mAP@.5:.95); nil without objects with boxes in the validation set.
        let averagePrecision: Double?
    }

    let plan: ExecutionPlan
    let patches: DetectorPatches
    let phases: [DetectorPhase]
    /// The result of the last validation.
    private(set) var validation: Validation?
    private let network: Network
    private let evaluator: DetectorEvaluator
    private let batches: PatchBatches
    private let loss: HeatMapLoss

    init(
        _ network: Network, parameters: Parameters, patches: DetectorPatches, phases: [DetectorPhase],
        evaluator: DetectorEvaluator, hyperparameters: DetectorHyperparameters, workers: Workers
    ) throws {
        self.network = network
        self.patches = patches
        self.phases = phases
        self.evaluator = evaluator
        batches = PatchBatches(patches, evaluator.preprocessing, workers: workers)
        plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: patches.batchSize, mode: .training, workers: workers, seed: hyperparameters.seed
            ).limitingThreads(for: network))
        let boxSize = DetectorHead.logoDetector(logos: []).span / Float(DetectorHead.heatMapStride)
        loss = HeatMapLoss(network.output, boxSize: boxSize)
    }

    // MARK: Steps

    func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) throws {
        guard step == 0 else { return }
        if phases[round].mined > 0 {
            patches.mined = try evaluator.mine(patches.negatives, network, evaluationParameters)
        }
        // Before the first phase, the network has not learned any logo, so its detections would be random crops.
        if phases[round].located > 0, round > 0 { patches.located = try locate(evaluationParameters) }
    }

    func trainingStep(round: Int, step: Int) throws -> StepLoss? {
        let stepOfRun = phases.prefix(round).reduce(0) { $0 + $1.steps } + step
        let targets = try batches.fill(plan.input, of: phases[round], step: stepOfRun)
        plan.forward(count: patches.batchSize)
        let result = loss(logits: plan.output, targets: targets, gradient: plan.outputGradient)
        return StepLoss(loss: result.loss, correct: result.correct, count: patches.batchSize)
    }

    // MARK: Hard-negative mining

    /// Returns the strongest detection of its logo in each photo that shows one.
    private func locate(_ parameters: Parameters) throws -> [DetectorPatches.Detection] {
        let scans = try evaluator.scan(patches.positives.map(\.source), network, parameters, peaks: 1)
        return scans.indices.flatMap { index in
            scans[index]?[patches.positives[index].logo].peaks.map {
                DetectorPatches.Detection(imageIndex: index, peak: $0)
            } ?? []
        }
    }

    // MARK: Validation

    var validationVersion: Int { evaluator.photos.unreadable.unreadableValidationCount }

    func validate(_ parameters: Parameters) throws -> ValidationLoss? {
        guard let result = try evaluator.validate(network, parameters, patches) else { return nil }
        validation = result
        return ValidationLoss(
            loss: Float(result.loss), accuracy: Float(result.evaluation.accuracy),
            averagePrecision: result.averagePrecision.map(Float.init))
    }

    /// Returns the head, calibrated without validation photos.
    ///
    /// The model must not be lost if too few training photos can still be read: then only the readable ones calibrate the head.
    func calibratedHead(_ parameters: Parameters) throws -> DetectorHead {
        do {
            return try evaluator.calibrated(network, parameters, patches, []).head
        } catch let error as ImageError {
            // Only the first scan that finds too few photos throws.
            guard evaluator.photos.unreadable.problem != nil else { throw error }
            return try evaluator.calibrated(network, parameters, patches, []).head
        }
    }

    // MARK: State

    /// The detections in the photos, which a checkpoint stores.
    struct State: Codable {
        let mined: [DetectorPatches.Detection]
        let located: [DetectorPatches.Detection]

        private enum CodingKeys: String, CodingKey {
            case mined
            // The name in checkpoints of version 1.
            case located = "found"
        }

        /// Reads the state of a checkpoint.
        /// - Parameters:
        ///   - negatives: The number of photos without a logo, in which `mined` was found.
        ///   - positives: The number of photos of a logo, in which `located` was found.
        /// - Throws: `TrainingStateError` if the text is damaged or refers to other photos.
        static func decoded(_ text: String, negatives: Int, positives: Int) throws(TrainingStateError) -> State {
            guard let state = try? JSONDecoder().decode(State.self, from: Data(text.utf8)) else {
                throw TrainingStateError(reason: "the detections are damaged")
            }
            for (detections, count) in [(state.mined, negatives), (state.located, positives)] {
                if let detection = detections.first(where: { !(0..<count).contains($0.imageIndex) }) {
                    throw TrainingStateError(
                        reason: "a detection is in photo \(detection.imageIndex), but there are \(count) such photos")
                }
            }
            return state
        }
    }

    func encodeState() throws -> String? {
        try json(State(mined: patches.mined, located: patches.located))
    }

    func restoreState(_ text: String) throws {
        let state = try State.decoded(
            text, negatives: patches.negatives.count, positives: patches.positives.count)
        (patches.mined, patches.located) = (state.mined, state.located)
    }
}
