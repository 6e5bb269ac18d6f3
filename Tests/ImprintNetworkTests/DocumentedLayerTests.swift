internal import CImprintKernels
import Testing

@testable import ImprintNetwork

private enum Documented {
    // Example of docs/how-to/adding-a-layer.md begins
    /// Multiplies every element by the same factor, y = `factor` · x.
    public struct Scale: Layer {
        public static let kind = "scale"
        /// The factor.
        public let factor: Float

        /// Creates the layer.
        public init(factor: Float) { self.factor = factor }

        public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
            try check("Scale", "factor", factor, factor.isFinite, "a finite number")
            return try onlyInput("Scale", inputs)
        }

        public var backwardReads: BackwardReads { [] }
        public var inPlace: InPlace { .overwriting }

        public func forward(_ context: LayerContext, batch: Int) {
            context.parallelFor(batch * context.output.shape.count) { range in
                let start = range.lowerBound
                imprint_scale(context.input.values + start, factor, context.output.values + start, range.count)
            }
        }

        public func backward(_ context: LayerContext, batch: Int) {
            guard let dx = context.input.gradient else { return }
            context.parallelFor(batch * context.output.shape.count) { range in
                let start = range.lowerBound
                imprint_scale(context.outputGradient + start, factor, dx + start, range.count)
            }
        }
    }
    // Example ends
}

@Suite struct DocumentedLayerTests {
    @Test("The layer that the guide adds to Imprint computes its output and its gradient")
    func scale() throws {
        let layer = Documented.Scale(factor: 2.5)
        let nodes = [Network.Node(name: "scale", layer: layer, inputs: [Network.inputName])]
        let network = try Network(
            name: "scale", input: TensorShape(height: 3, width: 2, channels: 5), nodes: nodes)
        let plan = try ExecutionPlan(
            network, parameters: Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
        for index in plan.input.indices { plan.input[index] = Float(index) }
        plan.forward(count: 1)
        #expect(Array(plan.output) == (0..<30).map { 2.5 * Float($0) })
        try GradientCheck(network: network, batch: 3).run()
    }

    @Test("The layer that the guide adds to Imprint rejects a factor that is not finite")
    func factor() throws {
        #expect(throws: NetworkError.self) {
            try Documented.Scale(factor: .infinity).outputShape(for: [TensorShape(channels: 1)])
        }
    }
}
