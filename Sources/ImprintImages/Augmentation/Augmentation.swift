package import ImprintCore

/// The data augmentation of training images.
///
/// The kinds have the names that Create ML uses. Every epoch augments each image with new random values. Geometry and colour
/// take one pass over the image. Blur, noise and JPEG compression follow for a random part of the images.
public struct Augmentation: Codable, Hashable, Sendable, CustomStringConvertible {
    /// One kind of augmentation.
    public enum Kind: String, Codable, CaseIterable, Sendable {
        /// Mirrors an image left to right with probability 1/2.
        case flip
        /// Mirrors an image top to bottom with probability 1/2.
        case flipVertical = "flip-vertical"
        /// Rotates by up to 15° in either direction.
        case rotate
        /// Crops: zooms by 1 to 1.25 and moves by up to 8 % of the side.
        case crop
        /// Brightens or darkens by up to 0.4 stops.
        case exposure
        /// With probability 1/3, blurs an image with a Gaussian whose standard deviation is up to 1.5 % of the side.
        case blur
        /// With probability 1/3, adds noise with a standard deviation of 2 to 12 of 255.
        case noise
        /// Changes the perspective: up to 20 % larger at one edge and smaller at the opposite one, in both directions.
        case perspective
        /// Rotates the hue by up to 18°, and changes saturation by a factor of 0.6 to 1.4 and contrast by up to 0.4 stops.
        case color
        /// With probability 1/2, compresses an image as a JPEG of quality 25 to 90.
        case jpeg
    }

    /// The enabled kinds.
    public var kinds: Set<Kind>

    /// No augmentation.
    public static let none = Augmentation([])

    /// The names that `init(named:)` accepts, besides "none".
    public static let allNames = Kind.allCases.map(\.rawValue)

    /// Creates an augmentation of the given kinds.
    public init(_ kinds: Set<Kind>) { self.kinds = kinds }

    /// Aliases: the names of Create ML, and British spelling.
    private static let synonyms = ["rotation": Kind.rotate, "expose": .exposure, "colour": .color]

    /// Creates an augmentation from a comma-separated list of kinds such as "flip,rotate,blur"; "none" is an empty list.
    ///
    /// "rotation" is an alias of "rotate", "expose" of "exposure" and "colour" of "color".
    /// - Throws: `ImageError.unknownAugmentation` for any other name, and for "none" in a list with others.
    public init(named list: String) throws(ImageError) {
        kinds = []
        guard list != "none" else { return }
        for name in list.split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = Kind(rawValue: String(name)) ?? Self.synonyms[String(name)] else {
                throw .unknownAugmentation(name: String(name), known: Augmentation.allNames)
            }
            kinds.insert(kind)
        }
    }

    /// The names of the enabled kinds, in a fixed order.
    public var names: [String] { Kind.allCases.filter(kinds.contains).map(\.rawValue) }

    /// The list that `init(named:)` accepts, such as "flip,rotate"; "none" without kinds.
    public var description: String { kinds.isEmpty ? "none" : names.joined(separator: ",") }

    /// Encodes the kinds in a fixed order, because the order of a set differs from run to run.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(names, forKey: .kinds)
    }

    /// Augments an image with random values from `stream`.
    /// - Throws: `ImageError.unencodable` if memory runs out for "jpeg".
    package func apply(to image: RasterImage, using stream: inout RandomStream) throws(ImageError) -> RasterImage {
        try AugmentationTransform(kinds, for: image, using: &stream)(image)
    }

    /// Augments the image at `index` of its data set as training with that seed does in an epoch.
    func augmented(_ image: RasterImage, at index: Int, epoch: Int, seed: UInt64) throws(ImageError) -> RasterImage {
        var stream = RandomStream(seed: seed, "augmentation", epoch, index)
        return try apply(to: image, using: &stream)
    }
}
