/// Decides which buffers a plan needs, when each is alive and which activations share one.
///
/// Time runs 0, 1, … over the operations forward, then over the same operations backward; a buffer lives from its first
/// writer to its last reader.
struct PlanCompiler {
    /// An activation's values and gradient.
    struct Pair {
        var values: Arena.Buffer
        var gradient: Arena.Buffer?
    }

    /// Where a layer writes the gradient of one input, and where that is added when another reader wrote first.
    struct InputGradient {
        let buffer: Arena.Buffer
        let addedTo: Arena.Buffer?
    }

    /// The buffers of one operation.
    struct Buffers {
        var output: Pair
        /// Where moments of the output are recorded for those who ask for them.
        var outputMoments: MomentsBuffer?
        var inputGradients: [InputGradient?]
        /// What the layer asked for beside its activations.
        let memory: LayerMemory
        var saved: Arena.Buffer
        /// Where its prepared and its arranged memory begin, in bytes.
        var transformedWeightsOffset: Int
        var packedWeightsOffset: Int
        var runsBackward: Bool
    }

    /// Room for the moments of so many blocks.
    struct MomentsBuffer {
        let buffer: Arena.Buffer
        let blocks: Int
    }

    let operations: [Operation]
    private let input: TensorShape
    private let options: ExecutionPlan.Options
    private let training: Bool
    /// For each operation, those that read its result.
    private let readers: [[Int]]
    /// Whether the gradient of an operation's result is needed.
    private let needsGradient: [Bool]
    private(set) var arena = Arena()
    /// What the operations keep of the parameters, in bytes.
    private(set) var transformedWeightsByteCount = 0
    private(set) var packedWeightsByteCount = 0

    init(_ network: Network, layout: ParameterLayout, options: ExecutionPlan.Options) {
        operations = Lowering.operations(of: network, layout: layout, options: options)
        input = network.input
        self.options = options
        training = options.mode == .training
        var readers = [[Int]](repeating: [], count: operations.count)
        var needs: [Bool] = []
        for (place, operation) in operations.enumerated() {
            for source in operation.sources where source >= 0 { readers[source].append(place) }
            let trains = !operation.isFrozen && operation.entries.contains { $0.parameter.role != .statistic }
            let passesOn = operation.sources.contains { $0 < 0 ? options.inputGradient : needs[$0] }
            needs.append(options.mode == .training && (trains || passesOn))
        }
        self.readers = readers
        needsGradient = needs
    }

