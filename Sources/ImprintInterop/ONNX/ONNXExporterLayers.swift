internal import ImprintModel
internal import ImprintNetwork

// The export of each layer type to ONNX operators. Source: the ONNX operator specification, opsets 13 to 18.

extension ONNXExporter {
    /// Adds the ONNX operators of a layer.
    ///
    /// - Returns: Whether the output is flat; nil if Imprint cannot export this layer.
    mutating func add(_ layer: any Layer, _ step: Step) -> Bool? {
        switch layer {
        case let layer as Convolution: addConvolution(layer, step)
        case let layer as TransposedConvolution: addTransposedConvolution(layer, step)
        case let layer as Dense: addDense(layer, step)
        case let layer as BatchNormalization: addBatchNormalization(layer, step)
        case let layer as LayerNormalization: addLayerNormalization(layer, step)
        case let layer as Affine: addAffine(layer, step)
        case let layer as LocalResponseNormalization: addResponseNormalization(layer, step)
        case let layer as MaxPool: addMaxPool(layer, step)
        case let layer as AveragePool: addAveragePool(layer, step)
        case is GlobalAveragePool: image("GlobalAveragePool", step)
        case is GlobalMaxPool: image("GlobalMaxPool", step)
        case let layer as MeanLayer: addMean(layer, step)
        case let layer as PadLayer: addPad(layer, step)
        case let layer as UpsampleNearest: addUpsample(layer, step)
        case let layer as SelectChannels: addSelection(layer, step)
        case is Flatten: addFlatten(step)
        case let layer as Dropout: addDropout(layer, step)
        case is AddLayer: joined("Sum", step)
        case is MaximumLayer: joined("Max", step)
        case is MultiplyLayer: addProduct(step)
        case is Concat: concatenated(step)
        case is Softmax: unary("Softmax", step, ["axis": .int(1)])
        default: addActivation(layer, step)
        }
    }

    // MARK: Convolutions and dense layers

    private mutating func addConvolution(_ layer: Convolution, _ step: Step) -> Bool {
        let inputs = operands(image(step.inputs[0]), at: step.index, hasBias: layer.hasBias) { model, weights in
            model.kernel(layer.kernelSize, at: step.index, integersOf: weights)
        }
        let window = ExportedWindow(
            kernel: layer.kernelSize, stride: layer.stride, dilation: layer.dilation, padding: layer.padding,
            over: step.inputs[0].shape, to: step.shape)
        graph.add(
            "Conv", inputs, to: step.output,
            [
                "dilations": .ints(layer.dilation.list), "group": .int(layer.groups),
                "kernel_shape": .ints(layer.kernelSize.list), "pads": .ints(window.effectivePadding.list),
                "strides": .ints(layer.stride.list),
            ])
        return false
    }

    private mutating func addTransposedConvolution(_ layer: TransposedConvolution, _ step: Step) -> Bool {
        var inputs = [
            image(step.inputs[0]).name, graph.add(model.kernel(layer.kernelSize, at: step.index)),
        ]
        if layer.hasBias { inputs.append(graph.add(model.vector("bias", of: step.index))) }
        // The window of a transposed convolution slides over the output.
        let window = ExportedWindow(
            kernel: layer.kernelSize, stride: layer.stride, dilation: layer.dilation, padding: layer.padding,
            over: step.shape, to: step.inputs[0].shape)
        graph.add(
            "ConvTranspose", inputs, to: step.output,
            [
                "dilations": .ints(layer.dilation.list), "group": .int(layer.groups),
                "kernel_shape": .ints(layer.kernelSize.list), "output_padding": .ints(window.uncovered.list),
                "pads": .ints(window.declaredPadding.list), "strides": .ints(layer.stride.list),
            ])
        return false
    }

    private mutating func addDense(_ layer: Dense, _ step: Step) -> Bool {
        let inputs = operands(flattened(step.inputs[0]), at: step.index, hasBias: layer.hasBias) { model, weights in
            model.matrix(at: step.index, integersOf: weights)
        }
        graph.add("Gemm", inputs, to: step.output, ["transB": .int(1)])
        return true
    }

    // MARK: Normalization

