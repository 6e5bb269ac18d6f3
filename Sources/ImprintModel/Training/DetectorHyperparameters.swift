internal import Foundation
public import ImprintImages
public import ImprintNetwork

/// The hyperparameters of training a logo detector.
///
/// The same struct is part of the trainer's configuration, the model file's training record, the checkpoint's fingerprint and the report.
///
/// To add a hyperparameter, add a property here with its range in `problem`, an option in TrainDetectorCommand.swift, and the code that uses it.
/// The model file, the checkpoint and the report then contain it.
public struct DetectorHyperparameters: Codable, Hashable, Sendable {
    /// The length of training, 1…100,000: each standard phase takes `epochs` / 20 times its number of steps; see `DetectorPhase`.
    ///
    /// For several logos, the number of steps is also multiplied by the sixth root of their number. Unlike the epochs of a classifier,
    /// these are not passes over the photos, because each batch is sampled from composites and photos. The value has no effect if `phases`
    /// is set.
    public var epochs = 20
    /// The phases, 1…1,000 of them; nil for the standard phases, which depend on the kinds of training data.
    public var phases: [DetectorPhase]?
    /// The number of patches per step, 1…65,536.
    public var batchSize = 64
    /// The options of the optimizer; each phase starts with a new optimizer state.
    public var optimizer = AdamW.Options(beta1: 0.9, beta2: 0.99, weightDecay: 0.03, gradientClipping: 2)
    /// The decay of the exponential moving average (EMA) of the parameters, 0 < x < 1.
    public var emaDecay: Float = 0.995
    /// The number of composites of each kind that are held in memory, 1…100,000.
    package var poolSize = 600
    /// The number of training photos whose features the model keeps for personalization, 0…65,536; see `Rehearsal`.
    public var rehearsalImages = 512
    /// The rule for the size of the validation set.
    ///
    /// The automatic rule is 15 % of the photos, because calibration needs more photos than early stopping.
    public var validation = ValidationRule.automatic
    /// Whether near-duplicates and bursts stay together in the dataset split.
    ///
    /// Near-duplicates are photos that are almost the same image. A burst has photos of one scene that were taken within seconds.
    public var keepsGroupsTogether = true
    /// The random seed.
    public var seed: UInt64 = 0

    /// Creates the default hyperparameters.
    public init() {}

    /// Returns the phases of training.
    /// - Parameters:
    ///   - hasLogoPhotos: Whether some training photos show a logo at an unknown position.
    ///   - hasBoxes: Whether there are photos with known boxes.
    ///   - hasArtwork: Whether there is artwork for composites.
    ///   - logos: The number of logos.
    package func phases(
        hasLogoPhotos: Bool, hasBoxes: Bool = false, hasArtwork: Bool = true, logos: Int
    ) -> [DetectorPhase] {
        phases
            ?? DetectorPhase.standard(
                hasLogoPhotos: hasLogoPhotos, hasBoxes: hasBoxes, hasArtwork: hasArtwork,
                scale: Double(epochs) / 20 * Self.scale(logos: logos))
    }

    /// Returns the factor on the number of steps for several logos: the sixth root of their number.
    ///
    /// It limits the time: with the fourth root, training ten logos took longer than 15 minutes on two cores.
    package static func scale(logos: Int) -> Double { cbrt(Double(logos)).squareRoot() }
}

extension DetectorHyperparameters {
    /// The first value that is out of range; nil if all are in range.
    package var problem: RangeCheck? {
        RangeCheck.firstFailure(of: [
            .init("epochs", epochs, in: 1...100_000), .init("batchSize", batchSize, in: 1...65536),
            .init("emaDecay", emaDecay, emaDecay > 0 && emaDecay < 1, "more than 0 and less than 1"),
            .init("rehearsalImages", rehearsalImages, in: 0...65536),
            .init("phases", phases?.count ?? 1, in: 1...1000),
            .init("poolSize", poolSize, in: 1...100_000),
            .init(validation),
        ]) ?? optimizer.problem ?? phases?.lazy.compactMap(\.problem).first
    }
}

extension AdamW.Options {
    /// The first value that is out of range; nil if all are in range.
    fileprivate var problem: RangeCheck? {
        .firstFailure(of: [
            .init("beta1", beta1, (0..<1).contains(beta1), "at least 0 and less than 1"),
            .init("beta2", beta2, (0..<1).contains(beta2), "at least 0 and less than 1"),
            .positive("epsilon", epsilon), .nonNegative("weightDecay", weightDecay),
            .positive("gradientClipping", gradientClipping),
        ])
    }
}

