internal import CImprintKernels
internal import ImprintCore

/// A convolution or dense layer on 8-bit integers, fused with batch normalization, the addition of a shortcut and an activation.
///
/// With activations x = a·(q − z) and weights W·a = s·w, the sum over windows is s·(Σ q·w − Σ z·w). The factor s, the normalization and the
/// scale of the output are one factor per output channel, and everything else one bias. Sums are exact, so the bits of the result depend
/// neither on the processor nor on the number of threads, unless a smooth activation follows.
///
/// A worker computes some rows of the output at once. It first copies their input if there is padding, or if the number of channels is not a
/// multiple of four, the number that an instruction multiplies.
struct QuantizedConvolution: LayerKernel {
    let layer: PrepackedConvolution
    private let input: Quantization.Activation
    let shortcut: Quantization.Activation?
    /// The quantization of the output; nil for float32.
    let output: Quantization.Activation?
    /// The output's quantization after a smooth activation.
    let outputValues: ActivationValues?
    /// The scale of each output channel's weights.
    private let weightScales: [Float]

    init(
        _ layer: PrepackedConvolution, input: Quantization.Activation, shortcut: Quantization.Activation?,
        output: Quantization.Activation?, weightScales: [Float]
    ) {
        self.layer = layer
        self.input = input
        self.shortcut = shortcut
        self.output = output
        outputValues = output.map(ActivationValues.init)
        self.weightScales = weightScales
    }

    func precision(_ request: MemoryRequest) -> Precision { .int8 }

    var convolution: Convolution { layer.convolution }
    var channels: Int { convolution.outputChannels }
    /// The number of output channels, rounded up to whole panels.
    var paddedChannels: Int { roundedUp(channels, to: Self.panelColumns) }
    static let panelColumns = 64
    var isDepthwise: Bool { convolution.groups > 1 }
    /// The quantization of the sums; nil if they are float32, because a smooth activation follows.
    var sumsQuantization: Quantization.Activation? { layer.curve == nil ? output : nil }

    /// Whether the kernels can compute a convolution: without groups, or depthwise without a shortcut and a smooth activation.
    ///
    /// Sums of longer windows could overflow, and copies of input rows must not need much memory because of a large dilation. The sizes of
    /// the padded image must be 32-bit integers.
    static func isPossible(_ layer: PrepackedConvolution, over input: TensorShape) -> Bool {
        let (convolution, window) = (layer.convolution, layer.convolution.window.kernelWindow(over: input))
        let isDepthwise = convolution.groups == input.channels && convolution.groups == convolution.outputChannels
        guard convolution.groups == 1 || isDepthwise && !layer.hasShortcut && layer.curve == nil else { return false }
        let inputs = isDepthwise ? 1 : roundedUp(input.channels, to: 4)
        let rows = (convolution.kernelSize.height - 1) * convolution.dilation.height + 1
        let rowBytes =
            (input.width + Int(window.padding_left + window.padding_right)) * roundedUp(input.channels, to: 4)
        let paddedHeight = Int(window.height) + Int(window.padding_top) + Int(window.padding_bottom)
        let paddedWidth = Int(window.width) + Int(window.padding_left) + Int(window.padding_right)
        return convolution.kernelSize.height * convolution.kernelSize.width * inputs <= longestWindow
            && rows * rowBytes <= mostCopiedBytes && max(paddedHeight, paddedWidth) <= Int(Int32.max)
    }

    /// The number of products of 255 and 127 whose sum a 32-bit integer can hold.
    static let longestWindow = Int(Int32.max) / (255 * 127)
    /// The limit of the input rows of one output row.
    private static let mostCopiedBytes = 1 << 26

    func multiplications(for inputs: [TensorShape]) -> Int { layer.multiplications(for: [inputs[0]]) }

    // MARK: Memory

    /// The image that the kernels read.
    struct PaddedImage {
        let window: imprint_window
        let channels: Int
        let isCopy: Bool
        var width: Int { Int(window.width + window.padding_left + window.padding_right) }
        var rowStep: Int { width * channels }
    }

