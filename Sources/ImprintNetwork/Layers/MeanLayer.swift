internal import CImprintKernels

/// The axes that a `MeanLayer` reduces.
public struct MeanAxes: OptionSet, Hashable, Sendable {
    /// The bits of the set.
    public let rawValue: Int
    /// Creates a set from its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// The height axis.
    public static let height = MeanAxes(rawValue: 1)
    /// The width axis.
    public static let width = MeanAxes(rawValue: 2)
    /// The channel axis.
    public static let channels = MeanAxes(rawValue: 4)
}

/// Mean over one or more axes, which keep length 1.
///
/// y = Σ x / n, summed over `axes`, with n the number of elements per mean.
///
/// Input: [batch, height, width, channels]. Output: the same shape with length 1 along `axes`, such as [batch, 1, 1, channels] for
/// height and width.
///
/// Backward: dx = dy / n, broadcast along `axes`.
public struct MeanLayer: Layer {
    public static let kind = "mean"
    /// The axes to reduce, at least one.
    public let axes: MeanAxes

    /// Creates the layer.
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
                Broadcast.Operand(context.outputGradient, context.output.shape), Broadcast.Operand(scalar: factor),
                into: dx, batch: batch, worker: context.worker, imprint_broadcast_multiply)
        }
    }

    /// The number of elements per mean.
    private func count(_ context: LayerContext) -> Double {
        Double(context.input.shape.count / context.output.shape.count)
    }
}

extension MeanAxes: Codable {
    private static let names: [(String, MeanAxes)] = [("height", .height), ("width", .width), ("channels", .channels)]

    /// Decodes a list of "height", "width" and "channels".
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

    /// Encodes a list of "height", "width" and "channels".
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(Self.names.filter { contains($0.1) }.map(\.0))
    }
}
