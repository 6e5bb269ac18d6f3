internal import ImprintCore
internal import Synchronization

/// A network compiled for a batch size and a mode: fused operations, their order of execution and one memory arena.
///
/// Compilation decides once which operators are fused, which activations share memory, which algorithm each layer uses and which
/// gradients are computed. A run does not allocate memory. Use a plan from one thread at a time. Several plans can share
/// `Parameters`.
///
/// On Linux, the first plan sets up OpenBLAS for the whole process: each call uses one thread (`openblas_set_num_threads(1)`), because
/// the threads of plans call it at the same time. If Imprint uses AVX-512, OpenBLAS does too, even if the environment variable
/// `OPENBLAS_CORETYPE` names the kernels of an older processor. To use older kernels in both, set `IMPRINT_KERNELS`, too: for example
/// `IMPRINT_KERNELS=v3` and `OPENBLAS_CORETYPE=Haswell`.
public final class ExecutionPlan {
    /// The purpose of a plan.
    public enum Mode: String, Codable, Sendable {
        /// Forward passes only, with the running statistics of batch normalization and without dropout.
        case prediction
        /// Forward and backward passes.
        case training
    }

    /// An operation with the buffers it runs on.
    struct Step {
        let operation: PlanOperation
        var name: String { operation.name }
        var kernel: any LayerKernel { operation.kernel }
        /// The contexts of the threads of the pool.
        let contexts: [LayerContext]
        var context: LayerContext { contexts[0] }
        /// Whether the backward pass runs this operation.
        let runsBackward: Bool
        /// Input gradients to add to gradients that other readers of the same activation have written.
        let additions: [(from: UnsafePointer<Float>, to: UnsafeMutablePointer<Float>, countPerImage: Int)]
    }

    /// The network that the plan was compiled from.
    public let network: Network
    /// The parameters of the network.
    public let parameters: Parameters
    /// The options of compilation.
    public let options: Options
    /// The contiguous ranges of the parameter buffer that training changes, and whether weight decay applies to them.
    public let trainableRanges: [(range: Range<Int>, decays: Bool)]
    let steps: [Step]
    let gradients: AlignedMemory
    let arena: AlignedMemory
    private let transformedWeights: AlignedMemory
    private let packedWeights: AlignedMemory
    /// The value of `Parameters.changes` when `transformedWeights` was computed.
    private var transformedChanges = -1
    private let packingState: PackingState
    let threadPool: ThreadPool
    private let images: Activation
    /// The pass that the thread pool runs, and its number of images.
    private var pass = Pass.forward
    private var count = 0
    /// The numbers of threads of the forward and the backward pass.
    private var forwardThreads: ThreadAdaptation
    private var backwardThreads: ThreadAdaptation
    private let randomness: Randomness
    private let currentBatch: CurrentBatch

    /// Receives the name of a node, its output for the images of a pass, [count, height, width, channels], and the shape of one image.
    public typealias Observer = (
        _ node: String, _ values: UnsafeBufferPointer<Float>, _ shape: TensorShape
    ) -> Void

    /// Receives the intermediate activations of `forward(count:)`, like the forward hooks of PyTorch; nil for none.
    ///
    /// The plan calls it after each operation, in order of execution, on the thread that calls `forward(count:)`. Copy the values that you need:
    /// later operations reuse the memory. If nodes are fused, only the last one has an output, so the observer does not receive the others. In
    /// int8, it does not receive outputs of 8-bit integers.
    public var observer: Observer?

