/// Builds the steps of a plan: operations with pointers to their buffers.
struct StepBuilder {
    let operations: [PlanOperation]
    let buffers: MemoryPlanner.Assignment
    /// The offset of each buffer in the arena.
    let offsets: [Arena.Buffer: Int]
    let arena: AlignedMemory
    let gradients: AlignedMemory
    let transformedWeights: AlignedMemory
    let packedWeights: AlignedMemory
    let parameters: Parameters
    let options: ExecutionPlan.Options
    let threadPool: ThreadPool
    let randomness: Randomness
    let packingState: PackingState
    let currentBatch: CurrentBatch

    /// Returns the input of the network.
    func input(_ shape: TensorShape) -> Activation { activation(buffers.input, shape) }

    /// Returns the steps, in order of execution.
    func steps() -> [ExecutionPlan.Step] {
        operations.indices.map { index in
            let (operation, operationBuffers) = (operations[index], buffers.operations[index])
            return ExecutionPlan.Step(
                operation: operation, contexts: context(of: index).copies(for: threadPool),
                runsBackward: operationBuffers.runsBackward,
                additions: zip(operationBuffers.inputGradients, operation.inputs).compactMap { gradient, shape in
                    guard let gradient, let sum = gradient.addedTo else { return nil }
                    return (UnsafePointer(floats(gradient.buffer)), floats(sum), shape.count)
                })
        }
    }

    /// Returns the context of an operation for the first thread.
    private func context(of index: Int) -> LayerContext {
        let (operation, operationBuffers) = (operations[index], buffers.operations[index])
        return LayerContext(
            inputs: inputs(of: index), output: activation(operationBuffers.output, operation.output),
            inputMoments: operation.kernel.readsMoments ? moments(of: operation.sources[0]) : nil,
            outputMoments: moments(of: index),
            parameters: operation.entries.map { parameters.floats + $0.offset },
            parameterGradients: operation.entries.map { gradient(of: $0, operation) },
            saved: pointer(operationBuffers.saved), scratch: pointer(buffers.scratch),
            transformedWeights: transformedWeights.base + operationBuffers.transformedWeightsOffset,
            packedWeights: packedWeights.base + operationBuffers.packedWeightsOffset,
            algorithm: operation.algorithm, worker: Worker(threadPool: threadPool, index: 0),
            training: options.mode == .training,
            nodeIndex: operation.nodeIndices[operation.nodeIndices.count - 1],
            frozen: operation.isFrozen, usesBFloat16: options.usesBFloat16, randomness: randomness,
            packingState: packingState, currentBatch: currentBatch)
    }

    /// Returns the inputs of an operation, with the buffers that it writes their gradients to.
    private func inputs(of index: Int) -> [Activation] {
        let (operation, gradients) = (operations[index], buffers.operations[index].inputGradients)
        return operation.sources.indices.map { slot in
            let source = operation.sources[slot]
            let values = source < 0 ? buffers.input.values : buffers.operations[source].output.values
            return Activation(
                values: floats(values), gradient: gradients[slot].map { floats($0.buffer) },
                shape: operation.inputs[slot])
        }
    }

    /// Returns the moments of the output of an operation, or of the network's input (−1); nil if they are not recorded.
    private func moments(of source: Int) -> Moments? {
        guard source >= 0, let moments = buffers.operations[source].outputMoments else { return nil }
        let channels = operations[source].output.channels
        return Moments(pointer(moments.buffer), channels: channels, blocks: moments.blocks)
    }

    /// Returns the gradient of a parameter; nil if training does not change it.
    private func gradient(
        of entry: ParameterLayout.Entry, _ operation: PlanOperation
    ) -> UnsafeMutablePointer<Float>? {
        options.mode == .training && !operation.isFrozen && entry.parameter.role != .statistic
            ? gradients.floats() + entry.offset : nil
    }

    private func activation(_ buffers: MemoryPlanner.Pair, _ shape: TensorShape) -> Activation {
        Activation(values: floats(buffers.values), gradient: buffers.gradient.map(floats), shape: shape)
    }

    private func pointer(_ buffer: Arena.Buffer) -> UnsafeMutableRawPointer { arena.base + (offsets[buffer] ?? 0) }

    private func floats(_ buffer: Arena.Buffer) -> UnsafeMutablePointer<Float> {
        pointer(buffer).assumingMemoryBound(to: Float.self)
    }
}
