import Foundation
import ImprintCore
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// The numbers of a model with a personalization applied, and personalizations that do not fit.
@Suite struct AppliedPersonalizationTests {
    private func of(
        _ weights: ModelFile, _ columns: [Personalization.Column] = [], added: [String] = [],
        _ factors: [Personalization.Factors] = [], base: String? = nil
    ) throws -> Personalization {
        Personalization(
            base: try base ?? weights.identity, addedLabels: added, columns: columns, factors: factors,
            record: .init(examples: [:]))
    }

    private func expectSame(
        _ name: String, _ found: ModelFile, _ expected: [Float]?, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(
            found.parameters[name]?.map(\.bitPattern) == expected?.map(\.bitPattern), "\(name)",
            sourceLocation: sourceLocation)
    }

    @Test(
        "Columns are added to the head's columns of their labels, and added labels get further ones",
        arguments: [
            (["cat"], []), (["é 😀", "dog"], []), (["new"], ["new"]), (["b", "dog", "a", "cat"], ["a", "b"]),
        ] as [([String], [String])], [true, false])
    func columns(_ example: (labels: [String], added: [String]), hasBias: Bool) throws {
        for channels in [1, 5] {
            let weights = try tunableWeights(channels: channels, hasBias: hasBias)
            let columns = example.labels.map { Personalization.Column.sample($0, channels, hasBias: hasBias) }
            let result = try weights.personalized(with: of(weights, columns, added: example.added))
            let labels = weights.labels + example.added
            #expect(try result.base == weights.identity)
            #expect(result.labels == labels)
            #expect(result.network.output.channels == labels.count && result.precision == weights.precision)
            let (old, new) = (weights.parameters, result.parameters)
            let (oldWeight, oldBias) = (try #require(old["head.weight"]), old["head.bias"] ?? [0, 0, 0])
            var weight: [Float] = []
            var bias: [Float] = []
            for (place, label) in labels.enumerated() {
                let column = columns.first { $0.label == label }
                bias.append((place < 3 ? oldBias[place] : 0) + (column?.bias ?? 0))
            }
            for row in 0..<channels {
                for (place, label) in labels.enumerated() {
                    let own: Float = place < 3 ? oldWeight[row * 3 + place] : 0
                    let column = columns.first { $0.label == label }
                    weight.append(own + (column?.weights[row] ?? 0))
                }
            }
            #expect(new["head.weight"] == weight)
            #expect(new["head.bias"] == (hasBias ? bias : nil))
            for entry in old.layout.entries where entry.node != "head" {
                expectSame(entry.name, result, old[entry.name])
            }
        }
    }

    @Test("A head that is a convolution of one pixel is tuned and widened as a dense one") func convolutionHead() throws
    {
        var builder = NetworkBuilder(name: "convolutional", input: TensorShape(height: 3, width: 3, channels: 3))
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Convolution(outputChannels: 2, kernelSize: 1), named: "head")
        let network = try builder.network()
        let weights = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 3, height: 3))
        let column = Personalization.Column.sample("new", 3)
        let result = try weights.personalized(with: of(weights, [column], added: ["new"]))
        let old = try #require(weights.parameters["head.weight"])
        var weight: [Float] = []
        for row in 0..<3 { weight += [old[2 * row], old[2 * row + 1], column.weights[row]] }
        let bias = try #require(weights.parameters["head.bias"])
        expectSame("head.weight", result, weight)
        expectSame("head.bias", result, bias + [column.bias])
    }

    @Test("A personalization of a logo detector changes the head per logo, not per label") func detector() throws {
        let weights = try detectorWeights()
        let columns = [Personalization.Column.sample("leaf", 128)]
        let result = try weights.personalized(with: of(weights, columns))
        // "leaf" is the first label, and the second mark.
        var weight = try #require(weights.parameters["head.weight"])
        for row in 0..<128 { weight[row * 2 + 1] += columns[0].weights[row] }
        var bias = try #require(weights.parameters["head.bias"])
        bias[1] += columns[0].bias
        expectSame("head.weight", result, weight)
        expectSame("head.bias", result, bias)
        #expect(result.detector == weights.detector && result.labels == weights.labels)
    }

    @Test("Factors change weights by their product", arguments: [1, 2, 7])
    func factors(rank: Int) throws {
        let weights = try tunableWeights()
        let shapes = [("conv.weight", 18, 4), ("middle.weight", 4, 5)]
        let factors = shapes.map { Personalization.Factors.sample($0, rows: $1, columns: $2, rank: rank) }
        let column = Personalization.Column.sample("new", 5)
        for added in [[], ["new"]] {
            let result = try weights.personalized(
                with: of(weights, added.isEmpty ? [] : [column], added: added, factors))
            for (part, (name, rows, columns)) in zip(factors, shapes) {
                let old = try #require(weights.parameters[name])
                let new = try #require(result.parameters[name])
                #expect(new.count == rows * columns)
                for row in 0..<rows {
                    for place in 0..<columns {
                        let product = (0..<rank).reduce(0.0) {
                            $0 + Double(part.left[row * rank + $1]) * Double(part.right[$1 * columns + place])
                        }
                        let expected = Double(old[row * columns + place]) + product
                        #expect(abs(Double(new[row * columns + place]) - expected) < 1e-6 * Double(rank + 1))
                    }
                }
                #expect(new != old)
            }
            for entry in weights.parameters.layout.entries
            where entry.node != "head" && !shapes.contains(where: { $0.0 == entry.name }) {
                expectSame(entry.name, result, weights.parameters[entry.name])
            }
        }
    }

    @Test("An empty change gives the very bits of the base", arguments: Safetensors.Precision.allCases)
    func empty(precision: Safetensors.Precision) throws {
        for weights in [try tunableWeights(precision: precision), try detectorWeights()] {
            let result = try weights.personalized(with: of(weights))
            #expect(result.network == weights.network && result.labels == weights.labels)
            for entry in weights.parameters.layout.entries {
                expectSame(entry.name, result, weights.parameters[entry.name])
            }
            #expect(try result.identity == weights.identity)
        }
    }

    @Test(
        "What is applied does not depend on whether base and personalization were saved",
        arguments: Safetensors.Precision.allCases)
    func saved(precision: Safetensors.Precision) throws {
        try withTemporaryFolder { folder in
            let (model, mine) = (folder.appending(path: "model.imprint"), folder.appending(path: "me.imprint"))
            let weights = try tunableWeights(precision: precision)
            let sample = try samplePersonalization(of: weights)
            #expect(try weights.write(to: model) == sample.base)
            try sample.write(to: mine)
            let read = try ModelFile(contentsOf: model)
            let result = try read.personalized(with: Personalization(contentsOf: mine))
            let same = try read.personalized(with: sample)
            for entry in result.parameters.layout.entries {
                expectSame(entry.name, result, same.parameters[entry.name])
            }
            // It is a whole model: it can be saved, read, and personalized again.
            let whole = folder.appending(path: "whole.imprint")
            let digest = try result.write(to: whole)
            let again = try ModelFile(contentsOf: whole)
            #expect(again.labels == weights.labels + ["\"new\""] && again.base == sample.base)
            #expect(try again.personalized(with: of(again, base: digest)).base == digest)
        }
    }

    @Test("A personalization of another model is refused with its name and both digests") func otherBase() throws {
        try withTemporaryFolder { folder in
            let mine = folder.appending(path: "me.imprint")
            let weights = try tunableWeights()
            try samplePersonalization(of: weights).write(to: mine)
            let other = try tunableWeights(channels: 6)
            let read = try Personalization(contentsOf: mine)
            let error = #expect(throws: ModelFileError.self) { try other.personalized(with: read) }
            let (found, expected) = (try weights.identity, try other.identity)
            #expect(error == ModelFileError(path: mine.path, problem: .otherBase(found: found, expected: expected)))
            let text = error?.description ?? ""
            #expect(text.hasPrefix(mine.path) && text.contains(found.prefix(16)) && text.contains(expected.prefix(16)))
            #expect(throws: ModelFileError.self) { try other.personalized(with: of(other, base: "")) }
        }
    }

    @Test("What does not fit the model is refused, with what does not") func misfits() throws {
        let weights = try tunableWeights()
        typealias Factors = Personalization.Factors
        let cat = Personalization.Column.sample("cat", 5)
        func factors(_ name: String, _ left: Int, _ right: Int, rank: Int) throws -> Personalization {
            let factors = Factors(
                parameter: name, left: sampleValues(left, "left"), right: sampleValues(right, "right"), rank: rank)
            return try of(weights, [], [factors])
        }
        let cases: [(Personalization, String)] = [
            (try of(weights, [cat], added: ["cat"]), "it adds the label \"cat\", which is there"),
            (try of(weights, [.sample("bird", 5)]), "a column for \"bird\", which is no label"),
            (try of(weights, [.sample("cat", 4)]), "a column of 4 weights for features of 5"),
            (try of(weights, [.sample("cat", 6)]), "a column of 6 weights for features of 5"),
            (try of(weights, [.sample("cat", 0)]), "a column of 0 weights for features of 5"),
            (try of(weights, [.sample("new", 4)], added: ["new"]), "a column of 4 weights for features of 5"),
            (try of(weights, [cat, cat]), "a label twice"),
            (try of(weights, [cat, .sample("dog", 4)]), "columns of different lengths"),
            (try of(weights, [cat], added: ["new"]), "an added label without a column"),
            (try factors("conv.weights", 18, 4, rank: 1), "factors for conv.weights, whose shape is unknown"),
            (try factors("", 18, 4, rank: 1), "factors for , whose shape is unknown"),
            (try factors("conv.bias", 1, 4, rank: 1), "factors for conv.bias, whose shape is [4]"),
            (try factors("norm.scale", 1, 4, rank: 1), "factors for norm.scale, whose shape is [4]"),
            (try factors("conv.weight", 17, 4, rank: 1), "factors for conv.weight, whose shape is [2, 3, 3, 4]"),
            (try factors("conv.weight", 18, 5, rank: 1), "factors for conv.weight, whose shape is [2, 3, 3, 4]"),
            (try factors("conv.weight", 18, 4, rank: 2), "factors for conv.weight, whose shape is [2, 3, 3, 4]"),
            (try factors("middle.weight", 5, 4, rank: 1), "factors for middle.weight, whose shape is [4, 5]"),
            (try factors("middle.weight", 0, 0, rank: 1), "factors for middle.weight"),
            (try factors("middle.weight", 0, 0, rank: .max), "factors for middle.weight"),
            (try factors("head.weight", 5, 3, rank: 1), "factors for head.weight, which is the head"),
        ]
        for (personalization, text) in cases {
            let error = #expect(throws: ModelFileError.self) { try weights.personalized(with: personalization) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
            #expect(error?.path == "the personalization")
        }
        let detector = try detectorWeights()
        for (columns, added, text) in [
            ([.sample("new", 128)], ["new"], "it adds labels to a logo detector"),
            ([.sample("other", 128)], [], "a column for \"other\", which is no label"),
        ] as [([Personalization.Column], [String], String)] {
            let error = #expect(throws: ModelFileError.self) {
                try detector.personalized(with: of(detector, columns, added: added))
            }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("A model without a head takes no personalization, not even an empty one") func noHead() throws {
        var builder = NetworkBuilder(name: "headless", input: TensorShape(height: 2, width: 2, channels: 3))
        builder.add(GlobalAveragePool())
        let network = try builder.network()
        let weights = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b", "c"],
            preprocessing: Preprocessing(width: 2, height: 2))
        let error = #expect(throws: ModelFileError.self) { try weights.personalized(with: of(weights)) }
        #expect(error?.description.contains("no head that could be tuned") == true)
    }
}
