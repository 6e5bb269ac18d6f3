import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import Testing

@testable import ImprintInterop
@testable import ImprintNetwork

/// A small quantized model.
struct QuantizedCase: Sendable, CustomTestStringConvertible {
    let name: String
    let network: Network
    var testDescription: String { name }

    private init(_ name: String, channels: Int = 3, _ add: (inout NetworkBuilder) -> Void) throws {
        var net = NetworkBuilder(name: name, input: TensorShape(height: 12, width: 10, channels: channels))
        add(&net)
        net.add(Dense(outputChannels: 4), named: "head")
        net.add(Softmax(), named: "probabilities")
        self.name = name
        network = try net.network()
    }

    static let all: [QuantizedCase] = {
        do {
            return try networks()
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    private static func networks() throws -> [QuantizedCase] {
        [
            try QuantizedCase("residual") {
                $0.add(Convolution(outputChannels: 16, kernelSize: 3, padding: .same, hasBias: false))
                $0.add(BatchNormalization())
                let shortcut = $0.add(ReLU())
                $0.add(Convolution(outputChannels: 16, kernelSize: 3, padding: .same))
                $0.add(BatchNormalization())
                $0.add(AddLayer(), to: [shortcut, $0.last])
                $0.add(ReLU6())
                $0.add(Convolution(outputChannels: 8, kernelSize: 1))
                $0.add(Swish())
                $0.add(GlobalAveragePool())
                $0.add(Flatten())
            },
            try QuantizedCase("separable") {
                $0.add(Convolution(outputChannels: 16, kernelSize: 3, stride: 2, padding: .same))
                $0.add(ReLU6())
                $0.add(Convolution(outputChannels: 16, kernelSize: 3, padding: .same, groups: 16))
                $0.add(ReLU6())
                $0.add(Convolution(outputChannels: 24, kernelSize: 1))
                $0.add(Flatten())
                $0.add(Dropout())
            },
            try QuantizedCase("branches") {
                $0.add(Convolution(outputChannels: 8, kernelSize: 3))
                let stem = $0.add(ReLU())
                $0.add(Convolution(outputChannels: 8, kernelSize: 1), to: [stem])
                let left = $0.add(ReLU())
                $0.add(Convolution(outputChannels: 12, kernelSize: 3, padding: .same), to: [stem])
                let right = $0.add(Tanh())
                $0.add(Concat(), to: [left, right])
                $0.add(MaxPool(kernelSize: 2))
                $0.add(Convolution(outputChannels: 16, kernelSize: 2))
                $0.add(ReLU())
                $0.add(Flatten())
            },
            try QuantizedCase("grey", channels: 1) {
                $0.add(Convolution(outputChannels: 8, kernelSize: 3))
                $0.add(ReLU())
                $0.add(MaxPool(kernelSize: 2))
                $0.add(Flatten())
                $0.add(Dense(outputChannels: 12))
                $0.add(ReLU())
            },
        ]
    }

    /// Returns the quantized model.
    func model() throws -> ModelFile {
        let parameters = try Parameters(network, seed: 5)
        for entry in parameters.layout.entries where entry.parameter.role != .weight {
            var stream = RandomStream(seed: 3, entry.name)
            parameters.withValues(of: entry) { values in
                for index in values.indices {
                    let isPositive = ["scale", "runningVariance"].contains(entry.parameter.name)
                    values[index] = stream.uniform(in: isPositive ? 0.5...1.5 : -0.3...0.3)
                }
            }
        }
        let images = (0..<16).map { index in
            Quantizer.Image(shape: network.input) { [self] values in
                _ = values.update(fromContentsOf: image(index))
            }
        }
        return ModelFile(
            network: network, parameters: try Quantizer(network, parameters: parameters).quantize(for: images),
            labels: (0..<4).map { "label \($0)" },
            preprocessing: Preprocessing(
                width: network.input.width, height: network.input.height, channels: network.input.channels,
                cropAndScale: .scaleFit))
    }

    /// Returns a normalized image.
    func image(_ index: Int) -> [Float] { Self.image(index, of: network.input) }

    static func image(_ index: Int, of shape: TensorShape) -> [Float] {
        var stream = RandomStream(seed: UInt64(index), "image")
        return (0..<shape.count).map { _ in stream.uniform(in: -1...1) }
    }
}

extension ModelFile {
    /// Returns the output for a normalized image.
    func prediction(_ image: [Float], precision: Precision = .automatic) throws -> [Float] {
        var options = ExecutionPlan.Options(batchSize: 1)
        options.precision = precision
        let plan = try ExecutionPlan(network, parameters: parameters, options: options)
        _ = plan.input.update(fromContentsOf: image)
        plan.forward(count: 1)
        return Array(plan.output.prefix(network.output.count))
    }
}
