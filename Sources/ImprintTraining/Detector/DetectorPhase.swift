/// A phase of training LogoSpot: how many steps, how fast, and of what its batches consist.
///
/// First the network learns the mark from composites. Then it looks through the photos without the mark, and what it took for one
/// becomes a part of its batches; then it looks for the mark in the photos that show it, which join in; then once more.
package struct DetectorPhase: Codable, Hashable, Sendable {
    /// How many patches make a step.
    static let batchSize = 64

    var steps: Int
    var learningRate: Float
    /// The shares of composites with the mark, of hard negatives, of windows anywhere in photos without it, of windows where the network
    /// was wrong about such photos, and of windows around the mark in photos that show it.
    var composites: Float
    var nearMisses: Float
    var anywhere: Float
    var mined: Float
    var found: Float

    /// The phases for data with photos that show the mark, or without.
    /// - Parameter scale: A factor on the steps.
    static func all(hasPositives: Bool, scale: Double) -> [DetectorPhase] {
        let first = DetectorPhase(
            steps: 3000, learningRate: 3e-3, composites: 0.4, nearMisses: 0.3, anywhere: 0.3, mined: 0, found: 0)
        let mining = DetectorPhase(
            steps: 2500, learningRate: 3e-3, composites: 0.4, nearMisses: 0.22, anywhere: 0.1, mined: 0.28, found: 0)
        let finding = DetectorPhase(
            steps: 1800, learningRate: 2.5e-3, composites: 0.25, nearMisses: 0.18, anywhere: 0.1, mined: 0.27,
            found: 0.2)
        var phases = [first, mining] + (hasPositives ? [finding, finding] : [mining])
        if hasPositives { (phases[3].steps, phases[3].learningRate) = (2700, 3e-3) }
        for place in phases.indices { phases[place].steps = max(Int(Double(phases[place].steps) * scale), 1) }
        return phases
    }
}
