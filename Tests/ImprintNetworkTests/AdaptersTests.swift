import Testing

@testable import ImprintNetwork

/// Tests of networks split before their last blocks and of low-rank adapters (LoRA).
@Suite struct AdaptersTests {
    /// A network and the number of blocks before its head that are adapted.
    struct Case: Sendable, CustomTestStringConvertible {
        let example: PlanTests.Example
        let blocks: Int
        var testDescription: String { "\(example.name), \(blocks) blocks" }
    }

    private static let cases: [Case] = [
        (PlanTests.Example(name: "lenet", inputSize: 28, width: 0.5), 2),
        (PlanTests.Example(name: "logonet", inputSize: 33, width: 0.25), 3),
        (PlanTests.Example(name: "mobilenet-v1", inputSize: 64, width: 0.25), 4),
        (PlanTests.Example(name: "resnet-50", inputSize: 64, width: 0.05), 4),
    ].flatMap { example, blocks in (0...blocks).map { Case(example: example, blocks: $0) } }

    /// Returns the output for two images.
    private func output(
        _ network: Network, of input: [Float], _ parameters: Parameters, mode: ExecutionPlan.Mode = .prediction
    ) throws -> [Float] {
        let copy = try Parameters(ParameterLayout(network))
        for entry in copy.layout.entries { copy[entry.name] = parameters[entry.name] }
        let plan = try ExecutionPlan(
            network, parameters: copy, options: ExecutionPlan.Options(batchSize: 2, mode: mode))
        _ = plan.input.update(from: input)
        plan.forward(count: 2)
        return Array(plan.output)
    }

