import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintModel
@testable import ImprintTraining

/// Rejection of images unlike the training photos.
@Suite struct NoveltyTests {
    // MARK: Calibration

    /// Returns features of photos of some labels: a direction per label, with noise.
    private func features(
        _ count: Int, labels: Int = 3, channels: Int = 8, seed: UInt64
    ) -> [(label: Int, features: [Float])] {
        (0..<count).map { index in
            var stream = RandomStream(seed: seed, "feature", index)
            let label = index % labels
            return (label, (0..<channels).map { ($0 == label ? 2 : 0) + stream.uniform(in: 0...1) })
        }
    }

    @Test(
        "The threshold accepts the given share of the validation photos, and no more than needed",
        arguments: [(20, 0.95), (21, 0.95), (100, 0.95), (60, 0.5), (33, 1), (40, 0.001)])
    func acceptance(count: Int, acceptance: Double) throws {
        let validation = features(count, seed: 2).map(\.features)
        let rule = try #require(
            NoveltyRule.fitted(training: features(60, seed: 1), validation: validation, acceptance: acceptance))
        let accepted = validation.count { rule.novelty(of: $0) <= 1 }
        #expect(accepted == max(Int((acceptance * Double(count)).rounded(.up)), 1))
        #expect(rule.images == count && rule.acceptance == acceptance && rule.labels == [0, 1, 2])
    }

    @Test("With few validation photos, each training photo is compared with the means of the other photos")
    func leaveOneOut() throws {
        let (training, validation) = (features(30, seed: 1), features(5, seed: 2).map(\.features))
        let rule = try #require(NoveltyRule.fitted(training: training, validation: validation))
        #expect(rule.images == 35)
        func cosine(_ left: [Double], _ right: [Double]) -> Double {
            func dot(_ left: [Double], _ right: [Double]) -> Double { zip(left, right).reduce(0) { $0 + $1.0 * $1.1 } }
            return dot(left, right) / (dot(left, left) * dot(right, right)).squareRoot()
        }
        func mean(_ photos: [(label: Int, features: [Float])]) -> [Double] {
            (0..<8).map { channel in photos.reduce(0) { $0 + Double($1.features[channel]) } }
        }
        var distances = training.indices.map { index in
            var others = training
            others.remove(at: index)
            let closest =
                (0..<3).map { label in
                    cosine(mean(others.filter { $0.label == label }), training[index].features.map(Double.init))
                }.max() ?? 0
            return 1 - closest
        }
        distances += validation.map { photo in
            let closest =
                (0..<3).map { label in
                    cosine(mean(training.filter { $0.label == label }), photo.map(Double.init))
                }.max() ?? 0
            return 1 - closest
        }
        // The 34th of 35 distances; the means of the rule are float16.
        #expect(abs(Double(rule.threshold) - distances.sorted()[33]) < 1e-4)
    }

    @Test("Fewer than 20 photos, or features of zeros, give no rule") func noRule() {
        #expect(NoveltyRule.fitted(training: features(19, seed: 1), validation: []) == nil)
        #expect(
            NoveltyRule.fitted(training: features(19, seed: 1), validation: features(1, seed: 2).map(\.features)) != nil
        )
        let zeros = (0..<40).map { (label: $0 % 2, features: [Float](repeating: 0, count: 8)) }
        #expect(NoveltyRule.fitted(training: zeros, validation: []) == nil)
    }

    @Test("A label without features has no mean") func missingLabel() throws {
        let training = features(60, seed: 1).map { (label: $0.label * 2, features: $0.features) }
        let rule = try #require(NoveltyRule.fitted(training: training, validation: []))
        #expect(rule.labels == [0, 2, 4])
    }

    // MARK: Prediction

    @Test(
        "The features that a prediction keeps are computed by the layers before the head",
        arguments: ["lenet", "logonet", "mobilenet-v1"])
    func headInput(name: String) throws {
        var configuration = ClassifierConfiguration()
        configuration.start = .network(name, width: name == "lenet" ? 1 : 0.25)
        configuration.inputSize = name == "lenet" ? nil : 32
        let start = try configuration.startingPoint(labels: ["a", "b"])
        let network = start.whole.network
        let parameters = try Parameters(network, seed: 3)
        var model = ModelFile(
            network: network, parameters: parameters, labels: ["a", "b"],
            preprocessing: start.preprocessing)
        let image = testImage(3, width: 64, height: 64)
        let plain = try ImageClassifier(model)
        let expected = try plain.runtime.features(of: .image(image), blocks: 0, views: ImageViews(count: 1))[0]
        // The distance to the feature itself is 0.
        let length = expected.reduce(0) { $0 + $1 * $1 }.squareRoot()
        let channels = expected.count
        model.noveltyRule = NoveltyRule(
            labels: [0, 1], means: expected.map { $0 / length } + (0..<channels).map { $0 == 0 ? 1 : 0 },
            threshold: 0.5,
            images: 20)
        let classifier = try ImageClassifier(model)
        let novelty = try #require(try classifier.novelty(of: .image(image)))
        #expect(novelty < 1e-4)
        #expect(novelty == model.noveltyRule?.novelty(of: expected))
        #expect(try classifier.classify(image) == plain.classify(image))
    }

    @Test("An image whose best label has no mean is never rejected") func labelWithoutMean() async throws {
        var builder = NetworkBuilder(name: "brightness", input: TensorShape(height: 8, width: 8, channels: 3))
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Dense(outputChannels: 2), named: "head")
        builder.add(Softmax(), named: "confidence")
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 0)
        parameters["head.weight"] = [1, -1, 1, -1, 1, -1]
        var model = ModelFile(
            network: network, parameters: parameters, labels: ["bright", "dark"],
            preprocessing: Preprocessing(width: 8, height: 8))
        model.noveltyRule = NoveltyRule(labels: [0], means: [1, 0, 0], threshold: 0.1, images: 20)
        let classifier = try ImageClassifier(model)
        var request = ClassificationRequest(classifier)
        request.rejectsNovelImages = true
        for (grey, label, isRejected) in [(250, "bright", true), (5, "dark", false)] as [(UInt8, String, Bool)] {
            let image = RasterImage(width: 8, height: 8, filledWith: grey)
            #expect(try classifier.classify(image)[0].label == label)
            // Only "bright" has a mean; the feature of a grey image is far from it.
            let novelty = try classifier.novelty(of: .image(image))
            #expect(isRejected ? novelty ?? 0 > 1 : novelty == nil)
            #expect(try await request.perform(on: .image(image)).isEmpty == isRejected)
        }
    }

    /// Trains a small network on two labels and passes it on, with the folders of its photos.
    private func withTrained(
        threads: Int = 1, _ body: (ModelFile, _ known: URL, _ unknown: [URL]) throws -> Void
    ) throws {
        try withImages(perLabel: 24) { known in
            let model = try train(
                known,
                quickTraining(epochs: 4) {
                    $0.threads = threads
                    $0.validation = .none
                })
            try withTemporaryFolder { folder in
                let unknown = try (0..<20).map { index in
                    // Rings in saturated colours instead of noise with a bright half.
                    var image = RasterImage(width: 20, height: 20)
                    for y in 0..<20 {
                        for x in 0..<20 {
                            let ring = ((x - 10) * (x - 10) + (y - 10) * (y - 10)) / (12 + index) % 2
                            image.samples[(y * 20 + x) * 3 + index % 3] = ring == 0 ? 255 : 0
                        }
                    }
                    let url = folder.appending(path: "\(index).png")
                    try ImageFile.write(image, to: url)
                    return url
                }
                try body(model, known, unknown)
            }
        }
    }

    @Test("A trained model accepts known photos and rejects photos of something else more often") func trained() throws
    {
        try withTrained { model, known, unknown in
            let rule = try #require(model.noveltyRule)
            #expect(rule.images == 48 && rule.acceptance == 0.95)
            let classifier = try ImageClassifier(model)
            let photos = try ImageFolder(at: known).items.map(\.url)
            let accepted = try classifier.acceptance(of: photos)
            #expect(accepted.imageCount == 48 && accepted.acceptedCount >= 46)
            let wrong = try classifier.acceptance(of: unknown, threads: 2)
            #expect(wrong.imageCount == 20 && wrong.share < accepted.share / 2, "\(wrong.share)")
            let missing = known.appending(path: "missing.png")
            #expect(try classifier.acceptance(of: photos.prefix(1) + [missing]).skipped.map(\.url) == [missing])
        }
    }

    @Test("The rule is bitwise equal for any number of threads") func threads() throws {
        var rules: [NoveltyRule?] = []
        for threads in [1, 2, 4] {
            try withTrained(threads: threads) { model, _, _ in rules.append(model.noveltyRule) }
        }
        #expect(rules[0] != nil && rules.allSatisfy { $0 == rules[0] })
    }

    @Test("A request returns nothing for a rejected image, and requires a rule") func request() async throws {
        var (model, rejected, accepted): (ModelFile?, Data?, Data?)
        try withTrained { trained, known, unknown in
            let classifier = try ImageClassifier(trained)
            let novel = try #require(try unknown.first { try classifier.novelty(of: .file($0)) ?? 0 > 1 })
            let usual = try #require(
                try ImageFolder(at: known).items.first { try classifier.novelty(of: .file($0.url)) ?? 2 <= 1 })
            (model, rejected, accepted) = (trained, try Data(contentsOf: novel), try Data(contentsOf: usual.url))
        }
        var request = ClassificationRequest(try ImageClassifier(#require(model)))
        #expect(try await request.perform(on: .data(#require(rejected))).count == 2)
        request.rejectsNovelImages = true
        #expect(try await request.perform(on: .data(#require(rejected))).isEmpty)
        #expect(try await request.perform(on: .data(#require(accepted))).count == 2)
        var plain = try #require(model)
        plain.noveltyRule = nil
        var other = ClassificationRequest(try ImageClassifier(plain))
        #expect(try ImageClassifier(plain).novelty(of: .data(#require(rejected))) == nil)
        other.rejectsNovelImages = true
        let image = try #require(accepted)
        let error = await #expect(throws: ImprintError.self) { try await other.perform(on: .data(image)) }
        #expect(error?.description.contains("rejectsNovelImages") == true)
    }

    @Test("Photos of a label that a personalization adds are not rejected; adapters switch the rule off")
    func personalized() throws {
        try withTrained { model, _, unknown in
            let base = try ImageClassifier(model)
            let novel = try #require(try unknown.first { try base.novelty(of: .file($0)) ?? 0 > 1 })
            let channels = try #require(model.network.headChannels)
            func classifier(bias: Float, adapters: [Personalization.LowRankAdapter] = []) throws -> ImageClassifier {
                let column = Personalization.Column(
                    label: "new", weights: [Float](repeating: 0, count: channels), bias: bias)
                return try base.personalized(
                    with: Personalization(
                        baseDigest: model.identity, addedLabels: ["new"], columns: [column], adapters: adapters,
                        record: .init(examples: ["new": 1])))
            }
            // The best label is the added one.
            #expect(try classifier(bias: 1000).novelty(of: .file(novel)) == nil)
            #expect(try classifier(bias: 1000).acceptance(of: unknown).acceptedCount == unknown.count)
            // The best label is one of the model.
            let other = try classifier(bias: -1000)
            #expect(try other.novelty(of: .file(novel)) == base.novelty(of: .file(novel)))
            let head = try #require(model.network.denseHeadName)
            let entry = try #require(
                model.parameters.layout.entries.last { $0.parameter.shape.count > 1 && $0.node != head })
            let (rows, columns) = (entry.parameter.shape.dropLast().reduce(1, *), entry.parameter.shape.last ?? 0)
            let adapter = Personalization.LowRankAdapter(
                parameter: entry.name, left: [Float](repeating: 0.01, count: rows),
                right: [Float](repeating: 0.01, count: columns), rank: 1)
            let adapted = try classifier(bias: -1000, adapters: [adapter])
            #expect(adapted.noveltyRule == nil)
            #expect(try adapted.novelty(of: .file(novel)) == nil)
        }
    }
}
