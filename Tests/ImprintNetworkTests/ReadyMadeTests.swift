import TestSupport
import Testing

@testable import ImprintNetwork

@Suite("Ready-made networks") struct ReadyMadeTests {
    /// Ready-made networks with their input sizes and the numbers of parameters in torchvision and, for EfficientNet-Lite, in timm.
    static let published = [
        ("mobilenet-v2", 224, 3_504_872), ("mobilenet-v3-small", 224, 2_542_856),
        ("mobilenet-v3-large", 224, 5_483_032),
        ("efficientnet-lite0", 224, 4_652_008), ("efficientnet-lite1", 240, 5_416_680),
        ("efficientnet-lite2", 260, 6_092_072), ("efficientnet-lite3", 280, 8_197_096),
        ("efficientnet-lite4", 300, 13_006_568), ("efficientnet-b0", 224, 5_288_548), ("resnet-18", 224, 11_689_512),
        ("resnet-34", 224, 21_797_672), ("squeezenet-1.0", 224, 1_248_424), ("squeezenet-1.1", 224, 1_235_496),
    ]
    static let names = published.map(\.0)

    @Test("Networks have the published input size and number of parameters", arguments: published)
    func parameterCounts(_ name: String, inputSize: Int, count: Int) throws {
        let network = try Network.named(name, labels: 1000)
        #expect(network.input == TensorShape(height: inputSize, width: inputSize, channels: 3))
        #expect(ParameterLayout(network).trainableCount == count)
    }

    @Test("Two steps of training change all parameters", arguments: names)
    func training(_ name: String) throws {
        let network = try Network.named(
            name, labels: 2, inputSize: 33, width: name.hasPrefix("squeezenet") ? 0.25 : 1 / 16
        ).logits()
        let parameters = try Parameters(network, seed: 3)
        let before = try parameters.copy()
        let plan = try ExecutionPlan(
            network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 4, mode: .training))
        let optimizer = try SGD(.init(), for: parameters.layout)
        _ = plan.input.update(from: randomValues(plan.input.count, "images"))
        for _ in 0..<2 {
            plan.forward(count: 4)
            let result = SoftmaxCrossEntropy()(
                logits: plan.output, targets: [0, 1, 1, 0], gradient: plan.outputGradient)
            #expect(result.loss.isFinite)
            plan.backward(count: 4)
            optimizer.step(plan, learningRate: 0.01)
        }
        #expect(parameters.layout.entries.allSatisfy { parameters[$0.name]?.allSatisfy(\.isFinite) ?? false })
        let unchanged = parameters.layout.entries.filter { parameters[$0.name] == before[$0.name] }
        #expect(unchanged.isEmpty, "\(unchanged.map(\.name))")
    }

    @Test("Blocks are the layers whose outputs have the same size, and the head", arguments: names)
    func blocks(_ name: String) throws {
        let network = try Network.named(name, labels: 2)
        let blocks = network.blocks
        #expect(blocks.reduce(0) { $0 + $1.count } == network.nodes.count)
        let heights = blocks.map { block in
            network.nodes.indices.filter {
                block.contains(network.nodes[$0].name) && network.nodes[$0].layer is Convolution
            }
            .reduce(into: Set<Int>()) { $0.insert(network.shapes[$1].height) }
        }
        guard !name.hasPrefix("squeezenet") else {
            #expect(heights == (name == "squeezenet-1.0" ? [[109], [54], [27], [13]] : [[111], [55], [27], [13]]))
            return
        }
        let head = try #require(network.denseHeadName)
        #expect(blocks.last == [head])
        let sizes = sequence(first: network.input.height) { ($0 + 1) / 2 }.dropFirst().prefix(5).map { Set([$0]) }
        #expect(Array(heights.prefix(5)) == sizes)
        // MobileNetV3 has a dense layer before the head.
        #expect(blocks.count == (name.hasPrefix("mobilenet-v3") ? 7 : 6))
        // Squeeze-and-excitation belongs to the block of the activation that it scales.
        for node in network.nodes where node.name.hasSuffix("_gate") {
            let scaled = String(node.name.dropLast("_gate".count))
            #expect(blocks.contains { $0.contains(node.name) && $0.contains(scaled) })
        }
    }

    @Test("Networks split into a feature extractor and a head", arguments: names)
    func transfer(_ name: String) throws {
        var network = try Network.named(name, labels: 2, inputSize: 64, width: 0.25)
        if name.hasPrefix("squeezenet") {
            #expect(network.denseHeadName == nil)
            network = try #require(try network.withDenseHead(outputs: 5))
        } else {
            network = try network.resizingHead(outputs: 5)
        }
        let parts = try #require(try network.splitAtHead())
        #expect(parts.features.output.pixels == 1 && parts.head.output.channels == 5)
        let pooled = try network.withConcatPooling()
        // The head of MobileNetV3 reads a dense layer.
        #expect((pooled == nil) == name.hasPrefix("mobilenet-v3"))
    }

    @Test("The width scales the channels in multiples of 8")
    func width() throws {
        #expect([1, 8, 11.9, 12, 19, 20, 35.2, 44.8, 100].map(multipleOf8) == [8, 8, 16, 16, 24, 24, 32, 48, 104])
        let half = try Network.named("mobilenet-v2", labels: 1000, width: 0.5)
        // The published number of mobilenetv2_050 of timm.
        #expect(ParameterLayout(half).trainableCount == 1_968_680)
    }

    @Test(
        "An image that is too small for a SqueezeNet is rejected",
        arguments: [("squeezenet-1.0", 21), ("squeezenet-1.1", 17)])
    func smallImages(_ name: String, minimum: Int) throws {
        #expect(try Network.named(name, labels: 2, inputSize: minimum).labelCount() == 2)
        #expect(throws: NetworkError.self) { try Network.named(name, labels: 2, inputSize: minimum - 1) }
    }

    @Test("A size of a logo detector that is too small is an error of the logo detector")
    func smallDetector() {
        let error = NetworkError.invalidProperty(
            layer: "logo detector", property: "size", found: "8", expected: "at least 16")
        #expect(throws: error) { try Network.logoDetector(height: 8) }
    }

    @Test("EfficientNet-Lite has the variants 0 to 4", arguments: [-1, 5])
    func variants(_ variant: Int) {
        #expect(throws: NetworkError.self) { try Network.efficientNetLite(variant) }
    }
}
