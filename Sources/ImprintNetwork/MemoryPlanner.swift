/// Plans the memory of an execution plan by liveness analysis: the buffers, their lifetimes, and the activations that share a
/// buffer.
///
/// Times count the operations of the forward pass from 0, then the operations of the backward pass in reverse order. A buffer is
/// live from its first write to its last read.
struct MemoryPlanner {
    /// The buffers of an activation's values and gradient.
    struct Pair {
        var values: Arena.Buffer
        var gradient: Arena.Buffer?
    }

    /// The buffer that an operation writes the gradient of an input to.
    struct InputGradient {
        let buffer: Arena.Buffer
        /// The buffer that the gradient is added to, if another reader of the input has written its gradient before.
        let addedTo: Arena.Buffer?
    }

    /// The buffers of one operation.
    struct Buffers {
        var output: Pair
        /// The moments of the output; nil if no operation reads them.
        var outputMoments: MomentsBuffer?
        var inputGradients: [InputGradient?]
        /// The memory of the layer besides its activations.
        let memory: LayerMemory
        var saved: Arena.Buffer
        /// The offsets of its transformed and its packed weights, in bytes.
        var transformedWeightsOffset: Int
        var packedWeightsOffset: Int
        var runsBackward: Bool
    }

    /// A buffer for the moments of at most `blocks` blocks.
    struct MomentsBuffer {
        let buffer: Arena.Buffer
        let blocks: Int
    }

    /// The buffers of all activations and operations.
    struct Assignment {
        /// The network's input.
        let input: Pair
        /// The scratch buffer, which all operations share because they run one after the other.
        let scratch: Arena.Buffer
        let operations: [Buffers]
    }

    private let operations: [PlanOperation]
    private let input: TensorShape
    private let options: ExecutionPlan.Options
    private let training: Bool
    /// The index of a node whose first input stays in memory after the last operation, or nil for none.
    var keptNode: Int?
    /// For each operation, the operations that read its output.
    private let readers: [[Int]]
    /// Whether the gradient of an operation's output is needed.
    private let needsGradient: [Bool]
    private(set) var arena = Arena()
    /// The sizes of the transformed and the packed weights of all operations, in bytes.
    private(set) var transformedWeightsByteCount = 0
    private(set) var packedWeightsByteCount = 0

    /// Creates a planner for fused operations, in order of execution.
    /// - Parameter input: The shape of the network's input.
    init(_ operations: [PlanOperation], input: TensorShape, options: ExecutionPlan.Options) {
        self.operations = operations
        self.input = input
        self.options = options
        training = options.mode == .training
        let dataflow = Dataflow(operations.map(\.sources), options: options) { index in
            !operations[index].isFrozen && operations[index].entries.contains { $0.parameter.role != .statistic }
        }
        readers = dataflow.readers
        needsGradient = dataflow.needsGradient
    }

    /// Requests all buffers from the arena; `arena.layout()` then returns their offsets.
    mutating func assignBuffers() -> Assignment {
        let count = operations.count
        let end = training ? 2 * count : count
        var input = Pair(values: arena.buffer(bytes: bytes(self.input), at: 0), gradient: nil)
        // The caller may write the input long before the first operation and read it after the last one.
        arena.keep(input.values, at: end)
        if training && options.inputGradient {
            let gradient = arena.buffer(bytes: bytes(self.input), at: end)
            input.gradient = gradient
        }

        var buffers: [Buffers] = []
        var scratchBytes = 0
        var protected = Set<Arena.Buffer>()
        for index in 0..<count {
            let operation = operations[index]
            let values = valuesBuffer(of: index, buffers: buffers, protected: protected)
            let inputs = operation.sources.map { $0 < 0 ? input.values : buffers[$0].output.values }
            for buffer in [values] + inputs { arena.keep(buffer, at: index) }
            if operation.nodeIndices[0] == keptNode, let first = inputs.first { arena.keep(first, at: end) }
            let runsBackward = needsGradient[index]
            if runsBackward { protected.formUnion(keepForBackward(index, values: values, inputs: inputs)) }
            if index == count - 1 { arena.keep(values, at: end) }
            if let moments = momentsBuffer(for: operation, buffers: buffers) {
                arena.keep(moments.buffer, at: index)
                buffers[operation.sources[0]].outputMoments = moments
            }
            let memory = operation.kernel.memory(request(index))
            let saved = arena.buffer(bytes: memory.saved, at: index)
            if runsBackward { arena.keep(saved, at: backwardTime(index)) }
            scratchBytes = max(scratchBytes, memory.scratch)
            buffers.append(
                Buffers(
                    output: Pair(values: values, gradient: nil),
                    inputGradients: operation.sources.map { _ in nil },
                    memory: memory, saved: saved, transformedWeightsOffset: transformedWeightsByteCount,
                    packedWeightsOffset: packedWeightsByteCount,
                    runsBackward: runsBackward))
            transformedWeightsByteCount += roundedUp(memory.transformedWeights, to: 64)
            packedWeightsByteCount += roundedUp(memory.packedWeights, to: 64)
        }
        let scratch = arena.buffer(bytes: scratchBytes, at: 0)
        arena.keep(scratch, at: end)
        if training { assignGradients(input: &input, buffers: &buffers) }
        return Assignment(input: input, scratch: scratch, operations: buffers)
    }

