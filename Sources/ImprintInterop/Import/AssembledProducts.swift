internal import CImprintKernels
internal import ImprintNetwork

/// Convolutions, dense layers and normalizations.
extension NetworkAssembler {
    /// The attributes of a convolution.
    struct ConvolutionGeometry {
        var stride: Size2D = 1
        var padding: Padding = .valid
        var dilation: Size2D = 1
        var groups = 1
    }

    /// Computes y = x ∗ weight + bias; weight [outputs, inputs / groups, kernel height, kernel width].
    ///
    /// A preceding zero padding or channel permutation merges into the convolution. A convolution of a single pixel becomes a
    /// dense layer.
    mutating func convolve(
        _ x: SourceActivation, _ geometry: ConvolutionGeometry, weight: Constant, bias: [Float]?, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let kernel = try kernelSize(of: weight, for: name)
        let (outputs, inputs) = (weight.shape[0], weight.shape[1])
        var x = try imageTensor(x, for: name)
        guard inputs.multipliedReportingOverflow(by: geometry.groups) == (x.shape.channels, false) else {
            throw .malformed(
                reason:
                    "\(name) has weights for \(inputs) channels in \(geometry.groups) groups, but reads \(x.shape.channels)"
            )
        }
        let axes = x.axes
        if x.isVector, kernel == 1, geometry.groups == 1, geometry.stride == 1, geometry.padding.isNone {
            return try dense(x, weight: weight.floats, outputs: outputs, bias: bias, named: name, axes: axes)
        }
        var padding = geometry.padding
        if !preservesNodes, let merged = zeros(around: x, with: padding) { (x, padding) = merged }
        var order: [Int]?
        if !preservesNodes, geometry.groups == 1, let selection = layer(of: x, as: SelectChannels.self),
            Set(selection.channels).count == selection.channels.count, let source = self.inputs(of: x).first,
            source.shape.channels == selection.channels.count
        {
            (x, order) = (source, selection.channels)
        }
        let layer = Convolution(
            outputChannels: outputs, kernelSize: kernel, stride: geometry.stride, padding: padding,
            dilation: geometry.dilation, groups: geometry.groups, hasBias: bias != nil)
        var parameters = ["weight": channelsLast(weight.floats, outputs, inputs, kernel.height * kernel.width, order)]
        parameters["bias"] = bias
        return try add(layer, named: name, to: [x], parameters: parameters, axes: axes)
    }

    /// Computes the transposed convolution of x; weight [inputs, outputs / groups, kernel height, kernel width].
    mutating func convolveTransposed(
        _ x: SourceActivation, _ geometry: ConvolutionGeometry, outputPadding: Size2D, weight: Constant, bias: [Float]?,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let kernel = try kernelSize(of: weight, for: name)
        let x = try imageTensor(x, for: name)
        let (inputs, outputs) = (weight.shape[0], weight.shape[1].multipliedReportingOverflow(by: geometry.groups))
        guard inputs == x.shape.channels, !outputs.overflow else {
            throw .malformed(reason: "\(name) has weights for \(inputs) channels, but reads \(x.shape.channels)")
        }
        let layer = TransposedConvolution(
            outputChannels: outputs.partialValue, kernelSize: kernel, stride: geometry.stride,
            padding: geometry.padding,
            outputPadding: outputPadding, dilation: geometry.dilation, groups: geometry.groups, hasBias: bias != nil)
        var parameters = [
            "weight": channelsLast(weight.floats, inputs, weight.shape[1], kernel.height * kernel.width, nil)
        ]
        parameters["bias"] = bias
        return try add(layer, named: name, to: [x], parameters: parameters, axes: x.axes)
    }

    /// Returns the kernel size of weights [outputs, inputs, height, width].
    private func kernelSize(of weight: Constant, for name: String) throws(ImportError.Problem) -> Size2D {
        guard weight.shape.count == 4, weight.shape.allSatisfy({ $0 > 0 }) else {
            throw .unsupported([
                .init(
                    operation: "convolution", node: name,
                    reason:
                        "weights \(weight.shape), expected four axes of at least 1 for a two-dimensional convolution")
            ])
        }
        return Size2D(height: weight.shape[2], width: weight.shape[3])
    }

