internal import ImprintModel
internal import ImprintNetwork

// The export of each layer type to Core ML layers. Source: NeuralNetwork.proto of coremltools.

extension CoreMLExporter {
    /// Adds the Core ML layers of a layer.
    ///
    /// - Returns: The reason why the export fails; nil on success.
    mutating func add(_ layer: any Layer, _ step: Step) -> String? {
        switch layer {
        case let layer as Convolution: addConvolution(layer, step)
        case let layer as Dense: addDense(layer, step)
        case let layer as BatchNormalization: addBatchNormalization(layer, step)
        case let layer as MaxPool:
            addPool(
                type: 0, layer.kernelSize, layer.stride, layer.padding, countsPadding: false, step)
        case let layer as AveragePool:
            addPool(
                type: 1, layer.kernelSize, layer.stride, layer.padding, countsPadding: layer.countsPadding, step)
        case let layer as Affine: addAffine(layer, step)
        case let layer as LocalResponseNormalization: return addResponseNormalization(layer, step)
        case is GlobalAveragePool: addGlobalPool(type: 1, step)
        case is GlobalMaxPool: addGlobalPool(type: 0, step)
        case let layer as MeanLayer: addMean(layer, step)
        case let layer as PadLayer: addPad(layer, step)
        case let layer as UpsampleNearest: addUpsample(layer, step)
        case let layer as SelectChannels: return addSelection(layer, step)
        case is Flatten: addFlatten(step)
        case is AddLayer: addJoined(.add, .addBroadcastable, step)
        case is MultiplyLayer: addJoined(.multiply, .multiplyBroadcastable, step)
        case is MaximumLayer: layers.add(.maximum, step.output, step.inputs)
        case is Concat: layers.add(.concat, step.output, step.inputs)
        case is Softmax: layers.add(.softmax, step.output, step.inputs)
        default: return addActivation(layer, step)
        }
        return nil
    }

    // MARK: Convolutions and dense layers

    private mutating func addConvolution(_ layer: Convolution, _ step: Step) {
        let window = ExportedWindow(
            kernel: layer.kernelSize, stride: layer.stride, dilation: layer.dilation, padding: layer.padding,
            over: step.inputShapes[0], to: step.shape)
        var parameters = MessageBuilder()
        parameters.add(1, layer.outputChannels)
        parameters.add(2, step.inputShapes[0].channels / layer.groups)
        parameters.add(10, layer.groups)
        parameters.add(20, packed: layer.kernelSize.list)
        parameters.add(30, packed: layer.stride.list)
        parameters.add(40, packed: layer.dilation.list)
        parameters.add(50, Self.validPadding(window.effectivePadding))
        if layer.hasBias { parameters.add(70, true) }
        let inputs = addWeights(90, layer.hasBias ? 91 : nil, step, to: &parameters) { model, weights in
            model.kernel(layer.kernelSize, at: step.index, integersOf: weights)
        }
        layers.add(.convolution, step.output, inputs, parameters, isUpdatable: step.isUpdatable)
    }

    private mutating func addDense(_ layer: Dense, _ step: Step) {
        var parameters = MessageBuilder()
        parameters.add(1, step.inputShapes[0].channels)
        parameters.add(2, layer.outputChannels)
        if layer.hasBias { parameters.add(10, true) }
        let inputs = addWeights(20, layer.hasBias ? 21 : nil, step, to: &parameters) { model, weights in
            model.matrix(at: step.index, integersOf: weights)
        }
        layers.add(.innerProduct, step.output, inputs, parameters, isUpdatable: step.isUpdatable)
    }

    // MARK: Normalization

    private mutating func addBatchNormalization(_ layer: BatchNormalization, _ step: Step) {
        var parameters = MessageBuilder()
        parameters.add(1, step.shape.channels)
        parameters.add(10, layer.epsilon)
        for (field, name) in [(15, "scale"), (16, "shift"), (17, "runningMean"), (18, "runningVariance")] {
            parameters.add(field, layers.weights(model.vector(name, of: step.index)))
        }
        layers.add(.batchNormalization, step.output, step.inputs, parameters)
    }

