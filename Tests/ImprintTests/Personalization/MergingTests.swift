import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite("Merging personalizations") struct MergingTests {
    /// Returns a base with a convolution "conv" of 3 channels and a dense head "head" of two labels.
    private func base(hasRehearsal: Bool = true) throws -> ModelFile {
        let network = try Network(
            name: "tiny", input: TensorShape(height: 2, width: 2, channels: 3),
            nodes: [
                Network.Node(
                    name: "conv", layer: Convolution(outputChannels: 3, kernelSize: 1), inputs: [Network.inputName]),
                Network.Node(name: "pool", layer: GlobalAveragePool(), inputs: ["conv"]),
                Network.Node(name: "head", layer: Dense(outputChannels: 2), inputs: ["pool"]),
            ])
        var model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["cat", "dog"],
            preprocessing: Preprocessing(width: 2, height: 2, cropAndScale: .scaleFit),
            rehearsal: hasRehearsal ? Rehearsal(features: [1, 2, 3, 4, 5, 6], labels: [0, 1]) : nil)
        model.noveltyRule = NoveltyRule(labels: [0, 1], means: [1, 0, 0, 0, 1, 0], threshold: 0.25, images: 20)
        return model
    }

    /// Returns the personalization of one user; all values are exact in float16.
    private func personalization(
        _ columns: [String: (weights: [Float], bias: Float)], added: [String] = [],
        adapters: [Personalization.LowRankAdapter] = [], examples: [String: Int]
    ) throws -> Personalization {
        Personalization(
            baseDigest: try base().identity, addedLabels: added,
            columns: columns.sorted { $0.key < $1.key }.map {
                Personalization.Column(label: $0.key, weights: $0.value.weights, bias: $0.value.bias)
            }, adapters: adapters, record: Personalization.Record(examples: examples))
    }

    /// Returns the change to a parameter that has the same shape in the base and the merged model.
    private func change(_ name: String, _ merge: MergeResult) throws -> [Float] {
        let (before, after) = (try #require(base().parameters[name]), try #require(merge.model.parameters[name]))
        return zip(after, before).map { $0 - $1 }
    }

    private func expectEqual(_ found: [Float], _ expected: [Float]) {
        #expect(found.count == expected.count && zip(found, expected).allSatisfy { abs($0 - $1) < 1e-6 }, "\(found)")
    }

    @Test("Columns are averaged with the photo counts as weights; a missing column counts as 0")
    func columns() throws {
        let merge = try base().merging([
            personalization(["cat": ([4, 0, 8], 1), "dog": ([0, 2, 0], -1)], examples: ["cat": 2, "dog": 1]),
            personalization(["cat": ([0, 4, 0], 3)], examples: ["cat": 4]),
            personalization(["dog": ([8, 8, 8], 8)], examples: [:]),  // counts as one photo
        ])
        expectEqual(try change("head.weight", merge), [12 / 8, 8 / 8, 16 / 8, 14 / 8, 24 / 8, 8 / 8])
        expectEqual(try change("head.bias", merge), [15 / 8, 5 / 8])
        #expect(try change("conv.weight", merge).allSatisfy { $0 == 0 })
        #expect(merge.userCount == 3 && merge.exampleCount == 7 && merge.clippedCount == 0 && merge.privacy == nil)
        #expect(try merge.model.baseDigest == base().identity && merge.model.rehearsal == base().rehearsal)
        #expect(!merge.omitsRehearsal && !merge.omitsNovelty && merge.model.labels == ["cat", "dog"])
        let rule = try base().noveltyRule
        #expect(rule != nil && merge.model.noveltyRule == rule)
    }

    @Test("Added labels are in the order of the users, and averaged over the users who have them")
    func addedLabels() throws {
        let merge = try base().merging([
            personalization(
                ["dog": ([2, 2, 2], 2), "fox": ([4, 0, 0], 4)], added: ["fox"], examples: ["dog": 2, "fox": 3]),
            personalization(
                ["elk": ([1, 2, 3], 4), "fox": ([0, 8, 0], 0)], added: ["elk", "fox"], examples: ["elk": 1, "fox": 1]),
        ])
        #expect(merge.addedLabels == ["fox", "elk"] && merge.omittedLabels.isEmpty)
        #expect(merge.model.labels == ["cat", "dog", "fox", "elk"])
        let weight = try #require(merge.model.parameters["head.weight"])
        let bias = try #require(merge.model.parameters["head.bias"])
        let before = try #require(base().parameters["head.weight"])
        func column(_ index: Int, _ values: [Float], _ outputs: Int) -> [Float] {
            (0..<3).map { values[$0 * outputs + index] }
        }
        expectEqual(column(2, weight, 4), [3, 2, 0])
        expectEqual(column(3, weight, 4), [1, 2, 3])
        expectEqual(Array(bias[2...]), [3, 4])
        #expect(column(0, weight, 4) == column(0, before, 2))
        expectEqual(column(1, weight, 4), column(1, before, 2).map { $0 + 2 * 5 / 7 })
        let read = try withTemporaryFolder { folder in
            let file = folder.appending(path: "merged.imprint")
            try merge.model.write(to: file)
            return try ModelFile(contentsOf: file)
        }
        #expect(read.labels == merge.model.labels && read.rehearsal == merge.model.rehearsal)
    }

    /// A low-rank adapter with the product [1, 2, 0], [0, 0, 0], [2, 4, 0].
    private let adapter = Personalization.LowRankAdapter(
        parameter: "conv.weight", left: [1, 0, 2], right: [1, 2, 0], rank: 1)

    @Test("The products of low-rank adapters are averaged; rehearsal features and the novelty rule are omitted")
    func lowRank() throws {
        let merge = try base().merging([
            personalization([:], adapters: [adapter], examples: ["cat": 3]),
            personalization(["cat": ([4, 4, 4], 0)], examples: ["cat": 1]),
        ])
        expectEqual(try change("conv.weight", merge), [0.75, 1.5, 0, 0, 0, 0, 1.5, 3, 0])
        expectEqual(try change("head.weight", merge), [1, 0, 1, 0, 1, 0])
        #expect(merge.omitsRehearsal && merge.model.rehearsal == nil)
        #expect(merge.omitsNovelty && merge.model.noveltyRule == nil)
        let other = try base(hasRehearsal: false)
        let mine = Personalization(
            baseDigest: try other.identity, addedLabels: [], columns: [], adapters: [adapter],
            record: Personalization.Record(examples: [:]))
        #expect(try !other.merging([mine]).omitsRehearsal)
    }

    @Test(
        "Merging a single personalization is bitwise identical to applying it", arguments: [[], ["fox"]],
        [false, true])
    func single(added: [String], changesFeatures: Bool) throws {
        var stream = RandomStream(seed: 5, "column")
        let labels = ["cat", "dog"] + added
        let mine = try personalization(
            Dictionary(
                uniqueKeysWithValues: labels.map { ($0, ((0..<3).map { _ in stream.normal() }, stream.normal())) }),
            added: added, adapters: changesFeatures ? [adapter] : [], examples: ["cat": 7, "fox": 3])
        let (merged, expected) = (try base().merging([mine]).model, try base().personalized(with: mine))
        #expect(merged.network == expected.network && merged.labels == expected.labels)
        #expect(merged.noveltyRule == expected.noveltyRule && (merged.noveltyRule == nil) == changesFeatures)
        for entry in expected.parameters.layout.entries {
            #expect(merged.parameters[entry.name] == expected.parameters[entry.name], "\(entry.name)")
        }
    }

    @Test("The training record names the model that was trained, also after another merge")
    func trainingRecord() throws {
        let plain = try base()
        let record = TrainingRecord(.classifier(ClassifierHyperparameters()), trainingImages: ["cat": 2])
        let trained = ModelFile(
            network: plain.network, parameters: plain.parameters, labels: plain.labels,
            preprocessing: plain.preprocessing, training: record)
        func mine(_ base: String) -> Personalization {
            Personalization(
                baseDigest: base, addedLabels: [],
                columns: [Personalization.Column(label: "cat", weights: [1, 0, 0], bias: 0)],
                record: Personalization.Record(examples: ["cat": 1]))
        }
        let digest = try trained.identity
        let merged = try trained.merging([mine(digest)]).model
        let again = try merged.merging([mine(merged.identity)]).model
        var expected = record
        expected.trainedModel = digest
        for model in [merged, again, try trained.personalized(with: mine(digest))] {
            #expect(model.training == expected)
        }
        #expect(again.baseDigest != digest && record.trainedModel == nil)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "merged.imprint")
            try again.write(to: file)
            #expect(try ModelFile(contentsOf: file).training == expected)
        }
    }

    @Test("A change whose norm exceeds the clip is scaled down as a whole, a smaller one is not")
    func clipping() throws {
        // ‖change‖² = 4² + 4² + 2² in the head + 25 in the product.
        let long = try personalization(
            ["cat": ([4, 0, 4], 2), "fox": ([100, 0, 0], 0)], added: ["fox"], adapters: [adapter], examples: ["cat": 1])
        let short = try personalization(["cat": ([0.5, 0, 0], 0)], examples: ["cat": 1])
        let merge = try base().merging([long, short], options: MergeOptions(clip: 2))
        let scale = 2 / Float(61).squareRoot()
        #expect(merge.clippedCount == 1)
        expectEqual(try change("conv.weight", merge), adapter.product.map { $0 * scale / 2 })
        let (before, after) = (try #require(base().parameters["head.weight"]), merge.model.parameters["head.weight"])
        #expect(abs(try #require(after)[0] - before[0] - (4 * scale + 0.5) / 2) < 1e-6)
        let single = try base().merging(
            [personalization(["cat": ([30, 40, 0], 0)], examples: ["cat": 9])], options: MergeOptions(clip: 0.5))
        let norm = try (change("head.weight", single) + change("head.bias", single)).reduce(0) { $0 + $1 * $1 }
        #expect(abs(norm.squareRoot() - 0.5) < 1e-6)
    }

    @Test("Noise has the reported standard deviation, and all users have the same weight")
    func noise() throws {
        let users = try [
            personalization(["cat": ([0, 0, 0], 1), "fox": ([1, 1, 1], 1)], added: ["fox"], examples: ["cat": 1]),
            personalization(["cat": ([0, 0, 0], 1)], adapters: [adapter], examples: ["cat": 4]),
            personalization(["cat": ([0, 0, 0], 1)], examples: ["cat": 40]),
        ]
        var found: [Float] = []
        var biases: [Float] = []
        for seed in 0..<400 as Range<UInt64> {
            let merge = try base().merging(users, options: MergeOptions(clip: 1, noise: 0.5, seed: seed))
            let privacy = try #require(merge.privacy)
            #expect(abs(privacy.standardDeviation - 0.5 / 3) < 1e-9 && privacy.delta == 1e-5)
            #expect(abs(privacy.epsilon - 9.9972561464343) < 1e-6)
            #expect(merge.omittedLabels == ["fox"] && merge.addedLabels.isEmpty && merge.model.labels.count == 2)
            #expect(merge.omitsRehearsal && merge.clippedCount == 1)
            let clipped = adapter.product.map { $0 / Float(26).squareRoot() / 3 }
            found += try change("head.weight", merge) + zip(change("conv.weight", merge), clipped).map { $0 - $1 }
            biases.append(try change("head.bias", merge)[0])
            #expect(try change("conv.bias", merge).allSatisfy { $0 == 0 })
        }
        let standardDeviation = (found.reduce(0) { $0 + $1 * $1 } / Float(found.count)).squareRoot()
        // Within five standard errors of the standard deviation of 400 · 15 values.
        #expect(
            abs(standardDeviation / (0.5 / 3) - 1) < 5 / Float(2 * found.count).squareRoot(), "\(standardDeviation)")
        let mean = biases.reduce(0, +) / 400
        let expected = (1 + 1 / Float(26).squareRoot() + 1) / 3
        let tolerance: Float = 5 * 0.5 / 3 / 20
        #expect(abs(mean - expected) < tolerance, "\(mean), expected \(expected)")
    }

    @Test(
        "With noise, a user changes the merged parameters by at most the clip divided by the number of users",
        arguments: [(1, 1), (1, 100), (100, 1)])
    func sensitivity(firstCount: Int, secondCount: Int) throws {
        let first = try personalization(["cat": ([0, 0, 0], 1)], examples: ["cat": firstCount])
        let second = try personalization(["cat": ([0, 0, 0], -1)], examples: ["cat": secondCount])
        let none = try personalization(["dog": ([0, 0, 0], 0)], examples: [:])
        func parameters(_ users: [Personalization]) throws -> [Float] {
            // The same noise, so that it does not affect the difference.
            let merge = try base().merging(users, options: MergeOptions(clip: 1, noise: 1, seed: 3))
            return try change("head.weight", merge) + change("head.bias", merge)
        }
        let difference = try zip(parameters([first, second]), parameters([first, none])).map { $0 - $1 }
        #expect(abs(difference.reduce(0) { $0 + $1 * $1 }.squareRoot() - 0.5) < 1e-5, "\(difference)")
    }

    @Test("The noise depends only on the seed, and differs in each merge without a seed") func seeds() throws {
        let mine = try personalization(["cat": ([1, 2, 3], 1)], examples: ["cat": 1])
        func weights(_ seed: UInt64?) throws -> [Float]? {
            try base().merging([mine], options: MergeOptions(clip: 1, noise: 1, seed: seed))
                .model.parameters["head.weight"]
        }
        #expect(try weights(7) == weights(7))
        #expect(try weights(7) != weights(8))
        #expect(try weights(nil) != weights(nil))
    }

    @Test("A personalization of another base is rejected with the name of its file") func wrongBase() throws {
        let mine = try personalization(["cat": ([1, 2, 3], 1)], examples: ["cat": 1])
        let other = Personalization(
            baseDigest: SHA256.hexadecimal(of: [1]), addedLabels: [], columns: mine.columns, record: mine.record)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "other.imprint")
            try other.write(to: file)
            let read = try Personalization(contentsOf: file)
            let expected = try base().identity
            #expect(
                throws: ModelFileError(
                    path: file.path, problem: .otherBase(found: other.baseDigest, expected: expected))
            ) { try base().merging([mine, read]) }
        }
    }

    @Test("A copy of a personalization is rejected, even with another file name or another record")
    func copies() throws {
        let mine = try personalization(["cat": ([1, 2, 3], 1)], examples: ["cat": 1])
        let other = try personalization(["cat": ([1, 2, 4], 1)], examples: ["cat": 1])
        let relabelled = try personalization(["cat": ([1, 2, 3], 1)], examples: ["cat": 20])
        try withTemporaryFolder { folder in
            let (first, second) = (folder.appending(path: "anna.imprint"), folder.appending(path: "ben.imprint"))
            try mine.write(to: first)
            try FileManager.default.copyItem(at: first, to: second)
            let files = try [first, second].map { try Personalization(contentsOf: $0) }
            #expect(throws: ModelFileError(path: second.path, problem: .copy(of: first.path))) {
                try base().merging([files[0], other, files[1]], options: MergeOptions(clip: 1, noise: 1))
            }
        }
        #expect(throws: ModelFileError(path: "personalization 3", problem: .copy(of: "personalization 1"))) {
            try base().merging([mine, other, relabelled])
        }
        #expect(try base().merging([mine, other]).userCount == 2)
    }

    @Test("A model whose head does not have one output per label cannot be personalized or merged")
    func headOfOtherSize() throws {
        // Two layers compute the outputs, like the heat maps and the boxes of a detector.
        let network = try Network(
            name: "split", input: TensorShape(height: 2, width: 2, channels: 3),
            nodes: [
                Network.Node(name: "pool", layer: GlobalAveragePool(), inputs: [Network.inputName]),
                Network.Node(name: "head", layer: Convolution(outputChannels: 2, kernelSize: 1), inputs: ["pool"]),
                Network.Node(name: "rest", layer: Convolution(outputChannels: 1, kernelSize: 1), inputs: ["pool"]),
                Network.Node(name: "output", layer: Concat(), inputs: ["head", "rest"]),
            ])
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["cat", "dog", "fox"],
            preprocessing: Preprocessing(width: 2, height: 2, cropAndScale: .scaleFit))
        let mine = Personalization(
            baseDigest: try model.identity, addedLabels: [],
            columns: [Personalization.Column(label: "fox", weights: [1, 2, 3], bias: 1)],
            record: Personalization.Record(examples: ["fox": 1]))
        let classifier = try ImageClassifier(model)
        #expect(throws: ModelFileError.self) { try model.merging([mine]) }
        #expect(throws: ModelFileError.self) { try classifier.personalized(with: mine) }
        #expect(throws: ImprintError.noHead(network: "split")) { try PersonalizationSession(classifier) }
    }

    @Test(
        "Settings out of range are rejected",
        arguments: [
            (MergeOptions(clip: 0), "clip"), (MergeOptions(clip: .infinity), "clip"), (MergeOptions(noise: 1), "clip"),
            (MergeOptions(clip: 1, noise: 0), "noise"), (MergeOptions(clip: 1, noise: .nan), "noise"),
            (MergeOptions(delta: 0), "delta"), (MergeOptions(delta: 1), "delta"),
        ])
    func settings(options: MergeOptions, name: String) throws {
        let mine = try personalization(["cat": ([1, 2, 3], 1)], examples: ["cat": 1])
        #expect {
            try base().merging([mine], options: options)
        } throws: { error in
            if case ImprintError.invalidSetting(name, _, _) = error { true } else { false }
        }
        #expect(
            throws: ImprintError.invalidSetting(name: "personalizations", found: "none", expected: "at least one")
        ) { try base().merging([]) }
    }
}
