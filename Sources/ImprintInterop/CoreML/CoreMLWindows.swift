internal import ImprintNetwork

/// The layers with weights, windows or padding.
extension CoreMLGraph {
    mutating func convolve(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        guard try !record.bool(60) else { throw unsupported(layer, "as a deconvolution") }
        let x = try activation(layer)
        let imageTensor = try imageTensor(x, layer)
        let (outputs, inputs) = (try record.integer(1), try record.integer(2))
        let kernel = try size(record, 20, 3, layer)
        let stride = try size(record, 30, 1, layer)
        let dilation = try size(record, 40, 1, layer)
        let shape = [outputs, inputs, kernel.height, kernel.width]
        let weight = Constant(shape: shape, floats: try weights(record, 90, shape, layer))
        let padding = try padding(record, valid: 50, same: 51, kernel, stride, dilation, over: imageTensor.shape, layer)
        let geometry = NetworkAssembler.ConvolutionGeometry(
            stride: stride, padding: padding, dilation: dilation, groups: max(try record.integer(10), 1))
        let bias = try record.bool(70) ? try weights(record, 91, [outputs], layer) : nil
        return restored(
            try assembler.convolve(imageTensor, geometry, weight: weight, bias: bias, named: layer.name), like: x)
    }

    mutating func pool(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let kind = try record.integer(1)
        guard kind == 0 || kind == 1 else {
            throw unsupported(layer, "of the type \(kind) (L2), expected max or average")
        }
        let isMax = kind == 0
        if try record.bool(60) {
            return try imageLayer(layer) { _ in isMax ? GlobalMaxPool() as any Layer : GlobalAveragePool() }
        }
        let (kernel, stride) = (try size(record, 10, 3, layer), try size(record, 20, 1, layer))
        let counts = try !record.bool(50)
        let roundsUp = record.has(32)
        let x = try activation(layer)
        let imageTensor = try imageTensor(x, layer)
        let padding: Padding
        if let complete = try record.record(32) {
            let amounts = try complete.integers(10)
            guard amounts.isEmpty || amounts.count == 2 else {
                throw malformed(layer, "has \(amounts.count) padding amounts, expected 2")
            }
            let (rows, columns) = (amounts.first ?? 0, amounts.last ?? 0)
            padding = .explicit(top: rows, left: columns, bottom: rows, right: columns)
        } else {
            padding = try self.padding(record, valid: 30, same: 31, kernel, stride, 1, over: imageTensor.shape, layer)
        }
        let made: any Layer
        if kernel == Size2D(height: imageTensor.shape.height, width: imageTensor.shape.width), padding.isNone {
            // A window over the whole image becomes a global pool for any image size.
            made = isMax ? GlobalMaxPool() : GlobalAveragePool()
        } else if isMax {
            made = MaxPool(kernelSize: kernel, stride: stride, padding: padding, roundsUp: roundsUp)
        } else {
            made = AveragePool(
                kernelSize: kernel, stride: stride, padding: padding, countsPadding: counts, roundsUp: roundsUp)
        }
        return restored(try assembler.add(made, named: layer.name, to: [imageTensor]), like: x)
    }

    mutating func innerProduct(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        let (inputs, outputs) = (try record.integer(1), try record.integer(2))
        let weight = try weights(record, 20, [outputs, inputs], layer)
        let bias = try record.bool(10) ? try weights(record, 21, [outputs], layer) : nil
        let axes: [SourceActivation.Axis] =
            x.axes.count > 3 ? x.axes.dropLast(3) + [.channels, .unit, .unit] : x.axes.dropLast() + [.channels]
        return try assembler.dense(x, weight: weight, outputs: outputs, bias: bias, named: layer.name, axes: axes)
    }

    /// Multiplies one input by a constant matrix along the last axis.
    mutating func matrixProduct(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        guard layer.inputs.count == 1, try !record.bool(1), try !record.bool(2) else {
            throw unsupported(layer, "of two or transposed inputs, expected one input and a constant matrix")
        }
        let x = try activation(layer)
        let (inputs, outputs) = (try record.integer(5), try record.integer(6))
        let weight = try weights(record, 8, [outputs, inputs], layer)
        let bias = try record.bool(7) ? try weights(record, 9, [outputs], layer) : nil
        return try assembler.dense(
            x, weight: weight, outputs: outputs, bias: bias, named: layer.name, axes: x.axes.dropLast() + [.channels])
    }

