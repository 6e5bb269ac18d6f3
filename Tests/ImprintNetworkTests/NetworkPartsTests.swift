import Testing

@testable import ImprintNetwork

@Suite struct NetworkPartsTests {
    private func output(
        _ network: Network, of input: [Float], _ parameters: Parameters
    ) throws -> [Float] {
        let copy = try Parameters(network, seed: 0)
        for entry in copy.layout.entries { copy[entry.name] = parameters[entry.name] }
        let plan = try ExecutionPlan(network, parameters: copy, options: ExecutionPlan.Options(batchSize: 2))
        _ = plan.input.update(from: input)
        plan.forward(count: 2)
        return Array(plan.output)
    }

    @Test("Features and head give bitwise the output of the whole network", arguments: PlanTests.everyNetwork)
    func split(_ example: PlanTests.Example) throws {
        let network = try Network.named(
            example.name, labels: 3, inputSize: example.inputSize, width: example.width)
        let parameters = try Parameters(network, seed: 4)
        let (features, head) = try #require(try network.splitAtHead())
        #expect(features.nodes.map(\.name) + head.nodes.map(\.name) == network.nodes.map(\.name))
        #expect(
            head.denseHeadName == network.denseHeadName && head.input == features.output
                && head.output == network.output)
        let images = randomValues(2 * network.input.count, "images")
        let whole = try output(network, of: images, parameters)
        let parts = try output(head, of: try output(features, of: images, parameters), parameters)
        expectBitwiseEqual(parts, whole, network.name)
    }

    @Test(
        "Heat maps beside boxes are resized, also in the part after the features; added ones leave the others bitwise equal",
        arguments: [false, true])
    func heatMaps(regressesBoxes: Bool) throws {
        let network = try Network.logoDetector(logos: 2, regressesBoxes: regressesBoxes)
        let boxes = regressesBoxes ? BoxCode.count : 0
        #expect(try network.resizingHead(outputs: 5).output.channels == 5 + boxes)
        let (_, head) = try #require(try network.splitAtHead())
        #expect(try head.resizingHead(outputs: 3).output.channels == 3 + boxes)
        let (added, name) = try #require(try network.addingHeatMaps(3))
        #expect(name == "head.added" && added.output.channels == 5 + boxes)
        let parameters = try Parameters(added, seed: 4)
        let images = randomValues(2 * network.input.count, "images")
        let (before, after) = (
            try output(network, of: images, parameters), try output(added, of: images, parameters)
        )
        for position in 0..<(2 * network.output.pixels) {
            let (old, new) = (position * (2 + boxes), position * (5 + boxes))
            expectBitwiseEqual(Array(after[new..<(new + 2)]), Array(before[old..<(old + 2)]), "heat maps")
            expectBitwiseEqual(
                Array(after[(new + 5)..<(new + 5 + boxes)]), Array(before[(old + 2)..<(old + 2 + boxes)]), "boxes")
        }
        #expect(try Network.logonet(labels: 2, inputSize: 32).addingHeatMaps(1) == nil)
    }

    @Test("A network without a head, or with only a head, cannot be split") func noSplit() throws {
        var net = NetworkBuilder(name: "headless", input: TensorShape(height: 4, width: 4, channels: 3))
        net.add(GlobalAveragePool())
        #expect(try net.network().splitAtHead() == nil)
        let onlyHead = try Network(
            name: "head", input: TensorShape(channels: 3),
            nodes: [Network.Node(name: "head", layer: Dense(outputChannels: 2), inputs: [Network.inputName])])
        #expect(try onlyHead.splitAtHead() == nil)
    }

    @Test(
        "A network that ends in an averaged convolution or in sigmoids gets a new dense head", arguments: [true, false])
    func newHead(isConvolution: Bool) throws {
        var net = NetworkBuilder(name: "squeezed", input: TensorShape(height: 9, width: 9, channels: 3))
        net.add(Convolution(outputChannels: 8, kernelSize: 3))
        net.add(ReLU())
        if isConvolution {
            net.add(Convolution(outputChannels: 10, kernelSize: 1))
            net.add(ReLU())
            net.add(GlobalAveragePool())
            net.add(Softmax())
        } else {
            net.add(GlobalAveragePool())
            net.add(Dense(outputChannels: 10))
            net.add(Sigmoid())
        }
        let network = try net.network()
        #expect(network.denseHeadName == nil)
        let replaced = try #require(try network.withDenseHead(outputs: 2))
        let head = try #require(replaced.denseHeadName)
        #expect(network.nodes.contains { $0.name == head })
        #expect(replaced.output == TensorShape(channels: 2))
        #expect(
            replaced.nodes.map { type(of: $0.layer).kind } == [
                "convolution", "relu", "globalAveragePool", "dense", "softmax",
            ])
        #expect(replaced.headChannels == 8)
        #expect(try replaced.splitAtHead() != nil)
    }

    @Test(
        "Maximum pooling can be added to every kind of average pooling before the head",
        arguments: [
            [GlobalAveragePool()], [GlobalAveragePool(), Flatten(), Dropout(rate: 0.2)],
            [MeanLayer(axes: [.height, .width])], [AveragePool(kernelSize: Size2D(height: 5, width: 6)), Flatten()],
        ] as [[any Layer]])
    func maxima(layers: [any Layer]) throws {
        var net = NetworkBuilder(name: "pooled", input: TensorShape(height: 5, width: 6, channels: 3))
        for layer in layers { net.add(layer) }
        net.add(Dense(outputChannels: 2), named: "head")
        let network = try net.network()
        let (pooling, factors) = try #require(try network.withConcatPooling())
        #expect(pooling.denseHeadName == "head" && pooling.headChannels == 6)
        #expect(try pooling.withConcatPooling() == nil)

        let parameters = try Parameters(pooling, seed: 3)
        parameters[factors] = [0.5, 2, 3]
        let images = randomValues(2 * network.input.count, "pixels")
        let weight = try #require(parameters["head.weight"])
        let bias = try #require(parameters["head.bias"])
        var expected: [Float] = []
        for image in 0..<2 {
            let channels = (0..<3).map { channel in (0..<30).map { images[image * 90 + $0 * 3 + channel] } }
            let features =
                channels.map { $0.reduce(0, +) / 30 } + zip([0.5, 2, 3], channels).map { $0 * ($1.max() ?? 0) }
            expected += (0..<2).map { output in
                bias[output] + (0..<6).reduce(0) { $0 + features[$1] * weight[$1 * 2 + output] }
            }
        }
        for (found, expected) in zip(try output(pooling, of: images, parameters), expected) {
            #expect(abs(found - expected) < 1e-5)
        }
    }

    @Test("Maximum pooling cannot be added without average pooling before the head", arguments: ["lenet"])
    func noMaxima(name: String) throws {
        #expect(try Network.named(name, labels: 2).withConcatPooling() == nil)
        var maximum = NetworkBuilder(name: "maximum", input: TensorShape(height: 5, width: 6, channels: 3))
        maximum.add(GlobalMaxPool())
        maximum.add(Dense(outputChannels: 2))
        #expect(try maximum.network().withConcatPooling() == nil)
    }

    @Test("A network without a replaceable layer does not get a new head") func noNewHead() throws {
        var pooled = NetworkBuilder(name: "headless", input: TensorShape(height: 4, width: 4, channels: 3))
        pooled.add(GlobalAveragePool())
        #expect(try pooled.network().withDenseHead(outputs: 2) == nil)
        var normalized = NetworkBuilder(name: "normalized", input: TensorShape(height: 4, width: 4, channels: 3))
        normalized.add(Convolution(outputChannels: 8, kernelSize: 3))
        normalized.add(BatchNormalization())
        normalized.add(GlobalAveragePool())
        #expect(try normalized.network().withDenseHead(outputs: 2) == nil)
    }

    @Test(
        "Blocks are the layers whose outputs have the same size, and the head",
        arguments: [
            ("lenet", 28, [24, 8, 1, 1]), ("logonet", 96, [96, 48, 24, 12, 1]),
            ("mobilenet-v1", 224, [112, 56, 28, 14, 7, 1]), ("resnet-50", 224, [112, 56, 28, 14, 7, 1]),
        ])
    func blocks(name: String, inputSize: Int, heights: [Int]) throws {
        let network = try Network.named(name, labels: 2, inputSize: inputSize)
        let blocks = network.blocks
        let layout = ParameterLayout(network)
        let shapes = Dictionary(uniqueKeysWithValues: zip(network.nodes.map(\.name), network.shapes))
        let found = blocks.map { block in
            Set(layout.entries.filter { block.contains($0.node) }.compactMap { shapes[$0.node]?.height })
        }
        #expect(found == heights.map { [$0] })
        #expect(blocks.last == [try #require(network.denseHeadName)])
        #expect(blocks.reduce(0) { $0 + $1.count } == network.nodes.count)
    }

    /// Batch norms without fused operators, and before an activation, a sum and a pool, all with fixed statistics.
    private static let normalized: [GradientCheckTests.Case] = {
        let convolution = Convolution(outputChannels: 3, kernelSize: 3, padding: .same, hasBias: false)
        func node(_ name: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
            Network.Node(name: name, layer: layer, inputs: inputs)
        }
        return [
            GradientCheckTests.Case(4, 5, 2, convolution, BatchNormalization(), convolution),
            GradientCheckTests.Case(5, 7, 2, convolution, BatchNormalization(), ReLU(), MaxPool(kernelSize: 2)),
            GradientCheckTests.Case(
                TensorShape(height: 4, width: 3, channels: 3),
                [
                    node("1", convolution, "input"), node("2", BatchNormalization(), "1"),
                    node("3", AddLayer(), "2", "input"), node("4", ReLU6(), "3"), node("5", convolution, "4"),
                ]),
        ]
    }()

    @Test("Gradients through batch norms with fixed statistics agree with finite differences", arguments: normalized)
    func gradients(_ example: GradientCheckTests.Case) throws {
        let network = try Network(name: example.testDescription, input: example.input, nodes: example.nodes)
        try GradientCheck(network: try network.withFrozenStatistics(), batch: example.batch, frozen: []).run()
    }

    @Test("Training does not change fixed statistics, and changes scales and shifts")
    func statistics() throws {
        let network = try Network.named("logonet", labels: 2, inputSize: 33, width: 0.25).logits()
        let parameters = try randomParameters(network, seed: 2)
        for entry in parameters.layout.entries where entry.parameter.name == "runningVariance" {
            parameters[entry.name] = parameters[entry.name]?.map { abs($0) + 0.5 }
        }
        let before = try parameters.copy()
        let frozen = try network.withFrozenStatistics()
        #expect(ParameterLayout(frozen) == parameters.layout)
        let plan = try ExecutionPlan(
            frozen, parameters: parameters, options: ExecutionPlan.Options(batchSize: 2, mode: .training))
        let optimizer = try SGD(.init(), for: parameters.layout)
        _ = plan.input.update(from: randomValues(plan.input.count, "input"))
        for _ in 0..<2 {
            plan.forward(count: 2)
            _ = plan.outputGradient.update(from: randomValues(plan.outputGradient.count, "output gradient"))
            plan.backward(count: 2)
            optimizer.step(plan, learningRate: 0.01)
        }
        for entry in parameters.layout.entries {
            let isSame = parameters[entry.name] == before[entry.name]
            #expect(isSame == (entry.parameter.role == .statistic), "\(entry.name)")
        }
    }

    @Test("Squeeze-and-excitation layers belong to the block of the activation that they scale")
    func squeezeAndExcitation() throws {
        func block(_ name: String, from input: String, stride: Int) -> [Network.Node] {
            func node(_ part: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
                Network.Node(name: name + part, layer: layer, inputs: inputs.map { $0.isEmpty ? input : name + $0 })
            }
            let convolution = Convolution(
                outputChannels: 4, kernelSize: 3, stride: Size2D(stride), padding: .same, hasBias: false)
            return [
                node("conv", convolution, ""), node("slope", PReLU(), "conv"),
                node("mean", MeanLayer(axes: [.height, .width]), "slope"),
                node("less", Convolution(outputChannels: 2, kernelSize: 1), "mean"), node("swish", Swish(), "less"),
                node("more", Convolution(outputChannels: 4, kernelSize: 1), "swish"),
                node("gate", HardSigmoid(), "more"), node("out", MultiplyLayer(), "slope", "gate"),
            ]
        }
        let network = try Network(
            name: "se", input: TensorShape(height: 8, width: 8, channels: 3),
            nodes: block("a.", from: "input", stride: 2) + block("b.", from: "a.out", stride: 2) + [
                Network.Node(name: "pool", layer: GlobalAveragePool(), inputs: ["b.out"]),
                Network.Node(name: "head", layer: Dense(outputChannels: 2), inputs: ["pool"]),
            ])
        let names = network.nodes.map(\.name)
        #expect(
            network.blocks == [
                Set(names.filter { $0.hasPrefix("a.") }), Set(names.filter { $0.hasPrefix("b.") } + ["pool"]), ["head"],
            ])
        let (features, tail) = try #require(try network.split(beforeLast: 1))
        #expect(features.nodes.last?.name == "a.out" && tail.nodes.first?.name == "b.conv")
        let adapted = try network.withAdapters(rank: 1)
        #expect(adapted.frozen == Set(names) && adapted.network.output == network.output)
    }
}
