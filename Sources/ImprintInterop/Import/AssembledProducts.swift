internal import CImprintKernels
internal import ImprintNetwork

/// Convolutions, dense layers and norms.
extension NetworkAssembler {
    /// How a convolution's window moves.
    struct Sliding {
        var stride: Size2D = 1
        var padding: Padding = .valid
        var dilation: Size2D = 1
        var groups = 1
    }

    /// y = x ∗ weight + bias; weight [outputs, inputs / groups, kernel height, kernel width].
    ///
    /// Zeros that are laid around x before, and channels that are only reordered, become part of it; one pixel alone makes it a dense layer.
    mutating func convolve(
        _ x: SourceActivation, _ sliding: Sliding, weight: Constant, bias: [Float]?, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let kernel = try kernelSize(of: weight, for: name)
        let (outputs, inputs) = (weight.shape[0], weight.shape[1])
        var x = try picture(x, for: name)
        guard inputs.multipliedReportingOverflow(by: sliding.groups) == (x.shape.channels, false) else {
            throw .malformed(
                reason:
                    "\(name) has weights for \(inputs) channels in \(sliding.groups) groups, and reads \(x.shape.channels)"
            )
        }
        let axes = x.axes
        if x.isVector, kernel == 1, sliding.groups == 1, sliding.stride == 1, sliding.padding.isNone {
            return try dense(x, weight: weight.floats, outputs: outputs, bias: bias, named: name, axes: axes)
        }
        var padding = sliding.padding
        if !isLiteral, let merged = zeros(around: x, with: padding) { (x, padding) = merged }
        var order: [Int]?
        if !isLiteral, sliding.groups == 1, let selection = layer(of: x, as: SelectChannels.self),
            Set(selection.channels).count == selection.channels.count, let source = self.inputs(of: x).first,
            source.shape.channels == selection.channels.count
        {
            (x, order) = (source, selection.channels)
        }
        let layer = Convolution(
            outputChannels: outputs, kernelSize: kernel, stride: sliding.stride, padding: padding,
            dilation: sliding.dilation, groups: sliding.groups, hasBias: bias != nil)
        var numbers = ["weight": channelsLast(weight.floats, outputs, inputs, kernel.height * kernel.width, order)]
        numbers["bias"] = bias
        return try add(layer, named: name, to: [x], numbers: numbers, axes: axes)
    }

    /// The transposed convolution of x; weight [inputs, outputs / groups, kernel height, kernel width].
    mutating func convolveTransposed(
        _ x: SourceActivation, _ sliding: Sliding, outputPadding: Size2D, weight: Constant, bias: [Float]?,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let kernel = try kernelSize(of: weight, for: name)
        let x = try picture(x, for: name)
        let (inputs, outputs) = (weight.shape[0], weight.shape[1].multipliedReportingOverflow(by: sliding.groups))
        guard inputs == x.shape.channels, !outputs.overflow else {
            throw .malformed(reason: "\(name) has weights for \(inputs) channels, and reads \(x.shape.channels)")
        }
        let layer = TransposedConvolution(
            outputChannels: outputs.partialValue, kernelSize: kernel, stride: sliding.stride, padding: sliding.padding,
            outputPadding: outputPadding, dilation: sliding.dilation, groups: sliding.groups, hasBias: bias != nil)
        var numbers = [
            "weight": channelsLast(weight.floats, inputs, weight.shape[1], kernel.height * kernel.width, nil)
        ]
        numbers["bias"] = bias
        return try add(layer, named: name, to: [x], numbers: numbers, axes: x.axes)
    }

    /// The size of the window that weights [outputs, inputs, height, width] are for.
    private func kernelSize(of weight: Constant, for name: String) throws(ImportError.Problem) -> Size2D {
        guard weight.shape.count == 4, weight.shape.allSatisfy({ $0 > 0 }) else {
            throw .unsupported([
                .init(
                    operation: "convolution", node: name,
                    reason: "weights \(weight.shape), expected four axes, of at least 1 each: images have two")
            ])
        }
        return Size2D(height: weight.shape[2], width: weight.shape[3])
    }

