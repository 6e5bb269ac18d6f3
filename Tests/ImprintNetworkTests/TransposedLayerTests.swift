import Foundation
import ImprintCore
import Testing

@testable import ImprintNetwork

/// Tests that layers treat height and width alike: the transposed layer on the transposed map gives the transposed result.
@Suite struct TransposedLayerTests {
    /// Layers that are tested on maps of every shape that they accept.
    struct Example: Sendable {
        let nodes: [Network.Node]

        /// Creates a chain of layers.
        init(_ layers: any Layer...) {
            nodes = layers.enumerated().map { index, layer in
                Network.Node(name: "\(index + 1)", layer: layer, inputs: [index == 0 ? Network.inputName : "\(index)"])
            }
        }

        /// Creates a layer whose operands are means of the network's input over these axes; an empty set is the input itself.
        init(_ layer: any Layer, over operands: [MeanAxes]) {
            let means = operands.enumerated().filter { !$1.isEmpty }.map { index, axes in
                Network.Node(name: "mean \(index)", layer: MeanLayer(axes: axes), inputs: [Network.inputName])
            }
            let names = operands.enumerated().map { $1.isEmpty ? Network.inputName : "mean \($0)" }
            nodes = means + [Network.Node(name: "result", layer: layer, inputs: names)]
        }

        init(nodes: [Network.Node]) { self.nodes = nodes }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let network: Network
        var testDescription: String { network.name }
    }

    /// One example or more of every kind of layer; `everyKind` fails if a kind is missing.
    static let examples: [Example] =
        [
            Example(ReLU()), Example(ReLU6()), Example(LeakyReLU(slope: 0.2)), Example(Sigmoid()),
            Example(HardSwish()), Example(ClipLayer(minimum: -0.5, maximum: 0.25)), Example(HardSigmoid()),
            Example(ELU(alpha: 0.5)), Example(Swish()), Example(Tanh()), Example(Softplus()), Example(Softmax()),
            Example(PReLU()), Example(PReLU(isShared: true)),
            // Masks are drawn in the order of the elements, so only a mask that keeps all elements can be transposed.
            Example(Dropout(rate: 0)),
            Example(BatchNormalization()), Example(BatchNormalization(usesRunningStatistics: true)),
            Example(LocalResponseNormalization(size: 5, alpha: 2)),
            Example(LayerNormalization()), Example(GELU()), Example(GELU(approximatesTanh: true)), Example(Erf()),
            Example(Affine(extent: .channels)), Example(Affine(extent: .values)),
            Example(Flatten()), Example(GlobalAveragePool()), Example(GlobalMaxPool()),
            Example(GlobalAveragePool(), Dense(outputChannels: 5)),
            Example(SelectChannels(channels: [17, 3, 4, 5, 3])),
            Example(UpsampleNearest(factor: Size2D(height: 3, width: 2))),
            Example(PadLayer(top: 2, left: 1, bottom: 0, right: 3, mode: .constant(-0.5))),
            Example(PadLayer(top: 0, left: 2, bottom: 3, right: 1, mode: .edge)),
            Example(PadLayer(top: 0, left: 2, bottom: 0, right: 1, mode: .reflect)),
        ] + convolutions + pools + joins + fused

    static let convolutions: [Example] = {
        let uneven = Padding.explicit(top: 1, left: 0, bottom: 2, right: 3)
        let kernel = Size2D(height: 3, width: 2)
        var examples = [
            Example(Convolution(outputChannels: 5, kernelSize: 1)),
            Example(Convolution(outputChannels: 5, kernelSize: 1, stride: Size2D(height: 1, width: 2))),
            Example(Convolution(outputChannels: 20, kernelSize: 3, padding: .same)),
            Example(
                Convolution(outputChannels: 20, kernelSize: 3, padding: .explicit(top: 0, left: 2, bottom: 2, right: 1))
            ),
        ]
        for (outputs, groups) in [(4, 1), (6, 2), (18, 18)] {
            examples += [
                Example(Convolution(outputChannels: outputs, kernelSize: kernel, padding: .same, groups: groups)),
                Example(
                    Convolution(
                        outputChannels: outputs, kernelSize: kernel, stride: Size2D(height: 1, width: 3),
                        padding: uneven,
                        groups: groups, hasBias: false)),
                Example(
                    Convolution(
                        outputChannels: outputs, kernelSize: 3, stride: 2, padding: .all(4),
                        dilation: Size2D(height: 2, width: 3), groups: groups)),
                Example(
                    TransposedConvolution(
                        outputChannels: outputs, kernelSize: kernel, stride: Size2D(height: 2, width: 3),
                        padding: .explicit(top: 1, left: 0, bottom: 0, right: 1),
                        outputPadding: Size2D(height: 1, width: 2), groups: groups)),
                Example(
                    TransposedConvolution(
                        outputChannels: outputs, kernelSize: kernel, stride: 2, padding: .same,
                        dilation: Size2D(height: 2, width: 3), groups: groups, hasBias: false)),
            ]
        }
        return examples + [Example(TransposedConvolution(outputChannels: 20, kernelSize: 3, padding: .same))]
    }()

