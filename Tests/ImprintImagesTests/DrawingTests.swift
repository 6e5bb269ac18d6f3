import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// The recipe of the repository with smaller images, which are faster to draw.
private func smallRecipe(size: Int = 40) throws -> DrawingRecipe {
    let file = packageFolder.appending(path: "datasets/two-circles.json")
    let json = try String(contentsOf: file, encoding: .utf8)
    return try DrawingRecipe(Data(json.replacing("\"size\": 128", with: "\"size\": \(size)").utf8), file: file)
}

/// The radii and centres of the parts of a logo of discs.
private func discs(of mark: Mark) -> [(center: Point, radius: Float)] {
    mark.parts.joined().compactMap {
        if case .disc(let center, let radius) = $0 { (center, radius) } else { nil }
    }
}

@Suite("Drawn images") struct DrawingTests {
    @Test("The same seed, label and index give the same image; any other values give another image")
    func imagesFollowFromTheirNumbers() throws {
        let recipe = try smallRecipe()
        let image = recipe.draw(label: 0, index: 3, seed: 7)
        #expect(image == recipe.draw(label: 0, index: 3, seed: 7))
        #expect(image != recipe.draw(label: 0, index: 4, seed: 7))
        #expect(image != recipe.draw(label: 1, index: 3, seed: 7))
        #expect(image != recipe.draw(label: 0, index: 3, seed: 8))
        #expect(image.width == 40 && image.height == 40 && image.channels == 3)
    }

    @Test("Drawings have all kinds of logo that their label lists, and no other")
    func kindsFollowTheRecipe() throws {
        let recipe = try smallRecipe()
        for (label, content) in recipe.labels.enumerated() {
            let kinds = Set((0..<200).map { Drawing(recipe, label: label, index: $0, seed: 1).kind })
            #expect(kinds == Set(content.marks.map(\.kind)))
        }
    }