    /// Returns the input of a preceding zero padding, and the padding of the convolution that includes it.
    private func zeros(around x: SourceActivation, with padding: Padding) -> (SourceActivation, Padding)? {
        guard let pad = layer(of: x, as: PadLayer.self), pad.mode == .constant(0), let source = inputs(of: x).first
        else {
            return nil
        }
        switch padding {
        case .valid:
            return (source, .explicit(top: pad.top, left: pad.left, bottom: pad.bottom, right: pad.right))
        case .explicit(let top, let left, let bottom, let right):
            // The padding comes from a file. Keep padding that is too large, so that the layer rejects it.
            guard [top, left, bottom, right].allSatisfy({ (0...(1 << 15)).contains($0) }) else { return nil }
            return (
                source,
                .explicit(
                    top: top &+ pad.top, left: left &+ pad.left, bottom: bottom &+ pad.bottom, right: right &+ pad.right
                )
            )
        case .same: return nil
        }
    }

    /// Computes y = x · weightᵀ + bias over all elements of an image; weight [outputs, inputs], inputs in the order of x's axes.
    mutating func dense(
        _ x: SourceActivation, weight: [Float], outputs: Int, bias: [Float]?, named name: String, axes: [Axis]? = nil
    ) throws(ImportError.Problem) -> SourceActivation {
        guard outputs > 0, outputs.multipliedReportingOverflow(by: x.shape.count) == (weight.count, false) else {
            throw .malformed(
                reason: "\(name) has \(weight.count) weights for \(outputs) outputs of \(x.shape.count) inputs")
        }
        var flat = x
        if !x.isVector { flat = try add(Flatten(), named: "\(name).flatten", to: [x]) }
        let order = x.isVector ? nil : memoryOrder(of: x)
        var parameters = ["weight": channelsLast(weight, outputs, x.shape.count, 1, order)]
        parameters["bias"] = bias
        return try add(
            Dense(outputChannels: outputs, hasBias: bias != nil), named: name, to: [flat], parameters: parameters,
            axes: axes ?? [.batch, .channels])
    }

    /// Computes y = x · weightᵀ + bias along the last axis; weight [outputs, inputs].
    ///
    /// Over the channels of each pixel it becomes a 1x1 convolution, over all elements of an image a dense layer.
    mutating func matrixProduct(
        _ x: SourceActivation, weight: [Float], outputs: Int, bias: [Float]?, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        if let last = x.axes.last, x.length(of: last) == x.shape.count {
            let axes = x.axes.dropLast().map { $0 == .batch ? .batch : .unit } + [Axis.channels]
            return try dense(x, weight: weight, outputs: outputs, bias: bias, named: name, axes: axes)
        }
        guard let x = x.withChannels(at: x.axes.count - 1) else {
            throw .unsupported([
                .init(
                    operation: "matrix product", node: name,
                    reason: "along the last axis of \(x.axisNames), expected channels or all elements of an image")
            ])
        }
        var imageTensor = x
        imageTensor.axes = [.batch, .channels, .height, .width]
        let kernel = Constant(shape: [outputs, x.shape.channels, 1, 1], floats: weight)
        var y = try convolve(imageTensor, ConvolutionGeometry(), weight: kernel, bias: bias, named: name)
        y.axes = x.axes
        return y
    }

