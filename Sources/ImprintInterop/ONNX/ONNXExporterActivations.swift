internal import ImprintModel
internal import ImprintNetwork

// The export of activations and other element-wise layers to ONNX operators.

extension ONNXExporter {
    /// Adds the ONNX operators of an activation.
    ///
    /// - Returns: Whether the output is flat; nil if Imprint cannot export this layer.
    mutating func addActivation(_ layer: any Layer, _ step: Step) -> Bool? {
        switch layer {
        case is ReLU: unary("Relu", step)
        case is ReLU6: clipped(step, 0, 6)
        case let layer as ClipLayer: clipped(step, layer.minimum, layer.maximum)
        case let layer as LeakyReLU: unary("LeakyRelu", step, ["alpha": .float(layer.slope)])
        case is PReLU: addPReLU(step)
        case let layer as ELU: unary("Elu", step, ["alpha": .float(layer.alpha)])
        case is Sigmoid: unary("Sigmoid", step)
        case let layer as HardSigmoid:
            unary("HardSigmoid", step, ["alpha": .float(layer.slope), "beta": .float(layer.offset)])
        case is Tanh: unary("Tanh", step)
        case is Softplus: unary("Softplus", step)
        case let layer as GELU where !layer.approximatesTanh: addGELU(step)
        case is Erf: unary("Erf", step)
        case is Swish: gated("Sigmoid", step)
        case is HardSwish: gated("HardSigmoid", step, ["alpha": .float(1 / 6), "beta": .float(0.5)])
        default: nil
        }
    }

    private mutating func addPReLU(_ step: Step) -> Bool {
        let (input, slope) = (step.inputs[0], model.vector("slope", of: step.index))
        let shaped = input.isFlat ? slope : slope.reshaped([slope.count, 1, 1])
        graph.add("PRelu", [input.name, graph.add(shaped)], to: step.output)
        return input.isFlat
    }

    /// Adds y = x / 2 · (1 + erf(x / √2)), because the operator Gelu requires opset 20.
    private mutating func addGELU(_ step: Step) -> Bool {
        let (input, output) = (step.inputs[0], step.output)
        func number(_ name: String, _ value: Float) -> String {
            graph.add("\(output).\(name)", [value], shape: [])
        }
        let (root, one, half) = (number("root", Float(0.5).squareRoot()), number("one", 1), number("half", 0.5))
        let names = ["argument", "erf", "gate", "halved"].map { graph.unique("\(output).\($0)") }
        graph.add("Mul", [input.name, root], to: names[0])
        graph.add("Erf", [names[0]], to: names[1])
        graph.add("Add", [names[1], one], to: names[2])
        graph.add("Mul", [input.name, half], to: names[3])
        graph.add("Mul", [names[3], names[2]], to: output)
        return input.isFlat
    }

    /// Adds y = f(x).
    mutating func unary(
        _ type: String, _ step: Step, _ attributes: KeyValuePairs<String, ONNXAttribute> = [:]
    ) -> Bool {
        graph.add(type, [step.inputs[0].name], to: step.output, attributes)
        return step.inputs[0].isFlat
    }

    /// Adds y = f(x) of an image.
    mutating func image(_ type: String, _ step: Step) -> Bool {
        graph.add(type, [image(step.inputs[0]).name], to: step.output)
        return false
    }

    /// Adds y = x · f(x).
    private mutating func gated(
        _ type: String, _ step: Step, _ attributes: KeyValuePairs<String, ONNXAttribute> = [:]
    ) -> Bool {
        let gate = graph.unique("\(step.output).gate")
        graph.add(type, [step.inputs[0].name], to: gate, attributes)
        graph.add("Mul", [step.inputs[0].name, gate], to: step.output)
        return step.inputs[0].isFlat
    }

    /// Adds y = min(max(x, minimum), maximum) without infinite limits.
    private mutating func clipped(_ step: Step, _ minimum: Float, _ maximum: Float) -> Bool {
        var inputs = [step.inputs[0].name]
        inputs.append(minimum.isFinite ? graph.add("\(step.output).minimum", [minimum], shape: []) : "")
        if maximum.isFinite { inputs.append(graph.add("\(step.output).maximum", [maximum], shape: [])) }
        graph.add("Clip", inputs, to: step.output)
        return step.inputs[0].isFlat
    }

    /// Adds an operator over any number of inputs.
    mutating func joined(_ type: String, _ step: Step) -> Bool {
        let (names, isFlat) = alike(step.inputs)
        graph.add(names.count == 2 && type == "Sum" ? "Add" : type, names, to: step.output)
        return isFlat
    }

    /// Adds the product of the inputs, two at a time.
    mutating func addProduct(_ step: Step) -> Bool {
        let (names, isFlat) = alike(step.inputs)
        var product = names[0]
        for (index, name) in names.enumerated().dropFirst() {
            let result = index == names.count - 1 ? step.output : graph.unique("\(step.output).\(index)")
            graph.add("Mul", [product, name], to: result)
            product = result
        }
        return isFlat
    }

    /// Returns the names of the tensors after converting them to one form, all flat or all images.
    mutating func alike(_ values: [Value]) -> (names: [String], areFlat: Bool) {
        if values.allSatisfy(\.isFlat) { return (values.map(\.name), true) }
        return (values.map { image($0).name }, false)
    }
}