    @Test("Features and tail give bitwise the output of the whole network, for every split", arguments: cases)
    func split(_ example: Case) throws {
        let network = try example.example.network()
        let parameters = try randomParameters(network, seed: 4)
        let (features, tail) = try #require(try network.split(beforeLast: example.blocks))
        #expect(features.nodes.map(\.name) + tail.nodes.map(\.name) == network.nodes.map(\.name))
        #expect(tail.denseHeadName == network.denseHeadName && tail.input == features.output)
        let inTail = Set(tail.nodes.map(\.name))
        for block in network.blocks.suffix(example.blocks + 1) { #expect(block.isSubset(of: inTail)) }
        // Only in a ResNet does the tail contain parameters of earlier blocks: the first layers of a residual block with a stride
        // have more pixels than the block and read the same node as the shortcut.
        let before = network.blocks.dropLast(example.blocks + 1).reduce(into: Set()) { $0.formUnion($1) }
        let additional = Set(ParameterLayout(tail).entries.map(\.node)).intersection(before)
        let isResidual = example.example.name == "resnet-50" && (1...3).contains(example.blocks)
        #expect(additional.count == (isResidual ? 2 : 0), "\(additional.sorted())")
        let images = randomValues(2 * network.input.count, "images")
        let parts = try output(tail, of: output(features, of: images, parameters), parameters)
        expectBitwiseEqual(parts, try output(network, of: images, parameters), network.name)
    }

    @Test(
        "All blocks except the first can be adapted",
        arguments: [("lenet", 28, 2), ("logonet", 96, 3), ("mobilenet-v1", 224, 4), ("resnet-50", 224, 4)])
    func maximumBlocks(name: String, inputSize: Int, blocks: Int) throws {
        let network = try Network.named(name, labels: 2, inputSize: inputSize)
        #expect(network.maximumAdaptedBlocks == blocks && network.blocks.count == blocks + 2)
    }

    private func node(_ name: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
        Network.Node(name: name, layer: layer, inputs: inputs)
    }

    private let convolution = Convolution(outputChannels: 3, kernelSize: 3, padding: .same)

    @Test("A block that reads an earlier node moves the split before that node; one that reads the input prevents it")
    func crossing() throws {
        func network(_ last: String) throws -> Network {
            try Network(
                name: "crossing", input: TensorShape(height: 8, width: 8, channels: 3),
                nodes: [
                    node("a", convolution, "input"), node("b", convolution, "a"),
                    node("pool", MaxPool(kernelSize: 2), "b"), node("c", convolution, "pool"),
                    node("short", MaxPool(kernelSize: 2), last), node("sum", AddLayer(), "c", "short"),
                    node("mean", GlobalAveragePool(), "sum"), node("head", Dense(outputChannels: 2), "mean"),
                ])
        }
        let fromA = try network("a")
        #expect(fromA.maximumAdaptedBlocks == 1)
        let (features, tail) = try #require(try fromA.split(beforeLast: 1))
        #expect(features.nodes.map(\.name) == ["a"] && tail.nodes.map(\.name).first == "b")
        let parameters = try randomParameters(fromA, seed: 3)
        let images = randomValues(2 * fromA.input.count, "images")
        expectBitwiseEqual(
            try output(tail, of: output(features, of: images, parameters), parameters),
            try output(fromA, of: images, parameters), "crossing")
        #expect(try network("input").split(beforeLast: 1) == nil)
        #expect(try network("input").split(beforeLast: 0)?.tail.nodes.map(\.name) == ["head"])
    }

    @Test("A network without a head, or with only a head, cannot be split") func noHead() throws {
        let headless = try Network(
            name: "headless", input: TensorShape(height: 4, width: 4, channels: 3),
            nodes: [node("a", convolution, "input"), node("mean", GlobalAveragePool(), "a")])
        #expect(try headless.maximumAdaptedBlocks == 0 && headless.split(beforeLast: 0) == nil)
        let adapted = try headless.withAdapters(rank: 2)
        #expect(adapted.adapters == [.lowRank(node: "a", left: "a.left", right: "a.right")])
        let onlyHead = try Network(
            name: "head", input: TensorShape(channels: 3), nodes: [node("head", Dense(outputChannels: 2), "input")])
        #expect(try onlyHead.maximumAdaptedBlocks == 0 && onlyHead.split(beforeLast: 0) == nil)
        #expect(try onlyHead.withAdapters(rank: 1).adapters == [.fullRank(node: "head", delta: "head.change")])
        let detector = try Network.logoDetector(logos: 2)
        #expect(detector.maximumAdaptedBlocks == 0)
        #expect(try detector.split(beforeLast: 0)?.tail.nodes.map(\.name) == ["head"])
        let withBoxes = try Network.logoDetector(logos: 2, regressesBoxes: true)
        let tail = try #require(try withBoxes.split(beforeLast: 0)?.tail)
        #expect(tail.nodes.map(\.name) == ["head", "boxes", "output"] && withBoxes.maximumAdaptedBlocks == 0)
        // As a base model, it gets a head for whole photos.
        let classifier = try #require(try withBoxes.withDenseHead(outputs: 3))
        #expect(classifier.output.channels == 3 && !classifier.nodes.contains { $0.name == "boxes" })
    }

    /// Layers of every kind, with and without adapters, in unusual shapes.
    private static let shapes: [GradientCheckTests.Case] = [
        GradientCheckTests.Case(7, 5, 2, Convolution(outputChannels: 3, kernelSize: 3, padding: .same)),
        GradientCheckTests.Case(
            7, 5, 3, Convolution(outputChannels: 4, kernelSize: Size2D(height: 2, width: 3), stride: 2, hasBias: false),
            BatchNormalization(), ReLU()),
        GradientCheckTests.Case(
            9, 8, 2, Convolution(outputChannels: 3, kernelSize: 3, padding: .all(2), dilation: 2), ReLU6()),
        GradientCheckTests.Case(
            5, 6, 4, Convolution(outputChannels: 4, kernelSize: 3, padding: .same, groups: 4),
            Convolution(outputChannels: 5, kernelSize: 1), GlobalAveragePool(), Dense(outputChannels: 1)),
        GradientCheckTests.Case(
            4, 3, 2, Flatten(), Dense(outputChannels: 6), ReLU(), Dense(outputChannels: 4, hasBias: false), Softmax()),
        GradientCheckTests.Case(1, 1, 5, Dense(outputChannels: 3)),
    ]

    @Test("Gradients of the adapters agree with finite differences", arguments: shapes, [1, 2])
    func gradients(_ example: GradientCheckTests.Case, rank: Int) throws {
        let plain = try Network(name: example.testDescription, input: example.input, nodes: example.nodes)
        let adapted = try plain.withAdapters(rank: rank)
        try GradientCheck(network: adapted.network, batch: 3, frozen: adapted.frozen).run()
    }

    /// Returns the parameters of the plain network, with random parameters for the adapters.
    private func adaptedParameters(
        _ adapted: (network: Network, adapters: [Network.Adapter], frozen: Set<String>), _ plain: Parameters,
        addends scale: Float
    ) throws -> Parameters {
        let parameters = try Parameters(ParameterLayout(adapted.network))
        var addends = Set<String>()
        for adapter in adapted.adapters {
            switch adapter {
            case .fullRank(_, let change): addends.insert(change)
            case .lowRank(_, _, let right): addends.insert(right)
            }
        }
        for entry in parameters.layout.entries {
            let factor = addends.contains(entry.node) ? scale : 0.3
            parameters[entry.name] =
                plain[entry.name] ?? randomValues(entry.parameter.count, entry.name).map { $0 * factor }
        }
        return parameters
    }

    /// Adds the adapters to the plain parameters: A·B to each weight, the sum of both layers for the head.
    private func merge(_ adapters: [Network.Adapter], _ adapted: Parameters, into plain: Parameters) throws {
        for adapter in adapters {
            switch adapter {
            case .fullRank(let node, let change):
                for name in ["weight", "bias"] {
                    guard let values = plain["\(node).\(name)"], let change = adapted["\(change).\(name)"] else {
                        continue
                    }
                    plain["\(node).\(name)"] = zip(values, change).map { $0 + $1 }
                }
            case .lowRank(let node, let left, let right):
                let (a, b) = (try #require(adapted["\(left).weight"]), try #require(adapted["\(right).weight"]))
                let rank = try #require(adapted.layout["\(left).weight"]?.parameter.shape.last)
                let columns = b.count / rank
                var values = try #require(plain["\(node).weight"])
                for index in values.indices {
                    let (row, column) = (index / columns, index % columns)
                    let change = (0..<rank).reduce(0.0) {
                        $0 + Double(a[row * rank + $1]) * Double(b[$1 * columns + column])
                    }
                    values[index] = Float(Double(values[index]) + change)
                }
                plain["\(node).weight"] = values
            }
        }
    }

    private func expectClose(_ actual: [Float], _ expected: [Float], within tolerance: Float, _ name: String) {
        let rootMeanSquare = (expected.reduce(0) { $0 + $1 * $1 } / Float(expected.count)).squareRoot()
        let maximum = zip(actual, expected).map { abs($0 - $1) }.max() ?? .nan
        // NaN fails this comparison.
        if !(actual.count == expected.count && maximum <= tolerance * rootMeanSquare) {
            Issue.record("\(name): differs by \(maximum); the root mean square is \(rootMeanSquare)")
        }
    }

    @Test(
        "Adapters of 0 keep the output bitwise in training, and up to batch-norm folding in prediction",
        arguments: cases.filter { $0.blocks == 1 })
    func noChange(_ example: Case) throws {
        let plain = try example.example.network()
        let parameters = try randomParameters(plain, seed: 6)
        let adapted = try plain.withAdapters(rank: 3)
        let withAdapters = try adaptedParameters(adapted, parameters, addends: 0)
        let images = randomValues(2 * plain.input.count, "images")
        let frozen = try plain.withFrozenStatistics()
        expectBitwiseEqual(
            try output(adapted.network, of: images, withAdapters, mode: .training),
            try output(frozen, of: images, parameters, mode: .training), plain.name)
        // Prediction folds a batch norm into the convolution before it, which is not possible after a sum.
        expectClose(
            try output(adapted.network, of: images, withAdapters), try output(plain, of: images, parameters),
            within: 1e-5, plain.name)
    }

    @Test(
        "A network with adapters gives the output of a network with the weights W + A·B",
        arguments: cases.filter { $0.blocks <= 1 }, [1, 4])
    func lowRank(_ example: Case, rank: Int) throws {
        let whole = try example.example.network()
        // Either the whole network, or only its tail, which is trained.
        let plain = example.blocks == 0 ? whole : try #require(try whole.split(beforeLast: 1)).tail
        let parameters = try randomParameters(plain, seed: 8)
        let adapted = try plain.withAdapters(rank: rank)
        let withAdapters = try adaptedParameters(adapted, parameters, addends: 0.3)
        let merged = try parameters.copy()
        try merge(adapted.adapters, withAdapters, into: merged)
        let images = randomValues(2 * plain.input.count, "images")
        let expected = try output(plain, of: images, merged)
        expectClose(try output(adapted.network, of: images, withAdapters), expected, within: 1e-4, plain.name)
        #expect(try output(plain, of: images, parameters) != expected)
    }

    @Test(
        "Every convolution without groups and every dense layer has an adapter",
        arguments: cases.filter { $0.blocks == 0 })
    func everyLayer(_ example: Case) throws {
        let network = try example.example.network()
        let adapted = try network.withAdapters(rank: 2)
        let expected = network.nodes.filter { node in
            node.layer is Dense || (node.layer as? Convolution).map { $0.groups == 1 } == true
        }.map(\.name)
        let found = adapted.adapters.map { adapter in
            switch adapter {
            case .fullRank(let node, _), .lowRank(let node, _, _): node
            }
        }
        #expect(found == expected && adapted.frozen == Set(network.nodes.map(\.name)))
        #expect(adapted.network.output == network.output && adapted.network.input == network.input)
        let layout = ParameterLayout(adapted.network)
        for entry in ParameterLayout(network).entries { #expect(layout[entry.name]?.parameter == entry.parameter) }
    }

    @Test("Steps change every adapter and no frozen parameter", arguments: cases.filter { $0.blocks == 1 })
    func frozen(_ example: Case) throws {
        let plain = try #require(try example.example.network().split(beforeLast: 1)).tail
        let adapted = try plain.withAdapters(rank: 2)
        let parameters = try adaptedParameters(adapted, try randomParameters(plain, seed: 2), addends: 0.1)
        let before = try parameters.copy()
        let plan = try ExecutionPlan(
            adapted.network, parameters: parameters,
            options: ExecutionPlan.Options(batchSize: 3, mode: .training, frozen: adapted.frozen))
        // Without weight decay, only gradients change the parameters.
        let optimizer = try AdamW(.init(weightDecay: 0), for: parameters.layout)
        for step in 0..<3 {
            _ = plan.input.update(from: randomValues(plan.input.count, "input \(step)"))
            plan.forward(count: 3)
            _ = plan.outputGradient.update(from: randomValues(plan.outputGradient.count, "gradient \(step)"))
            plan.backward(count: 3)
            optimizer.step(plan, learningRate: 0.01)
        }
        for entry in parameters.layout.entries {
            let (old, new) = (try #require(before[entry.name]), try #require(parameters[entry.name]))
            if adapted.frozen.contains(entry.node) {
                expectBitwiseEqual(new, old, entry.name)
            } else {
                #expect(old != new && new.allSatisfy(\.isFinite), "\(entry.name)")
            }
        }
    }

    @Test("Dense and convolutional heads can have another number of outputs", arguments: [true, false])
    func resizingHead(hasBias: Bool) throws {
        let mean = node("mean", GlobalAveragePool(), "input")
        let heads: [any Layer] = [
            Dense(outputChannels: 2, hasBias: hasBias), Convolution(outputChannels: 2, kernelSize: 1, hasBias: hasBias),
        ]
        for head in heads {
            let network = try Network(
                name: "x", input: TensorShape(height: 4, width: 4, channels: 3),
                nodes: [mean, node("head", head, "mean")])
            let wider = try network.resizingHead(outputs: 5)
            #expect(wider.output == TensorShape(channels: 5) && wider.headIndex == network.headIndex)
            #expect(ParameterLayout(wider).entries.map(\.name) == ParameterLayout(network).entries.map(\.name))
            #expect(try wider.resizingHead(outputs: 2) == network)
        }
    }
}
