internal import Foundation

/// How a network that says for each place of a picture whether a mark is there becomes a classifier of whole pictures.
///
/// The picture is looked at in several sizes; the highest logit s of all places counts, and the mark's confidence is
/// 1 / (1 + exp(−(slope · s + offset))), for a maximum over many places is not a logit any more.
public struct Spotting: Codable, Hashable, Sendable {
    /// The sizes that pictures are looked at in: each the side of a square of as many pixels.
    public var levels: [Int]
    /// How many pixels of such a picture lie between neighbouring places.
    public var stride: Int
    /// How many pixels of such a picture a mark spans, typically: for boxes.
    public var span: Float
    /// The label of the mark; every other label says that there is none.
    public var label: String
    /// What the highest logit is multiplied by, more than 0.
    public var slope: Float
    /// What is added then.
    public var offset: Float

    /// Makes rules.
    public init(levels: [Int], stride: Int, span: Float, label: String, slope: Float = 1, offset: Float = 0) {
        self.levels = levels
        self.stride = stride
        self.span = span
        self.label = label
        self.slope = slope
        self.offset = offset
    }

    /// The confidence that the mark is there, from the highest logit.
    public func confidence(_ score: Float) -> Float { 1 / (1 + exp(-(slope * score + offset))) }

    /// What is wrong with the rules, or `nil` where nothing is; for rules that were read from a file.
    var problem: String? {
        guard (1...16).contains(levels.count), levels.allSatisfy({ (16...4096).contains($0) }) else {
            return "the levels \(levels), expected 1 to 16 of them, each 16 to 4096"
        }
        guard (1...256).contains(stride), span > 0, span.isFinite else {
            return "a stride of \(stride) and a span of \(span)"
        }
        guard slope > 0, slope.isFinite, offset.isFinite else {
            return "a slope of \(slope) and an offset of \(offset)"
        }
        return nil
    }
}
