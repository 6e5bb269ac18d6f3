import Foundation
import Testing

@testable import ImprintNetwork

/// Sizes beyond what memory and 32-bit counts hold: an error, never a trap.
@Suite struct NetworkLimitsTests {
    private static let limit = Int(Int32.max)
    private static let huge = [1 << 31, 1_000_000_000_000, 1 << 40, 1 << 62, Int.max]

    private func network(_ input: TensorShape, _ layers: any Layer...) throws(NetworkError) -> Network {
        var net = NetworkBuilder(name: "net", input: input)
        for layer in layers { net.add(layer) }
        return try net.network()
    }

    private func expectRefused(
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

    @Test("An input has at most 2³¹ − 1 numbers", arguments: huge)
    func input(_ size: Int) {
        expectRefused("input", TensorShape(height: size, width: 1, channels: 1), ReLU())
        expectRefused("input", TensorShape(height: 1, width: size, channels: 2), ReLU())
        expectRefused("input", TensorShape(height: size, width: size, channels: size), ReLU())
        expectRefused("input", TensorShape(height: -size, width: -1, channels: 1), ReLU())
        expectRefused("input", TensorShape(height: 1, width: .min, channels: .min), ReLU())
    }

    @Test("The largest input is taken, one number more is not")
    func largestInput() throws {
        #expect(try network(TensorShape(channels: Self.limit), ReLU()).output.count == Self.limit)
        expectRefused("input", TensorShape(channels: Self.limit + 1), ReLU())
        #expect(
            try network(TensorShape(height: 46_340, width: 46_340, channels: 1), ReLU()).output.pixels == 46_340
                * 46_340)
        expectRefused("input", TensorShape(height: 46_341, width: 46_341, channels: 1), ReLU())
    }

    @Test("Results and parameters are limited alike", arguments: huge)
    func layers(_ size: Int) {
        let image = TensorShape(height: 4, width: 4, channels: 4)
        expectRefused("result", TensorShape(channels: 4), Dense(outputChannels: size))
        expectRefused("result", image, Convolution(outputChannels: size, kernelSize: 1))
        expectRefused("kernelSize", image, Convolution(outputChannels: 1, kernelSize: Size2D(size)))
        expectRefused("stride", image, MaxPool(kernelSize: 2, stride: Size2D(size)))
        expectRefused("dilation", image, Convolution(outputChannels: 1, kernelSize: 1, dilation: Size2D(size)))
        expectRefused("padding", image, Convolution(outputChannels: 1, kernelSize: 1, padding: .all(size)))
        expectRefused("kernelSize", image, AveragePool(kernelSize: Size2D(-size)))
        expectRefused("groups", image, Convolution(outputChannels: 4, kernelSize: 1, groups: size))
        expectRefused("groups", image, Convolution(outputChannels: 4, kernelSize: 1, groups: -size))
        expectRefused("outputChannels", image, Convolution(outputChannels: -size, kernelSize: 1))
        expectRefused("sides", image, PadLayer(top: 0, left: size, bottom: 0, right: 0, mode: .edge))
        expectRefused("factor", image, UpsampleNearest(factor: Size2D(size)))
        expectRefused("result", TensorShape(height: 9, width: 1, channels: 1), UpsampleNearest(factor: 32_768))
        expectRefused("channels", image, SelectChannels(channels: [size, -size]))
    }

    @Test("A window of any size over the channels is cut to them")
    func responseSize() throws {
        for size in Self.huge {
            let network = try network(TensorShape(channels: 3), LocalResponseNormalization(size: size, alpha: 1))
            let plan = try ExecutionPlan(
                network, parameters: try Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
            _ = plan.input.update(from: [1, 2, 3])
            plan.forward(count: 1)
            // The mean square over so many channels is nearly 0.
            #expect(zip(plan.output, [1, 2, 3] as [Float]).allSatisfy { abs($0 - $1) < 1e-5 })
        }
    }

    @Test("A layer whose parts are small may still be too large")
    func products() {
        let wide = TensorShape(channels: 1 << 16)
        expectRefused("weight", wide, Dense(outputChannels: 1 << 15))
        expectRefused("weight", wide, Convolution(outputChannels: 1 << 15, kernelSize: 1))
        // 2¹⁵ x 2¹⁵ places of the kernel, reached through the border.
        expectRefused(
            "weight", TensorShape(channels: 2),
            Convolution(outputChannels: 1, kernelSize: 32_768, padding: .all(32_768)))
        expectRefused(
            "result", TensorShape(height: 2, width: 2, channels: 1),
            Convolution(outputChannels: 1, kernelSize: 1, padding: .all(32_768)))
        #expect(throws: NetworkError.self) {
            try Network(
                name: "net", input: TensorShape(channels: Self.limit),
                nodes: [Network.Node(name: "twice", layer: Concat(), inputs: [Network.inputName, Network.inputName])])
        }
    }

    @Test("Ready-made networks of any size are made or refused", arguments: Network.readyMadeNames)
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
        "A stored description with sizes out of reach is an error",
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
