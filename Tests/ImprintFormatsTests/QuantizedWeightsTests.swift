import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// A classifier of which all weights but those of the first layer are stored in 8 bits.
private func quantizableWeights(rehearsal: Rehearsal? = nil) throws -> ModelFile {
    let sample = try sampleWeights()
    let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.25)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 5), labels: sample.labels,
        preprocessing: sample.preprocessing, training: sample.training, base: sample.base, rehearsal: rehearsal)
}

/// Weights files whose weights take a byte each.
@Suite struct QuantizedWeightsTests {
    @Test("Weights come back within half a factor of their output, everything else bit for bit")
    func roundTrip() throws {
        let rehearsal = Rehearsal(features: (0..<64).map { Float($0) / 8 }, labels: [1])
        let weights = try quantizableWeights(rehearsal: rehearsal)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            let digest = try weights.write(to: url, as: .int8)
            let file = try Safetensors.File(contentsOf: url)
            #expect(file.header.metadata["imprint.format"] == "2")
            let read = try ModelFile(contentsOf: url)
            #expect(read.digest == digest && read.storage == .int8 && read.precision == .float32)
            #expect(read.labels == weights.labels && read.training == weights.training && read.base == weights.base)
            #expect(read.rehearsal == rehearsal)
            let tensors = Dictionary(uniqueKeysWithValues: file.header.tensors.map { ($0.name, $0) })
            var quantized = 0
            for entry in weights.parameters.layout.entries {
                let expected = try #require(weights.parameters[entry.name])
                let found = try #require(read.parameters[entry.name])
                guard entry.parameter.role == .weight, entry.node != "conv1" else {
                    #expect(found.map(\.bitPattern) == expected.map(\.bitPattern), "\(entry.name)")
                    continue
                }
                quantized += 1
                let outputs = try #require(entry.parameter.shape.last)
                #expect(tensors[entry.name]?.elementType == .int8)
                let factors = try file.values(of: #require(tensors[entry.name + ".factor"]))
                #expect(factors.count == outputs)
                for (place, (found, expected)) in zip(found, expected).enumerated() {
                    // Beside rounding to whole numbers there is that of their product with the factor.
                    #expect(abs(found - expected) <= factors[place % outputs] * 0.50001, "\(entry.name)")
                }
                #expect(found != expected, "\(entry.name) was not rounded")
            }
            #expect(quantized == 4 && file.header.tensors.count == weights.parameters.layout.entries.count + 5)
        }
    }

    @Test("What was read is saved as float32 in format 1, with the same numbers")
    func savedAsFloat32() throws {
        try withTemporaryFolder { folder in
            let (small, large) = (folder.appending(path: "small"), folder.appending(path: "large"))
            try quantizableWeights().write(to: small, as: .int8)
            let read = try ModelFile(contentsOf: small)
            let digest = try read.write(to: large)
            #expect(try read.tensorDigest() == digest && digest != read.digest)
            let again = try ModelFile(contentsOf: large)
            #expect(again.storage == .float32)
            #expect(try Safetensors.File(contentsOf: large).header.metadata["imprint.format"] == "1")
            for entry in read.parameters.layout.entries {
                #expect(again.parameters[entry.name] == read.parameters[entry.name], "\(entry.name)")
            }
        }
    }

