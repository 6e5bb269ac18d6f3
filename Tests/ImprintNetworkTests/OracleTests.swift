import Foundation
import ImprintCore
import Testing

@testable import ImprintNetwork

/// Compares layers with their formulas in plain loops, forward and backward.
@Suite struct OracleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let layer: any Layer
        let naive: any NaiveLayer
        let input: TensorShape
        var batch = 3
        /// The algorithm that the plan must choose; nil if any is accepted.
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

    /// Kernels, strides and paddings whose last windows end in the image, in the padding and beyond it.
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
        // More windows than one block of rows, and more images than parts of the sum.
        Case(
            Convolution(outputChannels: 2, kernelSize: 3, padding: .same), over: shape(11, 9, 57), batch: 6,
            as: .im2col),
        Case(Convolution(outputChannels: 2, kernelSize: 1), over: shape(50, 45, 2), batch: 2, as: .matrixProduct),
        // More channels than the vector length, and not a multiple of it.
        Case(
            Convolution(outputChannels: 37, kernelSize: 3, padding: .same, groups: 37), over: shape(5, 4, 37), batch: 6,
            as: .direct),
    ]

    /// Sizes and channels that are multiples of the tile size and vector length or not, with all paddings.
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
                // Winograd is not used for smaller outputs.
                guard min(window.output.height, window.output.width) >= 4 else { continue }
                cases.append(
                    Case(
                        Convolution(
                            outputChannels: outputs, kernelSize: 3, padding: padding, hasBias: cases.count % 2 == 0),
                        over: shape(height, width, inputs), batch: cases.count % 3 == 0 ? 3 : 1, as: .winograd))
            }
        }
        return cases + [
            // The image and its gradient are smaller than a tile.
            Case(
                Convolution(outputChannels: 16, kernelSize: 3, padding: .all(2)), over: shape(2, 3, 16), as: .winograd),
            // The last panel of output channels is narrower than the others.
            Case(
                Convolution(outputChannels: 130, kernelSize: 3, padding: .same), over: shape(5, 7, 16), as: .winograd),
            Case(
                Convolution(outputChannels: 16, kernelSize: 3, padding: .valid), over: shape(6, 7, 130), as: .winograd),
            // More weights than fit into the cache: the threads divide the tiles.
            Case(
                Convolution(outputChannels: 170, kernelSize: 3, padding: .same), over: shape(5, 6, 176), batch: 2,
                as: .winograd),
        ]
    }()

    @Test("Only suitable 3x3 convolutions use Winograd") func algorithmChoice() {
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
        // A few tiles with many channels, if a single image is predicted.
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
        // The last input has several parts in its sums and more channels than one block.
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

    /// Channels that are multiples of the vector length or not, and more channels and pixels than one block of a sum.
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
            // Reversed, interleaved, a run, and repeated channels.
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

    @Test("Convolutions and pools of all kernels, strides and paddings agree with their formulas", arguments: windows)
    func window(_ reference: Case) throws { try compare(reference) }

    @Test("Convolutions with groups, dilation and many blocks agree with their formula", arguments: convolutions)
    func convolution(_ reference: Case) throws { try compare(reference) }

    @Test("Transposed convolutions agree with their formula", arguments: transposed)
    func transposedConvolution(_ reference: Case) throws { try compare(reference) }

    @Test("Winograd convolutions agree with their formula", arguments: winograd)
    func winogradConvolution(_ reference: Case) throws { try compare(reference) }

    @Test("Dense layers and batch normalization agree with their formulas", arguments: others)
    func other(_ reference: Case) throws { try compare(reference) }

    @Test("Layers of imported networks agree with their formulas", arguments: imported)
    func importedLayer(_ reference: Case) throws { try compare(reference) }

    @Test("Pools that round their output size up agree with their formulas", arguments: roundedUp)
    func pool(_ reference: Case) throws { try compare(reference) }

    private func compare(_ reference: Case) throws {
        let network = try Network(
            name: reference.testDescription, input: reference.input,
            nodes: [Network.Node(name: "layer", layer: reference.layer, inputs: [Network.inputName])])
        let parameters = try randomParameters(network, seed: 2)
        let names = reference.layer.parameters(for: [reference.input]).map { "layer.\($0.name)" }
        let values = names.map { name in (parameters[name] ?? []).map(Double.init) }
        // Two workers, because each worker has its scratch memory.
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
        func expectClose(_ actual: some Sequence<Float>, _ expected: [Double], _ name: String) {
            ImprintNetworkTests.expectClose(
                actual, expected.map { Float($0) }, "\(network.name): \(name)", tolerance: 1e-4)
        }
        expectClose(plan.output, expected.output, "output")
        expectClose(try #require(plan.inputGradient), expected.inputGradient, "input gradient")
        for (name, expected) in zip(names, expected.parameterGradients) {
            let range = try #require(parameters.layout[name]).range
            expectClose(plan.parameterGradients[range], expected, "gradient of \(name)")
        }
    }
}
