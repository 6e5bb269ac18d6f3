extension Network {
    /// What one layer of a network makes, and what it takes.
    public struct LayerOverview: Hashable, Codable, Sendable {
        /// The node's name.
        public let name: String
        /// The kind of layer.
        public let kind: String
        /// The names of what it reads.
        public let inputs: [String]
        /// The shape of its result, for one image.
        public let output: Shape
        /// How many numbers of it are trained.
        public let parameterCount: Int
        /// How many multiplications, each with an addition, its formula takes forward for one image; 0 where it has no sums of products.
        public let multiplications: Int
    }

    /// The memory that predictions of one image at a time take on one thread, in bytes.
    public struct PredictionMemory: Hashable, Codable, Sendable {
        /// The parameters.
        public let parameterByteCount: Int
        /// What layers keep of what they made of their parameters.
        public let preparedByteCount: Int
        /// Activations and scratch memory together, places shared.
        public let arenaByteCount: Int
        /// All of these.
        public let byteCount: Int
    }

    /// A network layer by layer, as it is described, whatever is computed together; a `Plan.Overview` says that.
    public struct Overview: Hashable, Codable, Sendable {
        /// The layers, in order of execution.
        public let layers: [LayerOverview]
        /// How many numbers are trained.
        public let parameterCount: Int
        /// The layers' multiplications together, at most `Int.max`.
        public let multiplications: Int
        /// The memory of a prediction, which is not taken here.
        public let memory: PredictionMemory

        /// Looks at `network`.
        public init(_ network: Network) {
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
            let plan = Plan.Overview(network, options: Plan.Options(batchSize: 1))
            let parameterByteCount = layout.count * MemoryLayout<Float>.stride
            memory = PredictionMemory(
                parameterByteCount: parameterByteCount, preparedByteCount: plan.preparedByteCount,
                arenaByteCount: plan.arenaByteCount,
                byteCount: parameterByteCount + plan.preparedByteCount + plan.arenaByteCount)
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
