extension ExecutionPlan {
    /// A summary of one operation of a plan: a layer, or several fused layers.
    package struct LayerSummary: Hashable, Codable, Sendable {
        /// The name of the node, or the names of the fused nodes joined with +.
        package let name: String
        /// The kind of the layer, or of the first fused layer.
        package let kind: String
        /// The algorithm.
        package let algorithm: Algorithm
        /// The precision of its values and products: float32, bfloat16 or int8.
        package let precision: Precision
        /// The input shapes for one image.
        package let inputs: [TensorShape]
        /// The output shape for one image.
        package let output: TensorShape
        /// The number of trainable parameters.
        package let parameterCount: Int
        /// The number of multiply-accumulate operations of a forward pass over one image by the layer's formula.
        ///
        /// The algorithm may need fewer.
        package let multiplications: Int
        /// The size of its output for the whole batch in bytes, whether or not it shares memory.
        package let activationByteCount: Int
        /// The size in bytes of the additional memory that it saves for the backward pass.
        package let savedByteCount: Int
        /// The size of its scratch memory in bytes, which all operations share.
        package let scratchByteCount: Int
        /// The size of its transformed and packed weights in bytes.
        package let transformedWeightsByteCount: Int

        private enum CodingKeys: String, CodingKey {
            case name, kind, algorithm, precision, inputs, output, parameterCount, multiplications
            case activationByteCount, savedByteCount, scratchByteCount
            // The key of format version 1.
            case transformedWeightsByteCount = "preparedByteCount"
        }
    }

    /// The operations of a plan and its memory use, computed without allocating that memory.
    package struct Overview: Hashable, Codable, Sendable {
        /// The largest number of images per pass.
        package let batchSize: Int
        /// The purpose of the plan.
        package let mode: Mode
        /// The number of threads that share the work; the size of scratch memory depends on it.
        package let threads: Int
        /// The operations, in order of execution.
        package let layers: [LayerSummary]
        /// The number of multiply-accumulate operations of all layers, at most `Int.max`.
        package let multiplications: Int
        /// The size of the arena in bytes: activations, their gradients, saved and scratch memory.
        package let arenaByteCount: Int
        /// The size of the gradients of the parameters in bytes.
        package let gradientByteCount: Int
        /// The size of all transformed and packed weights in bytes.
        package let transformedWeightsByteCount: Int

        private enum CodingKeys: String, CodingKey {
            case batchSize, mode, threads, layers, multiplications, arenaByteCount, gradientByteCount
            // The key of format version 1.
            case transformedWeightsByteCount = "preparedByteCount"
        }

        /// Creates the overview of the plan that `ExecutionPlan` compiles with the same options.
        /// - Parameter quantization: The quantization of the parameters; nil for none.
        package init(_ network: Network, options: Options, quantization: Quantization? = nil) {
            let layout = ParameterLayout(network)
            let operations = OperatorFusion.operations(
                of: network, layout: layout, quantization: quantization, options: options)
            var planner = MemoryPlanner(operations, input: network.input, options: options)
            let buffers = planner.assignBuffers()
            layers = zip(operations, buffers.operations).enumerated().map { index, pair in
                let (operation, buffers) = pair
                return LayerSummary(
                    name: operation.name, kind: operation.kind, algorithm: operation.algorithm,
                    precision: operation.kernel.precision(planner.request(index)),
                    inputs: operation.inputs, output: operation.output,
                    parameterCount: operation.entries
                        .reduce(0) { $0 + ($1.parameter.role == .statistic ? 0 : $1.parameter.count) },
                    multiplications: operation.kernel.multiplications(for: operation.inputs),
                    activationByteCount: options.batchSize * operation.output.count * operation.bytesPerValue,
                    savedByteCount: buffers.memory.saved, scratchByteCount: buffers.memory.scratch,
                    transformedWeightsByteCount: buffers.memory.transformedWeights + buffers.memory.packedWeights)
            }
            multiplications = saturatingSum(layers.map(\.multiplications))
            batchSize = options.batchSize
            mode = options.mode
            threads = options.workers.count
            arenaByteCount = planner.arena.layout().byteCount
            gradientByteCount =
                options.mode == .training ? layout.trainableCount * MemoryLayout<Float>.stride : 0
            transformedWeightsByteCount = planner.transformedWeightsByteCount + planner.packedWeightsByteCount
        }
    }
}
