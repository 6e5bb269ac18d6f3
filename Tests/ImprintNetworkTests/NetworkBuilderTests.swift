import Testing

@testable import ImprintNetwork

@Suite struct NetworkBuilderTests {
    private var builder = NetworkBuilder(name: "tiny", input: TensorShape(height: 6, width: 6, channels: 2))

    @Test("A node without a name is named after its kind, with a number that counts the nodes of that kind")
    mutating func names() throws {
        #expect(builder.last == Network.inputName)
        #expect(builder.add(Convolution(outputChannels: 2, kernelSize: 1)) == "convolution1")
        #expect(builder.add(ReLU()) == "relu1")
        #expect(builder.add(Convolution(outputChannels: 2, kernelSize: 1), named: "mine") == "mine")
        #expect(builder.last == "mine")
        #expect(builder.add(Convolution(outputChannels: 2, kernelSize: 1)) == "convolution3")
        #expect(builder.add(ReLU()) == "relu2")
        #expect(
            try builder.network().nodes.map(\.inputs)
                == [["input"], ["convolution1"], ["relu1"], ["mine"], ["convolution3"]])
    }

    @Test("Named inputs create branches; the next node reads the node added last")
    mutating func branches() throws {
        let shortcut = builder.add(ReLU())
        let branch = builder.add(Sigmoid())
        builder.add(AddLayer(), to: [shortcut, branch, Network.inputName])
        builder.add(Flatten())
        let network = try builder.network()
        #expect(network.nodes.map(\.name) == ["relu1", "sigmoid1", "add1", "flatten1"])
        #expect(network.nodes.map(\.inputs) == [["input"], ["relu1"], ["relu1", "sigmoid1", "input"], ["add1"]])
        #expect(network.name == "tiny")
        #expect(network.output == TensorShape(channels: 72))
    }

    @Test("A name that is also generated for a later node is an error")
    mutating func collision() {
        builder.add(ReLU(), named: "relu2")
        builder.add(ReLU())
        let builder = builder
        #expect(throws: NetworkError.duplicateName(node: "relu2")) { try builder.network() }
    }

    @Test("A network without nodes is an error")
    func empty() {
        #expect(throws: NetworkError.empty(network: "tiny")) { try builder.network() }
    }
}
