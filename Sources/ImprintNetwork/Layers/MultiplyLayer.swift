internal import CImprintKernels

/// Elementwise product of two or more inputs, with broadcasting.
///
/// y = x₁ · x₂ · …
///
/// Inputs: [batch, height, width, channels] each; an input with a height, width or channel count of 1 is broadcast along that axis.
/// Output: [batch, height, width, channels], each the maximum over the inputs.
///
/// Backward: dxᵢ = dy · Π xⱼ over j ≠ i, summed over the axes along which xᵢ is broadcast.
///
/// Used in squeeze and excitation: Hu et al., "Squeeze-and-excitation networks", 2018.
public struct MultiplyLayer: Layer {
    public static let kind = "multiply"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try Broadcast("Multiply", inputs).output
    }

    /// Scratch memory for sums, followed by products of the gradient and all but one of the other inputs.
    public func memory(_ request: MemoryRequest) -> LayerMemory {
        guard request.training else { return LayerMemory() }
        let products =
            request.inputs.count > 2 ? request.batch * request.output.count * MemoryLayout<Float>.stride : 0
        return LayerMemory(scratch: sumsByteCount(request.inputs, request.output, batch: request.batch) + products)
    }

    private func sumsByteCount(_ inputs: [TensorShape], _ output: TensorShape, batch: Int) -> Int {
        roundedUp(Broadcast(output: output).scratchByteCount(inputs, batch: batch), to: 64)
    }

    public func forward(_ context: LayerContext, batch: Int) { context.fold(batch, imprint_broadcast_multiply) }

    public func backward(_ context: LayerContext, batch: Int) {
        let broadcast = Broadcast(output: context.output.shape)
        let sums = sumsByteCount(context.inputs.map(\.shape), context.output.shape, batch: batch)
        let products = (context.scratch + sums).assumingMemoryBound(to: Float.self)
        for (index, input) in context.inputs.enumerated() {
            guard let dx = input.gradient else { continue }
            var others = context.inputs
            others.remove(at: index)
            var slope = UnsafePointer(context.outputGradient)
            for other in others.dropLast() {
                broadcast.combine(
                    Broadcast.Operand(slope, broadcast.output), Broadcast.Operand(other), into: products, batch: batch,
                    worker: context.worker, imprint_broadcast_multiply)
                slope = UnsafePointer(products)
            }
            let last = Broadcast.Operand(others[others.count - 1])
            if input.shape == broadcast.output {
                broadcast.combine(
                    Broadcast.Operand(slope, broadcast.output), last, into: dx, batch: batch, worker: context.worker,
                    imprint_broadcast_multiply)
            } else {
                broadcast.sum(slope, times: last, into: dx, input.shape, batch: batch, context)
            }
        }
    }
}