    @Test("A logo with a number is the same in every picture and differs from that of any other number")
    func numberedMarks() throws {
        let recipe = try DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/marks.json"))
        let marks = recipe.labels.indices.map { label in
            (0..<3).map { Drawing(recipe, label: label, index: $0, seed: 5).mark }
        }
        #expect(marks.allSatisfy { $0[0] == $0[1] && $0[1] == $0[2] && !$0[0].parts.isEmpty })
        for (index, mark) in marks.enumerated() { #expect(!marks[..<index].contains(mark)) }
    }

    @Test("Two circles are two discs of about 2:1, the small one above and beside the large one, without touching")
    func twoCirclesAreWhatTheirNameSays() throws {
        let recipe = try smallRecipe()
        var sides: Set<Bool> = []
        for index in 0..<200 {
            let discs = discs(of: Drawing(recipe, label: 0, index: index, seed: 2).mark)
            try #require(discs.count == 2)
            let (large, small) = (discs[0], discs[1])
            #expect((1.74...2.26).contains(large.radius / small.radius))
            let away = small.center - large.center
            let gap = (away.length - large.radius - small.radius) / large.radius
            #expect((0.15...0.41).contains(gap))
            let degrees = atan2(-away.y, abs(away.x)) * 180 / .pi
            #expect((37...55).contains(degrees))
            sides.insert(away.x > 0)
        }
        #expect(sides.count == 2)
    }

    @Test(
        "No hard negative of two discs resembles two circles",
        arguments: [MarkKind.equalDiscs, .tinyDot, .smallBelow, .farApart, .overlapping])
    func nearMissesStayClear(kind: MarkKind) throws {
        var random = RandomStream(seed: 3, "near-misses")
        for _ in 0..<200 {
            let discs = discs(of: kind.mark(&random))
            try #require(discs.count == 2)
            let ratio = discs[0].radius / discs[1].radius
            let away = discs[1].center - discs[0].center
            let gap = (away.length - discs[0].radius - discs[1].radius) / discs[0].radius
            let degrees = atan2(-away.y, abs(away.x)) * 180 / .pi
            let looksLikeIt =
                (1.5...2.7).contains(ratio) && (-0.1...0.7).contains(gap) && (10...80).contains(degrees)
            #expect(!looksLikeIt, "ratio \(ratio), gap \(gap), degrees \(degrees)")
        }
    }

    @Test(
        "No composited hard negative resembles hand-drawn two circles in any rotation",
        arguments: [
            MarkKind.equalDiscs, .similarDiscs, .tinyDot, .smallDot, .apart, .farApart, .overlapping, .touching,
        ])
    func nearMissesStayClearHoweverTurned(kind: MarkKind) throws {
        func measures(_ kind: MarkKind, _ random: inout RandomStream) throws -> (ratio: Float, gap: Float) {
            let discs = discs(of: kind.mark(&random)).sorted { $0.radius > $1.radius }
            try #require(discs.count == 2)
            let distance = (discs[1].center - discs[0].center).length
            return (
                discs[0].radius / discs[1].radius, (distance - discs[0].radius - discs[1].radius) / discs[0].radius
            )
        }
        var random = RandomStream(seed: 3, "near-misses")
        for _ in 0..<200 {
            let mark = try measures(.looseTwoCircles, &random)
            #expect((1.59...2.31).contains(mark.ratio) && (0.09...0.43).contains(mark.gap))
            let miss = try measures(kind, &random)
            let isLike = (1.4...2.8).contains(miss.ratio) && (0.01...0.7).contains(miss.gap)
            #expect(!isLike, "ratio \(miss.ratio), gap \(miss.gap)")
        }
    }

    @Test("One oval is one disc and one ellipse that is clearly not a disc") func oneOval() throws {
        var random = RandomStream(seed: 3, "ovals")
        for _ in 0..<100 {
            let shapes = MarkKind.oneOval.mark(&random).parts.joined()
            try #require(shapes.count == 2)
            let aspects = shapes.map { shape -> Float in
                if case .ellipse(_, let radii, _) = shape { return radii.y / radii.x }
                return 1
            }
            #expect(aspects.contains(1) && aspects.contains { (0.4...0.8).contains($0) }, "\(aspects)")
        }
    }

    @Test("Every logo fits a circle of radius 1 around the origin", arguments: MarkKind.allCases)
    func marksFit(kind: MarkKind) {
        var random = RandomStream(seed: 4, "marks")
        for _ in 0..<50 {
            let mark = kind.mark(&random)
            for shape in mark.parts.joined() { #expect(shape.bounds.center.length + shape.bounds.radius < 1.0001) }
            #expect(mark.parts.isEmpty == (kind == .nothing))
        }
    }

    @Test("Ink has contrast to its background, darker or lighter as requested", arguments: [false, true])
    func inkStandsOut(hasPlate: Bool) {
        for index in 0..<400 {
            var random = RandomStream(seed: 5, "palette", index)
            let isLight = index.isMultiple(of: 2)
            let palette = Palette(hasPlate: hasPlate, hasLightInk: isLight, inkCount: 2, &random)
            let behind = hasPlate ? [palette.plate] : [palette.ground.0, palette.ground.1]
            for (ink, ground) in palette.inks.flatMap({ ink in behind.map { (ink, $0) } }) {
                let difference = ink.luminance - ground.luminance
                #expect((isLight ? difference : -difference) > Palette.contrast - 0.001)
            }
            for color in palette.inks + behind { #expect(color.min() > -0.001 && color.max() < 1.001) }
        }
    }

    @Test("A nearest-mean classifier of thumbnails hardly separates the labels")
    func labelsDoNotDifferInTheMean() throws {
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
        var right = 0
        for (label, images) in images(seed: 2).enumerated() {
            for image in images where distance(image, means[label]) < distance(image, means[1 - label]) { right += 1 }
        }
        #expect(Float(right) / 300 < 0.7)
    }
}
