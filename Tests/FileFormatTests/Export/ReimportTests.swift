import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Importing exported models restores the original.
@Suite struct ReimportTests {
    /// Writes a model and imports it again.
    private func reimported(
        as name: String, _ write: (URL) throws -> Void
    ) throws -> ImportedModel {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: name)
            try write(url)
            return try ModelImporter().read(url)
        }
    }

    private func expectEqual(
        _ imported: ImportedModel, _ model: ModelFile, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(imported.model.network == model.network, sourceLocation: sourceLocation)
        #expect(imported.model.labels == model.labels, sourceLocation: sourceLocation)
        #expect(imported.model.preprocessing == model.preprocessing, sourceLocation: sourceLocation)
        #expect(imported.model.details == model.details, sourceLocation: sourceLocation)
        #expect(imported.notes.isEmpty, "\(imported.notes)", sourceLocation: sourceLocation)
        for entry in model.parameters.layout.entries {
            #expect(
                imported.model.parameters[entry.name]?.map(\.bitPattern)
                    == model.parameters[entry.name]?.map(\.bitPattern), "\(entry.name)",
                sourceLocation: sourceLocation)
        }
    }

    @Test(
        "An exported ONNX model, with or without the preprocessing in the graph, is imported as the original model",
        arguments: ExportCase.all + ExportCase.onnxOnly)
    func onnx(_ item: ExportCase) throws {
        let model = try item.model()
        expectEqual(try reimported(as: "m.onnx") { try model.writeONNX(to: $0) }, model)
        let withPreprocessing = ONNXOptions(containsPreprocessing: true)
        expectEqual(try reimported(as: "m.onnx") { try model.writeONNX(to: $0, options: withPreprocessing) }, model)
        var rounded = try item.model(rounded: true)
        rounded.details = ExportCase.details
        let half = ONNXOptions(storagePrecision: .float16)
        expectEqual(try reimported(as: "m.onnx") { try rounded.writeONNX(to: $0, options: half) }, rounded)
    }

    @Test("An exported Core ML model is imported as the original model", arguments: ExportCase.all)
    func coreML(_ item: ExportCase) throws {
        let model = try item.model()
        expectEqual(try reimported(as: "m.mlmodel") { try model.writeCoreML(to: $0) }, model)
        var rounded = try item.model(rounded: true)
        rounded.details = ExportCase.details
        let half = CoreMLOptions(storagePrecision: .float16)
        expectEqual(
            try reimported(as: "m.mlmodel") { try rounded.writeCoreML(to: $0, options: half) }, rounded)
    }

    /// Imports a small model from a file that was changed after the export.
    private func changed(_ change: (inout Data) throws -> Void) throws -> (ImportedModel, ModelFile) {
        let item = try #require(ExportCase.all.first { $0.name == "lenet" })
        let model = try item.model()
        let imported = try reimported(as: "m.onnx") { url in
            try model.writeONNX(to: url)
            var data = try Data(contentsOf: url)
            try change(&data)
            try data.write(to: url)
        }
        return (imported, model)
    }

    @Test("The graph takes precedence over metadata of an earlier graph")
    func changedGraph() throws {
        // Change an activation only in the graph, to one with a name of the same length.
        let (imported, model) = try changed { data in
            let range = try #require(data.range(of: Data("Relu".utf8)))
            data.replaceSubrange(range, with: Data("Tanh".utf8))
        }
        #expect(imported.model.network != model.network)
        #expect(imported.model.network.nodes.contains { $0.layer is Tanh })
        #expect(imported.model.labels == model.labels)
    }

    @Test(
        "Details that were changed or blanked after the export are imported as they are",
        arguments: ["m.onnx", "m.mlmodel"],
        [
            ("Apache-2.0", "          ", ModelDetails(version: 7, intendedUse: "Tests of Imprint.")),
            (
                "Apache-2.0", "Apache 2.0",
                ModelDetails(version: 7, license: "Apache 2.0", intendedUse: "Tests of Imprint.")
            ),
            ("imprint.intendedUse", "imprint.otherPurpose", ModelDetails(version: 7, license: "Apache-2.0")),
        ])
    func invalidDetails(name: String, _ change: (found: String, replacement: String, expected: ModelDetails)) throws {
        let item = try #require(ExportCase.all.first { $0.name == "lenet" })
        var model = try item.model()
        model.details = ExportCase.details
        let imported = try reimported(as: name) { url in
            if name == "m.onnx" { try model.writeONNX(to: url) } else { try model.writeCoreML(to: url) }
            var data = try Data(contentsOf: url)
            let replacement = Data(change.replacement.utf8.prefix(change.found.utf8.count))
            data.replaceSubrange(try #require(data.range(of: Data(change.found.utf8))), with: replacement)
            try data.write(to: url)
        }
        #expect(imported.model.details == change.expected)
    }

    @Test(
        "A version that is not a positive whole number is left out with a note, and so is a text that is too long",
        arguments: ["-1", "9007199254740992", "1.2.0", "x", "3", "", "  "])
    func invalidValues(version: String) {
        let long = String(repeating: "x", count: 10_001)
        let found = ImportedDetails(version: version, license: long, metadata: ["imprint.intendedUse": long])
        #expect(found.details == ModelDetails(version: version == "3" ? 3 : nil))
        let isNoted = !["3", "", "  "].contains(version)
        #expect(found.notes.count == (isNoted ? 3 : 2))
        #expect(found.notes.last?.contains("the intended use has 10001 bytes, expected at most 10000") == true)
    }

    @Test("Exported detectors state their details in the fields of both formats") func detectorDetails() throws {
        let network = try Network.logoDetector()
        var model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["leaf", "other"],
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill),
            detector: DetectorHead(levels: [96], stride: 16, span: 44, logos: [.init(label: "leaf")]))
        model.details = ExportCase.details
        try withTemporaryFolder { folder in
            let (onnx, coreML) = (folder.appending(path: "m.onnx"), folder.appending(path: "m.mlmodel"))
            try model.writeONNX(to: onnx)
            try model.writeCoreML(to: coreML)
            #expect(try ONNXModel(MappedFile(contentsOf: onnx)).details.details == model.details)
            #expect(try CoreMLModel(MappedFile(contentsOf: coreML)).description.details.details == model.details)
        }
    }

    @Test("Weights that were changed after the export are imported")
    func changedWeights() throws {
        let (imported, model) = try changed { data in
            let bias = try #require(headBias)
            let range = try #require(data.range(of: bias))
            data.replaceSubrange(range, with: Data(count: range.count))
        }
        #expect(imported.model.network == model.network)
        #expect(imported.model.parameters["head.bias"]?.allSatisfy { $0 == 0 } == true)
    }

    /// The bytes of the head's bias in the exported model.
    private var headBias: Data? {
        let model = try? ExportCase.all.first { $0.name == "lenet" }?.model()
        return model?.parameters["head.bias"].map { values in values.withUnsafeBytes { Data($0) } }
    }
}
