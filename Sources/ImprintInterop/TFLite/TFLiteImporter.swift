internal import ImprintCore
internal import ImprintNetwork

/// Converts a TensorFlow Lite graph to a network.
///
/// Both have the memory layout height, width, channels. A reshape therefore never moves elements, and becomes a vector.
struct TFLiteImporter {
    /// A tensor that depends on the image, with its shape in the file.
    struct Value {
        let activation: SourceActivation
        let shape: [Int]
    }

    var assembler: NetworkAssembler
    private let model: TFLiteModel
    private let budget: DecodingBudget
    private var values: [Int: Value] = [:]
    /// The constants that an operator converts to float32, by the index of the result.
    private var constants: [Int: Int] = [:]

    init(_ model: TFLiteModel) throws {
        guard model.inputs.count == 1, let input = model.inputs.first else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model with \(counted(model.inputs.count, "input"))", advice: "Expected one input, an image")
        }
        let image = model.tensors[input]
        guard image.shape.count == 4, image.shape[0] == 1, image.shape[3] == 3, image.type == 0,
            image.shape[1...2].allSatisfy({ (1...(1 << 14)).contains($0) })
        else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model with the input shape \(image.shape) and type \(image.type)",
                advice: "Expected an image [1, height, width, 3] of float32")
        }
        self.model = model
        budget = DecodingBudget(bytes: model.file.count)
        // Weights may be float16.
        assembler = NetworkAssembler(
            input: TensorShape(height: image.shape[1], width: image.shape[2], channels: 3),
            weights: 2 * model.file.count)
        values[input] = Value(
            activation: assembler.image(axes: [.batch, .channels, .height, .width]), shape: image.shape)
    }

    /// Adds all operators, and returns the outputs.
    mutating func run() throws -> [Value] {
        var missing = UnsupportedOperators()
        for entry in model.operators {
            let names = { (indices: [Int]) in indices.map(String.init) }
            let (inputs, outputs) = (names(entry.inputs.filter { $0 >= 0 }), names(entry.outputs))
            guard let kind = Kind(rawValue: entry.code) else {
                missing.add(
                    .init(operation: Self.name(of: entry.code), node: name(of: entry)), producing: outputs)
                continue
            }
            try missing.collect(reading: inputs, producing: outputs) { try add(entry, kind) }
        }
        try missing.check()
        return try model.outputs.map { index in
            guard let value = values[index] else {
                throw ImportError.Problem.malformed(
                    reason: "no operator computes the output \(model.tensors[index].name.debugDescription)")
            }
            return value
        }
    }

    /// The supported operators, with their numbers in the schema.
    private enum Kind: Int {
        case add = 0
        case concatenation = 2
        case convolution = 3
        case depthwiseConvolution = 4
        case dequantize = 6
        case logistic = 14
        case maxPool = 17
        case relu = 19
        case relu6 = 21
        case reshape = 22
        case pad = 34
    }

    /// Returns the name of an unsupported operator.
    private static func name(of code: Int) -> String {
        let names = [
            1: "AVERAGE_POOL_2D", 5: "DEPTH_TO_SPACE", 9: "FULLY_CONNECTED", 18: "MUL", 23: "RESIZE_BILINEAR",
            25: "SOFTMAX", 32: "CUSTOM", 40: "MEAN", 54: "PRELU", 67: "TRANSPOSE_CONV", 97: "RESIZE_NEAREST_NEIGHBOR",
            114: "QUANTIZE", 117: "HARD_SWISH", 124: "DENSIFY",
        ]
        return names[code] ?? "the operator \(code)"
    }

    /// Returns the name of an operator, which is the name of its first output.
    private func name(of entry: TFLiteModel.Operator) -> String {
        entry.outputs.first.flatMap { $0 < 0 ? nil : model.tensors[$0].name } ?? ""
    }

    private mutating func add(_ entry: TFLiteModel.Operator, _ kind: Kind) throws {
        let name = name(of: entry)
        guard let output = entry.outputs.first, output >= 0, entry.outputs.count == 1 else {
            throw ImportError.Problem.malformed(reason: "an operator has \(entry.outputs.count) outputs, expected 1")
        }
        let shape = model.tensors[output].shape
        let result: SourceActivation
        switch kind {
        case .dequantize:
            constants[output] = try tensorIndex(entry, 0)
            return
        case .reshape:
            let value = try value(entry, 0)
            guard shape.allSatisfy({ $0 > 0 }), checkedProduct(shape) == value.activation.shape.count else {
                throw ImportError.Problem.malformed(
                    reason: "\(name.debugDescription) reshapes \(value.shape) to \(shape)")
            }
            values[output] = Value(activation: value.activation, shape: shape)
            return
        case .concatenation: result = try concatenate(entry, shape, named: name)
        case .convolution, .depthwiseConvolution:
            result = try convolve(entry, isDepthwise: kind == .depthwiseConvolution, named: name)
        case .maxPool: result = try pool(entry, named: name)
        case .pad: result = try pad(entry, named: name)
        case .relu: result = try assembler.add(ReLU(), named: name, to: [value(entry, 0).activation])
        case .relu6: result = try assembler.add(ReLU6(), named: name, to: [value(entry, 0).activation])
        case .logistic: result = try assembler.add(Sigmoid(), named: name, to: [value(entry, 0).activation])
        case .add:
            let terms = try entry.inputs.indices.map { try value(entry, $0) }
            guard terms.count == 2, terms[0].shape == terms[1].shape,
                terms[0].activation.shape == terms[1].activation.shape
            else { throw unsupported("ADD", name, "of \(terms.map(\.shape)), expected two equal shapes") }
            let sum = try assembler.add(terms.map(\.activation), named: name)
            result = try activate(sum, entry.options, field: 0, named: name)
        }
        let found = result.shape
        guard shape == [1, found.height, found.width, found.channels] || kind == .concatenation || isVector(entry)
        else {
            throw ImportError.Problem.malformed(
                reason: "\(name.debugDescription) has the shape \(shape), but its operator computes \(found)")
        }
        values[output] = Value(activation: result, shape: shape)
    }

    /// Whether an operator reads a reshaped tensor, whose shape the network does not have.
    private func isVector(_ entry: TFLiteModel.Operator) -> Bool {
        guard let input = entry.inputs.first, let value = values[input] else { return false }
        let output = entry.outputs.first.map { model.tensors[$0].shape }
        return !value.isImage && output == value.shape
    }

    // MARK: Operators

    private mutating func convolve(
        _ entry: TFLiteModel.Operator, isDepthwise: Bool, named name: String
    ) throws -> SourceActivation {
        let x = try image(entry, 0)
        let weights = try constant(entry, 1)
        guard weights.shape.count == 4, weights.shape.allSatisfy({ $0 > 0 }), !isDepthwise || weights.shape[0] == 1
        else {
            throw ImportError.Problem.malformed(
                reason: "\(name.debugDescription) has weights of the shape \(weights.shape)")
        }
        let bias = entry.inputs.count > 2 && entry.inputs[2] >= 0 ? try constant(entry, 2).floats : nil
        var geometry = NetworkAssembler.ConvolutionGeometry()
        let dilation = isDepthwise ? 5 : 4
        (geometry.padding, geometry.stride) = try window(entry.options)
        geometry.dilation = Size2D(
            height: try entry.options?.integer(dilation + 1, Int32.self, default: 1) ?? 1,
            width: try entry.options?.integer(dilation, Int32.self, default: 1) ?? 1)
        // A depthwise convolution has the weights [1, height, width, channels], another one [outputs, height, width, inputs].
        let (outputs, inputs) = isDepthwise ? (weights.shape[3], 1) : (weights.shape[0], weights.shape[3])
        let taps = weights.shape[1] * weights.shape[2]
        guard bias.map({ $0.count == outputs }) ?? true else {
            throw ImportError.Problem.malformed(
                reason: "\(name.debugDescription) has a bias of \(bias?.count ?? 0) values")
        }
        if isDepthwise { geometry.groups = x.shape.channels }
        let old = weights.floats
        var new = [Float](repeating: 0, count: old.count)
        for index in new.indices {
            let (row, tap) = index.quotientAndRemainder(dividingBy: taps)
            let (output, input) = row.quotientAndRemainder(dividingBy: inputs)
            new[index] = isDepthwise ? old[tap * outputs + output] : old[(output * taps + tap) * inputs + input]
        }
        let shape = [outputs, inputs, weights.shape[1], weights.shape[2]]
        let y = try assembler.convolve(
            x, geometry, weight: Constant(shape: shape, floats: new), bias: bias, named: name)
        return try activate(y, entry.options, field: isDepthwise ? 4 : 3, named: name)
    }

    private mutating func pool(_ entry: TFLiteModel.Operator, named name: String) throws -> SourceActivation {
        let (padding, stride) = try window(entry.options)
        let size = Size2D(
            height: try entry.options?.integer(4, Int32.self) ?? 0,
            width: try entry.options?.integer(3, Int32.self) ?? 0)
        let y = try assembler.add(
            MaxPool(kernelSize: size, stride: stride, padding: padding), named: name, to: [image(entry, 0)])
        return try activate(y, entry.options, field: 5, named: name)
    }

    private mutating func pad(_ entry: TFLiteModel.Operator, named name: String) throws -> SourceActivation {
        let x = try image(entry, 0)
        let tensor = model.tensors[try tensorIndex(entry, 1)]
        guard tensor.shape == [4, 2] else {
            throw unsupported("PAD", name, "amounts of the shape \(tensor.shape), expected [4, 2]")
        }
        let amounts = try model.integers(tensor)
        guard amounts.allSatisfy({ (0...(1 << 15)).contains($0) }), amounts[0] == 0, amounts[1] == 0, amounts[6] == 0
        else { throw unsupported("PAD", name, "by \(amounts), expected rows, columns, and channels at the end") }
        let y = try assembler.pad(
            x, [(2, amounts[2], amounts[3]), (3, amounts[4], amounts[5])], .constant(0), named: name)
        return try assembler.appendZeroChannels(to: y, count: amounts[7], named: name)
    }

    /// Concatenates vectors, or the channels of images.
    private mutating func concatenate(
        _ entry: TFLiteModel.Operator, _ shape: [Int], named name: String
    ) throws -> SourceActivation {
        let parts = try entry.inputs.indices.map { try value(entry, $0) }
        let axis = try entry.options?.integer(0, Int32.self) ?? 0
        guard let first = parts.first, case let index = axis < 0 ? axis + first.shape.count : axis,
            first.shape.indices.contains(index), parts.allSatisfy({ $0.shape.count == first.shape.count }),
            try entry.options?.integer(1, Int8.self) ?? 0 == 0,
            parts.allSatisfy({ part in
                part.shape.indices.allSatisfy { $0 == index || part.shape[$0] == first.shape[$0] }
            })
        else { throw unsupported("CONCATENATION", name, "of \(parts.map(\.shape)) along axis \(axis)") }
        guard shape.count == first.shape.count,
            checkedProduct(shape) == parts.reduce(0, { $0 + $1.activation.shape.count })
        else { throw ImportError.Problem.malformed(reason: "\(name.debugDescription) has the shape \(shape)") }
        if index == 3, parts.allSatisfy(\.isImage) {
            return try assembler.concatenate(parts.map(\.activation), along: 1, named: name)
        }
        guard first.shape[..<index].allSatisfy({ $0 == 1 }) else {
            throw unsupported(
                "CONCATENATION", name, "along axis \(axis) of \(parts.map(\.shape)), expected the first long axis")
        }
        let vectors = try parts.map { part in
            part.activation.shape.pixels == 1
                ? part.activation
                : try assembler.add(Flatten(), named: "\(name).flatten", to: [part.activation], axes: Self.axes)
        }
        return vectors.count == 1 ? vectors[0] : try assembler.add(Concat(), named: name, to: vectors, axes: Self.axes)
    }

    // MARK: Operands

    private static var axes: [NetworkAssembler.Axis] { [.batch, .channels, .height, .width] }

    private func unsupported(_ operation: String, _ name: String, _ reason: String) -> ImportError.Problem {
        .unsupported([.init(operation: operation, node: name, reason: reason)])
    }

    private func tensorIndex(
        _ entry: TFLiteModel.Operator, _ position: Int
    ) throws(ImportError.Problem) -> Int {
        guard entry.inputs.indices.contains(position), entry.inputs[position] >= 0 else {
            throw .malformed(reason: "\(name(of: entry).debugDescription) has no input \(position + 1)")
        }
        return entry.inputs[position]
    }

    private func value(_ entry: TFLiteModel.Operator, _ position: Int) throws(ImportError.Problem) -> Value {
        let index = try tensorIndex(entry, position)
        guard let value = values[index] else {
            let tensor = model.tensors[index]
            if tensor.data != nil || constants[index] != nil {
                throw unsupported("constant", tensor.name, "as an operand, expected a tensor that depends on the image")
            }
            throw .malformed(reason: "\(tensor.name.debugDescription) is read before an operator computes it")
        }
        return value
    }

    private func image(_ entry: TFLiteModel.Operator, _ position: Int) throws(ImportError.Problem) -> SourceActivation {
        let value = try value(entry, position)
        guard value.isImage else {
            throw unsupported("axes", name(of: entry), "found \(value.shape), expected an image")
        }
        return value.activation
    }

    private func constant(_ entry: TFLiteModel.Operator, _ position: Int) throws(ImportError.Problem) -> Constant {
        let index = try tensorIndex(entry, position)
        let tensor = model.tensors[constants[index] ?? index]
        try budget.read(tensor.data?.count ?? 0, for: tensor.name)
        return Constant(shape: tensor.shape, floats: try model.floats(tensor))
    }

    private func window(_ options: FlatTable?) throws(ImportError.Problem) -> (Padding, Size2D) {
        guard let options else { throw .malformed(reason: "a convolution or pooling has no options") }
        let stride = Size2D(
            height: try options.integer(2, Int32.self), width: try options.integer(1, Int32.self))
        return (try options.integer(0, Int8.self) == 0 ? .same : .valid, stride)
    }

    /// Adds the activation that an operator includes.
    private mutating func activate(
        _ x: SourceActivation, _ options: FlatTable?, field: Int, named name: String
    ) throws -> SourceActivation {
        switch try options?.integer(field, Int8.self) ?? 0 {
        case 0: x
        case 1: try assembler.add(ReLU(), named: "\(name).relu", to: [x])
        case 3: try assembler.add(ReLU6(), named: "\(name).relu6", to: [x])
        case let other: throw unsupported("activation", name, "\(other), expected none, RELU or RELU6")
        }
    }
}

extension TFLiteImporter.Value {
    /// Whether the tensor has the axes of an image, as the network has them.
    var isImage: Bool {
        shape == [1, activation.shape.height, activation.shape.width, activation.shape.channels]
    }
}

extension NetworkAssembler {
    /// Appends channels of zeros: copies of the first channel, times 0.
    mutating func appendZeroChannels(
        to x: SourceActivation, count: Int, named name: String
    ) throws(ImportError.Problem) -> SourceActivation {
        guard count > 0 else { return x }
        let channels = x.shape.channels
        let copied = try select(
            x, along: 1, Array(0..<channels) + Array(repeating: 0, count: count), named: "\(name).channels")
        let factors = Array(repeating: Float(1), count: channels) + Array(repeating: 0, count: count)
        return try multiply(copied, by: Constant(shape: [1, channels + count, 1, 1], floats: factors), named: name)
    }
}
