internal import ImprintModel
internal import ImprintNetwork

/// The operators for arithmetic, reductions, reshaping, selection and padding.
extension ONNXImporter {
    /// Converts Add and Sum.
    mutating func sum(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        var result = activations.count > 1 ? try assembler.add(activations, named: node.name) : activations[0]
        for constant in constants {
            let sum = try assembler.add(result, constant, named: node.name)
            // A dense layer includes the bias that follows it.
            quantization.replace(result.node, by: sum.node)
            result = sum
        }
        return result
    }

    /// Converts Mul.
    mutating func product(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        var result = activations.count > 1 ? try assembler.multiply(activations, named: node.name) : activations[0]
        for constant in constants {
            result = try assembler.multiply(result, by: constant, named: node.name, isSeparate: isErfArgument(node))
        }
        return result
    }

    /// Converts Max of tensors, or of a tensor and a scalar constant.
    mutating func maximum(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        let result = activations.count > 1 ? try assembler.maximum(activations, named: node.name) : activations[0]
        return try limits(constants, node).reduce(result) {
            try assembler.clip($0, from: $1, to: .infinity, named: node.name)
        }
    }

    /// Converts Min of a tensor and a scalar constant.
    mutating func minimum(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        guard activations.count == 1 else {
            throw unsupported(node, "of several tensors, expected one and a scalar constant")
        }
        return try limits(constants, node).reduce(activations[0]) {
            try assembler.clip($0, from: -.infinity, to: $1, named: node.name)
        }
    }

    private func limits(_ constants: [Constant], _ node: ONNXModel.Node) throws -> [Float] {
        try constants.map { constant in
            guard constant.count == 1, let limit = constant.floats.first else {
                throw unsupported(node, "with a constant of the shape \(constant.shape), expected a scalar")
            }
            return limit
        }
    }

    /// Rejects an explicit broadcast axis, which is an attribute up to opset 6.
    private func checkBroadcasting(_ node: ONNXModel.Node) throws {
        guard (node.attributes["broadcast"]?.integer ?? 0) == 0 || node.attributes["axis"] == nil else {
            throw unsupported(node, "an explicit broadcast axis; export the model with opset 7 or later")
        }
    }

    /// Converts Sub.
    mutating func difference(_ node: ONNXModel.Node) throws -> SourceActivation {
        try checkBroadcasting(node)
        return try assembler.difference(input(0, node), input(1, node), named: node.name)
    }

    /// Converts Div by a constant.
    mutating func quotient(_ node: ONNXModel.Node) throws -> SourceActivation {
        try checkBroadcasting(node)
        return try assembler.quotient(
            input(0, node), input(1, node), named: node.name, isSeparate: isErfArgument(node))
    }

    private func terms(_ node: ONNXModel.Node) throws -> ([SourceActivation], [Constant]) {
        try checkBroadcasting(node)
        var (activations, constants): ([SourceActivation], [Constant]) = ([], [])
        for index in node.inputs.indices {
            switch try input(index, node) {
            case .activation(let activation): activations.append(activation)
            case .constant(let constant): constants.append(constant)
            }
        }
        guard !activations.isEmpty else { throw unsupported(node, "of constants only") }
        return (activations, constants)
    }

    /// Converts Reshape, Flatten, Squeeze and Unsqueeze.
    mutating func reshape(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let y = try assembler.reshape(x, to: dimensions(of: node, x.dimensions), named: node.name)
        return try assembler.mergingChannelParts(of: y, named: node.name)
    }

