internal import ImprintModel
internal import ImprintNetwork

/// The operators that compute with whole tensors, or look at them in another shape.
extension ONNXImporter {
    /// Add and Sum.
    mutating func sum(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        var result = activations.count > 1 ? try assembler.add(activations, named: node.name) : activations[0]
        for constant in constants { result = try assembler.add(result, constant, named: node.name) }
        return result
    }

    /// Mul.
    mutating func product(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        var result = activations.count > 1 ? try assembler.multiply(activations, named: node.name) : activations[0]
        for constant in constants {
            result = try assembler.multiply(result, by: constant, named: node.name, isSeparate: isErfArgument(node))
        }
        return result
    }

    /// Max, of tensors or with one known number.
    mutating func maximum(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        let result = activations.count > 1 ? try assembler.maximum(activations, named: node.name) : activations[0]
        return try limits(constants, node).reduce(result) {
            try assembler.clip($0, from: $1, to: .infinity, named: node.name)
        }
    }

    /// Min, with one known number.
    mutating func minimum(_ node: ONNXModel.Node) throws -> SourceActivation {
        let (activations, constants) = try terms(node)
        guard activations.count == 1 else { throw unsupported(node, "of tensors, expected one and a known number") }
        return try limits(constants, node).reduce(activations[0]) {
            try assembler.clip($0, from: -.infinity, to: $1, named: node.name)
        }
    }

    private func limits(_ constants: [Constant], _ node: ONNXModel.Node) throws -> [Float] {
        try constants.map { constant in
            guard constant.count == 1, let limit = constant.floats.first else {
                throw unsupported(node, "with known numbers \(constant.shape), expected one")
            }
            return limit
        }
    }

    /// Up to version 6 a constant was spread along an axis that the node names.
    private func checkSpreading(_ node: ONNXModel.Node) throws {
        guard (node.attributes["broadcast"]?.integer ?? 0) == 0 || node.attributes["axis"] == nil else {
            throw unsupported(node, "an axis to spread along; export the model with opset 7 or later")
        }
    }

    /// Sub.
    mutating func difference(_ node: ONNXModel.Node) throws -> SourceActivation {
        try checkSpreading(node)
        return try assembler.difference(input(0, node), input(1, node), named: node.name)
    }

    /// Div, by known numbers.
    mutating func quotient(_ node: ONNXModel.Node) throws -> SourceActivation {
        try checkSpreading(node)
        return try assembler.quotient(
            input(0, node), input(1, node), named: node.name, isSeparate: isErfArgument(node))
    }

    private func terms(_ node: ONNXModel.Node) throws -> ([SourceActivation], [Constant]) {
        try checkSpreading(node)
        var (activations, constants): ([SourceActivation], [Constant]) = ([], [])
        for place in node.inputs.indices {
            switch try input(place, node) {
            case .activation(let activation): activations.append(activation)
            case .constant(let constant): constants.append(constant)
            }
        }
        guard !activations.isEmpty else { throw unsupported(node, "of weights") }
        return (activations, constants)
    }

    /// Reshape, Flatten, Squeeze and Unsqueeze.
    mutating func reshape(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let y = try assembler.reshape(x, to: dimensions(of: node, x.dimensions), named: node.name)
        return try assembler.joiningChannels(of: y, named: node.name)
    }

    /// Transpose.
    func transpose(_ node: ONNXModel.Node) throws -> SourceActivation {
        var x = try activation(0, node)
        let order = node.attributes["perm"]?.integers ?? Array(x.axes.indices.reversed())
        guard Set(order) == Set(x.axes.indices), order.count == x.axes.count else {
            throw ImportError.Problem.malformed(
                reason: "\(node.name) (Transpose) has the order \(order) for \(x.dimensions)")
        }
        let axes = x.axes
        x.axes = order.map { axes[$0] }
        return x
    }

    /// Concat.
    mutating func concatenate(_ node: ONNXModel.Node) throws -> SourceActivation {
        let parts = try node.inputs.indices.map { try activation($0, node) }
        return try assembler.concatenate(parts, along: node.attributes["axis"]?.integer ?? 1, named: node.name)
    }

