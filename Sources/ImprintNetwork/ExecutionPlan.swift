package import ImprintCore
internal import Synchronization

/// A network compiled for a batch size and a mode: one block of memory, and the order in which to run over it.
///
/// Everything is decided here once: shapes, which activations share memory, which algorithm each layer uses, which
/// gradients are needed. Running allocates nothing. A plan is used by one thread at a time; it shares its parameters
/// with whoever else holds them.
public final class ExecutionPlan {
    /// What a plan is compiled for.
    public enum Mode: String, Codable, Sendable {
        /// Forward only, with the running statistics of norms and without dropout.
        case prediction
        /// Forward and backward.
        case training
    }

    /// How a plan is to be compiled.
    public struct Options: Sendable {
        /// The largest number of images at once.
        public var batchSize: Int
        /// What it is for.
        public var mode: Mode
        /// The threads that share the work; the results do not depend on them.
        package var workers: Workers
        /// The nodes whose parameters and statistics stay as they are.
        public var frozen: Set<String>
        /// Whether the gradient with respect to the network's input is wanted.
        public var inputGradient: Bool
        /// The seed of what is random in a pass (dropout).
        public var seed: UInt64

        /// Makes options.
        /// - Parameter threads: The number of threads that share the work.
        public init(
            batchSize: Int, mode: Mode = .prediction, threads: Int = 1, frozen: Set<String> = [],
            inputGradient: Bool = false, seed: UInt64 = 0
        ) {
            self.init(
                batchSize: batchSize, mode: mode, workers: Workers(threads), frozen: frozen,
                inputGradient: inputGradient, seed: seed)
        }

        /// Makes options for a thread pool that several plans share.
        package init(
            batchSize: Int, mode: Mode = .prediction, workers: Workers, frozen: Set<String> = [],
            inputGradient: Bool = false, seed: UInt64 = 0
        ) {
            precondition(batchSize >= 1, "a batch has at least one image, not \(batchSize)")
            self.batchSize = batchSize
            self.mode = mode
            self.workers = workers
            self.frozen = frozen
            self.inputGradient = inputGradient
            self.seed = seed
        }

        /// Whether layers do not arrange the parameters before the second of a number of passes.
        ///
        /// A pass over one image needs each number but once or twice: arranging them takes as long as half a pass, and as much memory as the
        /// parameters, and pays only where others follow. The results are the same.
        var delaysPacking: Bool { mode == .prediction && batchSize == 1 }
    }

    /// One operation in a plan.
    struct Step {
        let operation: Operation
        var name: String { operation.name }
        var kernel: any LayerKernel { operation.kernel }
        /// One for each thread.
        let contexts: [LayerContext]
        var context: LayerContext { contexts[0] }
        /// Whether any gradient is asked of this layer.
        let runsBackward: Bool
        /// Gradients to add to those that other readers of the same activation have written.
        let additions: [(from: UnsafePointer<Float>, to: UnsafeMutablePointer<Float>, countPerImage: Int)]
    }

    /// The description this plan was compiled from.
    public let network: Network
    /// The numbers it runs with.
    public let parameters: Parameters
    /// What it was compiled for.
    public let options: Options
    /// The parts of the parameter buffer that training changes: contiguous ranges, with or without weight decay.
    public let trained: [(range: Range<Int>, decays: Bool)]
    let steps: [Step]
    let gradients: AlignedMemory
    let arena: AlignedMemory
    /// What layers keep of the parameters, and as of which of their changes.
    private let transformedWeights: AlignedMemory
    private let packedWeights: AlignedMemory
    private var transformedChanges = -1
    private let packingState: PackingState
    let threadPool: ThreadPool
    private let images: Activation
    /// What the team is asked to do next.
    private var pass = Pass.forward
    private var count = 0
    private let randomness: Randomness

