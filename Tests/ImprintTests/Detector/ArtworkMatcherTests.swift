import Foundation
import Imprint
import ImprintCore
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Finding logos from their artwork, with the features that come with Imprint.
@Suite struct ArtworkMatcherTests {
    private static let artwork: [String: Artwork] = {
        let folder = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures")
        let names = ["leaf", "crest"]
        return Dictionary(
            uniqueKeysWithValues: names.compactMap { name in
                (try? Artwork(contentsOf: folder.appending(path: "artwork-\(name).png"))).map { (name, $0) }
            })
    }()

    private static let matcher = Result { try ArtworkMatcher(artwork.mapValues { [$0] }, threads: 2) }

    /// Returns composites of a logo on drawn patterns.
    private static func composites(_ name: String, count: Int, size: Int = 320) throws -> [Composite] {
        let backdrops = try Backdrops([], size: size, seed: 5, workers: Workers(1))
        let configuration = Compositor.Configuration(span: 0.4...0.7, rotatedShare: 0)
        let compositor = Compositor(
            artworks: [try #require(artwork[name])], backdrops: backdrops, seed: 9, configuration: configuration)
        return try (0..<count).map { try compositor.positive($0) }
    }

    @Test("The logo of a scene has the highest confidence, and its box is around it", arguments: ["leaf", "crest"])
    func finds(name: String) throws {
        let matcher = try Self.matcher.get()
        #expect(matcher.labels == ["crest", "leaf"])
        let composites = try Self.composites(name, count: 12)
        var found = 0
        var located = 0
        for composite in composites {
            let best = try matcher.classify(composite.image)[0]
            guard best.label == name, best.confidence >= 0.5 else { continue }
            found += 1
            let box = try #require(best.box)
            let location = try #require(composite.logo)
            let (x, y) = (box.x + box.width / 2, box.y + box.height / 2)
            let size = Float(composite.image.width)
            let distance = hypotf(x * size - location.x, y * size - location.y)
            let extent = max(box.width, box.height) * size
            if distance < 0.25 * location.span && extent > 0.5 * location.span && extent < 1.5 * location.span {
                located += 1
            }
        }
        #expect(found >= 10 && located >= 10, "found \(found), located \(located) of 12")
    }

    @Test(
        "The number of photos that are searched at the same time depends on the memory, and is at least 1",
        arguments: [(4, 0, 1), (4, 799_000_000, 1), (4, 800_000_000, 2), (4, 64_000_000_000, 4), (1, 1 << 40, 1)])
    func parallelPhotos(limit: Int, byteCount: Int, expected: Int) {
        #expect(ArtworkMatcher.parallelPhotos(upTo: limit, inMemory: byteCount) == expected)
    }

    @Test("Scenes without a logo have no confident logo") func nothing() throws {
        let matcher = try Self.matcher.get()
        let backdrops = try Backdrops([], size: 256, seed: 5, workers: Workers(1))
        for index in 0..<12 {
            let best = try matcher.classify(backdrops.background(at: index, seed: 3))[0]
            #expect(best.confidence < 0.5)
        }
    }

    @Test("The result does not depend on the number of threads, and hardly on other logos") func threads() throws {
        let image = try Self.composites("leaf", count: 1)[0].image
        let leaf = ["leaf": [try #require(Self.artwork["leaf"])]]
        let alone = try ArtworkMatcher(leaf, threads: 1).matches(in: image)
        for threads in [2, 4] { #expect(try ArtworkMatcher(leaf, threads: threads).matches(in: image) == alone) }
        let both = try Self.matcher.get().matches(in: image)
        #expect(abs(alone[0].score - both[1].score) < 1e-5 && alone[0].box == both[1].box)
    }

    @Test("Several threads can use a matcher at the same time") func concurrentUse() throws {
        let matcher = try Self.matcher.get()
        let images = try Self.composites("crest", count: 4).map(\.image)
        let expected = try images.map { try matcher.matches(in: $0) }
        let found = try Workers(4).parallelMap(8) { try matcher.matches(in: images[$0 % 4]) }
        #expect(found == expected + expected)
    }

    @Test("Features that are not finite are an error, in the artwork and in the photo") func overflow() throws {
        let overflowing = try LocalFeatures.builtIn()
        let parameters = try overflowing.parameters.copy()
        parameters["\(LocalFeatures.standardization).scale"] =
            overflowing.channels.flatMap { [Float](repeating: 3e38, count: $0) }
        #expect(throws: ImprintError.nonFiniteOutput(network: overflowing.network.name)) {
            try ArtworkMatcher(Self.artwork.mapValues { [$0] }, features: overflowing.with(parameters))
        }
        var map = [Float](repeating: 1, count: 9 * 9 * 2)
        map[5] = .infinity
        #expect(!LocalFeatureMaps([map], height: 9, width: 9).areFinite)
    }

    @Test("A logo that is too long for its views is an error") func tooLong() throws {
        try withTemporaryFolder { folder in
            // A bar of 700x16 pixels in the middle of a transparent image.
            var line = RasterImage(width: 700, height: 48, channels: 4)
            for pixel in (16 * 700)..<(32 * 700) { line.samples[4 * pixel + 3] = 255 }
            let file = folder.appending(path: "line.png")
            try ImageFile.write(line, to: file)
            let artwork = try Artwork(contentsOf: file)
            let error = #expect(throws: ArtworkError.self) { try ArtworkMatcher(["line": [artwork]]) }
            guard case .tooLong(name: "line.png", let ratio, maximum: 32) = error else {
                Issue.record("\(error.debugDescription)")
                return
            }
            #expect((40...48).contains(ratio))
        }
    }

    @Test("A matcher without artwork finds nothing, and labels without artwork are ignored") func noArtwork() throws {
        #expect(try ArtworkMatcher([:]).classify(RasterImage(width: 40, height: 40)).isEmpty)
        let leaf = try #require(Self.artwork["leaf"])
        #expect(try ArtworkMatcher(["none": [], "leaf": [leaf]]).labels == ["leaf"])
    }

    @Test("The confidence grows with the score and falls with the number of logos") func confidences() {
        let calibration = MatchCalibration(midpoint: 0.4, width: 0.05, growth: 0.05)
        #expect(abs(calibration.confidence(0.4, logos: 1) - 0.5) < 1e-6)
        // Three times as many logos divide the odds by 3, because growth and width are equal.
        #expect(abs(calibration.confidence(0.4, logos: 3) - 0.25) < 1e-6)
        #expect(calibration.confidence(0.5, logos: 1) > calibration.confidence(0.45, logos: 1))
        #expect(calibration.confidence(1, logos: 50) > 0.99 && calibration.confidence(-1, logos: 1) < 0.01)
    }

    @Test(
        "The best variant of a logo counts, in any shape of photo",
        arguments: [(640, 40), (24, 600), (1, 1), (30000, 1)])
    func shapes(width: Int, height: Int) throws {
        let variants = ["logo": [try #require(Self.artwork["crest"]), try #require(Self.artwork["leaf"])]]
        let matcher = try ArtworkMatcher(variants)
        let image = RasterImage(width: width, height: height, channels: 1, filledWith: 90)
        let found = try matcher.classify(image)
        #expect(found.map(\.label) == ["logo"] && found[0].confidence < 0.5)
        let scene = try Self.composites("leaf", count: 1)[0].image
        let both = try matcher.matches(in: scene)[0]
        #expect(both == (try Self.matcher.get().matches(in: scene)[1]))
    }

    @Test("Features survive the file that stores them, and have unit deviations over ordinary images")
    func stored() throws {
        let backdrops = try Backdrops([], size: 96, seed: 5, workers: Workers(1))
        let images = (0..<6).map { backdrops.background(at: $0, seed: 2) }
        let features = try LocalFeatures.builtIn().standardized(over: images)
        let restored = try #require(try LocalFeatures(stored: features.model(storagePrecision: .float32)))
        #expect(restored.channels == features.channels)
        var sums = [Float](repeating: 0, count: features.channels.reduce(0, +))
        var squares = sums
        let networks = [features, restored].map { $0.extractor(plans: 1) }
        for image in images {
            let values = try networks.map { Array(try $0.run(image).values) }
            #expect(values[0] == values[1])
            for (index, value) in values[0].enumerated() {
                sums[index % sums.count] += value
                squares[index % sums.count] += value * value
            }
        }
        let count = Float(images.count * 36)
        let constant = squares.count { $0 == 0 }
        #expect(constant < squares.count / 10)
        for (sum, square) in zip(sums, squares) where square > 0 {
            #expect(abs(sum / count) < 1e-2 && abs(square / count - 1) < 2e-2)
        }
        #expect(features.calibration == nil && !restored.isCalibrated)
        #expect(try LocalFeatures.builtIn().isCalibrated)
    }

    /// Returns a base model of two labels, whose network is convolutions and a head.
    private static func classifier(_ convolutions: [Convolution], width: Int, height: Int) throws -> ModelFile {
        var net = NetworkBuilder(
            name: "classifier", input: TensorShape(height: height, width: width, channels: 3))
        for convolution in convolutions { net.add(convolution) }
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 2))
        net.add(Softmax())
        let network = try net.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: width, height: height))
    }

    @Test("A base model that stores features is used as it is") func storedBase() throws {
        let features = try LocalFeatures.builtIn()
        let base = try LocalFeatures(features.model(storagePrecision: .float32))
        #expect(base.network == features.network && base.channels == features.channels)
    }

    @Test("The features of a base model whose input is not a multiple of 16 pixels survive the file, too")
    func oddInput() throws {
        let strided = Array(
            repeating: Convolution(outputChannels: 8, kernelSize: 3, stride: 2, padding: .same), count: 4)
        let base = try Self.classifier(strided, width: 90, height: 72)
        let features = try LocalFeatures(base)
        #expect(features.network.input == TensorShape(height: 80, width: 96, channels: 3))
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "features.imprint")
            try features.model(storagePrecision: .float32).write(to: file)
            #expect(try LocalFeatures(ModelFile(contentsOf: file)).network == features.network)
        }
    }

    @Test("A base model without a suitable feature map is an error") func unsuitable() throws {
        let model = try Self.classifier([], width: 64, height: 64)
        #expect(throws: ImprintError.noLocalFeatures(network: "classifier")) { try LocalFeatures(model) }
    }
}