    private mutating func addAffine(_ layer: Affine, _ step: Step) {
        func tensor(_ name: String) -> ExportedTensor {
            layer.extent == .channels ? model.vector(name, of: step.index) : model.image(name, of: step.index)
        }
        var parameters = MessageBuilder()
        if !layer.hasScale {
            let shift = tensor("shift")
            parameters.add(1, packed: shift.shape)
            parameters.add(2, layers.weights(shift))
            return layers.add(.bias, step.output, step.inputs, parameters)
        }
        let scale = tensor("scale")
        parameters.add(1, packed: scale.shape)
        parameters.add(2, layers.weights(scale))
        if layer.hasShift {
            let shift = tensor("shift")
            parameters.add(3, true)
            parameters.add(4, packed: shift.shape)
            parameters.add(5, layers.weights(shift))
        }
        layers.add(.scale, step.output, step.inputs, parameters)
    }

    private mutating func addResponseNormalization(_ layer: LocalResponseNormalization, _ step: Step) -> String? {
        guard !layer.size.isMultiple(of: 2) else {
            return "Core ML requires an odd number of channels for the normalization window, not \(layer.size)"
        }
        var parameters = MessageBuilder()
        parameters.add(1, layer.alpha)
        parameters.add(2, layer.beta)
        parameters.add(3, layer.size)
        parameters.add(4, layer.bias)
        layers.add(.localResponseNormalization, step.output, step.inputs, parameters)
        return nil
    }

    // MARK: Pooling

    private mutating func addPool(
        type: Int, _ kernel: Size2D, _ stride: Size2D, _ padding: Padding, countsPadding: Bool, _ step: Step
    ) {
        let window = ExportedWindow(
            kernel: kernel, stride: stride, padding: padding, over: step.inputShapes[0], to: step.shape)
        var (input, pads, countsPadding) = (step.inputs[0], window.effectivePadding, countsPadding)
        if countsPadding && !window.extraPadding.isEmpty {
            // Only the declared padding counts in the mean. Add it as zeros, and let the layer pad the rest without counting
            // it.
            let padded = layers.unique("\(step.output).padded")
            addPadding(padded, input, window.declaredPadding, mode: 1, value: 0)
            (input, pads, countsPadding) = (padded, window.extraPadding, false)
        }
        var parameters = MessageBuilder()
        parameters.add(1, type)
        parameters.add(10, packed: kernel.list)
        parameters.add(20, packed: stride.list)
        parameters.add(30, Self.validPadding(pads))
        if !countsPadding { parameters.add(50, true) }
        layers.add(.pooling, step.output, [input], parameters)
    }

    private mutating func addGlobalPool(type: Int, _ step: Step) {
        var parameters = MessageBuilder()
        parameters.add(1, type)
        parameters.add(30, Self.validPadding(ExportedWindow.Sides()))
        parameters.add(60, true)
        layers.add(.pooling, step.output, step.inputs, parameters)
    }

    /// Adds padding: constant (mode 1), reflected (2) or replicated (3).
    private mutating func addPadding(
        _ name: String, _ input: String, _ sides: ExportedWindow.Sides, mode: Int, value: Float
    ) {
        var kind = MessageBuilder()
        if mode == 1 { kind.add(1, value) }
        var parameters = MessageBuilder()
        parameters.add(mode, kind)
        parameters.add(10, Self.amounts(sides))
        layers.add(.padding, name, [input], parameters)
    }

    /// Encodes the message ValidPadding.
    private static func validPadding(_ sides: ExportedWindow.Sides) -> MessageBuilder {
        var message = MessageBuilder()
        message.add(1, amounts(sides))
        return message
    }

    /// Encodes the message BorderAmounts.
    private static func amounts(_ sides: ExportedWindow.Sides) -> MessageBuilder {
        var message = MessageBuilder()
        for (start, end) in [(sides.top, sides.bottom), (sides.left, sides.right)] {
            var edges = MessageBuilder()
            edges.add(1, start)
            edges.add(2, end)
            message.add(10, edges)
        }
        return message
    }