    @Test("A file takes about a quarter of the bytes")
    func size() throws {
        let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.5)
        let weights = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            func size(_ storage: ModelFile.Storage) throws -> Double {
                try weights.write(to: url, as: storage)
                return Double(try Data(contentsOf: url).count)
            }
            let float32 = try size(.float32)
            #expect((0.49...0.52).contains(try size(.float16) / float32))
            #expect((0.25...0.3).contains(try size(.int8) / float32))
        }
    }

    @Test("Each output has its own factor; rounding is to nearest, ties to even")
    func rounding() {
        // Four outputs: a largest number of 127, of 254, none but zeros, and numbers too small for a factor.
        let weights: [Float] = [
            127, -254, 0, 0x1p-133,
            2.5, 3, 0, -0x1p-133,
            -3.5, 254, 0, 0,
            -1.4, -5, 0, 0,
        ]
        let rounded = weights.withUnsafeBufferPointer { QuantizedWeights(rounding: $0, outputs: 4) }
        #expect(rounded.factors == [1, 2, 0, 0])
        #expect(rounded.integers == [127, -127, 0, 0, 2, 2, 0, 0, -4, 127, 0, 0, -1, -2, 0, 0])
        let largest: [Float] = [.greatestFiniteMagnitude, -.greatestFiniteMagnitude]
        let limits = largest.withUnsafeBufferPointer { QuantizedWeights(rounding: $0, outputs: 1) }
        #expect(limits.integers == [127, -127] && limits.factors.allSatisfy(\.isFinite))
    }

    @Test("Where factors would be many beside the weights, these stay as they are")
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
        let weights = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 4, height: 4))
        try withTemporaryFolder { folder in
            let (plain, small) = (folder.appending(path: "plain"), folder.appending(path: "small"))
            try weights.write(to: plain)
            try weights.write(to: small, as: .int8)
            #expect(try Data(contentsOf: plain) == Data(contentsOf: small))
        }
    }

    @Test("A file that an older Imprint wrote is read to the same bits, and written as what it was")
    func olderFile() throws {
        // Of format 1, before there was another: imprint train of 16 noisy pictures with --network logonet --width 0.05
        // --input-size 16 --epochs 2 --validation 0 --batch-size 8.
        let file = packageFolder.appending(path: "Tests/ImprintFormatsTests/Fixtures/format1.imprint")
        let weights = try ModelFile(contentsOf: file)
        #expect(weights.digest == "78179583be653fc581557f8779f6fc1aa5093bebc2168b02e8ae4070de8fb2bb")
        #expect(weights.storage == .float32)
        #expect(weights.parameters["head.bias"] == [-0x1.3b2484p-6, 0x1.3b2484p-6])
        #expect(
            weights.parameters["head.weight"]?.prefix(4)
                == [-0x1.070b9p-4, 0x1.5cbd9ep-3, 0x1.ad1fbp-3, -0x1.2975bap-2])
        try withTemporaryFolder { folder in
            let copy = folder.appending(path: "copy.imprint")
            // The tensors, sorted by name then, are in another order, so the digest is another.
            try weights.write(to: copy)
            let bits = weights.parameters.withValues { $0.map(\.bitPattern) }
            #expect(try ModelFile(contentsOf: copy).parameters.withValues { $0.map(\.bitPattern) } == bits)
            #expect(try Safetensors.File(contentsOf: copy).header.metadata["imprint.format"] == "1")
        }
    }

    @Test("Format 2 without tensors of 8 bits is read as format 1 is")
    func floatsInFormat2() throws {
        let weights = try sampleWeights()
        try withChanged(weights, metadata: ["imprint.format": "2"]) { url in
            let read = try ModelFile(contentsOf: url)
            for entry in weights.parameters.layout.entries {
                #expect(read.parameters[entry.name] == weights.parameters[entry.name], "\(entry.name)")
            }
        }
    }

    @Test(
        "Python reads the file, and the product of weights and factors is what we read",
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
            let digest = try quantizableWeights().write(to: url, as: .int8)
            let script = "ImprintFormatsTests/Fixtures/check_safetensors.py"
            let described = try JSONDecoder().decode(
                Described.self, from: Python.output(of: script, ["describe", url.path]))
            let (weight, factor) = (described.tensors["conv2.weight"], described.tensors["conv2.weight.factor"])
            #expect(weight?.type == "int8" && factor?.type == "float32")
            let factors = try #require(factor).values.compactMap { Float($0) }
            let products = try #require(weight).values.enumerated().map {
                (Float($1) ?? .nan) * factors[$0 % factors.count]
            }
            #expect(try ModelFile(contentsOf: url).parameters["conv2.weight"] == products)
            let found = try Python.output(of: script, ["digest", url.path])
            #expect(String(decoding: found, as: UTF8.self).contains(digest))
        }
    }
}

/// Files with weights of 8 bits that are not what they must be.
@Suite struct HostileQuantizedWeightsTests {
    @Test(
        "Factors that do not fit the weights are refused by name",
        arguments: [
            ([15], [Float](repeating: 1, count: 15), nil, "the factors are F32 [15], expected F32 [16]"),
            ([1, 16], [Float](repeating: 1, count: 16), nil, "the factors are F32 [1, 16], expected F32 [16]"),
            ([], [1], nil, "the factors are F32 [], expected F32 [16]"),
            ([0], [], nil, "the factors are F32 [0], expected F32 [16]"),
            ([16], [Float](repeating: 1, count: 16), .float16, "the factors are F16 [16], expected F32 [16]"),
        ] as [([Int], [Float], Safetensors.Precision?, String)])
    func factorShapes(shape: [Int], values: [Float], precision: Safetensors.Precision?, text: String) throws {
        let error = try error { tensors in
            replace(
                &tensors,
                .init(name: "conv2.weight.factor", shape: shape, values: values, precision: precision))
        }
        #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        #expect(error?.description.contains("conv2.weight, whose elements are I8") == true)
    }

