import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// Applying a personalization to a model, and personalizations that do not fit the model.
@Suite struct AppliedPersonalizationTests {
    private func personalization(
        of model: ModelFile, _ columns: [Personalization.Column] = [], added: [String] = [],
        _ adapters: [Personalization.LowRankAdapter] = [], base: String? = nil
    ) throws -> Personalization {
        Personalization(
            baseDigest: try base ?? model.identity, addedLabels: added, columns: columns, adapters: adapters,
            record: .init(examples: [:]))
    }

    private func expectBitwiseEqual(
        _ name: String, _ found: ModelFile, _ expected: [Float]?, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(
            found.parameters[name]?.map(\.bitPattern) == expected?.map(\.bitPattern), "\(name)",
            sourceLocation: sourceLocation)
    }

    @Test(
        "Columns are added to the head's columns of their labels, and added labels get new columns",
        arguments: [
            (["cat"], []), (["é 😀", "dog"], []), (["new"], ["new"]), (["b", "dog", "a", "cat"], ["a", "b"]),
        ] as [([String], [String])], [true, false])
    func columns(_ example: (labels: [String], added: [String]), hasBias: Bool) throws {
        for channels in [1, 5] {
            let model = try tunableModel(channels: channels, hasBias: hasBias)
            let columns = example.labels.map { Personalization.Column.sample($0, channels, hasBias: hasBias) }
            let result = try model.personalized(with: personalization(of: model, columns, added: example.added))
            let labels = model.labels + example.added
            #expect(try result.baseDigest == model.identity)
            #expect(result.labels == labels)
            #expect(result.network.output.channels == labels.count && result.storagePrecision == model.storagePrecision)
            let (old, new) = (model.parameters, result.parameters)
            let (oldWeight, oldBias) = (try #require(old["head.weight"]), old["head.bias"] ?? [0, 0, 0])
            var weight: [Float] = []
            var bias: [Float] = []
            for (index, label) in labels.enumerated() {
                let column = columns.first { $0.label == label }
                bias.append((index < 3 ? oldBias[index] : 0) + (column?.bias ?? 0))
            }
            for row in 0..<channels {
                for (index, label) in labels.enumerated() {
                    let base: Float = index < 3 ? oldWeight[row * 3 + index] : 0
                    let column = columns.first { $0.label == label }
                    weight.append(base + (column?.weights[row] ?? 0))
                }
            }
            #expect(new["head.weight"] == weight)
            #expect(new["head.bias"] == (hasBias ? bias : nil))
            for entry in old.layout.entries where entry.node != "head" {
                expectBitwiseEqual(entry.name, result, old[entry.name])
            }
        }
    }

    @Test("A personalization with many labels is applied in linear time", .timeLimit(.minutes(1)))
    func manyLabels() throws {
        let model = try tunableModel(channels: 1)
        let labels = (0..<200_000).map { "label \($0)" }
        let columns = labels.map { Personalization.Column(label: $0, weights: [1], bias: 2) }
        let result = try model.personalized(with: personalization(of: model, columns, added: labels))
        #expect(result.labels.count == labels.count + 3)
        #expect(result.parameters["head.weight"]?.last == 1 && result.parameters["head.bias"]?.last == 2)
    }

    @Test("A head that is a 1x1 convolution is changed and extended like a dense layer") func convolutionHead() throws {
        var builder = NetworkBuilder(name: "convolutional", input: TensorShape(height: 3, width: 3, channels: 3))
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Convolution(outputChannels: 2, kernelSize: 1), named: "head")
        let network = try builder.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 3, height: 3))
        let column = Personalization.Column.sample("new", 3)
        let result = try model.personalized(with: personalization(of: model, [column], added: ["new"]))
        let old = try #require(model.parameters["head.weight"])
        var weight: [Float] = []
        for row in 0..<3 { weight += [old[2 * row], old[2 * row + 1], column.weights[row]] }
        let bias = try #require(model.parameters["head.bias"])
        expectBitwiseEqual("head.weight", result, weight)
        expectBitwiseEqual("head.bias", result, bias + [column.bias])
    }

    @Test("A personalization of a logo detector changes the head per logo, not per label") func detector() throws {
        let model = try detectorModel()
        let columns = [Personalization.Column.sample("leaf", 128)]
        let result = try model.personalized(with: personalization(of: model, columns))
        // "leaf" is the first label, and the second logo.
        var weight = try #require(model.parameters["head.weight"])
        for row in 0..<128 { weight[row * 2 + 1] += columns[0].weights[row] }
        var bias = try #require(model.parameters["head.bias"])
        bias[1] += columns[0].bias
        expectBitwiseEqual("head.weight", result, weight)
        expectBitwiseEqual("head.bias", result, bias)
        #expect(result.detector == model.detector && result.labels == model.labels)
    }

    @Test("The product of the adapters is added to the weights", arguments: [1, 2, 7])
    func adapters(rank: Int) throws {
        let model = try tunableModel()
        let shapes = [("conv.weight", 18, 4), ("middle.weight", 4, 5)]
        let adapters = shapes.map { Personalization.LowRankAdapter.sample($0, rows: $1, columns: $2, rank: rank) }
        let column = Personalization.Column.sample("new", 5)
        for added in [[], ["new"]] {
            let result = try model.personalized(
                with: personalization(of: model, added.isEmpty ? [] : [column], added: added, adapters))
            for (part, (name, rows, columns)) in zip(adapters, shapes) {
                let old = try #require(model.parameters[name])
                let new = try #require(result.parameters[name])
                #expect(new.count == rows * columns)
                for row in 0..<rows {
                    for column in 0..<columns {
                        let product = (0..<rank).reduce(0.0) {
                            $0 + Double(part.left[row * rank + $1]) * Double(part.right[$1 * columns + column])
                        }
                        let expected = Double(old[row * columns + column]) + product
                        #expect(abs(Double(new[row * columns + column]) - expected) < 1e-6 * Double(rank + 1))
                    }
                }
                #expect(new != old)
            }
            for entry in model.parameters.layout.entries
            where entry.node != "head" && !shapes.contains(where: { $0.0 == entry.name }) {
                expectBitwiseEqual(entry.name, result, model.parameters[entry.name])
            }
        }
    }

    @Test(
        "An empty personalization gives a model that is bitwise identical to the base",
        arguments: Safetensors.Precision.allCases)
    func empty(precision: Safetensors.Precision) throws {
        for model in [try tunableModel(precision: precision), try detectorModel()] {
            let result = try model.personalized(with: personalization(of: model))
            #expect(result.network == model.network && result.labels == model.labels)
            for entry in model.parameters.layout.entries {
                expectBitwiseEqual(entry.name, result, model.parameters[entry.name])
            }
            #expect(try result.identity == model.identity)
        }
    }

    @Test(
        "The result does not depend on whether the base and the personalization were saved",
        arguments: Safetensors.Precision.allCases)
    func saved(precision: Safetensors.Precision) throws {
        try withTemporaryFolder { folder in
            let modelURL = folder.appending(path: "model.imprint")
            let personalizationURL = folder.appending(path: "me.imprint")
            let model = try tunableModel(precision: precision)
            let sample = try samplePersonalization(of: model)
            #expect(try model.write(to: modelURL) == sample.baseDigest)
            try sample.write(to: personalizationURL)
            let read = try ModelFile(contentsOf: modelURL)
            let result = try read.personalized(with: Personalization(contentsOf: personalizationURL))
            let unsaved = try read.personalized(with: sample)
            for entry in result.parameters.layout.entries {
                expectBitwiseEqual(entry.name, result, unsaved.parameters[entry.name])
            }
            // The result is a complete model: it can be saved, read and personalized again.
            let resultURL = folder.appending(path: "whole.imprint")
            let digest = try result.write(to: resultURL)
            let again = try ModelFile(contentsOf: resultURL)
            #expect(again.labels == model.labels + ["\"new\""] && again.baseDigest == sample.baseDigest)
            #expect(try again.personalized(with: personalization(of: again, base: digest)).baseDigest == digest)
        }
    }

    @Test("A personalization of another model is rejected with its path and both digests") func otherBase() throws {
        try withTemporaryFolder { folder in
            let personalizationURL = folder.appending(path: "me.imprint")
            let model = try tunableModel()
            try samplePersonalization(of: model).write(to: personalizationURL)
            let other = try tunableModel(channels: 6)
            let read = try Personalization(contentsOf: personalizationURL)
            let error = #expect(throws: ModelFileError.self) { try other.personalized(with: read) }
            let (found, expected) = (try model.identity, try other.identity)
            #expect(
                error
                    == ModelFileError(
                        path: personalizationURL.path, problem: .otherBase(found: found, expected: expected)))
            let text = error?.description ?? ""
            #expect(
                text.hasPrefix(personalizationURL.path) && text.contains(found.prefix(16))
                    && text.contains(expected.prefix(16)))
            #expect(throws: ModelFileError.self) { try other.personalized(with: personalization(of: other, base: "")) }
        }
    }

    @Test("A personalization that does not fit the model is rejected with its reason") func misfits() throws {
        let model = try tunableModel()
        typealias LowRankAdapter = Personalization.LowRankAdapter
        let cat = Personalization.Column.sample("cat", 5)
        func adapting(_ name: String, _ left: Int, _ right: Int, rank: Int) throws -> Personalization {
            let adapter = LowRankAdapter(
                parameter: name, left: sampleValues(left, "left"), right: sampleValues(right, "right"), rank: rank)
            return try personalization(of: model, [], [adapter])
        }
        let cases: [(Personalization, String)] = [
            (
                try personalization(of: model, [cat], added: ["cat"]),
                "it adds the label \"cat\", which the model already has"
            ),
            (try personalization(of: model, [.sample("bird", 5)]), "a column for \"bird\", which is not a label"),
            (try personalization(of: model, [.sample("cat", 4)]), "a column of 4 weights for features of 5"),
            (try personalization(of: model, [.sample("cat", 6)]), "a column of 6 weights for features of 5"),
            (try personalization(of: model, [.sample("cat", 0)]), "a column of 0 weights for features of 5"),
            (
                try personalization(of: model, [.sample("new", 4)], added: ["new"]),
                "a column of 4 weights for features of 5"
            ),
            (try personalization(of: model, [cat, cat]), "a label twice"),
            (try personalization(of: model, [cat, .sample("dog", 4)]), "columns of different lengths"),
            (try personalization(of: model, [cat], added: ["new"]), "an added label without a column"),
            (try adapting("conv.weights", 18, 4, rank: 1), "an adapter of conv.weights, whose shape is unknown"),
            (try adapting("", 18, 4, rank: 1), "an adapter of , whose shape is unknown"),
            (try adapting("conv.bias", 1, 4, rank: 1), "an adapter of conv.bias, whose shape is [4]"),
            (try adapting("norm.scale", 1, 4, rank: 1), "an adapter of norm.scale, whose shape is [4]"),
            (try adapting("conv.weight", 17, 4, rank: 1), "an adapter of conv.weight, whose shape is [2, 3, 3, 4]"),
            (try adapting("conv.weight", 18, 5, rank: 1), "an adapter of conv.weight, whose shape is [2, 3, 3, 4]"),
            (try adapting("conv.weight", 18, 4, rank: 2), "an adapter of conv.weight, whose shape is [2, 3, 3, 4]"),
            (try adapting("middle.weight", 5, 4, rank: 1), "an adapter of middle.weight, whose shape is [4, 5]"),
            (try adapting("middle.weight", 0, 0, rank: 1), "an adapter of middle.weight"),
            (try adapting("middle.weight", 0, 0, rank: .max), "an adapter of middle.weight"),
            (try adapting("head.weight", 5, 3, rank: 1), "an adapter of head.weight, which is the head"),
        ]
        for (personalization, text) in cases {
            let error = #expect(throws: ModelFileError.self) { try model.personalized(with: personalization) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
            #expect(error?.path == "the personalization")
        }
        let detector = try detectorModel()
        for (columns, added, text) in [
            ([.sample("other", 128)], ["other"], "it adds the label \"other\", which the model already has"),
            ([.sample("new", 127)], ["new"], "a column of 127 weights for features of 128"),
            ([.sample("other", 128)], [], "a column for \"other\", which is not a label"),
        ] as [([Personalization.Column], [String], String)] {
            let error = #expect(throws: ModelFileError.self) {
                try detector.personalized(with: personalization(of: detector, columns, added: added))
            }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("A logo that is added to a detector follows its logos, and its logits are log-odds") func addedLogo() throws {
        let model = try detectorModel()
        let result = try model.personalized(with: personalization(of: model, [.sample("new", 128)], added: ["new"]))
        #expect(result.labels == ["leaf", "crest", "other", "new"])
        let logos = [DetectorHead.Logo(label: "crest"), .init(label: "leaf"), .init(label: "new", slope: 1, offset: 0)]
        #expect(result.detector?.logos == logos)
        let (old, new) = (try #require(model.parameters["head.weight"]), try #require(result.parameters["head.weight"]))
        let column = Personalization.Column.sample("new", 128)
        for channel in 0..<128 {
            #expect(
                Array(new[(3 * channel)..<(3 * channel + 3)]) == old[(2 * channel)..<(2 * channel + 2)] + [
                    column.weights[channel]
                ])
        }
        #expect(result.parameters["head.bias"] == (model.parameters["head.bias"] ?? []) + [column.bias])
    }

    @Test("A head that does not have one output per label rejects every personalization") func headOfOtherSize() throws
    {
        // Two layers compute the outputs, like the heat maps and the boxes of a detector.
        var builder = NetworkBuilder(name: "split", input: TensorShape(height: 2, width: 2, channels: 3))
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Convolution(outputChannels: 2, kernelSize: 1), named: "head")
        builder.add(Convolution(outputChannels: 1, kernelSize: 1), named: "rest", to: ["mean"])
        builder.add(Concat(), named: "output", to: ["head", "rest"])
        let network = try builder.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b", "c"],
            preprocessing: Preprocessing(width: 2, height: 2))
        for columns in [[], [.sample("c", 3)]] as [[Personalization.Column]] {
            let error = #expect(throws: ModelFileError.self) {
                try model.personalized(with: personalization(of: model, columns))
            }
            #expect(error?.description.contains("the model has a head with 2 outputs for 3 labels") == true)
        }
    }

    @Test("A model without a head rejects every personalization, even an empty one") func noHead() throws {
        var builder = NetworkBuilder(name: "headless", input: TensorShape(height: 2, width: 2, channels: 3))
        builder.add(GlobalAveragePool())
        let network = try builder.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b", "c"],
            preprocessing: Preprocessing(width: 2, height: 2))
        let error = #expect(throws: ModelFileError.self) { try model.personalized(with: personalization(of: model)) }
        #expect(error?.description.contains("no head to personalize") == true)
    }
}