    /// Split.
    mutating func split(_ node: ONNXModel.Node) throws -> [SourceActivation] {
        let x = try activation(0, node)
        let axis = node.attributes["axis"]?.integer ?? 0
        guard let place = x.place(ofAxis: axis), !node.outputs.isEmpty else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (Split) has the axis \(axis) of \(x.dimensions)")
        }
        let length = x.dimensions[place]
        let count = node.outputs.count
        let whole = (length + count - 1) / count
        let lengths =
            try integers("split", orInput: 1, node)
            ?? (0..<count).map { min(whole, max(length - $0 * whole, 0)) }
        guard lengths.count == count, length > 0, lengths.allSatisfy((1...length).contains),
            lengths.reduce(0, +) == length
        else {
            throw ImportError.Problem.malformed(reason: "\(node.name) (Split) divides \(length) into \(lengths)")
        }
        var start = 0
        return try zip(node.outputs, lengths).map { name, length in
            defer { start += length }
            return try assembler.select(x, along: axis, Array(start..<(start + length)), named: name)
        }
    }

    /// Slice.
    mutating func slice(_ node: ONNXModel.Node) throws -> SourceActivation {
        var x = try activation(0, node)
        for part in try slices(node, of: x.dimensions) {
            x = try assembler.select(x, along: part.axis, part.places, named: node.name)
        }
        return x
    }

    /// Gather, at known places.
    mutating func gather(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        let places = try known(1, node)
        let axis = node.attributes["axis"]?.integer ?? 0
        guard let place = x.place(ofAxis: axis), let numbers = places.integers else {
            throw unsupported(node, "along axis \(axis) at \(places.shape) places")
        }
        let length = x.dimensions[place]
        var y = try assembler.select(x, along: axis, numbers.map { $0 < 0 ? $0 &+ length : $0 }, named: node.name)
        if places.shape.isEmpty { y.axes.remove(at: place) }
        guard places.shape.count > 1 else { return y }
        let dimensions = x.dimensions
        return try assembler.reshape(
            y, to: dimensions[..<place] + places.shape + dimensions[(place + 1)...], named: node.name)
    }

    /// ReduceMean.
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

    /// Softmax and LogSoftmax, which up to version 12 take all axes from one on as one.
    mutating func softmax(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try activation(0, node)
        guard opset < 13 else {
            return try assembler.softmax(x, along: node.attributes["axis"]?.integer ?? -1, named: node.name)
        }
        let axis = node.attributes["axis"]?.integer ?? 1
        guard let place = x.place(ofAxis: axis), x.dimensions[..<place].allSatisfy({ $0 == 1 }) else {
            throw unsupported(node, "along axis \(axis) of \(x.dimensions), expected all numbers of an image")
        }
        if x.shape.pixels == 1 && x.isVector { return try assembler.add(Softmax(), named: node.name, to: [x]) }
        let vector = try assembler.dividedVector(x, named: node.name)
        return try assembler.add(Softmax(), named: node.name, to: [vector])
    }

    /// Pad, whose amounts were attributes up to version 10.
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

    /// Upsample and Resize to whole multiples, each number again.
    mutating func upsample(_ node: ONNXModel.Node) throws -> SourceActivation {
        let x = try assembler.picture(activation(0, node), for: node.name)
        guard (node.attributes["mode"]?.text ?? "nearest") == "nearest" else {
            throw unsupported(node, "mode \(node.attributes["mode"]?.text ?? ""), expected nearest")
        }
        guard node.attributes["axes"] == nil else { throw unsupported(node, "axes, expected all") }
        let isNew = node.operation == "Resize" && opset >= 11
        var scales = try constant(isNew ? 2 : 1, node)?.floats ?? node.attributes["scales"]?.floats ?? []
        if scales.isEmpty, isNew, let sizes = try constant(3, node)?.floats, sizes.count == 4 {
            scales = zip(sizes, x.dimensions).map { $0 / Float($1) }
        }
        let whole = scales.compactMap { Int(exactly: $0) }
        guard whole.count == 4, whole[0] == 1, whole[1] == 1, whole[2] >= 1, whole[3] >= 1 else {
            throw unsupported(node, "by \(scales), expected whole multiples of height and width")
        }
        if isNew { try checkRepeats(node, factor: max(whole[2], whole[3])) }
        return try assembler.add(
            UpsampleNearest(factor: Size2D(height: whole[2], width: whole[3])), named: node.name, to: [x])
    }

    /// Whether the nearest number is the one in whose square a place lies, which depends on where places are and how they are rounded.
    private func checkRepeats(_ node: ONNXModel.Node, factor: Int) throws {
        let places = node.attributes["coordinate_transformation_mode"]?.text ?? "half_pixel"
        let rounding = node.attributes["nearest_mode"]?.text ?? "round_prefer_floor"
        let repeats =
            switch (places, rounding) {
            case ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"): true
            case ("pytorch_half_pixel", "round_prefer_floor"), ("pytorch_half_pixel", "round_prefer_ceil"): true
            case ("asymmetric", "floor"): true
            case ("asymmetric", "round_prefer_floor"): factor <= 2
            default: false
            }
        guard repeats else { throw unsupported(node, "\(places) with \(rounding), expected each number again") }
    }

    /// Cast, which between kinds of floating-point numbers changes nothing here.
    func convert(_ node: ONNXModel.Node) throws -> SourceActivation {
        let type = node.attributes["to"]?.integer ?? 1
        guard [1, 10, 11, 16].contains(type) else {
            throw unsupported(node, "to the type \(type) of what depends on the image, expected floating-point numbers")
        }
        return try activation(0, node)
    }
}
