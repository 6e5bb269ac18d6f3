package import ImprintCore

/// How training images are varied, so that a classifier learns what does not matter.
///
/// The switches are named as Create ML's; each image is varied again in every epoch. Geometry and colour are one pass over
/// the image; blur, noise and JPEG follow if they are drawn.
public struct Augmentation: Codable, Hashable, Sendable {
    /// One way to vary an image.
    public enum Kind: String, Codable, CaseIterable, Sendable {
        /// Mirrored left to right, every second image.
        case flip
        /// Mirrored top to bottom, every second image.
        case flipVertical = "flip-vertical"
        /// Turned by up to 15° to either side.
        case rotate
        /// A part of the image: zoomed by 1 to 1.25 and moved by up to 8 % of the side.
        case crop
        /// Brightened or darkened by up to 0.4 stops.
        case exposure
        /// Blurred with a deviation of up to 1.5 % of the side, every third image.
        case blur
        /// Noise of a deviation of 2 to 12 of 255 added, every third image.
        case noise
        /// Seen from the side: up to 20 % larger at one edge and smaller at the opposite one, in both directions.
        case perspective
        /// Colours turned by up to 18°, saturation changed by a factor of 0.6 to 1.4 and contrast by up to 0.4 stops.
        case color
        /// Stored as a JPEG of a quality of 25 to 90, every second image.
        case jpeg
    }

    /// The ways to vary an image that are switched on.
    public var kinds: Set<Kind>

    /// Nothing is varied.
    public static let none = Augmentation([])

    /// The words that `init(named:)` knows, beside "none".
    public static let words = Kind.allCases.map(\.rawValue)

    /// Switches the given ways on.
    public init(_ kinds: Set<Kind>) { self.kinds = kinds }

    /// Other words for the same: those of Create ML, and the British one.
    private static let synonyms = ["rotation": Kind.rotate, "expose": .exposure, "colour": .color]

    /// Switches on what is named, with commas between, as in "flip,rotate,blur"; or nothing for "none".
    ///
    /// "rotation" is understood for "rotate", "expose" for "exposure" and "colour" for "color".
    /// - Throws: `ImageError.unknownAugmentation` for any other word.
    public init(named words: String) throws(ImageError) {
        kinds = []
        guard words != "none" else { return }
        for word in words.split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = Kind(rawValue: String(word)) ?? Self.synonyms[String(word)] else {
                throw .unknownAugmentation(word: String(word), known: Augmentation.words)
            }
            kinds.insert(kind)
        }
    }

    /// The names of what is switched on, in a fixed order.
    public var words: [String] { Kind.allCases.filter(kinds.contains).map(\.rawValue) }

    /// Writes the kinds in their fixed order; that of a set differs from run to run.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(words, forKey: .kinds)
    }

    /// One variation of an image; the stream decides which.
    /// - Throws: `ImageError.unencodable` if memory runs out for "jpeg".
    package func apply(to image: RasterImage, using stream: inout RandomStream) throws(ImageError) -> RasterImage {
        try Variation(kinds, for: image, using: &stream)(image)
    }

    /// The variation that training with that seed shows of the image at a place of its data set in an epoch.
    func variation(of image: RasterImage, at place: Int, epoch: Int, seed: UInt64) throws(ImageError) -> RasterImage {
        var stream = RandomStream(seed: seed, "augmentation", epoch, place)
        return try apply(to: image, using: &stream)
    }
}
