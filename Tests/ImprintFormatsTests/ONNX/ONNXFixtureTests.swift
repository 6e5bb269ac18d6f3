import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

private let fixtures = ImportFixtures("ONNX")

/// Models that the package onnx wrote, against what ONNX Runtime makes of the same image (Fixtures/make_onnx.py).
@Suite struct ONNXFixtureTests {
    private func read(_ name: String) throws -> ImportedModel {
        try ImportFixtures.importer.read(fixtures.folder.appending(path: name))
    }

    @Test("Confidences are ONNX Runtime's", arguments: fixtures.expected.keys.sorted())
    func confidences(name: String) throws {
        try fixtures.check(read(name), as: name)
    }

    @Test("All fixtures are there")
    func all() { #expect(fixtures.expected.count == 46) }

    private func layers(_ name: String) throws -> [String] {
        try read(name).weights.network.nodes.map { type(of: $0.layer).kind }
    }

    @Test("Operators become the layers that are made for them")
    func layers() throws {
        #expect(
            try layers("turned-weights.onnx") == ["convolution", "flatten", "dense", "softmax"],
            "axes are followed, not moved")
        #expect(try layers("channels-last.onnx").contains("multiply"))
        #expect(
            try layers("written-norm.onnx") == [
                "convolution", "affine", "relu", "flatten", "dense", "softmax",
            ])
        // Convolutions in groups need the order; others take it into their weights.
        #expect(
            try layers("shuffle.onnx") == [
                "convolution", "selectChannels", "convolution", "selectChannels", "flatten", "dense", "softmax",
            ])
        #expect(try layers("opset-11.onnx").prefix(3) == ["pad", "convolution", "clip"])
        #expect(try layers("activations.onnx").filter { $0 == "swish" || $0 == "hardSwish" }.count == 3)
    }

    @Test("A map of scores is refused as no classifier, not as damaged")
    func map() throws {
        let error = #expect(throws: ImportError.self) { try read("sigmoid-map.onnx") }
        #expect(error?.problem == .notScores([1, 2, 3, 2]))
        #expect(error?.description.contains("Expected one score for each label") == true)
    }

    @Test("ConvNeXt's blocks become layer normalizations and GELUs, however a GELU is written")
    func convNeXt() throws {
        #expect(
            try layers("convnext.onnx").filter { ["layerNormalization", "gelu", "erf"].contains($0) } == [
                "layerNormalization", "layerNormalization", "gelu", "layerNormalization", "gelu", "layerNormalization",
            ])
        let gelu = try layers("gelu.onnx")
        #expect(gelu.filter { $0 == "gelu" }.count == 5)
        #expect(gelu.filter { $0 == "multiply" }.count == 1, "what is not quite a GELU stays as it is written")
        #expect(try layers("layer-norm.onnx").filter { $0 == "layerNormalization" }.count == 2)
        #expect(
            try layers("written-layer-norm.onnx") == [
                "convolution", "layerNormalization", "convolution", "layerNormalization", "convolution", "flatten",
                "selectChannels", "layerNormalization", "affine", "dense", "softmax",
            ])
    }

    @Test("Transposed convolutions keep the sizes that the file gives")
    func transposedConvolutions() throws {
        let shapes = { (name: String) in
            let network = try read(name).weights.network
            return zip(network.nodes, network.shapes).filter { $0.0.layer is TransposedConvolution }.map(\.1)
        }
        #expect(try shapes("transposed.onnx").count == 3)
        #expect(
            try shapes("transposed-sizes.onnx").map { [$0.height, $0.width] } == [
                [7, 4], [7, 4], [9, 4], [9, 4], [9, 4],
            ])
    }

    @Test("A sigmoid's end stays as it is, and so does a softmax's")
    func endings() throws {
        let model = try read("sigmoid-flat.onnx")
        #expect(model.weights.network.nodes.allSatisfy { !($0.layer is Softmax) })
        #expect(model.notes.contains { $0.contains("each label has an independent confidence") })
        #expect(model.weights.labels == (0..<12).map(String.init))
        for name in ["opset-11.onnx", "opset-13.onnx", "log-softmax.onnx"] {
            #expect(try layers(name).filter { $0 == "softmax" }.count == 1)
            #expect(try !read(name).notes.contains { $0.contains("logits") })
        }
        #expect(try read("gemm.onnx").notes.contains { $0.contains("a softmax was added") })
        let single = try read("one-logit.onnx")
        #expect(single.weights.network.nodes.last?.layer is Sigmoid)
        #expect(single.notes.contains { $0.contains("a sigmoid was added") })
    }

    @Test("What cannot be read is named all at once, with its nodes")
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

    /// Copies the model whose weights are in a file beside it; gives what reading it throws.
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
                // Of the same length, so that no other length in the file changes.
                try #require(location.utf8.count == "external.bin".utf8.count)
                while let range = bytes.range(of: Data("external.bin".utf8)) {
                    bytes.replaceSubrange(range, with: Data(location.utf8))
                }
            }
            try bytes.write(to: folder.appending(path: "external.onnx"))
            try change(folder)
            do {
                let model = try ImportFixtures.importer.read(folder.appending(path: "external.onnx"))
                try fixtures.check(model, as: "external.onnx")
                return ""
            } catch {
                return "\(error)"
            }
        }
    }

    @Test("Weights in a file beside the model are read in its folder, and nowhere else")
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

    @Test("Another size of image, where the network allows it")
    func inputSize() throws {
        var importer = ImportFixtures.importer
        importer.inputSize = Size2D(height: 12, width: 16)
        let network = try importer.read(fixtures.folder.appending(path: "opset-13.onnx")).weights.network
        #expect(network.input == TensorShape(height: 12, width: 16, channels: 3))
        let error = #expect(throws: ImportError.self) {
            try importer.read(fixtures.folder.appending(path: "grouped.onnx"))
        }
        #expect(error?.description.contains("logits") == true)
    }

    @Test("Blue first where it is said")
    func blueFirst() throws {
        var importer = ImportFixtures.importer
        importer.normalization = ModelImporter.InputNormalization(mean: [160, 128, 96], scale: [1 / 64], isBGR: true)
        let model = try importer.read(fixtures.folder.appending(path: "channels-last.onnx"))
        let turned = stride(from: 0, to: 216, by: 3).flatMap { place in
            [2, 1, 0].map { ImportFixtures.samples[place + $0] }
        }
        let expected = try #require(fixtures.expected["channels-last.onnx"])
        #expect(greatestDifference(try model.weights.result(turned), expected) < 1e-5)
    }
}
