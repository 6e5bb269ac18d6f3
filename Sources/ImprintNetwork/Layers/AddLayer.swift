internal import CImprintKernels

/// Elementwise sum of two or more inputs, with broadcasting.
///
/// y = x₁ + x₂ + …
///
/// Inputs: [batch, height, width, channels] each; an input with a height, width or channel count of 1 is broadcast along that axis.
/// Output: [batch, height, width, channels], each the maximum over the inputs.
///
/// Backward: dxᵢ = dy, summed over the axes along which xᵢ is broadcast.
public struct AddLayer: Layer {
    public static let kind = "add"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try Broadcast("Add", inputs).output
    }

    public var backwardReads: BackwardReads { [] }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        let sums = Broadcast(output: request.output).scratchByteCount(request.inputs, batch: request.batch)
        return LayerMemory(scratch: request.training ? sums : 0)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        guard context.inputs.allSatisfy({ $0.shape == context.output.shape }) else {
            return context.fold(batch, imprint_broadcast_add)
        }
        context.parallelFor(batch * context.output.shape.count) { range in
            let start = range.lowerBound
            let y = context.output.values + start
            imprint_add(context.inputs[0].values + start, context.inputs[1].values + start, y, range.count)
            for input in context.inputs.dropFirst(2) { imprint_add(y, input.values + start, y, range.count) }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let broadcast = Broadcast(output: context.output.shape)
        for input in context.inputs {
            guard let dx = input.gradient else { continue }
            if input.shape == context.output.shape {
                context.copy(context.outputGradient, to: dx, count: batch * input.shape.count)
            } else {
                broadcast.sum(context.outputGradient, times: nil, into: dx, input.shape, batch: batch, context)
            }
        }
    }
}

extension LayerContext {
    /// Computes y = f(f(x₁, x₂), x₃) and so on.
    func fold(_ batch: Int, _ function: Broadcast.Function) {
        let broadcast = Broadcast(output: output.shape)
        var result = Broadcast.Operand(inputs[0])
        for input in inputs.dropFirst() {
            broadcast.combine(
                result, Broadcast.Operand(input), into: output.values, batch: batch, worker: worker, function)
            result = Broadcast.Operand(output)
        }
    }
}