    @Test("Factors that are missing are refused by name")
    func missingFactors() throws {
        let error = try error { $0.removeAll { $0.name == "head.weight.factor" } }
        #expect(
            error?.problem
                == .invalidFactors(tensor: "head.weight", reason: "there are no factors, head.weight.factor,"))
    }

    @Test("Factors that are themselves of 8 bits are refused")
    func factorsOfFactors() throws {
        let error = try error { tensors in
            replace(&tensors, .init(name: "head.weight.factor", shape: [2], int8: [1, 1]))
            tensors.append(.init(name: "head.weight.factor.factor", shape: [2], values: [1, 1]))
        }
        #expect(error?.description.contains("the factors are I8 [2], expected F32 [2]") == true)
    }

    @Test("Factors that are no numbers, or make none, are refused by name", arguments: [Float.nan, .infinity, 1e38])
    func notFinite(factor: Float) throws {
        let error = try error { tensors in
            replace(&tensors, .init(name: "head.weight.factor", shape: [2], values: [1, factor]))
        }
        #expect(error?.problem == .notFinite(tensor: factor == 1e38 ? "head.weight" : "head.weight.factor"))
    }

    @Test("Weights of another shape, factors without weights of 8 bits and tensors of no layer are listed")
    func otherTensors() throws {
        let turned = try error { tensors in
            replace(&tensors, .init(name: "head.weight", shape: [2, 64], int8: .init(repeating: 1, count: 128)))
            replace(&tensors, .init(name: "head.weight.factor", shape: [64], values: .init(repeating: 1, count: 64)))
        }
        #expect(report(turned)?.mismatched.map(\.name) == ["head.weight"])
        let leftOver = try error { tensors in
            tensors.append(.init(name: "head.bias.factor", shape: [2], values: [1, 1]))
            tensors.append(.init(name: "extra", shape: [1], int8: [1]))
            tensors.append(.init(name: "extra.factor", shape: [1], values: [1]))
        }
        #expect(report(leftOver)?.unused.sorted() == ["extra", "head.bias.factor"])
        let scalar = try error { tensors in
            replace(&tensors, .init(name: "head.weight", shape: [], int8: [1]))
            replace(&tensors, .init(name: "head.weight.factor", shape: [], values: [1]))
        }
        #expect(scalar?.description.contains("the factors are F32 []") == true)
    }

    @Test("Format 1 has no weights of 8 bits")
    func inFormat1() throws {
        let error = try error(metadata: ["imprint.format": "1"])
        #expect(report(error)?.unused.count == 4)
    }

    @Test("A flipped bit and a file cut off anywhere are found")
    func damage() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try quantizableWeights().write(to: url, as: .int8)
            let whole = try Data(contentsOf: url)
            for length in stride(from: 0, to: whole.count, by: 61) {
                try whole.prefix(length).write(to: url)
                #expect(throws: SafetensorsError.self) { try ModelFile(contentsOf: url) }
            }
            for place in stride(from: whole.count - 1, to: whole.count - 4000, by: -97) {
                var changed = whole
                changed[place] ^= 1 << (place % 8)
                try changed.write(to: url)
                #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
            }
        }
    }

    private func report(_ error: ModelFileError?) -> LoadingReport? {
        guard case .incomplete(let report) = error?.problem else { return nil }
        return report
    }

    private func replace(_ tensors: inout [Safetensors.Tensor], _ tensor: Safetensors.Tensor) {
        tensors.removeAll { $0.name == tensor.name }
        tensors.append(tensor)
    }

    /// The two tensors that stand for one in a file of 8 bits.
    private func quantized(_ entry: ParameterLayout.Entry, _ parameters: Parameters) -> [Safetensors.Tensor] {
        let shape = entry.parameter.shape
        let outputs = shape[shape.count - 1]
        let rounded = parameters.withValues(of: entry) {
            QuantizedWeights(rounding: UnsafeBufferPointer($0), outputs: outputs)
        }
        return [
            .init(name: entry.name, shape: shape, int8: rounded.integers),
            .init(name: "\(entry.name).factor", shape: [outputs], values: rounded.factors, precision: .float32),
        ]
    }

    /// The error that the sample file with weights of 8 bits gives with tensors and metadata changed.
    private func error(
        metadata changes: [String: String] = [:], tensors change: (inout [Safetensors.Tensor]) -> Void = { _ in }
    ) throws -> ModelFileError? {
        let weights = try quantizableWeights()
        var tensors = weights.parameters.layout.entries.flatMap { entry in
            QuantizedWeights.suits(entry.parameter)
                ? quantized(entry, weights.parameters)
                : [
                    Safetensors.Tensor(
                        name: entry.name, shape: entry.parameter.shape, values: weights.parameters[entry.name] ?? [])
                ]
        }
        change(&tensors)
        return try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try weights.write(to: url, as: .int8)
            let metadata = try Safetensors.File(contentsOf: url).header.metadata
            try Safetensors.write(tensors, to: url) { digest in
                metadata.merging(["imprint.digest": digest]) { $1 }.merging(changes) { $1 }
            }
            return #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: url) }
        }
    }
}