    static let pools: [Example] = {
        let uneven = Padding.explicit(top: 1, left: 0, bottom: 1, right: 2)
        let kernel = Size2D(height: 2, width: 3)
        var examples = [Example(MaxPool(kernelSize: 2)), Example(AveragePool(kernelSize: 2))]
        for roundsUp in [false, true] {
            for (stride, padding) in [(Size2D(height: 2, width: 1), uneven), (2, .same), (3, .all(1))] {
                examples.append(
                    Example(MaxPool(kernelSize: kernel, stride: stride, padding: padding, roundsUp: roundsUp)))
                for countsPadding in [false, true] {
                    examples.append(
                        Example(
                            AveragePool(
                                kernelSize: kernel, stride: stride, padding: padding, countsPadding: countsPadding,
                                roundsUp: roundsUp)))
                }
            }
        }
        return examples
    }()

    /// Layers with several inputs, and means over every set of axes.
    static let joins: [Example] = {
        let operands: [[MeanAxes]] = [
            [[], []], [[], [.height, .width]], [[], .channels], [[], .height], [.width, []], [.height, .width],
            [.channels, [.height, .width]], [[], .channels, [.height, .channels]],
        ]
        var examples = operands.flatMap { [Example(AddLayer(), over: $0), Example(MultiplyLayer(), over: $0)] }
        examples += (1...7).map { Example(MeanLayer(axes: MeanAxes(rawValue: $0))) }
        for layer in [Concat(), MaximumLayer()] as [any Layer] {
            examples.append(
                Example(nodes: [
                    Network.Node(name: "tanh", layer: Tanh(), inputs: [Network.inputName]),
                    Network.Node(name: "join", layer: layer, inputs: ["tanh", Network.inputName]),
                ]))
        }
        return examples
    }()

    /// Chains that plans fuse.
    static let fused: [Example] = {
        let convolution = Convolution(
            outputChannels: 18, kernelSize: Size2D(height: 3, width: 2), padding: .same, hasBias: false)
        let depthwise = Convolution(outputChannels: 18, kernelSize: 3, padding: .same, groups: 18, hasBias: false)
        return [
            Example(convolution, BatchNormalization(), ReLU(), MaxPool(kernelSize: 2, padding: .same)),
            Example(convolution, BatchNormalization(), ReLU(), MaxPool(kernelSize: 2)),
            Example(depthwise, BatchNormalization(), ReLU6()),
            Example(BatchNormalization(), convolution, Sigmoid()),
            Example(nodes: [
                Network.Node(name: "convolution", layer: convolution, inputs: [Network.inputName]),
                Network.Node(name: "norm", layer: BatchNormalization(), inputs: ["convolution"]),
                Network.Node(name: "sum", layer: AddLayer(), inputs: ["norm", Network.inputName]),
                Network.Node(name: "relu", layer: ReLU(), inputs: ["sum"]),
            ]),
        ]
    }()

    static let sizes = [(1, 7), (7, 1), (2, 5), (4, 3), (9, 5)]

    private static func cases(height: Int, width: Int) -> [Case] {
        examples.compactMap { example in
            let layers = example.nodes.map { "\($0.layer)" }.joined(separator: " → ")
            // Skip layers whose kernel or reflected padding is larger than the map.
            let network = try? Network(
                name: "\(height)x\(width): \(layers)", input: TensorShape(height: height, width: width, channels: 18),
                nodes: example.nodes)
            return network.map(Case.init)
        }
    }

    static let cases = sizes.flatMap { cases(height: $0.0, width: $0.1) }

    @Test("Every kind of layer runs on maps of every shape")
    func everyKind() {
        for (height, width) in Self.sizes {
            let nodes = Self.cases(height: height, width: width).flatMap(\.network.nodes)
            let missing = Set(LayerRegistry.all.map { $0.kind }).subtracting(nodes.map { type(of: $0.layer).kind })
            #expect(missing.isEmpty, "\(height)x\(width)")
        }
    }

    @Test("A transposed layer has the transposed outputs and gradients", arguments: cases)
    func training(_ example: Case) throws { try compare(example.network, .training) }

    @Test("A transposed layer has the transposed outputs in prediction", arguments: cases)
    func prediction(_ example: Case) throws { try compare(example.network, .prediction) }

    private static let batch = 3

