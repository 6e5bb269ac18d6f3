import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// The export of quantized models to ONNX (QDQ format) and Core ML.
@Suite struct QuantizedExportTests {
    private func exported(_ model: ModelFile, _ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.onnx")
            try model.writeONNX(to: url)
            try body(url)
        }
    }

    @Test("Int8 layers have int8 weights and one QuantizeLinear for each activation", arguments: QuantizedCase.all)
    func pairs(_ item: QuantizedCase) throws {
        let model = try item.model()
        let quantization = try #require(model.parameters.quantization)
        try exported(model) { url in
            let graph = try ONNXModel(MappedFile(contentsOf: url)).graph
            let layers = graph.nodes.filter { ["Conv", "Gemm"].contains($0.operation) }
            let dequantizers = Set(graph.nodes.filter { $0.operation == "DequantizeLinear" }.flatMap(\.outputs))
            let integerLayers = layers.filter { dequantizers.isSuperset(of: $0.inputs.prefix(2)) }
            #expect(integerLayers.count == quantization.weights.count)
            #expect(!integerLayers.isEmpty)
            let weights = graph.initializers.filter { $0.name.hasSuffix(".weight") && $0.type == 3 }
            #expect(weights.count == integerLayers.count)
            let quantizers = graph.nodes.filter { $0.operation == "QuantizeLinear" }
            let sources = quantizers.map { quantizer in
                graph.nodes.first { $0.operation == "Div" && $0.outputs == [quantizer.inputs[0]] }?.inputs[0]
                    ?? quantizer.inputs[0]
            }
            #expect(Set(sources).count == quantizers.count)
        }
    }

    @Test(
        "The import of an exported model restores its quantization and predicts the same bits",
        arguments: QuantizedCase.all)
    func roundTrip(_ item: QuantizedCase) throws {
        let model = try item.model()
        try exported(model) { url in
            let imported = try ModelImporter().read(url)
            #expect(imported.notes == [])
            #expect(imported.model.network == model.network)
            let (found, expected) = (imported.model.parameters.quantization, model.parameters.quantization)
            #expect(found?.weights == expected?.weights)
            let pools = model.network.nodes.filter { $0.layer is MaxPool }.map(\.name)
            for (name, activation) in try #require(found).activations where !pools.contains(name) {
                #expect(activation == expected?.activations[name], "\(name)")
            }
            for entry in model.parameters.layout.entries {
                #expect(imported.model.parameters[entry.name] == model.parameters[entry.name], "\(entry.name)")
            }
            for index in 20..<24 {
                let image = item.image(index)
                #expect(try imported.model.prediction(image) == model.prediction(image))
            }
        }
    }

    @Test(
        "With the preprocessing in the graph, the import restores the quantization of all layers",
        arguments: QuantizedCase.all)
    func preprocessing(_ item: QuantizedCase) throws {
        let model = try item.model()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.onnx")
            try model.writeONNX(to: url, options: ONNXOptions(containsPreprocessing: true))
            let imported = try ModelImporter().read(url)
            #expect(imported.notes == [])
            #expect(imported.model.network == model.network && imported.model.preprocessing == model.preprocessing)
            let (found, expected) = (imported.model.parameters.quantization, model.parameters.quantization)
            #expect(found?.weights == expected?.weights)
            #expect(found?.activations[Network.inputName] == expected?.activations[Network.inputName])
            let image = item.image(50)
            #expect(try imported.model.prediction(image) == model.prediction(image))
        }
    }

    @Test("An imported model survives a model file and another export", arguments: QuantizedCase.all)
    func again(_ item: QuantizedCase) throws {
        let model = try item.model()
        try withTemporaryFolder { folder in
            let (first, second) = (folder.appending(path: "1.onnx"), folder.appending(path: "2.onnx"))
            try model.writeONNX(to: first)
            let file = folder.appending(path: "m.imprint")
            try ModelImporter().read(first).model.write(to: file)
            try ModelFile(contentsOf: file).writeONNX(to: second)
            #expect(try Data(contentsOf: first) == Data(contentsOf: second))
        }
    }

    @Test(
        "Without its int8 layers, a quantized model gives the same file as a float32 model",
        arguments: QuantizedCase.all)
    func withoutInt8Layers(_ item: QuantizedCase) throws {
        let model = try item.model()
        let float = ModelFile(
            network: model.network, parameters: try model.parameters.copy(), labels: model.labels,
            preprocessing: model.preprocessing)
        try withTemporaryFolder { folder in
            let (found, expected) = (folder.appending(path: "found"), folder.appending(path: "expected"))
            for precision in [Safetensors.Precision.float32, .float16] {
                try model.writeONNX(
                    to: found, options: ONNXOptions(storagePrecision: precision, keepsInt8Layers: false))
                try float.writeONNX(to: expected, options: ONNXOptions(storagePrecision: precision))
                #expect(try Data(contentsOf: found) == Data(contentsOf: expected))
                try model.writeCoreML(
                    to: found, options: CoreMLOptions(storagePrecision: precision, keepsInt8Layers: false))
                try float.writeCoreML(to: expected, options: CoreMLOptions(storagePrecision: precision))
                #expect(try Data(contentsOf: found) == Data(contentsOf: expected))
            }
        }
    }

    @Test("Core ML files have 8-bit weights that stand for the same numbers", arguments: QuantizedCase.all)
    func coreML(_ item: QuantizedCase) throws {
        let model = try item.model()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.mlmodel")
            try model.writeCoreML(to: url)
            let result = try ModelImporter().read(url)
            let imported = result.model
            let layers = try #require(model.parameters.quantization?.weights.count)
            #expect(
                result.notes.first
                    == "\(layers) layers have weights of 8 bits or fewer. They compute in float32, because a Core ML model does not contain the "
                    + "ranges of activations.")
            #expect(imported.parameters.quantization == nil)
            let image = item.image(30)
            let (found, expected) = (
                try imported.prediction(image, precision: .float32), try model.prediction(image, precision: .float32)
            )
            #expect(maximumDifference(found, expected) < 1e-4)
            let whole = folder.appending(path: "whole.mlmodel")
            let parameters = try model.parameters.copy()
            let float = ModelFile(
                network: model.network, parameters: parameters, labels: model.labels, preprocessing: model.preprocessing
            )
            try float.writeCoreML(to: whole)
            let weights = model.parameters.layout.entries.filter { $0.parameter.role == .weight }
                .reduce(0) { $0 + $1.parameter.count }
            let saved = try Data(contentsOf: whole).count - Data(contentsOf: url).count
            #expect(saved > weights, "saved \(saved) bytes of \(4 * weights)")
        }
    }
}
