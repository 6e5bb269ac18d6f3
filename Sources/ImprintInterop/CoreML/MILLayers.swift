internal import ImprintModel
internal import ImprintNetwork

/// The operations that become layers with weights, windows or padding.
extension MILImporter {
    mutating func convolve(_ operation: Operation) throws -> SourceActivation {
        let x = try activation("x", operation)
        let weight = try requiredConstant("weight", operation)
        guard weight.shape.count == 4 else {
            throw unsupported(operation, "weights \(weight.shape), expected four axes")
        }
        let (stride, dilation) = (try size("strides", operation) ?? 1, try size("dilations", operation) ?? 1)
        let kernel = Size2D(height: weight.shape[2], width: weight.shape[3])
        let geometry = NetworkAssembler.ConvolutionGeometry(
            stride: stride, padding: try padding(operation, kernel, stride, dilation, over: x.shape),
            dilation: dilation,
            groups: try integer("groups", operation) ?? 1)
        return try assembler.convolve(
            x, geometry, weight: weight, bias: constant("bias", operation)?.floats, named: operation.name)
    }

    mutating func normalizeLocally(_ operation: Operation) throws -> SourceActivation {
        let x = try assembler.imageTensor(activation("x", operation), for: operation.name)
        let layer = LocalResponseNormalization(
            size: try integer("size", operation) ?? 0, alpha: try float("alpha", operation) ?? 1e-4,
            beta: try float("beta", operation) ?? 0.75, bias: try float("k", operation) ?? 1)
        return try assembler.add(layer, named: operation.name, to: [x])
    }

    mutating func pool(_ operation: Operation, isMax: Bool) throws -> SourceActivation {
        let x = try assembler.imageTensor(activation("x", operation), for: operation.name)
        guard let kernel = try size("kernel_sizes", operation) else {
            throw malformed(operation, "has no kernel_sizes")
        }
        let stride = try size("strides", operation) ?? 1
        let padding = try padding(operation, kernel, stride, 1, over: x.shape)
        let roundsUp = try bool("ceil_mode", operation)
        if kernel == Size2D(height: x.shape.height, width: x.shape.width), padding.isNone {
            return isMax
                ? try assembler.add(GlobalMaxPool(), named: operation.name, to: [x])
                : try assembler.add(GlobalAveragePool(), named: operation.name, to: [x])
        }
        if isMax {
            return try assembler.add(
                MaxPool(kernelSize: kernel, stride: stride, padding: padding, roundsUp: roundsUp),
                named: operation.name,
                to: [x])
        }
        return try assembler.add(
            AveragePool(
                kernelSize: kernel, stride: stride, padding: padding,
                countsPadding: !bool("exclude_padding_from_average", operation), roundsUp: roundsUp),
            named: operation.name, to: [x])
    }

    mutating func normalize(_ operation: Operation) throws -> SourceActivation {
        let x = try activation("x", operation)
        guard x.axes.count > 1, x.axes[1] == .channels || x.length(of: x.axes[1]) == 1 else {
            throw unsupported(operation, "along \(x.axisNames), expected channels as the second axis")
        }
        let mean = try requiredConstant("mean", operation).floats
        let variance = try requiredConstant("variance", operation).floats
        let ones = [Float](repeating: 1, count: mean.count)
        return try assembler.normalize(
            x, scale: constant("gamma", operation)?.floats ?? ones,
            shift: constant("beta", operation)?.floats ?? ones.map { _ in 0 }, mean: mean, variance: variance,
            epsilon: float("epsilon", operation) ?? 1e-5, named: operation.name)
    }

    /// Computes x · weightᵀ + bias along the last axis.
    mutating func linear(_ operation: Operation) throws -> SourceActivation {
        let weight = try requiredConstant("weight", operation)
        return try product(
            activation("x", operation), weight.shape, weight.floats, bias: constant("bias", operation)?.floats,
            operation)
    }

    mutating func matrixProduct(_ operation: Operation) throws -> SourceActivation {
        guard try !bool("transpose_x", operation) else { throw unsupported(operation, "with a transposed x") }
        let weight = try requiredConstant("y", operation)
        guard weight.shape.count == 2 else { throw unsupported(operation, "by \(weight.shape), expected a matrix") }
        let isTransposed = try bool("transpose_y", operation)
        guard let matrix = isTransposed ? weight : weight.transposed([1, 0]) else {
            throw malformed(operation, "multiplies by \(weight.shape)")
        }
        return try product(activation("x", operation), matrix.shape, matrix.floats, bias: nil, operation)
    }

