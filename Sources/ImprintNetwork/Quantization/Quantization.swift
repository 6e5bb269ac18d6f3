/// The quantization parameters of a network, scales and zero points, for predictions with `Precision.int8`.
///
/// An activation is x = scale · (q − zero point) with q in 0…255, and a scale and a zero point per channel. So a depthwise convolution, whose
/// channels have very different ranges, needs no equalization of its weights. The weights of a convolution, times the scales of their input
/// channels, are w = scale · q with q in −127…127 and a scale per output channel.
///
/// Source: Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference", 2018; scales per
/// channel of activations: the idea of cross-layer equalization (Nagel et al., "Data-free quantization through weight equalization and bias
/// correction", 2019).
package struct Quantization: Hashable, Sendable {
    /// The scale and the zero point of each channel of an activation.
    package struct Activation: Hashable, Sendable {
        /// The difference between neighbouring numbers of each channel, above 0.
        package var scales: [Float]
        /// The integer that stands for 0 in each channel.
        package var zeroPoints: [UInt8]

        /// Creates the quantization of an activation; both arrays have an element for each channel.
        package init(scales: [Float], zeroPoints: [UInt8]) {
            precondition(scales.count == zeroPoints.count, "each channel needs a scale and a zero point")
            self.scales = scales
            self.zeroPoints = zeroPoints
        }
    }

    /// The scales of the weights of a convolution or dense layer.
    package struct Weights: Hashable, Sendable {
        /// The scale of each output channel, at least 0.
        package var scales: [Float]
        /// The scale of each input channel's activation, above 0; for a depthwise convolution one for each output channel.
        package var inputScales: [Float]

        /// Whether the convolution is depthwise.
        package var isDepthwise: Bool

        /// Creates the scales of a layer's weights.
        package init(scales: [Float], inputScales: [Float], isDepthwise: Bool = false) {
            self.scales = scales
            self.inputScales = inputScales
            self.isDepthwise = isDepthwise
        }
    }

    /// The activations that layers read as integers, by the name of the node that computes them; `Network.inputName` is the network's input.
    package var activations: [String: Activation]
    /// The scales of the layers that compute in int8, by the name of the convolution or dense layer.
    package var weights: [String: Weights]

    /// Creates a quantization.
    package init(activations: [String: Activation] = [:], weights: [String: Weights] = [:]) {
        self.activations = activations
        self.weights = weights
    }
}

extension Quantization {
    /// Returns the quantization without the head and the layers with these names, whose weights have changed.
    package func removing(_ names: Set<String>, in network: Network) -> Quantization {
        var result = self
        for name in names { result.weights[name] = nil }
        if let head = network.headIndex { result.weights[network.nodes[head].name] = nil }
        return result
    }
}

extension Quantization.Activation {
    /// Returns the quantization of a vector that consists of `pixels` pixels.
    func repeated(_ pixels: Int) -> Self {
        Self(
            scales: (0..<pixels).flatMap { _ in scales }, zeroPoints: (0..<pixels).flatMap { _ in zeroPoints })
    }

    /// Returns the quantization of activations whose channels follow each other.
    static func concatenated(_ parts: [Self]) -> Self {
        Self(scales: parts.flatMap(\.scales), zeroPoints: parts.flatMap(\.zeroPoints))
    }
}

extension Quantization.Weights {
    /// Returns the integers of weights whose last two axes are input and output channels: w · input scale / scale, rounded to nearest with
    /// ties to even, and clamped to −127…127.
    package func integers(_ weights: UnsafeBufferPointer<Float>) -> [Int8] {
        weights.indices.map {
            Int8(integer(weights[$0], inputScale: inputScale(of: $0), output: $0 % scales.count))
        }
    }

    private func integer(_ weight: Float, inputScale: Float, output: Int) -> Float {
        guard scales[output] > 0 else { return 0 }
        let quotient = (weight * inputScale / scales[output]).rounded(.toNearestOrEven)
        // In this order, NaN from an overflow becomes −127, as in the C kernel.
        return quotient > -127 ? (quotient < 127 ? quotient : 127) : -127
    }

    /// Returns the number that the integer of a weight stands for.
    func rounded(_ weight: Float, inputScale: Float, output: Int) -> Float {
        scales[output] * integer(weight, inputScale: inputScale, output: output) / inputScale
    }

    /// Divides weights, integers times `scales`, by the scales of their inputs.
    package func divideByInputScales(_ weights: UnsafeMutableBufferPointer<Float>) {
        for index in weights.indices { weights[index] /= inputScale(of: index) }
    }

    /// Rounds weights to the numbers that their integers stand for.
    func round(_ weights: UnsafeMutableBufferPointer<Float>) {
        for (index, integer) in integers(UnsafeBufferPointer(weights)).enumerated() {
            weights[index] = scales[index % scales.count] * Float(integer)
        }
        divideByInputScales(weights)
    }

    /// Returns the difference between the neighbouring values of each of `count` weights; 0 if all weights of the output channel are 0.
    func steps(_ count: Int) -> [Float] { (0..<count).map { scales[$0 % scales.count] / inputScale(of: $0) } }

    /// The input scale of a weight.
    ///
    /// Depthwise weights have a single input channel per output, so there is a scale for each output.
    private func inputScale(of index: Int) -> Float {
        isDepthwise ? inputScales[index % scales.count] : inputScales[index / scales.count % inputScales.count]
    }
}
