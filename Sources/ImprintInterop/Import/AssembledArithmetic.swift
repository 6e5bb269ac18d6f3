internal import ImprintModel
internal import ImprintNetwork

/// Element-wise arithmetic with constants and between activations.
extension NetworkAssembler {
    /// Computes x ⊙ constant, broadcast as in NumPy.
    ///
    /// - Parameter isSeparate: Whether the product remains a separate layer, so that a later operator can find x.
    mutating func multiply(
        _ x: SourceActivation, by constant: Constant, named name: String, isSeparate: Bool = false
    ) throws(ImportError.Problem) -> SourceActivation {
        let x = x.padded(toRank: constant.shape.count)
        let (extent, values) = try broadcast(constant, over: x, for: name)
        if isSeparate { return try affine(x, extent, by: values, adding: nil, named: name) }
        return try scale(x, extent, by: values, adding: nil, named: name)
    }

    /// Computes x + constant, broadcast as in NumPy.
    mutating func add(
        _ x: SourceActivation, _ constant: Constant, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let x = x.padded(toRank: constant.shape.count)
        let (extent, values) = try broadcast(constant, over: x, for: name)
        return try scale(x, extent, by: nil, adding: values, named: name)
    }

    /// Computes x ⊙ factors + addends, with values in the network's layout.
    ///
    /// Factors and addends per channel merge into a preceding normalization, dense or affine layer.
    mutating func scale(
        _ x: SourceActivation, _ extent: Affine.Extent, by factors: [Float]?, adding addends: [Float]?,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        let count = extent == .channels ? x.shape.channels : x.shape.count
        for values in [factors, addends].compactMap({ $0 }) where values.count != count {
            throw .malformed(reason: "\(name) has \(values.count) factors or addends, expected \(count)")
        }
        func scaled(_ values: [Float]) -> [Float] {
            factors.map { factors in values.indices.map { values[$0] * factors[$0 % factors.count] } } ?? values
        }
        func moved(_ values: [Float]?) -> [Float]? {
            guard let values else { return addends }
            let scaled = scaled(values)
            return addends.map { addends in scaled.indices.map { scaled[$0] + addends[$0] } } ?? scaled
        }
        let (parameters, source) = (parameters(of: x), inputs(of: x))
        try ImportError.Problem.checkMemory(forElements: parameters["weight"]?.count ?? 0)
        // Factors followed by addends always form one layer.
        if let earlier = layer(of: x, as: Affine.self), earlier.extent == extent,
            !preservesNodes || (!earlier.hasShift && factors == nil)
        {
            let factors = parameters["scale"].map(scaled) ?? factors
            let addends = moved(parameters["shift"])
            // No layer remains if the factors cancel out.
            if !preservesNodes, factors?.allSatisfy({ $0 == 1 }) ?? true, addends?.allSatisfy({ $0 == 0 }) ?? true {
                return source[0]
            }
            return try affine(source[0], extent, by: factors, adding: addends, named: name)
        }
        guard extent == .channels, !preservesNodes else {
            return try affine(x, extent, by: factors, adding: addends, named: name)
        }
        let norm: (any Layer)? =
            if let layer = layer(of: x, as: BatchNormalization.self) { layer } else {
                layer(of: x, as: LayerNormalization.self)
            }
        if let norm, let scale = parameters["scale"] {
            var parameters = parameters
            parameters["scale"] = scaled(scale)
            parameters["shift"] = moved(parameters["shift"])
            return try add(norm, named: name, to: source, parameters: parameters, axes: x.axes)
        }
        if let dense = layer(of: x, as: Dense.self), let weight = parameters["weight"] {
            var changed = ["weight": scaled(weight)]
            changed["bias"] = moved(parameters["bias"])
            return try add(
                Dense(outputChannels: dense.outputChannels, hasBias: changed["bias"] != nil), named: name, to: source,
                parameters: changed, axes: x.axes)
        }
        return try affine(x, extent, by: factors, adding: addends, named: name)
    }

