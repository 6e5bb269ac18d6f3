import ImprintNetwork

/// Weights that are quantized to 8-bit integers with one scale per output: w ≈ scale · q.
///
/// The scale is the largest |w| of the output, divided by 127, and q = w / scale is rounded to nearest, ties to even. So the error of a weight
/// is at most half a scale. Weights are not clipped. Source: symmetric per-channel quantization (Krishnamoorthi, "Quantizing deep
/// convolutional networks for efficient inference", 2018).
enum QuantizedWeights {
    /// Returns the scale of each output for weights [inputs, outputs] in row-major order.
    private static func scales(for weights: UnsafeBufferPointer<Float>, outputs: Int) -> [Float] {
        var largest = [Float](repeating: 0, count: outputs)
        for row in stride(from: 0, to: weights.count, by: outputs) {
            for output in 0..<outputs { largest[output] = max(largest[output], abs(weights[row + output])) }
        }
        return largest.map { value in
            let scale = value / 127
            // Subnormal scales are too imprecise to divide by, and such weights are practically 0.
            return scale < .leastNormalMagnitude ? 0 : scale
        }
    }

    /// Quantizes whole rows of weights with the given scales, to −127…127.
    private static func integers(rounding weights: UnsafeBufferPointer<Float>, by scales: [Float]) -> [Int8] {
        let outputs = scales.count
        return [Int8](unsafeUninitializedCapacity: weights.count) { integers, count in
            for row in stride(from: 0, to: weights.count, by: outputs) {
                for output in 0..<outputs {
                    let scale = scales[output]
                    let quotient = scale == 0 ? 0 : (weights[row + output] / scale).rounded(.toNearestOrEven)
                    integers[row + output] = Int8(min(max(quotient, -127), 127))
                }
            }
            count = weights.count
        }
    }
}

extension QuantizedWeights {
    /// Returns the name of the tensor with the scales of another tensor; parameters of layers never have such names.
    static func scaleName(of tensor: String) -> String { "\(tensor).factor" }

    /// Whether a tensor is stored as int8: the weights of convolutions and dense layers with at least 64 weights per output.
    ///
    /// This excludes first layers and depthwise convolutions, which have few weights and are the most sensitive to rounding.
    static func suits(_ parameter: ParameterDescription) -> Bool {
        guard parameter.role == .weight, let outputs = parameter.shape.last else { return false }
        return parameter.count >= 64 * outputs
    }

    /// Returns the two tensors that store one: the integers and the scales.
    static func tensors(of entry: ParameterLayout.Entry, in parameters: Parameters) -> [TensorSource] {
        let shape = entry.parameter.shape
        let outputs = shape[shape.count - 1]
        let scales = parameters.withValues(of: entry) {
            QuantizedWeights.scales(for: UnsafeBufferPointer($0), outputs: outputs)
        }
        let integers = TensorSource(entry.name, shape: shape, .int8) { body in
            try parameters.withValues(of: entry) { weights in
                let length = max(EncodedFloats.partLength / outputs, 1) * outputs
                for start in stride(from: 0, to: weights.count, by: length) {
                    let rows = UnsafeBufferPointer(rebasing: weights[start..<min(start + length, weights.count)])
                    try QuantizedWeights.integers(rounding: rows, by: scales).withUnsafeBytes(body)
                }
            }
        }
        let tensor = Safetensors.Tensor(name: scaleName(of: entry.name), shape: [outputs], values: scales)
        return [integers, TensorSource(tensor, as: .float32)]
    }

    /// Returns the scale tensors in a file, by the names of their int8 tensors.
    static func scaleTensors(
        in header: Safetensors.Header
    ) throws(ModelFileError.Problem) -> [String: Safetensors.TensorDescription] {
        let byName = Dictionary(uniqueKeysWithValues: header.tensors.map { ($0.name, $0) })
        var found: [String: Safetensors.TensorDescription] = [:]
        for tensor in header.tensors where tensor.elementType == .int8 {
            let name = scaleName(of: tensor.name)
            guard let scales = byName[name] else {
                throw .invalidScales(tensor: tensor.name, reason: "the tensor \(name) with its scales is missing")
            }
            guard scales.elementType == .float32, scales.shape == tensor.shape.suffix(1), scales.shape.count == 1
            else {
                throw .invalidScales(
                    tensor: tensor.name,
                    reason: "the scales are \(scales.elementType.rawValue) \(scales.shape), expected F32 "
                        + "\(tensor.shape.suffix(1))")
            }
            found[tensor.name] = scales
        }
        return found
    }

    /// Returns the tensors with input scales in a file, by the names of their int8 tensors.
    static func inputScaleTensors(
        in header: Safetensors.Header
    ) throws(ModelFileError.Problem) -> [String: Safetensors.TensorDescription] {
        let byName = Dictionary(uniqueKeysWithValues: header.tensors.map { ($0.name, $0) })
        var found: [String: Safetensors.TensorDescription] = [:]
        for tensor in header.tensors where tensor.elementType == .int8 {
            guard let scales = byName[Quantization.inputScaleName(of: tensor.name)] else { continue }
            guard scales.elementType == .float32, scales.shape.count == 1 else {
                throw .invalidScales(
                    tensor: tensor.name,
                    reason:
                        "the input scales are \(scales.elementType.rawValue) \(scales.shape), expected an F32 vector")
            }
            found[tensor.name] = scales
        }
        return found
    }

    /// Reads the scales in these tensors.
    static func scales(
        _ tensors: [String: Safetensors.TensorDescription], in file: Safetensors.File
    ) throws -> [String: [Float]] {
        try tensors.mapValues { tensor in
            let scales = try file.values(of: tensor)
            guard scales.allSatisfy(\.isFinite) else {
                throw ModelFileError.Problem.notFinite(tensor: tensor.name)
            }
            return scales
        }
    }
}
