internal import ImprintNetwork

// Activations and what else goes number by number as Core ML layers.

extension CoreMLExporter {
    /// Adds what an activation is in Core ML.
    /// - Returns: What stands in the way; nil if nothing does.
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
        // In prediction it does nothing; elsewhere it is left out, but the image must be read by some layer and the result have its name.
        case is Dropout: layers.add(.linear, step.output, input, [1, 0])
        default: return "there is no way into Core ML for it"
        }
        return nil
    }

    /// Core ML has a slope for each channel.
    private mutating func addPReLU(_ step: Step) {
        let slope = model.vector("slope", of: step.place)
        let channels = step.shape.channels
        var properties = WrittenMessage()
        properties.add(1, layers.weights(slope.count == channels ? slope : slope.repeated(channels)))
        layers.add(.prelu, step.output, step.inputs[0], properties)
    }

    /// y = x · f(x).
    private mutating func addGated(_ activation: CoreMLLayerWriter.Activation, _ step: Step, _ numbers: [Float] = []) {
        let gate = layers.unique("\(step.output).gate")
        layers.add(activation, gate, step.inputs[0], numbers)
        layers.add(.multiply, step.output, [step.inputs[0], gate])
    }

    /// y = min(max(x, minimum), maximum) = −max(−max(x, minimum), −maximum), for which version 1 has layers; a limit that is infinite
    /// is left out.
    private mutating func addClip(_ step: Step, minimum: Float, maximum: Float) {
        func threshold(_ limit: Float, scale: Float) -> WrittenMessage {
            var parameters = WrittenMessage()
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

    /// A layer over several inputs, or if it does not repeat numbers over these shapes, one for two inputs that does.
    mutating func addJoined(
        _ kind: CoreMLLayerWriter.Kind, _ broadcasting: CoreMLLayerWriter.Kind, _ step: Step
    ) {
        let (whole, pixels) = (step.shape, TensorShape(height: step.shape.height, width: step.shape.width, channels: 1))
        let repeated = [whole, pixels, TensorShape(channels: whole.channels), TensorShape(channels: 1)]
        guard !(step.inputShapes.contains(whole) && step.inputShapes.allSatisfy(repeated.contains)) else {
            return layers.add(kind, step.output, step.inputs)
        }
        var input = step.inputs[0]
        for (place, other) in step.inputs.enumerated().dropFirst() {
            let isLast = place == step.inputs.count - 1
            let name = isLast ? step.output : layers.unique("\(step.output).\(place)")
            layers.add(broadcasting, name, [input, other])
            input = name
        }
    }
}
