public import Foundation
internal import ImprintCore
public import ImprintImages

/// The artwork of a logo: an image file, or a recipe that draws the logo.
public struct Artwork: Sendable {
    /// The name of the file or the recipe, for messages.
    public let name: String
    /// Whether the mirror image is the same logo at some rotation, so that training may flip images.
    public let isMirrorSymmetric: Bool
    /// Warnings about the artwork, as sentences for the user; empty if there are none.
    public let notes: [String]
    /// The logo as Imprint uses it, with alpha, not premultiplied, and at most 256 pixels on its longer side; nil for a recipe.
    public let cutOut: RasterImage?
    /// The SHA-256 digest of the visible pixels or of the recipe; it changes if the appearance of the logo changes.
    package let digest: String
    /// The digest that version 1 computed, for its checkpoints.
    package let versionOneDigest: String

    enum Source: Sendable {
        /// An image file.
        case image(ArtworkLogo)
        /// A recipe that draws the logo.
        case recipe(RecipeLogos)
    }

    let source: Source
    /// The effects of composites with the logo.
    let effects: SceneEffects

    /// Creates artwork from an image file: with transparency (PNG, WebP or HEIC), or on a plain background; or from an SVG drawing, if
    /// librsvg is installed.
    ///
    /// A plain background has one colour or a slight gradient. It is removed, also inside the logo, and the logo may cover up to a
    /// quarter of the border. An image with neither, such as a crop of a photo, is used as a whole, like a rectangular sticker:
    /// with its background and always in its original colours. `notes` then contains a warning. It also contains warnings about a
    /// small, narrow, faint or cropped logo, and about a frame.
    ///
    /// The image is trimmed to its visible part, and scaled down to 256 pixels on its longer side if that is larger.
    /// - Throws: `ArtworkError` if the file cannot be read, contains no logo, or is too small.
    public init(contentsOf file: URL) throws(ArtworkError) {
        name = file.lastPathComponent
        let artwork = try ArtworkImage(contentsOf: file)
        digest = SHA256.hexadecimal(
            of: Array("\(artwork.image.width)x\(artwork.image.height)".utf8) + artwork.image.samples)
        versionOneDigest = digest
        let logos = ArtworkLogo(ArtworkParts(artwork), keepsBackground: artwork.keepsBackground)
        notes = artwork.problems.map { $0.note(file: file) }
        cutOut = artwork.image
        isMirrorSymmetric = logos.isMirrorSymmetric
        source = .image(logos)
        effects = .standard
    }

    /// Creates artwork from the logos and hard negatives in the `compositing` section of a recipe.
    ///
    /// Every composite draws them again with random variations. Without that section, the logos are those of the first label. The
    /// hard negatives are the logos of the other labels that differ from them at every rotation. The mirror image of a recipe's
    /// logo is treated as the logo.
    package init(_ recipe: DrawingRecipe) {
        name = recipe.name
        notes = []
        cutOut = nil
        digest = recipe.digest
        versionOneDigest = recipe.versionOneDigest
        isMirrorSymmetric = true
        source = .recipe(RecipeLogos(recipe))
        effects = recipe.compositing?.effects.map { SceneEffects(named: $0) } ?? .standard
    }

    /// Loads a recipe or an image file.
    /// - Parameter name: The path of a recipe (ending in ".json") or of an image, or the name of a recipe, without "/" and ".". A name without
    ///   a recipe may be the path of an image.
    /// - Throws: `ArtworkError` or `DrawingError`.
    package static func load(named name: String) throws -> Artwork {
        let file = URL(filePath: name)
        let isName = !name.contains("/") && !name.contains(".")
        if name.hasSuffix(".json") || isName {
            do {
                return Artwork(try DrawingRecipe.load(named: name))
            } catch {
                // A file without an extension can have the name.
                guard case .noSuchRecipe = error, FileStatus(file)?.isFolder == false else { throw error }
            }
        }
        return try Artwork(contentsOf: file)
    }

    /// The tones: the main colours of the image; empty for a recipe.
    var tones: [Color] {
        switch source {
        case .image(let logos): logos.tones
        case .recipe: []
        }
    }

    /// The sets of tones, one of which is printed if the logo has a single ink; empty for a recipe or if a single ink is unsuitable.
    var inkedTones: [Set<Int>] {
        switch source {
        case .image(let logos): logos.inkedTones
        case .recipe: []
        }
    }

    /// Whether composites always show the artwork in its original colours, filled and with smooth edges.
    ///
    /// This is the case for an image with a background, which would be a plain rectangle in any other ink.
    var keepsOriginalColors: Bool {
        switch source {
        case .image(let logos): logos.keepsBackground
        case .recipe: false
        }
    }

    /// Returns the logo of an image, or a random logo of a recipe.
    func logo(_ random: inout RandomStream) -> Design {
        switch source {
        case .image(let logos): logos.design
        case .recipe(let logos): Design(logos.logos.choice(&random).logo(&random))
        }
    }
}

/// The logos and hard negatives of a recipe.
struct RecipeLogos: Sendable {
    let logos: [DrawingRecipe.WeightedLogo]
    /// The logos that differ from `logos` at every rotation.
    let hardNegatives: [DrawingRecipe.WeightedLogo]

    /// The minimum intersection over union (IoU) at which two kinds of logo count as the same shape.
    private static let overlapLimit: Float = 0.86

    init(_ recipe: DrawingRecipe) {
        if let compositing = recipe.compositing {
            (logos, hardNegatives) = (compositing.logos, compositing.hardNegatives)
            return
        }
        let logos = recipe.labels[0].logos
        self.logos = logos
        var random = RandomStream(seed: 0, "likeness")
        let examples = 4
        let likenesses = (0..<examples).map { _ in
            Likeness(Design(logos.choice(&random).logo(&random)), inked: [], toneCount: 1)
        }
        let others = recipe.labels.dropFirst().flatMap(\.logos).filter { other in
            let overlaps = (0..<examples).flatMap { _ in
                let design = Design(other.logo(&random))
                return likenesses.map { $0.overlap(with: design) }
            }
            return (overlaps.max() ?? 0) < Self.overlapLimit
        }
        hardNegatives = others.isEmpty ? [DrawingRecipe.WeightedLogo(kind: .nothing, weight: 1)] : others
    }
}
