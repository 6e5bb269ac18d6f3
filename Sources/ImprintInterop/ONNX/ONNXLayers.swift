internal import ImprintModel
internal import ImprintNetwork

/// The operators that become layers with weights or pooling windows.
extension ONNXImporter {
    /// Converts Conv.
    mutating func convolve(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let groups = node.attributes["group"]?.integer ?? 1
        let weight = try layerWeights(node, inputAxis: 1, groups: groups)
        let dilation = try size(node, "dilations") ?? 1
        let kernel = Size2D(height: weight.shape.dropFirst(2).first ?? 1, width: weight.shape.last ?? 1)
        let geometry = NetworkAssembler.ConvolutionGeometry(
            stride: try size(node, "strides") ?? 1,
            padding: try padding(node, over: x.shape, kernel: kernel, dilation: dilation), dilation: dilation,
            groups: groups)
        let y = try assembler.convolve(
            x, geometry, weight: weight, bias: try constant(2, node)?.floats, named: node.name)
        recordLayer(y, node, outputAxis: 0, outputs: weight.shape[0])
        return y
    }

    /// Converts ConvTranspose.
    mutating func convolveTransposed(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let weight = try requiredConstant(1, node)
        let kernel = Size2D(height: weight.shape.dropFirst(2).first ?? 1, width: weight.shape.last ?? 1)
        let (stride, dilation) = (try size(node, "strides") ?? 1, try size(node, "dilations") ?? 1)
        let outputPadding = try size(node, "output_padding") ?? 0
        let geometry = NetworkAssembler.ConvolutionGeometry(
            stride: stride,
            padding: try transposedPadding(
                node, over: x.shape, kernel: kernel, stride: stride, dilation: dilation, outputPadding: outputPadding),
            dilation: dilation, groups: node.attributes["group"]?.integer ?? 1)
        return try assembler.convolveTransposed(
            x, geometry, outputPadding: outputPadding, weight: weight, bias: try constant(2, node)?.floats,
            named: node.name)
    }

    /// Returns the padding of a transposed convolution according to `output_shape`, `auto_pad` or `pads`, in this order.
    private func transposedPadding(
        _ node: ONNXModel.Node, over shape: TensorShape, kernel: Size2D, stride: Size2D, dilation: Size2D,
        outputPadding: Size2D
    ) throws -> Padding {
        let automatic = node.attributes["auto_pad"]?.text ?? "NOTSET"
        var output = try size(node, "output_shape")
        if output == nil {
            guard automatic.hasPrefix("SAME") else {
                return try padding(node, over: shape, kernel: kernel, dilation: dilation)
            }
            let product = { (length: Int, stride: Int) in length.multipliedReportingOverflow(by: stride).partialValue }
            output = Size2D(
                height: product(shape.height, stride.height), width: product(shape.width, stride.width))
        }
        guard let output else { return .valid }
        func totalPadding(
            _ input: Int, _ output: Int, _ kernel: Int, _ stride: Int, _ dilation: Int, _ extra: Int
        ) -> Int {
            // The layer reports invalid attributes.
            let isInRange = [kernel, stride, dilation].allSatisfy { (1...(1 << 15)).contains($0) }
            guard isInRange, (0..<stride).contains(extra), (1...(1 << 30)).contains(output) else { return -1 }
            return (input - 1) * stride + (kernel - 1) * dilation + 1 + extra - output
        }
        let rows = totalPadding(
            shape.height, output.height, kernel.height, stride.height, dilation.height, outputPadding.height)
        let columns = totalPadding(
            shape.width, output.width, kernel.width, stride.width, dilation.width, outputPadding.width)
        guard rows >= 0, columns >= 0 else {
            throw unsupported(
                node, "an output of \(output) pixels, expected at most the size without padding")
        }
        // An odd pixel of padding comes first, except with SAME_UPPER.
        let isUpper = automatic == "SAME_UPPER"
        let (top, left) = isUpper ? (rows / 2, columns / 2) : (rows - rows / 2, columns - columns / 2)
        return .explicit(top: top, left: left, bottom: rows - top, right: columns - left)
    }