    /// Converts Transpose.
    func transpose(_ node: ONNXModel.Node) throws -> SourceActivation {
        var x = try activation(0, node)
        let order = node.attributes["perm"]?.integers ?? Array(x.axes.indices.reversed())
        guard Set(order) == Set(x.axes.indices), order.count == x.axes.count else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) (Transpose) has the permutation \(order) for a tensor \(x.dimensions)")
        }
        let axes = x.axes
        x.axes = order.map { axes[$0] }
        return x
    }

    /// Converts Concat.
    mutating func concatenate(_ node: ONNXModel.Node) throws -> SourceActivation {
        let parts = try node.inputs.indices.map { try activation($0, node) }
        return try assembler.concatenate(parts, along: node.attributes["axis"]?.integer ?? 1, named: node.name)
    }

    /// Converts Split.
    mutating func split(_ node: ONNXModel.Node) throws -> [SourceActivation] {
        let (lengths, count) = (try integers("split", orInput: 1, node), node.outputs.count)
        return try assembler.split(
            activation(0, node), along: node.attributes["axis"]?.integer ?? 0, as: node.outputs, named: node.name
        ) { length in
            let part = (length + count - 1) / count
            return lengths ?? (0..<count).map { min(part, max(length - $0 * part, 0)) }
        }
    }

    /// Converts Slice.
    mutating func slice(_ node: ONNXModel.Node) throws -> SourceActivation {
        var x = try activation(0, node)
        for part in try slices(node, of: x.dimensions) {
            x = try assembler.select(x, along: part.axis, part.indices, named: node.name)
        }
        return x
    }

    /// Converts Gather with constant indices.
    mutating func gather(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let indices = try requiredConstant(1, node)
        let axis = node.attributes["axis"]?.integer ?? 0
        guard let index = x.index(ofAxis: axis), let values = indices.integers else {
            throw unsupported(node, "along axis \(axis) with indices of the shape \(indices.shape)")
        }
        let length = x.dimensions[index]
        var y = try assembler.select(x, along: axis, values.map { $0 < 0 ? $0 &+ length : $0 }, named: node.name)
        if indices.shape.isEmpty { y.axes.remove(at: index) }
        guard indices.shape.count > 1 else { return y }
        let dimensions = x.dimensions
        return try assembler.reshape(
            y, to: dimensions[..<index] + indices.shape + dimensions[(index + 1)...], named: node.name)
    }

    /// Converts ReduceMean.
    mutating func mean(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        var axes = try integers("axes", orInput: 1, node) ?? []
        if axes.isEmpty {
            if (node.attributes["noop_with_empty_axes"]?.integer ?? 0) != 0 { return x }
            axes = Array(x.axes.indices)
        }
        return try assembler.mean(
            x, over: axes, keepingAxes: (node.attributes["keepdims"]?.integer ?? 1) != 0, named: node.name)
    }

    /// Converts Softmax and LogSoftmax, which up to opset 12 flatten all axes from `axis` on.
    mutating func softmax(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        guard opset < 13 else {
            return try assembler.softmax(x, along: node.attributes["axis"]?.integer ?? -1, named: node.name)
        }
        let axis = node.attributes["axis"]?.integer ?? 1
        guard let index = x.index(ofAxis: axis), x.dimensions[..<index].allSatisfy({ $0 == 1 }) else {
            throw unsupported(node, "along axis \(axis) of \(x.dimensions), expected all elements of an image")
        }
        if x.shape.pixels == 1 && x.isVector { return try assembler.add(Softmax(), named: node.name, to: [x]) }
        let vector = try assembler.dividedVector(x, named: node.name)
        return try assembler.add(Softmax(), named: node.name, to: [vector])
    }

    /// Converts Pad, whose amounts are attributes up to opset 10.
    mutating func pad(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let all = node.attributes["paddings"]?.integers
        guard let amounts = try all ?? integers("pads", orInput: 1, node) else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (Pad) has no pads")
        }
        let axes = try constant(3, node)?.integers ?? Array(x.axes.indices)
        guard amounts.count == 2 * axes.count else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) (Pad) has \(amounts.count) pads for \(axes.count) axes")
        }
        let value = try constant(2, node)?.floats.first ?? node.attributes["value"]?.float ?? 0
        let mode: PadLayer.Mode
        switch node.attributes["mode"]?.text ?? "constant" {
        case "constant": mode = .constant(value)
        case "reflect": mode = .reflect
        case "edge": mode = .edge
        case let other: throw unsupported(node, "mode \(other)")
        }
        return try assembler.pad(
            x, axes.indices.map { (axes[$0], amounts[$0], amounts[axes.count + $0]) }, mode, named: node.name)
    }

    /// Converts Upsample and Resize by integer factors, with nearest-neighbour interpolation that repeats each pixel.
    mutating func upsample(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try assembler.imageTensor(activation(0, node), for: node.name)
        guard (node.attributes["mode"]?.text ?? "nearest") == "nearest" else {
            throw unsupported(node, "mode \(node.attributes["mode"]?.text ?? ""), expected nearest")
        }
        guard node.attributes["axes"] == nil else { throw unsupported(node, "the attribute axes, expected all axes") }
        let isNew = node.operation == "Resize" && opset >= 11
        var scales = try constant(isNew ? 2 : 1, node)?.floats ?? node.attributes["scales"]?.floats ?? []
        if scales.isEmpty, isNew, let sizes = try constant(3, node)?.floats, sizes.count == 4 {
            scales = zip(sizes, x.dimensions).map { $0 / Float($1) }
        }
        let factors = scales.compactMap { Int(exactly: $0) }
        guard factors.count == 4, factors[0] == 1, factors[1] == 1, factors[2] >= 1, factors[3] >= 1 else {
            throw unsupported(node, "by \(scales), expected integer factors for height and width")
        }
        if isNew { try checkRepeats(node, factor: max(factors[2], factors[3])) }
        return try assembler.add(
            UpsampleNearest(factor: Size2D(height: factors[2], width: factors[3])), named: node.name, to: [x])
    }

    /// Checks that the nearest neighbour repeats each pixel, which depends on the coordinate transformation and the rounding.
    private func checkRepeats(_ node: ONNXModel.Node, factor: Int) throws {
        let coordinates = node.attributes["coordinate_transformation_mode"]?.text ?? "half_pixel"
        let rounding = node.attributes["nearest_mode"]?.text ?? "round_prefer_floor"
        let repeats =
            switch (coordinates, rounding) {
            case ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"): true
            case ("pytorch_half_pixel", "round_prefer_floor"), ("pytorch_half_pixel", "round_prefer_ceil"): true
            case ("asymmetric", "floor"): true
            case ("asymmetric", "round_prefer_floor"): factor <= 2
            default: false
            }
        guard repeats else {
            throw unsupported(node, "\(coordinates) with \(rounding), expected modes that repeat each pixel")
        }
    }

    /// Converts Cast between floating-point types, which has no effect here.
    func convert(_ node: ONNXModel.Node) throws -> SourceActivation {
        let type = node.attributes["to"]?.integer ?? 1
        guard [1, 10, 11, 16].contains(type) else {
            throw unsupported(node, "of an activation to the element type \(type), expected a floating-point type")
        }
        return try activation(0, node)
    }
}
