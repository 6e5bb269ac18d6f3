import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// What is exported comes back as it was.
@Suite struct ReimportTests {
    /// Writes a model and reads it again.
    private func reimported(
        _ weights: ModelFile, as name: String, _ write: (URL) throws -> Void
    ) throws -> ImportedModel {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: name)
            try write(url)
            return try ModelImporter().read(url)
        }
    }

    private func expectEqual(
        _ model: ImportedModel, _ weights: ModelFile, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(model.weights.network == weights.network, sourceLocation: sourceLocation)
        #expect(model.weights.labels == weights.labels, sourceLocation: sourceLocation)
        #expect(model.weights.preprocessing == weights.preprocessing, sourceLocation: sourceLocation)
        #expect(model.notes.isEmpty, "\(model.notes)", sourceLocation: sourceLocation)
        for entry in weights.parameters.layout.entries {
            #expect(
                model.weights.parameters[entry.name]?.map(\.bitPattern)
                    == weights.parameters[entry.name]?.map(\.bitPattern), "\(entry.name)",
                sourceLocation: sourceLocation)
        }
    }

    @Test("From ONNX, also with its preprocessing in the graph", arguments: ExportCase.all + ExportCase.onnxOnly)
    func onnx(_ item: ExportCase) throws {
        let weights = try item.weights()
        expectEqual(try reimported(weights, as: "m.onnx") { try weights.writeONNX(to: $0) }, weights)
        let whole = ONNXOptions(containsPreprocessing: true)
        expectEqual(try reimported(weights, as: "m.onnx") { try weights.writeONNX(to: $0, options: whole) }, weights)
        let rounded = try item.weights(rounded: true)
        let half = ONNXOptions(precision: .float16)
        expectEqual(try reimported(rounded, as: "m.onnx") { try rounded.writeONNX(to: $0, options: half) }, rounded)
    }

    @Test("From Core ML", arguments: ExportCase.all)
    func coreML(_ item: ExportCase) throws {
        let weights = try item.weights()
        expectEqual(try reimported(weights, as: "m.mlmodel") { try weights.writeCoreML(to: $0) }, weights)
        let rounded = try item.weights(rounded: true)
        let half = CoreMLOptions(precision: .float16)
        expectEqual(
            try reimported(rounded, as: "m.mlmodel") { try rounded.writeCoreML(to: $0, options: half) }, rounded)
    }

    /// A small model whose file is changed after it was exported.
    private func changed(_ change: (inout Data) throws -> Void) throws -> (ImportedModel, ModelFile) {
        let item = try #require(ExportCase.all.first { $0.name == "lenet" })
        let weights = try item.weights()
        let model = try reimported(weights, as: "m.onnx") { url in
            try weights.writeONNX(to: url)
            var data = try Data(contentsOf: url)
            try change(&data)
            try data.write(to: url)
        }
        return (model, weights)
    }

    @Test("A graph that was changed since counts, not what the file says of the one before")
    func changedGraph() throws {
        // Another activation of the same length of name, in the graph alone.
        let (model, weights) = try changed { data in
            let range = try #require(data.range(of: Data("Relu".utf8)))
            data.replaceSubrange(range, with: Data("Tanh".utf8))
        }
        #expect(model.weights.network != weights.network)
        #expect(model.weights.network.nodes.contains { $0.layer is Tanh })
        #expect(model.weights.labels == weights.labels)
    }

    @Test("Weights that were changed since count")
    func changedWeights() throws {
        let (model, weights) = try changed { data in
            let bias = try #require(weightsBias)
            let range = try #require(data.range(of: bias))
            data.replaceSubrange(range, with: Data(count: range.count))
        }
        #expect(model.weights.network == weights.network)
        #expect(model.weights.parameters["head.bias"]?.allSatisfy { $0 == 0 } == true)
    }

    /// The bytes of the last bias of the model that is changed.
    private var weightsBias: Data? {
        let weights = try? ExportCase.all.first { $0.name == "lenet" }?.weights()
        return weights?.parameters["head.bias"].map { values in values.withUnsafeBytes { Data($0) } }
    }
}
