import Foundation
import Testing

@testable import ImprintNetwork

/// Tests that sizes beyond memory and 32-bit counts are errors and do not trap.
@Suite struct NetworkLimitsTests {
    private static let limit = Int(Int32.max)
    private static let huge = [1 << 31, 1_000_000_000_000, 1 << 40, 1 << 62, Int.max]

    private func network(_ input: TensorShape, _ layers: any Layer...) throws(NetworkError) -> Network {
        var net = NetworkBuilder(name: "net", input: input)
        for layer in layers { net.add(layer) }
        return try net.network()
    }

    private func expectRejected(
        _ property: String, _ input: TensorShape, _ layer: any Layer, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(sourceLocation: sourceLocation) {
            try network(input, layer)
        } throws: { error in
            var error = error as? NetworkError
            if case .inNode(_, let inner) = error { error = inner }
            guard case .invalidProperty(_, property, _, _) = error else { return false }
            return true
        }
    }

    @Test("An input with more than 2³¹ − 1 elements is rejected", arguments: huge)
    func input(_ size: Int) {
        expectRejected("input", TensorShape(height: size, width: 1, channels: 1), ReLU())
        expectRejected("input", TensorShape(height: 1, width: size, channels: 2), ReLU())
        expectRejected("input", TensorShape(height: size, width: size, channels: size), ReLU())
        expectRejected("input", TensorShape(height: -size, width: -1, channels: 1), ReLU())
        expectRejected("input", TensorShape(height: 1, width: .min, channels: .min), ReLU())
    }

