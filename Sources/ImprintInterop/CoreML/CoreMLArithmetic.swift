internal import ImprintNetwork

/// Element-wise arithmetic with constants and between activations.
extension CoreMLGraph {
    /// Computes the sum of one input and `alpha`, or of several inputs.
    mutating func sum(_ layer: CoreMLModel.Layer, _ alpha: Float = 0) throws -> SourceActivation {
        let (activations, constants) = try terms(layer)
        if layer.inputs.count == 1 { return try assembler.linear(activations[0], 1, alpha, named: layer.name) }
        var result = activations.count > 1 ? try assembler.add(activations, named: layer.name) : activations[0]
        for constant in constants { result = try assembler.add(result, constant, named: layer.name) }
        return result
    }

    /// Computes the product of one input and `alpha`, or of several inputs.
    mutating func product(_ layer: CoreMLModel.Layer, _ alpha: Float = 1) throws -> SourceActivation {
        let (activations, constants) = try terms(layer)
        if layer.inputs.count == 1 { return try assembler.linear(activations[0], alpha, 0, named: layer.name) }
        var result = activations.count > 1 ? try assembler.multiply(activations, named: layer.name) : activations[0]
        for constant in constants { result = try assembler.multiply(result, by: constant, named: layer.name) }
        return result
    }

    mutating func average(_ layer: CoreMLModel.Layer) throws -> SourceActivation {
        let (activations, constants) = try terms(layer)
        guard constants.isEmpty else { throw unsupported(layer, "with constants") }
        guard activations.count > 1 else { return activations[0] }
        let sum = try assembler.add(activations, named: "\(layer.name).sum")
        return try assembler.linear(sum, 1 / Float(activations.count), 0, named: layer.name)
    }

    /// Computes the maximum of several inputs; a scalar constant is a lower limit.
    mutating func maximum(_ layer: CoreMLModel.Layer) throws -> SourceActivation {
        let (activations, constants) = try terms(layer)
        var result = activations.count > 1 ? try assembler.maximum(activations, named: layer.name) : activations[0]
        for constant in constants {
            guard constant.count == 1, let number = constant.floats.first else {
                throw unsupported(layer, "with a constant that is not a scalar")
            }
            result = try assembler.clip(result, from: number, to: .infinity, named: layer.name)
        }
        return result
    }

    /// Computes the minimum with a scalar constant, an upper limit.
    mutating func minimum(_ layer: CoreMLModel.Layer) throws -> SourceActivation {
        let (activations, constants) = try terms(layer)
        guard activations.count == 1, constants.count == 1, constants[0].count == 1,
            let number = constants[0].floats.first
        else { throw unsupported(layer, "expected one scalar constant") }
        return try assembler.clip(activations[0], from: -.infinity, to: number, named: layer.name)
    }

    mutating func difference(_ layer: CoreMLModel.Layer) throws -> SourceActivation {
        try assembler.difference(input(0, layer), input(1, layer), named: layer.name)
    }

    mutating func quotient(_ layer: CoreMLModel.Layer) throws -> SourceActivation {
        try assembler.quotient(input(0, layer), input(1, layer), named: layer.name)
    }

    /// Computes scale ⊙ x + bias, with values per channel, per pixel or per element.
    mutating func scale(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        let x = try activation(layer)
        let scale = try parameter(record, shape: 1, values: 2, layer)
        guard try record.bool(3) else { return try assembler.multiply(x, by: scale, named: layer.name) }
        let bias = try parameter(record, shape: 4, values: 5, layer)
        let (extent, factors) = try assembler.broadcast(scale, over: x, for: layer.name)
        let (other, addends) = try assembler.broadcast(bias, over: x, for: layer.name)
        // Adds one layer if both have the same extent, otherwise two layers.
        if extent == other {
            return try assembler.scale(x, extent, by: factors, adding: addends, named: layer.name)
        }
        let y = try assembler.scale(x, extent, by: factors, adding: nil, named: layer.name)
        return try assembler.scale(y, other, by: nil, adding: addends, named: layer.name)
    }

    mutating func bias(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> SourceActivation {
        try assembler.add(activation(layer), parameter(record, shape: 1, values: 2, layer), named: layer.name)
    }

    /// Returns a parameter of the shape [1], [C], [1, H, W] or [C, H, W], reshaped so that it broadcasts to images.
    private mutating func parameter(
        _ record: CoreMLRecord, shape: Int, values: Int, _ layer: CoreMLModel.Layer
    ) throws -> Constant {
        let shape = try record.integers(shape)
        let floats = try weights(record, values, shape, layer)
        return Constant(shape: shape.count == 1 ? [shape[0], 1, 1] : shape, floats: floats)
    }

    /// Returns a constant in the file.
    mutating func constant(_ layer: CoreMLModel.Layer, _ record: CoreMLRecord) throws -> Constant {
        let shape = try record.integers(1)
        return Constant(shape: shape, floats: try weights(record, 2, shape, layer))
    }
}