    /// Compiles `network` to run with `parameters`.
    /// - Throws: `NetworkError` if the mode is training and nothing is left to train, or where memory is short.
    public init(_ network: Network, parameters: Parameters, options: Options) throws(NetworkError) {
        precondition(parameters.layout == ParameterLayout(network), "the parameters belong to another network")
        var compiler = PlanCompiler(network, layout: parameters.layout, options: options)
        let buffers = compiler.assignBuffers()
        let layout = compiler.arena.layout()
        let training = options.mode == .training
        let arena = try AlignedMemory(byteCount: layout.byteCount)
        let gradients = try AlignedMemory(
            byteCount: training ? parameters.layout.trainableCount * MemoryLayout<Float>.stride : 0)
        let transformedWeights = try AlignedMemory(byteCount: compiler.transformedWeightsByteCount, isWrittenOnce: true)
        let packedWeights = try AlignedMemory(byteCount: compiler.packedWeightsByteCount, isWrittenOnce: true)
        let randomness = Randomness(seed: options.seed)
        let packingState = PackingState()
        GEMM.prepare()
        let threadPool = ThreadPool(count: options.workers.count)

        func pointer(_ buffer: Arena.Buffer) -> UnsafeMutableRawPointer { arena.base + (layout.offsets[buffer] ?? 0) }
        func floats(_ buffer: Arena.Buffer) -> UnsafeMutablePointer<Float> {
            pointer(buffer).assumingMemoryBound(to: Float.self)
        }

        self.images = Activation(
            values: floats(buffers.input.values), gradient: buffers.input.gradient.map(floats), shape: network.input)
        func moments(of source: Int) -> Moments? {
            guard source >= 0, let moments = buffers.operations[source].outputMoments else { return nil }
            let channels = compiler.operations[source].output.channels
            return Moments(pointer(moments.buffer), channels: channels, blocks: moments.blocks)
        }
        self.steps = compiler.operations.enumerated().map { place, operation in
            let plan = buffers.operations[place]
            let inputs = operation.sources.enumerated().map { slot, source in
                Activation(
                    values: floats(source < 0 ? buffers.input.values : buffers.operations[source].output.values),
                    gradient: plan.inputGradients[slot].map { floats($0.buffer) },
                    shape: operation.inputs[slot])
            }
            let context = LayerContext(
                inputs: inputs,
                output: Activation(
                    values: floats(plan.output.values), gradient: plan.output.gradient.map(floats),
                    shape: operation.output),
                inputMoments: operation.kernel.readsMoments ? moments(of: operation.sources[0]) : nil,
                outputMoments: moments(of: place),
                parameters: operation.entries.map { parameters.floats + $0.offset },
                parameterGradients: operation.entries.map { entry in
                    training && !operation.isFrozen && entry.parameter.role != .statistic
                        ? gradients.floats() + entry.offset : nil
                },
                saved: pointer(plan.saved), scratch: pointer(buffers.scratch),
                transformedWeights: transformedWeights.base + plan.transformedWeightsOffset,
                packedWeights: packedWeights.base + plan.packedWeightsOffset,
                algorithm: operation.algorithm, worker: Worker(threadPool: threadPool, index: 0),
                training: training, nodeIndex: operation.places[operation.places.count - 1],
                frozen: operation.isFrozen, randomness: randomness, packingState: packingState)
            return Step(
                operation: operation, contexts: context.forEachThread(of: threadPool), runsBackward: plan.runsBackward,
                additions: zip(plan.inputGradients, operation.inputs).compactMap { gradient, shape in
                    guard let gradient, let sum = gradient.addedTo else { return nil }
                    return (UnsafePointer(floats(gradient.buffer)), floats(sum), shape.count)
                })
        }
        self.network = network
        self.parameters = parameters
        self.options = options
        self.trained = ExecutionPlan.trainedRanges(parameters.layout, frozen: options.frozen)
        self.gradients = gradients
        self.arena = arena
        self.transformedWeights = transformedWeights
        self.packedWeights = packedWeights
        self.randomness = randomness
        self.packingState = packingState
        self.threadPool = threadPool
        if training && trained.isEmpty && !options.inputGradient {
            throw .invalidProperty(
                layer: "plan", property: "frozen", found: "every layer", expected: "at least one layer left to train")
        }
    }

    /// What the plan does with each layer, in order of execution.
    package var summary: [LayerSummary] { Overview(network, options: options).layers }

    /// The bytes that activations, gradients of activations and scratch memory take together.
    public var arenaByteCount: Int { arena.byteCount }

    /// The memory that `forward` reads: NHWC, room for `batchSize` images.
    public var input: UnsafeMutableBufferPointer<Float> { buffer(images.values, images.shape) }
    /// The memory that `forward` writes: [N, channels] for a classifier.
    public var output: UnsafeMutableBufferPointer<Float> { buffer(last.values, last.shape) }
    /// What `backward` reads: the gradient of the loss with respect to the output; only in training.
    public var outputGradient: UnsafeMutableBufferPointer<Float> {
        guard let gradient = last.gradient else { preconditionFailure("a plan for prediction has no gradients") }
        return buffer(gradient, last.shape)
    }
    /// The gradient with respect to the input, where it was asked for.
    public var inputGradient: UnsafeMutableBufferPointer<Float>? { images.gradient.map { buffer($0, images.shape) } }
    /// The gradients of the parameters, laid out as the parameters; only `trained` ranges have meaning.
    public var parameterGradients: UnsafeMutableBufferPointer<Float> {
        UnsafeMutableBufferPointer(start: gradients.floats(), count: parameters.layout.trainableCount)
    }