    /// Compiles `network` to run with `parameters`.
    /// - Throws: `NetworkError` if the mode is training and all layers or unknown ones are frozen, if the precision is int8 and the parameters are
    ///   not quantized, or if memory cannot be allocated.
    public init(_ network: Network, parameters: Parameters, options: Options) throws(NetworkError) {
        precondition(parameters.layout == ParameterLayout(network), "the parameters belong to another network")
        try options.checkFrozen(in: network)
        guard options.mode == .training || options.precision != .int8 || parameters.quantization != nil else {
            throw .invalidProperty(
                layer: "plan", property: "precision", found: "int8 for parameters without quantization",
                expected: "float32 or bfloat16")
        }
        let operations = OperatorFusion.operations(
            of: network, layout: parameters.layout, quantization: parameters.quantization, options: options)
        var planner = MemoryPlanner(operations, input: network.input, options: options)
        if options.keepsHeadInput { planner.keptNode = network.headIndex }
        let buffers = planner.assignBuffers()
        let layout = planner.arena.layout()
        let training = options.mode == .training
        let arena = try AlignedMemory(byteCount: layout.byteCount)
        let gradients = try AlignedMemory(
            byteCount: training ? parameters.layout.trainableCount * MemoryLayout<Float>.stride : 0)
        let transformedWeights = try AlignedMemory(
            byteCount: planner.transformedWeightsByteCount, isFilledByCaller: true)
        let packedWeights = try AlignedMemory(byteCount: planner.packedWeightsByteCount, isFilledByCaller: true)
        let randomness = Randomness(seed: options.seed)
        let packingState = PackingState()
        let currentBatch = CurrentBatch(options.workers.processes)
        try GEMM.prepare()
        let threadPool = options.threadPool ?? ThreadPool(count: options.workers.count)
        precondition(threadPool.count <= options.workers.count, "the plan has no scratch memory for so many threads")

        let builder = StepBuilder(
            operations: operations, buffers: buffers, offsets: layout.offsets, arena: arena, gradients: gradients,
            transformedWeights: transformedWeights, packedWeights: packedWeights, parameters: parameters,
            options: options, threadPool: threadPool, randomness: randomness, packingState: packingState,
            currentBatch: currentBatch)
        images = builder.input(network.input)
        steps = builder.steps()
        self.network = network
        self.parameters = parameters
        self.options = options
        self.trainableRanges = parameters.layout.trainableRanges(frozen: options.frozen)
        self.gradients = gradients
        self.arena = arena
        self.transformedWeights = transformedWeights
        self.packedWeights = packedWeights
        self.randomness = randomness
        self.packingState = packingState
        self.currentBatch = currentBatch
        self.threadPool = threadPool
        forwardThreads = ThreadAdaptation(limit: threadPool.count)
        backwardThreads = forwardThreads
        if training && trainableRanges.isEmpty && !options.inputGradient {
            throw .invalidProperty(
                layer: "plan", property: "frozen", found: "every layer", expected: "at least one trainable layer")
        }
    }

    /// A summary of each operation, in order of execution.
    package var summary: [LayerSummary] {
        Overview(network, options: options, quantization: parameters.quantization).layers
    }

    /// The size in bytes of the arena: activations, their gradients, saved and scratch memory.
    package var arenaByteCount: Int { arena.byteCount }

    /// The input of `forward`, NHWC: `batchSize` images.
    public var input: UnsafeMutableBufferPointer<Float> { buffer(images.values, images.shape) }
    /// The output of `forward`: [N, channels] for a classifier.
    public var output: UnsafeMutableBufferPointer<Float> { buffer(last.values, last.shape) }
    /// The input of the node at `Network.headIndex` for the first image of the last pass.
    ///
    /// nil if the network has no such node, or if the options do not keep its input.
    package var headInput: UnsafeBufferPointer<Float>? {
        guard options.keepsHeadInput, let head = network.headIndex else { return nil }
        return steps.first { $0.operation.nodeIndices[0] == head }.map { step in
            let features = step.context.inputs[0]
            return UnsafeBufferPointer(start: features.values, count: features.shape.count)
        }
    }
    /// The gradient of the loss with respect to the output, which `backward` reads; only in training.
    public var outputGradient: UnsafeMutableBufferPointer<Float> {
        guard let gradient = last.gradient else { preconditionFailure("a plan for prediction has no gradients") }
        return buffer(gradient, last.shape)
    }
    /// The gradient of the loss with respect to the input; nil unless `Options.inputGradient` is true.
    public var inputGradient: UnsafeMutableBufferPointer<Float>? { images.gradient.map { buffer($0, images.shape) } }
    /// The gradients, in the layout of the parameters; only the values in `trainableRanges` are defined.
    public var parameterGradients: UnsafeMutableBufferPointer<Float> {
        UnsafeMutableBufferPointer(start: gradients.floats(), count: parameters.layout.trainableCount)
    }

    /// The number of forward passes so far, from which the random numbers of a pass are derived.
    public var passCount: Int {
        get { randomness.step }
        set { randomness.step = newValue }
    }

