import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Returns the recipe two-circles with smaller images, which are faster to draw.
private func smallRecipe(size: Int = 40) throws -> DrawingRecipe {
    let file = packageFolder.appending(path: "datasets/two-circles.json")
    let json = try String(contentsOf: file, encoding: .utf8)
    return try DrawingRecipe(Data(json.replacing("\"size\": 128", with: "\"size\": \(size)").utf8), file: file)
}

/// Returns the centres and radii of the discs in a logo.
private func discs(of logo: DrawnLogo) -> [(center: Point, radius: Float)] {
    logo.parts.joined().compactMap {
        if case .disc(let center, let radius) = $0 { (center, radius) } else { nil }
    }
}

@Suite("Drawn images") struct DrawingTests {
    @Test("The same seed, label and index give the same image; any other values give another image")
    func determinism() throws {
        let recipe = try smallRecipe()
        let image = recipe.draw(label: 0, index: 3, seed: 7)
        #expect(image == recipe.draw(label: 0, index: 3, seed: 7))
        #expect(image != recipe.draw(label: 0, index: 4, seed: 7))
        #expect(image != recipe.draw(label: 1, index: 3, seed: 7))
        #expect(image != recipe.draw(label: 0, index: 3, seed: 8))
        #expect(image.width == 40 && image.height == 40 && image.channels == 3)
    }

    @Test("Drawings of a label contain exactly the kinds of logo that the label lists")
    func kindsOfLabel() throws {
        let recipe = try smallRecipe()
        for (label, content) in recipe.labels.enumerated() {
            let kinds = Set((0..<200).map { Drawing(recipe, label: label, index: $0, seed: 1).kind })
            #expect(kinds == Set(content.logos.map(\.kind)))
        }
    }

