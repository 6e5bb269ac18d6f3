import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

@testable import ImprintModel
@testable import ImprintNetwork

/// Model files with the quantization of activations, format 5.
@Suite struct QuantizedModelTests {
    /// Returns a quantized classifier with a depthwise convolution, and a layer that stays in float32.
    private static func quantizedModel(precision: Safetensors.Precision = .float32) throws -> ModelFile {
        let sample = try sampleModel()
        var builder = NetworkBuilder(name: "quantizable", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(Convolution(outputChannels: 20, kernelSize: 3, stride: 2, hasBias: false), named: "first")
        builder.add(BatchNormalization(), named: "norm")
        builder.add(ReLU(), named: "activation")
        builder.add(Convolution(outputChannels: 20, kernelSize: 3, padding: .all(1), groups: 20), named: "depthwise")
        builder.add(Convolution(outputChannels: 9, kernelSize: 1), named: "plain")
        builder.add(GlobalAveragePool(), named: "features")
        builder.add(Dense(outputChannels: 2), named: "head")
        builder.add(Softmax(), named: "probabilities")
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 5)
        let images = (0..<4).map { index in
            Quantizer.Image(shape: network.input) { values in
                _ = values.update(fromContentsOf: Self.randomValues(values.count, "image \(index)"))
            }
        }
        let quantized = try Quantizer(network, parameters: parameters).quantize(for: images)
        quantized.quantization?.weights["plain"] = nil
        quantized["plain.weight"] = parameters["plain.weight"]
        return ModelFile(
            network: network, parameters: quantized, labels: sample.labels, preprocessing: sample.preprocessing,
            storagePrecision: precision)
    }

    private static func randomValues(_ count: Int, _ name: String) -> [Float] {
        var stream = RandomStream(seed: 7, name)
        return (0..<count).map { _ in stream.uniform(in: -1...1) }
    }

    private static func outputs(_ model: ModelFile) throws -> [Float] {
        var options = ExecutionPlan.Options(batchSize: 1)
        options.precision = .automatic
        let plan = try ExecutionPlan(
            model.network, parameters: model.parameters, options: options)
        _ = plan.input.update(fromContentsOf: Self.randomValues(plan.input.count, "photo"))
        plan.forward(count: 1)
        return Array(plan.output)
    }

