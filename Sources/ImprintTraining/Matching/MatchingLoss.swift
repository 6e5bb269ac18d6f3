internal import Foundation
internal import ImprintNetwork

/// The contrastive loss of local features: logos on plain backgrounds should match their own scenes, and no others.
///
/// A batch has N logos, each drawn on a plain background (the template i) and in a scene (j). sᵢⱼₚ is the normalized correlation of template i
/// with the window of scene j at position p, averaged over the depths of the features, as in `TemplateMatcher`. The loss is the mean over i of
/// −ln(exp(sᵢᵢ / τ) / (exp(sᵢᵢ / τ) + S)) with S = Σ exp(sₖⱼₚ / τ) over all templates k, scenes j ≠ k and positions p, and sᵢᵢ at the true
/// position. All templates share S, because a detector has one threshold for all logos.
///
/// It is InfoNCE (van den Oord et al., "Representation learning with contrastive predictive coding", 2018) with shared negatives.
struct MatchingLoss {
    /// The window of a logo in its template and in its scene, in positions of the feature maps.
    struct Window: Hashable {
        /// The height and width, which are the same in both.
        var size: Size2D
        /// The first row and column in the template.
        var row: Int
        var column: Int
        /// The first row and column in the scene.
        var sceneRow: Int
        var sceneColumn: Int
    }

    /// The temperature τ.
    private static let temperature = 0.05
    /// The loss ignores gradients of correlations below this fraction of the largest one.
    private static let negligible: Float = 1e-3

    /// The number of channels of each depth.
    let channels: [Int]
    /// The number of rows and of columns of the feature maps.
    let side: Int

    /// The number of channels of all depths.
    private var total: Int { channels.reduce(0, +) }

    /// The correlation of a template with a window of a scene.
    private struct Correlation {
        var template: Int
        var scene: Int
        var row: Int
        var column: Int
        /// The correlation at each depth.
        var depths: [Float]
        /// The mean over the depths.
        var score: Float
        /// The derivative of the loss with respect to `score`.
        var gradient: Float = 0

        var isPositive: Bool { template == scene }
    }

    /// Computes the loss and its gradient.
    /// - Parameters:
    ///   - windows: The window of each logo.
    ///   - features: The features of the templates, then those of the scenes: [2N, side, side, channels].
    ///   - gradient: Receives the gradient, in the same layout.
    /// - Returns: The loss, and the number of logos whose score is higher than that of every negative.
    /// - Throws: `NetworkError.outOfMemory`.
    func callAsFunction(
        _ windows: [Window], features: UnsafeMutableBufferPointer<Float>, gradient: UnsafeMutableBufferPointer<Float>
    ) throws(NetworkError) -> (loss: Float, correct: Int) {
        let maps = (0..<(2 * windows.count)).map { image in channels.indices.map { map(of: image, $0, features) } }
        var correlations = try correlations(windows, maps)
        let result = differentiate(&correlations, count: windows.count)
        gradient.update(repeating: 0)
        let limit = (correlations.map { abs($0.gradient) }.max() ?? 0) * Self.negligible
        for correlation in correlations where abs(correlation.gradient) > limit {
            addGradient(of: correlation, windows, maps, to: gradient)
        }
        return result
    }

    /// Returns the features of an image at one depth, [side, side, channels].
    private func map(of image: Int, _ depth: Int, _ features: UnsafeMutableBufferPointer<Float>) -> [Float] {
        let first = channels[..<depth].reduce(0, +)
        return (0..<(side * side)).flatMap { position in
            let start = (image * side * side + position) * total + first
            return features[start..<(start + channels[depth])]
        }
    }

    /// Computes the correlations of all templates with all windows inside the scenes of other logos, and with their own.
    private func correlations(_ windows: [Window], _ maps: [[[Float]]]) throws(NetworkError) -> [Correlation] {
        let scenes = windows.indices.map { scene in
            maps[windows.count + scene].map { NormalizedCorrelation.Map($0, height: side, width: side) }
        }
        var correlations: [Correlation] = []
        for size in Set(windows.map(\.size)).sorted(by: { ($0.height, $0.width) < ($1.height, $1.width) }) {
            let members = windows.indices.filter { windows[$0].size == size }
            let depths = channels.indices.map { depth in
                NormalizedCorrelation(
                    window: size, channels: channels[depth],
                    templates: members.map { template(windows[$0], maps[$0][depth], channels[depth]) })
            }
            let padding = depths[0].padding
            let result = depths[0].resultSize(height: side, width: side)
            for scene in windows.indices {
                var values: [[Float]] = []
                for (depth, correlation) in depths.enumerated() {
                    values.append(try correlation(scenes[scene][depth], windows: 0..<(result.rows * result.columns)))
                }
                for row in 0...(side - size.height) {
                    for column in 0...(side - size.width) {
                        let position = (row + padding.height) * result.columns + column + padding.width
                        for (index, member) in members.enumerated() {
                            let window = windows[member]
                            if member == scene && (row, column) != (window.sceneRow, window.sceneColumn) { continue }
                            let depths = values.map { $0[position * members.count + index] }
                            correlations.append(
                                Correlation(
                                    template: member, scene: scene, row: row, column: column, depths: depths,
                                    score: depths.reduce(0, +) / Float(depths.count)))
                        }
                    }
                }
            }
        }
        return correlations
    }

