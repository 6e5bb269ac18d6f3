internal import CImprintKernels
internal import ImprintCore

/// Rounds the weights of int8 layers so that the outputs of the layers change as little as possible.
///
/// Rounding each weight to its nearest integer ignores that the inputs of a layer are correlated. After a ReLU, all inputs are positive, and
/// neighbouring pixels are nearly equal, so the errors of the weights add up. Therefore this type rounds the weights one after the other, and the
/// later weights compensate the error of each. H is the covariance matrix of the inputs, and U is the upper Cholesky factor of H⁻¹. If w[i] is
/// rounded to q[i], each later weight w[j] changes by −(w[i] − q[i]) / U[i, i] · U[i, j]. The mean of the remaining error is subtracted
/// from the bias.
///
/// Source: Frantar et al., "GPTQ: accurate post-training quantization for generative pre-trained transformers", 2023; bias correction: Nagel et
/// al., "Data-free quantization through weight equalization and bias correction", 2019.
struct WeightRounding {
    /// The longest window whose covariances are computed; the errors of many weights average out.
    private static let longestWindow = 1152
    /// The most kernel elements of a depthwise convolution whose covariances are computed, which limits the memory.
    private static let mostDepthwiseElements = 256
    /// The number of windows per image.
    private static let windowsPerImage = 32
    /// The number of windows whose products are added to a covariance matrix at once.
    private static let rowsPerProduct = 64

    /// The inputs of an int8 layer.
    private final class Inputs {
        let window: imprint_window
        let operation: PlanOperation
        /// The number of values of a window: kernel elements and input channels.
        let elements, channels: Int
        let isDepthwise: Bool
        var sums: [Double]
        /// Σ x·xᵀ: of whole windows, or for each channel of a depthwise convolution; empty for long windows.
        var products: [Float]
        var rows: [Float] = []
        var count = 0.0

        init(_ operation: PlanOperation) {
            self.operation = operation
            let input = operation.inputs[0]
            let convolution = (operation.kernel as? PrepackedConvolution)?.convolution
            window = (convolution?.window ?? Window(kernel: 1, stride: 1, dilation: 1, padding: .valid))
                .kernelWindow(over: input)
            elements = (convolution?.kernelSize.height ?? 1) * (convolution?.kernelSize.width ?? 1)
            channels = input.channels
            isDepthwise = (convolution?.groups ?? 1) > 1
            sums = [Double](repeating: 0, count: elements * channels)
            let isShort =
                isDepthwise
                ? elements <= WeightRounding.mostDepthwiseElements
                : elements * channels <= WeightRounding.longestWindow
            let count = isDepthwise ? channels * elements * elements : elements * channels * elements * channels
            products = [Float](repeating: 0, count: isShort ? count : 0)
        }

        var length: Int { elements * channels }
    }

    private let network: Network
    private let parameters: Parameters
    private let quantization: Quantization
    /// The inputs of int8 layers, by the name of the activation that they read.
    private var inputs: [String: [Inputs]] = [:]

    init(_ network: Network, _ operations: [PlanOperation], _ parameters: Parameters, _ quantization: Quantization) {
        self.network = network
        self.parameters = parameters
        self.quantization = quantization
        for operation in operations where quantization.weights[network.nodes[operation.nodeIndices[0]].name] != nil {
            let source = operation.sources[0]
            let name =
                source < 0
                ? Network.inputName : operations[source].nodeIndices.last.map { network.nodes[$0].name } ?? ""
            inputs[name, default: []].append(Inputs(operation))
        }
    }

    // MARK: Statistics

    /// Records an activation of an image.
    func record(_ name: String, _ values: UnsafeBufferPointer<Float>, _ shape: TensorShape) {
        guard let values = values.baseAddress else { return }
        for layer in inputs[name] ?? [] { record(values, shape, layer) }
    }

    private func record(_ values: UnsafePointer<Float>, _ shape: TensorShape, _ layer: Inputs) {
        var window = layer.window
        // The image may have another size than the network's input.
        if (Int(window.height), Int(window.width)) != (shape.height, shape.width),
            let convolution = (layer.operation.kernel as? PrepackedConvolution)?.convolution
        {
            window = convolution.window.kernelWindow(over: shape)
        }
        let output = TensorShape(
            height: Int(window.output_height), width: Int(window.output_width), channels: layer.channels)
        var row = [Float](repeating: 0, count: layer.length)
        for pixel in sampledPixels(output, count: Self.windowsPerImage) {
            imprint_im2col(&window, values, 0, layer.channels, pixel, 1, &row)
            // Overflowed activations would spread to all weights.
            guard row.allSatisfy(\.isFinite) else { continue }
            for element in row.indices { layer.sums[element] += Double(row[element]) }
            layer.count += 1
            guard !layer.products.isEmpty else { continue }
            guard !layer.isDepthwise else {
                addProducts(of: row, to: layer)
                continue
            }
            layer.rows += row
            if layer.rows.count == Self.rowsPerProduct * layer.length { addRows(to: layer) }
        }
    }