    func paddedImage(over input: TensorShape) -> PaddedImage {
        var window = convolution.window.kernelWindow(over: input)
        // Padding may be missing on the far sides, where no window reads.
        let rows =
            (window.output_height - 1) * window.stride_height + (window.kernel_height - 1) * window.dilation_height
        let columns =
            (window.output_width - 1) * window.stride_width + (window.kernel_width - 1) * window.dilation_width
        window.padding_bottom = max(rows + 1 - window.padding_top - window.height, 0)
        window.padding_right = max(columns + 1 - window.padding_left - window.width, 0)
        let channels = isDepthwise ? input.channels : roundedUp(input.channels, to: 4)
        let hasPadding =
            window.padding_top + window.padding_left + window.padding_bottom + window.padding_right > 0
        return PaddedImage(window: window, channels: channels, isCopy: hasPadding || channels != input.channels)
    }

    /// The number of bytes per column of the packed weights.
    func inner(_ image: PaddedImage) -> Int {
        convolution.kernelSize.height * convolution.kernelSize.width * image.channels
    }

    func memory(_ request: MemoryRequest) -> LayerMemory {
        let image = paddedImage(over: request.inputs[0])
        let weights: Int
        if isDepthwise {
            var depthwise = depthwise(image, x: nil, weights: nil)
            weights = imprint_int8_depthwise_bytes(&depthwise)
        } else {
            weights = inner(image) * paddedChannels
        }
        let values = (4 + (shortcut == nil ? 0 : 1)) * paddedChannels
        return LayerMemory(
            scratch: request.workers.count * scratchByteCount(image),
            transformedWeights: values * MemoryLayout<Float>.stride + roundedUp(image.channels, to: 64)
                + tapCount * MemoryLayout<Int32>.stride,
            packedWeights: weights)
    }

    /// The number of runs of bytes per window: kernel rows, or kernel elements with dilation.
    var tapCount: Int {
        convolution.kernelSize.height * (convolution.dilation.width == 1 ? 1 : convolution.kernelSize.width)
    }

    /// The arrays in the memory for transformed weights.
    struct Constants {
        let factors, bias, floor, ceiling, shortcutFactors: UnsafeMutablePointer<Float>
        let zeroPoints: UnsafeMutablePointer<UInt8>
        let taps: UnsafeMutablePointer<Int32>
    }

    func constants(_ context: LayerContext, _ image: PaddedImage) -> Constants {
        let floats = context.transformedWeights.assumingMemoryBound(to: Float.self)
        let count = paddedChannels
        let end = UnsafeMutableRawPointer(floats + (4 + (shortcut == nil ? 0 : 1)) * count)
        return Constants(
            factors: floats, bias: floats + count, floor: floats + 2 * count, ceiling: floats + 3 * count,
            shortcutFactors: floats + 4 * count, zeroPoints: end.assumingMemoryBound(to: UInt8.self),
            taps: (end + roundedUp(image.channels, to: 64)).assumingMemoryBound(to: Int32.self))
    }

    // MARK: Weights

    package func transformWeights(_ context: LayerContext) {
        let image = paddedImage(over: context.input.shape)
        let constants = constants(context, image)
        let corrections = pack(context, image)
        context.worker.onFirstThread {
            fill(constants, context, corrections: corrections.baseAddress)
            for channel in 0..<image.channels {
                constants.zeroPoints[channel] = channel < input.zeroPoints.count ? input.zeroPoints[channel] : 0
            }
            for tap in 0..<tapCount {
                let (row, column) = tap.quotientAndRemainder(dividingBy: tapCount / convolution.kernelSize.height)
                constants.taps[tap] = Int32(
                    row * convolution.dilation.height * image.rowStep
                        + column * convolution.dilation.width * image.channels)
            }
        }
    }

