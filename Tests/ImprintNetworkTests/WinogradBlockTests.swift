import ImprintCore
import Testing

@testable import ImprintNetwork

/// The blocks of tiles that threads share in a Winograd convolution.
@Suite struct WinogradBlockTests {
    /// Returns the layer and its input.
    private func convolution(_ side: Int, _ inputs: Int, _ outputs: Int) -> (layer: Convolution, input: TensorShape) {
        (
            Convolution(outputChannels: outputs, kernelSize: 3, padding: .same),
            TensorShape(height: side, width: side, channels: inputs)
        )
    }

    @Test(
        "All threads have tiles of a single image, unless the blocks would be too small",
        arguments: [
            // 24 pixels are 6 rows of 6 tiles. 48 pixels are 12 rows of 12 tiles, and a block has at most 4 of these rows.
            (24, 1, 1), (24, 2, 2), (24, 3, 3), (24, 8, 3), (48, 1, 3), (48, 2, 4), (48, 8, 6),
            // 12 pixels are 3 rows of 3 tiles, too few to divide.
            (12, 2, 1),
        ])
    func blocks(side: Int, threads: Int, blocks: Int) {
        let (layer, input) = convolution(side, 32, 32)
        let winograd = Winograd(layer, over: input)
        #expect(winograd.evenBlockCount(rows: Int(winograd.tiles.tile_rows), threads: threads) == blocks)
    }

    @Test("The blocks of a large batch do not become smaller") func batch() {
        let (layer, input) = convolution(48, 32, 32)
        #expect(Winograd(layer, over: input).evenBlockCount(rows: 32 * 12, threads: 2) == 96)
    }

    @Test(
        "Results are bitwise identical for any number of threads",
        arguments: [(24, 64, 48), (28, 17, 130), (48, 16, 33), (24, 40, 43)])
    func threads(side: Int, inputs: Int, outputs: Int) throws {
        let (layer, input) = convolution(side, inputs, outputs)
        let network = try Network(
            name: "winograd", input: input, nodes: [Network.Node(name: "conv", layer: layer, inputs: ["input"])])
        let parameters = try Parameters(network, seed: 3)
        var expected: [Float]?
        for threads in [1, 2, 3, 5] {
            let plan = try ExecutionPlan(
                network, parameters: parameters,
                options: ExecutionPlan.Options(batchSize: 1, mode: .prediction, workers: Workers(threads)))
            for index in plan.input.indices { plan.input[index] = Float(index * 7919 % 1000) / 500 - 1 }
            plan.forward(count: 1)
            let output = Array(plan.output)
            #expect(output == expected ?? output)
            expected = output
        }
    }

    @Test(
        "Moments of batch normalization are bitwise identical for any number of threads", arguments: [1, 2, 3],
        [43, 64])
    func moments(images: Int, outputs: Int) throws {
        let (layer, input) = convolution(24, 40, outputs)
        var net = NetworkBuilder(name: "moments", input: input)
        net.add(layer, named: "conv", to: [Network.inputName])
        net.add(BatchNormalization(momentum: 1), named: "norm")
        let network = try net.network()
        var expected: [[Float]]?
        for threads in [1, 2, 3, 5] {
            let parameters = try Parameters(network, seed: 3)
            let plan = try ExecutionPlan(
                network, parameters: parameters,
                options: ExecutionPlan.Options(batchSize: images, mode: .training, workers: Workers(threads)))
            for index in plan.input.indices { plan.input[index] = Float(index * 7919 % 1000) / 500 - 1 }
            plan.forward(count: images)
            let results = [
                Array(plan.output), try #require(parameters["norm.runningMean"]),
                try #require(parameters["norm.runningVariance"]),
            ]
            #expect(results == expected ?? results)
            expected = results
        }
    }
}
