import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

private let fixtures = ImportFixtures("Caffe")

/// Caffe models in the old and the new format, compared to NumPy (Fixtures/make_caffe.py).
@Suite struct CaffeFixtureTests {
    private func importer(_ prototxt: String) -> ModelImporter {
        var importer = ImportFixtures.importer
        importer.prototxt = fixtures.folder.appending(path: "\(prototxt).prototxt")
        return importer
    }

    private func read(_ name: String) throws -> ImportedModel {
        try importer(name).read(fixtures.folder.appending(path: "\(name).caffemodel"))
    }

    @Test("Confidences equal those of NumPy", arguments: fixtures.expected.keys.sorted())
    func confidences(name: String) throws {
        try fixtures.check(read(name), as: name)
    }

    @Test("All fixtures exist")
    func all() { #expect(fixtures.expected.count == 22) }

    @Test(
        "A batch normalization and its scale become one layer, and the channel order is merged into the first weights")
    func layers() throws {
        let kinds = try read("norm").model.network.nodes.map { type(of: $0.layer).kind }
        #expect(kinds == ["convolution", "batchNormalization", "leakyReLU", "flatten", "dense", "softmax"])
    }

    @Test("The default means are the same as in Caffe's models")
    func means() throws {
        var importer = importer("packed")
        importer.normalization = nil
        let imported = try importer.read(fixtures.folder.appending(path: "packed.caffemodel"))
        #expect(imported.model.preprocessing.mean == [123, 117, 104])
        #expect(imported.model.preprocessing.scale == [1, 1, 1])
        #expect(imported.notes.contains { $0.contains("104, 117 and 123 from blue, green and red") })
    }

    @Test("Missing or foreign files are rejected with the fix")
    func refusals() throws {
        let folder = fixtures.folder
        func text(_ importer: ModelImporter, _ file: URL) -> String {
            do {
                _ = try importer.read(file)
                return ""
            } catch {
                return "\(error)"
            }
        }
        let packed = folder.appending(path: "packed.caffemodel")
        #expect(text(ModelImporter(), packed).contains("deploy.prototxt"))
        // The weights of another network.
        #expect(text(importer("groups"), packed).contains("first (Convolution) has 0 blobs in the .caffemodel"))
        #expect(text(importer("groups"), packed).hasPrefix(packed.path))
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "model.caffemodel")
            try Data([0x89, 0x48, 0x44, 0x46, 0x0D, 0x0A, 0x1A, 0x0A]).write(to: file)
            #expect(text(importer("packed"), file).contains("an HDF5 file (Keras or Caffe). Save a Caffe model as"))
            try Data(WireField.encode([.text(1, "n"), .message(100, [.text(1, "d")])])).write(to: file)
            #expect(text(importer("packed"), file).contains("model.caffemodel: the file is damaged or invalid"))
        }
        var sized = importer("packed")
        sized.inputSize = Size2D(height: 0, width: 8)
        #expect(text(sized, packed).contains("the network does not support an input size of 0x8"))
    }

    /// Returns the error of importing the weights of "packed" with another architecture; empty if there is none.
    private func problem(of prototxt: String) throws -> String {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "deploy.prototxt")
            try Data(prototxt.utf8).write(to: file)
            var importer = ImportFixtures.importer
            importer.prototxt = file
            do {
                _ = try importer.read(fixtures.folder.appending(path: "packed.caffemodel"))
                return ""
            } catch {
                return "\(error)"
            }
        }
    }

    private let input =
        #"layer { name: "i" type: "Input" top: "i" input_param { shape { dim: 1 dim: 3 dim: 9 dim: 8 } } }"#

    @Test("An architecture that does not match, or has unsupported layers, is rejected by layer name")
    func architectures() throws {
        let unknown = try problem(
            of: input + #"layer { name: "up" type: "Deconvolution" bottom: "i" top: "u" }"#
                + #"layer { name: "roi" type: "ROIPooling" bottom: "u" top: "r" }"#)
        #expect(unknown.contains("deploy.prototxt: the model has operators"), "\(unknown)")
        #expect(unknown.contains(#"Deconvolution "up""#) && unknown.contains(#"ROIPooling "roi""#), "\(unknown)")
        let convolution = #"layer { name: "layer" type: "Convolution" bottom: "i" top: "c" convolution_param "#
        let narrow = try problem(of: input + convolution + "{ num_output: 2 kernel_size: 3 } }")
        #expect(narrow.contains("2 outputs and a kernel of 3x3 in the architecture"), "\(narrow)")
        let pool = try problem(
            of: input + #"layer { name: "p" type: "Pooling" bottom: "i" top: "p" pooling_param { pool: STOCHASTIC } }"#)
        #expect(pool.contains("pool STOCHASTIC"), "\(pool)")
        let power = try problem(
            of: input + #"layer { name: "p" type: "Power" bottom: "i" top: "p" power_param { power: 2 } }"#)
        #expect(power.contains("a power other than 1"), "\(power)")
        let coefficients = try problem(
            of: input
                + #"layer { name: "e" type: "Eltwise" bottom: "i" bottom: "i" top: "e" eltwise_param { coeff: 1 } }"#)
        #expect(coefficients.contains("1 coefficients for 2 inputs"), "\(coefficients)")
        let missing = try problem(of: input + #"layer { name: "r" type: "ReLU" bottom: "x" top: "r" }"#)
        #expect(missing.contains(#"r reads "x", which no earlier layer computes"#), "\(missing)")
        #expect(missing.contains("deploy.prototxt: the file is damaged or invalid: r reads"), "\(missing)")
        let training = try problem(of: #"layer { name: "d" type: "Data" top: "data" top: "label" }"#)
        #expect(training.contains("Use the deploy.prototxt"), "\(training)")
        #expect(training.contains("deploy.prototxt: the file is a model with 0 inputs"), "\(training)")
        let mixed = try problem(of: input + #"layers { name: "r" type: RELU bottom: "i" top: "r" }"#)
        #expect(mixed.contains("deploy.prototxt: the file is damaged or invalid: the architecture mixes"), "\(mixed)")
        let unterminated = try problem(of: "name: \"a\nlayer {")
        #expect(unterminated.contains("deploy.prototxt") && unterminated.contains("line 1"), "\(unterminated)")
    }

    @Test("All syntax of the protobuf text format is accepted")
    func text() throws {
        let text = """
            # A comment; name: "no"
            name: 'say \\"small\\"' "er"
            input: "i", input_shape: < dim: [1, 3,9 ] dim: 8 >
            layer { name: "p" type: "Power" bottom: "i" top: "p"; power_param { scale: 25e-2f shift: -.5 } }
            layer: { name: "s" type: "Softmax" bottom: "p" top: "s" } # at the end
            """
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "deploy.prototxt")
            try Data(text.utf8).write(to: file)
            var importer = ImportFixtures.importer
            importer.prototxt = file
            let network = try importer.read(fixtures.folder.appending(path: "packed.caffemodel")).model.network
            #expect(network.name == #"say "small"er"#)
            #expect(network.input == TensorShape(height: 9, width: 8, channels: 3))
        }
    }
}
