import ImprintCore
import Testing

@testable import ImprintNetwork

/// The memory of plans with transposed convolutions.
@Suite struct TransposedConvolutionMemoryTests {
    struct Example: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let side: Int
        let channels: Int
        let layer: TransposedConvolution
        let algorithm: Algorithm

        func network() throws -> Network {
            var net = NetworkBuilder(
                name: "upsampling", input: TensorShape(height: side, width: side, channels: channels))
            net.add(layer, named: "layer")
            return try net.network()
        }
    }

    private static func layer(
        _ outputs: Int, _ kernel: Size2D, stride: Size2D = 1, padding: Padding = .valid, groups: Int = 1
    ) -> TransposedConvolution {
        TransposedConvolution(
            outputChannels: outputs, kernelSize: kernel, stride: stride, padding: padding, groups: groups)
    }

    static let examples = [
        Example(
            testDescription: "stride 2", side: 7, channels: 40, layer: layer(24, 4, stride: 2, padding: .all(1)),
            algorithm: .im2col),
        // At least 2048 windows, so the weights are packed.
        Example(
            testDescription: "packed weights", side: 24, channels: 20, layer: layer(12, 2, stride: 2),
            algorithm: .im2col
        ),
        Example(
            testDescription: "many weights", side: 6, channels: 140, layer: layer(130, 2, stride: 2), algorithm: .im2col
        ),
        Example(
            testDescription: "groups", side: 9, channels: 12, layer: layer(8, 3, stride: 2, groups: 4),
            algorithm: .im2col),
        Example(testDescription: "1x1", side: 24, channels: 30, layer: layer(18, 1), algorithm: .matrixProduct),
        Example(
            testDescription: "depthwise", side: 8, channels: 24, layer: layer(24, 4, stride: 2, groups: 24),
            algorithm: .direct),
        Example(
            testDescription: "Winograd", side: 14, channels: 48, layer: layer(32, 3, padding: .same),
            algorithm: .winograd),
    ]

    @Test(
        "A prediction plan reserves less memory than a training plan, and its output is bitwise identical",
        arguments: examples,
        [1, 2, 3])
    func memory(_ example: Example, threads: Int) throws {
        let network = try example.network()
        let parameters = try Parameters(network, seed: 2)
        let images = 6
        let input = randomValues(images * network.input.count, "input")
        func run(_ mode: ExecutionPlan.Mode, count: Int) throws -> (output: [Float], scratch: Int) {
            let plan = try ExecutionPlan(
                network, parameters: parameters,
                options: ExecutionPlan.Options(batchSize: images, mode: mode, threads: threads))
            #expect(plan.summary[0].algorithm == example.algorithm)
            _ = plan.input.update(fromContentsOf: input)
            plan.forward(count: count)
            return (Array(plan.output.prefix(count * network.output.count)), plan.summary[0].scratchByteCount)
        }
        for count in [images, 1] {
            let (training, prediction) = (try run(.training, count: count), try run(.prediction, count: count))
            #expect(prediction.scratch < training.scratch)
            expectBitwiseEqual(prediction.output, training.output, "output")
        }
        if example.algorithm == .direct { #expect(try run(.prediction, count: 1).scratch == 0) }
    }
}
