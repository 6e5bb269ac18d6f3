import Foundation

/// Chooses the scales of activations and weights.
///
/// An activation with ranges rᶜ has the scales aᶜ = R·(rᶜ / R)^α / 254, with R the largest range. With α = 0, all channels have the same scale, and
/// channels with a small range have few steps. With α = 1, each channel has 256 steps, but the weights that read it, W·a, have very different
/// sizes, and the small ones have few steps. α minimizes the estimated mean squared error of the layers that read the activation:
///
///     Σᵒ (Σᶜ aᶜ² / 12 · Σᵏ W[k, c, o]² + s̃ᵒ² / 12 · K · Σᶜ E[xᶜ²] / aᶜ²) / Σᵒ Σᶜ E[xᶜ²] · Σᵏ W[k, c, o]²
///
/// with s̃ᵒ = max |W·a| / 127 and K kernel elements: the errors of rounded activations and of rounded weights are uniform and independent. An
/// activation of 0 has no error, so aᶜ² is multiplied by the share of other values.
/// For depthwise convolutions and sums, α = 1 is always best.
struct Equalization {
    private let network: Network
    private let operations: [PlanOperation]
    private let parameters: Parameters

    init(_ network: Network, _ operations: [PlanOperation], _ parameters: Parameters) {
        self.network = network
        self.operations = operations
        self.parameters = parameters
    }

    /// A channel of an activation: the operation that computes it (−1: the network's input), and the index of the channel.
    private struct Channel: Hashable {
        let operation: Int
        let index: Int
    }

    /// A layer that reads activations.
    private struct Reader {
        /// For each input channel, the channel of an activation.
        let channels: [Channel]
        /// Σᵏ W², [input channel, output channel]; empty for the addition of a shortcut.
        var squares: [Float] = []
        /// max |W| over the kernel, in the same order.
        var largest: [Float] = []
        var outputs = 1
        var kernelElements = 1
        var isDepthwise = false
        var name = ""
    }

    /// The names of the activations that layers can read as integers.
    var activationNames: Set<String> {
        var sources = Set<Int>()
        for operation in operations where isPossible(operation) {
            for source in operation.sources { sources.formUnion(channels(of: source).map(\.operation)) }
        }
        return Set(sources.map { name(of: $0) })
    }

    /// Chooses the scales from the statistics of the activations in `activationNames`.
    func quantization(_ statistics: [String: ActivationStatistics]) -> Quantization {
        let readers = readers()
        var scales: [Int: [Float]] = [:]
        var quantization = Quantization()
        for source in Set(readers.flatMap { $0.channels.map(\.operation) }) {
            let name = self.name(of: source)
            guard let statistics = statistics[name] else { preconditionFailure("\(name) was not observed") }
            let ranges = (0..<statistics.channels).map { statistics.bestRange($0) }
            let chosen = self.scales(
                of: source, ranges, statistics, readers.filter { $0.channels.contains { $0.operation == source } })
            scales[source] = chosen
            quantization.activations[name] = Quantization.Activation(
                scales: chosen,
                zeroPoints: zip(ranges, chosen).map { range, scale in
                    UInt8(min(max((-range.lowerBound / scale).rounded(.toNearestOrEven), 0), 255))
                })
        }
        for reader in readers where !reader.squares.isEmpty {
            let inputs = reader.channels.map { scales[$0.operation]?[$0.index] ?? 1 }
            quantization.weights[reader.name] = Quantization.Weights(
                scales: weightScales(reader, inputs), inputScales: inputs, isDepthwise: reader.isDepthwise)
        }
        return quantization
    }

    private func weightScales(_ reader: Reader, _ inputs: [Float]) -> [Float] {
        if reader.isDepthwise { return zip(reader.largest, inputs).map { $0 * $1 / 127 } }
        var result = [Float](repeating: 0, count: reader.outputs)
        for (input, scale) in inputs.enumerated() {
            for output in 0..<reader.outputs {
                result[output] = max(result[output], reader.largest[input * reader.outputs + output] * scale / 127)
            }
        }
        return result
    }

    // MARK: Scales of an activation

    /// The smallest range of a channel relative to the largest one.
    ///
    /// Other images can activate channels that no calibration image activates.
    private static let smallestRange: Float = 0.1

