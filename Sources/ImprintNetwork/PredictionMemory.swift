extension Network {
    /// The memory of a prediction of one image on one thread, in bytes, computed without allocating that memory.
    package struct PredictionMemory: Hashable, Codable, Sendable {
        /// The parameters.
        package let parameterByteCount: Int
        /// The transformed and packed weights.
        package let transformedWeightsByteCount: Int
        /// The arena: activations and scratch memory.
        package let arenaByteCount: Int
        /// The total.
        package let byteCount: Int

        private enum CodingKeys: String, CodingKey {
            case parameterByteCount, arenaByteCount, byteCount
            // The key of format version 1.
            case transformedWeightsByteCount = "preparedByteCount"
        }

        /// Computes the memory of a prediction with `network`.
        /// - Parameter quantization: The quantization of its parameters; nil for none.
        package init(_ network: Network, quantization: Quantization? = nil) {
            let options = ExecutionPlan.Options(batchSize: 1, precision: .automatic)
            let plan = ExecutionPlan.Overview(network, options: options, quantization: quantization)
            parameterByteCount = ParameterLayout(network).count * MemoryLayout<Float>.stride
            transformedWeightsByteCount = plan.transformedWeightsByteCount
            arenaByteCount = plan.arenaByteCount
            byteCount = parameterByteCount + transformedWeightsByteCount + arenaByteCount
        }
    }
}
