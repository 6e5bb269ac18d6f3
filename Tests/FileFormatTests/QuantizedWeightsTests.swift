import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Returns a classifier whose weights are all stored as int8, except those of the first layer.
private func quantizableModel(rehearsal: Rehearsal? = nil) throws -> ModelFile {
    let sample = try sampleModel()
    let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.25)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 5), labels: sample.labels,
        preprocessing: sample.preprocessing, training: sample.training, baseDigest: sample.baseDigest,
        rehearsal: rehearsal)
}

extension TensorSource {
    /// Creates a source for a tensor of floats; without a precision, it is stored as float32.
    init(name: String, shape: [Int], values: [Float], precision: Safetensors.Precision? = nil) {
        self.init(
            Safetensors.Tensor(name: name, shape: shape, values: values, precision: precision), as: .float32)
    }

    /// Creates a source for a tensor of integers.
    init(name: String, shape: [Int], int8 values: [Int8]) {
        self.init(name, shape: shape, .int8) { body in try values.withUnsafeBytes(body) }
    }
}

/// Model files with int8 weights.
@Suite struct QuantizedWeightsTests {
    /// Returns the integers and scales that a file stores for weights [inputs, outputs].
    private func quantized(_ weights: [Float], outputs: Int) throws -> (integers: [Int8], scales: [Float]) {
        let layer = Dense(outputChannels: outputs, hasBias: false)
        let network = try Network(
            name: "dense", input: TensorShape(channels: weights.count / outputs),
            nodes: [Network.Node(name: "head", layer: layer, inputs: [Network.inputName])])
        let parameters = try Parameters(ParameterLayout(network))
        parameters["head.weight"] = weights
        let tensors = QuantizedWeights.tensors(of: try #require(parameters.layout["head.weight"]), in: parameters)
        #expect(tensors.map(\.name) == ["head.weight", "head.weight.factor"])
        var (integers, scales): ([Int8], [Float]) = ([], [])
        try tensors[0].forEachPart(of: "integers") { integers += $0.bindMemory(to: Int8.self) }
        try tensors[1].forEachPart(of: "scales") { scales += $0.bindMemory(to: Float.self) }
        return (integers, scales)
    }

    @Test("The error of int8 weights is at most half a scale, and everything else is bitwise identical")
    func roundTrip() throws {
        let rehearsal = Rehearsal(features: (0..<64).map { Float($0) / 8 }, labels: [1])
        let model = try quantizableModel(rehearsal: rehearsal)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try model.write(to: url, as: .int8)
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.header.metadata["imprint.format"] == "2")
            let read = try ModelFile(contentsOf: url)
            #expect(read.digest == digest && read.storage == .int8 && read.storagePrecision == .float32)
            #expect(
                read.labels == model.labels && read.training == model.training && read.baseDigest == model.baseDigest)
            #expect(read.rehearsal == rehearsal)
            let tensors = Dictionary(uniqueKeysWithValues: file.header.tensors.map { ($0.name, $0) })
            var quantized = 0
            for entry in model.parameters.layout.entries {
                let expected = try #require(model.parameters[entry.name])
                let found = try #require(read.parameters[entry.name])
                guard entry.parameter.role == .weight, entry.node != "conv1" else {
                    #expect(found.map(\.bitPattern) == expected.map(\.bitPattern), "\(entry.name)")
                    continue
                }
                quantized += 1
                let outputs = try #require(entry.parameter.shape.last)
                #expect(tensors[entry.name]?.elementType == .int8)
                let scales = try file.values(of: #require(tensors[entry.name + ".factor"]))
                #expect(scales.count == outputs)
                for (index, (found, expected)) in zip(found, expected).enumerated() {
                    // The product of the integer and the scale is rounded too.
                    #expect(abs(found - expected) <= scales[index % outputs] * 0.50001, "\(entry.name)")
                }
                #expect(found != expected, "\(entry.name) was not rounded")
            }
            #expect(quantized == 4 && file.header.tensors.count == model.parameters.layout.entries.count + 5)
        }
    }

    @Test("A model read from an int8 file is saved as float32 in format 1, with the same parameters")
    func savedAsFloat32() throws {
        try withTemporaryFolder { folder in
            let (int8, float32) = (folder.appending(path: "small"), folder.appending(path: "large"))
            try quantizableModel().write(to: int8, as: .int8)
            let read = try ModelFile(contentsOf: int8)
            let digest = try read.write(to: float32)
            #expect(try read.tensorDigest() == digest && digest != read.digest)
            let again = try ModelFile(contentsOf: float32)
            #expect(again.storage == .float32)
            #expect(try Safetensors.File(contentsOf: float32).header.metadata["imprint.format"] == "1")
            for entry in read.parameters.layout.entries {
                #expect(again.parameters[entry.name] == read.parameters[entry.name], "\(entry.name)")
            }
        }
    }

    @Test("An int8 file takes about a quarter of the bytes")
    func size() throws {
        let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.5)
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            func size(_ storage: ModelFile.Storage) throws -> Double {
                try model.write(to: url, as: storage)
                return Double(try Data(contentsOf: url).count)
            }
            let float32 = try size(.float32)
            #expect((0.49...0.52).contains(try size(.float16) / float32))
            #expect((0.25...0.3).contains(try size(.int8) / float32))
        }
    }

    @Test("Each output has its own scale; values round to nearest, ties to even")
    func rounding() throws {
        // Four outputs: a largest value of 127, of 254, only zeros, and values too small for a scale.
        let weights: [Float] = [
            127, -254, 0, 0x1p-133,
            2.5, 3, 0, -0x1p-133,
            -3.5, 254, 0, 0,
            -1.4, -5, 0, 0,
        ]
        let rounded = try quantized(weights, outputs: 4)
        #expect(rounded.scales == [1, 2, 0, 0])
        #expect(rounded.integers == [127, -127, 0, 0, 2, 2, 0, 0, -4, 127, 0, 0, -1, -2, 0, 0])
        let largest: [Float] = [.greatestFiniteMagnitude, -.greatestFiniteMagnitude]
        let limits = try quantized(largest, outputs: 1)
        #expect(limits.integers == [127, -127] && limits.scales.allSatisfy(\.isFinite))
    }

    @Test("Tensors with few weights per output stay float32")
    func smallTensors() throws {
        func suited(_ layer: any Layer, _ input: TensorShape) -> [Bool] {
            layer.parameters(for: [input]).map(QuantizedWeights.suits)
        }
        #expect(suited(Dense(outputChannels: 2), TensorShape(channels: 64)) == [true, false])
        #expect(suited(Dense(outputChannels: 2), TensorShape(channels: 63)) == [false, false])
        let image = TensorShape(height: 4, width: 4, channels: 8)
        #expect(suited(Convolution(outputChannels: 6, kernelSize: 3), image) == [true, false])
        #expect(suited(Convolution(outputChannels: 8, kernelSize: 3, groups: 8), image) == [false, false])
        #expect(!suited(BatchNormalization(), TensorShape(channels: 1)).contains(true))
        var builder = NetworkBuilder(name: "small", input: TensorShape(height: 4, width: 4, channels: 3))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2), named: "head")
        builder.add(Softmax())
        let network = try builder.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 4, height: 4))
        try withTemporaryFolder { folder in
            let (float32, int8) = (folder.appending(path: "plain"), folder.appending(path: "small"))
            try model.write(to: float32)
            try model.write(to: int8, as: .int8)
            #expect(try Data(contentsOf: float32) == Data(contentsOf: int8))
        }
    }

    @Test("A file of an older version is read bitwise, and written in the same format")
    func olderFile() throws {
        // Written before format 2 existed: imprint train on 16 noise images with --network logonet --width 0.05
        // --input-size 16 --epochs 2 --validation 0 --batch-size 8.
        let file = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/format1.imprint")
        let model = try ModelFile(contentsOf: file)
        #expect(model.digest == "78179583be653fc581557f8779f6fc1aa5093bebc2168b02e8ae4070de8fb2bb")
        #expect(model.storage == .float32)
        #expect(model.parameters["head.bias"] == [-0x1.3b2484p-6, 0x1.3b2484p-6])
        #expect(
            model.parameters["head.weight"]?.prefix(4)
                == [-0x1.070b9p-4, 0x1.5cbd9ep-3, 0x1.ad1fbp-3, -0x1.2975bap-2])
        try withTemporaryFolder { folder in
            let copy = folder.appending(path: "copy.imprint")
            // That version sorted the tensors by name, so the digest differs.
            try model.write(to: copy)
            let bits = model.parameters.withValues { $0.map(\.bitPattern) }
            #expect(try ModelFile(contentsOf: copy).parameters.withValues { $0.map(\.bitPattern) } == bits)
            #expect(try Safetensors.File(contentsOf: copy).header.metadata["imprint.format"] == "1")
        }
    }

    @Test("Format 2 without int8 tensors is read like format 1")
    func floatsInFormat2() throws {
        let model = try sampleModel()
        try withChanged(model, metadata: ["imprint.format": "2"]) { url in
            let read = try ModelFile(contentsOf: url)
            for entry in model.parameters.layout.entries {
                #expect(read.parameters[entry.name] == model.parameters[entry.name], "\(entry.name)")
            }
        }
    }

    @Test(
        "Python reads the file, and integers times scales equal our weights",
        .enabled(if: Python.path != nil, "IMPRINT_PYTHON names no Python; ./run test sets it"))
    func python() throws {
        struct Described: Decodable {
            struct Tensor: Decodable {
                let type: String
                let shape: [Int]
                let values: [String]
            }
            let tensors: [String: Tensor]
        }
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try quantizableModel().write(to: url, as: .int8)
            let script = "FileFormatTests/Fixtures/check_safetensors.py"
            let described = try JSONDecoder().decode(
                Described.self, from: Python.output(of: script, ["describe", url.path]))
            let (weight, scale) = (described.tensors["conv2.weight"], described.tensors["conv2.weight.factor"])
            #expect(weight?.type == "int8" && scale?.type == "float32")
            let scales = try #require(scale).values.compactMap { Float($0) }
            let products = try #require(weight).values.enumerated().map {
                (Float($1) ?? .nan) * scales[$0 % scales.count]
            }
            #expect(try ModelFile(contentsOf: url).parameters["conv2.weight"] == products)
            let found = try Python.output(of: script, ["digest", url.path])
            #expect(String(decoding: found, as: UTF8.self).contains(digest))
        }
    }
}

