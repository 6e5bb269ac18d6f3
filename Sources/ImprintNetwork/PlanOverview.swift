extension Plan {
    /// What a plan does with one layer, or with several that it computes together.
    public struct LayerSummary: Hashable, Codable, Sendable {
        /// The node's name; of several, their names with + between.
        public let name: String
        /// The kind of layer, of several the first one's.
        public let kind: String
        /// The way in which it is computed.
        public let algorithm: Algorithm
        /// The shapes of what it reads, for one image.
        public let inputs: [Shape]
        /// The shape of its result, for one image.
        public let output: Shape
        /// How many numbers of it are trained.
        public let parameterCount: Int
        /// How many multiplications, each with an addition, a forward pass takes for one image by the layer's formula;
        /// the algorithm may do with fewer.
        public let multiplications: Int
        /// The bytes of its result for the whole batch, in memory of its own or of another result's.
        public let activationByteCount: Int
        /// The bytes that it keeps beside for the backward pass.
        public let savedByteCount: Int
        /// The bytes that it needs while it is computed; all layers share the memory of the one that needs most.
        public let scratchByteCount: Int
        /// The bytes that it keeps of what it made of its parameters.
        public let preparedByteCount: Int
    }

    /// What a plan does and the memory that it takes, found without taking that memory.
    public struct Overview: Hashable, Codable, Sendable {
        /// The largest number of images at once.
        public let batchSize: Int
        /// What the plan is for.
        public let mode: Mode
        /// How many threads share the work; each has scratch memory of its own.
        public let threads: Int
        /// What it does with each layer, in order of execution.
        public let layers: [LayerSummary]
        /// The layers' multiplications together, at most `Int.max`.
        public let multiplications: Int
        /// The bytes that activations, their gradients, saved and scratch memory take together, places shared.
        public let arenaByteCount: Int
        /// The bytes of the gradients of the parameters.
        public let gradientByteCount: Int
        /// The bytes of what all layers keep of what they made of their parameters.
        public let preparedByteCount: Int

        /// Compiles `network` as `Plan` does.
        public init(_ network: Network, options: Options) {
            let layout = ParameterLayout(network)
            var compiler = PlanCompiler(network, layout: layout, options: options)
            let buffers = compiler.assignBuffers()
            layers = zip(compiler.operations, buffers.operations).map { operation, buffers in
                LayerSummary(
                    name: operation.name, kind: operation.kind, algorithm: operation.algorithm,
                    inputs: operation.inputs, output: operation.output,
                    parameterCount: operation.entries
                        .reduce(0) { $0 + ($1.parameter.role == .statistic ? 0 : $1.parameter.count) },
                    multiplications: operation.layer.multiplications(for: operation.inputs),
                    activationByteCount: options.batchSize * operation.output.count * MemoryLayout<Float>.stride,
                    savedByteCount: buffers.memory.saved, scratchByteCount: buffers.memory.scratch,
                    preparedByteCount: buffers.memory.prepared + buffers.memory.arranged)
            }
            multiplications = saturatingSum(layers.map(\.multiplications))
            batchSize = options.batchSize
            mode = options.mode
            threads = options.workers.count
            arenaByteCount = compiler.arena.layout().byteCount
            gradientByteCount =
                options.mode == .training ? layout.trainableCount * MemoryLayout<Float>.stride : 0
            preparedByteCount = compiler.preparedByteCount + compiler.arrangedByteCount
        }
    }
}
