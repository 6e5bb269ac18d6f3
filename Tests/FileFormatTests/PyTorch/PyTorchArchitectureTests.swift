import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// Checkpoints with parameters from a formula, compared to the logits that torchvision, timm and EfficientNet-PyTorch compute.
///
/// make_architectures.py in Fixtures/PyTorch made architectures.json.
@Suite("PyTorch architectures") struct PyTorchArchitectureTests {
    /// The contents of architectures.json.
    struct Fixture: Decodable {
        let height: Int
        let width: Int
        let table: [Float]
        let cases: [Case]
    }

    /// The parameter names of a model, and its logits for two images.
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let architecture: String
        let flavour: String
        let gain: Double
        /// "name shape", with "+" for a bias and "n" for a batch norm.
        let modules: [String]
        let logits: [[Float]]

        var testDescription: String { "\(architecture) of \(flavour)" }

        /// The tensors of the checkpoint.
        func tensors() -> [(name: String, shape: [Int], values: [Float])] {
            modules.flatMap { module in
                let parts = module.split(separator: " ")
                let shape = parts[1].filter { !"n+".contains($0) }.split(separator: "x").compactMap { Int($0) }
                let name = String(parts[0])
                let count = shape.reduce(1, *)
                let isNorm = parts[1].hasSuffix("n")
                var tensors: [(String, [Int], [Float])] = []
                func add(_ suffix: String, _ shape: [Int], _ count: Int, scale: Double, offset: Float = 0) {
                    let values = Formula.values("\(name).\(suffix)", count, scale: Float(scale), offset: offset)
                    tensors.append(("\(name).\(suffix)", shape, values))
                }
                let inputs = Double(shape.dropFirst().reduce(1, *))
                if isNorm {
                    add("weight", shape, count, scale: 0.25, offset: 1)
                    add("running_mean", shape, count, scale: 0.25)
                    add("running_var", shape, count, scale: 0.5, offset: 1)
                    tensors.append(("\(name).num_batches_tracked", [], [7]))
                } else {
                    add("weight", shape, count, scale: (3 * gain / inputs).squareRoot())
                }
                if isNorm || parts[1].hasSuffix("+") { add("bias", [shape[0]], shape[0], scale: 0.25) }
                return tensors
            }
        }
    }

    /// The formula of values that the script repeats.
    enum Formula {
        static let period = 4093
        static let table: [Float] = (0..<period).map { index in
            var z = UInt64(index + 1) &* 0x9E37_79B9_7F4A_7C15
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            z ^= z >> 31
            return Float(z >> 41) * 0x1p-22 - 1
        }

        static func values(_ name: String, _ count: Int, scale: Float, offset: Float) -> [Float] {
            let start = name.utf8.reduce(0) { ($0 * 31 + Int($1)) % period }
            let line = (0..<min(period, count)).map { table[(start + $0) % period] * scale + offset }
            var values: [Float] = []
            values.reserveCapacity(count)
            while values.count + line.count <= count { values.append(contentsOf: line) }
            values.append(contentsOf: line.prefix(count - values.count))
            return values
        }
    }

    static let fixture: Fixture = {
        let url = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/PyTorch/architectures.json")
        do {
            return try JSONDecoder().decode(Fixture.self, from: Data(contentsOf: url))
        } catch {
            fatalError("\(url.path) cannot be read: \(error). Create it again with make_architectures.py.")
        }
    }()

    /// Returns the case of an architecture in a library.
    private func find(_ architecture: String, _ flavour: String) throws -> Case {
        try #require(Self.fixture.cases.first { $0.architecture == architecture && $0.flavour == flavour })
    }

    private func imported(
        _ tensors: [(name: String, shape: [Int], values: [Float])], as architecture: String,
        _ change: (inout ModelImporter) -> Void = { _ in }
    ) throws -> ImportedModel {
        var importer = ModelImporter()
        importer.inputSize = Size2D(height: Self.fixture.height, width: Self.fixture.width)
        change(&importer)
        return try #require(PyTorchArchitecture(named: architecture))
            .importModel(StateDictionary(tensors), importer: importer)
    }

    /// Returns the largest difference of logits, divided by the largest expected logit.
    private func difference(_ model: ModelFile, _ expected: [[Float]]) throws -> Float {
        let plan = try ExecutionPlan(
            model.network.logits(), parameters: model.parameters, options: ExecutionPlan.Options(batchSize: 1))
        var largest: Float = 0
        for (index, logits) in expected.enumerated() {
            _ = plan.input.update(
                from: Formula.values("image \(index + 1)", plan.input.count, scale: 1, offset: 0))
            plan.forward(count: 1)
            let scale = logits.reduce(0) { max($0, abs($1)) }
            for (found, logit) in zip(plan.output, logits) { largest = max(largest, abs(found - logit) / scale) }
        }
        return largest
    }

    @Test("The formula has the values of the script") func formula() {
        #expect(Array(Formula.table.prefix(Self.fixture.table.count)) == Self.fixture.table)
    }

    @Test("Imported networks compute PyTorch's logits", arguments: fixture.cases)
    func logits(_ example: Case) throws {
        let model = try imported(example.tensors(), as: example.architecture).model
        #expect(model.network.output.channels == 10 && model.network.nodes.last?.layer is Softmax)
        #expect(try difference(model, example.logits) < 1e-4)
    }

    @Test("Every architecture has a case, and an unknown name is not an architecture") func names() {
        #expect(Set(Self.fixture.cases.map(\.architecture)) == Set(PyTorchArchitecture.names))
        #expect(PyTorchArchitecture(named: "vgg-16") == nil)
        #expect(PyTorchArchitecture(named: "tf-resnet-18") == nil)
    }

    @Test("The padding of TensorFlow changes the logits")
    func otherPadding() throws {
        let example = try find("tf-efficientnet-lite0", "timm")
        let model = try imported(example.tensors(), as: "efficientnet-lite0").model
        #expect(try difference(model, example.logits) > 1e-2)
    }

    @Test("The library's preprocessing is assumed and reported, unless it is set")
    func preprocessing() throws {
        let tensors = try find("mobilenet-v3-small", "torchvision").tensors()
        let imageNet = try imported(tensors, as: "mobilenet-v3-small") { $0.inputSize = nil }
        #expect(imageNet.model.preprocessing.width == 224 && imageNet.model.preprocessing.height == 224)
        #expect(imageNet.model.preprocessing.mean == [123.675, 116.28, 103.53])
        #expect(
            imageNet.notes.contains {
                $0.contains("an input size of 224x224 and ImageNet's mean and standard deviation, as in torchvision")
            })
        #expect(imageNet.notes.contains { $0.contains("no labels") })
        let given = try imported(tensors, as: "mobilenet-v3-small") { importer in
            importer.normalization = .init(mean: [100], scale: [0.01], isBGR: true)
            importer.labels = (0..<10).map { "label \($0)" }
        }
        #expect(given.model.preprocessing.mean == [100, 100, 100] && given.model.labels[9] == "label 9")
        #expect(given.model.network.nodes.first?.layer is SelectChannels)
        #expect(!given.notes.contains { $0.contains("assumes") })
        let lite = try imported(find("efficientnet-lite0", "efficientnet-pytorch").tensors(), as: "efficientnet-lite0")
        #expect(lite.model.preprocessing.mean == [127, 127, 127])
        #expect(lite.model.preprocessing.scale == [0.0078125, 0.0078125, 0.0078125])
        let tensorFlow = try imported(find("tf-efficientnet-lite0", "timm").tensors(), as: "tf-efficientnet-lite0")
        #expect(tensorFlow.model.preprocessing.mean == [127.5, 127.5, 127.5])
        let plain = try imported(find("efficientnet-lite0", "timm").tensors(), as: "efficientnet-lite0")
        #expect(plain.notes.contains { $0.contains("Choose the architecture tf-efficientnet-lite0") })
    }

    /// Returns the message of the error of an import.
    private func message(_ tensors: [(name: String, shape: [Int], values: [Float])], as architecture: String) -> String
    {
        do {
            _ = try imported(tensors, as: architecture)
            return ""
        } catch let problem as ImportError.Problem {
            return ImportError(path: "model.pth", problem: problem).description
        } catch {
            return "unexpected: \(error)"
        }
    }

    @Test("Tensors that do not fit are an error that names them")
    func mismatches() throws {
        let tensors = try find("resnet-18", "torchvision").tensors()
        let missing = message(tensors.filter { !$0.name.hasPrefix("layer4.1.bn2.r") }, as: "resnet-18")
        #expect(
            missing.contains("no tensor \"layer4.1.bn2.running_mean\" of the shape [512] (and 1 more)"), "\(missing)")
        #expect(missing.contains("expected 102 tensors for resnet-18"), "\(missing)")
        let shape = message(
            tensors.map { $0.name == "layer1.0.conv1.weight" ? ($0.name, [64, 64, 9], $0.values) : $0 }, as: "resnet-18"
        )
        #expect(
            shape.contains("\"layer1.0.conv1.weight\" has the shape [64, 64, 9]. Expected [64, 64, 3, 3]"), "\(shape)")
        let unused = message(tensors + [("layer4.2.conv1.weight", [1], [0])], as: "resnet-18")
        #expect(unused.contains("the tensor \"layer4.2.conv1.weight\", which resnet-18 does not have"), "\(unused)")
        let depth = message(tensors, as: "resnet-34")
        #expect(depth.contains("no tensor \"layer1.2.conv1.weight\" of the shape [64, 64, 3, 3]"), "\(depth)")
        #expect(depth.hasSuffix("expected 182 tensors for resnet-34. Its tensors fit resnet-18."), "\(depth)")
        #expect(missing.hasSuffix("Choose the architecture with which the checkpoint was saved."), "\(missing)")
        #expect(message(tensors, as: "resnet-50").contains("\"layer1.0.conv3.weight\""))
        let other = message(tensors, as: "efficientnet-lite0")
        #expect(
            other.contains("efficientnet-lite0: \"conv_stem.weight\" as in timm, or \"_conv_stem.weight\""), "\(other)")
        #expect(other.hasSuffix(" as in EfficientNet-PyTorch. Its tensors fit resnet-18."), "\(other)")
        let head = message(tensors.filter { $0.name != "fc.weight" }, as: "resnet-18")
        #expect(head.contains("no tensor \"fc.weight\", the head of resnet-18"), "\(head)")
        let vector = message(
            tensors.map { $0.name == "fc.weight" ? ($0.name, [5120], $0.values) : $0 }, as: "resnet-18")
        #expect(vector.contains("\"fc.weight\" has the shape [5120]"), "\(vector)")
        #expect(
            message([], as: "resnet-18").contains(
                "a checkpoint without tensors. Expected the first convolution of resnet-18: \"conv1.weight\""))
    }

    @Test("Values that are not finite are rejected")
    func notFinite() throws {
        var tensors = try find("squeezenet-1.1", "torchvision").tensors()
        tensors[0].values[3] = .nan
        #expect(message(tensors, as: "squeezenet-1.1").contains("conv1.weight has a value that is not finite"))
    }
}