    @Test("A logo with a number is the same in every image and differs from the logo with any other number")
    func numberedLogos() throws {
        let recipe = try DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/marks.json"))
        let logos = recipe.labels.indices.map { label in
            (0..<3).map { Drawing(recipe, label: label, index: $0, seed: 5).logo }
        }
        #expect(logos.allSatisfy { $0[0] == $0[1] && $0[1] == $0[2] && !$0[0].parts.isEmpty })
        for (index, logo) in logos.enumerated() { #expect(!logos[..<index].contains(logo)) }
    }

    @Test("Two circles are two discs of about 2:1, the small one diagonally above the large one, without touching")
    func twoCircles() throws {
        let recipe = try smallRecipe()
        var sides: Set<Bool> = []
        for index in 0..<200 {
            let discs = discs(of: Drawing(recipe, label: 0, index: index, seed: 2).logo)
            try #require(discs.count == 2)
            let (large, small) = (discs[0], discs[1])
            #expect((1.74...2.26).contains(large.radius / small.radius))
            let offset = small.center - large.center
            let gap = (offset.length - large.radius - small.radius) / large.radius
            #expect((0.15...0.41).contains(gap))
            let degrees = atan2(-offset.y, abs(offset.x)) * 180 / .pi
            #expect((37...55).contains(degrees))
            sides.insert(offset.x > 0)
        }
        #expect(sides.count == 2)
    }

    @Test(
        "Hard negatives of two discs do not resemble two circles",
        arguments: [LogoKind.equalDiscs, .tinyDot, .smallBelow, .farApart, .overlapping])
    func hardNegativesDiffer(kind: LogoKind) throws {
        var random = RandomStream(seed: 3, "near-misses")
        for _ in 0..<200 {
            let discs = discs(of: kind.logo(&random))
            try #require(discs.count == 2)
            let ratio = discs[0].radius / discs[1].radius
            let offset = discs[1].center - discs[0].center
            let gap = (offset.length - discs[0].radius - discs[1].radius) / discs[0].radius
            let degrees = atan2(-offset.y, abs(offset.x)) * 180 / .pi
            let isSimilar =
                (1.5...2.7).contains(ratio) && (-0.1...0.7).contains(gap) && (10...80).contains(degrees)
            #expect(!isSimilar, "ratio \(ratio), gap \(gap), degrees \(degrees)")
        }
    }

    @Test(
        "Composited hard negatives do not resemble hand-drawn two circles in any rotation",
        arguments: [
            LogoKind.equalDiscs, .similarDiscs, .tinyDot, .smallDot, .apart, .farApart, .overlapping, .touching,
        ])
    func hardNegativesDifferInAnyRotation(kind: LogoKind) throws {
        func measures(_ kind: LogoKind, _ random: inout RandomStream) throws -> (ratio: Float, gap: Float) {
            let discs = discs(of: kind.logo(&random)).sorted { $0.radius > $1.radius }
            try #require(discs.count == 2)
            let distance = (discs[1].center - discs[0].center).length
            return (
                discs[0].radius / discs[1].radius, (distance - discs[0].radius - discs[1].radius) / discs[0].radius
            )
        }
        var random = RandomStream(seed: 3, "near-misses")
        for _ in 0..<200 {
            let logo = try measures(.looseTwoCircles, &random)
            #expect((1.59...2.31).contains(logo.ratio) && (0.09...0.43).contains(logo.gap))
            let other = try measures(kind, &random)
            let isSimilar = (1.4...2.8).contains(other.ratio) && (0.01...0.7).contains(other.gap)
            #expect(!isSimilar, "ratio \(other.ratio), gap \(other.gap)")
        }
    }

    @Test("The kind oneOval draws one disc and one ellipse that is clearly not a disc") func oneOval() throws {
        var random = RandomStream(seed: 3, "ovals")
        for _ in 0..<100 {
            let shapes = LogoKind.oneOval.logo(&random).parts.joined()
            try #require(shapes.count == 2)
            let aspects = shapes.map { shape -> Float in
                if case .ellipse(_, let radii, _) = shape { return radii.y / radii.x }
                return 1
            }
            #expect(aspects.contains(1) && aspects.contains { (0.4...0.8).contains($0) }, "\(aspects)")
        }
    }

    @Test("Every logo fits a circle of radius 1 around the origin", arguments: LogoKind.allCases)
    func logosFit(kind: LogoKind) {
        var random = RandomStream(seed: 4, "marks")
        for _ in 0..<50 {
            let logo = kind.logo(&random)
            for shape in logo.parts.joined() { #expect(shape.bounds.center.length + shape.bounds.radius < 1.0001) }
            #expect(logo.parts.isEmpty == (kind == .nothing))
        }
    }

    @Test("Ink has contrast to its background and is darker or lighter as requested", arguments: [false, true])
    func inkContrast(hasPlate: Bool) {
        for index in 0..<400 {
            var random = RandomStream(seed: 5, "palette", index)
            let isLight = index.isMultiple(of: 2)
            let palette = Palette(hasPlate: hasPlate, hasLightInk: isLight, inkCount: 2, &random)
            let backgrounds = hasPlate ? [palette.plate] : [palette.ground.0, palette.ground.1]
            for (ink, ground) in palette.inks.flatMap({ ink in backgrounds.map { (ink, $0) } }) {
                let difference = ink.luminance - ground.luminance
                #expect((isLight ? difference : -difference) > Palette.contrast - 0.001)
            }
            for color in palette.inks + backgrounds { #expect(color.min() > -0.001 && color.max() < 1.001) }
        }
    }

    @Test("A nearest-mean classifier of thumbnails hardly separates the labels")
    func nearestMeanClassifier() throws {
        let recipe = try smallRecipe(size: 16)
        func images(seed: UInt64) -> [[[Float]]] {
            recipe.labels.indices.map { label in
                (0..<150).map { recipe.draw(label: label, index: $0, seed: seed).samples.map { Float($0) } }
            }
        }
        let means = images(seed: 1).map { images in
            (0..<images[0].count).map { index in images.reduce(0) { $0 + $1[index] } / Float(images.count) }
        }
        func distance(_ a: [Float], _ b: [Float]) -> Float {
            zip(a, b).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }
        }
        var correct = 0
        for (label, images) in images(seed: 2).enumerated() {
            for image in images where distance(image, means[label]) < distance(image, means[1 - label]) { correct += 1 }
        }
        #expect(Float(correct) / 300 < 0.7)
    }
}