    /// Computes the layer normalization over the channels of each pixel or over all elements of an image.
    ///
    /// - Parameters:
    ///   - scale: One factor for each normalized element in the order of x's axes, or one for all.
    ///   - shift: One addend for each of them, or one for all; none if nil.
    mutating func normalizeLayer(
        _ x: SourceActivation, over axes: [Int], scale: [Float], shift: [Float]?, epsilon: Float, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let indices = axes.compactMap(x.index).sorted()
        guard indices.count == axes.count, Set(indices).count == axes.count, let first = indices.first else {
            throw .malformed(
                reason:
                    "\(name) has the axes \(axes) for a tensor \(x.dimensions), expected valid axes without duplicates")
        }
        let normalized = SourceActivation(node: x.node, shape: x.shape, axes: indices.map { x.axes[$0] })
        var input = x
        if normalized.dimensions.reduce(1, *) == x.shape.count {
            if !x.isVector { input = try dividedVector(x, named: name) }
        } else if normalized.axes.count == 1, let channels = x.withChannels(at: first) {
            input = channels
        } else if normalized.longAxes != [.channels] {
            throw .unsupported([
                .init(
                    operation: "layer normalization", node: name,
                    reason: "over \(normalized.axisNames), expected channels or all elements of an image")
            ])
        }
        let channels = input.shape.channels
        try reserve(2 * channels * MemoryLayout<Float>.stride, for: name)
        func broadcast(_ values: [Float]) -> [Float] {
            values.count == 1 ? Array(repeating: values[0], count: channels) : values
        }
        return try add(
            LayerNormalization(epsilon: epsilon), named: name, to: [input],
            parameters: ["scale": broadcast(scale), "shift": broadcast(shift ?? [0])])
    }

    /// Computes the batch normalization (x − mean) / √(variance + epsilon) · scale + shift with running statistics.
    mutating func normalize(
        _ x: SourceActivation, scale: [Float], shift: [Float], mean: [Float], variance: [Float], epsilon: Float,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        try add(
            BatchNormalization(epsilon: epsilon), named: name, to: [x],
            parameters: ["scale": scale, "shift": shift, "runningMean": mean, "runningVariance": variance])
    }
}

/// Transposes weights [outputs, inputs, taps] to [taps, inputs, outputs].
///
/// - Parameter order: The index of each input in the result; the same order if nil.
func channelsLast(_ weight: [Float], _ outputs: Int, _ inputs: Int, _ taps: Int, _ order: [Int]?) -> [Float] {
    let columns = inputs * taps
    guard taps > 1 || order != nil else {
        return [Float](unsafeUninitializedCapacity: weight.count) { result, initialized in
            imprint_transpose(weight, columns, result.baseAddress, outputs, columns)
            initialized = weight.count
        }
    }
    // Transpose blocks of columns, so that at most two copies of the weights exist.
    let block = min(columns, max(1, (1 << 18) / outputs))
    var transposed = [Float](repeating: 0, count: block * outputs)
    var result = [Float](repeating: 0, count: weight.count)
    weight.withUnsafeBufferPointer { weight in
        result.withUnsafeMutableBufferPointer { result in
            guard let weight = weight.baseAddress else { return }
            for first in stride(from: 0, to: columns, by: block) {
                let count = min(block, columns - first)
                imprint_transpose(weight + first, columns, &transposed, outputs, count)
                for column in 0..<count {
                    let (input, tap) = (first + column).quotientAndRemainder(dividingBy: taps)
                    let to = (tap * inputs + (order?[input] ?? input)) * outputs
                    _ = UnsafeMutableBufferPointer(rebasing: result[to..<(to + outputs)])
                        .update(fromContentsOf: transposed[(column * outputs)..<((column + 1) * outputs)])
                }
            }
        }
    }
    return result
}

/// Returns the offset in the network's layout of each element of an image, in the order of the source's axes.
func memoryOrder(of x: SourceActivation) -> [Int] {
    func stride(of axis: SourceActivation.Axis) -> Int {
        switch axis {
        case .height: x.shape.width * x.shape.channels
        case .width: x.shape.channels
        case .part(let index, let lengths): lengths[(index + 1)...].reduce(1, *)
        case .channels, .batch, .unit, .flat: 1
        }
    }
    let axes = x.longAxes
    return Array(StridedOffsets(axes.map { x.length(of: $0) }, strides: axes.map(stride)))
}