    /// Keeps the activations that the backward pass of an operation reads.
    /// - Returns: Their buffers, which later operations must not overwrite.
    private mutating func keepForBackward(
        _ index: Int, values: Arena.Buffer, inputs: [Arena.Buffer]
    ) -> [Arena.Buffer] {
        let reads = operations[index].kernel.backwardReads
        let buffers = (reads.contains(.output) ? [values] : []) + (reads.contains(.inputs) ? inputs : [])
        for buffer in buffers { arena.keep(buffer, at: backwardTime(index)) }
        return buffers
    }

    /// Returns the output buffer of an operation: the buffer of its first input if it can run in place, otherwise a new one.
    private mutating func valuesBuffer(
        of index: Int, buffers: [Buffers], protected: Set<Arena.Buffer>
    ) -> Arena.Buffer {
        let operation = operations[index]
        let source = operation.sources[0]
        if source >= 0 && readers[source].count == 1 && canRunInPlace(operation) {
            let candidate = buffers[source].output.values
            if operation.kernel.inPlace == .view || !protected.contains(candidate) { return candidate }
        }
        return arena.buffer(
            bytes: options.batchSize * operation.output.count * operation.bytesPerValue, at: index)
    }

    /// Whether the output of an operation may share memory with its first input, which must have the same size.
    private func canRunInPlace(_ operation: PlanOperation) -> Bool {
        operation.kernel.inPlace != .never && operation.inputs[0].count == operation.output.count
    }

    /// Returns the buffer of the moments of an operation's first input; nil if it does not read them or its producer does not record them.
    private mutating func momentsBuffer(for operation: PlanOperation, buffers: [Buffers]) -> MomentsBuffer? {
        let source = operation.sources[0]
        guard training && !operation.isFrozen && operation.kernel.readsMoments && source >= 0 else { return nil }
        if let existing = buffers[source].outputMoments { return existing }
        guard let blocks = operations[source].kernel.momentBlocks(request(source)) else { return nil }
        let bytes = Moments.byteCount(channels: operations[source].output.channels, blocks: blocks)
        return MomentsBuffer(buffer: arena.buffer(bytes: bytes, at: source), blocks: blocks)
    }

    private mutating func assignGradients(input: inout Pair, buffers: inout [Buffers]) {
        let count = operations.count
        let last = count - 1
        if needsGradient[last] {
            let gradient = arena.buffer(bytes: bytes(operations[last].output), at: backwardTime(last))
            arena.keep(gradient, at: count)
            buffers[last].output.gradient = gradient
        }
        var inputWritten = false
        for index in stride(from: last, through: 0, by: -1) where needsGradient[index] {
            let time = backwardTime(index)
            guard let outputGradient = buffers[index].output.gradient else { continue }
            arena.keep(outputGradient, at: time)
            let operation = operations[index]
            for (slot, source) in operation.sources.enumerated() {
                guard source < 0 ? options.inputGradient : needsGradient[source] else { continue }
                let existing = source < 0 ? (inputWritten ? input.gradient : nil) : buffers[source].output.gradient
                if let existing {
                    arena.keep(existing, at: time)
                    let temporary = arena.buffer(bytes: bytes(operation.inputs[slot]), at: time)
                    buffers[index].inputGradients[slot] = InputGradient(buffer: temporary, addedTo: existing)
                } else if source < 0 {
                    guard let gradient = input.gradient else { continue }
                    arena.keep(gradient, at: time)
                    buffers[index].inputGradients[slot] = InputGradient(buffer: gradient, addedTo: nil)
                    inputWritten = true
                } else {
                    let gradient =
                        sharedGradient(
                            of: index, slot: slot, outputGradient: outputGradient,
                            values: buffers[source].output.values)
                        ?? arena.buffer(bytes: bytes(operation.inputs[slot]), at: time)
                    buffers[source].output.gradient = gradient
                    buffers[index].inputGradients[slot] = InputGradient(buffer: gradient, addedTo: nil)
                }
            }
        }
    }

    /// Returns a buffer that the gradient of an input can overwrite: the gradient of the output, or the values of the input.
    /// - Returns: nil if both are still needed.
    private func sharedGradient(
        of index: Int, slot: Int, outputGradient: Arena.Buffer, values: Arena.Buffer
    ) -> Arena.Buffer? {
        let operation = operations[index]
        guard readers[operation.sources[slot]].count == 1 else { return nil }
        if slot == 0 && canRunInPlace(operation) { return outputGradient }
        let isLastRead = arena.lastTime(of: values) <= backwardTime(index)
        return slot == 0 && operation.kernel.gradientMayReplaceInput && isLastRead ? values : nil
    }

    private func backwardTime(_ index: Int) -> Int { 2 * operations.count - index }

    private func bytes(_ shape: TensorShape) -> Int { options.batchSize * shape.count * MemoryLayout<Float>.stride }

    /// The memory request of an operation.
    func request(_ index: Int) -> MemoryRequest {
        let operation = operations[index]
        return MemoryRequest(
            inputs: operation.inputs, output: operation.output, batch: options.batchSize, training: training,
            delaysPacking: options.delaysPacking, usesBFloat16: options.usesBFloat16, workers: options.workers,
            algorithm: operation.algorithm)
    }
}