    /// Packs the weights, and computes Σ z·w for each output channel in the array of factors.
    private func pack(_ context: LayerContext, _ image: PaddedImage) -> UnsafeMutableBufferPointer<Int32> {
        let corrections = UnsafeMutableBufferPointer(
            start: context.transformedWeights.assumingMemoryBound(to: Int32.self), count: channels)
        let packed = context.packedWeights.assumingMemoryBound(to: Int8.self)
        let weight = UnsafePointer(context.parameters[0])
        guard !isDepthwise else {
            context.worker.onFirstThread {
                var depthwise = depthwise(image, x: nil, weights: nil)
                imprint_int8_depthwise_pack(
                    &depthwise, weight, input.scales, input.zeroPoints, weightScales, packed, corrections.baseAddress)
            }
            return corrections
        }
        let (taps, inputs) = (
            convolution.kernelSize.height * convolution.kernelSize.width, context.input.shape.channels
        )
        context.worker.forEachChunk(panelCount) { panel in
            let columns = self.columns(of: panel)
            imprint_pack_int8(
                weight, taps, inputs, image.channels, channels, input.scales, input.zeroPoints, weightScales,
                columns.lowerBound, columns.count, packed + columns.lowerBound * inner(image),
                corrections.baseAddress.map { $0 + columns.lowerBound })
        }
        return corrections
    }

    var panelCount: Int { paddedChannels / Self.panelColumns }

    private func columns(of panel: Int) -> Range<Int> {
        (panel * Self.panelColumns)..<min((panel + 1) * Self.panelColumns, channels)
    }

    /// Computes the factor, the bias and the bounds of each output channel.
    private func fill(_ constants: Constants, _ context: LayerContext, corrections: UnsafePointer<Int32>?) {
        let convolutionBias = convolution.hasBias ? context.parameters[1] : nil
        let statistics = layer.normalization.map { normalization in
            (normalization.epsilon, context.parameters[(convolution.hasBias ? 2 : 1)...].map { $0 })
        }
        for channel in 0..<channels {
            var (factor, bias) = (1.0, convolutionBias.map { Double($0[channel]) } ?? 0)
            if let (epsilon, parameters) = statistics {
                factor =
                    Double(parameters[0][channel]) / (Double(parameters[3][channel]) + Double(epsilon)).squareRoot()
                bias = (bias - Double(parameters[2][channel])) * factor + Double(parameters[1][channel])
            }
            factor *= Double(weightScales[channel])
            // The correction lies where the factor will be written.
            bias -= factor * Double(corrections?[channel] ?? 0)
            let (scale, zero) =
                sumsQuantization.map { (Double($0.scales[channel]), Double($0.zeroPoints[channel])) } ?? (1, 0)
            if let shortcut {
                let shortcutScale = Double(shortcut.scales[channel])
                bias -= shortcutScale * Double(shortcut.zeroPoints[channel])
                constants.shortcutFactors[channel] = Float(shortcutScale / scale)
            }
            constants.factors[channel] = Float(factor / scale)
            constants.bias[channel] = Float(bias / scale + zero)
            let (floor, ceiling) = (
                Double(layer.activation.floor) / scale + zero, Double(layer.activation.ceiling) / scale + zero
            )
            let limits = sumsQuantization == nil ? -Double.infinity...Double.infinity : 0...255
            constants.floor[channel] = Float(min(max(floor, limits.lowerBound), limits.upperBound))
            constants.ceiling[channel] = Float(min(max(ceiling, limits.lowerBound), limits.upperBound))
        }
        guard isDepthwise else { return }
        let image = paddedImage(over: context.input.shape)
        var depthwise = depthwise(image, x: nil, weights: nil)
        for values in [constants.factors, constants.bias, constants.floor, constants.ceiling] {
            imprint_int8_depthwise_arrange(&depthwise, values)
        }
    }

    func backward(_ context: LayerContext, batch: Int) {
        preconditionFailure("a quantized convolution has no backward pass")
    }

    var backwardReads: BackwardReads { [] }
    var inPlace: InPlace { .never }
}

extension Activation {
    /// The values of an activation that consists of uint8 values.
    var bytes: UnsafeMutablePointer<UInt8> { UnsafeMutableRawPointer(values).assumingMemoryBound(to: UInt8.self) }
}
