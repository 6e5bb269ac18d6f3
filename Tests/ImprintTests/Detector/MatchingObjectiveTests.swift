import Imprint
import ImprintCore
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Contrastive learning of local features.
@Suite struct MatchingObjectiveTests {
    private static func objective(seed: UInt64 = 1) throws -> MatchingObjective {
        var net = NetworkBuilder(name: "small", input: TensorShape(height: 64, width: 64, channels: 3))
        net.add(Convolution(outputChannels: 8, kernelSize: 7, stride: 4, padding: .same))
        net.add(Convolution(outputChannels: 10, kernelSize: 5, stride: 4, padding: .same))
        net.add(Convolution(outputChannels: 6, kernelSize: 1))
        net.add(Convolution(outputChannels: 8, kernelSize: 3, padding: .same))
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 2))
        net.add(Softmax())
        let network = try net.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: seed), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 64, height: 64))
        let artworks = try withTemporaryFolder { folder in
            try (0..<2).map { index in
                let file = folder.appending(path: "\(index).png")
                try ImageFile.write(logo(index), to: file)
                return ArtworkViews(try Artwork(contentsOf: file), cell: 16, seed: 3)
            }
        }
        let objective = try MatchingObjective(
            LocalFeatures(model), pairs: 2, artworks: artworks,
            backdrops: try Backdrops([], size: 320, seed: 1, workers: Workers(1)), effects: [], seed: 5,
            workers: Workers(2))
        objective.beginRound(0, at: 0, evaluationParameters: objective.plan.parameters)
        return objective
    }

    /// Returns a square logo: two bars, or four squares.
    private static func logo(_ index: Int) -> RasterImage {
        var image = RasterImage(width: 64, height: 64, channels: 4)
        for y in 0..<64 {
            for x in 0..<64 {
                let isFirst = index == 0 ? x < 32 : (x < 32) == (y < 32)
                let color: [UInt8] = isFirst ? [200, 20, 20, 255] : [20, 60, 200, 255]
                for channel in 0..<4 { image.samples[(y * 64 + x) * 4 + channel] = color[channel] }
            }
        }
        return image
    }

    @Test("The gradient of the loss agrees with finite differences") func gradient() throws {
        let objective = try Self.objective()
        let plan = objective.plan
        let step = try #require(try objective.trainingStep(round: 0, step: 0))
        plan.backward(count: step.count)
        let gradients = Array(plan.parameterGradients)
        #expect(step.count == 4 && step.loss > 0)
        for entry in plan.parameters.layout.entries where entry.name.hasSuffix(".weight") {
            let values = try #require(plan.parameters[entry.name])
            // The weights with the largest gradients; rounding errors hide the others.
            let indices = values.indices.sorted {
                abs(gradients[entry.offset + $0]) > abs(gradients[entry.offset + $1])
            }
            for index in indices.prefix(4) {
                try #require(abs(gradients[entry.offset + index]) > 0.02)
                func loss(_ change: Float) throws -> Float {
                    var changed = values
                    changed[index] += change
                    plan.parameters[entry.name] = changed
                    defer { plan.parameters[entry.name] = values }
                    return try #require(try objective.trainingStep(round: 0, step: 0)).loss
                }
                let difference: Float = 4e-3
                let slope = (try loss(difference) - loss(-difference)) / (2 * difference)
                let gradient = gradients[entry.offset + index]
                #expect(abs(slope - gradient) < 0.05 * abs(gradient), "\(entry.name)[\(index)]")
            }
        }
    }

    @Test("Training makes the features of a logo match its scene, and keeps the standardization") func training() throws
    {
        let objective = try Self.objective()
        let loop = try TrainingLoop(
            objective,
            options: TrainingLoop.Options(
                rounds: .epochs(.init(count: 12, steps: 1, learningRate: 0.01)),
                optimizer: .adamW(AdamW.Options(weightDecay: 0, gradientClipping: 1))))
        let scale = try #require(loop.parameters["standardized.scale"])
        var losses: [Float] = []
        _ = try loop.run(onEvent: { event in
            if case .round(let metrics, _) = event { losses.append(metrics.loss) }
        })
        #expect(losses.count == 12 && losses.suffix(3).reduce(0, +) < 0.9 * losses.prefix(3).reduce(0, +), "\(losses)")
        #expect(loop.parameters["standardized.scale"] == scale)
    }

    @Test("A round ends when the logos are used up") func end() throws {
        #expect(try Self.objective().trainingStep(round: 0, step: 1) == nil)
    }
}
