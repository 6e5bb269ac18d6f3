internal import Foundation

/// How a network that says for each place of a picture which marks are there becomes a classifier of whole pictures.
///
/// The picture is looked at in several sizes; of all places, the highest logit s of each mark counts. A maximum over many places is not
/// a logit any more, so each mark has a curve: z = slope · s + offset is the logarithm of the odds for it. The confidence in a mark is
/// eᶻ / (1 + Σ eᶻ) with the sum over all marks, and that in the label that stands for none of them 1 / (1 + Σ eᶻ).
public struct DetectorHead: Codable, Hashable, Sendable {
    /// A mark that the network looks for.
    public struct Mark: Codable, Hashable, Sendable {
        /// Its label.
        public var label: String
        /// What the highest logit is multiplied by, more than 0.
        public var slope: Float
        /// What is added then.
        public var offset: Float

        /// Makes a mark.
        public init(label: String, slope: Float = 1, offset: Float = 0) {
            self.label = label
            self.slope = slope
            self.offset = offset
        }
    }

    /// The sizes that pictures are looked at in: each the side of a square of as many pixels.
    public var levels: [Int]
    /// How many pixels of such a picture lie between neighbouring places.
    public var stride: Int
    /// How many pixels of such a picture a mark spans, typically: for boxes.
    public var span: Float
    /// The marks, in the order of the network's maps; exactly one label of the model is none of them.
    public var marks: [Mark]

    /// Makes rules.
    public init(levels: [Int], stride: Int, span: Float, marks: [Mark]) {
        self.levels = levels
        self.stride = stride
        self.span = span
        self.marks = marks
    }

    /// The confidences in `labels`, those of the marks and another one, from the highest logit of each mark; not numbers where a
    /// logit is none.
    public func confidences(_ scores: [Float], in labels: [String]) -> [Float] {
        precondition(scores.count == marks.count, "\(scores.count) scores are not those of \(marks.count) marks")
        let logits = zip(marks, scores).map { Double($0.slope) * Double($1) + Double($0.offset) }
        // No exponential is above 1, so that none overflows.
        let greatest = logits.reduce(0, max)
        let none = exp(-greatest)
        let odds = logits.map { exp($0 - greatest) }
        let sum = odds.reduce(none, +)
        return labels.map { label in
            let mark = marks.firstIndex { $0.label == label }
            return Float((mark.map { odds[$0] } ?? none) / sum)
        }
    }

    /// What is wrong with the rules for a network with so many maps and these labels, or nil if nothing is.
    func problem(maps: Int, labels: [String]) -> String? {
        guard (1...16).contains(levels.count), levels.allSatisfy({ (16...4096).contains($0) }) else {
            return "the levels \(levels), expected 1 to 16 of them, each 16 to 4096"
        }
        guard (1...256).contains(stride), span > 0, span.isFinite else {
            return "a stride of \(stride) and a span of \(span)"
        }
        guard marks.count == maps else { return "\(marks.count) marks for a network with \(maps) maps" }
        var others = labels
        for mark in marks {
            guard mark.slope > 0, mark.slope.isFinite, mark.offset.isFinite else {
                return "a slope of \(mark.slope) and an offset of \(mark.offset)"
            }
            guard let place = others.firstIndex(of: mark.label) else {
                return "the mark \(mark.label.debugDescription) is no label, or there twice"
            }
            others.remove(at: place)
        }
        guard others.count == 1 else {
            return "\(others.count) labels beside the marks, expected one, for pictures without any"
        }
        return nil
    }
}
