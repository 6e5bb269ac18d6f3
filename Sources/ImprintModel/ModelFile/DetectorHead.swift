internal import Foundation
internal import ImprintCore
internal import ImprintNetwork

/// The rules that turn the heat maps of a logo detector into confidences for a whole image.
///
/// The detector scans an image pyramid and takes the highest logit s of each logo over all positions and levels. This maximum is not
/// calibrated, so each logo has a Platt scaling: its log-odds are z = slope · s + offset. The confidence in a logo is eᶻ / (1 + Σ eᶻ) with the
/// sum over all logos. The confidence in the remaining label, for images without a logo, is 1 / (1 + Σ eᶻ).
public struct DetectorHead: Codable, Hashable, Sendable {
    /// A logo that the network detects, with its Platt scaling.
    public struct Logo: Codable, Hashable, Sendable {
        /// The label of the logo.
        public var label: String
        /// The factor of the highest logit, more than 0.
        public var slope: Float
        /// The offset of the log-odds.
        public var offset: Float
        /// The minimum confidence of a detection, 0…1; nil if training could not choose it.
        public var threshold: Double?

        /// Creates a logo.
        public init(label: String, slope: Float = 1, offset: Float = 0, threshold: Double? = nil) {
            self.label = label
            self.slope = slope
            self.offset = offset
            self.threshold = threshold
        }

        /// Whether the confidence is calibrated: a slope of 1 and an offset of 0 are the values without a calibration.
        package var isCalibrated: Bool { slope != 1 || offset != 0 }

        /// Returns the probability that a peak of the heat map shows the logo: 1 / (1 + e⁻ᶻ) with z = slope · logit + offset.
        /// - Parameter logit: The logit of the peak.
        public func confidence(_ logit: Float) -> Float { 1 / (1 + expf(-(slope * logit + offset))) }
    }

    /// The levels of the image pyramid: each level has the area of a square with this side, in pixels.
    public var levels: [Int]
    /// The distance between adjacent heat map positions, in pixels of the scaled image.
    public var stride: Int
    /// The typical size of a logo in pixels of the scaled image, which determines bounding boxes.
    public var span: Float
    /// The logos, in the order of the network's heat maps; exactly one label of the model is not a logo.
    public var logos: [Logo]
    /// Whether the network also predicts boxes, in four more channels after the heat maps (`BoxCode` with the size `span`).
    ///
    /// Without box regression, boxes are squares whose size depends only on the pyramid level.
    public var regressesBoxes: Bool

    /// The stored keys; the first four are the keys of format 1.
    private enum CodingKeys: String, CodingKey {
        case levels, stride, span
        case logos = "marks"
        case regressesBoxes = "boxes"
    }

    /// Creates the rules of a detector.
    public init(levels: [Int], stride: Int, span: Float, logos: [Logo], regressesBoxes: Bool = false) {
        self.levels = levels
        self.stride = stride
        self.span = span
        self.logos = logos
        self.regressesBoxes = regressesBoxes
    }

    /// Decodes the rules; format 1 has no box regression.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        levels = try container.decode([Int].self, forKey: .levels)
        stride = try container.decode(Int.self, forKey: .stride)
        span = try container.decode(Float.self, forKey: .span)
        logos = try container.decode([Logo].self, forKey: .logos)
        regressesBoxes = try container.decodeIfPresent(Bool.self, forKey: .regressesBoxes) ?? false
    }

    /// Encodes the rules; without box regression, as format 1 does.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(levels, forKey: .levels)
        try container.encode(stride, forKey: .stride)
        try container.encode(span, forKey: .span)
        try container.encode(logos, forKey: .logos)
        if regressesBoxes { try container.encode(true, forKey: .regressesBoxes) }
    }

    /// Returns the confidences in `labels`, which are the labels of the logos and one more; NaN if a score is NaN.
    /// - Parameters:
    ///   - scores: The highest logit of each logo.
    ///   - labels: The labels of the model.
    public func confidences(_ scores: [Float], in labels: [String]) -> [Float] {
        precondition(scores.count == logos.count, "\(scores.count) scores for \(logos.count) logos")
        let logits = zip(logos, scores).map { Double($0.slope) * Double($1) + Double($0.offset) }
        // Subtracting the maximum prevents an overflow.
        let maximum = logits.reduce(0, max)
        let noLogo = exp(-maximum)
        let odds = logits.map { exp($0 - maximum) }
        let sum = odds.reduce(noLogo, +)
        return labels.map { label in
            let logo = logos.firstIndex { $0.label == label }
            return Float((logo.map { odds[$0] } ?? noLogo) / sum)
        }
    }

    /// Returns the problem if the stride, which is in its range, is not that of the network's heat maps; nil if it is.
    func strideProblem(_ network: Network) -> String? {
        func positions(_ length: Int) -> Int { (length + stride - 1) / stride }
        func mismatch(_ network: Network) -> String? {
            let (input, maps) = (network.input, network.output)
            guard maps.height != positions(input.height) || maps.width != positions(input.width) else { return nil }
            return "a stride of \(stride) pixels for a network that computes heat maps of "
                + "\(maps.height)x\(maps.width) from \(input.height)x\(input.width) pixels, expected "
                + "\(positions(input.height))x\(positions(input.width))"
        }
        if let problem = mismatch(network) { return problem }
        // Heat maps of a small image can have the same size with similar strides. From this size, they differ. Tensors of images with this
        // height and width would be too large for long strides.
        let side = stride * (stride + 1)
        for (height, width) in [(side, network.input.width), (network.input.height, side)] {
            let image = TensorShape(height: height, width: width, channels: network.input.channels)
            guard let separating = try? Network(name: network.name, input: image, nodes: network.nodes) else {
                return "a stride of \(stride) pixels for a network that does not accept \(height)x\(width) pixels"
            }
            if let problem = mismatch(separating) { return problem }
        }
        return nil
    }

    /// Returns the first problem of the rules for a network with this number of output channels and these labels; nil if they are valid.
    func problem(maps: Int, labels: [String]) -> String? {
        guard (1...16).contains(levels.count), levels.allSatisfy({ (16...4096).contains($0) }) else {
            return "the levels \(levels), expected 1 to 16 of them, each 16 to 4096"
        }
        guard (1...256).contains(stride), span > 0, span.isFinite else {
            return "a stride of \(stride) and a span of \(span), expected 1 to 256 and more than 0"
        }
        let boxValues = regressesBoxes ? BoxCode.count : 0
        guard logos.count + boxValues == maps else {
            return
                "\(counted(logos.count, "logo"))\(regressesBoxes ? " and boxes" : "") for a network with \(counted(maps, "output channel"))"
        }
        guard !logos.isEmpty else { return "no logo, expected at least one" }
        var remaining = Set(labels)
        for logo in logos {
            guard logo.slope > 0, logo.slope.isFinite, logo.offset.isFinite else {
                return "a slope of \(logo.slope) and an offset of \(logo.offset), expected finite values and a slope "
                    + "above 0"
            }
            guard (0...1).contains(logo.threshold ?? 0) else {
                return "a threshold of \(logo.threshold ?? 0), expected 0 to 1"
            }
            guard remaining.remove(logo.label) != nil else {
                return "the logo \(logo.label.debugDescription) is not a label, or appears twice"
            }
        }
        let others = labels.count - logos.count
        guard others == 1 else {
            return "\(others) labels besides the logos, expected one for images without a logo"
        }
        return nil
    }
}
