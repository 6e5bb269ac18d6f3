import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// The views of a logo on plain backgrounds, to match it with photos.
@Suite struct ArtworkViewsTests {
    /// Returns artwork with two bars of different colours, one beside the other.
    private static func bars(width: Int, height: Int) throws -> Artwork {
        try withTemporaryFolder { folder in
            var image = RasterImage(width: width, height: height, channels: 4)
            for pixel in 0..<(width * height) {
                let color: [UInt8] = pixel % width < width / 2 ? [200, 20, 20, 255] : [20, 20, 200, 255]
                for channel in 0..<4 { image.samples[4 * pixel + channel] = color[channel] }
            }
            let file = folder.appending(path: "bars.png")
            try ImageFile.write(image, to: file)
            return try Artwork(contentsOf: file)
        }
    }

    @Test(
        "The parts depend on the aspect ratio, and have the same area unless the logo is very long",
        arguments: [
            (100, 100, 6), (150, 100, 6), (100, 150, 6), (170, 100, 4), (100, 200, 4), (270, 100, 7), (60, 240, 7),
        ])
    func parts(width: Int, height: Int, count: Int) throws {
        let views = ArtworkViews(try Self.bars(width: width, height: height), cell: 16, seed: 0)
        #expect(views.parts.count == count)
        for part in views.parts {
            #expect(part.windowWidth % 16 == 0 && part.windowHeight % 16 == 0)
            #expect(part.windowWidth >= 48 && part.windowHeight >= 48)
            #expect(Float(part.windowWidth) >= part.width + 8 && Float(part.windowHeight) >= part.height + 8)
            let ratio = max(part.width / part.height, part.height / part.width)
            let area = 6400 * min(3.2 / ratio, 1)
            #expect(abs(part.width * part.height / area - 1) < 0.01)
        }
        let whole = views.parts[0]
        #expect(abs(whole.width / whole.height / (Float(width) / Float(height)) - 1) < 0.03)
    }

    @Test("The first view shows the part upright, in its own colours and in the middle", arguments: [0, 16, 32])
    func firstView(border: Int) throws {
        let views = ArtworkViews(try Self.bars(width: 200, height: 100), cell: 16, seed: 4)
        let part = views.parts[0]
        let view = views.view(of: part, index: 0, border: border)
        #expect(view.width == part.windowWidth + 2 * border && view.height == part.windowHeight + 2 * border)
        func color(_ x: Float, _ y: Float) -> [Int] {
            let column = Int(Float(view.width) / 2 + x * part.width)
            let row = Int(Float(view.height) / 2 + y * part.height)
            let start = (row * view.width + column) * 3
            return view.samples[start..<(start + 3)].map(Int.init)
        }
        func isNear(_ color: [Int], _ other: [Int]) -> Bool { zip(color, other).allSatisfy { abs($0 - $1) <= 2 } }
        for y: Float in [-0.4, 0.4] {
            #expect(isNear(color(-0.45, y), [200, 20, 20]) && isNear(color(-0.05, y), [200, 20, 20]))
            #expect(isNear(color(0.05, y), [20, 20, 200]) && isNear(color(0.45, y), [20, 20, 200]))
        }
        // The ground is plain, and differs from the logo.
        let ground = Array(view.samples[0..<3]).map(Int.init)
        #expect(isNear(color(0, 0.5 + 3 / part.height), ground))
        #expect(!isNear(ground, [200, 20, 20]) && !isNear(ground, [20, 20, 200]))
    }

    @Test("A half is in the middle of its views, with its neighbourhood") func half() throws {
        let views = ArtworkViews(try Self.bars(width: 200, height: 100), cell: 16, seed: 4)
        let part = views.parts[1]
        let view = views.view(of: part, index: 0, border: 32)
        let row = view.height / 2
        func red(_ column: Int) -> UInt8 { view.samples[(row * view.width + column) * 3] }
        #expect(red(view.width / 2) > 190 && red(view.width / 2 + Int(part.width / 2) - 3) > 190)
        #expect(red(view.width / 2 + Int(part.width / 2) + 3) < 30)
    }

    @Test("Half of the views have their own colours; the others are grey, inverted or in two colours")
    func colors() throws {
        let views = ArtworkViews(try Self.bars(width: 100, height: 100), cell: 16, seed: 1)
        for index in 0..<ArtworkViews.count {
            let view = views.view(of: views.parts[0], index: index, border: 0)
            let colors = stride(from: 0, to: view.samples.count, by: 3).map { Array(view.samples[$0..<($0 + 3)]) }
            let isGrey = colors.allSatisfy { $0[0] == $0[1] && $0[1] == $0[2] }
            #expect(isGrey == (index % 6 == 1 || index % 6 == 3))
            let isOwn = colors.contains([200, 20, 20]) && colors.contains([20, 20, 200])
            #expect(isOwn == (index % 2 == 0))
        }
    }

    @Test("A composite has the part at the returned position and at about the scale of its views") func scene() throws {
        // The left half is red, the right half blue, so that the edge between them goes through the centre.
        let views = ArtworkViews(try Self.bars(width: 100, height: 100), cell: 16, seed: 1)
        let part = views.parts[0]
        let backdrops = try Backdrops([], size: 224, seed: 1, workers: Workers(1))
        var differences: [Float] = []
        for seed in 0..<12 {
            let scene = try #require(
                try views.scene(
                    of: part, backdrops: backdrops, side: 160, scale: 0.8...1.2, shift: 16, effects: [],
                    seed: UInt64(seed)))
            #expect(scene.image.width == 160 && scene.image.height == 160)
            // Only a logo at the border of the composite is farther from the centre of the image.
            #expect((30...130).contains(scene.x) && (30...130).contains(scene.y))
            func color(_ x: Float) -> [Float] {
                let start = (Int(scene.y) * 160 + Int(scene.x + x)) * 3
                return scene.image.samples[start..<(start + 3)].map(Float.init)
            }
            let (left, right) = (color(-part.width / 8), color(part.width / 8))
            differences.append(zip(left, right).map { abs($0 - $1) }.max() ?? 0)
        }
        // Some composites have one ink, are outlines, or have an object in front of the centre.
        #expect(differences.count { $0 > 30 } >= 6, "\(differences)")
        let small = try Backdrops([], size: 96, seed: 1, workers: Workers(1))
        #expect(
            try views.scene(of: part, backdrops: small, side: 96, scale: 1...1, shift: 0, effects: [], seed: 1) == nil)
    }
}
