internal import Foundation
public import ImprintCore

/// How training images are varied, so that a classifier learns what does not matter.
///
/// The switches are named as Create ML's; each image is drawn anew in every epoch. Geometry and exposure are one pass
/// over the image, blur is a second.
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
    }

    /// The ways to vary an image that are switched on.
    public var kinds: Set<Kind>

    /// Nothing is varied.
    public static let none = Augmentation([])

    /// The words that `init(named:)` knows, beside "none".
    public static let words = Kind.allCases.map(\.rawValue)

    /// Switches the given ways on.
    public init(_ kinds: Set<Kind>) { self.kinds = kinds }

    /// Switches on what is named, with commas between, as in "flip,rotate,blur"; or nothing for "none".
    /// - Throws: `ImageError.unknownAugmentation` for any other word.
    public init(named words: String) throws(ImageError) {
        kinds = []
        guard words != "none" else { return }
        for word in words.split(separator: ",", omittingEmptySubsequences: false) {
            guard let kind = Kind(rawValue: String(word)) else {
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
    public func apply(to image: Image, using stream: inout RandomStream) -> Image {
        // Every number is drawn whether it is used or not, so that one switch does not change what another does.
        let flips = stream.chance(0.5)
        let flipsVertically = stream.chance(0.5)
        let angle = stream.uniform(in: -15...15) * .pi / 180
        let zoom = stream.uniform(in: 1...1.25)
        let shift = (x: stream.uniform(in: -0.08...0.08), y: stream.uniform(in: -0.08...0.08))
        let stops = stream.uniform(in: -0.4...0.4)
        let blurs = stream.chance(1 / 3)
        let deviation = stream.uniform(in: 0.003...0.015) * Float(min(image.width, image.height))

        var map = AffineMap()
        if kinds.contains(.crop) { map = map.zoomed(by: zoom, movedBy: shift, in: image) }
        if kinds.contains(.rotate) { map = map.rotated(by: angle) }
        if kinds.contains(.flip) && flips { map = map.flipped(horizontally: true) }
        if kinds.contains(.flipVertical) && flipsVertically { map = map.flipped(horizontally: false) }
        let gain = kinds.contains(.exposure) ? exp2f(stops) : 1
        var result = map.isIdentity && gain == 1 ? image : image.warped(by: map, gain: gain)
        if kinds.contains(.blur) && blurs { result = result.blurred(deviation: deviation) }
        return result
    }
}
