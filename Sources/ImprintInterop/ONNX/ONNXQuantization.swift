internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

// The import of quantized models in the QDQ format. A pair of QuantizeLinear and DequantizeLinear becomes the quantization of an activation, and a
// DequantizeLinear of a constant the scales of weights. Source: the ONNX operator specification, opsets 10 to 25.

extension ONNXImporter {
    /// Converts QuantizeLinear, DequantizeLinear, and pass-through operators that read integers.
    ///
    /// - Returns: Whether it has converted the node.
    mutating func convertQuantized(_ node: ONNXModel.Node) throws -> Bool {
        let output = node.outputs.first ?? ""
        switch node.operation {
        case "QuantizeLinear": try quantize(node, to: output)
        case "DequantizeLinear": try dequantize(node, to: output)
        case "Div" where assembler.preservesNodes && !quantized.unquantized.contains(output):
            return try divide(node, to: output)
        default:
            guard let integers = node.inputs.compactMap({ quantized.integers[$0] }).first else { return false }
            guard ONNXQuantizedTensors.passThroughOperators.contains(node.operation), integers.scales.axis == nil,
                let operation = ONNXOperators.all[node.operation], let result = try operation(node, &self).first
            else {
                throw unsupported(node, "of the output of QuantizeLinear, expected DequantizeLinear to read it")
            }
            values[output] = .activation(result)
            quantized.integers[output] = .init(activation: result, scales: integers.scales)
        }
        return true
    }

    /// Gives the output of a converted pass-through operator the quantization of its input.
    mutating func propagateQuantization(through node: ONNXModel.Node) {
        guard ONNXQuantizedTensors.passThroughOperators.contains(node.operation), let output = node.outputs.first,
            let input = node.inputs.first.flatMap({ quantized.layerInputs[$0] }), input.dequantizeScales.axis == nil,
            input.quantizeScales.axis == nil
        else { return }
        quantized.layerInputs[output] = input
    }

    // MARK: Activations

    /// Records a division by scales before QuantizeLinear, as Imprint exports it.
    ///
    /// - Returns: Whether the node is such a division.
    private mutating func divide(_ node: ONNXModel.Node, to output: String) throws -> Bool {
        guard case .activation(let x) = try input(0, node), case .constant(let constant) = try input(1, node),
            x.dimensions.count > 1, constant.count == x.dimensions[1],
            constant.shape == [constant.count] + x.dimensions.dropFirst(2).map({ _ in 1 })
        else { return false }
        quantized.quotients[output] = (x, constant.floats)
        values[output] = .activation(x)
        return true
    }

    private mutating func quantize(_ node: ONNXModel.Node, to output: String) throws {
        switch try input(0, node) {
        case .constant(let constant):
            let scales = try scales(of: node, shape: constant.shape)
            let floats = scales.quantized(constant.floats, constant.shape)
            try folding.add(constant.count * MemoryLayout<Float>.stride, as: output, for: node.name)
            values[output] = .constant(Constant(shape: constant.shape, floats: floats))
        case .activation(var x):
            var scales = try scales(of: node, shape: x.dimensions)
            if let quotient = quantized.quotients[node.inputs[0]] {
                guard let product = scales.multiplied(by: quotient.divisors) else {
                    throw unsupported(node, "with a divisor that does not fit its scales")
                }
                scales = product
            }
            x = try withClip(x, scales, named: node.name)
            try record(scales, of: x, for: node.name)
            values[output] = .activation(x)
            quantized.integers[output] = .init(activation: x, scales: scales)
        }
    }

