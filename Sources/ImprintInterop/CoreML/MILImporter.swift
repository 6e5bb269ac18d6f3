internal import ImprintModel
internal import ImprintNetwork

/// Converts an ML program to a network: operations that depend on the image become layers.
struct MILImporter {
    typealias Operation = MILProgram.Operation

    var assembler: NetworkAssembler
    private let package: CoreMLPackage
    private var activations: [String: SourceActivation] = [:]
    /// Constants in the file, which are decoded when an operation reads them.
    private var stored: [String: WireMessage] = [:]
    /// Constants that were computed from others.
    private var computed: [String: MILValue] = [:]
    private(set) var labels: [String]?
    /// The input of the `classify` operation.
    private var probabilities: SourceActivation?

    private let limit: DecodingBudget
    /// The limit for decompressed weights, which the import keeps.
    private let decompressionLimit: DecodingBudget

    private init(assembler: NetworkAssembler, package: CoreMLPackage, bytes: Int) {
        self.assembler = assembler
        self.package = package
        limit = DecodingBudget(bytes: bytes)
        decompressionLimit = DecodingBudget(compressedBytes: bytes)
    }

    /// Converts a program.
    ///
    /// - Parameter size: The size of the model file in bytes.
    static func parts(
        _ program: MILProgram, _ description: CoreMLModel.Description, _ package: CoreMLPackage, size: Int,
        importer: ModelImporter
    ) throws -> ImportedParts {
        var image = try CoreMLImage(
            description, size: importer.inputSize, expectsBGR: importer.normalization?.isBGR ?? false)
        let bytes = try program.weightFiles().reduce(size) { try $0 + package.weights($1).count }
        let assembler = NetworkAssembler(input: image.shape, weights: bytes * 32 / program.minimumBits)
        var run = MILImporter(assembler: assembler, package: package, bytes: bytes)
        let before: [SourceActivation.Axis] = [.unit, .batch]
        let start = try image.activation(
            &run.assembler, axes: before.suffix((image.arrayShape?.count ?? 4) - 3) + [.channels, .height, .width], nil)
        run.activations[image.name] = start
        let first = try run.mergeNormalization(of: &image, in: program.operations)
        try run.runAll(program.operations.filter { !first.contains($0.name) })
        guard let output = run.probabilities ?? program.outputs.lazy.compactMap({ run.activations[$0] }).first
        else {
            throw ImportError.Problem.malformed(reason: "none of its outputs depends on the image")
        }
        return ImportedParts(
            name: package.name, assembler: run.assembler, output: output, labels: run.labels,
            normalization: image.normalization, notes: image.notes, details: description.details)
    }

    /// - Throws: `ImportError.Problem.unsupported` with all operations that Imprint does not support.
    private mutating func runAll(_ operations: [Operation]) throws {
        var missing = UnsupportedOperators()
        for operation in operations {
            try missing.collect(reading: operation.names, producing: operation.outputs) { try run(operation) }
        }
        try missing.check()
    }

    private mutating func run(_ operation: Operation) throws {
        if operation.type == "const" {
            stored[operation.name] = operation.attributes["val"]
        } else if operation.type == "classify" {
            probabilities = try activation("probabilities", operation)
            guard case .texts(let texts)? = try value("classes", operation) else {
                throw malformed(operation, "has no classes")
            }
            labels = texts
        } else if operation.type.hasPrefix("constexpr_") {
            let constant = try decompressed(operation)
            try decompressionLimit.read(constant.count, for: operation.name)
            computed[operation.name] = .tensor(constant)
        } else if let compute = MILOperations.all[operation.type] {
            let results = try compute(operation, &self)
            for (name, result) in zip(operation.outputs, results) { activations[name] = result }
        } else {
            throw unsupported(operation)
        }
    }
}

extension MILProgram.Operation {
    /// The names of the inputs.
    var names: [String] {
        inputs.values.flatMap { $0 }.compactMap { if case .name(let name) = $0 { name } else { nil } }
    }
}

/// The parameters of an operation.
extension MILImporter {
    private func named(_ name: String, _ operation: Operation) throws -> MILValue {
        if let value = computed[name] { return value }
        guard let message = stored[name] else {
            if activations[name] != nil {
                throw unsupported(operation, "\(name.debugDescription) depends on the image, expected a constant")
            }
            throw malformed(operation, "reads \(name.debugDescription), which no earlier operation computes")
        }
        return try decoded(message, name, operation)
    }

    /// Decodes a value, and counts its elements.
    private func decoded(_ message: WireMessage, _ name: String, _ operation: Operation) throws -> MILValue {
        let value = try MILValue(message, in: package, for: name)
        try limit.read(value.constant?.count ?? 0, for: operation.name)
        return value
    }

    /// Returns a parameter that must be a constant; nil if it is omitted.
    func value(_ parameter: String, _ operation: Operation) throws -> MILValue? {
        switch operation.inputs[parameter]?.first {
        case .name(let name): return try named(name, operation)
        case .value(let message): return try decoded(message, parameter, operation)
        case nil: return try operation.attributes[parameter].map { try decoded($0, parameter, operation) }
        }
    }

