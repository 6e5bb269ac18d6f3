package import ImprintCore

extension ExecutionPlan {
    /// The options of compilation.
    public struct Options: Sendable {
        /// The largest number of images per pass.
        public var batchSize: Int
        /// The purpose of the plan.
        public var mode: Mode
        /// The number of threads that share the work, at least 1; the results do not depend on it.
        public var threads: Int {
            get { workers.count }
            set { workers = Workers(newValue, processes: workers.processes) }
        }
        /// The threads, and the processes of a training run, that share the work.
        package var workers: Workers
        /// The names of the frozen nodes: training does not change their parameters and statistics.
        ///
        /// Use the name of the node ("conv1"), not of its parameter ("conv1.weight"): in training, a name that no node has is an error.
        public var frozen: Set<String>
        /// Whether the backward pass computes the gradient with respect to the network's input.
        public var inputGradient: Bool
        /// The seed of the random numbers in a pass (dropout).
        public var seed: UInt64
        /// The precision of matrix products.
        ///
        /// In predictions, `int8` requires quantized parameters. In training, `int8` and `automatic` mean float32, and `bfloat16` is mixed precision:
        /// convolutions that are matrix products compute y = x·W and dx = dy·Wᵀ with operands that are rounded to bfloat16, except for few rows.
        /// Sums, the gradients of the weights, the parameters and all other layers are float32 (Kalamkar et al., "A study of BFLOAT16 for deep
        /// learning training", 2019).
        public var precision: Precision
        /// Whether `ExecutionPlan.headInput` can be read after a pass; its memory is then not reused.
        package var keepsHeadInput = false
        /// A thread pool shared with plans that never run at the same time; nil if the plan creates its own.
        package var threadPool: ThreadPool?

        /// Creates options.
        /// - Parameters:
        ///   - batchSize: The largest number of images per pass, at least 1.
        ///   - mode: The purpose of the plan.
        ///   - threads: The number of threads that share the work, at least 1.
        ///   - frozen: The names of the frozen nodes.
        ///   - inputGradient: Whether the backward pass computes the gradient with respect to the network's input.
        ///   - seed: The seed of the random numbers in a pass.
        ///   - precision: The precision of matrix products.
        public init(
            batchSize: Int, mode: Mode = .prediction, threads: Int = 1, frozen: Set<String> = [],
            inputGradient: Bool = false, seed: UInt64 = 0, precision: Precision = .float32
        ) {
            self.init(
                batchSize: batchSize, mode: mode, workers: Workers(threads), frozen: frozen,
                inputGradient: inputGradient, seed: seed, precision: precision)
        }

        /// Creates options with the given workers.
        package init(
            batchSize: Int, mode: Mode = .prediction, workers: Workers, frozen: Set<String> = [],
            inputGradient: Bool = false, seed: UInt64 = 0, precision: Precision = .float32
        ) {
            precondition(batchSize >= 1, "batchSize is \(batchSize), expected at least 1")
            self.batchSize = batchSize
            self.mode = mode
            self.workers = workers
            self.frozen = frozen
            self.inputGradient = inputGradient
            self.seed = seed
            self.precision = precision
        }

        /// Checks that the frozen nodes of a plan for training are nodes of `network`.
        func checkFrozen(in network: Network) throws(NetworkError) {
            let unknown = mode == .training ? frozen.subtracting(network.nodes.map(\.name)) : []
            guard unknown.isEmpty else {
                throw .invalidProperty(
                    layer: "plan", property: "frozen",
                    found: unknown.sorted().map(\.debugDescription).joined(separator: ", "),
                    expected: "names of nodes of the network")
            }
        }

        /// Whether weights are packed before the second pass instead of the first.
        ///
        /// A pass over one image reads each weight only once or twice. Packing takes time, and as much memory as the parameters, so it pays
        /// off only if more passes follow. The results are the same.
        var delaysPacking: Bool { mode == .prediction && batchSize == 1 }

        /// Whether products of convolutions use bfloat16.
        var usesBFloat16: Bool { precision == .bfloat16 }

        /// Whether quantized layers compute in int8.
        var usesInt8: Bool { mode == .prediction && (precision == .int8 || precision == .automatic) }
    }
}
