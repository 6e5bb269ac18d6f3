import Foundation
import ImprintCore
import Testing

@testable import ImprintNetwork

/// Fast layers against their formulas in plain loops, forward and backward.
@Suite struct OracleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let layer: any Layer
        let naive: any NaiveLayer
        let input: TensorShape
        var batch = 3
        /// What the plan is expected to choose, where a case is meant for one way.
        var algorithm: Algorithm?

        var testDescription: String { "\(batch) x \(input): \(layer)" }

        init(_ layer: Convolution, over input: TensorShape, batch: Int = 3, as algorithm: Algorithm) {
            self.layer = layer
            naive = NaiveConvolution(
                window: NaiveWindow(
                    input: input, kernel: layer.kernelSize, stride: layer.stride, dilation: layer.dilation,
                    padding: layer.padding),
                outputChannels: layer.outputChannels, groups: layer.groups)
            self.input = input
            self.batch = batch
            self.algorithm = algorithm
        }

        init(_ layer: any Layer, _ naive: any NaiveLayer, over input: TensorShape, batch: Int = 3) {
            self.layer = layer
            self.naive = naive
            self.input = input
            self.batch = batch
        }
    }

    static func shape(_ height: Int, _ width: Int, _ channels: Int) -> TensorShape {
        TensorShape(height: height, width: width, channels: channels)
    }

    static let windows: [Case] = {
        var cases: [Case] = []
        let paddings: [Padding] = [.valid, .same, .explicit(top: 1, left: 0, bottom: 2, right: 1)]
        for kernel in [1, 2, 3, 5] {
            for stride in [1, 2, 3] {
                for padding in paddings {
                    let input = shape(7, 9, 4)
                    let isPointwise = kernel == 1 && stride == 1 && padding != paddings[2]
                    cases.append(
                        Case(
                            Convolution(
                                outputChannels: 3, kernelSize: Size2D(kernel), stride: Size2D(stride), padding: padding),
                            over: input, as: isPointwise ? .matrixProduct : .im2col))
                    cases.append(
                        Case(
                            Convolution(
                                outputChannels: 4, kernelSize: Size2D(kernel), stride: Size2D(stride), padding: padding,
                                groups: 4, hasBias: false),
                            over: input, as: .direct))
                    guard kernel > 2 else { continue }
                    let window = NaiveWindow(
                        input: input, kernel: Size2D(kernel), stride: Size2D(stride), padding: padding)
                    cases.append(
                        Case(
                            MaxPool(kernelSize: Size2D(kernel), stride: Size2D(stride), padding: padding),
                            NaiveMaxPool(window: window), over: input))
                    for countsPadding in [false, true] {
                        cases.append(
                            Case(
                                AveragePool(
                                    kernelSize: Size2D(kernel), stride: Size2D(stride), padding: padding,
                                    countsPadding: countsPadding),
                                NaiveAveragePool(window: window, countsPadding: countsPadding), over: input))
                    }
                }
            }
        }
        return cases
    }()

    /// Every kernel, stride and padding over images whose last windows lie in the image, the border and beyond.
    static let roundedUp: [Case] = {
        var cases: [Case] = []
        for (kernel, stride) in [(2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (3, 4), (5, 3)] {
            for (before, after) in [(0, 0), (1, 1), (0, 1), (1, 0)] {
                for (height, width, channels) in [(5, 6, 3), (7, 8, 17)] {
                    let input = shape(height, width, channels)
                    let padding = Padding.explicit(top: before, left: before, bottom: after, right: after)
                    let window = NaiveWindow(
                        input: input, kernel: Size2D(kernel), stride: Size2D(stride), padding: padding, roundsUp: true)
                    let (size, step) = (Size2D(kernel), Size2D(stride))
                    cases.append(
                        Case(
                            MaxPool(kernelSize: size, stride: step, padding: padding, roundsUp: true),
                            NaiveMaxPool(window: window), over: input))
                    for countsPadding in [false, true] {
                        let layer = AveragePool(
                            kernelSize: size, stride: step, padding: padding, countsPadding: countsPadding,
                            roundsUp: true)
                        cases.append(
                            Case(layer, NaiveAveragePool(window: window, countsPadding: countsPadding), over: input))
                    }
                }
            }
        }
        return cases
    }()

    static let convolutions: [Case] = [
        Case(
            Convolution(outputChannels: 6, kernelSize: 3, padding: .same, groups: 2), over: shape(6, 5, 4), as: .im2col),
        Case(
            Convolution(outputChannels: 6, kernelSize: 1, groups: 3, hasBias: false), over: shape(6, 5, 3), as: .im2col),
        Case(
            Convolution(outputChannels: 2, kernelSize: 3, padding: .same, dilation: Size2D(height: 2, width: 3)),
            over: shape(9, 8, 3), as: .im2col),
        Case(
            Convolution(outputChannels: 5, kernelSize: 3, stride: 2, padding: .same, dilation: 2, groups: 5),
            over: shape(9, 8, 5), as: .direct),
        // The kernel is larger than the image.
        Case(Convolution(outputChannels: 2, kernelSize: 7, padding: .all(3)), over: shape(2, 3, 2), as: .im2col),
        Case(
            Convolution(outputChannels: 2, kernelSize: 7, padding: .all(3), groups: 2), over: shape(2, 3, 2),
            as: .direct),
        // More windows than one block of rows holds, and more images than parts of the sum.
        Case(
            Convolution(outputChannels: 2, kernelSize: 3, padding: .same), over: shape(11, 9, 57), batch: 6,
            as: .im2col),
        Case(Convolution(outputChannels: 2, kernelSize: 1), over: shape(50, 45, 2), batch: 2, as: .matrixProduct),
        // Wider than a vector register, and not a multiple of it.
        Case(
            Convolution(outputChannels: 37, kernelSize: 3, padding: .same, groups: 37), over: shape(5, 4, 37), batch: 6,
            as: .direct),
    ]

    /// Sizes that tiles of 4x4 fill and do not fill, over all paddings, with channels that fill vectors and do not.
    static let winograd: [Case] = {
        let sizes = [(4, 4), (5, 7), (9, 6), (13, 13), (14, 14)]
        let paddings: [Padding] = [
            .valid, .same, .all(2), .explicit(top: 1, left: 0, bottom: 2, right: 1),
            .explicit(top: 0, left: 2, bottom: 5, right: 0),
        ]
        let channels = [(16, 16), (17, 19), (24, 16), (16, 48), (40, 17)]
        var cases: [Case] = []
        for (height, width) in sizes {
            for padding in paddings {
                let (inputs, outputs) = channels[cases.count % channels.count]
                let window = NaiveWindow(
                    input: shape(height, width, inputs), kernel: 3, stride: 1, padding: padding)
                // Smaller results are not worth the tiles.
                guard min(window.output.height, window.output.width) >= 4 else { continue }
                cases.append(
                    Case(
                        Convolution(
                            outputChannels: outputs, kernelSize: 3, padding: padding, hasBias: cases.count % 2 == 0),
                        over: shape(height, width, inputs), batch: cases.count % 3 == 0 ? 3 : 1, as: .winograd))
            }
        }
        return cases + [
            // An image smaller than a tile, whose gradient is too.
            Case(
                Convolution(outputChannels: 16, kernelSize: 3, padding: .all(2)), over: shape(2, 3, 16), as: .winograd),
            // The last panel of output channels is narrower than the others.
            Case(
                Convolution(outputChannels: 130, kernelSize: 3, padding: .same), over: shape(5, 7, 16), as: .winograd),
            Case(
                Convolution(outputChannels: 16, kernelSize: 3, padding: .valid), over: shape(6, 7, 130), as: .winograd),
            // More weights than a cache takes: threads share the tiles.
            Case(
                Convolution(outputChannels: 170, kernelSize: 3, padding: .same), over: shape(5, 6, 176), batch: 2,
                as: .winograd),
        ]
    }()

    @Test("A 3x3 convolution that is not worth Winograd's tiles")
    func withoutWinograd() {
        func algorithm(
            _ input: TensorShape, _ outputs: Int, stride: Size2D = 1, padding: Padding = .same, dilation: Size2D = 1,
            groups: Int = 1
        ) -> Algorithm {
            Convolution(
                outputChannels: outputs, kernelSize: 3, stride: stride, padding: padding, dilation: dilation,
                groups: groups
            ).algorithm(for: [input], predicting: nil)
        }
        let input = Self.shape(8, 8, 32)
        #expect(algorithm(input, 16) == .winograd)
        #expect(algorithm(input, 15) == .im2col)
        #expect(algorithm(Self.shape(8, 8, 15), 16) == .im2col)
        #expect(algorithm(input, 16, stride: 2) == .im2col)
        #expect(algorithm(input, 16, stride: Size2D(height: 1, width: 2)) == .im2col)
        #expect(algorithm(input, 16, dilation: 2) == .im2col)
        #expect(algorithm(input, 32, groups: 2) == .im2col)
        #expect(algorithm(input, 16, padding: .all(3)) == .im2col)
        #expect(algorithm(Self.shape(8, 2, 32), 16) == .im2col)
        #expect(algorithm(Self.shape(4, 8, 32), 16, padding: .valid) == .im2col)
        #expect(algorithm(Self.shape(3, 3, 32), 16) == .winograd)
        // A single tile of many channels, predicted alone.
        let wide = Convolution(outputChannels: 512, kernelSize: 3, padding: .same)
        #expect(wide.algorithm(for: [Self.shape(7, 7, 512)], predicting: 1) == .im2col)
        #expect(wide.algorithm(for: [Self.shape(7, 7, 512)], predicting: 2) == .winograd)
        #expect(wide.algorithm(for: [Self.shape(7, 7, 512)], predicting: nil) == .winograd)
    }

    static let others: [Case] = {
        var cases: [Case] = []
        for (inputs, outputs) in [(1, 1), (7, 5), (33, 65), (512, 513)] {
            for hasBias in [true, false] {
                cases.append(
                    Case(
                        Dense(outputChannels: outputs, hasBias: hasBias),
                        NaiveDense(inputChannels: inputs, outputChannels: outputs), over: TensorShape(channels: inputs))
                )
            }
        }
        // The last has several parts in its sums and more channels than one block.
        for (input, batch) in [(shape(1, 1, 3), 4), (shape(5, 7, 1), 1), (shape(3, 5, 37), 3), (shape(12, 11, 300), 4)]
        {
            for usesRunningStatistics in [false, true] {
                cases.append(
                    Case(
                        BatchNormalization(epsilon: 1e-3, usesRunningStatistics: usesRunningStatistics),
                        NaiveBatchNormalization(
                            channels: input.channels, epsilon: 1e-3, usesRunningStatistics: usesRunningStatistics),
                        over: input, batch: batch))
            }
        }
        return cases
    }()

    /// Channels that fill vectors and do not, and more of them and of pixels than one block of a sum.
    static let imported: [Case] = {
        var cases: [Case] = []
        for input in [shape(1, 1, 1), shape(3, 5, 17), shape(9, 8, 300)] {
            for (hasScale, hasShift) in [(true, true), (true, false), (false, true)] {
                cases.append(
                    Case(
                        Affine(extent: .channels, hasScale: hasScale, hasShift: hasShift),
                        NaiveAffine(count: input.channels, hasScale: hasScale, hasShift: hasShift), over: input))
                cases.append(
                    Case(
                        Affine(extent: .values, hasScale: hasScale, hasShift: hasShift),
                        NaiveAffine(count: input.count, hasScale: hasScale, hasShift: hasShift), over: input, batch: 9))
            }
            cases.append(
                Case(
                    LayerNormalization(epsilon: 0.01),
                    NaiveLayerNormalization(channels: input.channels, epsilon: 0.01), over: input, batch: 4))
            let root = 0.5.squareRoot()
            cases.append(
                Case(
                    GELU(),
                    NaiveCurve(value: { $0 / 2 * (1 + erf($0 * root)) }) {
                        (1 + erf($0 * root)) / 2 + $0 * exp(-$0 * $0 / 2) / (2 * Double.pi).squareRoot()
                    }, over: input))
            cases.append(
                Case(
                    Erf(), NaiveCurve(value: { erf($0) }) { 2 / Double.pi.squareRoot() * exp(-$0 * $0) }, over: input))
            cases.append(Case(PReLU(), NaivePReLU(count: input.channels), over: input, batch: 4))
            cases.append(Case(PReLU(isShared: true), NaivePReLU(count: 1), over: input, batch: 4))
            for size in [1, 2, 5, 8] {
                let layer = LocalResponseNormalization(size: size, alpha: 2, beta: 0.75, bias: 0.5)
                cases.append(
                    Case(layer, NaiveResponseNormalization(channels: input.channels, layer: layer), over: input))
            }
            let factor = Size2D(height: 3, width: 2)
            cases.append(Case(UpsampleNearest(factor: factor), NaiveSums.upsample(input, factor), over: input))
            // Backwards, interleaved, and a run in the middle.
            let channels = input.channels
            for list in [
                Array((0..<channels).reversed()),
                (0..<2 * channels).map { $0 / 2 + $0 % 2 * (channels / 2) % channels },
                Array(channels / 3..<channels), [0, channels - 1, 0],
            ] {
                let valid = list.map { min($0, channels - 1) }
                cases.append(
                    Case(SelectChannels(channels: valid), NaiveSums.select(input, valid), over: input))
            }
        }
        for mode in [PadLayer.Mode.constant(-0.5), .reflect, .edge] {
            for layer in [
                PadLayer(top: 2, left: 3, bottom: 1, right: 4, mode: mode),
                PadLayer(top: 0, left: 0, bottom: 2, right: 0, mode: mode),
            ] {
                cases.append(Case(layer, NaiveSums.pad(shape(3, 5, 17), layer), over: shape(3, 5, 17)))
            }
        }
        for bits in 1...7 {
            let axes = MeanAxes(rawValue: bits)
            for input in [shape(3, 5, 17), shape(1, 6, 3), shape(6, 1, 3)] {
                cases.append(Case(MeanLayer(axes: axes), NaiveSums.mean(input, axes), over: input))
            }
        }
        cases.append(
            Case(
                MeanLayer(axes: [.height, .width]), NaiveSums.mean(shape(9, 8, 300), [.height, .width]),
                over: shape(9, 8, 300)))
        return cases
    }()

    @Test("Windows over kernels, strides and paddings", arguments: windows)
    func window(_ reference: Case) throws { try compare(reference) }

    @Test("Convolutions with groups, dilation, and many blocks", arguments: convolutions)
    func convolution(_ reference: Case) throws { try compare(reference) }

    @Test("Transposed convolutions", arguments: transposed)
    func transposedConvolution(_ reference: Case) throws { try compare(reference) }

    @Test("3x3 convolutions by Winograd's minimal filtering", arguments: winograd)
    func minimalFiltering(_ reference: Case) throws { try compare(reference) }

    @Test("Dense and batch normalisation", arguments: others)
    func other(_ reference: Case) throws { try compare(reference) }

    @Test("Layers of imported networks", arguments: imported)
    func importedLayer(_ reference: Case) throws { try compare(reference) }

    @Test("Pools that round up", arguments: roundedUp)
    func pool(_ reference: Case) throws { try compare(reference) }

    private func compare(_ reference: Case) throws {
        let network = try Network(
            name: reference.testDescription, input: reference.input,
            nodes: [Network.Node(name: "layer", layer: reference.layer, inputs: [Network.inputName])])
        let parameters = try randomParameters(network, seed: 2)
        let names = reference.layer.parameters(for: [reference.input]).map { "layer.\($0.name)" }
        let values = names.map { name in (parameters[name] ?? []).map(Double.init) }
        // Two workers, since each has scratch memory of its own.
        let plan = try ExecutionPlan(
            network, parameters: parameters,
            options: ExecutionPlan.Options(
                batchSize: reference.batch, mode: .training, workers: Workers(2), inputGradient: true))
        if let algorithm = reference.algorithm { #expect(plan.summary[0].algorithm == algorithm) }
        let input = randomValues(plan.input.count, "input")
        let outputGradient = randomValues(plan.output.count, "output gradient")

        _ = plan.input.update(from: input)
        plan.forward(count: reference.batch)
        _ = plan.outputGradient.update(from: outputGradient)
        plan.backward(count: reference.batch)

        let expected = reference.naive.run(
            input: input.map(Double.init), outputGradient: outputGradient.map(Double.init), parameters: values,
            batch: reference.batch)
        func expectSame(_ actual: some Sequence<Float>, _ expected: [Double], _ what: String) {
            expectClose(actual, expected.map { Float($0) }, "\(network.name): \(what)", tolerance: 1e-4)
        }
        expectSame(plan.output, expected.output, "output")
        expectSame(try #require(plan.inputGradient), expected.inputGradient, "input gradient")
        for (name, expected) in zip(names, expected.parameterGradients) {
            let range = try #require(parameters.layout[name]).range
            expectSame(plan.parameterGradients[range], expected, "gradient of \(name)")
        }
    }
}
