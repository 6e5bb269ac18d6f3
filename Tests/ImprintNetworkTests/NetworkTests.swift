import Foundation
import Testing

@testable import ImprintNetwork

@Suite struct NetworkTests {
    /// Every kind of layer; no property has its default value.
    static let layers: [any Layer] = [
        AddLayer(), Concat(), Flatten(), GlobalAveragePool(), GlobalMaxPool(), HardSwish(), ReLU(), ReLU6(), Sigmoid(),
        Softmax(), MultiplyLayer(), MaximumLayer(), Swish(), Tanh(), Softplus(), LeakyReLU(slope: 0.25),
        Dropout(rate: 0.125),
        Dense(outputChannels: 3, hasBias: false),
        BatchNormalization(momentum: 0.25, epsilon: 0.5, usesRunningStatistics: true),
        MaxPool(
            kernelSize: Size2D(height: 2, width: 3), stride: Size2D(height: 1, width: 2),
            padding: .explicit(top: 1, left: 0, bottom: 0, right: 2), roundsUp: true),
        AveragePool(
            kernelSize: Size2D(height: 2, width: 3), stride: 1, padding: .same, countsPadding: true, roundsUp: true),
        Affine(extent: .values, hasScale: false), Affine(extent: .channels, hasShift: false),
        ClipLayer(minimum: -1, maximum: 2), ClipLayer(minimum: -.infinity, maximum: 2),
        ClipLayer(minimum: -1, maximum: .infinity),
        HardSigmoid(slope: 0.25, offset: 0.125), PReLU(isShared: true), ELU(alpha: 0.5),
        GELU(approximatesTanh: true), Erf(), LayerNormalization(epsilon: 0.5),
        TransposedConvolution(
            outputChannels: 4, kernelSize: Size2D(height: 3, width: 2), stride: 2, padding: .all(1),
            outputPadding: Size2D(height: 1, width: 0), dilation: Size2D(height: 1, width: 2), groups: 2, hasBias: false
        ),
        LocalResponseNormalization(size: 3, alpha: 0.5, beta: 0.25, bias: 2),
        PadLayer(top: 1, left: 2, bottom: 3, right: 4, mode: .constant(0.5)),
        PadLayer(top: 1, left: 2, bottom: 3, right: 4, mode: .reflect),
        PadLayer(top: 1, left: 2, bottom: 3, right: 4, mode: .edge),
        UpsampleNearest(factor: Size2D(height: 2, width: 3)),
        SelectChannels(channels: [3, 4, 5, 0, 2, 2]), MeanLayer(axes: [.height, .channels]),
        Convolution(
            outputChannels: 6, kernelSize: Size2D(height: 2, width: 3), stride: Size2D(height: 1, width: 2),
            padding: .explicit(top: 1, left: 2, bottom: 3, right: 4), dilation: Size2D(height: 2, width: 1), groups: 2,
            hasBias: false),
        Convolution(outputChannels: 1, kernelSize: 1, padding: .valid),
    ]