    /// Converts MaxPool and AveragePool.
    mutating func pool(_ node: ONNXModel.Node, isMax: Bool) throws -> SourceActivation {
        let x = try assembler.imageTensor(activation(0, node), for: node.name)
        guard let kernel = try size(node, "kernel_shape") else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (\(node.operation)) has no kernel_shape")
        }
        guard try size(node, "dilations") ?? 1 == 1 else { throw unsupported(node, "dilations, expected 1") }
        guard node.outputs.dropFirst().allSatisfy(\.isEmpty) else {
            throw unsupported(node, "a second output (Indices), expected only the maxima")
        }
        let stride = try size(node, "strides") ?? 1
        let padding = try padding(node, over: x.shape, kernel: kernel, dilation: 1)
        let roundsUp = (node.attributes["ceil_mode"]?.integer ?? 0) != 0
        if isMax {
            return try assembler.add(
                MaxPool(kernelSize: kernel, stride: stride, padding: padding, roundsUp: roundsUp), named: node.name,
                to: [x])
        }
        // A window over the whole image is a global mean for any image size.
        if kernel == Size2D(height: x.shape.height, width: x.shape.width), padding.isNone {
            return try assembler.add(GlobalAveragePool(), named: node.name, to: [x])
        }
        return try assembler.add(
            AveragePool(
                kernelSize: kernel, stride: stride, padding: padding,
                countsPadding: (node.attributes["count_include_pad"]?.integer ?? 0) != 0, roundsUp: roundsUp),
            named: node.name, to: [x])
    }

    /// Converts Gemm, α · A · B + β · C, with an activation A.
    mutating func gemm(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        guard (node.attributes["transA"]?.integer ?? 0) == 0 else { throw unsupported(node, "transA, expected 0") }
        let isTransposed = (node.attributes["transB"]?.integer ?? 0) != 0
        let weight = try layerWeights(node, inputAxis: isTransposed ? 1 : 0)
        let outputs = isTransposed ? weight.shape.first : weight.shape.last
        var bias = try constant(2, node)?.floats
        if let values = bias, values.count == 1, let outputs {
            bias = Array(repeating: values[0], count: outputs)
        }
        guard bias == nil || bias?.count == outputs else {
            throw unsupported(node, "a bias of \(bias?.count ?? 0) values for \(outputs ?? 0) outputs")
        }
        if let beta = node.attributes["beta"]?.float, beta != 1 { bias = bias?.map { $0 * beta } }
        return try product(
            x, weight, isTransposed: isTransposed, factor: node.attributes["alpha"]?.float ?? 1, bias: bias, node)
    }

    /// Converts MatMul with a constant right operand.
    mutating func matrixProduct(_ node: ONNXModel.Node) throws -> SourceActivation {
        try product(
            activation(0, node), layerWeights(node, inputAxis: 0), isTransposed: false, factor: 1, bias: nil, node)
    }

    /// Computes x · weight + bias along x's last axis; weight [inputs, outputs], or transposed [outputs, inputs].
    private mutating func product(
        _ x: SourceActivation, _ weight: Constant, isTransposed: Bool, factor: Float, bias: [Float]?,
        _ node: ONNXModel.Node
    ) throws -> SourceActivation {
        guard weight.shape.count == 2, x.axes.count >= 2 else {
            throw unsupported(node, "of \(x.dimensions) and \(weight.shape), expected a matrix as the right operand")
        }
        let (outputs, inputs) = isTransposed ? (weight.shape[0], weight.shape[1]) : (weight.shape[1], weight.shape[0])
        guard inputs == x.dimensions.last, inputs > 0, outputs > 0 else {
            throw ImportError.Problem.malformed(reason: "\(node.name) multiplies \(x.dimensions) by \(weight.shape)")
        }
        var values = weight.floats
        if factor != 1 { values = values.map { $0 * factor } }
        if !isTransposed { values = transposed(values, rows: inputs, columns: outputs) }
        let y = try assembler.matrixProduct(x, weight: values, outputs: outputs, bias: bias, named: node.name)
        if factor == 1 { recordLayer(y, node, outputAxis: isTransposed ? 0 : 1, outputs: outputs) }
        return y
    }

    /// Converts LayerNormalization over the axes from `axis` to the last.
    mutating func normalizeLayer(_ node: ONNXModel.Node) throws -> SourceActivation {
        guard node.outputs.dropFirst().allSatisfy(\.isEmpty) else {
            throw unsupported(
                node, "with the mean and the standard deviation as outputs, expected only the normalized values")
        }
        let (x, axis) = (try activation(0, node), node.attributes["axis"]?.integer ?? -1)
        guard let first = x.index(ofAxis: axis) else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) has the axis \(axis) for a tensor \(x.dimensions)")
        }
        let lengths = Array(x.dimensions[first...])
        let scale = try broadcast(requiredConstant(1, node), to: lengths, node)
        let shift = try constant(2, node).map { try broadcast($0, to: lengths, node) }
        return try assembler.normalizeLayer(
            x, over: Array(first..<x.axes.count), scale: scale, shift: shift,
            epsilon: node.attributes["epsilon"]?.float ?? 1e-5, named: node.name)
    }

    /// Returns the elements of a constant broadcast to a shape as in NumPy; a scalar remains a single value.
    private mutating func broadcast(
        _ constant: Constant, to shape: [Int], _ node: ONNXModel.Node
    ) throws -> [Float] {
        let values = constant.floats
        if values.count == 1 || constant.shape == shape { return values }
        let count = shape.reduce(1, *)
        // The memory for the zeros and for the result.
        try assembler.reserve(2 * count * MemoryLayout<Float>.stride, for: node.name)
        // A leading axis of length 1 may be the batch.
        let trimmed = Array(constant.shape.drop { $0 == 1 })
        let zeros = Constant(shape: shape, floats: Array(repeating: 0, count: count))
        let sum = Constant.combined(
            [Constant(shape: trimmed, floats: values), zeros], upTo: count, integer: +, +)
        guard let sum, sum.shape == shape else {
            throw ImportError.Problem.malformed(
                reason:
                    "\(node.name) has a scale or shift of the shape \(constant.shape), expected one that broadcasts to \(shape)"
            )
        }
        return sum.floats
    }

    /// Converts Gelu.
    mutating func gelu(_ node: ONNXModel.Node) throws -> SourceActivation {
        let approximation = node.attributes["approximate"]?.text ?? "none"
        guard ["none", "tanh"].contains(approximation) else {
            throw unsupported(node, "approximate \(approximation), expected none or tanh")
        }
        return try assembler.add(
            GELU(approximatesTanh: approximation == "tanh"), named: node.name, to: [activation(0, node)])
    }

    /// Converts BatchNormalization with constant statistics.
    mutating func normalize(_ node: ONNXModel.Node) throws -> SourceActivation {
        guard (node.attributes["training_mode"]?.integer ?? 0) == 0 else {
            throw unsupported(node, "training_mode; export the model for inference")
        }
        var x = try activation(0, node)
        if x.axes.count == 2, x.length(of: x.axes[1]) == x.shape.count {
            x = try assembler.vector(x, named: node.name)
        }
        let epsilon = node.attributes["epsilon"]?.float ?? 1e-5
        let (scale, shift) = (try requiredConstant(1, node).floats, try requiredConstant(2, node).floats)
        let (mean, variance) = (try requiredConstant(3, node).floats, try requiredConstant(4, node).floats)
        if x.axes.count > 1, let x = x.withChannels(at: 1) {
            return try assembler.normalize(
                x, scale: scale, shift: shift, mean: mean, variance: variance, epsilon: epsilon, named: node.name)
        }
        guard x.axes.count > 1, x.length(of: x.axes[1]) == 1, scale.count == 1, shift.count == 1, mean.count == 1,
            variance.count == 1
        else {
            throw unsupported(node, "along \(x.axisNames), expected channels as the second axis")
        }
        // The second axis has length 1 and is not the channel axis: all elements share one mean and one variance.
        let factor = scale[0] / (variance[0] + epsilon).squareRoot()
        let scaled = try assembler.multiply(x, by: Constant(shape: [], floats: [factor]), named: node.name)
        return try assembler.add(
            scaled, Constant(shape: [], floats: [shift[0] - mean[0] * factor]), named: node.name)
    }

    /// Converts PRelu.
    mutating func parametricReLU(_ node: ONNXModel.Node) throws -> SourceActivation {
        var x = try activation(0, node)
        var slope = try requiredConstant(1, node)
        if slope.count == 1 {
            return try assembler.add(
                PReLU(isShared: true), named: node.name, to: [x], parameters: ["slope": slope.floats])
        }
        if x.axes.count == 2, case .flat = x.axes[1] { x = try assembler.vector(x, named: node.name) }
        // Before opset 7, a vector contains one slope for each channel. Later, slopes broadcast as in NumPy.
        if opset < 7, slope.shape.count == 1, x.axes.count > 2 {
            slope = slope.reshaped(to: slope.shape + Array(repeating: 1, count: x.axes.count - 2)) ?? slope
        }
        let (extent, slopes) = try assembler.broadcast(slope, over: x, for: node.name)
        guard extent == .channels else { throw unsupported(node, "slopes that differ between pixels") }
        return try assembler.add(PReLU(), named: node.name, to: [x], parameters: ["slope": slopes])
    }

    /// Converts Clip, whose limits are attributes up to opset 6.
    mutating func clip(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let minimum = try constant(1, node)?.floats.first ?? node.attributes["min"]?.float ?? -.infinity
        let maximum = try constant(2, node)?.floats.first ?? node.attributes["max"]?.float ?? .infinity
        return try assembler.clip(x, from: minimum, to: maximum, named: node.name)
    }

    /// Returns an attribute of two integers, height and width; images have two spatial axes.
    private func size(_ node: ONNXModel.Node, _ name: String) throws -> Size2D? {
        guard let attribute = node.attributes[name] else { return nil }
        guard attribute.integers.count == 2 else {
            throw unsupported(node, "\(name) \(attribute.integers), expected two values")
        }
        return Size2D(height: attribute.integers[0], width: attribute.integers[1])
    }

    /// Returns the padding according to `auto_pad` or `pads`.
    private func padding(
        _ node: ONNXModel.Node, over shape: TensorShape, kernel: Size2D, dilation: Size2D
    ) throws -> Padding {
        switch node.attributes["auto_pad"]?.text ?? "NOTSET" {
        case "NOTSET", "":
            guard let pads = node.attributes["pads"]?.integers else { return .valid }
            guard pads.count == 4 else { throw unsupported(node, "pads \(pads), expected four values") }
            return pads == [0, 0, 0, 0]
                ? .valid : .explicit(top: pads[0], left: pads[1], bottom: pads[2], right: pads[3])
        case "VALID": return .valid
        case "SAME_UPPER": return .same
        case "SAME_LOWER":
            return .sameLower(kernel, try size(node, "strides") ?? 1, dilation, over: shape)
        case let other: throw unsupported(node, "auto_pad \(other)")
        }
    }
}

/// Returns a transposed matrix in row-major order.
private func transposed(_ values: [Float], rows: Int, columns: Int) -> [Float] {
    var result = [Float](repeating: 0, count: values.count)
    for row in 0..<rows {
        for column in 0..<columns { result[column * rows + row] = values[row * columns + column] }
    }
    return result
}
