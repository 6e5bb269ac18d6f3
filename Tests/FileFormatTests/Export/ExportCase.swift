import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import Testing

@testable import ImprintNetwork

/// A model to export, with images and the expected outputs.
struct ExportCase: Sendable, CustomTestStringConvertible {
    let name: String
    let network: Network
    var testDescription: String { name }

    /// The details of the exported models in float16; check_exports.py expects them.
    static let details = ModelDetails(version: 7, license: "Apache-2.0", intendedUse: "Tests of Imprint.")
    /// The number of images.
    static let batch = 2

    private init(_ name: String, _ network: Network) {
        self.name = name
        self.network = network
    }

    /// Creates a network with these layers between a convolution and a dense layer.
    private init(_ name: String, channels: Int = 4, height: Int = 7, width: Int = 9, _ layers: any Layer...) throws {
        var net = NetworkBuilder(name: name, input: TensorShape(height: height, width: width, channels: 3))
        net.add(Convolution(outputChannels: channels, kernelSize: 1), named: "first")
        for layer in layers { net.add(layer) }
        net.add(Flatten())
        net.add(Dense(outputChannels: 3), named: "head")
        net.add(Softmax(), named: "probabilities")
        self.init(name, try net.network())
    }

    /// Creates a network that `add` completes after the first layer, which outputs a vector of 6 elements or an image of 4 channels.
    private init(
        _ name: String, overVector: Bool = false, channels: Int = 3,
        _ add: (inout NetworkBuilder) -> Void
    ) throws {
        var net = NetworkBuilder(name: name, input: TensorShape(height: 6, width: 5, channels: channels))
        net.add(Convolution(outputChannels: overVector ? 6 : 4, kernelSize: 3), named: "first")
        if overVector { net.add(GlobalAveragePool()) }
        add(&net)
        self.init(name, try net.network())
    }
}

// MARK: The networks