    private mutating func affine(
        _ x: SourceActivation, _ extent: Affine.Extent, by factors: [Float]?, adding addends: [Float]?,
        named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        var parameters: [String: [Float]] = [:]
        parameters["scale"] = factors
        parameters["shift"] = addends
        return try add(
            Affine(extent: extent, hasScale: factors != nil, hasShift: addends != nil), named: name, to: [x],
            parameters: parameters)
    }

    /// Returns a constant's values in the network's layout: one per channel, or one per element if they differ between pixels.
    mutating func broadcast(
        _ constant: Constant, over x: SourceActivation, for name: String
    ) throws(ImportError.Problem) -> (Affine.Extent, [Float]) {
        let dimensions = x.dimensions
        let floats = constant.floats
        let missing = max(dimensions.count - constant.shape.count, 0)
        let lengths = Array(repeating: 1, count: missing) + constant.shape
        guard lengths.count == dimensions.count, zip(lengths, dimensions).allSatisfy({ $0 == 1 || $0 == $1 }),
            floats.count == lengths.reduce(1, *)
        else {
            throw .unsupported([
                .init(
                    operation: "arithmetic", node: name,
                    reason:
                        "a constant \(constant.shape) with a tensor \(dimensions), expected a shape that broadcasts to it"
                )
            ])
        }
        if floats.count == 1 {
            try reserve(x.shape.channels * MemoryLayout<Float>.stride, for: name)
            return (.channels, Array(repeating: floats[0], count: x.shape.channels))
        }
        let long = zip(x.axes, lengths).filter { $1 > 1 }.map(\.0)
        if long == [.channels] { return (.channels, floats) }
        // Values that the file stores in full only need their offsets in two layouts.
        if floats.count < x.shape.count { try reserve(x.shape.count * MemoryLayout<Int>.stride, for: name) }
        // The constant's offset for every element of the activation, in the order of the source's axes.
        var size = floats.count
        let strides = lengths.map { length in
            size /= length
            return length == 1 ? 0 : size
        }
        let offsets = Array(StridedOffsets(dimensions, strides: strides))
        var result = [Float](repeating: 0, count: x.shape.count)
        for (index, offset) in zip(memoryOrder(of: x), offsets) { result[index] = floats[offset] }
        return (.values, result)
    }

    /// Computes x + y + …, broadcast to the largest shape.
    mutating func add(
        _ terms: [SourceActivation], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        try combine(AddLayer(), terms, named: name)
    }

    /// Computes x ⊙ y ⊙ …, broadcast to the largest shape.
    ///
    /// x ⊙ sigmoid(x) becomes a swish, x ⊙ (1 + erf(x / √2)) a GELU.
    mutating func multiply(
        _ factors: [SourceActivation], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        if factors.count == 2 {
            for (x, gate) in [(factors[0], factors[1]), (factors[1], factors[0])] {
                if let result = try gelu(x, gate: gate, named: name) { return result }
                guard inputs(of: gate).first?.node == x.node, gate.axes == x.axes else { continue }
                if layer(of: gate, as: Sigmoid.self) != nil { return try add(Swish(), named: name, to: [x]) }
                if layer(of: gate, as: HardSigmoid.self) == HardSigmoid() {
                    return try add(HardSwish(), named: name, to: [x])
                }
            }
        }
        return try combine(MultiplyLayer(), factors, named: name)
    }

    /// Converts a · x ⊙ b · (1 + erf(x / √2)) to a GELU and a factor; returns nil if the factors do not match.
    private mutating func gelu(
        _ x: SourceActivation, gate: SourceActivation, named name: String
    ) throws(ImportError.Problem) -> SourceActivation? {
        guard x.axes == gate.axes,
            let (function, b, shift) = scalings(gate).first(where: { layer(of: $0.y, as: Erf.self) != nil }),
            b == shift,
            let argument = inputs(of: function).first
        else { return nil }
        let left = scalings(x)
        for (y, root, addend) in scalings(argument) where addend == 0 && abs(root - Float(0.5).squareRoot()) < 1e-5 {
            guard let (_, a, _) = left.first(where: { $0.y.node == y.node && $0.addend == 0 }) else { continue }
            let factor = 2 * a * b
            let result = try add(GELU(), named: name, to: [y])
            return factor == 1 ? result : try multiply(result, by: Constant(shape: [], floats: [factor]), named: name)
        }
        return nil
    }

