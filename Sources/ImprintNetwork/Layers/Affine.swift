internal import CImprintKernels

/// Trainable elementwise scale and shift.
///
/// y = scale ⊙ x + shift
///
/// Input and output: [batch, height, width, channels].
///
/// Parameters, without weight decay:
/// - `scale`: [channels] or [height, width, channels], initialized to 1.
/// - `shift`: the same shape, initialized to 0.
///
/// Backward: dx = scale ⊙ dy, dscale = Σ x ⊙ dy, dshift = Σ dy, summed over the elements that share a parameter.
public struct Affine: Layer, LayerKernel {
    /// The shape of the parameters.
    public enum Extent: String, Codable, Sendable {
        /// One value per channel: [channels].
        case channels
        /// One value per element of an image: [height, width, channels].
        case values
    }

    public static let kind = "affine"
    /// The shape of `scale` and `shift`.
    public let extent: Extent
    /// Whether the layer has a scale.
    public let hasScale: Bool
    /// Whether the layer has a shift; it has a scale, a shift or both.
    public let hasShift: Bool

    /// Creates the layer.
    public init(extent: Extent, hasScale: Bool = true, hasShift: Bool = true) {
        self.extent = extent
        self.hasScale = hasScale
        self.hasShift = hasShift
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try check("Affine", "hasShift", hasShift, hasScale || hasShift, "true if there is no scale")
        return try onlyInput("Affine", inputs)
    }

    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        func parameter(_ name: String, _ value: Float) -> ParameterDescription {
            let input = inputs[0]
            let shape = extent == .channels ? [input.channels] : [input.height, input.width, input.channels]
            return ParameterDescription(name: name, shape: shape, role: .bias, initializer: .constant(value))
        }
        return (hasScale ? [parameter("scale", 1)] : []) + (hasShift ? [parameter("shift", 0)] : [])
    }

    public var backwardReads: BackwardReads { hasScale ? .inputs : [] }
    public var inPlace: InPlace { hasScale ? .never : .overwriting }
    package var gradientMayReplaceInput: Bool { hasScale }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let sums = ChannelReduction.scratchByteCount(channels: width(request.inputs[0]))
        return LayerMemory(scratch: request.training ? sums : 0)
    }

    /// The number of consecutive elements with separate parameters.
    private func width(_ input: TensorShape) -> Int { extent == .channels ? input.channels : input.count }

    public func forward(_ context: LayerContext, batch: Int) {
        let width = width(context.input.shape)
        let scale = hasScale ? UnsafePointer(context.parameters[0]) : nil
        let shift = hasShift ? UnsafePointer(context.parameters[hasScale ? 1 : 0]) : nil
        forEachRows(batch * context.input.shape.count / width, width, context.worker) { rows in
            let start = rows.lowerBound * width
            imprint_affine(
                context.input.values + start, scale, shift, context.output.values + start, rows.count, width)
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let width = width(context.input.shape)
        let rows = batch * context.input.shape.count / width
        let dy = context.outputGradient
        if hasShift, let dShift = context.parameterGradients[hasScale ? 1 : 0] {
            context.sumOverRows(dy, rowsPerImage: rows / batch, channels: width, into: dShift)
        }
        if hasScale, let dScale = context.parameterGradients[0] {
            let x = context.input.values
            let reduction = ChannelReduction(channels: width, rowsPerImage: rows / batch)
            let sums = reduction.run(context) { rows, sums in
                sums.update(repeating: 0, count: width)
                let strides = imprint_strides(pixel: width, channel: 1)
                imprint_product_sums(
                    x + rows.lowerBound * width, dy + rows.lowerBound * width, strides, sums,
                    imprint_strides(pixel: 0, channel: 1), rows.count, width)
            }
            context.worker.onFirstThread { for index in 0..<width { dScale[index] = Float(sums[index]) } }
        }
        guard let dx = context.input.gradient else { return }
        guard hasScale else {
            return context.copy(dy, to: dx, count: batch * context.input.shape.count)
        }
        forEachRows(rows, width, context.worker) { rows in
            let start = rows.lowerBound * width
            imprint_affine(dy + start, context.parameters[0], nil, dx + start, rows.count, width)
        }
    }
}
