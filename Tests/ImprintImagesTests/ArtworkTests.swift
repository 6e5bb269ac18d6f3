import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite struct ArtworkTests {
    /// Returns an image whose pixels a function computes.
    private func makeImage(_ width: Int, _ height: Int, _ pixel: (Int, Int) -> [UInt8]) -> RasterImage {
        RasterImage(
            width: width, height: height, channels: pixel(0, 0).count,
            samples: (0..<height).flatMap { y in (0..<width).flatMap { x in pixel(x, y) } })
    }

    private func load(_ image: RasterImage) throws -> Artwork {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "logo.png")
            try ImageFile.write(image, to: file)
            return try Artwork(contentsOf: file)
        }
    }

    /// A red disc beside a blue square on the given background.
    private func logo(on ground: [UInt8]) -> RasterImage {
        makeImage(60, 40) { x, y in
            let color: [UInt8]? =
                (x - 18) * (x - 18) + (y - 20) * (y - 20) < 100
                ? [200, 30, 30] : (36..<50).contains(x) && (13..<27).contains(y) ? [20, 40, 180] : nil
            guard let color else { return ground }
            return ground.count == 4 ? color + [255] : color
        }
    }

    private func artworkLogo(of artwork: Artwork) throws -> ArtworkLogo {
        guard case .image(let logo) = artwork.source else { throw CocoaError(.featureUnsupported) }
        return logo
    }

    @Test(
        "An image with transparency and one on a plain background have the same parts",
        arguments: [[0, 0, 0, 0], [255, 255, 255]])
    func parts(ground: [UInt8]) throws {
        let drawn = try artworkLogo(of: load(logo(on: ground)))
        #expect(drawn.design.elements.count == 2)
        #expect(drawn.tones.count == 2)
        // The circle around both parts has radius 1.
        let circle = Circle(enclosing: drawn.design.hull)
        #expect(abs(circle.radius - 1) < 0.01 && circle.center.length < 0.01)
        // The parts are separate, so a single ink draws both.
        #expect(drawn.inkedTones == [[0, 1]])
    }

    @Test("If colours separate the parts, a single ink omits the parts inside others")
    func oneInk() throws {
        let drawn = try artworkLogo(of: #require(CompositorTests.artworks["crest"]))
        #expect(drawn.design.elements.count >= 3)
        #expect(!drawn.inkedTones.isEmpty)
        #expect(drawn.inkedTones.allSatisfy { $0.count < drawn.tones.count })
    }

    @Test("Tones that differ in the logo differ in any colours, and visible parts stay visible")
    func otherColors() throws {
        let artwork = try #require(CompositorTests.artworks["crest"])
        for index in 0..<60 {
            var random = RandomStream(seed: 1, "inks", index)
            let ground = Color.random(luminance: random.uniform(), saturation: 0.3, &random)
            let inks = Inks(artwork, mainTone: 0, style: .recolored, on: ground, contrast: 0.3, &random)
            #expect(inks.style == .recolored)
            #expect(abs(inks.main.luminance - ground.luminance) > 0.29)
            for (first, tone) in artwork.tones.enumerated() {
                for (second, other) in artwork.tones.enumerated() where abs(tone.luminance - other.luminance) > 0.2 {
                    let colors = [inks[first], inks[second]].compactMap(\.color)
                    #expect(colors.count == 2 && abs(colors[0].luminance - colors[1].luminance) > 0.08)
                }
            }
        }
    }

    @Test("The mirror image of a symmetric logo is the logo itself")
    func symmetry() throws {
        #expect(try #require(CompositorTests.artworks["two-circles"]).isMirrorSymmetric)
        #expect(try #require(CompositorTests.artworks["leaf"]).isMirrorSymmetric == false)
        let disc = makeImage(48, 48) { x, y in
            (x - 24) * (x - 24) + (y - 24) * (y - 24) < 400 ? [0, 90, 0, 255] : [0, 0, 0, 0]
        }
        #expect(try load(disc).isMirrorSymmetric)
        // A symmetric logo has no mirror image among its hard negatives.
        let kite = makeImage(48, 48) { x, y in
            abs(x - 24) + abs(y - 18) * (y > 18 ? 1 : 2) < 20 ? [0, 0, 90, 255] : [0, 0, 0, 0]
        }
        #expect(try load(kite).isMirrorSymmetric)
    }

    @Test("Hard negatives differ from the artwork", arguments: ["leaf", "crest"])
    func hardNegatives(name: String) throws {
        let artwork = try #require(CompositorTests.artworks[name])
        let drawn = try artworkLogo(of: artwork)
        #expect(!drawn.isDistinct(drawn.design))
        var kinds: Set<String> = []
        for index in 0..<120 {
            var random = RandomStream(seed: 3, "test", index)
            let (kind, design) = artwork.hardNegative(&random)
            kinds.insert(kind)
            #expect(design != drawn.design)
            #expect(design.elements.isEmpty || kind.hasPrefix("word") || drawn.isDistinct(design), "\(kind)")
        }
        let expected = ["half", "mirrored", "proportions", "look-alike", "words", "wordmark", "nothing"]
        let ofParts = ["part missing", "swapped", "apart", "resized", "replaced", "repeated"]
        for kind in expected { #expect(kinds.contains(kind), "\(kind)") }
        // The leaf is a single part in one colour, so it has no hard negatives that change single parts.
        for kind in ofParts { #expect(kinds.contains(kind) == (name == "crest"), "\(kind)") }
    }

    @Test("A logo of one colour with a second shape inside it looks like the logo") func invisibleShape() throws {
        let disc = try load(
            makeImage(64, 64) { x, y in
                (x - 32) * (x - 32) + (y - 32) * (y - 32) < 900 ? [0, 90, 0, 255] : [0, 0, 0, 0]
            })
        let drawn = try artworkLogo(of: disc)
        #expect(drawn.tones.count == 1)
        let figure = Figure([.box(center: .zero, halfSides: Point(0.6, 0.5), direction: Point(1, 0), rounding: 0)])
        let box = Element(figure: figure, tone: 1)
        #expect(!drawn.isDistinct(Design(elements: drawn.design.elements + [box])))
        #expect(drawn.isDistinct(Design(elements: [box])))
    }

    @Test("Hard negatives do not miss a small part at the edge of the logo, such as the dot after a word")
    func smallPart() throws {
        // Three bars and a red dot, which covers a twentieth of the logo.
        let image = makeImage(100, 60) { x, y in
            let isBar = (10..<50).contains(y) && x < 75 && x % 25 < 15
            let isDot = (x - 84) * (x - 84) + (y - 44) * (y - 44) < 36
            return isBar ? [10, 10, 10, 255] : isDot ? [220, 30, 30, 255] : [0, 0, 0, 0]
        }
        let artwork = try load(image)
        let dot = try #require(artwork.tones.firstIndex { $0.x > 0.5 })
        #expect(try artworkLogo(of: artwork).design.elements.count == 4)
        var count = 0
        for index in 0..<300 {
            var random = RandomStream(seed: 3, "test", index)
            let (kind, design) = artwork.hardNegative(&random)
            guard kind == "part missing" else { continue }
            count += 1
            #expect(design.elements.count == 3 && design.elements.contains { $0.tone == dot })
        }
        #expect(count > 10)
    }

    /// Returns an image like a crop of a photo: the logo on a surface with a colour gradient.
    private func crop(_ width: Int, _ height: Int) -> RasterImage {
        let logo = logo(on: [0, 0, 0, 0])
        return makeImage(width, height) { x, y in
            let offset = 4 * (y * 40 / height * 60 + x * 60 / width)
            return logo.samples[offset + 3] > 0
                ? Array(logo.samples[offset..<(offset + 3)])
                : [UInt8(90 + 120 * x / width), UInt8(170 - 60 * y / height), UInt8(60 + (x * 7 + y * 13) % 40)]
        }
    }

    @Test("A crop of a photo is used as a whole, in its own colours, with a warning")
    func photoCrop() throws {
        let artwork = try load(crop(90, 60))
        let drawn = try artworkLogo(of: artwork)
        #expect(artwork.notes.count == 1 && artwork.notes[0].contains("logo.png has no transparency"))
        #expect(artwork.notes[0].contains("transparent background works better"))
        // The design is one rectangle with the aspect ratio of the image; its mirror symmetry is unknown.
        #expect(drawn.design.elements.count == 1 && !artwork.isMirrorSymmetric)
        let (low, high) = drawn.design.hull.reduce((Point(1, 1), Point(-1, -1))) { box, corner in
            (
                Point(min(box.0.x, corner.x), min(box.0.y, corner.y)),
                Point(max(box.1.x, corner.x), max(box.1.y, corner.y))
            )
        }
        #expect(abs((high.x - low.x) / (high.y - low.y) - 1.5) < 0.01)
        let compositor = Compositor(
            artworks: [artwork], backdrops: try Backdrops([], size: 64, workers: Workers(1)), seed: 1)
        for index in 0..<24 {
            #expect(try compositor.positive(index).kind == "own colours")
            let hardNegative = try compositor.hardNegative(index)
            #expect(!["part missing", "swapped", "repeated", "mirrored"].contains(hardNegative.kind))
        }
    }

    /// A red disc and a blue square, each 100 pixels wide, on a background that depends on the position.
    private func largeLogo(
        shiftedBy shift: Int = 0, width: Int = 320, height: Int = 160, on ground: (Int, Int) -> [UInt8]
    ) -> RasterImage {
        makeImage(width, height) { x, y in
            let x = x + shift
            let inDisc = (x - 90) * (x - 90) + (y - 80) * (y - 80) < 2500
            let inSquare = (190..<290).contains(x) && (30..<130).contains(y)
            return inDisc ? [200, 30, 30] : inSquare ? [20, 40, 180] : ground(x - shift, y)
        }
    }

    /// A background that is not of one colour.
    enum UnevenBackground: CustomTestStringConvertible {
        /// The change of the grey value from corner to corner.
        case gradient(Int)
        /// Noise of at most this amplitude.
        case noise(Int)
        /// Darker corners.
        case vignette
        /// The left edge is another colour, as in a screenshot.
        case line
        /// Part of the border is slightly darker.
        case paleBar(Int)

        static let all: [Self] =
            [20, 30, 40, 50, 60, 70].map { gradient($0) } + [8, 11, 18, 24].map { noise($0) } + [vignette, line]
            + [45, 60].map { paleBar($0) }

        func color(_ x: Int, _ y: Int) -> [UInt8] {
            let gray =
                switch self {
                case .gradient(let change): 180 + change * x / 480 + change * y / 480
                case .noise(let amplitude): 225 + (x * 7919 + y * 104_729) % (2 * amplitude + 1) - amplitude
                case .vignette: 240 - ((x - 160) * (x - 160) / 4 + (y - 80) * (y - 80)) / 800
                case .line: x == 0 ? 90 : 250
                case .paleBar(let difference): x < 30 ? 250 - difference : 250
                }
            return [UInt8(gray), UInt8(gray - 5), UInt8(gray - 20)]
        }

        var testDescription: String { "\(self)" }

        /// Whether part of the background is taken for the logo, because it differs from the rest.
        var isPartlyKept: Bool {
            switch self {
            case .line, .paleBar: true
            case .gradient, .noise, .vignette: false
            }
        }
    }

    @Test("A logo on an uneven background is cut out", arguments: UnevenBackground.all)
    func unevenBackground(background: UnevenBackground) throws {
        let artwork = try load(largeLogo(on: background.color))
        #expect(try !artworkLogo(of: artwork).keepsBackground)
        let cutOut = try #require(artwork.cutOut)
        let alphas = stride(from: 3, to: cutOut.samples.count, by: 4).map { cutOut.samples[$0] }
        // Nothing is left of the background between the parts of the logo.
        #expect(alphas.count { (1...63).contains($0) } < alphas.count / 20)
        guard !background.isPartlyKept else {
            #expect(cutOut.width == 256 && artwork.notes.count == 1 && artwork.notes[0].contains("of the border"))
            return
        }
        #expect(artwork.notes == [])
        // The disc has a radius of 50 pixels, and the square has 100 pixels per side.
        #expect((cutOut.width, cutOut.height) == (249, 100))
        #expect(abs(Double(alphas.count { $0 > 127 }) - (2500 * .pi + 10_000)) < 300)
    }

    @Test("A strong gradient and a border of several colours are part of the logo")
    func keptBackground() throws {
        let backgrounds: [(Int, Int) -> [UInt8]] = [
            { x, _ in [UInt8(90 + x * 120 / 320), 160, 90] },
            { x, y in (x / 20 + y / 20) % 2 == 0 ? [230, 230, 230] : [90, 120, 90] },
            // The logo covers the lower half of the border.
            { _, y in y > 90 ? [200, 30, 30] : [250, 250, 250] },
        ]
        for background in backgrounds {
            let artwork = try load(largeLogo(on: background))
            #expect(try artworkLogo(of: artwork).keepsBackground)
            #expect(artwork.notes.count == 1 && artwork.notes[0].contains("has no transparency"))
            #expect(artwork.cutOut?.width == 256)
        }
    }

    @Test("Small, faint and cropped logos are usable, with a warning") func warnings() throws {
        let white: (Int, Int) -> [UInt8] = { _, _ in [255, 255, 255] }
        #expect(try load(largeLogo(on: white)).notes.isEmpty)
        let cropped = try load(largeLogo(shiftedBy: 80, width: 240, on: white))
        #expect(try artworkLogo(of: cropped).tones.count == 2)
        #expect(
            cropped.notes.count == 1 && cropped.notes[0].contains("covers 12 % of the border"), "\(cropped.notes)")
        let faint = try load(
            makeImage(120, 120) { x, y in
                (x - 60) * (x - 60) + (y - 60) * (y - 60) < 2500 ? [215, 220, 225] : [250, 250, 250]
            })
        #expect(faint.notes.count == 1 && faint.notes[0].contains("hardly differs from its background"))
        // Dust does not change that.
        var image = makeImage(120, 120) { x, y in
            (x - 60) * (x - 60) + (y - 60) * (y - 60) < 2500 ? [215, 220, 225] : [250, 250, 250]
        }
        image.samples.replaceSubrange(3 * (60 * 120 + 60)..<3 * (60 * 120 + 60) + 3, with: [0, 0, 0])
        let dusty = try load(image)
        #expect(dusty.notes.count == 1 && dusty.notes[0].contains("hardly differs from its background"))
        #expect(dusty.cutOut?.samples[4 * (50 * 99 + 40) + 3] == 255)
        for ground: [UInt8] in [[0, 0, 0, 0], [255, 255, 255]] {
            let notes = try load(logo(on: ground)).notes
            #expect(notes.count == 1 && notes[0].contains("the logo has only 41x19 pixels"), "\(notes)")
        }
        let framed = try load(
            makeImage(200, 120) { x, y in
                [0, 1, 2, 197, 198, 199].contains(x) || [0, 1, 2, 117, 118, 119].contains(y)
                    ? [0, 0, 0] : (x - 100) * (x - 100) + (y - 60) * (y - 60) < 900 ? [200, 30, 30] : [255, 255, 255]
            })
        #expect(framed.notes.count == 1 && framed.notes[0].contains("up to a thin frame"), "\(framed.notes)")
        let narrow = try load(
            makeImage(1000, 40) { x, y in
                (10..<990).contains(x) && (15..<25).contains(y) ? [0, 0, 0] : [255, 255, 255]
            })
        #expect(narrow.notes.count == 1 && narrow.notes[0].contains("256x3 pixels"), "\(narrow.notes)")
    }

    @Test("A positive shows the whole crop on any background")
    func photoCropIsWhole() throws {
        let artwork = try load(crop(90, 60))
        let backdrops = try Backdrops([], size: 96, workers: Workers(1))
        let compositor = Compositor(
            artworks: [artwork], backdrops: backdrops, seed: 2, configuration: .init(span: 0.6...0.6, rotatedShare: 0))
        for index in 0..<12 {
            let scene = compositor.positiveScene(index)
            let (with, without) = (scene.painted().image, scene.painted(showsLogo: false).image)
            let changed = (0..<(96 * 96)).count { pixel in
                with.samples[(3 * pixel)..<(3 * pixel + 3)] != without.samples[(3 * pixel)..<(3 * pixel + 3)]
            }
            // A rectangle with sides 3:2 in a circle of diameter 58 covers 1,520 pixels, or fewer if it is tilted.
            #expect(changed > 800, "\(index): \(changed)")
        }
    }

    @Test("A file without a logo is an error with a remedy")
    func errors() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "logo.png")
            func error(_ image: RasterImage) throws -> ArtworkError? {
                try ImageFile.write(image, to: file)
                do {
                    _ = try Artwork(contentsOf: file)
                    return nil
                } catch {
                    return error
                }
            }
            #expect(try error(RasterImage(width: 30, height: 30, filledWith: 200)) == .empty(file: file))
            #expect(try error(RasterImage(width: 30, height: 30, channels: 4)) == .empty(file: file))
            let small = makeImage(40, 40) { x, y in x < 9 && y < 5 ? [0, 0, 0, 255] : [0, 0, 0, 0] }
            #expect(try error(crop(12, 9)) == .tooSmall(file: file, width: 12, height: 9, minimum: 16))
            #expect(try error(small) == .tooSmall(file: file, width: 9, height: 5, minimum: 16))

            let missing = folder.appending(path: "none.png")
            #expect(throws: ArtworkError.self) { try Artwork(contentsOf: missing) }
            let damaged = folder.appending(path: "damaged.png")
            try Data(ImageFile.encodePNG(logo(on: [0, 0, 0, 0])).dropLast(40)).write(to: damaged)
            #expect(throws: ArtworkError.self) { try Artwork(contentsOf: damaged) }
            let notes = folder.appending(path: "notes.txt")
            try Data("a text".utf8).write(to: notes)
            let notArtwork = ArtworkError.notArtwork(file: notes, found: "text")
            #expect(throws: notArtwork) { try Artwork(contentsOf: notes) }
            let message = "expected an image (JPEG, PNG, WebP or HEIC) or an SVG drawing, found text"
            #expect("\(notArtwork)".contains(message))
            let drawing = folder.appending(path: "logo.SVG")
            try Data("xmlns='http://www.w3.org/2000/svg'><rect/></svg>".utf8).write(to: drawing)
            let damagedDrawing = ArtworkError.damagedDrawing(file: drawing, found: "text")
            #expect(throws: damagedDrawing) { try Artwork(contentsOf: drawing) }
            try Data("{}".utf8).write(to: folder.appending(path: "r.json"))
            #expect(throws: DrawingError.self) { try Artwork.load(named: folder.appending(path: "r.json").path) }
            #expect(throws: DrawingError.self) { try Artwork.load(named: "no-such-recipe") }
        }
    }

    @Test(
        "Logos of any shape and size are accepted",
        arguments: [(16, 1), (1, 16), (16, 16), (700, 3), (300, 290), (41, 40)])
    func unusualSizes(width: Int, height: Int) throws {
        // The artwork 41 pixels wide is almost transparent.
        let alpha: UInt8 = width == 41 ? 20 : 255
        let artwork = try load(
            makeImage(width, height) { x, y in [UInt8(x % 7 * 36), 90, 120, alpha - UInt8((x + y) % 2)] })
        let compositor = Compositor(
            artworks: [artwork], backdrops: try Backdrops([], size: 48, workers: Workers(1)), seed: 1)
        for index in 0..<4 {
            let (positive, negative) = (try compositor.positive(index), try compositor.hardNegative(index))
            #expect(positive.logo == positive.subject && negative.logo == nil)
            for composite in [positive, negative] {
                #expect(composite.image.width == 48 && composite.image.height == 48 && composite.image.channels == 3)
            }
        }
    }
}
