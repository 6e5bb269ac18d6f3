internal import ImprintNetwork

// The export of activations and other element-wise layers to Core ML layers.

extension CoreMLExporter {
    /// Adds the Core ML layers of an activation.
    ///
    /// - Returns: The reason why the export fails; nil on success.
    mutating func addActivation(_ layer: any Layer, _ step: Step) -> String? {
        let input = step.inputs[0]
        switch layer {
        case is ReLU: layers.add(.relu, step.output, input)
        case is ReLU6: addClip(step, minimum: 0, maximum: 6)
        case let layer as ClipLayer: addClip(step, minimum: layer.minimum, maximum: layer.maximum)
        case let layer as LeakyReLU: layers.add(.leakyReLU, step.output, input, [layer.slope])
        case is PReLU: addPReLU(step)
        case let layer as ELU: layers.add(.elu, step.output, input, [layer.alpha])
        case is Sigmoid: layers.add(.sigmoid, step.output, input)
        case let layer as HardSigmoid: layers.add(.hardSigmoid, step.output, input, [layer.slope, layer.offset])
        case is Tanh: layers.add(.tanh, step.output, input)
        case is Softplus: layers.add(.softplus, step.output, input)
        case is Swish: addGated(.sigmoid, step)
        case is HardSwish: addGated(.hardSigmoid, step, [1 / 6, 0.5])
        // Dropout is usually omitted, but some layer must read the image and the last layer must have the output's name.
        case is Dropout: layers.add(.linear, step.output, input, [1, 0])
        default: return "Imprint cannot export it to Core ML"
        }
        return nil
    }

    /// Adds a PReLU with one slope per channel, as Core ML requires.
    private mutating func addPReLU(_ step: Step) {
        let slope = model.vector("slope", of: step.index)
        let channels = step.shape.channels
        var properties = MessageBuilder()
        properties.add(1, layers.weights(slope.count == channels ? slope : slope.repeated(channels)))
        layers.add(.prelu, step.output, step.inputs[0], properties)
    }

    /// Adds y = x · f(x).
    private mutating func addGated(
        _ activation: CoreMLLayerWriter.Activation, _ step: Step, _ parameters: [Float] = []
    ) {
        let gate = layers.unique("\(step.output).gate")
        layers.add(activation, gate, step.inputs[0], parameters)
        layers.add(.multiply, step.output, [step.inputs[0], gate])
    }

    /// Adds y = min(max(x, minimum), maximum) as −max(−max(x, minimum), −maximum), which only needs layers of version 1.
    ///
    /// Infinite limits are omitted.
    private mutating func addClip(_ step: Step, minimum: Float, maximum: Float) {
        func threshold(_ limit: Float, scale: Float) -> MessageBuilder {
            var parameters = MessageBuilder()
            parameters.add(1, 7)
            parameters.add(2, limit)
            parameters.add(5, scale)
            return parameters
        }
        var input = step.inputs[0]
        if minimum.isFinite || !maximum.isFinite {
            let name = maximum.isFinite ? layers.unique("\(step.output).minimum") : step.output
            layers.add(.unary, name, [input], threshold(max(minimum, -.greatestFiniteMagnitude), scale: 1))
            input = name
        }
        guard maximum.isFinite else { return }
        let negative = layers.unique("\(step.output).negative")
        layers.add(.unary, negative, [input], threshold(-maximum, scale: -1))
        layers.add(.linear, step.output, negative, [-1, 0])
    }

    /// Adds a layer of several inputs, or layers of two inputs if the former cannot broadcast these shapes.
    mutating func addJoined(
        _ kind: CoreMLLayerWriter.Kind, _ broadcasting: CoreMLLayerWriter.Kind, _ step: Step
    ) {
        let (whole, pixels) = (step.shape, TensorShape(height: step.shape.height, width: step.shape.width, channels: 1))
        let repeated = [whole, pixels, TensorShape(channels: whole.channels), TensorShape(channels: 1)]
        guard !(step.inputShapes.contains(whole) && step.inputShapes.allSatisfy(repeated.contains)) else {
            return layers.add(kind, step.output, step.inputs)
        }
        var input = step.inputs[0]
        for (index, other) in step.inputs.enumerated().dropFirst() {
            let isLast = index == step.inputs.count - 1
            let name = isLast ? step.output : layers.unique("\(step.output).\(index)")
            layers.add(broadcasting, name, [input, other])
            input = name
        }
    }
}
