import Testing

@testable import ImprintNetwork

/// Detectors with the first layers of another network.
@Suite struct DetectorBackboneTests {
    @Test(
        "The backbone ends at the last cut with a stride of 16, and keeps the names of its layers",
        arguments: [
            ("mobilenet-v1", 512), ("mobilenet-v2", 96), ("efficientnet-lite0", 112), ("resnet-18", 256),
            ("resnet-50", 1024), ("logonet", 256),
        ])
    func cut(name: String, channels: Int) throws {
        let backbone = try Network.named(name, labels: 5)
        let network = try #require(try Network.logoDetector(logos: 3, backbone: backbone, side: 96))
        #expect(network.input == TensorShape(height: 96, width: 96, channels: 3))
        #expect(network.output == TensorShape(height: 6, width: 6, channels: 3 + BoxCode.count))
        let neck = try #require(network.nodes.firstIndex { $0.name == "neck" })
        #expect(network.inputShapes(of: neck)[0].channels == channels)
        #expect(network.nodes[..<neck].map(\.name) == backbone.nodes[..<neck].map(\.name))
        // Training and personalization find the heat maps.
        #expect(network.headIndex == neck + 3 && network.headChannels == 128)
    }

    @Test("An input size that is not a multiple of 16 is allowed") func oddSize() throws {
        let backbone = try Network.resNet18(labels: 5, inputSize: 225)
        #expect(try Network.logoDetector(logos: 1, backbone: backbone, side: 96)?.output.height == 6)
    }

    @Test(
        "Networks that average the whole image, or have no feature map with a stride of 16, cannot be backbones",
        arguments: ["efficientnet-b0", "mobilenet-v3-small", "lenet"])
    func unsuitable(name: String) throws {
        let backbone = try Network.named(name, labels: 5)
        #expect(try Network.logoDetector(logos: 1, backbone: backbone, side: 96) == nil)
    }

    @Test("Added layers do not take the names of layers of the backbone") func names() throws {
        var net = NetworkBuilder(name: "clash", input: TensorShape(height: 64, width: 64, channels: 3))
        net.add(Convolution(outputChannels: 4, kernelSize: 3, stride: 16, padding: .same), named: "head")
        net.add(ReLU(), named: "neck")
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 2), named: "boxes")
        let network = try #require(try Network.logoDetector(logos: 1, backbone: net.network(), side: 96))
        #expect(network.nodes.map(\.name).prefix(3) == ["head", "neck", "neck_"])
        #expect(network.nodes.map(\.name).suffix(3) == ["head_", "boxes_", "output"])
    }
}