/// Invalid model files with int8 weights.
@Suite struct HostileQuantizedWeightsTests {
    @Test(
        "Scales that do not match the weights are rejected by name",
        arguments: [
            ([15], [Float](repeating: 1, count: 15), nil, "the scales are F32 [15], expected F32 [16]"),
            ([1, 16], [Float](repeating: 1, count: 16), nil, "the scales are F32 [1, 16], expected F32 [16]"),
            ([], [1], nil, "the scales are F32 [], expected F32 [16]"),
            ([0], [], nil, "the scales are F32 [0], expected F32 [16]"),
            ([16], [Float](repeating: 1, count: 16), .float16, "the scales are F16 [16], expected F32 [16]"),
        ] as [([Int], [Float], Safetensors.Precision?, String)])
    func scaleShapes(shape: [Int], values: [Float], precision: Safetensors.Precision?, text: String) throws {
        let error = try error { tensors in
            replace(
                &tensors,
                .init(name: "conv2.weight.factor", shape: shape, values: values, precision: precision))
        }
        #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        #expect(error?.description.contains("int8 tensor conv2.weight") == true)
    }

    @Test("Missing scales are rejected by name")
    func missingScales() throws {
        let error = try error { $0.removeAll { $0.name == "head.weight.factor" } }
        #expect(
            error?.problem
                == .invalidScales(
                    tensor: "head.weight", reason: "the tensor head.weight.factor with its scales is missing"))
    }

    @Test("Scales that are int8 are rejected")
    func scalesOfScales() throws {
        let error = try error { tensors in
            replace(&tensors, .init(name: "head.weight.factor", shape: [2], int8: [1, 1]))
            tensors.append(.init(name: "head.weight.factor.factor", shape: [2], values: [1, 1]))
        }
        #expect(error?.description.contains("the scales are I8 [2], expected F32 [2]") == true)
    }

    @Test(
        "Scales that are not finite, or give weights that are not, are rejected by name",
        arguments: [Float.nan, .infinity, 1e38])
    func notFinite(scale: Float) throws {
        let error = try error { tensors in
            replace(&tensors, .init(name: "head.weight.factor", shape: [2], values: [1, scale]))
        }
        #expect(error?.problem == .notFinite(tensor: scale == 1e38 ? "head.weight" : "head.weight.factor"))
    }

    @Test("Mismatched weights, scales without int8 weights and unexpected tensors are listed")
    func otherTensors() throws {
        let transposed = try error { tensors in
            replace(&tensors, .init(name: "head.weight", shape: [2, 64], int8: .init(repeating: 1, count: 128)))
            replace(&tensors, .init(name: "head.weight.factor", shape: [64], values: .init(repeating: 1, count: 64)))
        }
        #expect(report(transposed)?.mismatched.map(\.name) == ["head.weight"])
        let unexpected = try error { tensors in
            tensors.append(.init(name: "head.bias.factor", shape: [2], values: [1, 1]))
            tensors.append(.init(name: "extra", shape: [1], int8: [1]))
            tensors.append(.init(name: "extra.factor", shape: [1], values: [1]))
        }
        #expect(report(unexpected)?.unused.sorted() == ["extra", "head.bias.factor"])
        let scalar = try error { tensors in
            replace(&tensors, .init(name: "head.weight", shape: [], int8: [1]))
            replace(&tensors, .init(name: "head.weight.factor", shape: [], values: [1]))
        }
        #expect(scalar?.description.contains("the scales are F32 []") == true)
    }

    @Test("Format 1 has no int8 tensors")
    func inFormat1() throws {
        let error = try error(metadata: ["imprint.format": "1"])
        #expect(report(error)?.unused.count == 4)
    }

    @Test("Flipped bits and truncated files are rejected")
    func damage() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try quantizableModel().write(to: url, as: .int8)
            let whole = try Data(contentsOf: url)
            for length in stride(from: 0, to: whole.count, by: 61) {
                try whole.prefix(length).write(to: url)
                #expect(throws: SafetensorsError.self) { try ModelFile(contentsOf: url) }
            }
            for offset in stride(from: whole.count - 1, to: whole.count - 4000, by: -97) {
                var changed = whole
                changed[offset] ^= 1 << (offset % 8)
                try changed.write(to: url)
                #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
            }
        }
    }

    private func report(_ error: ModelFileError?) -> LoadingReport? {
        guard case .incomplete(let report) = error?.problem else { return nil }
        return report
    }

    private func replace(_ tensors: inout [TensorSource], _ tensor: TensorSource) {
        tensors.removeAll { $0.name == tensor.name }
        tensors.append(tensor)
    }

    /// Returns the error of the int8 sample file after changing tensors and metadata.
    private func error(
        metadata changes: [String: String] = [:], tensors change: (inout [TensorSource]) -> Void = { _ in }
    ) throws -> ModelFileError? {
        let model = try quantizableModel()
        var tensors = model.parameters.layout.entries.flatMap { entry in
            QuantizedWeights.suits(entry.parameter)
                ? QuantizedWeights.tensors(of: entry, in: model.parameters)
                : [TensorSource(entry, of: model.parameters, as: .float32)]
        }
        change(&tensors)
        return try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.write(to: url, as: .int8)
            let metadata = try Safetensors.File(contentsOf: url).header.metadata
            try Safetensors.write(tensors, inOrder: false, to: url, checksumKey: nil) { digest in
                metadata.merging(["imprint.digest": digest]) { $1 }.merging(changes) { $1 }
            }
            return #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
        }
    }
}
