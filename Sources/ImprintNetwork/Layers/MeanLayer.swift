internal import CImprintKernels

/// Axes of an image, as `MeanLayer` takes them.
public struct MeanAxes: OptionSet, Hashable, Sendable {
    /// The set's bits.
    public let rawValue: Int
    /// Makes the set of these bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// The rows.
    public static let height = MeanAxes(rawValue: 1)
    /// The columns.
    public static let width = MeanAxes(rawValue: 2)
    /// The values at each place.
    public static let channels = MeanAxes(rawValue: 4)
}

/// The mean over some axes, which stay with length 1: of [H, W, C] over height and width [1, 1, C].
///
/// Backward: dx = dy / n everywhere, with n the number of values in a mean.
public struct MeanLayer: Layer {
    public static let kind = "mean"
    /// The axes that the mean is taken over, at least one.
    public let axes: MeanAxes

    /// Makes the layer.
    public init(axes: MeanAxes) { self.axes = axes }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let input = try onlyInput("Mean", inputs)
        let isValid = !axes.isEmpty && axes.isSubset(of: [.height, .width, .channels])
        try check("Mean", "axes", axes.rawValue, isValid, "at least one of height, width and channels")
        return TensorShape(
            height: axes.contains(.height) ? 1 : input.height, width: axes.contains(.width) ? 1 : input.width,
            channels: axes.contains(.channels) ? 1 : input.channels)
    }

    public var backwardReads: BackwardReads { [] }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(scratch: request.batch * request.output.count * MemoryLayout<Double>.stride)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        Broadcast(output: context.input.shape).sum(
            context.input.values, times: nil, into: context.output.values, context.output.shape,
            factor: 1 / count(context), batch: batch, context)
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        withUnsafePointer(to: Float(1 / count(context))) { factor in
            Broadcast(output: context.input.shape).combine(
                Broadcast.Operand(context.outputGradient, context.output.shape), Broadcast.Operand(number: factor),
                into: dx, batch: batch, worker: context.worker, imprint_broadcast_multiply)
        }
    }

    /// The number of values in a mean.
    private func count(_ context: LayerContext) -> Double {
        Double(context.input.shape.count / context.output.shape.count)
    }
}

extension MeanAxes: Codable {
    private static let names: [(String, MeanAxes)] = [("height", .height), ("width", .width), ("channels", .channels)]

    /// Reads a list of "height", "width" and "channels".
    public init(from decoder: any Decoder) throws {
        self = []
        for word in try decoder.singleValueContainer().decode([String].self) {
            guard let axis = Self.names.first(where: { $0.0 == word })?.1 else {
                throw NetworkError.invalidProperty(
                    layer: "Mean", property: "axes", found: word, expected: "\"height\", \"width\" or \"channels\"")
            }
            formUnion(axis)
        }
    }

    /// Writes a list of "height", "width" and "channels".
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(Self.names.filter { contains($0.1) }.map(\.0))
    }
}
