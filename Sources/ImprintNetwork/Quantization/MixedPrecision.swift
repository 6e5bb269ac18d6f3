/// The effect of a quantization on the outputs of a network.
public struct QuantizationError: Hashable, Codable, Sendable {
    /// The root mean square of the differences between the outputs in int8 and float32, relative to the standard deviation of the outputs in
    /// float32.
    public let relativeError: Double
    /// The share of images whose largest output is the same.
    public let agreement: Double
}

extension Quantizer {
    /// Returns the error of quantized or rounded parameters for some images.
    /// - Parameters:
    ///   - parameters: The parameters.
    ///   - images: At least one image, which should not be among those of `quantize(for:)`.
    /// - Throws: `NetworkError`, or an error of an image.
    public func error(of parameters: Parameters, on images: [Image]) throws -> QuantizationError {
        precondition(!images.isEmpty, "measuring the error needs at least one image")
        return try error(of: parameters, on: images, reference: outputs(on: images, original, .float32))
    }

    /// Returns parameters with fewer int8 layers, whose error is at most `limit`, and the names of the layers that remain in float32.
    ///
    /// The method first measures the error of the network with only one layer in int8, for each layer. Then the layers with the largest
    /// errors become float32 again. Bisection finds the smallest number of them that keeps the error within the limit.
    /// - Parameters:
    ///   - quantized: The result of `quantize(for:)`.
    ///   - images: The images for measuring, at least one, which should not be those of `quantize(for:)`.
    ///   - limit: The largest `QuantizationError.relativeError`.
    ///   - onProgress: Called with the number of layers that have been measured, and of all layers.
    /// - Throws: `NetworkError`, or an error of an image.
    public func limitingError(
        of quantized: Parameters, on images: [Image], to limit: Double,
        onProgress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws -> (parameters: Parameters, floatLayers: [String], error: QuantizationError) {
        precondition(!images.isEmpty, "measuring the error needs at least one image")
        let reference = try outputs(on: images, original, .float32)
        let error = try self.error(of: quantized, on: images, reference: reference)
        // Not `>`: the error of outputs that are not finite is NaN.
        guard !(error.relativeError <= limit), let quantization = quantized.quantization else {
            return (quantized, [], error)
        }
        // A quarter of the images is enough to compare layers.
        let few = Array(images.prefix(max(images.count / 4, 1)))
        let names = quantization.weights.keys.sorted()
        var errors: [String: Double] = [:]
        for (done, name) in names.enumerated() {
            onProgress(done, names.count)
            let alone = try parameters(quantized, only: [name])
            errors[name] = try self.error(of: alone, on: few, reference: Array(reference.prefix(few.count)))
                .relativeError
        }
        let best = names.sorted { (errors[$0] ?? 0, $0) < (errors[$1] ?? 0, $1) }
        // The error is at most `limit` with the best `low` layers in int8, and above it with `high` of them.
        var (low, high) = (0, best.count)
        var found = (parameters: try original.copy(), error: QuantizationError(relativeError: 0, agreement: 1))
        while high - low > 1 {
            let middle = (low + high) / 2
            let candidate = try parameters(quantized, only: Set(best.prefix(middle)))
            let error = try self.error(of: candidate, on: images, reference: reference)
            if error.relativeError <= limit { (low, found) = (middle, (candidate, error)) } else { high = middle }
        }
        return (found.parameters, best.dropFirst(low).sorted(), found.error)
    }

    /// Returns parameters with some of the int8 layers, and all others as before quantization.
    private func parameters(_ quantized: Parameters, only names: Set<String>) throws -> Parameters {
        let result = try original.copy()
        for operation in operations() where names.contains(network.nodes[operation.nodeIndices[0]].name) {
            for entry in operation.entries { result[entry.name] = quantized[entry.name] }
        }
        var quantization = quantized.quantization ?? Quantization()
        quantization.weights = quantization.weights.filter { names.contains($0.key) }
        result.quantization = quantization
        return result
    }

    func outputs(on images: [Image], _ parameters: Parameters, _ precision: Precision) throws -> [[Float]] {
        var outputs: [[Float]] = []
        try forEachOutput(of: images, parameters, precision: precision) { _, output in outputs.append(Array(output)) }
        return outputs
    }

    func error(
        of parameters: Parameters, on images: [Image], reference: [[Float]]
    ) throws -> QuantizationError {
        let precision = parameters.quantization == nil ? Precision.float32 : .int8
        let outputs = try self.outputs(on: images, parameters, precision)
        var (sum, squares, differences, count, agreeing) = (0.0, 0.0, 0.0, 0.0, 0)
        for (values, expected) in zip(outputs, reference) {
            for (value, expected) in zip(values, expected) {
                sum += Double(expected)
                squares += Double(expected) * Double(expected)
                differences += (Double(value) - Double(expected)) * (Double(value) - Double(expected))
            }
            count += Double(values.count)
            func largest(_ values: [Float]) -> Int? { values.indices.max { values[$0] < values[$1] } }
            if largest(values) == largest(expected) { agreeing += 1 }
        }
        let variance = squares / count - (sum / count) * (sum / count)
        return QuantizationError(
            relativeError: (differences / count / max(variance, .leastNormalMagnitude)).squareRoot(),
            agreement: Double(agreeing) / Double(images.count))
    }
}
