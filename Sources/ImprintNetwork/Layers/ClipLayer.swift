internal import CImprintKernels
internal import ImprintCore

/// Elementwise clamp to a range.
///
/// y = min(max(x, `minimum`), `maximum`) for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Backward: dx = dy strictly between the bounds, otherwise 0.
public struct ClipLayer: Layer {
    public static let kind = "clip"
    /// The lower bound; −infinity if there is no lower bound.
    public let minimum: Float
    /// The upper bound, > `minimum`; infinity if there is no upper bound.
    public let maximum: Float

    /// Creates the layer; at least one of the bounds must be finite.
    public init(minimum: Float, maximum: Float) {
        self.minimum = minimum
        self.maximum = maximum
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try check(
            "Clip", "minimum", minimum, minimum < maximum && minimum < .infinity,
            "a number less than maximum, which is \(messageText(maximum))")
        try check(
            "Clip", "maximum", maximum, maximum > -.infinity && (maximum < .infinity || minimum > -.infinity),
            "a finite number if there is no minimum")
        return try onlyInput("Clip", inputs)
    }

    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch) { imprint_clip_forward($0, $1, $2, minimum, maximum) }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.output) {
            imprint_clip_backward($0, $1, $2, $3, minimum, maximum)
        }
    }
}

extension ClipLayer: Codable {
    private enum Key: String, CodingKey {
        case minimum, maximum
    }

    /// Decodes `{"minimum", "maximum"}`; a missing bound is infinite.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        minimum = try values.decodeIfPresent(Float.self, forKey: .minimum) ?? -.infinity
        maximum = try values.decodeIfPresent(Float.self, forKey: .maximum) ?? .infinity
    }

    /// Encodes the finite bounds, because JSON has no infinity.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encodeIfPresent(minimum > -.infinity ? minimum : nil, forKey: .minimum)
        try values.encodeIfPresent(maximum < .infinity ? maximum : nil, forKey: .maximum)
    }
}

/// Piecewise linear approximation of the sigmoid.
///
/// y = min(max(`slope` · x + `offset`, 0), 1) for each element.
///
/// Input and output: [batch, height, width, channels].
///
/// Source: Courbariaux et al., "BinaryConnect", 2015; ONNX, HardSigmoid.
public struct HardSigmoid: Layer {
    public static let kind = "hardSigmoid"
    /// The slope between the bounds.
    public let slope: Float
    /// The output for an input of 0.
    public let offset: Float

    /// Creates the layer; the defaults are the same as in MobileNetV3.
    public init(slope: Float = 1 / 6, offset: Float = 0.5) {
        self.slope = slope
        self.offset = offset
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try check("HardSigmoid", "slope", slope, slope.isFinite, "a finite number")
        try check("HardSigmoid", "offset", offset, offset.isFinite, "a finite number")
        return try onlyInput("HardSigmoid", inputs)
    }

    public var backwardReads: BackwardReads { .output }
    public var inPlace: InPlace { .overwriting }

    public func forward(_ context: LayerContext, batch: Int) {
        context.mapForward(batch) { imprint_hard_sigmoid_forward($0, $1, $2, slope, offset) }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        context.mapBackward(batch, reading: context.output) { imprint_hard_sigmoid_backward($0, $1, $2, $3, slope) }
    }
}