extension ExportCase {
    static let all: [ExportCase] = {
        do {
            return try builtIn() + layers() + importedLayers() + graphs()
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    /// The networks that only ONNX can express.
    static let onnxOnly: [ExportCase] = {
        do {
            return [
                try ExportCase("gelu", GELU()), try ExportCase("erf", Erf()),
                try ExportCase(
                    "transposed-convolution",
                    TransposedConvolution(
                        outputChannels: 6, kernelSize: Size2D(height: 3, width: 4), stride: 2,
                        padding: .explicit(top: 1, left: 0, bottom: 0, right: 2),
                        outputPadding: Size2D(height: 0, width: 1), dilation: Size2D(height: 2, width: 1), groups: 2)),
                try ExportCase(
                    "transposed-convolution-same",
                    TransposedConvolution(
                        outputChannels: 3, kernelSize: Size2D(height: 3, width: 2), stride: Size2D(height: 2, width: 3),
                        padding: .same, hasBias: false)),
                try ExportCase("layer-normalization", LayerNormalization(epsilon: 0.01)),
                try ExportCase("flat-normalization", overVector: true) {
                    $0.add(LayerNormalization())
                    $0.add(GELU())
                    $0.add(Dense(outputChannels: 3))
                    $0.add(Softmax())
                },
            ]
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    private static func builtIn() throws -> [ExportCase] {
        [
            ExportCase("lenet", try .lenet(labels: 4, inputSize: 16, width: 0.2)),
            ExportCase("logonet", try .logonet(labels: 3, inputSize: 32, width: 0.25)),
            ExportCase("mobilenet-v1", try .mobileNetV1(labels: 5, inputSize: 32, width: 0.25)),
            ExportCase("resnet-50", try .resNet50(labels: 4, inputSize: 32, width: 0.125)),
            ExportCase("mobilenet-v3-small", try .mobileNetV3Small(labels: 4, inputSize: 32, width: 0.25)),
            ExportCase("efficientnet-b0", try .efficientNetB0(labels: 3, inputSize: 32, width: 0.125)),
            ExportCase("squeezenet-1.1", try .squeezeNet11(labels: 4, inputSize: 32, width: 0.125)),
        ]
    }

    private static func layers() throws -> [ExportCase] {
        let uneven = Padding.explicit(top: 1, left: 0, bottom: 0, right: 2)
        let (oblong, steps) = (Size2D(height: 2, width: 3), Size2D(height: 1, width: 2))
        return [
            try ExportCase(
                "convolution",
                Convolution(
                    outputChannels: 6, kernelSize: oblong, stride: steps, padding: uneven,
                    dilation: Size2D(height: 2, width: 1), groups: 2, hasBias: false)),
            try ExportCase(
                "convolution-same", Convolution(outputChannels: 5, kernelSize: oblong, stride: 2, padding: .same)),
            try ExportCase(
                "convolution-depthwise", Convolution(outputChannels: 4, kernelSize: 3, padding: .all(1), groups: 4)),
            try ExportCase("batch-normalization", BatchNormalization(epsilon: 0.01)),
            try ExportCase("max-pool", MaxPool(kernelSize: oblong, stride: steps, padding: uneven)),
            try ExportCase("max-pool-same", MaxPool(kernelSize: 3, stride: 2, padding: .same)),
            try ExportCase("average-pool", AveragePool(kernelSize: oblong, stride: steps, padding: uneven)),
            try ExportCase("average-pool-same", AveragePool(kernelSize: 2, stride: 2, padding: .same)),
            try ExportCase(
                "average-pool-counting", AveragePool(kernelSize: 3, stride: 2, padding: .all(1), countsPadding: true)),
            try ExportCase("global-average-pool", GlobalAveragePool()),
            try ExportCase("global-max-pool", GlobalMaxPool()),
            try ExportCase("relu", ReLU()), try ExportCase("relu6", ReLU6()),
            try ExportCase("leaky-relu", LeakyReLU(slope: 0.25)),
            try ExportCase("sigmoid", Sigmoid()), try ExportCase("hard-swish", HardSwish()),
            try ExportCase("softmax", Softmax()), try ExportCase("dropout", Dropout(rate: 0.25)),
        ]
    }

    private static func importedLayers() throws -> [ExportCase] {
        let permuted = [3, 0, 0, 2, 1]
        return [
            try ExportCase("affine", Affine(extent: .channels)),
            try ExportCase("affine-scale", Affine(extent: .channels, hasShift: false)),
            try ExportCase("affine-shift", Affine(extent: .values, hasScale: false)),
            try ExportCase("affine-values", Affine(extent: .values)),
            try ExportCase(
                "response", channels: 7, LocalResponseNormalization(size: 5, alpha: 0.5, beta: 0.6, bias: 1.5)),
            try ExportCase("response-of-one", LocalResponseNormalization(size: 1, alpha: 2)),
            try ExportCase("max-pool-up", height: 8, width: 10, MaxPool(kernelSize: 3, stride: 2, roundsUp: true)),
            try ExportCase(
                "average-pool-up", height: 8, width: 10,
                AveragePool(kernelSize: 3, stride: 2, padding: .all(1), roundsUp: true)),
            try ExportCase(
                "average-pool-up-counting", height: 8, width: 10,
                AveragePool(kernelSize: 3, stride: 2, padding: .all(1), countsPadding: true, roundsUp: true)),
            try ExportCase("mean", MeanLayer(axes: [.height, .width])),
            try ExportCase("mean-of-all", MeanLayer(axes: [.height, .width, .channels])),
            try ExportCase("mean-of-channels", MeanLayer(axes: .channels)),
            try ExportCase("mean-of-rows", MeanLayer(axes: .height)),
            try ExportCase("mean-of-lines", MeanLayer(axes: [.channels, .width])),
            try ExportCase("pad", PadLayer(top: 1, left: 2, bottom: 3, right: 0, mode: .constant(-0.5))),
            try ExportCase("pad-reflect", PadLayer(top: 1, left: 2, bottom: 3, right: 4, mode: .reflect)),
            try ExportCase("pad-edge", PadLayer(top: 0, left: 2, bottom: 3, right: 1, mode: .edge)),
            try ExportCase("upsample", UpsampleNearest(factor: Size2D(height: 2, width: 3))),
            try ExportCase("select-run", SelectChannels(channels: [1, 2])),
            try ExportCase("select", SelectChannels(channels: permuted)),
            try ExportCase("clip", ClipLayer(minimum: -0.25, maximum: 0.5)),
            try ExportCase("clip-below", ClipLayer(minimum: -0.25, maximum: .infinity)),
            try ExportCase("clip-above", ClipLayer(minimum: -.infinity, maximum: 0.25)),
            try ExportCase("prelu", PReLU()), try ExportCase("prelu-shared", PReLU(isShared: true)),
            try ExportCase("elu", ELU(alpha: 0.5)),
            try ExportCase("hard-sigmoid", HardSigmoid(slope: 0.25, offset: 0.4)),
            try ExportCase("swish", Swish()), try ExportCase("tanh", Tanh()), try ExportCase("softplus", Softplus()),
            try ExportCase("squeeze-and-excite") {
                $0.add(GlobalAveragePool())
                $0.add(Dense(outputChannels: 2))
                $0.add(Swish())
                $0.add(Dense(outputChannels: 4))
                let gate = $0.add(Sigmoid())
                let gated = $0.add(MultiplyLayer(), to: ["first", gate])
                let pixelMeans = $0.add(MeanLayer(axes: .channels), to: [gated])
                let mean = $0.add(MeanLayer(axes: [.height, .width]), to: [pixelMeans])
                let sum = $0.add(AddLayer(), to: [gated, pixelMeans, mean])
                let product = $0.add(MultiplyLayer(), to: [mean, sum, pixelMeans, gate])
                $0.add(MaximumLayer(), to: [gated, sum, product])
                $0.add(Flatten())
                $0.add(Dense(outputChannels: 3))
                $0.add(Softmax())
            },
            try ExportCase("broadcast-freely") {
                let rows = $0.add(MeanLayer(axes: .width))
                let columns = $0.add(MeanLayer(axes: .height), to: ["first"])
                let product = $0.add(MultiplyLayer(), to: [rows, columns])
                $0.add(AddLayer(), to: [product, rows, "first"])
                $0.add(Flatten())
                $0.add(Dense(outputChannels: 3))
                $0.add(Softmax())
            },
            try ExportCase("imported-vector", overVector: true) {
                $0.add(Affine(extent: .values))
                $0.add(Dense(outputChannels: 6))
                $0.add(PReLU())
                let left = $0.add(SelectChannels(channels: [0, 1, 2]))
                let right = $0.add(SelectChannels(channels: [5, 3, 4]), to: ["prelu1"])
                $0.add(MultiplyLayer(), to: [left, right])
                $0.add(MaximumLayer(), to: [$0.last, left])
                $0.add(Affine(extent: .channels))
                $0.add(LocalResponseNormalization(size: 3, alpha: 0.5))
                $0.add(Dense(outputChannels: 2))
                $0.add(Softmax())
            },
            try ExportCase(
                "flatten-through-curves", Flatten(), ClipLayer(minimum: -1, maximum: 1), PReLU(isShared: true), ELU(),
                Swish(), Tanh()),
            try ExportCase("flatten-to-slopes", Flatten(), PReLU()),
        ]
    }

    /// The Core ML specification version that the network requires with float32 weights.
    var coreMLVersion: Int { name == "broadcast-freely" ? 4 : 1 }

    private static func graphs() throws -> [ExportCase] {
        [
            try ExportCase("flatten-to-labels") { $0.add(Flatten()) },
            try ExportCase("flatten-seen", channels: 1) {
                let vector = $0.add(Flatten())
                $0.add(BatchNormalization())
                $0.add(Concat(), to: [vector, $0.last])
                $0.add(Dense(outputChannels: 2))
            },
            try ExportCase("flatten-twice-read") {
                let vector = $0.add(Flatten())
                let one = $0.add(Dense(outputChannels: 3, hasBias: false), to: [vector])
                $0.add(ReLU(), to: [vector])
                $0.add(Dropout())
                $0.add(Dense(outputChannels: 3))
                $0.add(AddLayer(), to: [one, $0.last, one])
                $0.add(Softmax())
            },
            try ExportCase("names") {
                let shortcut = $0.add(ReLU(), named: "image")
                let branch = $0.add(Sigmoid(), named: "first.weight", to: ["first"])
                $0.add(AddLayer(), named: "classLabel", to: [shortcut, branch])
                $0.add(Concat(), named: "", to: ["classLabel", "first"])
                $0.add(GlobalAveragePool(), named: "probabilities")
                $0.add(Dense(outputChannels: 2), named: "loss")
                $0.add(Softmax(), named: "probabilities_")
            },
            try ExportCase("vector", overVector: true) {
                $0.add(BatchNormalization())
                let one = $0.add(Dense(outputChannels: 6))
                $0.add(HardSwish())
                $0.add(ReLU6())
                $0.add(Convolution(outputChannels: 6, kernelSize: 1))
                $0.add(AddLayer(), to: [one, $0.last])
                $0.add(Concat(), to: [$0.last, one])
                $0.add(Flatten())
                $0.add(Dense(outputChannels: 2))
                $0.add(Flatten())
                $0.add(Dropout())
            },
        ]
    }
}

// MARK: Parameters, images and outputs

extension ExportCase {
    /// Returns the model, with random parameters.
    /// - Parameter rounded: Whether weights are rounded to float16.
    func model(rounded: Bool = false) throws -> ModelFile {
        let parameters = try Parameters(network, seed: 7)
        for entry in parameters.layout.entries {
            var stream = RandomStream(seed: 3, entry.name)
            parameters.withValues(of: entry) { values in
                for index in values.indices {
                    switch (entry.parameter.role, entry.parameter.name) {
                    case (.weight, _): values[index] = rounded ? Float(Float16(values[index])) : values[index]
                    case (_, "runningVariance"), (_, "scale"): values[index] = stream.uniform(in: 0.5...1.5)
                    default: values[index] = stream.uniform(in: -0.5...0.5)
                    }
                }
            }
        }
        var preprocessing = Preprocessing(
            width: network.input.width, height: network.input.height, channels: network.input.channels,
            cropAndScale: .scaleFit)
        // Some cases have a different scale for each channel.
        if preprocessing.channels == 3 && name.count % 2 == 0 {
            preprocessing.mean = [123.675, 116.28, 103.53]
            preprocessing.scale = [1 / 58.395, 1 / 57.12, 1 / 57.375]
        }
        return ModelFile(
            network: network, parameters: parameters,
            labels: (0..<(try network.labelCount())).map { "label \($0) é" }, preprocessing: preprocessing)
    }

    /// The samples of the images, [batch, height, width, channels].
    var samples: [UInt8] {
        var stream = RandomStream(seed: 11, name)
        return (0..<(Self.batch * network.input.count)).map { _ in UInt8(stream.uniform(in: 0...255)) }
    }

    /// Returns the normalized inputs and the outputs for the images.
    func predictions(_ model: ModelFile) throws -> (inputs: [Float], outputs: [Float]) {
        let plan = try ExecutionPlan(
            network, parameters: model.parameters,
            options: ExecutionPlan.Options(batchSize: Self.batch, mode: .prediction))
        samples.withUnsafeBufferPointer { model.preprocessing.normalize($0, into: plan.input) }
        let inputs = Array(plan.input)
        plan.forward(count: Self.batch)
        return (inputs, Array(plan.output))
    }
}
