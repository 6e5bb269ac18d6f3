internal import ImprintCore
package import ImprintNetwork

/// The rules that turn the output of a center-point detector into bounding boxes.
///
/// The network predicts at most one object of each label per position of a heat map, without anchors. Its output is
/// [rows, columns, labels + 4]: the probability of each label, then the logarithms h and w of an object's height and width, and the offsets
/// v and u of its centre, all in positions. At row r and column c, the box has, in pixels of the network's input,
///
/// centre y = (r + ½ + v) · stride, centre x = (c + ½ + u) · stride, height = eʰ · stride, width = eʷ · stride.
///
/// Non-maximum suppression drops a box that overlaps a box of the same label with a higher probability.
///
/// The network accepts images whose sides are multiples of `sideMultiple`. An image that is larger than the network's input is scaled down
/// to fit into it. Then each side is rounded up to the next multiple.
///
/// Source: Zhou et al., "Objects as Points", 2019; Xu et al., "CenterFace: Joint Face Detection and Alignment Using Face as Point", 2019.
public struct CenterPointHead: Codable, Hashable, Sendable {
    /// The number of values after the probabilities: log height, log width, vertical offset, horizontal offset.
    public static let boxValueCount = 4

    /// The distance between adjacent positions of the heat map, in pixels of the network's input.
    public var stride: Int
    /// The required divisor of the sides of the network's input, in pixels; a multiple of `stride`.
    public var sideMultiple: Int
    /// The IoU (0…1) with a better box of the same label at which non-maximum suppression drops a box.
    public var iouThreshold: Float

    // The name of the key in model files.
    private enum CodingKeys: String, CodingKey {
        case stride, sideMultiple
        case iouThreshold = "maximumOverlap"
    }

    /// Creates the rules of a detector.
    public init(stride: Int, sideMultiple: Int, iouThreshold: Float) {
        self.stride = stride
        self.sideMultiple = sideMultiple
        self.iouThreshold = iouThreshold
    }

    /// Returns the size to which an image is scaled for the network: at most the size of the network's input.
    /// - Parameters:
    ///   - width: The width of the image, at least 1.
    ///   - height: The height of the image, at least 1.
    ///   - input: The input of the network, with sides that are multiples of `sideMultiple`.
    package func inputSize(width: Int, height: Int, input: TensorShape) -> (width: Int, height: Int) {
        let factor = min(1, Double(input.width) / Double(width), Double(input.height) / Double(height))
        func side(_ length: Int, _ maximum: Int) -> Int {
            // Rounding errors must not exceed the maximum.
            let multiples = (Double(length) * factor / Double(sideMultiple)).rounded(.up)
            return min(max(Int(multiples), 1) * sideMultiple, maximum)
        }
        return (side(width, input.width), side(height, input.height))
    }

    /// Returns the first problem of the rules for a network and its labels; nil if they are valid.
    func problem(_ network: Network, labels: [String]) -> String? {
        guard (1...256).contains(stride), (1...4096).contains(sideMultiple), sideMultiple.isMultiple(of: stride) else {
            return
                "a stride of \(stride) and a side multiple of \(sideMultiple), expected 1 to 256, and 1 to 4096 and a multiple of "
                + "the stride"
        }
        guard iouThreshold > 0, iouThreshold <= 1 else {
            return "a maximumOverlap of \(messageText(iouThreshold)), expected more than 0 and at most 1"
        }
        guard !labels.isEmpty, network.output.channels == labels.count + Self.boxValueCount else {
            return
                "\(counted(labels.count, "label")) for a network with \(counted(network.output.channels, "output channel")), expected "
                + "\(Self.boxValueCount) fewer labels than channels"
        }
        guard network.input.height.isMultiple(of: sideMultiple), network.input.width.isMultiple(of: sideMultiple) else {
            return
                "an input of \(network.input.width)x\(network.input.height) pixels, expected multiples of \(sideMultiple)"
        }
        // The confidences are probabilities.
        guard let last = network.nodes.last, last.layer is Concat,
            network.nodes.first(where: { $0.name == last.inputs.first })?.layer is Sigmoid
        else { return "a network whose output is not a concatenation that starts with a sigmoid heat map" }
        for (height, width) in [(network.input.height, network.input.width), (sideMultiple, 2 * sideMultiple)] {
            let input = TensorShape(height: height, width: width, channels: network.input.channels)
            guard let resized = try? Network(name: network.name, input: input, nodes: network.nodes),
                ParameterLayout(resized) == ParameterLayout(network), resized.output.height * stride == height,
                resized.output.width * stride == width
            else {
                return
                    "a network that has no heat map with a stride of \(stride) for images of \(width)x\(height) pixels"
            }
        }
        return nil
    }
}
