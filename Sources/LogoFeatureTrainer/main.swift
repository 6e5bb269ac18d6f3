internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis
internal import ImprintTraining

/// Trains the logo features that come with Imprint; docs/matching.md has the commands.
struct LogoFeatureTrainer: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "LogoFeatureTrainer", abstract: "Train features that find logos by their artwork.")

    @Argument(help: "The model file of the base model to fine-tune.")
    var base: String

    @Argument(help: "The folder of marks: images with transparency.")
    var marks: String

    @Argument(help: "The folder of photos, for the backgrounds of scenes.")
    var photos: String

    @Option(help: "The model file to write after each epoch, with parameters in float16.")
    var output: String

    @Option(help: "The number of epochs.")
    var epochs = 20

    @Option(help: "The number of marks to use, chosen at random; each takes about 7 MB of memory.")
    var count = 1800

    @Option(help: "The number of marks of a batch.")
    var batchSize = 24

    @Option(help: "The peak learning rate of AdamW, with cosine decay.")
    var learningRate: Float = 1e-4

    @Option(help: "The weight of the fine-tuned parameters in the result; the rest is that of the base model.")
    var share: Float = 0.3

    @Option(help: "The random seed.")
    var seed: UInt64 = 1

    /// The side of the scenes that logos are drawn in.
    private static let sceneSide = 224
    func run() throws {
        let workers = Workers(Processors.count)
        let photoFiles = try ImageFolder.images(in: URL(filePath: photos))
        let backdrops = try Backdrops(photoFiles, size: Self.sceneSide, seed: seed, workers: workers)
        let model = try ModelFile(contentsOf: URL(filePath: base))
        let features = try LocalFeatures(model)

        let markFiles = try ImageFolder.images(in: URL(filePath: marks))
        var random = RandomStream(seed: seed, "marks")
        let chosen = random.permutation(of: markFiles.count).prefix(count).map { markFiles[$0] }
        let artworks = try workers.parallelMap(chosen.count) { index in
            ArtworkViews(try Artwork(contentsOf: chosen[index]), cell: LocalFeatures.stride, seed: UInt64(index))
        }
        print("\(artworks.count) marks, \(backdrops.count) photos")

        let objective = try MatchingObjective(
            features, pairs: batchSize, artworks: artworks, backdrops: backdrops, seed: seed, workers: workers)
        let steps = artworks.count / batchSize
        let loop = try TrainingLoop(
            objective,
            options: TrainingLoop.Options(
                rounds: .epochs(.init(count: epochs, steps: steps, learningRate: learningRate)),
                optimizer: .adamW(AdamW.Options(weightDecay: 0, gradientClipping: 1)), emaDecay: 0.998))
        _ = try loop.run(onEvent: { event in
            guard case .round(let metrics, let seconds) = event else { return }
            print(
                "epoch \(metrics.epoch): loss \(metrics.loss), \(metrics.accuracy) of the logos score higher than every negative, \(Int(seconds)) s"
            )
            fflush(nil)
            let mixed = try LocalFeatures(model)
            mixed.parameters.move(towards: loop.evaluationParameters, by: share)
            try mixed.standardize()
            try mixed.model(precision: .float16).write(to: URL(filePath: output))
        })
    }
}

LogoFeatureTrainer.main()