    /// Adds the quantization of an activation; scales along other axes than the channels are not kept.
    private mutating func record(
        _ scales: ONNXQuantizedTensors.Scales, of x: SourceActivation, for name: String
    ) throws {
        let channels = x.shape.channels
        if let axis = scales.axis {
            let all = scales.scales.indices.compactMap { scales.activation($0) }
            guard x.axes[axis] == .channels, all.count == channels else { return }
            try assembler.reserve(all.count * 8, for: name)
            let activation = Quantization.Activation(scales: all.map(\.scale), zeroPoints: all.map(\.zeroPoint))
            quantization.add(activation, of: x.node)
            return
        }
        guard let (scale, zeroPoint) = scales.activation(0) else { return }
        // A convolution can merge with a permutation of channels or a padding before it, and then reads their input.
        var source: SourceActivation? = x
        while let next = source {
            let count = next.shape.channels
            try assembler.reserve(count * 8, for: name)
            quantization.add(
                Quantization.Activation(
                    scales: Array(repeating: scale, count: count),
                    zeroPoints: Array(repeating: zeroPoint, count: count)), of: next.node)
            let isMerged =
                assembler.layer(of: next, as: SelectChannels.self) != nil
                || assembler.layer(of: next, as: PadLayer.self)?.mode == .constant(0)
            source = isMerged ? assembler.inputs(of: next).first : nil
        }
    }

    /// Returns an activation with the limits of its quantization, if these start at 0.
    ///
    /// Quantization programs remove a ReLU or a Clip before QuantizeLinear, which has the same effect.
    private mutating func withClip(
        _ x: SourceActivation, _ scales: ONNXQuantizedTensors.Scales, named name: String
    ) throws -> SourceActivation {
        guard !assembler.preservesNodes, x.node != Network.inputName, let maximum = scales.maximumAboveZero,
            !isNonNegative(x)
        else { return x }
        return try assembler.clip(x, from: 0, to: maximum, named: name)
    }

    /// Whether the values of an activation are known to be at least 0.
    private func isNonNegative(_ x: SourceActivation) -> Bool {
        var open = [x]
        // The bound limits the work for deep graphs.
        for _ in 0..<64 {
            guard let y = open.popLast() else { return true }
            if assembler.layer(of: y, as: ReLU.self) != nil || assembler.layer(of: y, as: ReLU6.self) != nil
                || assembler.layer(of: y, as: Sigmoid.self) != nil
                || assembler.layer(of: y, as: HardSigmoid.self) != nil
                || assembler.layer(of: y, as: Softmax.self) != nil
                || (assembler.layer(of: y, as: ClipLayer.self)?.minimum ?? -1) >= 0
            {
                continue
            }
            guard
                assembler.layer(of: y, as: MaxPool.self) != nil || assembler.layer(of: y, as: AveragePool.self) != nil
                    || assembler.layer(of: y, as: GlobalAveragePool.self) != nil
                    || assembler.layer(of: y, as: GlobalMaxPool.self) != nil
                    || assembler.layer(of: y, as: Flatten.self) != nil || assembler.layer(of: y, as: Concat.self) != nil
                    || assembler.layer(of: y, as: AddLayer.self) != nil
                    || assembler.layer(of: y, as: MeanLayer.self) != nil
            else { return false }
            open += assembler.inputs(of: y)
        }
        return false
    }

    private mutating func dequantize(_ node: ONNXModel.Node, to output: String) throws {
        if let name = node.inputs.first, values[name] == nil, let tensor = tensors[name] {
            let scales = try scales(of: node, shape: tensor.shape, type: tensor.type)
            if quantized.allowed.insert(name).inserted { try assembler.allow(elements: tensor.elementLimit()) }
            quantized.tensors[output] = .init(tensor: tensor, scales: scales)
            quantized.weightScales[output] = scales
            return
        }
        switch try input(0, node) {
        case .constant(let constant):
            let scales = try scales(of: node, shape: constant.shape)
            try folding.add(constant.count * MemoryLayout<Float>.stride, as: output, for: node.name)
            values[output] = .constant(
                Constant(shape: constant.shape, floats: scales.dequantized(constant.floats, constant.shape)))
            quantized.weightScales[output] = scales
        case .activation(let x):
            values[output] = .activation(try dequantized(x, node, to: output))
        }
    }