    private mutating func addBatchNormalization(_ layer: BatchNormalization, _ step: Step) -> Bool {
        let parameters = ["scale", "shift", "runningMean", "runningVariance"].map {
            graph.add(model.vector($0, of: step.index))
        }
        graph.add(
            "BatchNormalization", [step.inputs[0].name] + parameters, to: step.output,
            ["epsilon": .float(layer.epsilon), "momentum": .float(1 - layer.momentum)])
        return step.inputs[0].isFlat
    }

    /// Adds a LayerNormalization, which applies to the last axis and requires images in NHWC order.
    private mutating func addLayerNormalization(_ layer: LayerNormalization, _ step: Step) -> Bool {
        let input = step.inputs[0]
        let parameters = ["scale", "shift"].map { graph.add(model.vector($0, of: step.index)) }
        let attributes: KeyValuePairs<String, ONNXAttribute> = ["axis": .int(-1), "epsilon": .float(layer.epsilon)]
        guard !input.isFlat else {
            graph.add("LayerNormalization", [input.name] + parameters, to: step.output, attributes)
            return true
        }
        let channelsLast = graph.unique("\(step.output).channelsLast")
        let normalized = graph.unique("\(step.output).normalized")
        graph.add("Transpose", [input.name], to: channelsLast, ["perm": .ints([0, 2, 3, 1])])
        graph.add(
            "LayerNormalization", [channelsLast] + parameters, to: normalized, attributes, named: step.output)
        graph.add("Transpose", [normalized], to: step.output, ["perm": .ints([0, 3, 1, 2])], named: normalized)
        return false
    }

    private mutating func addAffine(_ layer: Affine, _ step: Step) -> Bool {
        let isFlat = step.inputs[0].isFlat
        func tensor(_ name: String) -> ExportedTensor {
            guard layer.extent == .channels else {
                let tensor = model.image(name, of: step.index)
                return isFlat ? tensor.reshaped([tensor.count]) : tensor
            }
            let tensor = model.vector(name, of: step.index)
            return isFlat ? tensor : tensor.reshaped([tensor.count, 1, 1])
        }
        var value = step.inputs[0].name
        if layer.hasScale {
            let scaled = layer.hasShift ? graph.unique("\(step.output).scaled") : step.output
            graph.add("Mul", [value, graph.add(tensor("scale"))], to: scaled)
            value = scaled
        }
        if layer.hasShift { graph.add("Add", [value, graph.add(tensor("shift"))], to: step.output) }
        return isFlat
    }

    private mutating func addResponseNormalization(_ layer: LocalResponseNormalization, _ step: Step) -> Bool {
        graph.add(
            "LRN", [image(step.inputs[0]).name], to: step.output,
            [
                "alpha": .float(layer.alpha), "beta": .float(layer.beta), "bias": .float(layer.bias),
                "size": .int(layer.size),
            ])
        return false
    }

    // MARK: Pooling

    private mutating func addMaxPool(_ layer: MaxPool, _ step: Step) -> Bool {
        let window = ExportedWindow(
            kernel: layer.kernelSize, stride: layer.stride, padding: layer.padding, over: step.inputs[0].shape,
            to: step.shape)
        graph.add(
            "MaxPool", [image(step.inputs[0]).name], to: step.output,
            [
                "kernel_shape": .ints(layer.kernelSize.list), "pads": .ints(window.effectivePadding.list),
                "strides": .ints(layer.stride.list),
            ])
        return false
    }

    private mutating func addAveragePool(_ layer: AveragePool, _ step: Step) -> Bool {
        let window = ExportedWindow(
            kernel: layer.kernelSize, stride: layer.stride, padding: layer.padding, over: step.inputs[0].shape,
            to: step.shape)
        var (input, padding, countsPadding) = (image(step.inputs[0]).name, window.effectivePadding, layer.countsPadding)
        if countsPadding && !window.extraPadding.isEmpty {
            // Only the declared padding counts in the mean. Add it as zeros, and let the operator pad the rest without counting
            // it.
            let padded = graph.unique("\(step.output).padded")
            let pads = graph.add("\(step.output).pads", window.declaredPadding.listOfAllAxes)
            graph.add("Pad", [input, pads], to: padded)
            (input, padding, countsPadding) = (padded, window.extraPadding, false)
        }
        graph.add(
            "AveragePool", [input], to: step.output,
            [
                "count_include_pad": .int(countsPadding ? 1 : 0), "kernel_shape": .ints(layer.kernelSize.list),
                "pads": .ints(padding.list), "strides": .ints(layer.stride.list),
            ])
        return false
    }

