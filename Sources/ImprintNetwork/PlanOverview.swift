extension ExecutionPlan {
    /// What a plan does with one layer, or with several that it computes together.
    package struct LayerSummary: Hashable, Codable, Sendable {
        /// The node's name; of several, their names with + between.
        package let name: String
        /// The kind of layer, of several the first one's.
        package let kind: String
        /// The way in which it is computed.
        package let algorithm: Algorithm
        /// The shapes of what it reads, for one image.
        package let inputs: [TensorShape]
        /// The shape of its result, for one image.
        package let output: TensorShape
        /// How many numbers of it are trained.
        package let parameterCount: Int
        /// How many multiplications, each with an addition, a forward pass takes for one image by the layer's formula;
        /// the algorithm may do with fewer.
        package let multiplications: Int
        /// The bytes of its result for the whole batch, in memory of its own or of another result's.
        package let activationByteCount: Int
        /// The bytes that it keeps beside for the backward pass.
        package let savedByteCount: Int
        /// The bytes that it needs while it is computed; all layers share the memory of the one that needs most.
        package let scratchByteCount: Int
        /// The bytes that it keeps of what it made of its parameters.
        package let transformedWeightsByteCount: Int

        private enum CodingKeys: String, CodingKey {
            case name, kind, algorithm, inputs, output, parameterCount, multiplications
            case activationByteCount, savedByteCount, scratchByteCount
            // The name of version 1.
            case transformedWeightsByteCount = "preparedByteCount"
        }
    }

    /// What a plan does and the memory that it takes, found without taking that memory.
    package struct Overview: Hashable, Codable, Sendable {
        /// The largest number of images at once.
        package let batchSize: Int
        /// What the plan is for.
        package let mode: Mode
        /// How many threads share the work; each has scratch memory of its own.
        package let threads: Int
        /// What it does with each layer, in order of execution.
        package let layers: [LayerSummary]
        /// The layers' multiplications together, at most `Int.max`.
        package let multiplications: Int
        /// The bytes that activations, their gradients, saved and scratch memory take together, places shared.
        package let arenaByteCount: Int
        /// The bytes of the gradients of the parameters.
        package let gradientByteCount: Int
        /// The bytes of what all layers keep of what they made of their parameters.
        package let transformedWeightsByteCount: Int

        private enum CodingKeys: String, CodingKey {
            case batchSize, mode, threads, layers, multiplications, arenaByteCount, gradientByteCount
            // The name of version 1.
            case transformedWeightsByteCount = "preparedByteCount"
        }

        /// Compiles `network` as `ExecutionPlan` does.
        package init(_ network: Network, options: Options) {
            let layout = ParameterLayout(network)
            var compiler = PlanCompiler(network, layout: layout, options: options)
            let buffers = compiler.assignBuffers()
            layers = zip(compiler.operations, buffers.operations).map { operation, buffers in
                LayerSummary(
                    name: operation.name, kind: operation.kind, algorithm: operation.algorithm,
                    inputs: operation.inputs, output: operation.output,
                    parameterCount: operation.entries
                        .reduce(0) { $0 + ($1.parameter.role == .statistic ? 0 : $1.parameter.count) },
                    multiplications: operation.kernel.multiplications(for: operation.inputs),
                    activationByteCount: options.batchSize * operation.output.count * MemoryLayout<Float>.stride,
                    savedByteCount: buffers.memory.saved, scratchByteCount: buffers.memory.scratch,
                    transformedWeightsByteCount: buffers.memory.transformedWeights + buffers.memory.packedWeights)
            }
            multiplications = saturatingSum(layers.map(\.multiplications))
            batchSize = options.batchSize
            mode = options.mode
            threads = options.workers.count
            arenaByteCount = compiler.arena.layout().byteCount
            gradientByteCount =
                options.mode == .training ? layout.trainableCount * MemoryLayout<Float>.stride : 0
            transformedWeightsByteCount = compiler.transformedWeightsByteCount + compiler.packedWeightsByteCount
        }
    }
}