    /// What lies within zeros that are laid around it, and the padding of a window that does as if they were there.
    private func zeros(around x: SourceActivation, with padding: Padding) -> (SourceActivation, Padding)? {
        guard let pad = layer(of: x, as: PadLayer.self), pad.mode == .constant(0), let source = inputs(of: x).first
        else {
            return nil
        }
        switch padding {
        case .valid:
            return (source, .explicit(top: pad.top, left: pad.left, bottom: pad.bottom, right: pad.right))
        case .explicit(let top, let left, let bottom, let right):
            // Sides come from a file: what is too large for the window stays, for it to say so.
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

    /// y = x · weightᵀ + bias over all numbers of an image; weight [outputs, inputs], inputs in the order of x's axes.
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
        var numbers = ["weight": channelsLast(weight, outputs, x.shape.count, 1, order)]
        numbers["bias"] = bias
        return try add(
            Dense(outputChannels: outputs, hasBias: bias != nil), named: name, to: [flat], numbers: numbers,
            axes: axes ?? [.batch, .channels])
    }

    /// y = x · weightᵀ + bias along the last axis; weight [outputs, inputs].
    ///
    /// Over the channels of each pixel it is a convolution with a window of one pixel, over all values of an image a dense layer.
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
                    reason: "along the last of \(x.axesInWords), expected channels, or all numbers of an image")
            ])
        }
        var picture = x
        picture.axes = [.batch, .channels, .height, .width]
        let kernel = Constant(shape: [outputs, x.shape.channels, 1, 1], floats: weight)
        var y = try convolve(picture, Sliding(), weight: kernel, bias: bias, named: name)
        y.axes = x.axes
        return y
    }

    /// Layer normalization over some axes: over the channels of each pixel or over all values of an image.
    /// - Parameters:
    ///   - scale: A factor for each normalized value, in the order of x's axes, or one for all.
    ///   - shift: An addend for each of them, or one for all; none if left out.
    mutating func normalizeLayer(
        _ x: SourceActivation, over axes: [Int], scale: [Float], shift: [Float]?, epsilon: Float, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let indices = axes.compactMap(x.place).sorted()
        guard indices.count == axes.count, Set(indices).count == axes.count, let first = indices.first else {
            throw .malformed(reason: "\(name) has the axes \(axes) of \(x.dimensions), expected each once")
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
                    reason: "over \(normalized.axesInWords), expected channels, or all numbers of an image")
            ])
        }
        let channels = input.shape.channels
        try reserve(2 * channels * MemoryLayout<Float>.stride, for: name)
        func spread(_ values: [Float]) -> [Float] {
            values.count == 1 ? Array(repeating: values[0], count: channels) : values
        }
        return try add(
            LayerNormalization(epsilon: epsilon), named: name, to: [input],
            numbers: ["scale": spread(scale), "shift": spread(shift ?? [0])])
    }

    /// Batch normalization with the statistics of training, (x − mean) / √(variance + epsilon) · scale + shift.
    mutating func normalize(
        _ x: SourceActivation, scale: [Float], shift: [Float], mean: [Float], variance: [Float], epsilon: Float,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        try add(
            BatchNormalization(epsilon: epsilon), named: name, to: [x],
            numbers: ["scale": scale, "shift": shift, "runningMean": mean, "runningVariance": variance])
    }
}

/// Weights [outputs, inputs, taps] as [taps, inputs, outputs].
/// - Parameter order: For each input the place that it has in the result; the same where left out.
private func channelsLast(_ weight: [Float], _ outputs: Int, _ inputs: Int, _ taps: Int, _ order: [Int]?) -> [Float] {
    let columns = inputs * taps
    guard taps > 1 || order != nil else {
        return [Float](unsafeUninitializedCapacity: weight.count) { result, initialized in
            imprint_transpose(weight, columns, result.baseAddress, outputs, columns)
            initialized = weight.count
        }
    }
    // So few columns at a time that weights are there twice at most.
    let block = min(columns, max(1, (1 << 18) / outputs))
    var turned = [Float](repeating: 0, count: block * outputs)
    var result = [Float](repeating: 0, count: weight.count)
    weight.withUnsafeBufferPointer { weight in
        result.withUnsafeMutableBufferPointer { result in
            guard let weight = weight.baseAddress else { return }
            for first in stride(from: 0, to: columns, by: block) {
                let count = min(block, columns - first)
                imprint_transpose(weight + first, columns, &turned, outputs, count)
                for column in 0..<count {
                    let (input, tap) = (first + column).quotientAndRemainder(dividingBy: taps)
                    let to = (tap * inputs + (order?[input] ?? input)) * outputs
                    _ = UnsafeMutableBufferPointer(rebasing: result[to..<(to + outputs)])
                        .update(fromContentsOf: turned[(column * outputs)..<((column + 1) * outputs)])
                }
            }
        }
    }
    return result
}

/// For each number of an image in the order of the source's axes, its place in the network's order.
func memoryOrder(of x: SourceActivation) -> [Int] {
    func stride(of axis: SourceActivation.Axis) -> Int {
        switch axis {
        case .height: x.shape.width * x.shape.channels
        case .width: x.shape.channels
        case .part(let place, let lengths): lengths[(place + 1)...].reduce(1, *)
        case .channels, .batch, .unit, .flat: 1
        }
    }
    let axes = x.longAxes
    return Array(Places(axes.map { x.length(of: $0) }, strides: axes.map(stride)))
}