    private mutating func dequantized(
        _ x: SourceActivation, _ node: ONNXModel.Node, to output: String
    ) throws -> SourceActivation {
        let dequantizeScales = try scales(of: node, shape: x.dimensions)
        guard let integers = quantized.integers[node.inputs[0]] else {
            // Integers that the model receives: (x − zero point) · scale.
            let offsets = constant(dequantizeScales.zeroPoints.map { -Float($0) }, dequantizeScales.axis, of: x)
            let y = try assembler.add(x, offsets, named: "\(node.name).offset")
            return try assembler.multiply(
                y, by: constant(dequantizeScales.scales, dequantizeScales.axis, of: x), named: node.name)
        }
        guard
            integers.scales.axis == nil || dequantizeScales.axis == nil
                || integers.scales.axis == dequantizeScales.axis
        else {
            throw unsupported(node, "along another axis than QuantizeLinear")
        }
        let (scales, other) = (
            integers.scales.broadcast(to: dequantizeScales), dequantizeScales.broadcast(to: integers.scales)
        )
        let isLayerInput = !quantized.otherInputs.contains(output) && scales.zeroPoints == other.zeroPoints
        if isLayerInput || dequantizeScales.isInverse(of: integers.scales) {
            quantized.layerInputs[output] = .init(
                quantizeScales: integers.scales, dequantizeScales: dequantizeScales)
            return x
        }
        // y = (x / scale + zero point − other zero point) · other scale
        let factors = zip(other.scales, scales.scales).map { $0 / $1 }
        let addends = zip(scales.zeroPoints, other.zeroPoints).map { Float($0 - $1) }
        let y = try assembler.multiply(x, by: constant(factors, scales.axis, of: x), named: node.name)
        guard addends.contains(where: { $0 != 0 }) else { return y }
        return try assembler.add(
            y, constant(zip(addends, other.scales).map { $0 * $1 }, scales.axis, of: x), named: "\(node.name).offset")
    }

    /// Returns a constant that broadcasts along an axis of an activation.
    private func constant(_ values: [Float], _ axis: Int?, of x: SourceActivation) -> Constant {
        guard let axis else { return Constant(shape: [], floats: Array(values.prefix(1))) }
        return Constant(shape: x.axes.indices.map { $0 == axis ? values.count : 1 }, floats: values)
    }
}

// MARK: Scales

extension ONNXImporter {
    /// Returns the scales and zero points of QuantizeLinear or DequantizeLinear.
    ///
    /// - Parameters:
    ///   - shape: The shape of the input.
    ///   - type: The element type of the integers; nil for the type of the zero point.
    private func scales(of node: ONNXModel.Node, shape: [Int], type: Int? = nil) throws -> ONNXQuantizedTensors.Scales {
        let title = "\(node.name) (\(node.operation))"
        guard (node.attributes["block_size"]?.integer ?? 0) == 0 else {
            throw unsupported(node, "scales of blocks, expected one for the tensor or one for each channel")
        }
        let scale = try requiredConstant(1, node)
        let values = scale.floats
        // Weights whose output channel is 0 can have the scale 0.
        let isActivation = quantized.integers[node.inputs.first ?? ""] != nil || node.operation == "QuantizeLinear"
        guard values.allSatisfy({ $0.isFinite && ($0 > 0 || $0 == 0 && !isActivation) }) else {
            throw ImportError.Problem.malformed(
                reason: "\(title) has an invalid scale, expected finite numbers above 0")
        }
        var axis: Int?
        if values.count != 1 || !(scale.shape.isEmpty || scale.shape == [1]) {
            let given = node.attributes["axis"]?.integer ?? 1
            let index = given < 0 ? given &+ shape.count : given
            guard scale.shape.count == 1, shape.indices.contains(index), shape[index] == values.count, !values.isEmpty
            else {
                throw ImportError.Problem.malformed(
                    reason:
                        "\(title) has scales of the shape \(scale.shape) along the axis \(given) of a tensor \(shape), "
                        + "expected one scale, or one for each index of the axis")
            }
            axis = index
        }
        guard hasInput(2, node) else {
            let named = node.attributes["output_dtype"]?.integer
            return .init(
                scales: values, zeroPoints: values.map { _ in 0 }, axis: axis,
                type: type ?? (named == nil || named == 0 ? 2 : named))
        }
        let zeroPoint = try requiredConstant(2, node)
        let type = type ?? tensors[node.inputs[2]]?.type
        guard let points = zeroPoint.integers, points.count == values.count else {
            throw ImportError.Problem.malformed(
                reason:
                    "\(title) has \(counted(zeroPoint.count, "zero point")) for \(counted(values.count, "scale")), expected equal numbers of "
                    + "integers"
            )
        }
        let limits = ONNXQuantizedTensors.Scales.limits(of: type) ?? Int(Int32.min)...Int(UInt32.max)
        guard points.allSatisfy(limits.contains) else {
            throw ImportError.Problem.malformed(reason: "\(title) has a zero point outside the range of its integers")
        }
        return .init(scales: values, zeroPoints: points, axis: axis, type: type)
    }
}

