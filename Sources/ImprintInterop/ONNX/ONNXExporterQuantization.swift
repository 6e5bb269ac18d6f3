internal import ImprintModel
internal import ImprintNetwork

/// The quantization of a model to export to ONNX in the QDQ format, and the tensors that the graph already contains.
///
/// `QuantizeLinear` turns an activation x into integers q = x / scale + zero point, and `DequantizeLinear` turns them back into numbers. The weights
/// are integers with a scale per output channel. There are two forms:
///
/// - The channels of each activation have the same scale and zero point, which are scalars. Runtimes replace this form with integer arithmetic.
/// - The scales differ: weights are integers only after their multiplication by the scales of the input channels. So `DequantizeLinear` returns
///   x / scale, and the weights are multiplied by the scales. A separate `Div` divides x by the scales, because ONNX Runtime 1.32 fuses a
///   convolution with a `QuantizeLinear` after it, and then rejects scales along an axis.
struct ONNXQuantization {
    /// The scales of activations and weights.
    let scales: Quantization
    /// The activations that are integers.
    let activations: IntegerActivations
    /// Whether the channels of each activation have the same scale and zero point.
    let isUniform: Bool
    /// The output of `QuantizeLinear` by its input.
    fileprivate var quantized: [String: String] = [:]
    /// The output of `DequantizeLinear` by its input, with the scale of the activation and with the scale 1.
    fileprivate var dequantized: [String: String] = [:]
    fileprivate var steps: [String: String] = [:]
    /// The dequantized weights and the biases of layers, by the index of the node.
    fileprivate var weights: [Int: String] = [:]
    fileprivate var biases: [Int: String] = [:]
    /// The scale and the zero point of activations, by the index of the node that computes them.
    fileprivate var constants: [Int: [String]] = [:]
    fileprivate var units: [Int: [String]] = [:]

    init(_ quantization: Quantization, of network: Network) {
        scales = quantization
        activations = IntegerActivations(quantization, of: network)
        isUniform = activations.quantizations.values.allSatisfy { $0.uniform != nil }
    }
}

extension ONNXExporter {
    /// Returns an activation as a node reads it: rounded to integers, if the model stores them.
    ///
    /// An int8 layer receives the activation itself, because `operands` quantizes it.
    /// - Parameter source: The node that computes the activation; −1 is the input.
    mutating func roundedToIntegers(_ value: Value, of source: Int, for reader: Int) -> Value {
        guard let quantization, quantization.activations.isInteger(source, for: reader),
            quantization.activations.inputs[reader] == nil,
            let activation = quantization.activations.quantizations[source]
        else { return value }
        // The outputs of these are already rounded.
        let layer = source < 0 ? nil : model.network.nodes[source].layer
        guard !(layer is Flatten || layer is Dropout || layer is Concat) else { return value }
        return Value(
            name: dequantized(value, activation, of: source, inSteps: false), shape: value.shape, isFlat: value.isFlat)
    }

    /// Returns the inputs of a convolution or dense layer: its activation, its weights and its bias.
    /// - Parameter weight: Returns the weights, or their integers.
    mutating func operands(
        _ value: Value, at index: Int, hasBias: Bool,
        _ weight: (ExportedModel, Quantization.Weights?) -> ExportedTensor
    ) -> [String] {
        let name = model.network.nodes[index].name
        guard let activation = quantization?.activations.inputs[index], let weights = quantization?.scales.weights[name]
        else {
            return [value.name, graph.add(weight(model, nil))]
                + (hasBias ? [graph.add(model.vector("bias", of: index))] : [])
        }
        let source = model.sources(of: index)[0] ?? -1
        let input = quantization?.isUniform == true ? activation.uniform?.scale : nil
        let plain = input.map { input in weights.scales.compactMap { quotient($0, input) } } ?? []
        let isPlain = plain.count == weights.scales.count
        let x = dequantized(value, activation, of: source, inSteps: !isPlain)
        let scales = isPlain ? plain : weights.scales
        if quantization?.weights[index] == nil {
            let integers = weight(
                model,
                Quantization.Weights(
                    scales: weights.scales, inputScales: activation.scales, isDepthwise: weights.isDepthwise))
            let (dequantized, bias) = (
                addWeights(integers, scales), hasBias ? addBias(at: index, input: isPlain ? input : nil, scales) : nil
            )
            quantization?.weights[index] = dequantized
            quantization?.biases[index] = bias
        }
        return [x] + [quantization?.weights[index], quantization?.biases[index]].compactMap { $0 }
    }

    private mutating func addWeights(_ integers: ExportedTensor, _ scales: [Float]) -> String {
        let zeros = ExportedTensor("\(integers.name).zeroPoint", shape: [scales.count]) {
            [Float](repeating: 0, count: scales.count)
        }
        let inputs = [
            graph.add(integers, as: Int8.self), graph.add("\(integers.name).scale", scales),
            graph.add(zeros, as: Int8.self),
        ]
        return graph.node("DequantizeLinear", inputs, ["axis": .int(0)], named: "\(integers.name).dequantized")
    }