    private func compare(_ network: Network, _ mode: ExecutionPlan.Mode) throws {
        let transposedNetwork = try transposed(network)
        let parameters = try randomParameters(network, seed: 4)
        let transposedParameters = try Parameters(transposedNetwork, seed: 4)
        for entry in parameters.layout.entries {
            transposedParameters[entry.name] = transposed(parameters[entry.name] ?? [], of: entry)
        }
        let input = randomValues(Self.batch * network.input.count, "input")
        let outputGradient = randomValues(Self.batch * network.output.count, "output gradient")
        let outputMap = outputMap(network)

        let expected = try run(network, parameters, mode, input, outputGradient)
        let actual = try run(
            transposedNetwork, transposedParameters, mode, transposed(input, network.input),
            transposed(outputGradient, outputMap))

        func expectTransposed(_ actual: [Float], _ expected: [Float], _ name: String) {
            expectClose(actual, expected, "\(network.name), \(mode): \(name)", tolerance: 1e-4)
        }
        expectTransposed(actual.output, transposed(expected.output, outputMap), "output")
        expectTransposed(actual.inputGradient, transposed(expected.inputGradient, network.input), "input gradient")
        for entry in parameters.layout.entries {
            let gradients = (expected.gradients[entry.name] ?? [], actual.gradients[entry.name] ?? [])
            expectTransposed(gradients.1, transposed(gradients.0, of: entry), "gradient of \(entry.name)")
            expectTransposed(
                transposedParameters[entry.name] ?? [], transposed(parameters[entry.name] ?? [], of: entry), entry.name)
        }
    }

    private struct Pass {
        let output: [Float]
        var inputGradient: [Float] = []
        var gradients: [String: [Float]] = [:]
    }

    private func run(
        _ network: Network, _ parameters: Parameters, _ mode: ExecutionPlan.Mode, _ input: [Float],
        _ outputGradient: [Float]
    ) throws -> Pass {
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: Self.batch, mode: mode, workers: Workers(2), inputGradient: mode == .training))
        plan.poison(keeping: [])
        _ = plan.input.update(from: input)
        plan.forward(count: Self.batch)
        var pass = Pass(output: Array(plan.output))
        guard mode == .training else { return pass }
        _ = plan.outputGradient.update(from: outputGradient)
        plan.backward(count: Self.batch)
        pass.inputGradient = Array(try #require(plan.inputGradient))
        for entry in parameters.layout.entries where entry.parameter.role != .statistic {
            pass.gradients[entry.name] = Array(plan.parameterGradients[entry.range])
        }
        return pass
    }

    /// Returns the network with height and width, top and left, and bottom and right swapped in its JSON description.
    private func transposed(_ network: Network) throws -> Network {
        let description = try JSONSerialization.jsonObject(with: JSONEncoder().encode(network))
        let swapped = try JSONSerialization.data(withJSONObject: swappingAxes(description))
        return try JSONDecoder().decode(Network.self, from: swapped)
    }

    private func swappingAxes(_ value: Any) -> Any {
        func other(_ word: String) -> String {
            let pairs = [("height", "width"), ("top", "left"), ("bottom", "right")]
            for (vertical, horizontal) in pairs {
                if word == vertical { return horizontal }
                if word == horizontal { return vertical }
            }
            return word
        }
        switch value {
        case let object as [String: Any]:
            return Dictionary(uniqueKeysWithValues: object.map { (other($0), swappingAxes($1)) })
        case let list as [Any]: return list.map(swappingAxes)
        case let word as String: return other(word)
        default: return value
        }
    }

    /// Returns the output shape before a final Flatten, which keeps the order of the elements.
    private func outputMap(_ network: Network) -> TensorShape {
        let last = network.nodes.count - 1
        return network.nodes[last].layer is Flatten ? network.inputShapes(of: last)[0] : network.output
    }

    private func transposed(_ values: [Float], _ map: TensorShape) -> [Float] {
        transposed(values, height: map.height, width: map.width, depth: map.channels)
    }

    /// Returns transposed parameters; the first axes of parameters with at least three axes are height and width.
    private func transposed(_ values: [Float], of entry: ParameterLayout.Entry) -> [Float] {
        let shape = entry.parameter.shape
        guard shape.count >= 3 else { return values }
        return transposed(values, height: shape[0], width: shape[1], depth: shape[2...].reduce(1, *))
    }

    /// Transposes consecutive arrays [height, width, depth] to [width, height, depth].
    private func transposed(_ values: [Float], height: Int, width: Int, depth: Int) -> [Float] {
        var result: [Float] = []
        result.reserveCapacity(values.count)
        for image in stride(from: 0, to: values.count, by: height * width * depth) {
            for column in 0..<width {
                for row in 0..<height {
                    let first = image + (row * width + column) * depth
                    result += values[first..<first + depth]
                }
            }
        }
        return result
    }
}