// MARK: Layers

extension ONNXImporter {
    /// Returns the weights of a layer, multiplied by the ratio of its input's scales in DequantizeLinear and QuantizeLinear.
    ///
    /// - Parameters:
    ///   - axis: The axis of the input channels.
    ///   - groups: The number of groups of a convolution, whose outputs are the first axis.
    func layerWeights(_ node: ONNXModel.Node, inputAxis axis: Int, groups: Int = 1) throws -> Constant {
        let weight = try requiredConstant(1, node)
        guard let input = quantized.layerInputs[node.inputs[0]],
            !input.dequantizeScales.isInverse(of: input.quantizeScales),
            weight.shape.count > axis, groups > 0
        else { return weight }
        let (scales, other, shape) = (input.quantizeScales.scales, input.dequantizeScales.scales, weight.shape)
        let (channels, inner) = (shape[axis], shape[(axis + 1)...].reduce(1, *))
        let outputsPerGroup = max(shape[0] / groups, 1)
        let (values, outer) = (weight.floats, shape.dropFirst().reduce(1, *))
        let count = channels.multipliedReportingOverflow(by: groups)
        guard !count.overflow, scales.count == 1 || scales.count == count.partialValue,
            other.count == 1 || other.count == count.partialValue, outer > 0
        else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) has weights \(shape) for an input with \(max(scales.count, other.count)) scales")
        }
        let floats = values.indices.map { index in
            let group = groups > 1 ? min(index / outer / outputsPerGroup, groups - 1) : 0
            let channel = group * channels + index / inner % channels
            return values[index] * other[other.count == 1 ? 0 : channel] / scales[scales.count == 1 ? 0 : channel]
        }
        return Constant(shape: shape, floats: floats)
    }

    /// Records that the weights of a layer are integers.
    ///
    /// - Parameters:
    ///   - axis: The axis of the output channels of the weights.
    ///   - outputs: The number of output channels.
    mutating func recordLayer(_ y: SourceActivation, _ node: ONNXModel.Node, outputAxis axis: Int, outputs: Int) {
        guard let weights = quantized.weightScales[node.inputs[1]],
            weights.scales.count == 1 || (weights.axis == axis && weights.scales.count == outputs)
        else { return }
        guard let input = quantized.layerInputs[node.inputs[0]], let scale = input.dequantizeScales.uniformScale else {
            return quantization.add(nil, of: y.node)
        }
        let scales =
            weights.scales.count == outputs ? weights.scales : Array(repeating: weights.scales[0], count: outputs)
        quantization.add(
            ImportedQuantization.Layer(
                scales: scales.map { $0 * scale }, inputScale: input.quantizeScales.uniformScale),
            of: y.node)
    }
}
