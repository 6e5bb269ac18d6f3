internal import CImprintKernels

/// Numbers held between two bounds, y = min(max(x, `minimum`), `maximum`).
///
/// The gradient is dy strictly between the bounds, else 0.
public struct ClipLayer: Layer {
    public static let kind = "clip"
    /// The lower bound; −infinity if there is none.
    public let minimum: Float
    /// The upper bound, more than `minimum`; infinity if there is none.
    public let maximum: Float

    /// Makes the layer; at least one of the bounds is finite.
    public init(minimum: Float, maximum: Float) {
        self.minimum = minimum
        self.maximum = maximum
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try check(
            "Clip", "minimum", minimum, minimum < maximum && minimum < .infinity,
            "a number less than maximum, which is \(maximum)")
        try check(
            "Clip", "maximum", maximum, maximum > -.infinity && (maximum < .infinity || minimum > -.infinity),
            "a finite number, where there is no minimum")
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

    /// Reads `{"minimum", "maximum"}`; one that is absent is infinite.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        minimum = try values.decodeIfPresent(Float.self, forKey: .minimum) ?? -.infinity
        maximum = try values.decodeIfPresent(Float.self, forKey: .maximum) ?? .infinity
    }

    /// Writes the bounds that are finite: JSON has no infinity.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encodeIfPresent(minimum > -.infinity ? minimum : nil, forKey: .minimum)
        try values.encodeIfPresent(maximum < .infinity ? maximum : nil, forKey: .maximum)
    }
}

/// A piecewise linear sigmoid, y = min(max(`slope` · x + `offset`, 0), 1) (ONNX, HardSigmoid; Courbariaux et al.,
/// "BinaryConnect", 2015).
public struct HardSigmoid: Layer {
    public static let kind = "hardSigmoid"
    /// The slope between the bounds.
    public let slope: Float
    /// The result for 0.
    public let offset: Float

    /// Makes the layer; 1/6 and 1/2 are those of MobileNetV3.
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
