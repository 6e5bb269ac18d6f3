/// Turns the operations of a plan for prediction into operations on 8-bit integers, where the network is quantized.
///
/// Convolutions and dense layers with quantized weights read uint8 activations. Operations that only select or move values use uint8 if their
/// readers read uint8. Where an operation needs the other format, a conversion precedes it.
struct QuantizedOperations {
    private let operations: [PlanOperation]
    private let network: Network
    private let quantization: Quantization
    /// The head if it must read a float32 activation, because `ExecutionPlan.headInput` returns it.
    private let floatReader: Int?
    /// See `activations(of:in:_:)`.
    private let activations: [Int: Quantization.Activation]
    /// For each operation, whether operations read its output as uint8, and whether it reads uint8 itself.
    private var isReadAsBytes: [Bool] = []
    private var readsBytes: [Bool] = []
    private var result: [PlanOperation] = []
    /// For each operation, the index in `result` of the operation with its output as float32 and as uint8; −1 is the network's input.
    private var floats: [Int: Int] = [-1: -1]
    private var bytes: [Int: Int] = [:]

    /// Returns the operations of a plan, some of them on integers.
    static func converted(
        _ operations: [PlanOperation], of network: Network, _ quantization: Quantization, options: ExecutionPlan.Options
    ) -> [PlanOperation] {
        var conversion = QuantizedOperations(
            operations: operations, network: network, quantization: quantization,
            floatReader: options.keepsHeadInput ? network.headIndex : nil)
        conversion.convert()
        return conversion.result
    }

    private init(operations: [PlanOperation], network: Network, quantization: Quantization, floatReader: Int?) {
        self.operations = operations
        self.network = network
        self.quantization = quantization
        self.floatReader = floatReader
        activations = Self.activations(of: operations, in: network, quantization)
    }

    /// An output whose values operations read as uint8.
    struct RoundedOutput {
        /// The index of the last node of the operation that computes the output; nil for the network's input.
        let node: Int?
        let activation: Quantization.Activation
        /// The indices of the nodes of the operations that read uint8; nil if all operations read the rounded values.
        let readers: [Int]?
    }

    /// Returns the outputs whose values operations read as uint8, except those of operations that only move values.
    static func roundedOutputs(
        of operations: [PlanOperation], in network: Network, _ quantization: Quantization
    ) -> [RoundedOutput] {
        var conversion = QuantizedOperations(
            operations: operations, network: network, quantization: quantization, floatReader: nil)
        conversion.chooseFormats()
        return (-1..<operations.count).compactMap { source in
            let readers = operations.indices.filter {
                conversion.readsBytes[$0] && operations[$0].sources.contains(source)
            }
            guard !readers.isEmpty, source < 0 || !conversion.moves(operations[source]),
                let activation = conversion.activations[source]
            else { return nil }
            // The output of an int8 operation exists only as uint8; others are rounded for some of their readers.
            let isInteger = source >= 0 && conversion.readsBytes[source]
            return RoundedOutput(
                node: source < 0 ? nil : operations[source].nodeIndices.last, activation: activation,
                readers: isInteger ? nil : readers.flatMap { operations[$0].nodeIndices })
        }
    }

    private mutating func chooseFormats() {
        // Readers come later, so in reverse order.
        isReadAsBytes = [Bool](repeating: false, count: operations.count)
        readsBytes = isReadAsBytes
        for (index, operation) in operations.enumerated().reversed() {
            readsBytes[index] =
                moves(operation)
                ? isReadAsBytes[index] && activations[index] != nil : convolution(of: operation, output: nil) != nil
            guard readsBytes[index] else { continue }
            for source in operation.sources where source >= 0 { isReadAsBytes[source] = true }
        }
    }

    private mutating func convert() {
        chooseFormats()
        for (index, operation) in operations.enumerated() {
            let output = isReadAsBytes[index] ? activations[index] : nil
            if let average = average(of: operation) {
                append(operation, average, [bytes[operation.sources[0]] ?? 0], isInteger: false)
                floats[index] = result.count - 1
            } else if readsBytes[index], let kernel = integerKernel(of: operation, output: output) {
                let isHead = floatReader.map(operation.nodeIndices.contains) ?? false
                let sources = operation.sources.map { isHead ? byteCopy($0, for: operation) : byteSource($0) }
                append(operation, kernel, sources, isInteger: output != nil)
                if output == nil { floats[index] = result.count - 1 } else { bytes[index] = result.count - 1 }
            } else {
                append(operation, operation.kernel, operation.sources.map { floatSource($0) }, isInteger: false)
                floats[index] = result.count - 1
            }
        }
        // The output of the network is float32.
        _ = floatSource(operations.count - 1)
    }

    // MARK: Quantizations

    /// The most channels of all outputs together that have the quantization of other outputs, which limits the memory for untrusted files.
    private static let mostMovedChannels = 1 << 22

