internal import ImprintModel
internal import ImprintNetwork

/// Makes a network of the layers of a Core ML file by running them: what depends on the image becomes layers here.
///
/// Old layers work on sequence, batch, channels, height and width and count these from the end; newer ones on tensors
/// of any rank.
struct CoreMLGraph {
    var assembler: NetworkAssembler
    /// What each name stands for by now.
    private(set) var values: [String: SourceTensor]

    init(assembler: NetworkAssembler, values: [String: SourceTensor]) {
        self.assembler = assembler
        self.values = values
    }

    /// Starts over with names of another network, of which these are the inputs.
    mutating func begin(with inputs: [String: SourceTensor]) { values = inputs }

    /// Runs all layers.
    /// - Throws: `ImportError.Problem.unsupported` with all layers that Imprint does not have.
    mutating func run(_ layers: [CoreMLModel.Layer]) throws {
        var missing = MissingOperations()
        for layer in layers {
            guard let operation = CoreMLLayers.all[layer.kind] else {
                let kind = try layer.isCustom ? "custom \(layer.record().string(10))" : layer.kindName
                missing.add(.init(operation: kind, node: layer.name), making: layer.outputs)
                continue
            }
            try missing.collect(reading: layer.inputs, making: layer.outputs) {
                for (name, value) in zip(layer.outputs, try operation(layer, layer.record(), &self)) {
                    values[name] = value
                }
            }
        }
        try missing.check()
    }
}

extension CoreMLModel.Layer {
    /// Whether its arithmetic is in a program of its own.
    var isCustom: Bool { kind == 500 }
}

/// A layer with what it reads, as operations see it.
extension CoreMLGraph {
    func input(_ place: Int, _ layer: CoreMLModel.Layer) throws -> SourceTensor {
        guard layer.inputs.indices.contains(place) else {
            throw malformed(layer, "has no input \(place + 1)")
        }
        guard let value = values[layer.inputs[place]] else {
            throw malformed(layer, "reads \(layer.inputs[place].debugDescription), which nothing before it makes")
        }
        return value
    }

    /// An input that the image decides on.
    func activation(_ layer: CoreMLModel.Layer, _ place: Int = 0) throws -> SourceActivation {
        guard case .activation(let activation) = try input(place, layer) else {
            throw unsupported(layer, "input \(place + 1) is known, expected what depends on the image")
        }
        return activation
    }

    /// All inputs, what depends on the image and what is known.
    func terms(_ layer: CoreMLModel.Layer) throws -> ([SourceActivation], [Constant]) {
        var (activations, constants): ([SourceActivation], [Constant]) = ([], [])
        for place in layer.inputs.indices {
            switch try input(place, layer) {
            case .activation(let activation): activations.append(activation)
            case .constant(let constant): constants.append(constant)
            }
        }
        guard !activations.isEmpty else { throw unsupported(layer, "of known numbers alone") }
        return (activations, constants)
    }

    /// Weights in a layer's settings.
    mutating func weights(
        _ record: CoreMLRecord, _ number: Int, _ shape: [Int], _ layer: CoreMLModel.Layer
    ) throws -> [Float] {
        guard let message = try record.message(number) else { throw malformed(layer, "has no weights") }
        guard shape.allSatisfy({ $0 > 0 }), let count = checkedProduct(shape) else {
            throw malformed(layer, "has weights of the shape \(shape)")
        }
        let weights = CoreMLWeights(message, of: layer.name)
        let floats = try weights.floats(count)
        if try weights.areCodes() { assembler.allow(numbers: count) }
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
    /// The activation with channels, height and width alone behind a batch, as layers over pictures take it.
    mutating func picture(_ x: SourceActivation, _ layer: CoreMLModel.Layer) throws -> SourceActivation {
        guard x.axes.count >= 3 else {
            throw unsupported(layer, "of \(x.dimensions), expected channels, height and width")
        }
        var x = try withChannels(x, layer)
        guard x.dimensions.dropLast(3).allSatisfy({ $0 == 1 }) else {
            throw unsupported(layer, "over \(x.axesInWords), expected one picture")
        }
        x.axes = [.batch] + x.axes.suffix(3)
        return try assembler.picture(x, for: layer.name)
    }

    /// What a layer over pictures made of `x`, with the axes that it had before channels.
    func restored(_ y: SourceActivation, like x: SourceActivation) -> SourceActivation {
        var y = y
        y.axes = x.axes.dropLast(3) + [.channels, .height, .width]
        return y
    }

    /// A layer of one picture that gives another.
    mutating func overPicture(
        _ layer: CoreMLModel.Layer, _ made: (_ x: SourceActivation) throws -> any Layer
    ) throws -> SourceActivation {
        let x = try activation(layer)
        let picture = try picture(x, layer)
        return restored(try assembler.add(made(picture), named: layer.name, to: [picture]), like: x)
    }

    /// The same numbers with an axis of channels, where all numbers of an image stand in that axis.
    mutating func withChannels(_ x: SourceActivation, _ layer: CoreMLModel.Layer) throws -> SourceActivation {
        let place = x.axes.count - min(3, x.axes.count)
        guard x.axes.indices.contains(place), case .flat = x.axes[place] else { return x }
        var axes = x.axes
        axes[place] = .channels
        var vector = try assembler.vector(x, named: layer.name)
        vector.axes = axes
        return vector
    }
}