    /// Asks the arena for every buffer; the offsets follow from `arena.layout()`.
    ///
    /// One scratch buffer serves all layers, since one runs at a time.
    mutating func assignBuffers() -> (input: Pair, scratch: Arena.Buffer, operations: [Buffers]) {
        let count = operations.count
        let end = training ? 2 * count : count
        var input = Pair(values: arena.buffer(bytes: bytes(self.input), at: 0), gradient: nil)
        // The caller may fill the input long before the first step and look at it after the last.
        arena.keep(input.values, at: end)
        if training && options.inputGradient {
            let gradient = arena.buffer(bytes: bytes(self.input), at: end)
            input.gradient = gradient
        }

        var nodes: [Buffers] = []
        var scratchBytes = 0
        var protected = Set<Arena.Buffer>()
        for place in 0..<count {
            let operation = operations[place]
            let values = valuesBuffer(of: place, input: input, nodes: nodes, protected: protected)
            arena.keep(values, at: place)
            for source in operation.sources {
                arena.keep(source < 0 ? input.values : nodes[source].output.values, at: place)
            }
            let runsBackward = needsGradient[place]
            if runsBackward {
                let time = backwardTime(place)
                if operation.kernel.backwardReads.contains(.output) {
                    arena.keep(values, at: time)
                    protected.insert(values)
                }
                if operation.kernel.backwardReads.contains(.inputs) {
                    for source in operation.sources {
                        let read = source < 0 ? input.values : nodes[source].output.values
                        arena.keep(read, at: time)
                        protected.insert(read)
                    }
                }
            }
            if place == count - 1 { arena.keep(values, at: end) }
            if let moments = momentsBuffer(for: operation, nodes: nodes) {
                arena.keep(moments.buffer, at: place)
                nodes[operation.sources[0]].outputMoments = moments
            }
            let memory = operation.kernel.memory(request(place))
            let saved = arena.buffer(bytes: memory.saved, at: place)
            if runsBackward { arena.keep(saved, at: backwardTime(place)) }
            scratchBytes = max(scratchBytes, memory.scratch)
            nodes.append(
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
        if training { assignGradients(input: &input, nodes: &nodes) }
        return (input, scratch, nodes)
    }

    /// The buffer that the operation at `place` writes its result into: its input's where that is safe, else its own.
    private mutating func valuesBuffer(
        of place: Int, input: Pair, nodes: [Buffers], protected: Set<Arena.Buffer>
    ) -> Arena.Buffer {
        let source = operations[place].sources[0]
        let kernel = operations[place].kernel
        if source >= 0 && readers[source].count == 1 {
            let candidate = nodes[source].output.values
            switch kernel.inPlace {
            case .view: return candidate
            case .overwriting where !protected.contains(candidate): return candidate
            case .overwriting, .never: break
            }
        }
        return arena.buffer(bytes: bytes(operations[place].output), at: place)
    }

    /// Where the moments of an operation's first input are recorded, if it asks for them and the input's maker records any.
    private mutating func momentsBuffer(for operation: Operation, nodes: [Buffers]) -> MomentsBuffer? {
        let source = operation.sources[0]
        guard training && !operation.isFrozen && operation.kernel.readsMoments && source >= 0 else { return nil }
        if let existing = nodes[source].outputMoments { return existing }
        guard let blocks = operations[source].kernel.momentBlocks(request(source)) else { return nil }
        let bytes = Moments.byteCount(channels: operations[source].output.channels, blocks: blocks)
        return MomentsBuffer(buffer: arena.buffer(bytes: bytes, at: source), blocks: blocks)
    }

    private mutating func assignGradients(input: inout Pair, nodes: inout [Buffers]) {
        let count = operations.count
        let last = count - 1
        if needsGradient[last] {
            let gradient = arena.buffer(bytes: bytes(operations[last].output), at: backwardTime(last))
            arena.keep(gradient, at: count)
            nodes[last].output.gradient = gradient
        }
        var inputWritten = false
        for place in stride(from: last, through: 0, by: -1) where needsGradient[place] {
            let time = backwardTime(place)
            guard let own = nodes[place].output.gradient else { continue }
            arena.keep(own, at: time)
            let operation = operations[place]
            for (slot, source) in operation.sources.enumerated() {
                guard source < 0 ? options.inputGradient : needsGradient[source] else { continue }
                let existing = source < 0 ? (inputWritten ? input.gradient : nil) : nodes[source].output.gradient
                if let existing {
                    arena.keep(existing, at: time)
                    let temporary = arena.buffer(bytes: bytes(operation.inputs[slot]), at: time)
                    nodes[place].inputGradients[slot] = InputGradient(buffer: temporary, addedTo: existing)
                } else if source < 0 {
                    guard let gradient = input.gradient else { continue }
                    arena.keep(gradient, at: time)
                    nodes[place].inputGradients[slot] = InputGradient(buffer: gradient, addedTo: nil)
                    inputWritten = true
                } else {
                    let gradient =
                        sharedGradient(of: place, slot: slot, own: own, values: nodes[source].output.values)
                        ?? arena.buffer(bytes: bytes(operation.inputs[slot]), at: time)
                    nodes[source].output.gradient = gradient
                    nodes[place].inputGradients[slot] = InputGradient(buffer: gradient, addedTo: nil)
                }
            }
        }
    }

    /// The memory that the gradient of an input shares with something that is not needed any more: the result's
    /// gradient `own`, or the input's `values`.
    private func sharedGradient(
        of place: Int, slot: Int, own: Arena.Buffer, values: Arena.Buffer
    ) -> Arena.Buffer? {
        let operation = operations[place]
        guard readers[operation.sources[slot]].count == 1 else { return nil }
        if operation.kernel.inPlace != .never { return own }
        let isLastRead = arena.lastTime(of: values) <= backwardTime(place)
        return slot == 0 && operation.kernel.gradientMayReplaceInput && isLastRead ? values : nil
    }

    private func backwardTime(_ place: Int) -> Int { 2 * operations.count - place }

    private func bytes(_ shape: TensorShape) -> Int { options.batchSize * shape.count * MemoryLayout<Float>.stride }

    private func request(_ place: Int) -> MemoryRequest {
        let operation = operations[place]
        return MemoryRequest(
            inputs: operation.inputs, output: operation.output, batch: options.batchSize, training: training,
            delaysPacking: options.delaysPacking, workers: options.workers, algorithm: operation.algorithm)
    }
}
