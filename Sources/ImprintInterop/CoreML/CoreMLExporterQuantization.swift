internal import ImprintModel
internal import ImprintNetwork

// The export of int8 weights to Core ML, which computes with the floating-point numbers that they stand for.

extension CoreMLExporter {
    /// Adds the weights and the bias of a convolution or dense layer.
    ///
    /// The weights of an int8 layer are integers with a scale per output channel. If the scales of its input channels differ, a scale layer divides
    /// the input by them first.
    /// - Parameter weight: Returns the weights, or their integers.
    /// - Returns: The inputs of the layer.
    mutating func addWeights(
        _ weightField: Int, _ biasField: Int?, _ step: Step, to parameters: inout MessageBuilder,
        _ weight: (ExportedModel, Quantization.Weights?) -> ExportedTensor
    ) -> [String] {
        var inputs = step.inputs
        let node = model.network.nodes[step.index].name
        if !isUpdatable, let weights = model.quantization?.weights[node] {
            var scales = weights.scales
            if weights.isDepthwise || Set(weights.inputScales).count == 1 {
                let inputScales = weights.inputScales
                scales = scales.indices.map { scales[$0] / inputScales[weights.isDepthwise ? $0 : 0] }
            } else {
                inputs = [addDivision(of: step, by: weights.inputScales)]
            }
            parameters.add(weightField, layers.weights(integers: weight(model, weights), scales: scales))
        } else {
            parameters.add(weightField, layers.weights(weight(model, nil), isUpdatable: step.isUpdatable))
        }
        if let biasField {
            let bias = model.vector("bias", of: step.index)
            parameters.add(biasField, layers.weights(bias, isUpdatable: step.isUpdatable))
        }
        return inputs
    }

    /// Adds a scale layer that divides the channels of a layer's input by numbers.
    private mutating func addDivision(of step: Step, by divisors: [Float]) -> String {
        let values = model.ordered(divisors.map { 1 / $0 }, of: model.sources(of: step.index)[0] ?? -1)
        let output = layers.unique("\(step.output).steps")
        var parameters = MessageBuilder()
        parameters.add(1, packed: [values.count])
        parameters.add(2, layers.weights(ExportedTensor(output, shape: [values.count]) { values }))
        layers.add(.scale, output, step.inputs, parameters)
        return output
    }
}

extension CoreMLLayerWriter {
    /// Encodes the message WeightParams of 8-bit integers: value = code · scale − 128 · scale, with codes 1…255.
    mutating func weights(integers: ExportedTensor, scales: [Float]) -> MessageBuilder {
        raiseVersion(to: 3)
        var linear = MessageBuilder()
        linear.add(1, packed: scales)
        linear.add(2, packed: scales.map { -128 * $0 })
        var quantization = MessageBuilder()
        quantization.add(1, 8)
        quantization.add(101, linear)
        var message = MessageBuilder()
        message.add(30, byteCount: integers.count) { body in
            try integers.forEachPart(as: Int8.self) { part in
                try part.map { $0 ^ 0x80 }.withUnsafeBytes(body)
            }
        }
        message.add(40, quantization)
        return message
    }
}