    mutating func normalize(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        guard try !record.bool(5), try !record.bool(6) else {
            throw unsupported(layer, "with instance statistics, expected running statistics")
        }
        let x = try withChannels(activation(layer), layer)
        let channels = try record.integer(1)
        guard x.axes.count >= 3, x.axes[x.axes.count - 3] == .channels else {
            throw unsupported(layer, "along \(x.axisNames), expected channels as the third axis from the end")
        }
        let epsilon = try record.float(10)
        return try assembler.normalize(
            x, scale: weights(record, 15, [channels], layer), shift: weights(record, 16, [channels], layer),
            mean: weights(record, 17, [channels], layer), variance: weights(record, 18, [channels], layer),
            epsilon: epsilon == 0 ? 1e-5 : epsilon, named: layer.name)
    }

    mutating func normalizeLocally(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let bias = try record.float(4)
        let made = LocalResponseNormalization(
            size: try record.integer(3), alpha: try record.float(1), beta: try record.float(2),
            bias: bias == 0 ? 1 : bias)
        return try imageLayer(layer) { _ in made }
    }

    mutating func pad(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let mode: PadLayer.Mode =
            if record.has(2) {
                .reflect
            } else if record.has(3) {
                .edge
            } else {
                .constant(try record.record(1)?.float(1) ?? 0)
            }
        let (rows, columns) = try paddingAmounts(record.record(10), layer)
        return try assembler.pad(
            activation(layer), [(-2, rows.before, rows.after), (-1, columns.before, columns.after)], mode,
            named: layer.name)
    }

    /// Converts constant padding of a tensor of any rank.
    mutating func padAll(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        let amounts = try record.integers(2)
        guard try !record.bool(3), layer.inputs.count == 1 else {
            throw unsupported(layer, "to a computed size, expected constant amounts")
        }
        guard amounts.count == 2 * x.axes.count else {
            throw malformed(layer, "has \(amounts.count) padding amounts for a tensor \(x.dimensions)")
        }
        return try assembler.pad(
            x, x.axes.indices.map { ($0, amounts[2 * $0], amounts[2 * $0 + 1]) }, .constant(record.float(1)),
            named: layer.name)
    }

    mutating func upsample(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        guard try record.integer(5) == 0, try record.floats(7).isEmpty else {
            throw unsupported(
                layer, "with interpolation or fractional factors, expected nearest neighbour and integer factors")
        }
        let factor = try size(record, 1, 1, layer)
        return try imageLayer(layer) { _ in UpsampleNearest(factor: factor) }
    }
}

/// Kernel sizes, strides and padding.
extension CoreMLGraph {
    /// Returns a height and width, or the default if the file has none.
    private func size(
        _ record: CoreMLRecord, _ number: Int, _ standard: Int, _ layer: CoreMLModel.Layer
    ) throws -> Size2D {
        let size = try record.integers(number)
        if size.isEmpty { return Size2D(standard) }
        guard size.count == 2, size.allSatisfy({ $0 > 0 }) else {
            throw malformed(layer, "has the kernel size, stride or factor \(size), expected two values of at least 1")
        }
        return Size2D(height: size[0], width: size[1])
    }

    private typealias Amounts = (before: Int, after: Int)

    /// Returns the padding of height and width.
    private func paddingAmounts(
        _ record: CoreMLRecord?, _ layer: CoreMLModel.Layer
    ) throws -> (rows: Amounts, columns: Amounts) {
        let sides = try record?.records(10).map { (before: try $0.integer(1), after: try $0.integer(2)) } ?? []
        guard sides.isEmpty || sides.count == 2 else {
            throw malformed(layer, "has \(sides.count) padding amounts, expected 2, for height and width")
        }
        return (sides.first ?? (0, 0), sides.last ?? (0, 0))
    }

    private func padding(
        _ record: CoreMLRecord, valid: Int, same: Int, _ kernel: Size2D, _ stride: Size2D, _ dilation: Size2D,
        over input: TensorShape, _ layer: CoreMLModel.Layer
    ) throws -> Padding {
        guard let same = try record.record(same) else {
            let (rows, columns) = try paddingAmounts(record.record(valid)?.record(1), layer)
            if rows == (0, 0), columns == (0, 0) { return .valid }
            return .explicit(top: rows.before, left: columns.before, bottom: rows.after, right: columns.after)
        }
        return try same.integer(1) == 1 ? .sameLower(kernel, stride, dilation, over: input) : .same
    }
}
