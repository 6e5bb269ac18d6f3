import Testing

@testable import ImprintNetwork

/// The part of a network that computes local features.
@Suite struct LocalFeaturesTests {
    private static func convolution(_ channels: Int, stride: Size2D = 1) -> Convolution {
        Convolution(outputChannels: channels, kernelSize: 3, stride: stride, padding: .same)
    }

    /// Builds a network with residual blocks of the given widths at a stride of 4, and a classifier.
    private static func network(widths: [Int], height: Int = 32, width: Int = 16) throws -> Network {
        var net = NetworkBuilder(name: "blocks", input: TensorShape(height: height, width: width, channels: 3))
        net.add(convolution(8, stride: 4))
        for (index, width) in widths.enumerated() {
            net.add(convolution(width), named: "block\(index)")
            let shortcut = net.last
            net.add(convolution(64), named: "inner\(index)")
            let branch = net.add(convolution(width), named: "branch\(index)")
            net.add(AddLayer(), named: "sum\(index)", to: [shortcut, branch])
        }
        net.add(convolution(32, stride: 2))
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 5))
        net.add(Softmax())
        return try net.network()
    }

    @Test("The features come from the last narrow node and from the one in the middle, outside of branches")
    func depths() throws {
        let found = try #require(try Self.network(widths: [10, 10, 12]).localFeatures(stride: 4))
        // convolution1 has 8 channels, so that 12 are the limit; inner nodes and branches are inside of blocks.
        #expect(found.network.nodes.last?.inputs == ["block1", "sum2"])
        #expect(found.channels == [10, 12] && found.network.output == TensorShape(height: 8, width: 4, channels: 22))
    }

    @Test("Wide nodes are left out") func wide() throws {
        let found = try #require(try Self.network(widths: [10, 13]).localFeatures(stride: 4))
        #expect(found.network.nodes.last?.inputs == ["block0", "sum0"])
    }

    @Test("A single node is used alone") func single() throws {
        let found = try #require(try Self.network(widths: []).localFeatures(stride: 4))
        #expect(found.network.nodes.map(\.name) == ["convolution1"] && found.channels == [8])
    }

    @Test("An input size that is not a multiple of the stride is rounded up") func oddSize() throws {
        let found = try #require(try Self.network(widths: [10, 10], height: 30, width: 13).localFeatures(stride: 4))
        #expect(found.network.input == TensorShape(height: 32, width: 16, channels: 3))
        #expect(found.network.output == TensorShape(height: 8, width: 4, channels: 20))
    }

    @Test("A network without a feature map of the stride has no local features") func none() throws {
        #expect(try Self.network(widths: [10]).localFeatures(stride: 16) == nil)
    }
}