    // MARK: Shapes

    private mutating func addMean(_ layer: MeanLayer, _ step: Step) {
        // The layer reduces all axes, both spatial axes, or one axis.
        let steps: [Int]
        switch layer.axes {
        case [.height, .width, .channels]: steps = [0]
        case [.height, .width]: steps = [1]
        default:
            steps = [(MeanAxes.channels, 2), (.height, 3), (.width, 4)].filter { layer.axes.contains($0.0) }.map(\.1)
        }
        var input = step.inputs[0]
        for (index, axis) in steps.enumerated() {
            let name = index == steps.count - 1 ? step.output : layers.unique("\(step.output).\(index)")
            var parameters = MessageBuilder()
            parameters.add(1, 1)
            parameters.add(3, axis)
            layers.add(.reduce, name, [input], parameters)
            input = name
        }
    }

    private mutating func addPad(_ layer: PadLayer, _ step: Step) {
        let sides = ExportedWindow.Sides(
            top: layer.top, left: layer.left, bottom: layer.bottom, right: layer.right)
        switch layer.mode {
        case .constant(let value): addPadding(step.output, step.inputs[0], sides, mode: 1, value: value)
        case .reflect: addPadding(step.output, step.inputs[0], sides, mode: 2, value: 0)
        case .edge: addPadding(step.output, step.inputs[0], sides, mode: 3, value: 0)
        }
    }

    private mutating func addUpsample(_ layer: UpsampleNearest, _ step: Step) {
        var parameters = MessageBuilder()
        parameters.add(1, packed: layer.factor.list)
        parameters.add(5, 0)
        layers.add(.upsample, step.output, step.inputs, parameters)
    }

    /// Adds a slice or, for permuted channels, a 1x1 convolution whose weights are zeros and ones.
    private mutating func addSelection(_ layer: SelectChannels, _ step: Step) -> String? {
        let (inputs, outputs) = (step.inputShapes[0].channels, step.shape.channels)
        // A small model file may describe billions of channels.
        guard outputs <= 1 << 24 else { return "it selects \(outputs) channels, more than \(1 << 24)" }
        let channels = layer.channels
        var parameters = MessageBuilder()
        if let run = contiguousRange(channels) {
            parameters.add(1, run.lowerBound)
            parameters.add(2, run.upperBound)
            parameters.add(3, 1)
            parameters.add(4, 0)
            layers.add(.slice, step.output, step.inputs, parameters)
            return nil
        }
        let limit = 1 << 26
        guard inputs.multipliedReportingOverflow(by: outputs).overflow == false, inputs * outputs <= limit else {
            return "selecting \(outputs) of \(inputs) channels takes a matrix of more than \(limit) values"
        }
        let matrix = ExportedTensor("\(step.output).matrix", shape: [outputs, inputs, 1, 1]) {
            var values = [Float](repeating: 0, count: outputs * inputs)
            for (output, input) in channels.enumerated() { values[output * inputs + input] = 1 }
            return values
        }
        parameters.add(1, outputs)
        parameters.add(2, inputs)
        parameters.add(10, 1)
        for field in [20, 30, 40] { parameters.add(field, packed: [1, 1]) }
        parameters.add(50, Self.validPadding(ExportedWindow.Sides()))
        parameters.add(90, layers.weights(matrix))
        layers.add(.convolution, step.output, step.inputs, parameters)
        return nil
    }

    private mutating func addFlatten(_ step: Step) {
        let shape = step.inputShapes[0]
        let isInOrder = shape.pixels == 1 || shape.channels == 1 || model.isReordered(flattenAt: step.index)
        var parameters = MessageBuilder()
        parameters.add(1, isInOrder ? 0 : 1)
        layers.add(.flatten, step.output, step.inputs, parameters)
    }
}

extension Size2D {
    /// Height and width.
    fileprivate var list: [Int] { [height, width] }
}