    private func addProducts(of row: [Float], to layer: Inputs) {
        let (elements, channels) = (layer.elements, layer.channels)
        row.withUnsafeBufferPointer { row in
            layer.products.withUnsafeMutableBufferPointer { products in
                for first in 0..<elements {
                    for second in 0...first {
                        let start = (first * elements + second) * channels
                        for channel in 0..<channels {
                            products[start + channel] +=
                                row[first * channels + channel] * row[second * channels + channel]
                        }
                    }
                }
            }
        }
    }

    private func addRows(to layer: Inputs) {
        let (length, rows) = (layer.length, layer.rows.count / layer.length)
        guard rows > 0 else { return }
        layer.rows.withUnsafeBufferPointer { x in
            layer.products.withUnsafeMutableBufferPointer { products in
                guard let x = x.baseAddress, let products = products.baseAddress else { return }
                let matrix = GEMM.Matrix(x, stride: length)
                GEMM.multiply(
                    rows: length, columns: length, inner: rows, matrix.transpose, matrix, into: products,
                    stride: length,
                    accumulating: true)
            }
        }
        layer.rows.removeAll(keepingCapacity: true)
    }

    // MARK: Rounding

    /// Rounds the weights of all int8 layers in the parameters, and corrects their biases.
    func round(_ workers: Workers) {
        let layers = inputs.values.flatMap { $0 }
        workers.parallelForEach(layers.count) { layer, _ in round(layers[layer]) }
    }

    private func round(_ layer: Inputs) {
        let name = network.nodes[layer.operation.nodeIndices[0]].name
        guard let scales = quantization.weights[name], let weight = layer.operation.entries.first else { return }
        addRows(to: layer)
        let before = parameters.withValues(of: weight) { Array($0) }
        parameters.withValues(of: weight) { values in
            if !layer.products.isEmpty {
                if layer.isDepthwise {
                    compensateDepthwise(values, scales, layer)
                } else {
                    compensate(values, scales, layer)
                }
            }
            scales.round(values)
        }
        let after = parameters.withValues(of: weight) { Array($0) }
        correctBias(layer, zip(after, before).map { $0 - $1 })
    }

    private func compensate(
        _ weights: UnsafeMutableBufferPointer<Float>, _ scales: Quantization.Weights, _ layer: Inputs
    ) {
        let (length, outputs) = (layer.length, scales.scales.count)
        var covariance = [Double](repeating: 0, count: length * length)
        for row in 0..<length {
            for column in 0..<length {
                covariance[row * length + column] =
                    Double(layer.products[row * length + column]) / layer.count
                    - layer.sums[row] * layer.sums[column] / (layer.count * layer.count)
            }
        }
        guard let factor = InverseCholesky(covariance, size: length) else { return }
        var errors = [Float](repeating: 0, count: outputs)
        for row in 0..<length {
            let inputScale = scales.inputScales[row % layer.channels]
            for output in 0..<outputs {
                let value = weights[row * outputs + output]
                let rounded = scales.rounded(value, inputScale: inputScale, output: output)
                errors[output] = (value - rounded) / Float(factor[row, row])
                weights[row * outputs + output] = rounded
            }
            for later in (row + 1)..<max(length, row + 1) {
                let share = Float(factor[row, later])
                for output in 0..<outputs { weights[later * outputs + output] -= share * errors[output] }
            }
        }
    }

