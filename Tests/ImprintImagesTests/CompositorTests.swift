import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite struct CompositorTests {
    /// The artworks of the tests: two images and a recipe.
    static let artworks: [String: Artwork] = [
        "leaf": .fixture("leaf"), "crest": .fixture("crest"), "two-circles": .twoCircles,
    ].compactMapValues { $0 }

    static let names = ["leaf", "crest", "two-circles"]

    private func compositor(
        _ name: String, seed: UInt64 = 1, size: Int = 96, _ configuration: Compositor.Configuration = .init()
    ) throws -> Compositor {
        let backdrops = try Backdrops([], size: size, workers: Workers(1))
        return Compositor(
            artworks: [try #require(Self.artworks[name])], backdrops: backdrops, seed: seed,
            configuration: configuration)
    }

    @Test("Composites depend only on seed and index, on any thread and in any order", arguments: names)
    func determinism(name: String) throws {
        let compositor = try compositor(name)
        let count = 6
        let positives = try (0..<count).map { try compositor.positive($0) }
        let hardNegatives = try (0..<count).map { try compositor.hardNegative($0) }
        let again = try self.compositor(name)
        let threaded = try Workers(4).parallelMap(2 * count) { job throws(ImageError) in
            let index = count - 1 - job / 2
            return job % 2 == 0 ? try again.positive(index) : try again.hardNegative(index)
        }
        for index in 0..<count {
            #expect(threaded[2 * (count - 1 - index)] == positives[index])
            #expect(threaded[2 * (count - 1 - index) + 1] == hardNegatives[index])
        }
        #expect(Set(positives.map(\.image)).count == count)
        #expect(try self.compositor(name, seed: 2).positive(0).image != positives[0].image)
    }

    @Test("Several logos with the same seed have separate, deterministic scenes")
    func severalLogos() throws {
        let backdrops = try Backdrops([], size: 96, workers: Workers(1))
        func subjects(_ label: String?, _ name: String) throws -> [Composite.Location] {
            let compositor = Compositor(
                artworks: [try #require(Self.artworks[name])], backdrops: backdrops, seed: 1, label: label)
            return try [compositor.positive(0).subject, compositor.hardNegative(0).subject]
        }
        let unlabeled = try subjects(nil, "leaf")
        #expect(try subjects("a", "leaf") == subjects("a", "leaf"))
        for (found, other) in zip(try subjects("a", "leaf"), try subjects("b", "leaf")) { #expect(found != other) }
        for (found, other) in zip(try subjects("a", "leaf"), unlabeled) { #expect(found != other) }
    }

    @Test("The logo lies within its circle and fills it", arguments: names)
    func fillsCircle(name: String) throws {
        let compositor = try compositor(name, .init(span: 0.2...0.6))
        for index in 0..<9 {
            let scene = compositor.positiveScene(index)
            let with = scene.painted().image
            let without = scene.painted(showsLogo: false).image
            let region = scene.location
            // The extent of the logo, in fractions of the radius.
            var reach: Float = 0
            for pixel in 0..<(with.width * with.height) {
                let samples = (3 * pixel)..<(3 * pixel + 3)
                guard largestDifference(with.samples[samples], without.samples[samples]) > 12 else { continue }
                let (row, column) = pixel.quotientAndRemainder(dividingBy: with.width)
                let distance = Point(Float(column) + 0.5 - region.x, Float(row) + 0.5 - region.y).length
                #expect(distance <= region.span / 2 * 1.06 + 1, "\(name) \(index): \(distance) of \(region.span / 2)")
                reach = max(reach, distance / (region.span / 2))
            }
            // An occluded or faint logo may seem smaller.
            if index % 3 == 0 { #expect(reach > 0.4, "\(name) \(index): \(reach)") }
        }
    }

    @Test("Adjacent parts share a pixel, and a blank part erases the layers below")
    func layers() {
        var random = RandomStream(seed: 1, "layers")
        let plain = FillStyle(noise: ValueNoise(&random))
        let view = View(center: Point(8, 8), scale: 8)
        func half(_ sign: Float) -> Element {
            Element(
                figure: Figure([
                    .box(
                        center: Point(sign / 2 + 0.0625, 0), halfSides: Point(0.5, 1), direction: Point(1, 0),
                        rounding: 0)
                ]), tone: 0)
        }
        var layer = PrintLayer(size: 16)
        layer.paint(half(-1), .flat(Color(1, 0, 0)), plain, through: view)
        layer.paint(half(1), .flat(Color(0, 0, 1)), plain, through: view)
        // The seam lies in the middle of this pixel.
        let seam = layer.pixels[8 * 16 + 8] - SIMD4(0.5, 0, 0.5, 1)
        #expect(max(seam.max(), -seam.min()) < 1e-3)
        layer.paint(half(-1), .blank, plain, through: view)
        #expect(layer.pixels[8 * 16 + 4] == .zero)
        #expect(layer.pixels[8 * 16 + 12] == SIMD4(0, 0, 1, 1))
    }

    @Test("Logos lie in the frame, and their spans are log-uniform over the range", arguments: names)
    func spans(name: String) throws {
        let compositor = try compositor(name, size: 64)
        let regions = (0..<60).map { compositor.positiveScene($0).location }
        let spans: ClosedRange<Float> = (0.04 * 64 - 0.01)...(0.6 * 64 + 0.01)
        for region in regions {
            #expect(spans.contains(region.span))
            #expect(region.x - region.span / 2 >= -0.01 && region.x + region.span / 2 <= 64.01)
            #expect(region.y - region.span / 2 >= -0.01 && region.y + region.span / 2 <= 64.01)
        }
        // About half of the spans are below the geometric mean.
        let small = regions.count { $0.span < 64 * (0.04 * 0.6 as Float).squareRoot() }
        #expect((15...45).contains(small))
    }

    @Test("A positive has the position of its logo, a hard negative has no logo position")
    func logos() throws {
        let compositor = try compositor("crest", size: 64)
        #expect(try compositor.positive(3).logo == compositor.positiveScene(3).location)
        for index in 0..<8 {
            let composite = try compositor.positive(index)
            let location = composite.subject
            // The smallest enclosing circle touches the outline.
            let distances = composite.outline.map { point in
                ((point.x - location.x) * (point.x - location.x) + (point.y - location.y) * (point.y - location.y))
                    .squareRoot()
            }
            #expect(abs((distances.max() ?? 0) - location.span / 2) < 0.02 * location.span)
        }
        let hardNegatives = try (0..<30).map { try compositor.hardNegative($0) }
        #expect(hardNegatives.allSatisfy { $0.logo == nil })
        #expect(Set(hardNegatives.map(\.kind)).count > 5)
    }

    @Test("A distractor shows shapes or words that are not derived from the logo, or nothing", arguments: names)
    func distractors(name: String) throws {
        let compositor = try compositor(name, size: 64)
        let distractors = try (0..<30).map { try compositor.distractor($0) }
        #expect(distractors.allSatisfy { $0.logo == nil })
        #expect(Set(distractors.map(\.kind)) == ["nothing", "wordmark", "look-alike"])
        #expect(try compositor.distractor(7) == distractors[7])
    }

    @Test("Composites have the requested size with any backdrop", arguments: [16, 33, 112])
    func sizes(size: Int) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "photo.png")
            try ImageFile.write(.gradient(width: 50, height: 300), to: file)
            for photos in [[], [TrainingPhoto(url: file, labels: [])]] {
                let backdrops = try Backdrops(photos, size: size, workers: Workers(1))
                let compositor = Compositor(artworks: [.twoCircles].compactMap { $0 }, backdrops: backdrops, seed: 1)
                for composite in [try compositor.positive(0), try compositor.hardNegative(0)] {
                    #expect((composite.image.width, composite.image.height) == (size, size))
                    #expect(composite.image.channels == 3)
                }
            }
        }
    }

    @Test(
        "Of few photos, a part of the backgrounds are drawn patterns",
        arguments: [(0, 0...0), (5, 20...80), (20, 200...200)])
    func fewPhotos(count: Int, expected: ClosedRange<Int>) throws {
        try withTemporaryFolder { folder in
            // The photos are plain, and the drawn patterns are not white.
            let files = try (0..<count).map { index in
                let file = folder.appending(path: "\(index).png")
                try ImageFile.write(RasterImage(width: 40, height: 40, filledWith: 255), to: file)
                return TrainingPhoto(url: file, labels: [])
            }
            let backdrops = try Backdrops(files, size: 24, workers: Workers(1))
            let photos = (0..<200).filter { backdrops.background(at: $0, seed: 3).samples.allSatisfy { $0 == 255 } }
            #expect(expected.contains(photos.count), "\(photos.count) of 200")
        }
    }

    @Test("A grey photo in memory gives the backgrounds of its copy in colour") func greyPhoto() throws {
        let grey = RasterImage.noise(width: 60, height: 50, channels: 1)
        func backgrounds(_ image: RasterImage) throws -> [RasterImage] {
            let photo = TrainingPhoto(identifier: "grey", labels: [], content: .decoded(image))
            // With fewer photos, some backgrounds are drawn patterns.
            let photos = Array(repeating: photo, count: 20)
            let backdrops = try Backdrops(photos, size: 24, workers: Workers(1))
            return (0..<4).map { backdrops.background(at: $0, seed: 3) }
        }
        let found = try backgrounds(grey)
        #expect(found.allSatisfy { $0.channels == 3 })
        #expect(try found == backgrounds(grey.converted(toChannels: 3)))
    }

    @Test("Backdrops do not depend on the thread count, respect the limit and list unreadable files")
    func backdrops() throws {
        try withTemporaryFolder { folder in
            var files: [URL] = []
            for index in 0..<40 {
                files.append(folder.appending(path: "\(index).png"))
                try ImageFile.write(
                    .noise(width: 40, height: 40, channels: 3, seed: UInt64(index + 1)), to: files[index])
            }
            try Data("not an image".utf8).write(to: files[7])
            let photos = files.map { TrainingPhoto(url: $0, labels: []) }
            func first(_ backdrops: Backdrops) -> [RasterImage] {
                (0..<8).map {
                    var random = RandomStream(seed: 5, "test", $0)
                    return backdrops.canvas(&random).image
                }
            }
            let one = try Backdrops(photos, size: 24, workers: Workers(1))
            let four = try Backdrops(photos, size: 24, workers: Workers(4))
            #expect(one.count == 39)
            #expect(one.skipped.map(\.url) == [files[7]])
            #expect(first(one) == first(four))
            #expect(try Backdrops(photos, size: 24, byteLimit: 1000, workers: Workers(1)).count <= 32)
            #expect(throws: ImageError.self) { try Backdrops([photos[7]], size: 24, workers: Workers(1)) }
        }
    }
}

extension Artwork {
    static func fixture(_ name: String) -> Artwork? {
        try? Artwork(
            contentsOf: packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-\(name).png"))
    }

    static let twoCircles = (try? DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/two-circles.json")))
        .map { Artwork($0) }
}