    /// Gives access to all parameters of a training plan, for an optimizer; `trained` has the ranges that are trained.
    public func withParameters<Result, Failure>(
        _ body: (UnsafeMutableBufferPointer<Float>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        precondition(options.mode == .training, "only a plan compiled for training changes its parameters")
        return try parameters.withValues(body)
    }

    /// How often `forward` has run, which what is random in a pass follows from.
    public var passCount: Int {
        get { randomness.step }
        set { randomness.step = newValue }
    }

    /// Runs the network over the first `count` images of `input`.
    ///
    /// In training each call is a new step: dropout draws new masks.
    public func forward(count: Int) {
        checkCount(count)
        randomness.step += 1
        transformWeights(count)
        run(.forward, count)
        // Running statistics have moved.
        if options.mode == .training { noteOwnChange() }
    }

    private func transformWeights(_ count: Int) {
        let haveChanged = parameters.changes.load(ordering: .relaxed) != transformedChanges
        if haveChanged {
            run(.transformWeights, count)
            transformedChanges = parameters.changes.load(ordering: .relaxed)
            packingState.isDone = false
        }
        if !packingState.isDone && !(haveChanged && options.delaysPacking) {
            run(.packWeights, count)
            packingState.isDone = true
        }
    }

    /// Computes all gradients from `outputGradient` for the `count` images of the last forward pass.
    ///
    /// Once for each forward pass: gradients take the place of what is not needed any more.
    public func backward(count: Int) {
        precondition(options.mode == .training, "backward needs a plan compiled for training")
        checkCount(count)
        run(.backward, count)
    }

    /// Tells whoever shares the parameters that this plan has changed those that it trains.
    func noteOwnChange() {
        let before = parameters.changes.add(1, ordering: .relaxed).oldValue
        if before == transformedChanges { transformedChanges = before + 1 }
    }

    private func run(_ pass: Pass, _ count: Int) {
        self.pass = pass
        self.count = count
        threadPool.run(self)
    }

    private var last: Activation { steps[steps.count - 1].context.output }

    private func buffer(_ base: UnsafeMutablePointer<Float>, _ shape: TensorShape) -> UnsafeMutableBufferPointer<Float>
    {
        UnsafeMutableBufferPointer(start: base, count: options.batchSize * shape.count)
    }

    private func checkCount(_ count: Int) {
        precondition(
            (1...options.batchSize).contains(count), "the plan takes 1 to \(options.batchSize) images, not \(count)")
    }

    private static func trainedRanges(
        _ layout: ParameterLayout, frozen: Set<String>
    ) -> [(range: Range<Int>, decays: Bool)] {
        var ranges: [(range: Range<Int>, decays: Bool)] = []
        for entry in layout.entries where entry.parameter.role != .statistic && !frozen.contains(entry.node) {
            let range = entry.range
            let decays = entry.parameter.role == .weight
            if let last = ranges.last, last.range.upperBound == range.lowerBound, last.decays == decays {
                ranges[ranges.count - 1].range = last.range.lowerBound..<range.upperBound
            } else {
                ranges.append((range, decays))
            }
        }
        return ranges
    }
}

extension ExecutionPlan: ThreadPoolTask {
    private enum Pass {
        case transformWeights, packWeights, forward, backward
    }

    func run(_ worker: Worker) {
        switch pass {
        case .transformWeights:
            for step in steps { step.kernel.transformWeights(step.contexts[worker.index]) }
        case .packWeights:
            for step in steps { step.kernel.packWeights(step.contexts[worker.index]) }
        case .forward:
            for step in steps { step.kernel.forward(step.contexts[worker.index], batch: count) }
        case .backward:
            for step in steps.reversed() where step.runsBackward {
                step.kernel.backward(step.contexts[worker.index], batch: count)
                for addition in step.additions {
                    addRows(
                        addition.from, to: addition.to, count: count, countPerImage: addition.countPerImage,
                        worker: worker)
                }
            }
        }
    }
}
