internal import CImprintKernels

/// The sum of two or more inputs of the same shape, y = x₁ + x₂ and so on.
public struct Add: Layer {
    public static let kind = "add"
    /// Makes the layer.
    public init() {}

    public func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape {
        let inputs = try severalInputs("Add", inputs)
        guard inputs.allSatisfy({ $0 == inputs[0] }) else {
            throw .inputShape(layer: "Add", found: inputs, reason: "the shapes must be the same")
        }
        return inputs[0]
    }

    public var backwardReads: BackwardReads { [] }

    public func forward(_ context: LayerContext, batch: Int) {
        forEachRange(batch * context.output.shape.count, context.worker) { range in
            let start = range.lowerBound
            let y = context.output.values + start
            imprint_add(context.inputs[0].values + start, context.inputs[1].values + start, y, range.count)
            for input in context.inputs.dropFirst(2) { imprint_add(y, input.values + start, y, range.count) }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        for input in context.inputs {
            guard let dx = input.gradient else { continue }
            forEachRange(batch * context.output.shape.count, context.worker) { range in
                (dx + range.lowerBound).update(from: context.outputGradient + range.lowerBound, count: range.count)
            }
        }
    }
}
