import ImprintCore
import Testing

@testable import ImprintNetwork

/// Sums over the rows of a batch for each channel.
@Suite struct ChannelReductionTests {
    struct Example: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let side: Int
        let channels: Int
        let layer: any Layer
    }

    static let examples = [
        Example(
            testDescription: "bias", side: 33, channels: 5, layer: Convolution(outputChannels: 100, kernelSize: 1)),
        Example(
            testDescription: "few channels", side: 70, channels: 2,
            layer: Convolution(outputChannels: 17, kernelSize: 1)),
        Example(testDescription: "PReLU", side: 20, channels: 130, layer: PReLU()),
        Example(testDescription: "shift", side: 24, channels: 64, layer: Affine(extent: .channels, hasScale: false)),
    ]

    @Test(
        "The sums are bitwise reproducible for any number of threads, and do not depend on the other channels",
        arguments: examples, [1, 3, 8, 15, 16])
    func threads(_ example: Example, images: Int) throws {
        var builder = NetworkBuilder(
            name: "sums", input: TensorShape(height: example.side, width: example.side, channels: example.channels))
        builder.add(example.layer, named: "layer")
        let network = try builder.network()
        let input = randomValues(images * network.input.count, "input")
        let outputGradient = randomValues(images * network.output.count, "output gradient")
        func gradients(threads: Int) throws -> [Float] {
            let parameters = try Parameters(network, seed: 3)
            let plan = try ExecutionPlan(
                network, parameters: parameters,
                options: ExecutionPlan.Options(batchSize: images, mode: .training, threads: threads))
            _ = plan.input.update(fromContentsOf: input)
            plan.forward(count: images)
            _ = plan.outputGradient.update(fromContentsOf: outputGradient)
            plan.backward(count: images)
            return Array(plan.parameterGradients)
        }
        let expected = try gradients(threads: 1)
        #expect(expected.contains { $0 != 0 })
        for threads in [2, 3, 4, 8] {
            expectBitwiseEqual(try gradients(threads: threads), expected, "\(threads) threads")
        }
        guard let entry = try Parameters(network, seed: 3).layout["layer.bias"] else { return }
        // One leaf per image, whose rows are added in blocks of 64, and a tree over the leaves.
        let (channels, pixels) = (network.output.channels, network.output.pixels)
        for channel in [0, channels - 1] {
            let sum = (0..<images * pixels).reduce(0.0) { $0 + Double(outputGradient[$1 * channels + channel]) }
            #expect(abs(Double(expected[entry.offset + channel]) - sum) < 1e-4 * Double(images * pixels).squareRoot())
        }
    }

    @Test(
        "Threads share the channels of a batch with few images",
        arguments: [
            (1, 112 * 112, 64, 4), (1, 14 * 14, 512, 6), (2, 56 * 56, 256, 8), (8, 56 * 56, 256, 2), (1, 1, 1000, 1),
            (16, 112 * 112, 64, 1), (40, 112 * 112, 64, 1), (1, 56 * 56, 12, 1),
        ])
    func blocks(images: Int, rows: Int, channels: Int, expected: Int) {
        #expect(ChannelReduction(channels: channels, rowsPerImage: rows).channelBlocks(images: images) == expected)
    }
}