    private func copyThroughJSON<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
    }

    @Test("Encoding and decoding every kind of layer keeps all its properties")
    func layersThroughJSON() throws {
        for layer in Self.layers {
            let node = Network.Node(name: "a", layer: layer, inputs: ["b", "input"])
            #expect(try copyThroughJSON(node) == node, "\(layer)")
        }
        #expect(Set(Self.layers.map { type(of: $0).kind }) == Set(LayerRegistry.all.map { $0.kind }))
    }

    @Test("A pool from an older version, without the property roundsUp, rounds its output size down")
    func olderPools() throws {
        for (kind, rest) in [("maxPool", ""), ("averagePool", #","countsPadding":false"#)] {
            let size = #"{"height":3,"width":3}"#
            let text =
                #"{"name":"a","kind":"\#(kind)","inputs":["input"],"properties":"#
                + #"{"kernelSize":\#(size),"stride":\#(size),"padding":"valid"\#(rest)}}"#
            let node = try JSONDecoder().decode(Network.Node.self, from: Data(text.utf8))
            let layer: any Layer = kind == "maxPool" ? MaxPool(kernelSize: 3) : AveragePool(kernelSize: 3)
            #expect(AnyHashable(node.layer) == AnyHashable(layer))
        }
    }

    @Test("Long lists of channels are stored as runs, and decoding does not depend on the division into runs")
    func channelRuns() throws {
        let layer = SelectChannels(channels: Array(64..<1088) + [0] + Array(7..<9))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(decoding: try encoder.encode(layer), as: UTF8.self)
        #expect(text == #"{"channels":[{"count":1024,"from":64},0,{"count":2,"from":7}]}"#)
        let other = #"{"channels":[{"count":1000,"from":64},{"count":24,"from":1064},0,7,8]}"#
        let copy = try JSONDecoder().decode(SelectChannels.self, from: Data(other.utf8))
        #expect(copy == layer && copy.channels == layer.channels && layer.channels.count == 1027)
    }

    @Test("Each kind of layer has a unique name")
    func kinds() { #expect(Set(LayerRegistry.all.map { $0.kind }).count == LayerRegistry.all.count) }

    @Test("Encoding and decoding every ready-made network gives the same network", arguments: Network.readyMadeNames)
    func networksThroughJSON(_ name: String) throws {
        let network = try Network.named(name, labels: 7)
        let copy = try copyThroughJSON(network)
        #expect(copy == network)
        #expect(copy.shapes == network.shapes)
        #expect(copy.name == name)
        #expect(try copy.labelCount() == 7)
        // Networks with a different layer are not equal.
        #expect(try Network.named(name, labels: 8) != network)
    }

    @Test(
        "Ready-made networks have the published number of parameters",
        arguments: [
            ("lenet", 10, 431_080), ("logonet", 2, 389_410), ("mobilenet-v1", 1000, 4_231_976),
            ("resnet-50", 1000, 25_557_032),
        ] as [(String, Int, Int)])
    func parameterCounts(_ name: String, labels: Int, count: Int) throws {
        #expect(ParameterLayout(try Network.named(name, labels: labels)).trainableCount == count)
    }

    @Test("The logits of a classifier are the network without its softmax or sigmoid", arguments: [false, true])
    func logits(isMultiLabel: Bool) throws {
        let softmax = try Network.named("logonet", labels: 2)
        let network = try isMultiLabel ? softmax.endingInSigmoid() : softmax
        let logits = try network.logits()
        #expect(logits.nodes == network.nodes.dropLast())
        #expect(try logits.logits() == logits)
        #expect(ParameterLayout(logits) == ParameterLayout(network))
    }

    @Test("Parameters are grouped by role and contiguous in memory", arguments: Network.readyMadeNames)
    func layout(_ name: String) throws {
        let layout = ParameterLayout(try Network.named(name, labels: 3))
        var end = 0
        var roles: [ParameterDescription.Role] = []
        for entry in layout.entries {
            #expect(entry.offset == end)
            #expect((entry.range.upperBound <= layout.trainableCount) == (entry.parameter.role != .statistic))
            #expect(layout[entry.name] == entry)
            end = entry.range.upperBound
            if roles.last != entry.parameter.role { roles.append(entry.parameter.role) }
        }
        #expect(end == layout.count)
        #expect(roles == [.weight, .bias] || roles == [.weight, .bias, .statistic])
    }

    @Test("A tensor's initial values depend only on the seed and its name")
    func initialParameters() throws {
        let two = try Parameters(Network.named("logonet", labels: 2), seed: 5)
        let nine = try Parameters(Network.named("logonet", labels: 9, inputSize: 64), seed: 5)
        #expect(two["conv4.weight"] == nine["conv4.weight"])
        let other = try Parameters(Network.named("logonet", labels: 2), seed: 6)
        #expect(two["conv4.weight"] != other["conv4.weight"])
        let weight = try #require(two["conv4.weight"])
        let variance = weight.reduce(0) { $0 + $1 * $1 } / Float(weight.count)
        #expect(abs(variance * Float(9 * 128) / 2 - 1) < 0.02)
    }
}
