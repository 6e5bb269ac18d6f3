internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The state of training LogoSpot that goes from step to step.
final class DetectorSession {
    /// The decay of the exponential moving average.
    static let averageDecay: Float = 0.995

    let network: Network
    let phases: [DetectorPhase]
    let patches: DetectorPatches
    /// The exponential moving average of the parameters, which is what looks at pictures.
    let average: Parameters
    /// The parameters of the best phase.
    let best: Parameters
    private(set) var progress: TrainingProgress
    /// Whether the best phase has to be measured again: photos vanished before the run was resumed, and may be back.
    private(set) var comparesBestAgain = false
    private let parameters: Parameters
    private let plan: ExecutionPlan
    private let loss: HeatMapLoss
    private var optimizer: AdamW
    private let lost: LostPhotos
    private let workers: Workers
    private var memory: [UInt8]

    init(
        patches: DetectorPatches, phases: [DetectorPhase], lost: LostPhotos, seed: UInt64, workers: Workers
    ) throws {
        self.patches = patches
        self.lost = lost
        self.phases = phases
        self.workers = workers
        network = try Network.logoDetector(marks: patches.compositors.count)
        parameters = try Parameters(network, seed: seed)
        // At first the network sees no mark anywhere.
        parameters["head.bias"] = patches.compositors.map { _ in -2 }
        average = try parameters.copy()
        best = try parameters.copy()
        plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: DetectorPhase.batchSize, mode: .training, workers: workers, seed: seed
            )
            .limitingThreads(for: network))
        loss = HeatMapLoss(network.output)
        optimizer = try Self.optimizer(phases[0], parameters.layout)
        progress = TrainingProgress(learningRate: phases[0].learningRate, plannedEpochs: phases.count)
        memory = Array(
            repeating: 0, count: DetectorPhase.batchSize * DetectorHead.patchSide * DetectorHead.patchSide * 3)
    }

    private static func optimizer(_ phase: DetectorPhase, _ layout: ParameterLayout) throws -> AdamW {
        try AdamW(
            AdamW.Options(
                learningRate: phase.learningRate, beta1: 0.9, beta2: 0.99, weightDecay: 0.03, gradientClipping: 2),
            for: layout)
    }

    /// The phase that is being trained.
    var phase: DetectorPhase { phases[progress.history.count] }

    /// The numbers of the optimizer; each phase has a rate of its own.
    var optimizerOptions: AdamW.Options { optimizer.options }

    /// How many steps have been taken in all phases.
    private var step: Int { phases.prefix(progress.history.count).reduce(0) { $0 + $1.steps } + progress.batch }

    /// Takes a step.
    func trainBatch() throws {
        let targets = try memory.withUnsafeMutableBufferPointer { memory in
            let targets = try patches.fill(memory, of: phase, step: step)
            let count = memory.count / DetectorPhase.batchSize
            let input = plan.input
            workers.parallelForEach(DetectorPhase.batchSize) { patch, _ in
                Preprocessing.logoDetector.normalize(
                    UnsafeBufferPointer(rebasing: memory[(patch * count)..<((patch + 1) * count)]),
                    into: UnsafeMutableBufferPointer(rebasing: input[(patch * count)..<((patch + 1) * count)]))
            }
            return targets
        }
        plan.forward(count: DetectorPhase.batchSize)
        let result = loss(logits: plan.output, targets: targets, gradient: plan.outputGradient)
        guard result.loss.isFinite else {
            throw ImprintError.diverged(epoch: progress.history.count + 1, learningRate: phase.learningRate)
        }
        plan.backward(count: DetectorPhase.batchSize)
        let schedule = LearningRateSchedule(.cosine(final: 0.01), warmUpSteps: min(100, phase.steps / 10))
        optimizer.step(plan, factor: schedule.factor(at: progress.batch, of: phase.steps))
        let number = Float(progress.batch)
        average.move(towards: parameters, by: 1 - min(Self.averageDecay, (1 + number) / (10 + number)))
        progress.sum.add(loss: result.loss, correct: result.correct, count: DetectorPhase.batchSize)
        progress.batch += 1
        progress.passes = plan.passCount
    }

    /// Begins the phase: looks through the photos for what it needs.
    func beginPhase() throws {
        if phase.mined > 0 { patches.mined = try mine() }
        if phase.found > 0 { patches.found = try find() }
        optimizer = try Self.optimizer(phase, parameters.layout)
        average.load(from: parameters)
    }

    /// Takes the phase down, and keeps its parameters where none were better.
    func finishPhase(validation: (loss: Float, accuracy: Float)?) -> EpochMetrics {
        let metrics = EpochMetrics(
            epoch: progress.history.count + 1, loss: progress.sum.meanLoss, accuracy: progress.sum.accuracy,
            validationLoss: validation?.loss, validationAccuracy: validation?.accuracy,
            learningRate: phase.learningRate)
        if progress.finishEpoch(metrics) { best.load(from: average) }
        parameters.load(from: average)
        return metrics
    }

    /// Takes the validation loss of the best phase on the photos that are left, for comparison with the phases that follow.
    func compareBest(loss: Float?) {
        progress.bestLoss = loss
        comparesBestAgain = false
    }

    func add(seconds: Double) { progress.secondsInEpoch += seconds }

    /// Photos that were lost since it was asked last; with them, no other run gives the same model.
    func takeLost() -> [SkippedImage] {
        let new = lost.takeNew()
        if !new.isEmpty { progress.losePhoto() }
        return new
    }

    // MARK: Looking at pictures

    /// The six places of each photo without a mark that look most like each mark; what looks like several counts once.
    private func mine() throws -> [DetectorPatches.Finding] {
        let limit = 6
        return try scan(patches.negatives, average, peaks: limit).enumerated().flatMap { place, scans in
            guard let scans else { return [DetectorPatches.Finding]() }
            return PyramidScanner.distinct(scans.flatMap(\.peaks), limit * scans.count).map {
                DetectorPatches.Finding(picture: place, peak: $0)
            }
        }
    }

    /// The place of each photo with a mark that looks most like this mark.
    private func find() throws -> [DetectorPatches.Finding] {
        let scans = try scan(patches.positives.map(\.picture), average, peaks: 1)
        return scans.indices.flatMap { place in
            scans[place]?[patches.positives[place].mark].peaks.map { DetectorPatches.Finding(picture: place, peak: $0) }
                ?? []
        }
    }

    /// Looks at pictures with some parameters; the threads share the pictures.
    /// - Returns: What each shows of each mark; nil if it is a photo that can no longer be read.
    func scan(_ pictures: [PatchSource], _ parameters: Parameters, peaks: Int) throws -> [[PyramidScanner.Scan]?] {
        defer { SystemMemory.returnFreed() }
        // Shape by shape, so that each is planned for once.
        let order = pictures.indices.sorted {
            (pictures[$0].width, pictures[$0].height, $0) < (pictures[$1].width, pictures[$1].height, $1)
        }
        let parts = workers.parallelMap(workers.count) { worker in
            Result { () -> [(Int, [PyramidScanner.Scan]?)] in
                let scanner = PyramidScanner(
                    network, parameters: parameters, preprocessing: .logoDetector, detector: .logoDetector(marks: []),
                    shapes: 1
                )
                return try stride(from: worker, to: order.count, by: workers.count).map { turn in
                    let place = order[turn]
                    return (place, try image(of: pictures[place]).map { try scanner.scan($0, peaks: peaks) })
                }
            }
        }
        return try parts.flatMap { try $0.get() }.sorted { $0.0 < $1.0 }.map(\.1)
    }

    /// The picture, or nil if it is a photo that is lost.
    private func image(of picture: PatchSource) throws(ImageError) -> RasterImage? {
        if lost.reason(for: picture) != nil { return nil }
        do throws(ImageError) {
            return try picture.image()
        } catch {
            try lost.add(picture, error)
            return nil
        }
    }

    // MARK: Going on

    private struct Findings: Codable {
        let mined: [DetectorPatches.Finding]
        let found: [DetectorPatches.Finding]
    }

    /// All that the run needs to go on from here.
    func checkpoint(
        labels: [String], settings: [String: String], images: Checkpoint.Images, seconds: Double, isFinished: Bool
    ) throws -> Checkpoint {
        var progress = progress
        progress.seconds = seconds
        progress.isFinished = isFinished
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let findings = try encoder.encode(Findings(mined: patches.mined, found: patches.found))
        return Checkpoint(
            network: network, labels: labels, settings: settings, images: images, progress: progress,
            findings: String(decoding: findings, as: UTF8.self),
            numbers: [
                .parameters: parameters.withValues { Array($0) }, .average: average.withValues { Array($0) },
                .best: best.withValues { Array($0) }, .velocities: Array(optimizer.state),
            ])
    }

    /// Goes on from a checkpoint; with other images, the phase begins again.
    func restore(_ checkpoint: Checkpoint, sameImages: Bool) throws {
        progress = checkpoint.progress
        progress.isFinished = false
        for (kind, target) in [(Checkpoint.Numbers.parameters, parameters), (.average, average), (.best, best)] {
            target.withValues { _ = $0.update(from: checkpoint.numbers[kind] ?? []) }
        }
        optimizer = try Self.optimizer(phases[min(progress.history.count, phases.count - 1)], parameters.layout)
        if progress.history.count < phases.count {
            _ = optimizer.state.update(from: checkpoint.numbers[.velocities] ?? [])
            optimizer.stepCount = progress.batch
        }
        plan.passCount = progress.passes
        defer { progress.hasLostPhotos = nil }
        guard sameImages else { return progress.changeImages() }
        // The steps taken so far stay. The loss of the best phase has to be that on the photos that are there now.
        comparesBestAgain = progress.hasLostPhotos == true && progress.best != nil
        if let text = checkpoint.findings {
            let findings = try JSONDecoder().decode(Findings.self, from: Data(text.utf8))
            (patches.mined, patches.found) = (findings.mined, findings.found)
        }
    }
}