    @Test(
        "A quantized model gives bitwise equal predictions after a round trip",
        arguments: [nil, .int8] as [ModelFile.Storage?])
    func roundTrip(storage: ModelFile.Storage?) throws {
        let model = try Self.quantizedModel()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url, as: storage)
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.header.metadata["imprint.format"] == "5")
            let types = Dictionary(uniqueKeysWithValues: file.header.tensors.map { ($0.name, $0.elementType) })
            for layer in ["first", "depthwise", "head"] { #expect(types["\(layer).weight"] == .int8) }
            let read = try ModelFile(contentsOf: url)
            #expect(read.parameters.quantization == model.parameters.quantization)
            for entry in model.parameters.layout.entries {
                #expect(read.parameters[entry.name] == model.parameters[entry.name], "\(entry.name)")
            }
            #expect(try Self.outputs(read) == Self.outputs(model))
            // Written again, the file is the same.
            let second = folder.appending(path: "second.imprint")
            try read.write(to: second, as: storage)
            #expect(try Data(contentsOf: second) == Data(contentsOf: url))
        }
    }

    @Test("The other tensors of a quantized model are as in the unquantized model, unless the storage is given")
    func otherTensors() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            for (precision, storage, expected) in [
                (.float32, nil, .float32), (.float16, nil, .float16), (.float16, .int8, .float32),
            ] as [(Safetensors.Precision, ModelFile.Storage?, Safetensors.ElementType)] {
                try Self.quantizedModel(precision: precision).write(to: url, as: storage)
                let tensors = try Safetensors.File(contentsOf: url).header.tensors
                let types = Dictionary(uniqueKeysWithValues: tensors.map { ($0.name, $0.elementType) })
                #expect(types["first.weight"] == .int8 && types["first.weight.factor"] == .float32)
                #expect(types["plain.weight"] == expected && types["head.bias"] == expected)
                #expect(try ModelFile(contentsOf: url).storage == .int8)
            }
        }
    }

    @Test("Storage as floating point removes the quantization", arguments: [ModelFile.Storage.float32, .float16])
    func withoutQuantization(storage: ModelFile.Storage) throws {
        let model = try Self.quantizedModel()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url, as: storage)
            #expect(try Safetensors.File(contentsOf: url).header.metadata["imprint.format"] == "1")
            let read = try ModelFile(contentsOf: url)
            #expect(read.parameters.quantization == nil)
            if storage == .float32 {
                #expect(read.parameters["depthwise.weight"] == model.parameters["depthwise.weight"])
            }
        }
    }

    @Test("Scales of parameters that do not compute in int8, or of another shape, are rejected")
    func hostileTensors() throws {
        let model = try Self.quantizedModel()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url)
            let file = try Safetensors.File(contentsOf: url)
            /// Writes the tensors of the model with some of them replaced.
            func rewrite(_ changed: [TensorSource]) throws {
                let names = Set(changed.map(\.name))
                let others = try file.header.tensors.filter { !names.contains($0.name) }.map { tensor in
                    tensor.elementType == .int8
                        ? TensorSource(
                            name: tensor.name, shape: tensor.shape, int8: [Int8](repeating: 3, count: tensor.count))
                        : TensorSource(name: tensor.name, shape: tensor.shape, values: try file.values(of: tensor))
                }
                _ = try Safetensors.write(
                    others + changed, inOrder: false, to: url, checksumKey: ModelFileKey.checksum
                ) { digest in file.header.metadata.merging([ModelFileKey.digest: digest]) { $1 } }
            }
            let bias = TensorSource(name: "head.bias", shape: [2], int8: [1, 2])
            let ones: (String, Int, Float) -> TensorSource = {
                TensorSource(name: $0, shape: [$1], values: [Float](repeating: $2, count: $1))
            }
            let cases: [([TensorSource], String)] = [
                (
                    [bias, ones("head.bias.factor", 2, 1), ones("head.bias.inputScale", 2, 1)],
                    "only weights of convolutions and dense layers"
                ),
                ([ones("first.weight.inputScale", 2, 1)], "must be 3 finite numbers above 0"),
                ([ones("depthwise.weight.inputScale", 1, 1)], "must be 20 finite numbers above 0"),
                ([ones("first.weight.inputScale", 3, -1)], "must be 3 finite numbers above 0"),
                ([ones("first.weight.factor", 20, -1)], "a scale is negative"),
                (
                    [TensorSource(name: "first.weight.inputScale", shape: [3, 1], values: [1, 1, 1])],
                    "expected an F32 vector"
                ),
            ]
            for (tensors, reason) in cases {
                try rewrite(tensors)
                do {
                    _ = try ModelFile(contentsOf: url)
                    Issue.record("accepted \(reason)")
                } catch {
                    #expect("\(error)".contains(reason), "\(error)")
                }
            }
        }
    }

    @Test("Copies of the parameters have no quantization, because they may be trained") func copies() throws {
        let model = try Self.quantizedModel()
        #expect(try model.parameters.copy().quantization == nil)
    }

    @Test("A calibrated or personalized model keeps the quantization of the layers that did not change")
    func changedModels() throws {
        let model = try Self.quantizedModel()
        let quantization = try #require(model.parameters.quantization)
        func personalized(_ adapters: [Personalization.LowRankAdapter]) throws -> ModelFile {
            try model.personalized(
                with: Personalization(
                    baseDigest: model.identity, addedLabels: ["new"],
                    columns: [.sample(model.labels[0], 9), .sample("new", 9)], adapters: adapters,
                    record: .init(examples: [:])))
        }
        let calibrated = try #require(try model.calibrated(2))
        let plain = try personalized([])
        let adapted = try personalized([.sample("first.weight", rows: 27, columns: 20, rank: 2)])
        let cases = [(calibrated, ["depthwise", "first"]), (plain, ["depthwise", "first"]), (adapted, ["depthwise"])]
        for (changed, layers) in cases {
            let found = try #require(changed.parameters.quantization)
            #expect(found.weights.keys.sorted() == layers && found.activations == quantization.activations)
            try withTemporaryFolder { folder in
                let url = folder.appending(path: "model.imprint")
                try changed.write(to: url)
                let read = try ModelFile(contentsOf: url)
                #expect(read.parameters.quantization == found)
                #expect(try Self.outputs(read) == Self.outputs(changed))
            }
        }
    }

    /// Returns the quantization of a model as JSON with a change.
    private static func changed(
        _ model: ModelFile, _ change: (inout [String: Any], String) -> Void
    ) throws -> String {
        return try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url)
            let text = try #require(Safetensors.File(contentsOf: url).header.metadata["imprint.quantization"])
            var object = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            var activations = try #require(object["activations"] as? [String: Any])
            change(&activations, "activation")
            object["activations"] = activations
            return String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
        }
    }

    /// Writes a safetensors file with another value of a metadata key.
    private static func write(_ key: String, _ value: String, replacing original: Data, to url: URL) throws {
        let length = original.prefix(8).reversed().reduce(0) { $0 << 8 | Int($1) }
        var header = try #require(
            JSONSerialization.jsonObject(with: original.dropFirst(8).prefix(length)) as? [String: Any])
        var metadata = try #require(header["__metadata__"] as? [String: String])
        metadata[key] = value
        header["__metadata__"] = metadata
        var text = try JSONSerialization.data(withJSONObject: header)
        text += Data(repeating: UInt8(ascii: " "), count: (64 - (8 + text.count) % 64) % 64)
        let size = (0..<8).map { UInt8(truncatingIfNeeded: text.count >> (8 * $0)) }
        try (Data(size) + text + original.dropFirst(8 + length)).write(to: url)
    }

    private static func base64(_ scales: [Float]) -> String {
        Data(scales.flatMap { scale in withUnsafeBytes(of: scale.bitPattern.littleEndian) { Array($0) } })
            .base64EncodedString()
    }

    @Test("A file with an impossible quantization is rejected") func hostile() throws {
        let model = try Self.quantizedModel()
        let cases: [(String, String)] = [
            (
                try Self.changed(model) {
                    $0[$1] = ["scales": Self.base64([1, 2]), "zeroPoints": Data([1]).base64EncodedString()]
                },
                "8 bytes of scales for 1 zero point"
            ),
            (
                try Self.changed(model) {
                    $0[$1] = ["scales": Self.base64([0]), "zeroPoints": Data([1]).base64EncodedString()]
                },
                "not a finite number above 0"
            ),
            (
                try Self.changed(model) {
                    $0[$1] = ["scales": Self.base64([.nan]), "zeroPoints": Data([1]).base64EncodedString()]
                },
                "not a finite number above 0"
            ),
            (try Self.changed(model) { $0[$1] = ["scales": "", "zeroPoints": 5] as [String: Any] }, "wrong type"),
            ("[]", "wrong type"),
        ]
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url)
            let original = try Data(contentsOf: url)
            for (json, reason) in cases {
                try Self.write("imprint.quantization", json, replacing: original, to: url)
                do {
                    _ = try ModelFile(contentsOf: url)
                    Issue.record("accepted \(json)")
                } catch {
                    #expect("\(error)".contains(reason), "\(error)")
                }
            }
            // Activations of other channel counts are ignored: their layers compute in float32.
            let other = try Self.changed(model) { activations, name in
                activations[name] = ["scales": Self.base64([1]), "zeroPoints": Data([3]).base64EncodedString()]
            }
            try Self.write("imprint.quantization", other, replacing: original, to: url)
            let outputs = try Self.outputs(ModelFile(contentsOf: url))
            #expect(outputs.allSatisfy { $0.isFinite })
        }
    }
}
