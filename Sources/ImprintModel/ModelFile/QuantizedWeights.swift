import ImprintNetwork

/// Weights as whole numbers of 8 bits with a factor for each output, w ≈ factor · q.
///
/// The factor is the largest |w| of the output, divided by 127, and q = w / factor rounded to nearest, ties to even, so that no weight
/// moves by more than half a factor. Factors that cut off the largest weights to leave less squared error gain too little: 0.6 % of
/// it for the weights of EfficientNet-Lite0. Source: symmetric quantisation per channel (Krishnamoorthi, "Quantizing deep convolutional networks
/// for efficient inference", 2018).
struct QuantizedWeights {
    /// The whole numbers, −127…127, in the order of the weights.
    let integers: [Int8]
    /// For each output, which is a place on the last axis, what its numbers are multiplied by.
    let factors: [Float]

    /// Rounds weights [inputs, outputs], the outputs fastest.
    init(rounding weights: UnsafeBufferPointer<Float>, outputs: Int) {
        self.init(rounding: weights, by: Self.factors(for: weights, outputs: outputs))
    }

    /// What the numbers of each output are multiplied by.
    private static func factors(for weights: UnsafeBufferPointer<Float>, outputs: Int) -> [Float] {
        var largest = [Float](repeating: 0, count: outputs)
        for row in stride(from: 0, to: weights.count, by: outputs) {
            for output in 0..<outputs { largest[output] = max(largest[output], abs(weights[row + output])) }
        }
        return largest.map { value in
            let factor = value / 127
            // Smaller ones have too few digits to divide by; such weights are 0 for every purpose.
            return factor < .leastNormalMagnitude ? 0 : factor
        }
    }

    /// Rounds whole rows of weights, of which the outputs' factors are known.
    private init(rounding weights: UnsafeBufferPointer<Float>, by factors: [Float]) {
        let outputs = factors.count
        integers = [Int8](unsafeUninitializedCapacity: weights.count) { integers, count in
            for row in stride(from: 0, to: weights.count, by: outputs) {
                for output in 0..<outputs {
                    let factor = factors[output]
                    let quotient = factor == 0 ? 0 : (weights[row + output] / factor).rounded(.toNearestOrEven)
                    integers[row + output] = Int8(min(max(quotient, -127), 127))
                }
            }
            count = weights.count
        }
        self.factors = factors
    }
}

extension QuantizedWeights {
    /// The name of the tensor with the factors of another tensor; no parameter of a layer is named so.
    static func factorName(of tensor: String) -> String { "\(tensor).factor" }

    /// Whether a writer stores a tensor in 8 bits: the weights of convolutions and dense layers with at least 64 numbers for an output.
    ///
    /// What is left out are first layers and depthwise convolutions. They have few numbers and are the most sensitive: as float32 they
    /// halve the difference of EfficientNet-Lite0's probabilities for an eighth more bytes.
    static func suits(_ parameter: ParameterDescription) -> Bool {
        guard parameter.role == .weight, let outputs = parameter.shape.last else { return false }
        return parameter.count >= 64 * outputs
    }

    /// The two tensors that stand for one in a file.
    static func tensors(of entry: ParameterLayout.Entry, in parameters: Parameters) -> [TensorSource] {
        let shape = entry.parameter.shape
        let outputs = shape[shape.count - 1]
        let factors = parameters.withValues(of: entry) {
            QuantizedWeights.factors(for: UnsafeBufferPointer($0), outputs: outputs)
        }
        let integers = TensorSource(entry.name, shape: shape, .int8) { body in
            try parameters.withValues(of: entry) { weights in
                let length = max(EncodedFloats.partLength / outputs, 1) * outputs
                for start in stride(from: 0, to: weights.count, by: length) {
                    let rows = UnsafeBufferPointer(rebasing: weights[start..<min(start + length, weights.count)])
                    try QuantizedWeights(rounding: rows, by: factors).integers.withUnsafeBytes(body)
                }
            }
        }
        let tensor = Safetensors.Tensor(name: factorName(of: entry.name), shape: [outputs], values: factors)
        return [integers, TensorSource(tensor, as: .float32)]
    }

    /// For each tensor of 8 bits in a file, by its name, the tensor of its factors.
    static func factorTensors(
        in header: Safetensors.Header
    ) throws(ModelFileError.Problem) -> [String: Safetensors.TensorDescription] {
        let byName = Dictionary(uniqueKeysWithValues: header.tensors.map { ($0.name, $0) })
        var found: [String: Safetensors.TensorDescription] = [:]
        for tensor in header.tensors where tensor.elementType == .int8 {
            let name = factorName(of: tensor.name)
            guard let factors = byName[name] else {
                throw .invalidFactors(tensor: tensor.name, reason: "there are no factors, \(name),")
            }
            guard factors.elementType == .float32, factors.shape == tensor.shape.suffix(1), factors.shape.count == 1
            else {
                throw .invalidFactors(
                    tensor: tensor.name,
                    reason: "the factors are \(factors.elementType.rawValue) \(factors.shape), expected F32 "
                        + "\(tensor.shape.suffix(1)), for the outputs")
            }
            found[tensor.name] = factors
        }
        return found
    }

    /// The numbers of these tensors.
    static func factors(
        _ tensors: [String: Safetensors.TensorDescription], in file: Safetensors.File
    ) throws -> [String: [Float]] {
        try tensors.mapValues { tensor in
            let factors = try file.values(of: tensor)
            guard factors.allSatisfy(\.isFinite) else {
                throw ModelFileError.Problem.notFinite(tensor: tensor.name)
            }
            return factors
        }
    }
}