    /// The maximum number of predecessors in which the parts of a GELU are searched.
    ///
    /// It bounds the work for a file in which many products read one long chain of factors.
    private static let maximumScalingCount = 4

    /// Returns every y with x = factor · y + addend for a scalar factor and addend: x itself and its closest predecessors.
    private func scalings(_ x: SourceActivation) -> [(y: SourceActivation, factor: Float, addend: Float)] {
        var found: [(y: SourceActivation, factor: Float, addend: Float)] = [(x, 1, 0)]
        while found.count <= Self.maximumScalingCount, let (y, factor, addend) = found.last,
            layer(of: y, as: Affine.self) != nil,
            let source = inputs(of: y).first
        {
            let parameters = parameters(of: y)
            let (scale, shift) = (parameters["scale"] ?? [1], parameters["shift"] ?? [0])
            guard let first = scale.first, let second = shift.first, scale.allSatisfy({ $0 == first }),
                shift.allSatisfy({ $0 == second })
            else { break }
            found.append((source, factor * first, factor * second + addend))
        }
        return found
    }

    /// Computes the element-wise maximum.
    mutating func maximum(
        _ terms: [SourceActivation], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        try combine(MaximumLayer(), terms, named: name)
    }

    private mutating func combine(
        _ layer: some Layer, _ terms: [SourceActivation], named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard let largest = terms.max(by: { $0.shape.count < $1.shape.count }) else {
            throw .malformed(reason: "\(name) has no inputs")
        }
        let rank = terms.reduce(0) { max($0, $1.axes.count) }
        let padded = terms.map { $0.padded(toRank: rank) }
        // The axes of the output follow from the axes longer than 1 of all inputs.
        let long = (0..<rank).map { index in
            Set(padded.filter { $0.length(of: $0.axes[index]) > 1 }.map { $0.axes[index] })
        }
        let found = long.flatMap { $0 }
        guard long.allSatisfy({ $0.count <= 1 }), Set(found).count == found.count else {
            throw .unsupported([
                .init(
                    operation: type(of: layer).kind, node: name,
                    reason: "inputs of \(terms.map(\.dimensions)), expected the same axes or lengths of 1")
            ])
        }
        let usual = largest.padded(toRank: rank).axes
        let axes = zip(long, usual).map { long, usual in long.first ?? (found.contains(usual) ? .unit : usual) }
        return try add(layer, named: name, to: padded, axes: axes)
    }

    /// Computes the difference x − y.
    mutating func difference(
        _ x: SourceTensor, _ y: SourceTensor, named name: String
    ) throws -> SourceActivation {
        switch (x, y) {
        case (.activation(let x), .constant(let constant)):
            return try add(x, Constant(shape: constant.shape, floats: constant.floats.map { -$0 }), named: name)
        case (.constant(let constant), .activation(let y)):
            return try add(linear(y, -1, 0, named: "\(name).minus"), constant, named: name)
        case (.activation(let x), .activation(let y)):
            return try add([x, linear(y, -1, 0, named: "\(name).minus")], named: name)
        case (.constant, .constant):
            throw ImportError.Problem.unsupported([
                .init(operation: "difference", node: name, reason: "of two constants")
            ])
        }
    }

    /// Computes x / y for a constant y.
    mutating func quotient(
        _ x: SourceTensor, _ y: SourceTensor, named name: String, isSeparate: Bool = false
    ) throws -> SourceActivation {
        guard case (.activation(let x), .constant(let divisor)) = (x, y) else {
            throw ImportError.Problem.unsupported([
                .init(operation: "quotient", node: name, reason: "expected a constant divisor")
            ])
        }
        let factors = Constant(shape: divisor.shape, floats: divisor.floats.map { 1 / $0 })
        return try multiply(x, by: factors, named: name, isSeparate: isSeparate)
    }
}
