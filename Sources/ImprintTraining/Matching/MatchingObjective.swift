package import Imprint
package import ImprintCore
internal import ImprintImages
package import ImprintNetwork
package import ImprintSynthesis

/// Contrastive learning of the features that find logos from their artwork (`MatchingLoss`).
///
/// A batch has pairs of images: a part of a logo on a plain background, and the same part at the same scale in a composite.
package final class MatchingObjective: TrainingObjective {
    package let plan: ExecutionPlan
    private let artworks: [ArtworkViews]
    private let backdrops: Backdrops
    private let preprocessing: Preprocessing
    private let loss: MatchingLoss
    private let pairCount: Int
    private let effects: SceneEffects
    private let seed: UInt64
    private let workers: Workers
    /// The logos of the round, in random order.
    private var order: [Int] = []

    /// The height and width of the images, in pixels.
    package static let side = 160
    /// The scale of logos in composites, relative to their views.
    private static let scale: ClosedRange<Float> = 0.8...1.2
    /// The largest distance of a part from the centre of its composite, in pixels.
    private static let shift: Float = 16

    /// Creates the objective.
    /// - Parameters:
    ///   - features: The features to start from.
    ///   - pairs: The number of logos in a batch.
    ///   - artworks: The logos to learn from, at least `pairs`.
    ///   - backdrops: The backgrounds of composites, larger than `side`.
    ///   - effects: The effects of composites.
    package init(
        _ features: LocalFeatures, pairs: Int, artworks: [ArtworkViews], backdrops: Backdrops,
        effects: SceneEffects = .photographic, seed: UInt64, workers: Workers
    ) throws {
        let input = TensorShape(height: Self.side, width: Self.side, channels: 3)
        let network = try Network(name: features.network.name, input: input, nodes: features.network.nodes)
            .withFrozenStatistics()
        let parameters = try Parameters(ParameterLayout(network))
        parameters.load(from: features.parameters)
        plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: 2 * pairs, mode: .training, workers: workers, frozen: [LocalFeatures.standardization]))
        loss = MatchingLoss(channels: features.channels, side: Self.side / LocalFeatures.stride)
        preprocessing = features.preprocessing
        self.artworks = artworks
        self.backdrops = backdrops
        self.effects = effects
        self.seed = seed
        self.workers = workers
        pairCount = pairs
    }

    package func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) {
        var random = RandomStream(seed: seed, "matching order", round)
        order = random.permutation(of: artworks.count)
    }

    package func trainingStep(round: Int, step: Int) throws -> StepLoss? {
        var step = step
        while (step + 1) * pairCount <= order.count {
            let first = step * pairCount
            let pairs = try workers.parallelMap(pairCount) { index in
                var random = RandomStream(seed: seed, "matching pair", round, first + index)
                return try pair(artworks[order[first + index]], &random)
            }.compactMap { $0 }
            // Possibly, all logos are too large.
            guard !pairs.isEmpty else {
                step += 1
                continue
            }
            let count = 2 * pairs.count
            let imageSize = plan.network.input.count
            for (index, image) in (pairs.map(\.template) + pairs.map(\.scene)).enumerated() {
                let target = plan.input[(index * imageSize)..<((index + 1) * imageSize)]
                image.samples.withUnsafeBufferPointer {
                    preprocessing.normalize($0, into: UnsafeMutableBufferPointer(rebasing: target))
                }
            }
            plan.forward(count: count)
            let values = count * plan.network.output.count
            let result = try loss(
                pairs.map(\.window), features: plan.output.first(values), gradient: plan.outputGradient.first(values))
            // A pair is two images.
            return StepLoss(loss: result.loss, correct: 2 * result.correct, count: count, step: step)
        }
        return nil
    }

    private struct Pair {
        var template: RasterImage
        var scene: RasterImage
        var window: MatchingLoss.Window
    }

    /// Draws a random part of a logo twice; returns nil if it does not fit into the images.
    private func pair(_ artwork: ArtworkViews, _ random: inout RandomStream) throws -> Pair? {
        let stride = LocalFeatures.stride
        let limit = Self.side - 2 * stride
        let parts = artwork.parts.filter { $0.windowWidth <= limit && $0.windowHeight <= limit }
        guard !parts.isEmpty else { return nil }
        let part = parts[random.index(below: parts.count)]
        guard
            let scene = try artwork.scene(
                of: part, backdrops: backdrops, side: Self.side, scale: Self.scale, shift: Self.shift,
                effects: effects, seed: random.next())
        else { return nil }
        let cells = Self.side / stride
        let size = Size2D(height: part.windowHeight / stride, width: part.windowWidth / stride)
        /// Returns the first position of the window that is nearest to a centre in pixels.
        func first(_ center: Float, _ length: Int) -> Int {
            min(max(Int((center / Float(stride) - Float(length) / 2).rounded()), 0), cells - length)
        }
        let window = MatchingLoss.Window(
            size: size, row: (cells - size.height) / 2, column: (cells - size.width) / 2,
            sceneRow: first(scene.y, size.height), sceneColumn: first(scene.x, size.width))
        let center = (
            x: Float(window.column * stride + part.windowWidth / 2),
            y: Float(window.row * stride + part.windowHeight / 2)
        )
        let template = artwork.view(
            of: part, index: random.index(below: ArtworkViews.count), width: Self.side, height: Self.side,
            center: center)
        return Pair(template: template, scene: scene.image, window: window)
    }
}
