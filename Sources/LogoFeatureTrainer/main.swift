internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintSynthesis
internal import ImprintTraining

/// Trains the logo features that come with Imprint; docs/explanation/matching.md has the commands.
struct LogoFeatureTrainer: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "LogoFeatureTrainer", abstract: "Train features that find logos from their artwork.")

    @Argument(help: "The model file of the base model to fine-tune.")
    var base: String

    @Argument(help: "The folder of logos: images with transparency.")
    var logos: String

    @Argument(help: "The folder of photos, for the backgrounds of scenes.")
    var photos: String

    @Option(help: "The model file to write after each epoch, with parameters in float16.")
    var output: String

    @Option(help: "The number of epochs.")
    var epochs = 16

    @Option(help: "The number of logos to use, chosen at random; each takes about 7 MB of memory.")
    var count = 1800

    @Option(help: "The number of logos in a batch.")
    var batchSize = 24

    @Option(help: "The peak learning rate of AdamW, with cosine decay.")
    var learningRate: Float = 1e-4

    @Option(help: "The weight of the fine-tuned parameters in the result; the base model has the remaining weight.")
    var share: Float = 0.6

    @Option(
        parsing: .upToNextOption,
        help: "The effects of the scenes: \(effectNames). (default: all)")
    var effects = SceneEffects.photographic.names

    @Option(help: "The random seed.")
    var seed: UInt64 = 1

    private static let effectNames = SceneEffects.photographic.names.joined(separator: ", ")

    /// The side of the scenes that logos are drawn in.
    private static let sceneSide = 288

    func validate() throws {
        for name in effects where !SceneEffects.photographic.names.contains(name) {
            throw ValidationError("--effects has \(name), expected \(Self.effectNames).")
        }
        for (name, value) in [("epochs", epochs), ("count", count), ("batch-size", batchSize)]
        where !(2...100_000).contains(value) {
            throw ValidationError("--\(name) is \(value), expected 2 to 100000.")
        }
        if count < batchSize {
            throw ValidationError("--count is \(count), expected at least the \(batchSize) logos of a batch.")
        }
        if !(0...1).contains(share) { throw ValidationError("--share is \(share), expected 0 to 1.") }
        if !(learningRate > 0) { throw ValidationError("--learning-rate is \(learningRate), expected more than 0.") }
    }

    func run() throws {
        let workers = Workers(Processors.count)
        let backgrounds = try ImageFolder.images(in: URL(filePath: photos)).map { TrainingPhoto(url: $0, labels: []) }
        let backdrops = try Backdrops(backgrounds, size: Self.sceneSide, seed: seed, workers: workers)
        let model = try ModelFile(contentsOf: URL(filePath: base))
        let features = try LocalFeatures(model)

        let files = try ImageFolder.images(in: URL(filePath: logos))
        var random = RandomStream(seed: seed, "logos")
        let chosen = random.permutation(of: files.count).prefix(count).map { files[$0] }
        guard chosen.count >= batchSize else {
            throw ValidationError(
                "\(logos) has \(chosen.count) images, expected at least the \(batchSize) logos of a batch.")
        }
        let artworks = try workers.parallelMap(chosen.count) { index in
            ArtworkViews(try Artwork(contentsOf: chosen[index]), cell: LocalFeatures.stride, seed: UInt64(index))
        }
        print("\(artworks.count) logos, \(backdrops.count) photos")

        let objective = try MatchingObjective(
            features, pairs: batchSize, artworks: artworks, backdrops: backdrops,
            effects: SceneEffects(named: effects),
            seed: seed, workers: workers)
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
            let mixed = try features.parameters.copy()
            mixed.move(towards: loop.evaluationParameters, by: share)
            try features.with(mixed).standardized().model(storagePrecision: .float16).write(to: URL(filePath: output))
        })
    }
}

LogoFeatureTrainer.main()
