internal import CImprintKernels

/// The product of two or more inputs, y = x₁ · x₂ and so on.
///
/// Heights, widths and channels are the largest of the inputs; an input with 1 of them is a factor everywhere along that
/// axis, as in squeeze and excitation, [H, W, C] · [1, 1, C] (Hu et al., "Squeeze-and-excitation networks", 2018).
/// Backward: dxᵢ = Σ dy · Π over j ≠ i of xⱼ, summed over the axes along which xᵢ has length 1.
public struct MultiplyLayer: Layer {
    public static let kind = "multiply"
    /// Makes the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try Broadcast("Multiply", inputs).output
    }

    /// For sums, and behind them for the product of all inputs but two with the gradient.
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
        for (place, input) in context.inputs.enumerated() {
            guard let dx = input.gradient else { continue }
            var others = context.inputs
            others.remove(at: place)
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
