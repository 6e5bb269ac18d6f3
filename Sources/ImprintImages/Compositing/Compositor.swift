internal import ImprintCore

/// A picture of a scene that a logo was put into, or something else like it.
public struct Composite: Sendable, Equatable {
    /// Where a mark is, in pixels from the upper left corner.
    public struct Place: Sendable, Equatable {
        /// The middle of the smallest circle that holds the mark.
        public let x: Float
        /// The middle of the smallest circle that holds the mark.
        public let y: Float
        /// The diameter of this circle.
        public let span: Float

        /// Makes a place of its middle and its diameter.
        public init(x: Float, y: Float, span: Float) {
            self.x = x
            self.y = y
            self.span = span
        }
    }

    /// The picture, 3 channels.
    public let image: Image
    /// Where the logo is; `nil` where there is none.
    public let mark: Place?
    /// Where the logo is, or what was put there in its stead.
    public let subject: Place
    /// What is shown, in a word or two: how the logo is coloured, or what is wrong with a near miss.
    public let kind: String
}

/// Makes training pictures of a logo from its artwork, as many as are wanted, and near misses of it.
///
/// A picture follows from the seed and its index alone, so that any thread may ask for any of them, in any order.
public struct Compositor: Sendable {
    /// How the logo is shown.
    public struct Configuration: Sendable, Equatable {
        /// The diameter of the mark as a share of the side of the picture, uniform in its logarithm (within 0.02…0.9).
        public var span: ClosedRange<Float>
        /// The share of pictures in which the mark is turned by any angle; otherwise it is upright, give or take 12°.
        public var turnedShare: Float

        /// Makes a configuration.
        public init(span: ClosedRange<Float> = 0.04...0.6, turnedShare: Float = 0.4) {
            precondition(
                span.lowerBound >= 0.02 && span.upperBound <= 0.9, "a mark spans 0.02 to 0.9 of a picture, not \(span)")
            precondition((0...1).contains(turnedShare), "a share lies within 0...1, not \(turnedShare)")
            self.span = span
            self.turnedShare = turnedShare
        }
    }

    /// What the logo looks like.
    public let artworks: [Artwork]
    /// What is behind it.
    public let backdrops: Backdrops
    /// What the pictures follow from.
    public let seed: UInt64
    /// How the logo is shown.
    public let configuration: Configuration
    /// What the logo is called where others are put into pictures of the same seed; `nil` where it is the only one.
    public let label: String?

    /// The height and width of the pictures, in pixels.
    public var size: Int { backdrops.size }

    /// Makes a compositor.
    /// - Parameters:
    ///   - artworks: What the logo looks like, at least one; each picture shows one of them.
    ///   - backdrops: What is behind it, which also says how large the pictures are.
    ///   - seed: What the pictures follow from.
    ///   - configuration: How the logo is shown.
    ///   - label: What the logo is called where there are several, so that each is put into scenes of its own.
    public init(
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
    /// - Throws: `ImageError.unencodable` where memory runs out.
    public func positive(_ index: Int) throws(ImageError) -> Composite {
        let scene = positiveScene(index)
        return Composite(
            image: try scene.render(), mark: scene.place, subject: scene.place, kind: scene.inks.style.rawValue)
    }

    /// The picture of that index with something else in it, or nothing.
    /// - Throws: `ImageError.unencodable` where memory runs out.
    public func nearMiss(_ index: Int) throws(ImageError) -> Composite {
        var random = stream("near miss", index)
        let artwork = random.element(of: artworks)
        let (kind, design) = artwork.nearMiss(&random)
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
