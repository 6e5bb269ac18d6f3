import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

private let fixtures = ImportFixtures("ONNX")

/// Models that the package onnx wrote, compared to ONNX Runtime (Fixtures/make_onnx.py).
@Suite struct ONNXFixtureTests {
    private func read(_ name: String) throws -> ImportedModel {
        try ImportFixtures.importer.read(fixtures.folder.appending(path: name))
    }

    @Test("Confidences equal those of ONNX Runtime", arguments: fixtures.expected.keys.sorted())
    func confidences(name: String) throws {
        try fixtures.check(read(name), as: name)
    }

    @Test("All fixtures exist")
    func all() { #expect(fixtures.expected.count == 46) }

    private func layers(_ name: String) throws -> [String] {
        try read(name).model.network.nodes.map { type(of: $0.layer).kind }
    }

    @Test("Operators become the corresponding layers")
    func layers() throws {
        #expect(
            try layers("turned-weights.onnx") == ["convolution", "flatten", "dense", "softmax"],
            "transposes need no layer")
        #expect(try layers("channels-last.onnx").contains("multiply"))
        #expect(
            try layers("written-norm.onnx") == [
                "convolution", "affine", "relu", "flatten", "dense", "softmax",
            ])
        // Grouped convolutions need the channel order as a layer; others merge it into their weights.
        #expect(
            try layers("shuffle.onnx") == [
                "convolution", "selectChannels", "convolution", "selectChannels", "flatten", "dense", "softmax",
            ])
        #expect(try layers("opset-11.onnx").prefix(3) == ["pad", "convolution", "clip"])
        #expect(try layers("activations.onnx").filter { $0 == "swish" || $0 == "hardSwish" }.count == 3)
    }

    @Test("A model with a score map is rejected as not a classifier, not as damaged")
    func map() throws {
        let error = #expect(throws: ImportError.self) { try read("sigmoid-map.onnx") }
        #expect(error?.problem == .notScores([1, 2, 3, 2]))
        #expect(error?.description.contains("Expected one score for each label") == true)
    }

    @Test("Layer normalizations and GELUs are recognized in all decompositions")
    func convNeXt() throws {
        #expect(
            try layers("convnext.onnx").filter { ["layerNormalization", "gelu", "erf"].contains($0) } == [
                "layerNormalization", "layerNormalization", "gelu", "layerNormalization", "gelu", "layerNormalization",
            ])
        let gelu = try layers("gelu.onnx")
        #expect(gelu.filter { $0 == "gelu" }.count == 5)
        #expect(gelu.filter { $0 == "multiply" }.count == 1, "an expression that is almost a GELU is not converted")
        #expect(try layers("layer-norm.onnx").filter { $0 == "layerNormalization" }.count == 2)
        #expect(
            try layers("written-layer-norm.onnx") == [
                "convolution", "layerNormalization", "convolution", "layerNormalization", "convolution", "flatten",
                "selectChannels", "layerNormalization", "affine", "dense", "softmax",
            ])
    }

    @Test("Transposed convolutions have the output sizes of the file")
    func transposedConvolutions() throws {
        let shapes = { (name: String) in
            let network = try read(name).model.network
            return zip(network.nodes, network.shapes).filter { $0.0.layer is TransposedConvolution }.map(\.1)
        }
        #expect(try shapes("transposed.onnx").count == 3)
        #expect(
            try shapes("transposed-sizes.onnx").map { [$0.height, $0.width] } == [
                [7, 4], [7, 4], [9, 4], [9, 4], [9, 4],
            ])
    }

    @Test("A softmax or sigmoid is added only to logits")
    func endings() throws {
        let imported = try read("sigmoid-flat.onnx")
        #expect(imported.model.network.nodes.allSatisfy { !($0.layer is Softmax) })
        // The file has a Flatten after the sigmoid.
        #expect(try layers("sigmoid-flat.onnx") == ["convolution", "flatten", "selectChannels", "sigmoid"])
        #expect(imported.model.head == .sigmoid && !imported.model.head.confidencesSumToOne)
        #expect(imported.notes.contains { $0.contains("each label has an independent confidence") })
        #expect(imported.model.labels == (0..<12).map(String.init))
        for name in ["opset-11.onnx", "opset-13.onnx", "log-softmax.onnx"] {
            let softmaxes = try layers(name).filter { $0 == "softmax" }
            #expect(softmaxes.count == 1)
            #expect(try !read(name).notes.contains { $0.contains("logits") })
        }
        #expect(try read("gemm.onnx").notes.contains { $0.contains("a softmax was added") })
        let single = try read("one-logit.onnx")
        #expect(single.model.network.nodes.last?.layer is Sigmoid)
        #expect(single.notes.contains { $0.contains("a sigmoid was added") })
    }

    @Test("All unsupported operators are listed at once, with their nodes")
    func unsupported() throws {
        let error = #expect(throws: ImportError.self) { try read("unsupported.onnx") }
        #expect(
            error?.problem
                == .unsupported([
                    .init(operation: "InstanceNormalization", node: "instance"),
                    .init(operation: "ArgMax", node: "arg"),
                ]))
        #expect(error?.description.contains(#"InstanceNormalization "instance""#) == true)
    }

    /// Copies the model with external weights, and returns the error of importing it; empty if there is none.
    private func external(
        location: String? = nil, _ change: (URL) throws -> Void = { _ in }
    ) throws -> String {
        try withTemporaryFolder { outer in
            let folder = outer.appending(path: "model")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            var bytes = try Data(contentsOf: fixtures.folder.appending(path: "external.onnx"))
            let data = try Data(contentsOf: fixtures.folder.appending(path: "external.bin"))
            try data.write(to: folder.appending(path: "external.bin"))
            try data.write(to: outer.appending(path: "elsew.bin"))
            if let location {
                // The same length keeps all other lengths in the file valid.
                try #require(location.utf8.count == "external.bin".utf8.count)
                while let range = bytes.range(of: Data("external.bin".utf8)) {
                    bytes.replaceSubrange(range, with: Data(location.utf8))
                }
            }
            try bytes.write(to: folder.appending(path: "external.onnx"))
            try change(folder)
            do {
                let imported = try ImportFixtures.importer.read(folder.appending(path: "external.onnx"))
                try fixtures.check(imported, as: "external.onnx")
                return ""
            } catch {
                return "\(error)"
            }
        }
    }

    @Test("External weights are read only from the folder of the model")
    func externalWeights() throws {
        #expect(try external() == "")
        #expect(
            try external(location: "./external.b") { folder in
                try FileManager.default.moveItem(
                    at: folder.appending(path: "external.bin"), to: folder.appending(path: "external.b"))
            } == "")
        for location in ["../elsew.bin", "/elsewhe.bin", "a/../ext.bin"] {
            let text = try external(location: location)
            #expect(text.contains("expected a file in the model's folder"), "\(text)")
        }
        let link = try external { folder in
            let file = folder.appending(path: "external.bin")
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createSymbolicLink(
                at: file, withDestinationURL: folder.appending(path: "../elsew.bin"))
        }
        #expect(link.contains("expected a file in the model's folder"), "\(link)")
        let gone = try external { try FileManager.default.removeItem(at: $0.appending(path: "external.bin")) }
        #expect(gone.contains("external.bin"))
        let short = try external { folder in
            try Data(count: 100).write(to: folder.appending(path: "external.bin"))
        }
        #expect(short.contains("external.bin"))
    }

    @Test("The input size can be changed if the network accepts it")
    func inputSize() throws {
        var importer = ImportFixtures.importer
        importer.inputSize = Size2D(height: 12, width: 16)
        let network = try importer.read(fixtures.folder.appending(path: "opset-13.onnx")).model.network
        #expect(network.input == TensorShape(height: 12, width: 16, channels: 3))
        let error = #expect(throws: ImportError.self) {
            try importer.read(fixtures.folder.appending(path: "grouped.onnx"))
        }
        #expect(error?.description.contains("logits") == true)
    }

    @Test("The channel order BGR is applied to the image")
    func blueFirst() throws {
        var importer = ImportFixtures.importer
        importer.normalization = ModelImporter.InputNormalization(mean: [160, 128, 96], scale: [1 / 64], isBGR: true)
        let imported = try importer.read(fixtures.folder.appending(path: "channels-last.onnx"))
        let bgr = stride(from: 0, to: 216, by: 3).flatMap { pixel in
            [2, 1, 0].map { ImportFixtures.samples[pixel + $0] }
        }
        let expected = try #require(fixtures.expected["channels-last.onnx"])
        #expect(maximumDifference(try imported.model.result(bgr), expected) < 1e-5)
    }
}