    /// Runs the network over the first `count` images of `input`.
    ///
    /// In training, each call draws new dropout masks. If several processes share the work, each one needs only the images of its part
    /// of the batch in `input`, and all get the whole `output`.
    public func forward(count: Int) {
        checkCount(count)
        randomness.step += 1
        currentBatch.begin(count: count)
        let part = currentBatch.part
        transformWeights(count)
        moveToStart(images.values, of: part, images.shape)
        run(.forward, part.images.count)
        gatherOutput(of: part)
        // The pass has updated the running statistics.
        if options.mode == .training { recordParameterChange() }
    }

    private func transformWeights(_ count: Int) {
        let haveChanged = parameters.changes.load(ordering: .relaxed) != transformedChanges
        if haveChanged {
            precondition(
                !options.usesInt8 || parameters.quantization != nil
                    || !steps.contains(where: { $0.kernel is QuantizedConvolution }),
                "the parameters of an int8 plan lost their quantization when they changed; compile a new plan")
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
    /// Call it once for each forward pass: gradients overwrite activations that are no longer needed.
    public func backward(count: Int) {
        precondition(options.mode == .training, "backward requires a plan compiled for training")
        checkCount(count)
        let part = currentBatch.part
        precondition(part.total == count, "the backward pass has \(count) images, the forward pass had \(part.total)")
        // The layers may read the output.
        moveToStart(last.values, of: part, last.shape)
        if let gradient = last.gradient { moveToStart(gradient, of: part, last.shape) }
        run(.backward, part.images.count)
        options.workers.processes?.waitForAllReduces()
    }

    /// Moves the images of this process to the start of a buffer, where the layers expect them.
    private func moveToStart(_ values: UnsafeMutablePointer<Float>, of part: BatchPart, _ shape: TensorShape) {
        let elements = part.images(of: part.index, times: shape.count)
        guard elements.lowerBound > 0 else { return }
        values.update(from: values + elements.lowerBound, count: elements.count)
    }

    /// Collects the outputs of all processes.
    private func gatherOutput(of part: BatchPart) {
        guard part.count > 1, let processes = options.workers.processes else { return }
        let elements = part.images(of: part.index, times: last.shape.count)
        (last.values + elements.lowerBound).update(from: last.values, count: elements.count)
        processes.allGather(last.values, parts: part.count) { [last] in part.images(of: $0, times: last.shape.count) }
    }

    /// Records that this plan has changed parameters, so that other plans that share them transform their weights again.
    ///
    /// The transformed weights of this plan stay valid: it transforms only the weights of frozen layers.
    func recordParameterChange() {
        let before = parameters.changes.add(1, ordering: .relaxed).oldValue
        if before == transformedChanges { transformedChanges = before + 1 }
    }

    private func run(_ pass: Pass, _ count: Int) {
        self.pass = pass
        self.count = count
        switch pass {
        case .forward: run(&forwardThreads)
        case .backward: run(&backwardThreads)
        case .transformWeights, .packWeights: threadPool.run(self)
        }
    }

    private func run(_ threads: inout ThreadAdaptation) {
        // The durations of batches of different sizes are not comparable.
        threads.workSize = count
        threadPool.run(self, &threads)
    }

    private var last: Activation { steps[steps.count - 1].context.output }

    private func buffer(_ base: UnsafeMutablePointer<Float>, _ shape: TensorShape) -> UnsafeMutableBufferPointer<Float>
    {
        UnsafeMutableBufferPointer(start: base, count: options.batchSize * shape.count)
    }

    private func checkCount(_ count: Int) {
        precondition(
            (1...options.batchSize).contains(count), "count is \(count), expected 1 to \(options.batchSize)")
    }
}

extension ExecutionPlan {
    private func observe(_ step: Step, _ observer: Observer) {
        let (output, nodes) = (step.context.output, step.operation.nodeIndices)
        guard !step.operation.isInteger, let last = nodes.last, last >= 0 else { return }
        observer(
            network.nodes[last].name, UnsafeBufferPointer(start: output.values, count: count * output.shape.count),
            output.shape)
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
            for step in steps {
                step.kernel.forward(step.contexts[worker.index], batch: count)
                if let observer { worker.onFirstThread { observe(step, observer) } }
            }
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