    /// Adds the bias of a layer: as 32-bit integers if these stand for exactly the same numbers.
    /// - Parameter input: The scale of the layer's input if it is the same for all channels.
    private mutating func addBias(at index: Int, input: Float?, _ scales: [Float]) -> String {
        let tensor = model.vector("bias", of: index)
        let bias = model.file.parameters[tensor.name] ?? []
        let units = scales.map { $0 * (input ?? 0) }
        let integers = zip(bias, units).map { $1 > 0 ? ($0 / $1).rounded() : 0 }
        guard input != nil,
            bias.indices.allSatisfy({ integers[$0].magnitude < 0x1p31 && integers[$0] * units[$0] == bias[$0] })
        else { return graph.add(tensor) }
        let inputs = [
            graph.add(ExportedTensor(tensor.name, shape: [bias.count]) { integers }, as: Int32.self),
            graph.add("\(tensor.name).scale", units),
        ]
        return graph.node("DequantizeLinear", inputs, ["axis": .int(0)], named: "\(tensor.name).dequantized")
    }

    /// Adds `QuantizeLinear` and `DequantizeLinear` of an activation, unless the graph already contains them.
    /// - Parameter inSteps: Whether the result is x / scale instead of x.
    private mutating func dequantized(
        _ value: Value, _ activation: Quantization.Activation, of source: Int, inSteps: Bool
    ) -> String {
        let known = inSteps ? quantization?.steps[value.name] : quantization?.dequantized[value.name]
        if let known { return known }
        let quantized = quantization?.quantized[value.name] ?? addQuantized(value, activation, of: source)
        quantization?.quantized[value.name] = quantized
        let result = graph.node(
            "DequantizeLinear", [quantized] + addConstants(activation, of: source, inSteps: inSteps), ["axis": .int(1)],
            named: inSteps ? "\(value.name).steps" : "\(value.name).dequantized")
        if inSteps { quantization?.steps[value.name] = result } else { quantization?.dequantized[value.name] = result }
        return result
    }

    /// Adds `QuantizeLinear`, after a division by the scales if they differ.
    private mutating func addQuantized(
        _ value: Value, _ activation: Quantization.Activation, of source: Int
    ) -> String {
        let isUniform = quantization?.isUniform ?? true
        let constants = addConstants(activation, of: source, inSteps: !isUniform)
        guard !isUniform else {
            return graph.node(
                "QuantizeLinear", [value.name] + constants, ["axis": .int(1)], named: "\(value.name).quantized")
        }
        let scales = model.ordered(activation.scales, of: source)
        let divisors = graph.add(
            "\(name(of: source)).quantization.divisor", scales, shape: value.isFlat ? nil : [scales.count, 1, 1])
        let divided = graph.node("Div", [value.name, divisors], named: "\(value.name).divided")
        return graph.node("QuantizeLinear", [divided] + constants, ["axis": .int(1)], named: "\(value.name).quantized")
    }

    private func name(of source: Int) -> String {
        source < 0 ? Network.inputName : model.network.nodes[source].name
    }

    /// Returns the names of the scale and the zero point of an activation, unless the graph already contains them.
    /// - Parameter inSteps: Whether the scale is 1.
    private mutating func addConstants(
        _ activation: Quantization.Activation, of source: Int, inSteps: Bool
    ) -> [String] {
        if let known = inSteps ? quantization?.units[source] : quantization?.constants[source] { return known }
        let scales = inSteps ? activation.scales.map { _ in 1 } : model.ordered(activation.scales, of: source)
        let zeroPoints = model.ordered(activation.zeroPoints.map(Float.init), of: source)
        let isScalar = scales.allSatisfy { $0 == scales[0] } && zeroPoints.allSatisfy { $0 == zeroPoints[0] }
        let (count, shape) = isScalar ? (1, []) : (scales.count, [scales.count])
        let name = "\(name(of: source)).quantization.\(inSteps ? "unit" : "scale")"
        let zeros = ExportedTensor("\(name).zeroPoint", shape: shape) { Array(zeroPoints.prefix(count)) }
        let result = [
            graph.add(name, Array(scales.prefix(count)), shape: shape), graph.add(zeros, as: UInt8.self),
        ]
        if inSteps { quantization?.units[source] = result } else { quantization?.constants[source] = result }
        return result
    }
}

/// Returns x with x · `divisor` = `product` in float32 arithmetic, or nil if no such x exists.
private func quotient(_ product: Float, _ divisor: Float) -> Float? {
    let quotient = product / divisor
    return [quotient, quotient.nextDown, quotient.nextUp].first { $0 * divisor == product }
}