    private func scales(
        of source: Int, _ ranges: [ClosedRange<Float>], _ statistics: ActivationStatistics, _ readers: [Reader]
    ) -> [Float] {
        let widths = ranges.map { $0.upperBound - $0.lowerBound }
        let largest = max(widths.max() ?? 0, .leastNormalMagnitude * 1e6)
        let relative = widths.map { max($0 / largest, Self.smallestRange) }
        let meanSquares = (0..<widths.count).map { Float(statistics.meanSquare($0)) }
        let shares = (0..<widths.count).map { Float(statistics.nonzeroShare($0)) }
        var best = (error: Float.infinity, scales: [Float]())
        for exponent in stride(from: Float(0), through: 1, by: 0.125) {
            // Rounding the zero point must not move the range.
            let scales = relative.map { largest * pow($0, exponent) / 254 }
            let error = readers.reduce(0) { $0 + self.error(of: $1, source, scales, meanSquares, shares) }
            if error < best.error { best = (error, scales) }
        }
        return best.scales.isEmpty ? relative.map { _ in largest / 254 } : best.scales
    }

    /// The estimated error of a reader relative to its output, for scales of the activation `source`.
    private func error(
        of reader: Reader, _ source: Int, _ scales: [Float], _ meanSquares: [Float], _ shares: [Float]
    ) -> Float {
        var (noise, signal) = (Float(0), Float.leastNormalMagnitude)
        let inputs = reader.channels.enumerated().filter { $0.element.operation == source }
            .map { (input: $0.offset, channel: $0.element.index) }
        guard !reader.squares.isEmpty else {
            for (_, channel) in inputs {
                noise += scales[channel] * scales[channel] / 12 * shares[channel]
                signal += meanSquares[channel]
            }
            return noise / signal
        }
        let outputs = reader.isDepthwise ? 1 : reader.outputs
        var weightScales = [Float](repeating: 0, count: outputs)
        var ratios: Float = 0
        for (input, channel) in inputs {
            let (scale, square) = (scales[channel], meanSquares[channel])
            ratios += square / (scale * scale)
            for output in 0..<outputs {
                let index = input * outputs + output
                noise += scale * scale / 12 * shares[channel] * reader.squares[index]
                signal += square * reader.squares[index]
                let weightScale = reader.largest[index] * scale / 127
                if reader.isDepthwise {
                    noise += weightScale * weightScale / 12 * Float(reader.kernelElements) * square / (scale * scale)
                } else {
                    weightScales[output] = max(weightScales[output], weightScale)
                }
            }
        }
        for weightScale in weightScales {
            noise += weightScale * weightScale / 12 * Float(reader.kernelElements) * ratios
        }
        return noise / signal
    }

    // MARK: Readers

    private func name(of operation: Int) -> String {
        operation < 0
            ? Network.inputName
            : network.nodes[operations[operation].nodeIndices[operations[operation].nodeIndices.count - 1]].name
    }

    /// Whether an operation is a convolution or dense layer that int8 kernels can compute.
    private func isPossible(_ operation: PlanOperation) -> Bool {
        switch operation.kernel {
        case let kernel as PrepackedConvolution:
            QuantizedConvolution.isPossible(kernel, over: operation.inputs[0])
        case let dense as Dense:
            QuantizedConvolution.isPossible(PrepackedConvolution(dense), over: operation.inputs[0])
        default: false
        }
    }

    private func readers() -> [Reader] {
        operations.flatMap { operation -> [Reader] in
            guard isPossible(operation), let weight = operation.entries.first else { return [] }
            let channels = operation.sources.map { self.channels(of: $0) }
            let name = network.nodes[operation.nodeIndices[0]].name
            var reader = Reader(channels: channels[0], name: name)
            reader.outputs = operation.output.channels
            let convolution = (operation.kernel as? PrepackedConvolution)?.convolution
            reader.isDepthwise = (convolution?.groups ?? 1) > 1
            let columns = reader.isDepthwise ? reader.outputs : channels[0].count * reader.outputs
            reader.kernelElements = weight.parameter.count / columns
            reader.squares = [Float](repeating: 0, count: columns)
            reader.largest = reader.squares
            parameters.withValues(of: weight) { values in
                for (index, value) in values.enumerated() {
                    reader.squares[index % columns] += value * value
                    reader.largest[index % columns] = max(reader.largest[index % columns], abs(value))
                }
            }
            return [reader] + channels.dropFirst().map { Reader(channels: $0) }
        }
    }

    /// The channels of an operation's output, whose values may come from earlier operations unchanged.
    private func channels(of source: Int) -> [Channel] {
        guard source >= 0 else { return (0..<network.input.channels).map { Channel(operation: -1, index: $0) } }
        let operation = operations[source]
        guard QuantizedOperations.moves(operation, in: network) else {
            return (0..<operation.output.channels).map { Channel(operation: source, index: $0) }
        }
        let inputs = operation.sources.flatMap { channels(of: $0) }
        return network.nodes[operation.nodeIndices[0]].layer is Flatten
            ? (0..<operation.inputs[0].pixels).flatMap { _ in inputs } : inputs
    }
}