    @Test("The largest input is accepted, one element more is rejected")
    func largestInput() throws {
        #expect(try network(TensorShape(channels: Self.limit), ReLU()).output.count == Self.limit)
        expectRejected("input", TensorShape(channels: Self.limit + 1), ReLU())
        #expect(
            try network(TensorShape(height: 46_340, width: 46_340, channels: 1), ReLU()).output.pixels == 46_340
                * 46_340)
        expectRejected("input", TensorShape(height: 46_341, width: 46_341, channels: 1), ReLU())
    }

    @Test("Outputs and parameters have the same limit as inputs", arguments: huge)
    func layers(_ size: Int) {
        let image = TensorShape(height: 4, width: 4, channels: 4)
        expectRejected("output", TensorShape(channels: 4), Dense(outputChannels: size))
        expectRejected("output", image, Convolution(outputChannels: size, kernelSize: 1))
        expectRejected("kernelSize", image, Convolution(outputChannels: 1, kernelSize: Size2D(size)))
        expectRejected("stride", image, MaxPool(kernelSize: 2, stride: Size2D(size)))
        expectRejected("dilation", image, Convolution(outputChannels: 1, kernelSize: 1, dilation: Size2D(size)))
        expectRejected("padding", image, Convolution(outputChannels: 1, kernelSize: 1, padding: .all(size)))
        expectRejected("kernelSize", image, AveragePool(kernelSize: Size2D(-size)))
        expectRejected("groups", image, Convolution(outputChannels: 4, kernelSize: 1, groups: size))
        expectRejected("groups", image, Convolution(outputChannels: 4, kernelSize: 1, groups: -size))
        expectRejected("outputChannels", image, Convolution(outputChannels: -size, kernelSize: 1))
        expectRejected("sides", image, PadLayer(top: 0, left: size, bottom: 0, right: 0, mode: .edge))
        expectRejected("factor", image, UpsampleNearest(factor: Size2D(size)))
        expectRejected("output", TensorShape(height: 9, width: 1, channels: 1), UpsampleNearest(factor: 32_768))
        expectRejected("channels", image, SelectChannels(channels: [size, -size]))
    }

    @Test("A channel window of any size is clamped to the channels")
    func responseSize() throws {
        for size in Self.huge {
            let network = try network(TensorShape(channels: 3), LocalResponseNormalization(size: size, alpha: 1))
            let plan = try ExecutionPlan(
                network, parameters: try Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
            _ = plan.input.update(from: [1, 2, 3])
            plan.forward(count: 1)
            // Divided by such a window size, the sum of squares is nearly 0.
            #expect(zip(plan.output, [1, 2, 3] as [Float]).allSatisfy { abs($0 - $1) < 1e-5 })
        }
    }

    @Test("A layer is rejected if the product of its sizes is too large")
    func products() {
        let wide = TensorShape(channels: 1 << 16)
        expectRejected("weight", wide, Dense(outputChannels: 1 << 15))
        expectRejected("weight", wide, Convolution(outputChannels: 1 << 15, kernelSize: 1))
        // A kernel of 2¹⁵ x 2¹⁵ taps, which fits because of the padding.
        expectRejected(
            "weight", TensorShape(channels: 2),
            Convolution(outputChannels: 1, kernelSize: 32_768, padding: .all(32_768)))
        expectRejected(
            "output", TensorShape(height: 2, width: 2, channels: 1),
            Convolution(outputChannels: 1, kernelSize: 1, padding: .all(32_768)))
        #expect(throws: NetworkError.self) {
            try Network(
                name: "net", input: TensorShape(channels: Self.limit),
                nodes: [Network.Node(name: "twice", layer: Concat(), inputs: [Network.inputName, Network.inputName])])
        }
    }

    @Test("A network has at most 16,384 nodes")
    func nodes() throws {
        let nodes = (0..<16_384).map { index in
            Network.Node(name: "\(index)", layer: ReLU(), inputs: [index == 0 ? Network.inputName : "\(index - 1)"])
        }
        let input = TensorShape(channels: 1)
        #expect(try Network(name: "net", input: input, nodes: nodes).nodes.count == 16_384)
        let more = nodes + [Network.Node(name: "last", layer: ReLU(), inputs: ["16383"])]
        let error = NetworkError.invalidProperty(
            layer: "network", property: "number of nodes", found: "16385", expected: "at most 16384")
        #expect(throws: error) { try Network(name: "net", input: input, nodes: more) }
    }

    @Test("Ready-made networks with invalid sizes are rejected", arguments: Network.readyMadeNames)
    func readyMade(_ name: String) {
        for size in [Int.min, -1, 0, 1] + Self.huge {
            #expect(throws: NetworkError.self) { try Network.named(name, labels: 2, inputSize: size == 1 ? 0 : size) }
            if size < 1 || size > Self.limit {
                #expect(throws: NetworkError.self) { try Network.named(name, labels: size) }
            }
        }
        for width in [Double.nan, .infinity, -.infinity, -1, 0, 17, 1e300] {
            #expect(throws: NetworkError.self) { try Network.named(name, labels: 2, width: width) }
        }
    }

    @Test(
        "A stored description with invalid sizes is an error",
        arguments: [
            (#""height":9"#, #""height":1000000000000"#), (#""width":9"#, #""width":-9"#),
            (#""channels":2"#, #""channels":4611686018427387904"#),
            (#""channels":2"#, #""channels":9223372036854775808"#), (#""channels":2"#, #""channels":2.5"#),
            (#""channels":2"#, #""channels":null"#), (#""channels":2"#, #""channels":1e400"#),
            (#""outputChannels":3"#, #""outputChannels":4611686018427387904"#),
            (#""groups":1"#, #""groups":0"#), (#""groups":1"#, #""groups":-1"#),
            (#""kernelSize":{"height":5"#, #""kernelSize":{"height":1099511627776"#),
            (#""dilation":{"height":1"#, #""dilation":{"height":9223372036854775807"#),
            (#""stride":{"height":1"#, #""stride":{"height":0"#),
            (#""top":0"#, #""top":9223372036854775807"#), (#""top":0"#, #""top":-1"#),
            (#""kind":"convolution""#, #""kind":"""#), (#""inputs":["input"]"#, #""inputs":"input""#),
        ])
    func stored(part: String, replacement: String) throws {
        let layer = Convolution(
            outputChannels: 3, kernelSize: Size2D(height: 5, width: 4),
            padding: .explicit(top: 0, left: 1, bottom: 2, right: 3))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(
            decoding: try encoder.encode(network(TensorShape(height: 9, width: 9, channels: 2), layer)), as: UTF8.self)
        try #require(text.contains(part), "\(text)")
        #expect(throws: (any Error).self) {
            try JSONDecoder().decode(Network.self, from: Data(text.replacing(part, with: replacement).utf8))
        }
    }
}