    private mutating func addMean(_ layer: MeanLayer, _ step: Step) -> Bool {
        let axes = [(MeanAxes.channels, 1), (.height, 2), (.width, 3)].filter { layer.axes.contains($0.0) }.map(\.1)
        let input = image(step.inputs[0]).name
        if opset < 18 {
            graph.add("ReduceMean", [input], to: step.output, ["axes": .ints(axes)])
        } else {
            graph.add("ReduceMean", [input, graph.add("\(step.output).axes", axes)], to: step.output)
        }
        return false
    }

    // MARK: Shapes

    private mutating func addPad(_ layer: PadLayer, _ step: Step) -> Bool {
        let sides = ExportedWindow.Sides(
            top: layer.top, left: layer.left, bottom: layer.bottom, right: layer.right)
        var inputs = [image(step.inputs[0]).name, graph.add("\(step.output).pads", sides.listOfAllAxes)]
        let mode: String
        switch layer.mode {
        case .constant(let value):
            mode = "constant"
            inputs.append(graph.add("\(step.output).value", [value], shape: []))
        case .reflect: mode = "reflect"
        case .edge: mode = "edge"
        }
        graph.add("Pad", inputs, to: step.output, ["mode": .string(mode)])
        return false
    }

    private mutating func addUpsample(_ layer: UpsampleNearest, _ step: Step) -> Bool {
        let scales = graph.add("\(step.output).scales", [1, 1, Float(layer.factor.height), Float(layer.factor.width)])
        graph.add(
            "Resize", [image(step.inputs[0]).name, "", scales], to: step.output,
            [
                "coordinate_transformation_mode": .string("asymmetric"), "mode": .string("nearest"),
                "nearest_mode": .string("floor"),
            ])
        return false
    }

    private mutating func addSelection(_ layer: SelectChannels, _ step: Step) -> Bool? {
        // A small model file may describe billions of channels.
        guard step.shape.channels <= 1 << 24 else { return nil }
        let channels = layer.channels
        let input = step.inputs[0]
        if let run = contiguousRange(channels) {
            let bounds = [("starts", run.lowerBound), ("ends", run.upperBound), ("axes", 1)].map {
                graph.add("\(step.output).\($0.0)", [$0.1])
            }
            graph.add("Slice", [input.name] + bounds, to: step.output)
        } else {
            let indices = graph.add("\(step.output).channels", channels)
            graph.add("Gather", [input.name, indices], to: step.output, ["axis": .int(1)])
        }
        return input.isFlat
    }

    private mutating func addFlatten(_ step: Step) -> Bool {
        let (input, shape) = (step.inputs[0], step.inputs[0].shape)
        guard !input.isFlat else { return unary("Identity", step) }
        var name = input.name
        let isInOrder = shape.pixels == 1 || shape.channels == 1 || model.isReordered(flattenAt: step.index)
        if !isInOrder {
            name = graph.unique("\(step.output).channelsLast")
            graph.add("Transpose", [input.name], to: name, ["perm": .ints([0, 2, 3, 1])])
        }
        graph.add("Flatten", [name], to: step.output, ["axis": .int(1)])
        return true
    }

    private mutating func addDropout(_ layer: Dropout, _ step: Step) -> Bool {
        let ratio = graph.add("\(step.output).ratio", [layer.rate], shape: [])
        graph.add("Dropout", [step.inputs[0].name, ratio], to: step.output)
        return step.inputs[0].isFlat
    }

    private mutating func concatenated(_ step: Step) -> Bool {
        let (names, isFlat) = alike(step.inputs)
        graph.add("Concat", names, to: step.output, ["axis": .int(1)])
        return isFlat
    }
}

extension Size2D {
    /// Height and width.
    fileprivate var list: [Int] { [height, width] }
}

extension ExportedWindow.Sides {
    /// The padding at the start of the axes, then at the end.
    fileprivate var list: [Int] { [top, left, bottom, right] }
    /// The padding of all axes, including batch and channels.
    fileprivate var listOfAllAxes: [Int] { [0, 0, top, left, 0, 0, bottom, right] }
}
