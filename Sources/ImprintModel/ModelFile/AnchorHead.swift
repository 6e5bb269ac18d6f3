internal import ImprintCore
package import ImprintNetwork

/// The rules that turn the output of an anchor-based detector into bounding boxes.
///
/// The network has one input size, and feature maps with several strides. Each position of a map has one or more anchors, which are points
/// at its centre. The output is one vector: the probability of each label of each anchor, then `valuesPerAnchor` values of each anchor.
/// Anchors are in the order of levels, rows, columns and their index at a position. The first four values u, v, w and h are in pixels of
/// the network's input. At row r and column c of a level, the box has
///
/// centre x = (c + ½) · stride + u, centre y = (r + ½) · stride + v, width = w, height = h.
///
/// Other values, such as landmarks, are ignored. The image is scaled to fit into the network's input, and padded with black on both ends of
/// its shorter side.
///
/// Non-maximum suppression drops a box that overlaps a box of the same label with a higher probability. Overlapping boxes whose
/// probabilities are at least 0.5 are averaged, weighted by their probabilities; the stronger box gets the average.
///
/// Source: Bazarevsky et al., "BlazeFace: Sub-millisecond Neural Face Detection on Mobile GPUs", 2019.
public struct AnchorHead: Codable, Hashable, Sendable {
    /// The anchors of one feature map.
    public struct Level: Codable, Hashable, Sendable {
        /// The distance between adjacent positions, in pixels of the network's input.
        public var stride: Int
        /// The number of anchors at each position.
        public var anchors: Int

        /// Creates a level.
        public init(stride: Int, anchors: Int) {
            self.stride = stride
            self.anchors = anchors
        }
    }

    /// The number of values that describe a box.
    static let boxValueCount = 4

    /// The feature maps, in the order of the output.
    public var levels: [Level]
    /// The number of values after the probabilities, for each anchor; at least 4.
    public var valuesPerAnchor: Int
    /// The IoU (0…1) with a better box of the same label at which non-maximum suppression drops a box.
    public var iouThreshold: Float

    // The name of the key in model files.
    private enum CodingKeys: String, CodingKey {
        case levels, valuesPerAnchor
        case iouThreshold = "maximumOverlap"
    }

    /// Creates the rules of a detector.
    public init(levels: [Level], valuesPerAnchor: Int, iouThreshold: Float) {
        self.levels = levels
        self.valuesPerAnchor = valuesPerAnchor
        self.iouThreshold = iouThreshold
    }

    /// Returns the centres of all anchors in pixels of the network's input, in the order of the output.
    package func anchors(for input: TensorShape) -> [(x: Float, y: Float)] {
        levels.flatMap { level in
            (0..<(input.height / level.stride)).flatMap { row in
                (0..<(input.width / level.stride)).flatMap { column in
                    let x = (Float(column) + 0.5) * Float(level.stride)
                    let y = (Float(row) + 0.5) * Float(level.stride)
                    return Array(repeating: (x, y), count: level.anchors)
                }
            }
        }
    }

    /// Returns the first problem of the rules for a network and its number of labels; nil if they are valid.
    func problem(_ network: Network, labelCount: Int) -> String? {
        guard (1...16).contains(levels.count),
            levels.allSatisfy({ (1...256).contains($0.stride) && (1...64).contains($0.anchors) })
        else { return "invalid levels, expected 1 to 16 with a stride of 1 to 256 and 1 to 64 anchors each" }
        guard (Self.boxValueCount...256).contains(valuesPerAnchor) else {
            return "\(valuesPerAnchor) values for each anchor, expected \(Self.boxValueCount) to 256"
        }
        guard iouThreshold > 0, iouThreshold <= 1 else {
            return "a maximumOverlap of \(messageText(iouThreshold)), expected more than 0 and at most 1"
        }
        let input = network.input
        guard levels.allSatisfy({ input.height.isMultiple(of: $0.stride) && input.width.isMultiple(of: $0.stride) })
        else { return "an input of \(input.width)x\(input.height) pixels, expected multiples of each stride" }
        let count = levels.reduce(0) { $0 + input.height / $1.stride * (input.width / $1.stride) * $1.anchors }
        let found =
            "an output of \(network.output) for \(counted(count, "anchor")) and \(counted(labelCount, "label"))"
        // A network has less than 2³¹ outputs, so the product of two numbers that are not larger does not overflow.
        guard max(count, labelCount) <= network.output.channels else { return "\(found), expected more values" }
        let expected = count * (labelCount + valuesPerAnchor)
        guard labelCount > 0, network.output.pixels == 1, network.output.channels == expected else {
            return "\(found), expected \(expected) values"
        }
        // The confidences are probabilities.
        guard let last = network.nodes.last, last.layer is Concat,
            let first = network.nodes.firstIndex(where: { $0.name == last.inputs.first }),
            network.nodes[first].layer is Sigmoid, network.shapes[first].count == count * labelCount
        else {
            return
                "a network whose output is not a concatenation that starts with a sigmoid of \(count * labelCount) values"
        }
        return nil
    }
}