    private func template(_ window: Window, _ map: [Float], _ channels: Int) -> [Float] {
        (window.row..<(window.row + window.size.height)).flatMap { row in
            let start = (row * side + window.column) * channels
            return map[start..<(start + window.size.width * channels)]
        }
    }

    /// Computes the loss and its derivatives with respect to the scores.
    private func differentiate(_ correlations: inout [Correlation], count: Int) -> (loss: Float, correct: Int) {
        func exponential(_ correlation: Correlation) -> Double { exp(Double(correlation.score) / Self.temperature) }
        let negatives = correlations.filter { !$0.isPositive }
        let sum = negatives.reduce(0) { $0 + exponential($1) }
        let highest = negatives.map(\.score).max() ?? -1
        let scale = 1 / (Self.temperature * Double(count))
        var (loss, inverseSum, correct) = (0.0, 0.0, 0)
        for index in correlations.indices where correlations[index].isPositive {
            let own = exponential(correlations[index])
            loss += log((own + sum) / own)
            inverseSum += 1 / (own + sum)
            correlations[index].gradient = Float(-sum / (own + sum) * scale)
            if correlations[index].score > highest { correct += 1 }
        }
        for index in correlations.indices where !correlations[index].isPositive {
            correlations[index].gradient = Float(exponential(correlations[index]) * inverseSum * scale)
        }
        return (Float(loss / Double(count)), correct)
    }

    /// Adds the gradient of a correlation s = ⟨t, x⟩ / (‖t‖ ‖x‖): ∂s/∂x = t / (‖t‖ ‖x‖) − s x / ‖x‖², and likewise for t.
    private func addGradient(
        of correlation: Correlation, _ windows: [Window], _ maps: [[[Float]]],
        to gradient: UnsafeMutableBufferPointer<Float>
    ) {
        let window = windows[correlation.template]
        let sceneImage = windows.count + correlation.scene
        /// The positions of the template's window and of the scene's window in their maps.
        let positions = (0..<window.size.height).flatMap { y in
            (0..<window.size.width).map { x in
                (
                    template: (window.row + y) * side + window.column + x,
                    scene: (correlation.row + y) * side + correlation.column + x
                )
            }
        }
        var first = 0
        for (depth, count) in channels.enumerated() {
            defer { first += count }
            maps[correlation.template][depth].withUnsafeBufferPointer { template in
                maps[sceneImage][depth].withUnsafeBufferPointer { scene in
                    var (templateEnergy, sceneEnergy): (Float, Float) = (0, 0)
                    for position in positions {
                        for channel in 0..<count {
                            let (t, x) = (
                                template[position.template * count + channel], scene[position.scene * count + channel]
                            )
                            templateEnergy += t * t
                            sceneEnergy += x * x
                        }
                    }
                    guard templateEnergy > 0 && sceneEnergy > 0 else { return }
                    let weight = correlation.gradient / Float(channels.count)
                    let cross = weight / (templateEnergy * sceneEnergy).squareRoot()
                    let ownTemplate = weight * correlation.depths[depth] / templateEnergy
                    let ownScene = weight * correlation.depths[depth] / sceneEnergy
                    for position in positions {
                        let templateStart = (correlation.template * side * side + position.template) * total + first
                        let sceneStart = (sceneImage * side * side + position.scene) * total + first
                        for channel in 0..<count {
                            let (t, x) = (
                                template[position.template * count + channel], scene[position.scene * count + channel]
                            )
                            gradient[templateStart + channel] += cross * x - ownTemplate * t
                            gradient[sceneStart + channel] += cross * t - ownScene * x
                        }
                    }
                }
            }
        }
    }
}