    /// Returns all tensors of a parameter.
    func tensors(_ parameter: String, _ operation: Operation) throws -> [SourceTensor] {
        try (operation.inputs[parameter] ?? []).map { argument in
            let value: MILValue
            switch argument {
            case .name(let name):
                if let activation = activations[name] { return .activation(activation) }
                value = try named(name, operation)
            case .value(let message): value = try decoded(message, parameter, operation)
            }
            guard let constant = value.constant else { throw malformed(operation, "has a string instead of a tensor") }
            return .constant(constant)
        }
    }

    func tensor(_ parameter: String, _ operation: Operation) throws -> SourceTensor {
        guard let tensor = try tensors(parameter, operation).first else {
            throw malformed(operation, "has no \(parameter)")
        }
        return tensor
    }

    /// Returns a parameter that must be an activation.
    func activation(_ parameter: String, _ operation: Operation) throws -> SourceActivation {
        guard case .activation(let activation) = try tensor(parameter, operation) else {
            throw unsupported(operation, "\(parameter) is a constant, expected an activation")
        }
        return activation
    }

    /// Returns a parameter that must be a constant tensor; nil if it is omitted.
    func constant(_ parameter: String, _ operation: Operation) throws -> Constant? {
        guard let value = try value(parameter, operation) else { return nil }
        guard let constant = value.constant else { throw malformed(operation, "has a string as its \(parameter)") }
        return constant
    }

    func requiredConstant(_ parameter: String, _ operation: Operation) throws -> Constant {
        guard let constant = try constant(parameter, operation) else {
            throw malformed(operation, "has no \(parameter)")
        }
        return constant
    }

    func integers(_ parameter: String, _ operation: Operation) throws -> [Int]? {
        guard let constant = try constant(parameter, operation) else { return nil }
        guard let integers = constant.integers, integers.allSatisfy({ Int32(exactly: $0) != nil }) else {
            throw malformed(operation, "has a \(parameter) that is not 32-bit integers")
        }
        return integers
    }

    func integer(_ parameter: String, _ operation: Operation) throws -> Int? {
        try integers(parameter, operation)?.first
    }

    func float(_ parameter: String, _ operation: Operation) throws -> Float? {
        try constant(parameter, operation)?.floats.first
    }

    func bool(_ parameter: String, _ operation: Operation) throws -> Bool {
        try integer(parameter, operation) ?? 0 != 0
    }

    func unsupported(_ operation: Operation, _ reason: String? = nil) -> ImportError.Problem {
        .unsupported([.init(operation: operation.type, node: operation.name, reason: reason)])
    }

    func malformed(_ operation: Operation, _ reason: String) -> ImportError.Problem {
        .malformed(reason: "the operation \(operation.name.debugDescription) (\(operation.type)) \(reason)")
    }
}

extension MILImporter {
    /// Merges the factors and addends that converters add directly after the image into the input normalization.
    ///
    /// - Returns: The merged operations.
    private mutating func mergeNormalization(
        of image: inout CoreMLImage, in operations: [Operation]
    ) throws -> Set<String> {
        guard let normalization = image.normalization, normalization.mean.allSatisfy({ $0 == 0 }),
            image.arrayShape == nil
        else { return [] }
        var (name, skipped): (String, Set<String>) = (image.name, [])
        let channels = image.shape.channels
        var (scale, shift) = ([Float](repeating: 1, count: channels), [Float](repeating: 0, count: channels))
        let reading = operations.reduce(into: [String: [Operation]]()) { reading, operation in
            for name in operation.names { reading[name, default: []].append(operation) }
        }
        for operation in operations where operation.type == "const" {
            stored[operation.name] = operation.attributes["val"]
        }
        while let next = reading[name], next.count == 1, let operation = next.first,
            ["mul", "add", "sub", "real_div"].contains(operation.type),
            case .name(name)? = operation.inputs["x"]?.first,
            let result = operation.outputs.first, activations[result] == nil,
            let operand = try? constant("y", operation), let values = broadcast(operand, channels)
        {
            var changed = (scale, shift)
            for channel in 0..<channels {
                let value = values[channel]
                switch operation.type {
                case "mul": changed = (changed.0.times(value, channel), changed.1.times(value, channel))
                case "real_div": changed = (changed.0.times(1 / value, channel), changed.1.times(1 / value, channel))
                case "add": changed.1[channel] += value
                default: changed.1[channel] -= value
                }
            }
            guard (changed.0 + changed.1).allSatisfy(\.isFinite), !changed.0.contains(0) else { break }
            (scale, shift) = changed
            activations[result] = activations[name]
            skipped.insert(operation.name)
            name = result
        }
        // The normalization is in the order red, green, blue.
        if image.isBGR { (scale, shift) = (scale.reversed(), shift.reversed()) }
        image.normalization = ModelImporter.InputNormalization(
            mean: zip(shift, scale).map { 0 - $0 / $1 }, scale: scale)
        return skipped
    }

    /// Returns one value per channel; nil if the constant has another shape.
    private func broadcast(_ constant: Constant, _ channels: Int) -> [Float]? {
        if constant.count == 1, let number = constant.floats.first { return Array(repeating: number, count: channels) }
        let isForChannels =
            constant.count == channels && constant.shape.count >= 3 && constant.shape.suffix(2) == [1, 1]
        return isForChannels ? constant.floats : nil
    }
}

extension [Float] {
    fileprivate func times(_ factor: Float, _ index: Int) -> [Float] {
        var result = self
        result[index] *= factor
        return result
    }
}