    /// Returns the quantization of the output of each operation, and of the network's input (−1), as far as it is known.
    ///
    /// The output of an operation that only moves values has the quantization of its inputs, unless it has more channels than a convolution or
    /// dense layer can read in int8.
    static func activations(
        of operations: [PlanOperation], in network: Network, _ quantization: Quantization
    ) -> [Int: Quantization.Activation] {
        var result: [Int: Quantization.Activation] = [:]
        if let input = quantization.activations[Network.inputName], input.scales.count == network.input.channels {
            result[-1] = input
        }
        var movedChannels = 0
        for (index, operation) in operations.enumerated() {
            let channels = operation.output.channels
            guard moves(operation, in: network) else {
                if let name = operation.nodeIndices.last.map({ network.nodes[$0].name }),
                    let activation = quantization.activations[name], activation.scales.count == channels
                {
                    result[index] = activation
                }
                continue
            }
            let parts = operation.sources.compactMap { result[$0] }
            guard parts.count == operation.sources.count, channels <= QuantizedConvolution.longestWindow,
                movedChannels + channels <= mostMovedChannels
            else { continue }
            movedChannels += channels
            result[index] =
                network.nodes[operation.nodeIndices[0]].layer is Flatten
                ? parts[0].repeated(operation.inputs[0].pixels) : .concatenated(parts)
        }
        return result
    }

    // MARK: Kernels

    private func layers(of operation: PlanOperation) -> [any Layer] {
        operation.nodeIndices.map { network.nodes[$0].layer }
    }

    /// Whether an operation only selects or moves values.
    static func moves(_ operation: PlanOperation, in network: Network) -> Bool {
        let layer = network.nodes[operation.nodeIndices[0]].layer
        return operation.nodeIndices.count == 1
            && (layer is MaxPool || layer is Flatten || layer is Dropout || layer is Concat)
    }

    private func moves(_ operation: PlanOperation) -> Bool { Self.moves(operation, in: network) }

    /// The kernel of an operation that reads uint8.
    private func integerKernel(of operation: PlanOperation, output: Quantization.Activation?) -> (any LayerKernel)? {
        guard moves(operation) else { return convolution(of: operation, output: output) }
        return switch layers(of: operation)[0] {
        case let pool as MaxPool: QuantizedMaxPool(pool)
        case is Concat: QuantizedConcat()
        default: QuantizedCopy()
        }
    }

    /// The kernel of a global average that reads uint8, which takes less memory traffic; nil if its input exists as float32.
    private func average(of operation: PlanOperation) -> QuantizedAverage? {
        let source = operation.sources[0]
        guard layers(of: operation).first is GlobalAveragePool, bytes[source] != nil, floats[source] == nil,
            // The sums of more pixels could overflow.
            operation.inputs[0].pixels <= 1 << 23
        else {
            return nil
        }
        return activations[source].map(QuantizedAverage.init)
    }

    /// The integer kernel of a convolution or dense layer; nil if the quantization does not contain it.
    /// - Parameter output: The quantization of the output; nil for float32.
    private func convolution(of operation: PlanOperation, output: Quantization.Activation?) -> QuantizedConvolution? {
        guard let weights = quantization.weights[network.nodes[operation.nodeIndices[0]].name] else { return nil }
        let inputs = operation.sources.map { activations[$0] }
        let prepacked: PrepackedConvolution
        switch operation.kernel {
        case let kernel as PrepackedConvolution: prepacked = kernel
        case let dense as Dense:
            prepacked = PrepackedConvolution(dense)
        default: return nil
        }
        guard let input = inputs[0], inputs.allSatisfy({ $0 != nil }),
            weights.scales.count == operation.output.channels,
            QuantizedConvolution.isPossible(prepacked, over: operation.inputs[0])
        else { return nil }
        return QuantizedConvolution(
            prepacked, input: input, shortcut: inputs.count > 1 ? inputs[1] : nil, output: output,
            weightScales: weights.scales)
    }

    // MARK: Operations

    private mutating func append(
        _ operation: PlanOperation, _ kernel: any LayerKernel, _ sources: [Int], isInteger: Bool
    ) {
        var copy = operation
        copy.kernel = kernel
        copy.sources = sources
        copy.isInteger = isInteger
        result.append(copy)
    }

    /// Appends a conversion of an operation's output.
    private mutating func appendConversion(_ kernel: any LayerKernel, of source: Int, from: Int, isInteger: Bool) -> Int
    {
        let shape = source < 0 ? network.input : operations[source].output
        let name = source < 0 ? Network.inputName : operations[source].name
        result.append(
            PlanOperation(
                nodeIndices: source < 0 ? [-1] : operations[source].nodeIndices, name: name,
                kind: isInteger ? "quantize" : "dequantize", kernel: kernel, sources: [from], inputs: [shape],
                output: shape, entries: [], isFrozen: false, algorithm: .direct, isInteger: isInteger))
        return result.count - 1
    }

    /// The index of the operation with an output as float32.
    private mutating func floatSource(_ source: Int) -> Int {
        if let index = floats[source] { return index }
        guard let from = bytes[source], let activation = activations[source] else {
            preconditionFailure("an operation has no output")
        }
        let index = appendConversion(Dequantize(activation), of: source, from: from, isInteger: false)
        floats[source] = index
        return index
    }

    /// The index of the operation with an output as uint8.
    private mutating func byteSource(_ source: Int) -> Int {
        if let index = bytes[source] { return index }
        let index = quantized(source)
        bytes[source] = index
        return index
    }

    /// The index of a conversion to uint8 that belongs to the nodes of its only reader, so that `ExecutionPlan.headInput` finds its input.
    private mutating func byteCopy(_ source: Int, for reader: PlanOperation) -> Int {
        let index = quantized(source)
        result[index].nodeIndices = reader.nodeIndices
        return index
    }

    private mutating func quantized(_ source: Int) -> Int {
        guard let activation = activations[source] else { preconditionFailure("an activation has no quantization") }
        let from = floatSource(source)
        return appendConversion(Quantize(activation), of: source, from: from, isInteger: true)
    }
}
