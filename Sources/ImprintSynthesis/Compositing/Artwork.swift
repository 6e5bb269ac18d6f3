public import Foundation
internal import ImprintCore

/// What a logo looks like: a picture of it, or a recipe that draws it.
public struct Artwork: Sendable {
    /// What it is called in messages: the name of the file or of the recipe.
    public let name: String
    /// Whether its mirror image, however turned, is the same mark, so that training may flip images.
    public let isMirrorSymmetric: Bool
    /// What was assumed about the file, in sentences for people; empty if nothing was.
    public let notes: [String]
    /// The SHA-256 digest of what is visible, or of what the recipe says: what has another one looks otherwise.
    package let digest: String

    enum Source: Sendable {
        case picture(PictureMarks)
        case recipe(RecipeMarks)
    }

    let source: Source

    /// Reads the picture of a logo: a PNG, WebP or HEIC with transparency, or a picture of any kind on one plain colour, which
    /// is taken out wherever it is.
    ///
    /// A picture with neither, such as a crop of a photo, is used as a whole, like a rectangular sticker: always in its own colours,
    /// together with what is behind the logo in it. `notes` says so.
    ///
    /// What is visible is trimmed, and shrunk to 256 pixels on its longer side if it is larger.
    /// - Throws: `ArtworkError` if the file cannot be read, shows nothing, or is too small.
    public init(contentsOf file: URL) throws(ArtworkError) {
        name = file.lastPathComponent
        let picture = try ArtworkPicture(contentsOf: file)
        digest = SHA256.hexadecimal(
            of: Array("\(picture.image.width)x\(picture.image.height)".utf8) + picture.image.samples)
        let marks = PictureMarks(ArtworkParts(picture), keepsBackground: picture.keepsBackground)
        notes =
            picture.keepsBackground
            ? [
                "\(file.displayPath) has no transparency and a border of several colours, so the whole picture is used as the logo, like "
                    + "a sticker. A PNG of the logo alone with a transparent background works better."
            ] : []
        isMirrorSymmetric = marks.isMirrorSymmetric
        source = .picture(marks)
    }

    /// Takes the marks and hard negatives that the recipe composites, drawn again each time with the variation that their kinds have.
    ///
    /// Where it names none, the marks are those of its first label, and the hard negatives those of its other labels which can be told
    /// from the mark however it is turned. The mirror image of a recipe's mark counts as the mark itself.
    package init(_ recipe: DrawingRecipe) {
        name = recipe.name
        notes = []
        digest = SHA256.hexadecimal(of: Array("\(recipe)".utf8))
        isMirrorSymmetric = true
        source = .recipe(RecipeMarks(recipe))
    }

    /// Reads a picture, or a recipe where `name` ends in ".json" or is that of one (`DrawingRecipe.load(named:)`).
    /// - Throws: `ArtworkError` or `DrawingError`.
    public static func load(named name: String) throws -> Artwork {
        let isName = !name.contains("/") && !name.contains(".")
        if name.hasSuffix(".json") || isName { return Artwork(try DrawingRecipe.load(named: name)) }
        return try Artwork(contentsOf: URL(filePath: name))
    }

    /// The colours of its tones; none where a recipe draws it.
    var tones: [Color] {
        switch source {
        case .picture(let marks): marks.tones
        case .recipe: []
        }
    }

    /// The sets of tones of which one at a time is inked where the logo is printed in one colour; none if it is all of it.
    var inkedTones: [Set<Int>] {
        switch source {
        case .picture(let marks): marks.inkedTones
        case .recipe: []
        }
    }

    /// Whether it is always shown in its own colours, filled and with smooth edges: in another ink, a picture with a background is a
    /// rectangle.
    var keepsOwnColors: Bool {
        switch source {
        case .picture(let marks): marks.keepsBackground
        case .recipe: false
        }
    }

    /// The mark itself.
    func mark(_ random: inout RandomStream) -> Design {
        switch source {
        case .picture(let marks): marks.design
        case .recipe(let marks): Design(marks.marks.choice(&random).mark(&random))
        }
    }
}

/// The marks of a recipe.
struct RecipeMarks: Sendable {
    let marks: [DrawingRecipe.WeightedMark]
    /// What no turn of the mark is.
    let nearMisses: [DrawingRecipe.WeightedMark]

    /// From which share of a common area on a kind of mark cannot be told from another one by its shape.
    private static let overlapLimit: Float = 0.86

    init(_ recipe: DrawingRecipe) {
        if let compositing = recipe.compositing {
            (marks, nearMisses) = (compositing.marks, compositing.nearMisses)
            return
        }
        let marks = recipe.labels[0].marks
        self.marks = marks
        var random = RandomStream(seed: 0, "likeness")
        let examples = 4
        let likenesses = (0..<examples).map { _ in
            Likeness(Design(marks.choice(&random).mark(&random)), inked: [], turnsFully: true)
        }
        let others = recipe.labels.dropFirst().flatMap(\.marks).filter { other in
            let overlaps = (0..<examples).flatMap { _ in
                let design = Design(other.mark(&random))
                return likenesses.map { $0.overlap(with: design) }
            }
            return (overlaps.max() ?? 0) < Self.overlapLimit
        }
        nearMisses = others.isEmpty ? [DrawingRecipe.WeightedMark(kind: .nothing, weight: 1)] : others
    }
}
