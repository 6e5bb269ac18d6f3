/// Decides which buffers a plan needs, when each is alive and which activations share one.
///
/// Time runs 0, 1, … over the nodes forward, then over the same nodes backward; a buffer lives from its first writer
/// to its last reader.
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

    /// The buffers of one node.
    struct Node {
        var output: Pair
        var inputGradients: [InputGradient?]
        var saved: Arena.Buffer
        var runsBackward: Bool
    }

    private let network: Network
    private let options: Plan.Options
    private let training: Bool
    /// For each node, the nodes that read its result.
    private let readers: [[Int]]
    /// Whether the gradient of a node's result is needed.
    private let needsGradient: [Bool]
    private(set) var arena = Arena()

    init(_ network: Network, layout: ParameterLayout, options: Plan.Options) {
        self.network = network
        self.options = options
        training = options.mode == .training
        var readers = [[Int]](repeating: [], count: network.nodes.count)
        var needs: [Bool] = []
        for (place, node) in network.nodes.enumerated() {
            for source in network.sources[place] where source >= 0 { readers[source].append(place) }
            let trains =
                !options.frozen.contains(node.name)
                && node.layer.parameters(for: network.inputShapes(of: place)).contains { $0.role != .statistic }
            let passesOn = network.sources[place].contains { $0 < 0 ? options.inputGradient : needs[$0] }
            needs.append(options.mode == .training && (trains || passesOn))
        }
        self.readers = readers
        needsGradient = needs
    }

    /// Asks the arena for every buffer; the offsets follow from `arena.layout()`.
    ///
    /// One scratch buffer serves all layers, since one runs at a time.
    mutating func assignBuffers() -> (input: Pair, scratch: Arena.Buffer, nodes: [Node]) {
        let count = network.nodes.count
        let end = training ? 2 * count : count
        var input = Pair(values: arena.buffer(bytes: bytes(network.input), at: 0), gradient: nil)
        // The caller may fill the input long before the first step and look at it after the last.
        arena.keep(input.values, at: end)
        if training && options.inputGradient {
            let gradient = arena.buffer(bytes: bytes(network.input), at: end)
            input.gradient = gradient
        }

        var nodes: [Node] = []
        var scratchBytes = 0
        var protected = Set<Arena.Buffer>()
        for place in 0..<count {
            let node = network.nodes[place]
            let values = valuesBuffer(of: place, input: input, nodes: nodes, protected: protected)
            arena.keep(values, at: place)
            for source in network.sources[place] {
                arena.keep(source < 0 ? input.values : nodes[source].output.values, at: place)
            }
            let runsBackward = needsGradient[place]
            if runsBackward {
                let time = backwardTime(place)
                if node.layer.backwardReads.contains(.output) {
                    arena.keep(values, at: time)
                    protected.insert(values)
                }
                if node.layer.backwardReads.contains(.inputs) {
                    for source in network.sources[place] {
                        let read = source < 0 ? input.values : nodes[source].output.values
                        arena.keep(read, at: time)
                        protected.insert(read)
                    }
                }
            }
            if place == count - 1 { arena.keep(values, at: end) }
            let memory = node.layer.memory(request(place))
            let saved = arena.buffer(bytes: memory.saved, at: place)
            if runsBackward { arena.keep(saved, at: backwardTime(place)) }
            scratchBytes = max(scratchBytes, memory.scratch)
            nodes.append(
                Node(
                    output: Pair(values: values, gradient: nil),
                    inputGradients: network.sources[place].map { _ in nil },
                    saved: saved, runsBackward: runsBackward))
        }
        let scratch = arena.buffer(bytes: scratchBytes, at: 0)
        arena.keep(scratch, at: end)
        if training { assignGradients(input: &input, nodes: &nodes) }
        return (input, scratch, nodes)
    }

    /// The buffer that the node at `place` writes its result into: its input's where that is safe, else one of its own.
    private mutating func valuesBuffer(
        of place: Int, input: Pair, nodes: [Node], protected: Set<Arena.Buffer>
    ) -> Arena.Buffer {
        let source = network.sources[place][0]
        let layer = network.nodes[place].layer
        if source >= 0 && readers[source].count == 1 {
            let candidate = nodes[source].output.values
            switch layer.inPlace {
            case .view: return candidate
            case .overwriting where !protected.contains(candidate): return candidate
            case .overwriting, .never: break
            }
        }
        return arena.buffer(bytes: bytes(network.shapes[place]), at: place)
    }

    private mutating func assignGradients(input: inout Pair, nodes: inout [Node]) {
        let count = network.nodes.count
        let last = count - 1
        if needsGradient[last] {
            let gradient = arena.buffer(bytes: bytes(network.shapes[last]), at: backwardTime(last))
            arena.keep(gradient, at: count)
            nodes[last].output.gradient = gradient
        }
        var inputWritten = false
        for place in stride(from: last, through: 0, by: -1) where needsGradient[place] {
            let time = backwardTime(place)
            guard let own = nodes[place].output.gradient else { continue }
            arena.keep(own, at: time)
            let shapes = network.inputShapes(of: place)
            for (slot, source) in network.sources[place].enumerated() {
                guard source < 0 ? options.inputGradient : needsGradient[source] else { continue }
                let existing = source < 0 ? (inputWritten ? input.gradient : nil) : nodes[source].output.gradient
                if let existing {
                    arena.keep(existing, at: time)
                    let temporary = arena.buffer(bytes: bytes(shapes[slot]), at: time)
                    nodes[place].inputGradients[slot] = InputGradient(buffer: temporary, addedTo: existing)
                } else if source < 0 {
                    guard let gradient = input.gradient else { continue }
                    arena.keep(gradient, at: time)
                    nodes[place].inputGradients[slot] = InputGradient(buffer: gradient, addedTo: nil)
                    inputWritten = true
                } else {
                    let shared = network.nodes[place].layer.inPlace != .never && readers[source].count == 1
                    let gradient = shared ? own : arena.buffer(bytes: bytes(shapes[slot]), at: time)
                    nodes[source].output.gradient = gradient
                    nodes[place].inputGradients[slot] = InputGradient(buffer: gradient, addedTo: nil)
                }
            }
        }
    }

    private func backwardTime(_ place: Int) -> Int { 2 * network.nodes.count - place }

    private func bytes(_ shape: Shape) -> Int { options.batchSize * shape.count * MemoryLayout<Float>.stride }

    private func request(_ place: Int) -> MemoryRequest {
        let inputs = network.inputShapes(of: place)
        return MemoryRequest(
            inputs: inputs, output: network.shapes[place], batch: options.batchSize, training: training,
            workers: options.workers, algorithm: network.nodes[place].layer.algorithm(for: inputs))
    }
}
