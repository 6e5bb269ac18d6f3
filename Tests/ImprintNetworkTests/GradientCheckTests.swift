import Testing

@testable import ImprintNetwork

/// Checks the gradients of every layer, of connected layers and of whole networks.
@Suite struct GradientCheckTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let input: TensorShape
        let nodes: [Network.Node]
        let batch: Int
        let frozen: Set<String>

        /// Creates a case with these nodes.
        init(_ input: TensorShape, _ nodes: [Network.Node], batch: Int = 3, frozen: Set<String> = []) {
            let layers = nodes.map { "\($0.layer)" }.joined(separator: " → ")
            testDescription = "\(batch) x \(input): \(layers)\(frozen.isEmpty ? "" : ", frozen \(frozen.sorted())")"
            self.input = input
            self.nodes = nodes
            self.batch = batch
            self.frozen = frozen
        }

        /// Creates a case with these layers in a chain.
        init(
            _ height: Int, _ width: Int, _ channels: Int, _ layers: any Layer..., batch: Int = 3,
            frozen: Set<String> = []
        ) {
            let nodes = layers.enumerated().map { index, layer in
                Network.Node(
                    name: "\(index + 1)", layer: layer, inputs: [index == 0 ? Network.inputName : "\(index)"])
            }
            self.init(
                TensorShape(height: height, width: width, channels: channels), nodes, batch: batch, frozen: frozen)
        }

        func check() throws {
            let network = try Network(name: testDescription, input: input, nodes: nodes)
            try GradientCheck(network: network, batch: batch, frozen: frozen).run()
        }
    }

    static let convolutions = [
        Case(5, 7, 1, Convolution(outputChannels: 1, kernelSize: 3)),
        Case(5, 7, 1, Convolution(outputChannels: 1, kernelSize: 3), batch: 1),
        Case(1, 1, 1, Convolution(outputChannels: 1, kernelSize: 1), batch: 1),
        Case(5, 3, 3, Convolution(outputChannels: 5, kernelSize: 1)),
        Case(5, 3, 3, Convolution(outputChannels: 5, kernelSize: 1, padding: .same, hasBias: false), batch: 1),
        Case(6, 5, 3, Convolution(outputChannels: 2, kernelSize: 1, stride: 2)),
        Case(4, 4, 2, Convolution(outputChannels: 3, kernelSize: 1, padding: .all(1))),
        Case(7, 9, 3, Convolution(outputChannels: 4, kernelSize: 5, stride: 2, padding: .same)),
        Case(7, 5, 2, Convolution(outputChannels: 3, kernelSize: 2, stride: 3)),
        Case(2, 3, 2, Convolution(outputChannels: 2, kernelSize: 5, padding: .all(2), hasBias: false)),
        Case(6, 5, 2, Convolution(outputChannels: 3, kernelSize: 4, padding: .same)),
        Case(6, 5, 3, Convolution(outputChannels: 2, kernelSize: Size2D(height: 2, width: 3), padding: .same)),
        Case(
            5, 4, 3,
            Convolution(
                outputChannels: 2, kernelSize: 3, stride: Size2D(height: 1, width: 2),
                padding: .explicit(top: 0, left: 2, bottom: 1, right: 0))),
        Case(9, 8, 2, Convolution(outputChannels: 3, kernelSize: 3, padding: .same, dilation: 2)),
        Case(
            7, 9, 2,
            Convolution(
                outputChannels: 2, kernelSize: 3, stride: 2, padding: .all(2), dilation: Size2D(height: 1, width: 3))),
        Case(5, 5, 4, Convolution(outputChannels: 6, kernelSize: 3, padding: .same, groups: 2)),
        Case(5, 4, 4, Convolution(outputChannels: 6, kernelSize: 1, groups: 2), batch: 1),
        Case(5, 5, 3, Convolution(outputChannels: 6, kernelSize: 3, groups: 3, hasBias: false)),
        Case(5, 7, 3, Convolution(outputChannels: 3, kernelSize: 3, padding: .same, groups: 3)),
        Case(7, 5, 5, Convolution(outputChannels: 5, kernelSize: 3, stride: 2, padding: .all(1), groups: 5), batch: 5),
        Case(2, 2, 2, Convolution(outputChannels: 2, kernelSize: 5, padding: .all(3), groups: 2, hasBias: false)),
        Case(8, 7, 2, Convolution(outputChannels: 2, kernelSize: 2, stride: 3, dilation: 2, groups: 2), batch: 1),
    ]

    static let pools = [
        Case(5, 7, 1, MaxPool(kernelSize: 2)),
        Case(5, 7, 3, MaxPool(kernelSize: 3, stride: 2, padding: .all(1)), batch: 1),
        Case(7, 6, 2, MaxPool(kernelSize: 2, stride: 3)),
        Case(2, 3, 2, MaxPool(kernelSize: 4, stride: 1, padding: .same)),
        Case(5, 5, 2, MaxPool(kernelSize: 3, stride: 1, padding: .explicit(top: 2, left: 0, bottom: 0, right: 1))),
        Case(5, 7, 1, AveragePool(kernelSize: 2)),
        Case(5, 7, 3, AveragePool(kernelSize: 3, stride: 2, padding: .all(1))),
        Case(5, 7, 3, AveragePool(kernelSize: 3, stride: 2, padding: .all(1), countsPadding: true), batch: 1),
        Case(7, 6, 2, AveragePool(kernelSize: 2, stride: 3)),
        Case(2, 3, 2, AveragePool(kernelSize: 4, stride: 1, padding: .same)),
        Case(
            5, 5, 2,
            AveragePool(
                kernelSize: 3, stride: 1, padding: .explicit(top: 2, left: 0, bottom: 0, right: 1), countsPadding: true)
        ),
        // The last window has one pixel, is larger than the image, or would begin in the padding.
        Case(5, 7, 3, MaxPool(kernelSize: 2, roundsUp: true)),
        Case(2, 6, 2, MaxPool(kernelSize: 3, stride: 2, roundsUp: true), batch: 1),
        Case(5, 4, 17, AveragePool(kernelSize: 3, stride: 2, padding: .all(1), countsPadding: true, roundsUp: true)),
        Case(5, 6, 2, AveragePool(kernelSize: 2, stride: 2, padding: .all(1), countsPadding: true, roundsUp: true)),
        Case(2, 6, 3, AveragePool(kernelSize: 3, stride: 2, roundsUp: true), batch: 1),
        Case(3, 5, 3, GlobalAveragePool()), Case(1, 1, 1, GlobalAveragePool(), batch: 1),
        Case(3, 5, 3, GlobalMaxPool()), Case(1, 1, 1, GlobalMaxPool(), batch: 1),
    ]

    static let others = [
        Case(1, 1, 7, Dense(outputChannels: 3)),
        Case(1, 1, 1, Dense(outputChannels: 1), batch: 1),
        Case(1, 1, 5, Dense(outputChannels: 4, hasBias: false)),
        // Large enough to be computed in parts.
        Case(1, 1, 515, Dense(outputChannels: 513), batch: 2),
        Case(3, 5, 3, BatchNormalization()),
        Case(3, 5, 1, BatchNormalization(momentum: 0.5, epsilon: 1e-3), batch: 1),
        Case(3, 5, 3, BatchNormalization(), frozen: ["1"]),
        Case(3, 5, 3, BatchNormalization(usesRunningStatistics: true)),
        Case(3, 5, 3, ReLU()), Case(3, 5, 3, ReLU6()), Case(3, 5, 3, LeakyReLU(slope: 0.2)),
        Case(3, 5, 3, Sigmoid()), Case(3, 5, 3, HardSwish()),
        Case(3, 3, 4, Softmax()), Case(1, 1, 5, Softmax(), batch: 1),
        Case(3, 5, 3, Dropout(rate: 0.4)), Case(3, 5, 3, Dropout(rate: 0)), Case(3, 5, 3, Dropout(), frozen: ["1"]),
        Case(3, 5, 2, Flatten()),
    ]

    /// The layers that only imported networks use.
    static let imported: [Case] = {
        let modes: [PadLayer.Mode] = [.constant(0.5), .reflect, .edge]
        let axes: [MeanAxes] = [
            .height, .width, .channels, [.height, .width], [.width, .channels], [.height, .channels],
            [.height, .width, .channels],
        ]
        let singleValues = [1, 2, 17].map { Case(1, 1, 1, MeanLayer(axes: .height), batch: $0) }
        return [
            Case(3, 5, 3, Affine(extent: .channels)), Case(3, 5, 17, Affine(extent: .values), batch: 1),
            Case(3, 5, 3, Affine(extent: .channels, hasScale: false)),
            Case(3, 5, 3, Affine(extent: .values, hasShift: false)),
            Case(1, 1, 1, Affine(extent: .values), batch: 2), Case(3, 5, 3, Affine(extent: .channels), frozen: ["1"]),
            Case(3, 5, 3, ClipLayer(minimum: -0.5, maximum: 0.25)),
            Case(3, 5, 3, ClipLayer(minimum: -.infinity, maximum: 0.25)),
            Case(3, 5, 3, ClipLayer(minimum: -0.5, maximum: .infinity)),
            Case(3, 5, 3, HardSigmoid()), Case(3, 5, 3, HardSigmoid(slope: -0.8, offset: 0.25)),
            Case(3, 5, 3, PReLU()), Case(3, 5, 17, PReLU(isShared: true)), Case(1, 1, 1, PReLU(), batch: 1),
            Case(3, 5, 3, PReLU(), frozen: ["1"]),
            Case(3, 5, 3, ELU()), Case(3, 5, 3, ELU(alpha: 0.3)), Case(3, 5, 3, Swish()), Case(3, 5, 3, Tanh()),
            Case(3, 5, 3, Softplus()), Case(3, 5, 3, GELU()), Case(3, 5, 3, GELU(approximatesTanh: true)),
            Case(3, 5, 3, Erf()), Case(3, 5, 3, LayerNormalization()), Case(2, 3, 17, LayerNormalization(epsilon: 0.1)),
            Case(1, 1, 5, LayerNormalization(), batch: 1), Case(3, 5, 3, LayerNormalization(), frozen: ["1"]),
            Case(2, 3, 9, LocalResponseNormalization(size: 5, alpha: 2, bias: 0.5)),
            Case(2, 3, 6, LocalResponseNormalization(size: 4, alpha: 1, beta: 1.5, bias: 2), batch: 1),
            Case(2, 3, 3, LocalResponseNormalization(size: 9, alpha: 3)),
            Case(2, 3, 17, LocalResponseNormalization(size: 1, alpha: 1, beta: 0.5)),
            Case(3, 2, 3, UpsampleNearest(factor: 2)),
            Case(2, 3, 2, TransposedConvolution(outputChannels: 3, kernelSize: 3, stride: 2, padding: .same)),
            Case(
                3, 2, 4,
                TransposedConvolution(
                    outputChannels: 2, kernelSize: 3, stride: Size2D(height: 2, width: 1), padding: .all(1),
                    outputPadding: Size2D(height: 1, width: 0), dilation: Size2D(height: 1, width: 2), groups: 2,
                    hasBias: false), batch: 1),
            Case(2, 3, 3, TransposedConvolution(outputChannels: 3, kernelSize: 2, stride: 2, groups: 3)),
            Case(2, 3, 2, TransposedConvolution(outputChannels: 2, kernelSize: 3), frozen: ["1"]),
            Case(2, 3, 1, UpsampleNearest(factor: Size2D(height: 3, width: 1)), batch: 1),
            Case(2, 3, 2, UpsampleNearest(factor: Size2D(height: 1, width: 4))),
            Case(3, 4, 3, SelectChannels(channels: [2, 1, 0])), Case(3, 4, 5, SelectChannels(channels: [1, 2, 3])),
            Case(3, 4, 5, SelectChannels(channels: [4, 0, 1, 1, 0, 4, 1]), batch: 1),
        ]
            + modes.map { Case(4, 5, 3, PadLayer(top: 1, left: 2, bottom: 3, right: 4, mode: $0)) }
            + modes.map { Case(3, 4, 1, PadLayer(top: 0, left: 1, bottom: 0, right: 0, mode: $0), batch: 1) }
            + axes.map { Case(3, 5, 4, MeanLayer(axes: $0)) } + singleValues
    }()

    /// Chains with layers that can run in place.
    static let chains: [Case] = {
        let convolution = Convolution(outputChannels: 3, kernelSize: 3, padding: .same, hasBias: false)
        let activations: [any Layer] = [
            ReLU(), ReLU6(), LeakyReLU(slope: 0.1), Sigmoid(), HardSwish(), Dropout(rate: 0.3), PReLU(), Swish(),
            ClipLayer(minimum: 0, maximum: 1), ClipLayer(minimum: -1, maximum: 1), HardSigmoid(slope: 0.5), ELU(),
            Tanh(),
            Softplus(), GELU(), GELU(approximatesTanh: true), Erf(), LayerNormalization(),
            TransposedConvolution(outputChannels: 3, kernelSize: 2, stride: 2),
            Affine(extent: .channels), Affine(extent: .values, hasScale: false),
            LocalResponseNormalization(size: 3, alpha: 1),
        ]
        return activations.map { Case(4, 5, 2, convolution, BatchNormalization(), $0, convolution) } + [
            Case(4, 5, 2, convolution, Flatten(), Dropout(rate: 0.3), Dense(outputChannels: 2), Softmax()),
            Case(4, 5, 2, convolution, Sigmoid(), Flatten(), ReLU(), LeakyReLU(), Dense(outputChannels: 2)),
            // Layers must not overwrite activations in place that the backward pass reads.
            Case(4, 5, 2, convolution, Sigmoid(), Dropout(rate: 0.3), convolution),
            Case(4, 5, 2, convolution, Softmax(), Flatten(), Dropout(rate: 0.3), Dense(outputChannels: 2)),
            Case(4, 5, 2, convolution, LeakyReLU(slope: 0.2), Sigmoid(), Flatten(), Sigmoid()),
            Case(4, 5, 2, MaxPool(kernelSize: 2), LeakyReLU(), Dropout(rate: 0.2), Flatten()),
            Case(4, 5, 2, convolution, ReLU(), convolution, BatchNormalization(), frozen: ["1", "4"]),
            // Fused operators, also with a row and a column that the pool ignores.
            Case(5, 7, 2, convolution, BatchNormalization(), ReLU(), MaxPool(kernelSize: 2), convolution),
            Case(4, 6, 2, convolution, BatchNormalization(), MaxPool(kernelSize: 2), convolution, batch: 1),
            Case(
                5, 4, 2, convolution, BatchNormalization(), ReLU6(), MaxPool(kernelSize: 2), convolution,
                frozen: ["2", "3", "4"]),
        ]
    }()

    static let graphs: [Case] = {
        func node(_ name: String, _ layer: any Layer, _ inputs: String...) -> Network.Node {
            Network.Node(name: name, layer: layer, inputs: inputs)
        }
        let image = TensorShape(height: 4, width: 3, channels: 2)
        func convolution(_ channels: Int = 3) -> Convolution {
            Convolution(outputChannels: channels, kernelSize: 3, padding: .same)
        }
        // Values on both sides of the kinks at −3, 3 and 6.
        let large = Network.Node(
            name: "large", layer: AddLayer(), inputs: Array(repeating: Network.inputName, count: 7))
        return [
            Case(image, [large, node("kinks", ReLU6(), "large")]),
            Case(image, [large, node("kinks", HardSwish(), "large")]),
            Case(image, [node("twice", AddLayer(), "input", "input")]),
            Case(image, [node("twice", Concat(), "input", "input")], batch: 1),
            Case(image, [node("a", convolution(), "input"), node("twice", AddLayer(), "a", "a")]),
            Case(
                image,
                [
                    node("a", convolution(), "input"), node("r", ReLU(), "a"),
                    node("four", AddLayer(), "r", "a", "r", "a"),
                ]),
            Case(
                image,
                [
                    node("a", convolution(1), "input"), node("b", convolution(4), "a"),
                    node("c", Sigmoid(), "a"), node("joined", Concat(), "b", "a", "c"),
                    node("last", convolution(2), "joined"),
                ]),
            // One activation with several readers that can each run in place.
            Case(
                image,
                [
                    node("a", convolution(), "input"), node("norm", BatchNormalization(), "a"),
                    node("r", ReLU(), "norm"), node("l", LeakyReLU(slope: 0.3), "norm"),
                    node("f", Flatten(), "norm"), node("v", Flatten(), "r"), node("w", Flatten(), "l"),
                    node("sum", AddLayer(), "f", "v", "w"),
                ]),
            // The input is read by two nodes.
            Case(
                image,
                [
                    node("a", convolution(), "input"),
                    node("b", Convolution(outputChannels: 3, kernelSize: 1), "input"),
                    node("sum", AddLayer(), "a", "b"), node("r", ReLU(), "sum"),
                ]),
            // A shortcut around a branch whose last layers are frozen.
            Case(
                image,
                [
                    node("a", convolution(), "input"), node("r", ReLU(), "a"), node("b", convolution(), "r"),
                    node("norm", BatchNormalization(), "b"), node("sum", AddLayer(), "norm", "r"),
                    node("s", ReLU(), "sum"), node("mean", GlobalAveragePool(), "s"),
                ], frozen: ["b", "norm"]),
            // Two branches that end in batch norms, and an activation after their sum.
            Case(
                image,
                [
                    node("a", convolution(), "input"), node("norm", BatchNormalization(), "a"),
                    node("b", convolution(), "input"), node("other", BatchNormalization(), "b"),
                    node("sum", AddLayer(), "norm", "other"), node("r", ReLU(), "sum"), node("c", convolution(), "r"),
                ]),
            // Squeeze and excitation with a shortcut.
            Case(
                image,
                [
                    node("a", convolution(), "input"), node("mean", GlobalAveragePool(), "a"),
                    node("less", Dense(outputChannels: 2), "mean"), node("s", Swish(), "less"),
                    node("more", Dense(outputChannels: 3), "s"), node("gate", Sigmoid(), "more"),
                    node("weighted", MultiplyLayer(), "gate", "a"), node("sum", AddLayer(), "weighted", "a"),
                    node("b", convolution(), "sum"),
                ]),
            Case(image, [node("square", MultiplyLayer(), "input", "input")]),
            Case(
                image,
                [node("a", convolution(2), "input"), node("cube", MultiplyLayer(), "a", "input", "a")]),
            Case(
                image,
                [
                    node("a", convolution(2), "input"), node("b", convolution(2), "input"),
                    node("maximum", MaximumLayer(), "a", "input", "b"),
                ]),
            Case(image, [node("same", MaximumLayer(), "input", "input")]),
            // The sum of the input and the output of a batch norm.
            Case(
                image,
                [
                    node("a", convolution(), "input"), node("norm", BatchNormalization(), "a"),
                    node("sum", AddLayer(), "a", "norm"), node("r", ReLU6(), "sum"), node("c", convolution(), "r"),
                ]),
        ]
    }()

    /// Every way in which one operand is broadcast along an axis of another, and two operands along each other's axes.
    static let broadcasts: [Case] = {
        let operands: [[MeanAxes]] = [
            [[], [.height, .width]], [[.height, .width], []], [[], .height], [.width, []], [[], .channels],
            [.channels, [.height, .width]], [.height, .width], [[], [.height, .width, .channels]],
            [.width, [.height, .width], .height, [.width, .channels]], [[], .channels, [], [.height, .width]],
        ]
        return operands.flatMap { axes in
            [MultiplyLayer(), AddLayer()].map { (layer: any Layer) in
                var nodes: [Network.Node] = []
                let names = axes.enumerated().map { index, axes in
                    if axes.isEmpty { return Network.inputName }
                    nodes.append(
                        Network.Node(name: "x\(index)", layer: MeanLayer(axes: axes), inputs: [Network.inputName]))
                    return "x\(index)"
                }
                nodes.append(Network.Node(name: "result", layer: layer, inputs: names))
                return Case(TensorShape(height: 4, width: 3, channels: 18), nodes, batch: axes.count)
            }
        }
    }()

    @Test("Gradients of convolutions agree with finite differences", arguments: convolutions)
    func checkConvolution(_ layer: Case) throws { try layer.check() }

    @Test("Gradients of pools agree with finite differences", arguments: pools)
    func checkPool(_ layer: Case) throws { try layer.check() }

    @Test("Gradients of other layers agree with finite differences", arguments: others)
    func checkOther(_ layer: Case) throws { try layer.check() }

    @Test("Gradients of the layers of imported networks agree with finite differences", arguments: imported)
    func checkImported(_ layer: Case) throws { try layer.check() }

    @Test("Gradients of broadcast operands agree with finite differences", arguments: broadcasts)
    func checkBroadcast(_ graph: Case) throws { try graph.check() }

    @Test("Gradients of chains that run in place agree with finite differences", arguments: chains)
    func checkChain(_ chain: Case) throws { try chain.check() }

    @Test("Gradients of networks with branches agree with finite differences", arguments: graphs)
    func checkGraph(_ graph: Case) throws { try graph.check() }

    @Test("The cases contain every kind of layer")
    func everyKind() {
        let layers = Self.convolutions + Self.pools + Self.others + Self.imported
        let checked = (layers + Self.chains + Self.graphs).flatMap { $0.nodes }
        #expect(Set(checked.map { type(of: $0.layer).kind }) == Set(LayerRegistry.all.map { $0.kind }))
    }

    struct WholeNetwork: Sendable {
        let name: String
        let inputSize: Int
        let width: Double
        let batch: Int
    }

    static let networks = [
        WholeNetwork(name: "lenet", inputSize: 28, width: 0.5, batch: 3),
        WholeNetwork(name: "logonet", inputSize: 33, width: 0.25, batch: 3),
        WholeNetwork(name: "mobilenet-v1", inputSize: 32, width: 0.25, batch: 8),
        WholeNetwork(name: "resnet-50", inputSize: 32, width: 1 / 16, batch: 8),
    ]

    @Test("Gradients of whole networks agree with finite differences", arguments: networks)
    func checkNetwork(_ whole: WholeNetwork) throws {
        let network = try Network.named(whole.name, labels: 5, inputSize: whole.inputSize, width: whole.width)
        try GradientCheck(
            network: network, batch: whole.batch, samples: 4, avoidsKinks: true, tolerance: 0.05, rounding: 0x1p-16
        )
        .run()
    }
}
