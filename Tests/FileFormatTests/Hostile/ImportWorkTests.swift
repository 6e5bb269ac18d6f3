import Foundation
import ImprintImages
import ImprintNetwork
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// The work of an import is within fixed limits, however small the file is.
@Suite struct ImportWorkTests {
    /// A network that Imprint compares with the network in the metadata.
    enum Case: CaseIterable, Sendable {
        case small, manyElements, manyMultiplications, largeWindows

        /// The network; only `small` is within the limits.
        func network() throws -> Network {
            let side = self == .small ? 16 : self == .manyMultiplications ? 128 : 4096
            var net = NetworkBuilder(name: "net", input: TensorShape(height: side, width: side, channels: 1))
            switch self {
            case .small:
                net.add(Convolution(outputChannels: 8, kernelSize: 1))
                net.add(MaxPool(kernelSize: 3))
            case .manyElements:
                for _ in 0..<40 { net.add(ReLU()) }
            case .manyMultiplications:
                for _ in 0..<4 { net.add(Convolution(outputChannels: 1024, kernelSize: 1)) }
            case .largeWindows:
                for _ in 0..<9 { net.add(MaxPool(kernelSize: 16, stride: 1)) }
            }
            net.add(GlobalAveragePool())
            net.add(Dense(outputChannels: 2))
            net.add(Softmax())
            return try net.network()
        }
    }

    @Test(
        "The network in the metadata replaces that of the graph only if a comparison is within fixed limits",
        arguments: Case.allCases)
    func comparison(item: Case) throws {
        let network = try item.network()
        let preprocessing = Preprocessing(width: network.input.width, height: network.input.height, channels: 1)
        func json(_ value: some Encodable) throws -> String {
            String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
        }
        let description = try #require(
            ExportedDescription([
                ModelFileKey.network: try json(network), ModelFileKey.preprocessing: try json(preprocessing),
            ]))
        let parameters = try description.parameters(
            from: network, Parameters(network, seed: 1),
            rule: .init(mean: preprocessing.mean, scale: preprocessing.scale))
        #expect((parameters != nil) == (item == .small))
    }

    @Test(
        "A product with a decomposed error function is a GELU if at most three factors follow the addend",
        arguments: [(0, true), (3, true), (4, false), (100, false)])
    func scalings(count: Int, isGELU: Bool) throws {
        var assembler = NetworkAssembler(
            input: TensorShape(height: 2, width: 2, channels: 3), weights: 1 << 20, preservesNodes: true)
        func scalar(_ value: Float) -> Constant { Constant(shape: [], floats: [value]) }
        let x = assembler.image(axes: [.batch, .channels, .height, .width])
        let argument = try assembler.multiply(x, by: scalar(Float(0.5).squareRoot()), named: "argument")
        let function = try assembler.add(Erf(), named: "erf", to: [argument])
        var gate = try assembler.add(function, scalar(1), named: "addend")
        for index in 0..<count {
            gate = try assembler.multiply(gate, by: scalar(index % 2 == 0 ? 2 : 0.5), named: "factor")
        }
        let y = try assembler.multiply([x, gate], named: "product")
        #expect((assembler.layer(of: y, as: MultiplyLayer.self) == nil) == isGELU)
    }

    @Test("A network of more nodes than the limit is rejected with the limit")
    func mostNodes() throws {
        var assembler = NetworkAssembler(input: TensorShape(height: 1, width: 1, channels: 1), weights: 0)
        var output = assembler.image(axes: [.batch, .channels, .height, .width])
        for _ in 0...Network.mostNodes { output = try assembler.add(ReLU(), named: "relu", to: [output]) }
        let problem = ImportError.Problem.exceedsLimit(
            reason: "its network has 16385 nodes, expected at most 16384")
        #expect(throws: problem) { try assembler.finish(output, named: "net") }
    }
}
