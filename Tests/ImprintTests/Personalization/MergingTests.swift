import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite("Merging personalizations") struct MergingTests {
    /// A base with a convolution "conv" before its head "head", of 3 channels and two labels.
    private func base(hasRehearsal: Bool = true) throws -> ModelFile {
        let network = try Network(
            name: "tiny", input: TensorShape(height: 2, width: 2, channels: 3),
            nodes: [
                Network.Node(
                    name: "conv", layer: Convolution(outputChannels: 3, kernelSize: 1), inputs: [Network.inputName]),
                Network.Node(name: "pool", layer: GlobalAveragePool(), inputs: ["conv"]),
                Network.Node(name: "head", layer: Dense(outputChannels: 2), inputs: ["pool"]),
            ])
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["cat", "dog"],
            preprocessing: Preprocessing(width: 2, height: 2, cropAndScale: .scaleFit),
            rehearsal: hasRehearsal ? Rehearsal(features: [1, 2, 3, 4, 5, 6], labels: [0, 1]) : nil)
    }

    /// What one person's photos add; numbers are exact in float16.
    private func personalization(
        _ columns: [String: (weights: [Float], bias: Float)], added: [String] = [],
        factors: [Personalization.Factors] = [], examples: [String: Int]
    ) throws -> Personalization {
        Personalization(
            base: try base().identity, addedLabels: added,
            columns: columns.sorted { $0.key < $1.key }.map {
                Personalization.Column(label: $0.key, weights: $0.value.weights, bias: $0.value.bias)
            }, factors: factors, record: Personalization.Record(examples: examples))
    }

    /// What was added to a parameter that both have in the same shape.
    private func change(_ name: String, _ merge: Merge) throws -> [Float] {
        let (before, after) = (try #require(base().parameters[name]), try #require(merge.weights.parameters[name]))
        return zip(after, before).map { $0 - $1 }
    }

    private func expectEqual(_ found: [Float], _ expected: [Float]) {
        #expect(found.count == expected.count && zip(found, expected).allSatisfy { abs($0 - $1) < 1e-6 }, "\(found)")
    }

    @Test("Columns are averaged by numbers of photos, and who has none counts with 0") func columns() throws {
        let merge = try base().merging([
            personalization(["cat": ([4, 0, 8], 1), "dog": ([0, 2, 0], -1)], examples: ["cat": 2, "dog": 1]),
            personalization(["cat": ([0, 4, 0], 3)], examples: ["cat": 4]),
            personalization(["dog": ([8, 8, 8], 8)], examples: [:]),  // counts as one photo
        ])
        expectEqual(try change("head.weight", merge), [12 / 8, 8 / 8, 16 / 8, 14 / 8, 24 / 8, 8 / 8])
        expectEqual(try change("head.bias", merge), [15 / 8, 5 / 8])
        #expect(try change("conv.weight", merge).allSatisfy { $0 == 0 })
        #expect(merge.users == 3 && merge.examples == 7 && merge.clipped == 0 && merge.privacy == nil)
        #expect(try merge.weights.base == base().identity && merge.weights.rehearsal == base().rehearsal)
        #expect(!merge.leavesOutRehearsal && merge.weights.labels == ["cat", "dog"])
    }

    @Test("Added labels come in the order of the people, each the mean of those who have it") func addedLabels() throws
    {
        let merge = try base().merging([
            personalization(
                ["dog": ([2, 2, 2], 2), "fox": ([4, 0, 0], 4)], added: ["fox"], examples: ["dog": 2, "fox": 3]),
            personalization(
                ["elk": ([1, 2, 3], 4), "fox": ([0, 8, 0], 0)], added: ["elk", "fox"], examples: ["elk": 1, "fox": 1]),
        ])
        #expect(merge.addedLabels == ["fox", "elk"] && merge.leftOutLabels.isEmpty)
        #expect(merge.weights.labels == ["cat", "dog", "fox", "elk"])
        let weight = try #require(merge.weights.parameters["head.weight"])
        let bias = try #require(merge.weights.parameters["head.bias"])
        let before = try #require(base().parameters["head.weight"])
        func column(_ place: Int, _ values: [Float], _ outputs: Int) -> [Float] {
            (0..<3).map { values[$0 * outputs + place] }
        }
        expectEqual(column(2, weight, 4), [3, 2, 0])
        expectEqual(column(3, weight, 4), [1, 2, 3])
        expectEqual(Array(bias[2...]), [3, 4])
        #expect(column(0, weight, 4) == column(0, before, 2))
        expectEqual(column(1, weight, 4), column(1, before, 2).map { $0 + 2 * 5 / 7 })
        let read = try withTemporaryFolder { folder in
            let file = folder.appending(path: "merged.imprint")
            try merge.weights.write(to: file)
            return try ModelFile(contentsOf: file)
        }
        #expect(read.labels == merge.weights.labels && read.rehearsal == merge.weights.rehearsal)
    }

    /// A·B = [1, 2, 0], [0, 0, 0], [2, 4, 0].
    private let factors = Personalization.Factors(
        parameter: "conv.weight", left: [1, 0, 2], right: [1, 2, 0], rank: 1)

    @Test("Of factors the products are averaged, and features that are no longer right are left out") func lowRank()
        throws
    {
        let merge = try base().merging([
            personalization([:], factors: [factors], examples: ["cat": 3]),
            personalization(["cat": ([4, 4, 4], 0)], examples: ["cat": 1]),
        ])
        expectEqual(try change("conv.weight", merge), [0.75, 1.5, 0, 0, 0, 0, 1.5, 3, 0])
        expectEqual(try change("head.weight", merge), [1, 0, 1, 0, 1, 0])
        #expect(merge.leavesOutRehearsal && merge.weights.rehearsal == nil)
        let other = try base(hasRehearsal: false)
        let mine = Personalization(
            base: try other.identity, addedLabels: [], columns: [], factors: [factors],
            record: Personalization.Record(examples: [:]))
        #expect(try !other.merging([mine]).leavesOutRehearsal)
    }

    @Test("One person merged alone gives the model personalized, bit for bit", arguments: [[], ["fox"]])
    func alone(added: [String]) throws {
        var stream = RandomStream(seed: 5, "column")
        let labels = ["cat", "dog"] + added
        let mine = try personalization(
            Dictionary(
                uniqueKeysWithValues: labels.map { ($0, ((0..<3).map { _ in stream.normal() }, stream.normal())) }),
            added: added, factors: [factors], examples: ["cat": 7, "fox": 3])
        let (merged, expected) = (try base().merging([mine]).weights, try base().personalized(with: mine))
        #expect(merged.network == expected.network && merged.labels == expected.labels)
        for entry in expected.parameters.layout.entries {
            #expect(merged.parameters[entry.name] == expected.parameters[entry.name], "\(entry.name)")
        }
    }

    @Test("A change that is too long is scaled down as a whole, a shorter one is not") func clipping() throws {
        // ‖change‖² = 4² + 4² + 2² of the head and 25 of the product.
        let long = try personalization(
            ["cat": ([4, 0, 4], 2), "fox": ([100, 0, 0], 0)], added: ["fox"], factors: [factors], examples: ["cat": 1])
        let short = try personalization(["cat": ([0.5, 0, 0], 0)], examples: ["cat": 1])
        let merge = try base().merging([long, short], options: MergeOptions(clip: 2))
        let scale = 2 / Float(61).squareRoot()
        #expect(merge.clipped == 1)
        expectEqual(try change("conv.weight", merge), factors.product.map { $0 * scale / 2 })
        let (before, after) = (try #require(base().parameters["head.weight"]), merge.weights.parameters["head.weight"])
        #expect(abs(try #require(after)[0] - before[0] - (4 * scale + 0.5) / 2) < 1e-6)
        let alone = try base().merging(
            [personalization(["cat": ([30, 40, 0], 0)], examples: ["cat": 9])], options: MergeOptions(clip: 0.5))
        let norm = try (change("head.weight", alone) + change("head.bias", alone)).reduce(0) { $0 + $1 * $1 }
        #expect(abs(norm.squareRoot() - 0.5) < 1e-6)
    }

    @Test("Noise has the deviation that is announced, and counts no person more than the median") func noise() throws {
        let people = try [
            personalization(["cat": ([0, 0, 0], 1), "fox": ([1, 1, 1], 1)], added: ["fox"], examples: ["cat": 1]),
            personalization(["cat": ([0, 0, 0], 1)], factors: [factors], examples: ["cat": 4]),
            personalization(["cat": ([0, 0, 0], 1)], examples: ["cat": 40]),
        ]
        var found: [Float] = []
        var biases: [Float] = []
        for seed in 0..<400 as Range<UInt64> {
            let merge = try base().merging(people, options: MergeOptions(clip: 1, noise: 0.5, seed: seed))
            let privacy = try #require(merge.privacy)
            // Σ wᵢ = 1/4 + 1 + 1.
            #expect(abs(privacy.deviation - 0.5 / 2.25) < 1e-9 && privacy.delta == 1e-5)
            #expect(abs(privacy.epsilon - 9.9972561464343) < 1e-6)
            #expect(merge.leftOutLabels == ["fox"] && merge.addedLabels.isEmpty && merge.weights.labels.count == 2)
            #expect(merge.leavesOutRehearsal && merge.clipped == 1)
            let clipped = factors.product.map { $0 / Float(26).squareRoot() / 2.25 }
            found += try change("head.weight", merge) + zip(change("conv.weight", merge), clipped).map { $0 - $1 }
            biases.append(try change("head.bias", merge)[0])
            #expect(try change("conv.bias", merge).allSatisfy { $0 == 0 })
        }
        let deviation = (found.reduce(0) { $0 + $1 * $1 } / Float(found.count)).squareRoot()
        // Five deviations of the deviation of 400 · 15 numbers.
        #expect(abs(deviation / (0.5 / 2.25) - 1) < 5 / Float(2 * found.count).squareRoot(), "\(deviation)")
        let mean = biases.reduce(0, +) / 400
        let expected = (0.25 + 1 / Float(26).squareRoot() + 1) / 2.25
        #expect(abs(mean - expected) < 5 * 0.5 / 2.25 / 20, "\(mean), expected \(expected)")
    }

    @Test("The same seed gives the same bits, another seed or none other ones") func seeds() throws {
        let mine = try personalization(["cat": ([1, 2, 3], 1)], examples: ["cat": 1])
        func weights(_ seed: UInt64?) throws -> [Float]? {
            try base().merging([mine], options: MergeOptions(clip: 1, noise: 1, seed: seed))
                .weights.parameters["head.weight"]
        }
        #expect(try weights(7) == weights(7))
        #expect(try weights(7) != weights(8))
        #expect(try weights(nil) != weights(nil))
    }

    @Test("A personalization of another base is refused by the name of its file") func wrongBase() throws {
        let mine = try personalization(["cat": ([1, 2, 3], 1)], examples: ["cat": 1])
        let other = Personalization(
            base: SHA256.hexadecimal(of: [1]), addedLabels: [], columns: mine.columns, record: mine.record)
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "other.imprint")
            try other.write(to: file)
            let read = try Personalization(contentsOf: file)
            let own = try base().identity
            #expect(
                throws: ModelFileError(path: file.path, problem: .otherBase(found: other.base, expected: own))
            ) { try base().merging([mine, read]) }
        }
    }

    @Test("A copy of a personalization is refused, also under another name and with another record") func copies()
        throws
    {
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
        #expect(try base().merging([mine, other]).users == 2)
    }

    @Test(
        "Settings outside their ranges are refused",
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
            throws: ImprintError.invalidSetting(name: "personalizations", found: "none", expected: "one at least")
        ) { try base().merging([]) }
    }
}
