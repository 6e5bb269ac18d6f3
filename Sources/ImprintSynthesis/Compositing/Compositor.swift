internal import ImprintCore
package import ImprintImages

/// A composite: a synthetic image of a scene with a logo or a hard negative.
package struct Composite: Sendable, Equatable {
    /// The smallest enclosing circle of a logo, in pixels from the upper left corner.
    package struct Location: Sendable, Equatable {
        /// The x coordinate of the centre.
        package let x: Float
        /// The y coordinate of the centre.
        package let y: Float
        /// The diameter, in pixels.
        package let span: Float

        /// Creates a location from centre and diameter.
        package init(x: Float, y: Float, span: Float) {
            self.x = x
            self.y = y
            self.span = span
        }
    }

    /// The image, with 3 channels.
    package let image: RasterImage
    /// The location of the logo; nil for a hard negative.
    package let logo: Location?
    /// The location of the logo or hard negative.
    package let subject: Location
    /// The corners of the convex hull of the logo or hard negative, in pixels.
    package let outline: [SIMD2<Float>]
    /// A short description: the colouring of the logo, or the kind of hard negative.
    package let kind: String
}

/// Generates synthetic training data for a logo: composites of its artwork, and hard negatives.
///
/// These hard negatives are synthetic: look-alikes of the logo. Hard-negative mining finds other hard negatives in photos while a logo
/// detector trains (`DetectorPatches` in ImprintTraining).
///
/// A composite depends only on the seed and its index, so threads can generate composites in any order.
package struct Compositor: Sendable {
    /// The size, rotation and colours of the logo in composites.
    package struct Configuration: Sendable, Equatable {
        /// The diameter of the logo as a fraction of the side of the image, log-uniformly distributed (within 0.02…0.9).
        package var span: ClosedRange<Float>
        /// The fraction of images with a random rotation; in the others, the rotation has a standard deviation of 12°.
        package var rotatedShare: Float
        /// The fraction of images in which the logo has its original colours, if they are visible on the background.
        package var originalShare: Float

        /// Creates a configuration.
        package init(span: ClosedRange<Float> = 0.04...0.6, rotatedShare: Float = 0.4, originalShare: Float = 0.3) {
            precondition(
                span.lowerBound >= 0.02 && span.upperBound <= 0.9,
                "a logo must span 0.02 to 0.9 of the side of an image, not \(span)")
            for share in [rotatedShare, originalShare] {
                precondition((0...1).contains(share), "a fraction must be within 0...1, not \(share)")
            }
            self.span = span
            self.rotatedShare = rotatedShare
            self.originalShare = originalShare
        }
    }

    /// The variants of the logo.
    package let artworks: [Artwork]
    /// The backgrounds.
    package let backdrops: Backdrops
    /// The random seed.
    package let seed: UInt64
    /// The size, rotation and colours of the logo.
    package let configuration: Configuration
    /// The label of the logo, if several compositors have the same seed; nil for a single logo.
    package let label: String?

    /// The height and width of the images, in pixels.
    package var size: Int { backdrops.size }

    /// Creates a compositor.
    /// - Parameters:
    ///   - artworks: The variants of the logo, at least one; each composite shows one of them.
    ///   - backdrops: The backgrounds, which also determine the size of the images.
    ///   - seed: The random seed.
    ///   - configuration: The size, rotation and colours of the logo.
    ///   - label: The label of the logo if there are several, so that their scenes differ despite the same seed.
    package init(
        artworks: [Artwork], backdrops: Backdrops, seed: UInt64, configuration: Configuration = Configuration(),
        label: String? = nil
    ) {
        precondition(!artworks.isEmpty, "a compositor needs at least one artwork")
        self.artworks = artworks
        self.backdrops = backdrops
        self.seed = seed
        self.configuration = configuration
        self.label = label
    }

    /// Generates composite number `index` with the logo.
    /// - Throws: `ImageError.unencodable` if memory runs out.
    package func positive(_ index: Int) throws(ImageError) -> Composite {
        let scene = positiveScene(index)
        return try scene.composite(
            showsLogo: true, kind: scene.inks.style.rawValue, seed: effectSeed("positive", index))
    }

    /// Generates composite number `index` without the logo: with a hard negative, or with only the background.
    /// - Throws: `ImageError.unencodable` if memory runs out.
    package func hardNegative(_ index: Int) throws(ImageError) -> Composite {
        // "near miss" is the former name of hard negatives. It stays, because a new stream name would change all hard negatives of a seed.
        var random = stream("near miss", index)
        let artwork = random.element(of: artworks)
        let (kind, design) = artwork.hardNegative(&random)
        let scene = Scene(design, of: artwork, configuration, backdrops, &random)
        return try scene.composite(showsLogo: false, kind: kind, seed: effectSeed("hard negative", index))
    }

    /// Generates composite number `index` with a distractor: plain shapes or words, which are not derived from the logo, or nothing.
    /// - Throws: `ImageError.unencodable` if memory runs out.
    package func distractor(_ index: Int) throws(ImageError) -> Composite {
        var random = stream("distractor", index)
        let artwork = random.element(of: artworks)
        let tones = max(artwork.tones.count, 1)
        var (kind, design) = ("nothing", Design.nothing)
        switch random.index(below: 4) {
        case 0: break
        case 1:
            let word = Lettering.standard.word(letters: 3...9, tone: random.index(below: tones), &random)
            (kind, design) = ("wordmark", Design(fitting: word))
        default:
            for _ in 0..<8 where kind == "nothing" {
                let shapes = LookAlike.design(tones: tones, &random)
                if artworks.allSatisfy({ $0.isDistinct(shapes) }) { (kind, design) = ("look-alike", shapes) }
            }
        }
        let scene = Scene(design, of: artwork, configuration, backdrops, &random)
        return try scene.composite(showsLogo: false, kind: kind, seed: effectSeed("distractor", index))
    }

    /// Returns the scene of composite number `index` with the logo.
    func positiveScene(_ index: Int) -> Scene {
        var random = stream("positive", index)
        let artwork = random.element(of: artworks)
        let design = artwork.logo(&random)
        return Scene(design, of: artwork, configuration, backdrops, &random)
    }

    /// Returns the random seed of the photographic effects of a composite.
    private func effectSeed(_ kind: String, _ index: Int) -> UInt64 {
        var random = stream("effects of \(kind)", index)
        return random.next()
    }

    private func stream(_ kind: String, _ index: Int) -> RandomStream {
        RandomStream(seed: seed, label.map { "\(kind) of \($0)" } ?? kind, index)
    }
}