    /// Computes x · weightᵀ; weight [outputs, inputs].
    private mutating func product(
        _ x: SourceActivation, _ shape: [Int], _ weight: [Float], bias: [Float]?, _ operation: Operation
    ) throws -> SourceActivation {
        guard shape.count == 2, shape[1] == x.dimensions.last, shape[0] > 0, shape[1] > 0 else {
            throw unsupported(operation, "of \(x.dimensions) and \(shape), expected a matrix for the last axis")
        }
        return try assembler.matrixProduct(x, weight: weight, outputs: shape[0], bias: bias, named: operation.name)
    }

    /// Converts layer_norm.
    mutating func normalizeLayer(_ operation: Operation) throws -> SourceActivation {
        let x = try activation("x", operation)
        let axes = try integers("axes", operation) ?? Array(x.axes.indices)
        return try assembler.normalizeLayer(
            x, over: axes, scale: constant("gamma", operation)?.floats ?? [1],
            shift: constant("beta", operation)?.floats, epsilon: float("epsilon", operation) ?? 1e-5,
            named: operation.name)
    }

    mutating func gelu(_ operation: Operation) throws -> SourceActivation {
        let mode = try value("mode", operation)?.text ?? "EXACT"
        guard ["EXACT", "TANH_APPROXIMATION"].contains(mode) else { throw unsupported(operation, "mode \(mode)") }
        return try assembler.add(
            GELU(approximatesTanh: mode == "TANH_APPROXIMATION"), named: operation.name,
            to: [activation("x", operation)])
    }

    mutating func slopes(_ operation: Operation) throws -> SourceActivation {
        let x = try activation("x", operation)
        guard x.axes.count > 1, x.axes[1] == .channels else {
            throw unsupported(operation, "of \(x.axisNames), expected channels as the second axis")
        }
        return try assembler.add(
            PReLU(), named: operation.name, to: [x], parameters: ["slope": requiredConstant("alpha", operation).floats])
    }

    mutating func pad(_ operation: Operation) throws -> SourceActivation {
        let x = try activation("x", operation)
        let amounts = try integers("pad", operation) ?? []
        guard amounts.count % 2 == 0, amounts.count / 2 <= x.axes.count else {
            throw malformed(operation, "has \(amounts.count) padding amounts for a tensor \(x.dimensions)")
        }
        let mode: PadLayer.Mode
        switch try value("mode", operation)?.text ?? "constant" {
        case "constant": mode = .constant(try float("constant_val", operation) ?? 0)
        case "reflect": mode = .reflect
        case "replicate": mode = .edge
        case let other: throw unsupported(operation, "mode \(other)")
        }
        let first = x.axes.count - amounts.count / 2
        return try assembler.pad(
            x, (0..<(amounts.count / 2)).map { (first + $0, amounts[2 * $0], amounts[2 * $0 + 1]) }, mode,
            named: operation.name)
    }

    mutating func upsample(_ operation: Operation) throws -> SourceActivation {
        let x = try assembler.imageTensor(activation("x", operation), for: operation.name)
        let factors = try ["scale_factor_height", "scale_factor_width"].map { try float($0, operation) ?? 1 }
        let integers = factors.compactMap { Int(exactly: $0) }
        guard integers.count == 2, integers.allSatisfy({ $0 > 0 }) else {
            throw unsupported(operation, "by \(factors), expected integer factors")
        }
        return try assembler.add(
            UpsampleNearest(factor: Size2D(height: integers[0], width: integers[1])), named: operation.name, to: [x])
    }

    private func size(_ parameter: String, _ operation: Operation) throws -> Size2D? {
        guard let size = try integers(parameter, operation) else { return nil }
        guard size.count == 2, size.allSatisfy({ $0 > 0 }) else {
            throw unsupported(operation, "\(parameter) \(size), expected two values of at least 1")
        }
        return Size2D(height: size[0], width: size[1])
    }

    /// Returns the padding according to `pad_type` and `pad`.
    private func padding(
        _ operation: Operation, _ kernel: Size2D, _ stride: Size2D, _ dilation: Size2D, over input: TensorShape
    ) throws -> Padding {
        switch try value("pad_type", operation)?.text ?? "valid" {
        case "valid": return .valid
        case "same": return .same
        case "same_lower": return .sameLower(kernel, stride, dilation, over: input)
        case "custom":
            let amounts = try integers("pad", operation) ?? [0, 0, 0, 0]
            guard amounts.count == 4 else { throw unsupported(operation, "pad \(amounts), expected four values") }
            if amounts == [0, 0, 0, 0] { return .valid }
            return .explicit(top: amounts[0], left: amounts[2], bottom: amounts[1], right: amounts[3])
        case let other: throw unsupported(operation, "pad_type \(other)")
        }
    }
}
