internal import ImprintModel
internal import ImprintNetwork

/// Converts the layers of a Core ML neural network to layers of a network.
///
/// Old layers work on sequence, batch, channels, height and width, and count these axes from the end. Newer layers work on
/// tensors of any rank.
struct CoreMLGraph {
    var assembler: NetworkAssembler
    /// The tensors that earlier layers computed, by name.
    private(set) var values: [String: SourceTensor]
    /// The names of the layers whose weights have 8 bits or fewer.
    private var quantizedLayers: Set<String> = []

    init(assembler: NetworkAssembler, values: [String: SourceTensor]) {
        self.assembler = assembler
        self.values = values
    }

    /// A note on quantized weights; nil if there are none.
    var quantizationNote: String? {
        guard !quantizedLayers.isEmpty else { return nil }
        let (count, verb) =
            quantizedLayers.count == 1
            ? ("1 layer has", "It computes") : ("\(quantizedLayers.count) layers have", "They compute")
        return
            "\(count) weights of 8 bits or fewer. \(verb) in float32, because a Core ML model does not contain the ranges of activations."
    }

    /// Starts another network of a pipeline with these inputs.
    mutating func begin(with inputs: [String: SourceTensor]) { values = inputs }

    /// Converts all layers.
    ///
    /// - Throws: `ImportError.Problem.unsupported` with all layers that Imprint does not support.
    mutating func run(_ layers: [CoreMLModel.Layer]) throws {
        var missing = UnsupportedOperators()
        for layer in layers {
            guard let operation = CoreMLLayers.all[layer.kind] else {
                let kind = try layer.isCustom ? "custom \(layer.record().string(10))" : layer.kindName
                missing.add(.init(operation: kind, node: layer.name), producing: layer.outputs)
                continue
            }
            try missing.collect(reading: layer.inputs, producing: layer.outputs) {
                for (name, value) in zip(layer.outputs, try operation(layer, layer.record(), &self)) {
                    values[name] = value
                }
            }
        }
        try missing.check()
    }
}

extension CoreMLModel.Layer {
    /// Whether the layer is implemented by custom code of an app.
    var isCustom: Bool { kind == 500 }
}

/// The inputs and weights of a layer.
extension CoreMLGraph {
    func input(_ index: Int, _ layer: CoreMLModel.Layer) throws -> SourceTensor {
        guard layer.inputs.indices.contains(index) else {
            throw malformed(layer, "has no input \(index + 1)")
        }
        guard let value = values[layer.inputs[index]] else {
            throw malformed(layer, "reads \(layer.inputs[index].debugDescription), which no earlier layer computes")
        }
        return value
    }

    /// Returns an input that must be an activation.
    func activation(_ layer: CoreMLModel.Layer, _ index: Int = 0) throws -> SourceActivation {
        guard case .activation(let activation) = try input(index, layer) else {
            throw unsupported(layer, "input \(index + 1) is a constant, expected an activation")
        }
        return activation
    }

    /// Returns all inputs, separated into activations and constants.
    func terms(_ layer: CoreMLModel.Layer) throws -> ([SourceActivation], [Constant]) {
        var (activations, constants): ([SourceActivation], [Constant]) = ([], [])
        for index in layer.inputs.indices {
            switch try input(index, layer) {
            case .activation(let activation): activations.append(activation)
            case .constant(let constant): constants.append(constant)
            }
        }
        guard !activations.isEmpty else { throw unsupported(layer, "of constants only") }
        return (activations, constants)
    }

    /// Returns the weights in a layer's parameters.
    mutating func weights(
        _ record: CoreMLRecord, _ number: Int, _ shape: [Int], _ layer: CoreMLModel.Layer
    ) throws -> [Float] {
        guard let message = try record.message(number) else { throw malformed(layer, "has no weights") }
        guard shape.allSatisfy({ $0 > 0 }), let count = checkedProduct(shape) else {
            throw malformed(layer, "has weights of the shape \(shape)")
        }
        let weights = CoreMLWeights(message, of: layer.name)
        let floats = try weights.floats(count)
        if try weights.isQuantized() {
            assembler.allow(elements: count)
            quantizedLayers.insert(layer.name)
        }
        return floats
    }

    func unsupported(_ layer: CoreMLModel.Layer, _ reason: String) -> ImportError.Problem {
        .unsupported([.init(operation: layer.kindName, node: layer.name, reason: reason)])
    }

    func malformed(_ layer: CoreMLModel.Layer, _ reason: String) -> ImportError.Problem {
        .malformed(reason: "the layer \(layer.name.debugDescription) (\(layer.kindName)) \(reason)")
    }
}

extension CoreMLGraph {
    /// Returns the activation in NCHW order, which image layers expect.
    mutating func imageTensor(_ x: SourceActivation, _ layer: CoreMLModel.Layer) throws -> SourceActivation {
        guard x.axes.count >= 3 else {
            throw unsupported(layer, "of \(x.dimensions), expected channels, height and width")
        }
        var x = try withChannels(x, layer)
        guard x.dimensions.dropLast(3).allSatisfy({ $0 == 1 }) else {
            throw unsupported(layer, "over \(x.axisNames), expected one image")
        }
        x.axes = [.batch] + x.axes.suffix(3)
        return try assembler.imageTensor(x, for: layer.name)
    }

    /// Returns the output of an image layer with the leading axes of its input `x`.
    func restored(_ y: SourceActivation, like x: SourceActivation) -> SourceActivation {
        var y = y
        y.axes = x.axes.dropLast(3) + [.channels, .height, .width]
        return y
    }

    /// Adds a layer that maps an image to an image.
    mutating func imageLayer(
        _ layer: CoreMLModel.Layer, _ makeLayer: (_ x: SourceActivation) throws -> any Layer
    ) throws -> SourceActivation {
        let x = try activation(layer)
        let imageTensor = try imageTensor(x, layer)
        return restored(try assembler.add(makeLayer(imageTensor), named: layer.name, to: [imageTensor]), like: x)
    }

    /// Returns the activation with a channel axis, if that axis contains all elements of an image.
    mutating func withChannels(_ x: SourceActivation, _ layer: CoreMLModel.Layer) throws -> SourceActivation {
        let index = x.axes.count - min(3, x.axes.count)
        guard x.axes.indices.contains(index), case .flat = x.axes[index] else { return x }
        var axes = x.axes
        axes[index] = .channels
        var vector = try assembler.vector(x, named: layer.name)
        vector.axes = axes
        return vector
    }
}
