extension Network {
    /// What one layer of a network makes, and what it takes.
    package struct LayerOverview: Hashable, Codable, Sendable {
        /// The node's name.
        package let name: String
        /// The kind of layer.
        package let kind: String
        /// The names of what it reads.
        package let inputs: [String]
        /// The shape of its result, for one image.
        package let output: TensorShape
        /// How many numbers of it are trained.
        package let parameterCount: Int
        /// How many multiplications, each with an addition, its formula takes forward for one image; 0 if it has no sums of products.
        package let multiplications: Int
    }

    /// The memory that predictions of one image at a time take on one thread, in bytes.
    package struct PredictionMemory: Hashable, Codable, Sendable {
        /// The parameters.
        package let parameterByteCount: Int
        /// What layers keep of what they made of their parameters.
        package let transformedWeightsByteCount: Int
        /// Activations and scratch memory together, places shared.
        package let arenaByteCount: Int
        /// All of these.
        package let byteCount: Int

        private enum CodingKeys: String, CodingKey {
            case parameterByteCount, arenaByteCount, byteCount
            // The name of version 1.
            case transformedWeightsByteCount = "preparedByteCount"
        }
    }

    /// A network layer by layer, as it is described, whatever is computed together; a `ExecutionPlan.Overview` says that.
    package struct Overview: Hashable, Codable, Sendable {
        /// The layers, in order of execution.
        package let layers: [LayerOverview]
        /// How many numbers are trained.
        package let parameterCount: Int
        /// The layers' multiplications together, at most `Int.max`.
        package let multiplications: Int
        /// The memory of a prediction, which is not taken here.
        package let memory: PredictionMemory

        /// Looks at `network`.
        package init(_ network: Network) {
            layers = network.nodes.enumerated().map { place, node in
                let inputs = network.inputShapes(of: place)
                return LayerOverview(
                    name: node.name, kind: type(of: node.layer).kind, inputs: node.inputs,
                    output: network.shapes[place],
                    parameterCount: node.layer.parameters(for: inputs)
                        .reduce(0) { $0 + ($1.role == .statistic ? 0 : $1.count) },
                    multiplications: node.layer.multiplications(for: inputs))
            }
            let layout = ParameterLayout(network)
            parameterCount = layout.trainableCount
            multiplications = saturatingSum(layers.map(\.multiplications))
            let plan = ExecutionPlan.Overview(network, options: ExecutionPlan.Options(batchSize: 1))
            let parameterByteCount = layout.count * MemoryLayout<Float>.stride
            memory = PredictionMemory(
                parameterByteCount: parameterByteCount, transformedWeightsByteCount: plan.transformedWeightsByteCount,
                arenaByteCount: plan.arenaByteCount,
                byteCount: parameterByteCount + plan.transformedWeightsByteCount + plan.arenaByteCount)
        }
    }
}

/// The sum of counts that are not negative, at most `Int.max`.
///
/// A description may come from a file that nobody vouches for, so it may exceed what an Int holds.
func saturatingSum(_ counts: [Int]) -> Int {
    counts.reduce(0) { sum, count in
        let (result, overflow) = sum.addingReportingOverflow(count)
        return overflow ? .max : result
    }
}
