internal import CImprintKernels

/// Elementwise maximum of two or more inputs.
///
/// y = max(x₁, x₂, …)
///
/// Inputs and output: [batch, height, width, channels], at most 256 inputs of equal shape.
///
/// Backward: the gradient goes to the first input with the maximum, whose index training stores in one byte.
public struct MaximumLayer: Layer {
    public static let kind = "maximum"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        let inputs = try severalInputs("Maximum", inputs)
        guard inputs.count <= 256 else {
            throw .inputCount(layer: "Maximum", expected: "at most 256 inputs", found: inputs.count)
        }
        guard inputs.allSatisfy({ $0 == inputs[0] }) else {
            throw .inputShape(layer: "Maximum", found: inputs, reason: "the shapes must be the same")
        }
        return inputs[0]
    }

    public var backwardReads: BackwardReads { [] }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(saved: request.training ? request.batch * request.output.count : 0)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let choice = context.training ? context.saved.assumingMemoryBound(to: UInt8.self) : nil
        context.parallelFor(batch * context.output.shape.count) { range in
            let y = context.output.values + range.lowerBound
            let chosen = choice.map { $0 + range.lowerBound }
            chosen?.update(repeating: 0, count: range.count)
            var largest = UnsafePointer(context.inputs[0].values + range.lowerBound)
            for (index, input) in context.inputs.enumerated().dropFirst() {
                imprint_maximum_forward(
                    largest, input.values + range.lowerBound, y, chosen, UInt8(index), range.count)
                largest = UnsafePointer(y)
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        let choice = context.saved.assumingMemoryBound(to: UInt8.self)
        for (index, input) in context.inputs.enumerated() {
            guard let dx = input.gradient else { continue }
            context.parallelFor(batch * context.output.shape.count) { range in
                imprint_maximum_backward(
                    choice + range.lowerBound, UInt8(index), context.outputGradient + range.lowerBound,
                    dx + range.lowerBound, range.count)
            }
        }
    }
}
