import Foundation
import ImprintImages
import ImprintInterop
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// All fields that Core ML's validator requires of an updatable model.
@Suite(
    .enabled(
        if: Python.readsExports, "IMPRINT_PYTHON is not a Python with onnx, onnxruntime and coremltools; see ./run"))
struct UpdatableModelTests {
    /// The content of the file, as Python reads it.
    private struct Description: Decodable {
        struct Layer: Decodable, Equatable {
            let name, kind: String
            let isUpdatable: Bool
            /// Whether weights and bias are updatable; empty for a layer without them.
            let flags: [Bool]
        }
        struct Feature: Decodable, Equatable {
            struct Kind: Decodable, Equatable {
                struct Empty: Decodable, Equatable {}
                struct Image: Decodable, Equatable { let width, height, colorSpace: String }
                let imageType: Image?
                let stringType: Empty?
            }
            let name: String
            let type: Kind
        }
        struct Updates: Decodable {
            struct Loss: Decodable, Equatable {
                struct Entropy: Decodable, Equatable { let input, target: String }
                let name: String
                let categoricalCrossEntropyLossLayer: Entropy
            }
            struct Whole: Decodable, Equatable {
                struct Range: Decodable, Equatable { let minValue, maxValue: String }
                let defaultValue: String
                let range: Range
            }
            struct Number: Decodable, Equatable {
                // A minimum of 0 is the default, which the JSON omits.
                struct Range: Decodable, Equatable { let maxValue: Double }
                let defaultValue: Double
                let range: Range
            }
            struct Descent: Decodable, Equatable {
                let learningRate, momentum: Number
                let miniBatchSize: Whole
            }
            struct Optimizer: Decodable, Equatable { let sgdOptimizer: Descent }
            struct Flag: Decodable, Equatable { let defaultValue: Bool }
            let lossLayers: [Loss]
            let optimizer: Optimizer
            let epochs: Whole
            let shuffle: Flag
        }
        let version: Int
        let isUpdatable: Bool
        let layers: [Layer]
        let input, output, trainingInput: [Feature]
        let updates: Updates
    }

    private func describe(_ layers: [(String, any Layer)]) throws -> Description {
        var net = NetworkBuilder(name: "small", input: TensorShape(height: 6, width: 5, channels: 3))
        for (name, layer) in layers { net.add(layer, named: name) }
        let network = try net.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 5, height: 6))
        return try withTemporaryFolder { folder in
            let url = folder.appending(path: "m.mlmodel")
            try model.writeCoreML(to: url, options: CoreMLOptions(isUpdatable: true))
            return try JSONDecoder().decode(
                Description.self,
                from: Python.output(of: "FileFormatTests/Fixtures/check_exports.py", ["describe", url.path]))
        }
    }

    @Test("A dense layer at the end is updatable, with all fields that the validator requires")
    func dense() throws {
        let found = try describe([
            ("first", Convolution(outputChannels: 4, kernelSize: 3)), ("loss", GlobalAveragePool()),
            ("dropout", Dropout()), ("head", Dense(outputChannels: 2)), ("dropout2", Dropout()), ("end", Softmax()),
        ])
        #expect(found.version == 4 && found.isUpdatable)
        #expect(
            found.layers == [
                .init(name: "first", kind: "convolution", isUpdatable: false, flags: [false, false]),
                .init(name: "loss", kind: "pooling", isUpdatable: false, flags: []),
                .init(name: "head", kind: "innerProduct", isUpdatable: true, flags: [true, true]),
                .init(name: "probabilities", kind: "softmax", isUpdatable: false, flags: []),
            ])
        let image = Description.Feature(
            name: "image",
            type: .init(imageType: .init(width: "5", height: "6", colorSpace: "RGB"), stringType: nil))
        let label = Description.Feature(name: "classLabel", type: .init(imageType: nil, stringType: .init()))
        #expect(found.input == [image] && found.output.first == label)
        #expect(found.trainingInput == [image, label])
        let updates = found.updates
        #expect(
            updates.lossLayers == [
                .init(
                    name: "loss_",
                    categoricalCrossEntropyLossLayer: .init(input: "probabilities", target: "classLabel"))
            ])
        let descent = updates.optimizer.sgdOptimizer
        #expect(descent.learningRate == .init(defaultValue: 0.01, range: .init(maxValue: 1)))
        #expect(descent.momentum == .init(defaultValue: 0.9, range: .init(maxValue: 1)))
        #expect(descent.miniBatchSize == .init(defaultValue: "16", range: .init(minValue: "1", maxValue: "1024")))
        #expect(updates.epochs == .init(defaultValue: "10", range: .init(minValue: "1", maxValue: "1000")))
        #expect(updates.shuffle.defaultValue)
    }

    @Test("A convolution before layers with a gradient is updatable, even without a bias")
    func convolution() throws {
        let found = try describe([
            ("head", Convolution(outputChannels: 2, kernelSize: 3, hasBias: false)), ("norm", BatchNormalization()),
            ("relu", ReLU()), ("pool", AveragePool(kernelSize: 2)), ("sigmoid", Sigmoid()),
            ("mean", GlobalAveragePool()), ("flatten", Flatten()), ("end", Softmax()),
        ])
        #expect(found.layers.map(\.isUpdatable) == [true] + [Bool](repeating: false, count: 7))
        #expect(found.layers.first?.flags == [true, false])
    }
}
