internal import CImprintKernels
internal import ImprintCore

/// Rounds an activation to the 256 values of its quantization, as predictions in int8 do.
///
/// y = scale · (min(max(round(x / scale + zero point), 0), 255) − zero point) for each channel.
///
/// Input and output: [batch, height, width, channels].
///
/// Backward, with the straight-through estimator: dx = dy if x is in the range of the 256 values, otherwise 0.
///
/// Only networks for fine-tuning contain this layer (`Network.roundingActivations(of:)`). It is not registered, so that no model file can
/// contain it.
///
/// Source: Bengio et al., "Estimating or propagating gradients through stochastic neurons for conditional computation", 2013; Jacob et al.,
/// "Quantization and training of neural networks for efficient integer-arithmetic-only inference", 2018.
struct RoundedActivation: Layer {
    static let kind = "roundedActivation"
    private let scales: [Float]
    private let inverseScales: [Float]
    private let zeroPoints: [Float]

    init(_ activation: Quantization.Activation) {
        let values = ActivationValues(activation)
        (scales, inverseScales, zeroPoints) = (values.scales, values.inverseScales, values.zeroPoints)
    }

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let shape = try onlyInput("RoundedActivation", inputs)
        try check(
            "RoundedActivation", "scales", scales.count, scales.count == shape.channels, "\(shape.channels) channels")
        return shape
    }

    var backwardReads: BackwardReads { [] }
    var inPlace: InPlace { .overwriting }

    /// A byte per value: whether it is in the range.
    func memory(_ request: MemoryRequest) -> LayerMemory { LayerMemory(saved: request.batch * request.output.count) }

    func forward(_ context: LayerContext, batch: Int) {
        let shape = context.input.shape
        let inside = context.saved.assumingMemoryBound(to: UInt8.self)
        forEachRows(batch * shape.pixels, shape.channels, context.worker) { pixels in
            let start = pixels.lowerBound * shape.channels
            imprint_round_activation(
                context.input.values + start, inverseScales, scales, zeroPoints, pixels.count, shape.channels,
                context.output.values + start, inside + start)
        }
    }

    func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let inside = context.saved.assumingMemoryBound(to: UInt8.self)
        context.parallelFor(batch * context.output.shape.count) { values in
            let start = values.lowerBound
            imprint_masked_scale(context.outputGradient + start, inside + start, 1, dx + start, values.count)
        }
    }
}

extension Network {
    /// Returns the network with a `RoundedActivation` after each output that operations of a quantized plan read as 8-bit integers.
    ///
    /// Its outputs are those of predictions in int8, except for rounding errors of float32, if the weights are rounded. The parameters are
    /// the same.
    func roundingActivations(of outputs: [QuantizedOperations.RoundedOutput]) throws(NetworkError) -> Network {
        var replacements: [[String: String]] = nodes.map { _ in [:] }
        var added: [Int: [Node]] = [:]
        for output in outputs {
            let source = output.node.map { nodes[$0].name } ?? Network.inputName
            let name = nodes.unusedName("\(source).rounded")
            added[output.node ?? -1, default: []].append(
                Node(name: name, layer: RoundedActivation(output.activation), inputs: [source]))
            for reader in output.readers ?? Array(nodes.indices) { replacements[reader][source] = name }
        }
        let rounding = nodes.enumerated().flatMap { index, node in
            let inputs = node.inputs.map { replacements[index][$0] ?? $0 }
            return [Node(name: node.name, layer: node.layer, inputs: inputs)] + (added[index] ?? [])
        }
        return try Network(name: name, input: input, nodes: (added[-1] ?? []) + rounding)
    }
}
