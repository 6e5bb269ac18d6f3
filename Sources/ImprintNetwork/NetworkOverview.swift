extension Network {
    /// A summary of one layer of a network.
    package struct LayerOverview: Hashable, Codable, Sendable {
        /// The node's name.
        package let name: String
        /// The kind of layer.
        package let kind: String
        /// The names of the nodes that it reads.
        package let inputs: [String]
        /// The output shape for one image.
        package let output: TensorShape
        /// The number of trainable parameters.
        package let parameterCount: Int
        /// The number of multiply-accumulate operations of a forward pass over one image by the layer's formula.
        package let multiplications: Int
    }

    /// The memory of a prediction of one image on one thread, in bytes.
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
    }

    /// A summary of a network layer by layer, before operator fusion; `ExecutionPlan.Overview` shows the fused operations.
    package struct Overview: Hashable, Codable, Sendable {
        /// The layers, in order of execution.
        package let layers: [LayerOverview]
        /// The number of trainable parameters of the network.
        package let parameterCount: Int
        /// The number of multiply-accumulate operations of all layers, at most `Int.max`.
        package let multiplications: Int
        /// The memory of a prediction, which this overview does not allocate.
        package let memory: PredictionMemory

        /// Creates the overview of `network`.
        /// - Parameter quantization: The quantization of its parameters; nil for none.
        package init(_ network: Network, quantization: Quantization? = nil) {
            layers = network.nodes.enumerated().map { index, node in
                let inputs = network.inputShapes(of: index)
                return LayerOverview(
                    name: node.name, kind: type(of: node.layer).kind, inputs: node.inputs,
                    output: network.shapes[index],
                    parameterCount: node.layer.parameters(for: inputs)
                        .reduce(0) { $0 + ($1.role == .statistic ? 0 : $1.count) },
                    multiplications: node.layer.multiplications(for: inputs))
            }
            let layout = ParameterLayout(network)
            parameterCount = layout.trainableCount
            multiplications = saturatingSum(layers.map(\.multiplications))
            let options = ExecutionPlan.Options(batchSize: 1, precision: .automatic)
            let plan = ExecutionPlan.Overview(network, options: options, quantization: quantization)
            let parameterByteCount = layout.count * MemoryLayout<Float>.stride
            memory = PredictionMemory(
                parameterByteCount: parameterByteCount, transformedWeightsByteCount: plan.transformedWeightsByteCount,
                arenaByteCount: plan.arenaByteCount,
                byteCount: parameterByteCount + plan.transformedWeightsByteCount + plan.arenaByteCount)
        }
    }
}

/// Returns the sum of non-negative counts, at most `Int.max`.
///
/// The description of a network may come from an untrusted file, so the sum may overflow.
func saturatingSum(_ counts: [Int]) -> Int {
    counts.reduce(0) { sum, count in
        let (result, overflow) = sum.addingReportingOverflow(count)
        return overflow ? .max : result
    }
}
