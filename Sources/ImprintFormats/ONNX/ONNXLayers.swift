internal import ImprintNetwork

/// The operators that become layers with weights or windows.
extension ONNXImporter {
    /// Conv.
    mutating func convolve(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let weight = try known(1, node)
        let dilation = try size(node, "dilations") ?? 1
        let sliding = NetworkAssembler.Sliding(
            stride: try size(node, "strides") ?? 1,
            padding: try padding(
                node, kernel: Size(height: weight.shape.dropFirst(2).first ?? 1, width: weight.shape.last ?? 1)),
            dilation: dilation, groups: node.attributes["group"]?.integer ?? 1)
        return try assembler.convolve(
            x, sliding, weight: weight, bias: try constant(2, node)?.floats, named: node.name)
    }

    /// MaxPool and AveragePool.
    mutating func pool(_ node: ONNXModel.Node, isMax: Bool) throws -> SourceActivation {
        let x = try assembler.picture(activation(0, node), for: node.name)
        guard let kernel = try size(node, "kernel_shape") else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (\(node.operation)) has no kernel_shape")
        }
        guard try size(node, "dilations") ?? 1 == 1 else { throw unsupported(node, "dilations, expected none") }
        guard node.outputs.dropFirst().allSatisfy(\.isEmpty) else {
            throw unsupported(node, "a second result, expected the largest values alone")
        }
        let stride = try size(node, "strides") ?? 1
        let padding = try padding(node, kernel: kernel)
        let roundsUp = (node.attributes["ceil_mode"]?.integer ?? 0) != 0
        if isMax {
            return try assembler.add(
                MaxPool(kernelSize: kernel, stride: stride, padding: padding, roundsUp: roundsUp), named: node.name,
                to: [x])
        }
        // One window over all of the image is the mean of it, whatever its size.
        if kernel == Size(height: x.shape.height, width: x.shape.width), padding.isNone {
            return try assembler.add(GlobalAveragePool(), named: node.name, to: [x])
        }
        return try assembler.add(
            AveragePool(
                kernelSize: kernel, stride: stride, padding: padding,
                countsPadding: (node.attributes["count_include_pad"]?.integer ?? 0) != 0, roundsUp: roundsUp),
            named: node.name, to: [x])
    }

    /// Gemm, α · A · B + β · C, with A of the image.
    mutating func gemm(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        guard (node.attributes["transA"]?.integer ?? 0) == 0 else { throw unsupported(node, "transA, expected 0") }
        let weight = try known(1, node)
        let y = try product(
            x, weight, isTurned: (node.attributes["transB"]?.integer ?? 0) != 0,
            factor: node.attributes["alpha"]?.float ?? 1, node)
        guard let bias = try constant(2, node) else { return y }
        let beta = node.attributes["beta"]?.float ?? 1
        let addend = beta == 1 ? bias : Constant(shape: bias.shape, floats: bias.floats.map { $0 * beta })
        return try assembler.add(y, addend, named: "\(node.name).bias")
    }

    /// MatMul, with known numbers on the right.
    mutating func matrixProduct(_ node: ONNXModel.Node) throws -> SourceActivation {
        try product(activation(0, node), known(1, node), isTurned: false, factor: 1, node)
    }

    /// x · weight, along x's last axis; weight [inputs, outputs], or turned [outputs, inputs].
    private mutating func product(
        _ x: SourceActivation, _ weight: Constant, isTurned: Bool, factor: Float, _ node: ONNXModel.Node
    ) throws -> SourceActivation {
        guard weight.shape.count == 2, x.axes.count >= 2, let last = x.axes.last else {
            throw unsupported(node, "of \(x.dimensions) and \(weight.shape), expected a matrix on the right")
        }
        let (outputs, inputs) = isTurned ? (weight.shape[0], weight.shape[1]) : (weight.shape[1], weight.shape[0])
        guard inputs == x.dimensions.last, inputs > 0, outputs > 0 else {
            throw ImportError.Problem.malformed(reason: "\(node.name) multiplies \(x.dimensions) by \(weight.shape)")
        }
        var values = weight.floats
        if factor != 1 { values = values.map { $0 * factor } }
        if !isTurned { values = transposed(values, rows: inputs, columns: outputs) }
        if x.length(of: last) == x.shape.count {
            return try assembler.dense(x, weight: values, outputs: outputs, bias: nil, named: node.name)
        }
        guard last == .channels else {
            throw unsupported(node, "along the last of \(x.axesInWords), expected channels, or all numbers of an image")
        }
        // Over the channels of each pixel: a convolution of one pixel.
        var picture = x
        picture.axes = [.batch, .channels, .height, .width]
        var y = try assembler.convolve(
            picture, NetworkAssembler.Sliding(), weight: Constant(shape: [outputs, inputs, 1, 1], floats: values),
            bias: nil, named: node.name)
        y.axes = x.axes
        return y
    }

    /// BatchNormalization with known statistics.
    mutating func normalize(_ node: ONNXModel.Node) throws -> SourceActivation {
        guard (node.attributes["training_mode"]?.integer ?? 0) == 0 else {
            throw unsupported(node, "training_mode; export the model for inference")
        }
        let x = try activation(0, node)
        guard x.axes.count > 1, x.axes[1] == .channels || x.length(of: x.axes[1]) == 1 else {
            throw unsupported(node, "along \(x.axesInWords), expected channels second")
        }
        return try assembler.normalize(
            x, scale: known(1, node).floats, shift: known(2, node).floats, mean: known(3, node).floats,
            variance: known(4, node).floats, epsilon: node.attributes["epsilon"]?.float ?? 1e-5, named: node.name)
    }

    /// PRelu.
    mutating func parametricReLU(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let (extent, slopes) = try assembler.spread(known(1, node), over: x, for: node.name)
        guard extent == .channels else { throw unsupported(node, "slopes that differ from place to place") }
        return try assembler.add(PReLU(), named: node.name, to: [x], numbers: ["slope": slopes])
    }

    /// Clip, whose limits were attributes up to version 6.
    mutating func clip(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let least = try constant(1, node)?.floats.first ?? node.attributes["min"]?.float ?? -.infinity
        let greatest = try constant(2, node)?.floats.first ?? node.attributes["max"]?.float ?? .infinity
        return try assembler.clip(x, from: least, to: greatest, named: node.name)
    }

    /// Two whole numbers, those of the rows first; one axis more or less than two is no image's.
    private func size(_ node: ONNXModel.Node, _ name: String) throws -> Size? {
        guard let attribute = node.attributes[name] else { return nil }
        guard attribute.integers.count == 2 else {
            throw unsupported(node, "\(name) \(attribute.integers), expected two")
        }
        return Size(height: attribute.integers[0], width: attribute.integers[1])
    }

    /// What `auto_pad` and `pads` say.
    private func padding(_ node: ONNXModel.Node, kernel: Size) throws -> Padding {
        switch node.attributes["auto_pad"]?.text ?? "NOTSET" {
        case "NOTSET", "":
            guard let pads = node.attributes["pads"]?.integers else { return .valid }
            guard pads.count == 4 else { throw unsupported(node, "pads \(pads), expected four") }
            return pads == [0, 0, 0, 0]
                ? .valid : .explicit(top: pads[0], left: pads[1], bottom: pads[2], right: pads[3])
        case "VALID": return .valid
        case "SAME_UPPER": return .same
        case "SAME_LOWER":
            // The one more of an odd border comes first here; where there is none, both rules are one.
            let stride = try size(node, "strides") ?? 1
            guard stride == 1, kernel.height % 2 == 1, kernel.width % 2 == 1 else {
                throw unsupported(node, "auto_pad SAME_LOWER with borders that may be odd, expected pads")
            }
            return .same
        case let other: throw unsupported(node, "auto_pad \(other)")
        }
    }
}

/// A matrix turned round, row by row.
private func transposed(_ values: [Float], rows: Int, columns: Int) -> [Float] {
    var result = [Float](repeating: 0, count: values.count)
    for row in 0..<rows {
        for column in 0..<columns { result[column * rows + row] = values[row * columns + column] }
    }
    return result
}