    private func compensateDepthwise(
        _ weights: UnsafeMutableBufferPointer<Float>, _ scales: Quantization.Weights, _ layer: Inputs
    ) {
        let (elements, channels) = (layer.elements, layer.channels)
        for channel in 0..<channels {
            var covariance = [Double](repeating: 0, count: elements * elements)
            for row in 0..<elements {
                for column in 0...row {
                    let value =
                        Double(layer.products[(row * elements + column) * channels + channel]) / layer.count
                        - layer.sums[row * channels + channel] * layer.sums[column * channels + channel]
                        / (layer.count * layer.count)
                    covariance[row * elements + column] = value
                    covariance[column * elements + row] = value
                }
            }
            guard let factor = InverseCholesky(covariance, size: elements) else { continue }
            for row in 0..<elements {
                let value = weights[row * channels + channel]
                let rounded = scales.rounded(value, inputScale: scales.inputScales[channel], output: channel)
                let error = (value - rounded) / Float(factor[row, row])
                weights[row * channels + channel] = rounded
                for later in (row + 1)..<max(elements, row + 1) {
                    weights[later * channels + channel] -= Float(factor[row, later]) * error
                }
            }
        }
    }

    /// Subtracts the mean effect of changed weights from the bias, or adds it to the running mean of a normalization.
    private func correctBias(_ layer: Inputs, _ changes: [Float]) {
        guard let outputs = layer.operation.entries.first?.parameter.shape.last, layer.count > 0 else { return }
        var shifts = [Double](repeating: 0, count: outputs)
        for (index, change) in changes.enumerated() {
            let output = index % outputs
            let input = layer.isDepthwise ? index : index / outputs
            shifts[output] += Double(change) * layer.sums[input] / layer.count
        }
        let entries = layer.operation.entries
        if let bias = entries.first(where: { $0.parameter.role == .bias && $0.node == entries[0].node }) {
            parameters.withValues(of: bias) { for output in 0..<outputs { $0[output] -= Float(shifts[output]) } }
        } else if let mean = entries.first(where: { $0.parameter.role == .statistic }) {
            parameters.withValues(of: mean) { for output in 0..<outputs { $0[output] += Float(shifts[output]) } }
        }
    }
}

/// The upper triangular matrix U with H⁻¹ = Uᵀ·U for a covariance matrix H.
///
/// With the order of rows and columns reversed, H = L·Lᵀ. In the original order, the factors are upper triangular, and U is the inverse of the
/// first one.
private struct InverseCholesky {
    private let size: Int
    private var values: [Double]

    subscript(row: Int, column: Int) -> Double { values[row * size + column] }

    /// - Returns: nil if all variances are 0.
    init?(_ covariance: [Double], size: Int) {
        self.size = size
        let mean = (0..<size).reduce(0) { $0 + covariance[$1 * size + $1] } / Double(size)
        guard mean > 0 else { return nil }
        var reversed = [Double](covariance.reversed())
        // Makes the matrix positive definite, and limits the compensation if there are few samples.
        for index in 0..<size { reversed[index * size + index] += Self.damping * mean }
        guard Self.factorize(&reversed, size: size) else { return nil }
        values = Self.inverse(reversed, size: size).reversed()
    }

    /// The share of the mean variance that is added to every variance.
    private static let damping = 0.01

    /// Replaces a symmetric matrix by the lower triangular matrix L with L·Lᵀ = the matrix.
    /// - Returns: false if the matrix is not positive definite.
    private static func factorize(_ matrix: inout [Double], size: Int) -> Bool {
        // The loops run over the rows of Lᵀ, which are contiguous.
        let succeeds = matrix.withUnsafeMutableBufferPointer { u in
            for k in 0..<size {
                let diagonal = u[k * size + k]
                guard diagonal > 0 else { return false }
                let factor = 1 / diagonal.squareRoot()
                for column in k..<size { u[k * size + column] *= factor }
                for row in (k + 1)..<max(size, k + 1) {
                    let value = u[k * size + row]
                    for column in row..<size { u[row * size + column] -= value * u[k * size + column] }
                }
            }
            return true
        }
        for row in 0..<size {
            for column in row..<size {
                matrix[column * size + row] = matrix[row * size + column]
                if column > row { matrix[row * size + column] = 0 }
            }
        }
        return succeeds
    }

    /// Returns the inverse of a lower triangular matrix.
    private static func inverse(_ lower: [Double], size: Int) -> [Double] {
        var result = [Double](repeating: 0, count: size * size)
        result.withUnsafeMutableBufferPointer { result in
            for row in 0..<size {
                let diagonal = 1 / lower[row * size + row]
                for k in 0..<row {
                    let factor = lower[row * size + k]
                    for column in 0...k { result[row * size + column] -= factor * result[k * size + column] }
                }
                for column in 0..<row { result[row * size + column] *= diagonal }
                result[row * size + row] = diagonal
            }
        }
        return result
    }
}
