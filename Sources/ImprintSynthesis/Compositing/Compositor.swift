internal import ImprintCore
package import ImprintImages

/// A picture of a scene that a logo was put into, or something else like it.
package struct Composite: Sendable, Equatable {
    /// Where a mark is, in pixels from the upper left corner.
    package struct Place: Sendable, Equatable {
        /// The middle of the smallest circle that holds the mark.
        package let x: Float
        /// The middle of the smallest circle that holds the mark.
        package let y: Float
        /// The diameter of this circle.
        package let span: Float

        /// Makes a place of its middle and its diameter.
        package init(x: Float, y: Float, span: Float) {
            self.x = x
            self.y = y
            self.span = span
        }
    }

    /// The picture, 3 channels.
    package let image: RasterImage
    /// Where the logo is; nil if there is none.
    package let mark: Place?
    /// Where the logo is, or what was put there in its stead.
    package let subject: Place
    /// What is shown, in a word or two: how the logo is coloured, or what is wrong with a hard negative.
    package let kind: String
}

/// Makes training pictures of a logo from its artwork, as many as are wanted, and hard negatives of it.
///
/// A picture follows from the seed and its index alone, so that any thread may ask for any of them, in any order.
package struct Compositor: Sendable {
    /// How the logo is shown.
    package struct Configuration: Sendable, Equatable {
        /// The diameter of the mark as a share of the side of the picture, uniform in its logarithm (within 0.02…0.9).
        package var span: ClosedRange<Float>
        /// The share of pictures in which the mark is turned by any angle; otherwise it is upright, give or take 12°.
        package var turnedShare: Float

        /// Makes a configuration.
        package init(span: ClosedRange<Float> = 0.04...0.6, turnedShare: Float = 0.4) {
            precondition(
                span.lowerBound >= 0.02 && span.upperBound <= 0.9, "a mark spans 0.02 to 0.9 of a picture, not \(span)")
            precondition((0...1).contains(turnedShare), "a share lies within 0...1, not \(turnedShare)")
            self.span = span
            self.turnedShare = turnedShare
        }
    }

    /// What the logo looks like.
    package let artworks: [Artwork]
    /// What is behind it.
    package let backdrops: Backdrops
    /// What the pictures follow from.
    package let seed: UInt64
    /// How the logo is shown.
    package let configuration: Configuration
    /// What the logo is called where others are put into pictures of the same seed; nil if it is the only one.
    package let label: String?

    /// The height and width of the pictures, in pixels.
    package var size: Int { backdrops.size }

    /// Makes a compositor.
    /// - Parameters:
    ///   - artworks: What the logo looks like, at least one; each picture shows one of them.
    ///   - backdrops: What is behind it, which also says how large the pictures are.
    ///   - seed: What the pictures follow from.
    ///   - configuration: How the logo is shown.
    ///   - label: What the logo is called if there are several, so that each is put into scenes of its own.
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

    /// The picture of that index with the logo in it.
    /// - Throws: `ImageError.unencodable` if memory runs out.
    package func positive(_ index: Int) throws(ImageError) -> Composite {
        let scene = positiveScene(index)
        return Composite(
            image: try scene.render(), mark: scene.place, subject: scene.place, kind: scene.inks.style.rawValue)
    }

    /// The picture of that index with something else in it, or nothing.
    /// - Throws: `ImageError.unencodable` if memory runs out.
    package func hardNegative(_ index: Int) throws(ImageError) -> Composite {
        var random = stream("near miss", index)
        let artwork = random.element(of: artworks)
        let (kind, design) = artwork.hardNegative(&random)
        let scene = Scene(design, of: artwork, configuration, backdrops, &random)
        return Composite(image: try scene.render(), mark: nil, subject: scene.place, kind: kind)
    }

    /// The scene of a positive, to be rendered with its mark or without.
    func positiveScene(_ index: Int) -> Scene {
        var random = stream("positive", index)
        let artwork = random.element(of: artworks)
        let design = artwork.mark(&random)
        return Scene(design, of: artwork, configuration, backdrops, &random)
    }

    private func stream(_ kind: String, _ index: Int) -> RandomStream {
        RandomStream(seed: seed, label.map { "\(kind) of \($0)" } ?? kind, index)
    }
}