extension DetectorPhase {
    /// The first value that is out of range; nil if all are in range.
    fileprivate var problem: RangeCheck? {
        let sum = composites + hardNegatives + background + mined + located
        return .firstFailure(of: [
            .init("steps", steps, in: 1...100_000_000),
            .nonNegative("learningRate", learningRate),
            .init("composites", composites, in: 0...1), .init("hardNegatives", hardNegatives, in: 0...1),
            .init("background", background, in: 0...1), .init("mined", mined, in: 0...1),
            .init("located", located, in: 0...1),
            .init("phases", sum, sum > 0, "shares with a sum of more than 0"),
        ])
    }
}

/// A phase of training a logo detector: its steps, its learning rate, and the sampling mix of its batches.
///
/// The standard phases are:
///
/// 1. The network learns the logo from composites.
/// 2. The network scans the photos without the logo, and its false positives are added to the batches (hard-negative mining).
/// 3. The network locates the logo in the photos that show it, and crops around the logo are added to the batches.
/// 4. Phase 3 is repeated.
///
/// Without photos of the logo, a repetition of phase 2 replaces phases 3 and 4. If there are photos with boxes, the batches of all phases
/// contain crops around the objects; without artwork, these crops replace the composites. If there are also photos of the logo without
/// boxes, the network locates the logo in them before phase 2, too.
public struct DetectorPhase: Codable, Hashable, Sendable {
    /// The number of steps, 1…100,000,000.
    public var steps: Int
    /// The peak learning rate, ≥ 0.
    public var learningRate: Float
    /// The share of composites with a logo, 0…1.
    ///
    /// All shares are in this range, and relative to their sum, which is more than 0.
    public var composites: Float
    /// The share of composites with a hard negative, which looks like the logo.
    public var hardNegatives: Float
    /// The share of random crops of photos without a logo.
    public var background: Float
    /// The share of mined hard negatives: crops of photos without a logo in which the network detected one.
    public var mined: Float
    /// The share of crops around the logo in photos that show it.
    ///
    /// In the first phase, these are only crops around the objects of photos with boxes, because the network cannot locate a logo yet.
    public var located: Float

    /// Creates a phase; the batches are divided in proportion to the shares.
    public init(
        steps: Int, learningRate: Float, composites: Float, hardNegatives: Float, background: Float, mined: Float,
        located: Float
    ) {
        self.steps = steps
        self.learningRate = learningRate
        self.composites = composites
        self.hardNegatives = hardNegatives
        self.background = background
        self.mined = mined
        self.located = located
    }

    /// Returns the standard phases.
    /// - Parameters:
    ///   - hasLogoPhotos: Whether some training photos show a logo at an unknown position.
    ///   - hasBoxes: Whether there are photos with known boxes.
    ///   - hasArtwork: Whether there is artwork for composites.
    ///   - scale: A factor on the number of steps.
    package static func standard(
        hasLogoPhotos: Bool, hasBoxes: Bool = false, hasArtwork: Bool = true, scale: Double
    ) -> [DetectorPhase] {
        let composites = DetectorPhase(
            steps: 3000, learningRate: 3e-3, composites: 0.4, hardNegatives: 0.3, background: 0.3, mined: 0, located: 0)
        let mining = DetectorPhase(
            steps: 2500, learningRate: 3e-3, composites: 0.4, hardNegatives: 0.22, background: 0.1, mined: 0.28,
            located: 0)
        let locating = DetectorPhase(
            steps: 1800, learningRate: 2.5e-3, composites: 0.25, hardNegatives: 0.18, background: 0.1, mined: 0.27,
            located: 0.2)
        var phases = [composites, mining] + (hasLogoPhotos ? [locating, locating] : [mining])
        if hasLogoPhotos { (phases[3].steps, phases[3].learningRate) = (2700, 3e-3) }
        for index in phases.indices where hasBoxes {
            let shared = phases[index].composites + phases[index].hardNegatives
            if !hasArtwork {
                phases[index].located += shared
                (phases[index].composites, phases[index].hardNegatives) = (0, 0)
            } else if phases[index].located == 0 {
                phases[index].located = 0.2
                phases[index].composites *= 1 - 0.2 / shared
                phases[index].hardNegatives *= 1 - 0.2 / shared
            }
        }
        for index in phases.indices { phases[index].steps = max(Int(Double(phases[index].steps) * scale), 1) }
        return phases
    }

    /// The learning-rate schedule of the phase.
    package var schedule: LearningRateSchedule {
        LearningRateSchedule(.cosine(final: 0.01), warmUpSteps: min(100, steps / 10))
    }
}
