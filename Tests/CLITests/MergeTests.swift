import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite struct MergeTests {
    /// Writes an untrained base model, and personalizations that each add one label.
    private func writeFiles(to folder: URL) throws {
        let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.1)
        let base = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["bright", "dark"],
            preprocessing: Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit))
        let digest = try base.write(to: folder.appending(path: "base.imprint"))
        let channels = try #require(network.headChannels)
        let files = [
            ("one", "one", digest), ("two", "two", digest), ("similar", "One ", digest),
            ("foreign", "foreign", String(repeating: "0", count: 64)),
        ]
        for (name, label, baseDigest) in files {
            try Personalization(
                baseDigest: baseDigest, addedLabels: [label],
                columns: ["dark", label].map {
                    Personalization.Column(label: $0, weights: [Float](repeating: 0.5, count: channels), bias: 1)
                },
                record: Personalization.Record(examples: ["dark": 3, label: 1])
            ).write(to: folder.appending(path: "\(name).delta"))
        }
        try FileManager.default.copyItem(
            at: folder.appending(path: "one.delta"), to: folder.appending(path: "copy.delta"))
    }

    @Test("merge writes a merged model, and reports the result as text and JSON") func merge() throws {
        try withTemporaryFolder { folder in
            try writeFiles(to: folder)
            let text = try imprint(
                "merge", "base.imprint", "one.delta", "two.delta", "--output", "plain.imprint", folder: folder)
            #expect(text.status == 0 && text.output.isEmpty, "\(text.errors)")
            #expect(text.errors.contains("2 users, learned from 8 photos. Wrote plain.imprint."), "\(text.errors)")
            #expect(text.errors.contains("New labels: one, two."))
            let plain = try ModelFile(contentsOf: folder.appending(path: "plain.imprint"))
            let base = try ModelFile(contentsOf: folder.appending(path: "base.imprint"))
            #expect(plain.labels == ["bright", "dark", "one", "two"] && plain.baseDigest == base.digest)

            let noisy = try imprint(
                "merge", "base.imprint", "one.delta", "two.delta", "--output", "noisy.imprint", "--clip", "0.5",
                "--noise",
                "1", "--json", folder: folder)
            let line = try #require(noisy.lines.first, "\(noisy.errors)")
            #expect(
                line.keys.sorted() == [
                    "added", "clipped", "delta", "epsilon", "event", "examples", "keepsNovelty", "keepsRehearsal",
                    "leftOut", "output", "users",
                ])
            #expect(line["leftOut"] as? [String] == ["one", "two"] && line["added"] as? [String] == [])
            #expect(line["users"] as? Int == 2 && line["examples"] as? Int == 8 && line["clipped"] as? Int == 2)
            #expect(abs(try #require(line["epsilon"] as? Double) - 4.3771780956812) < 1e-6)
            #expect(line["delta"] as? Double == 1e-5 && line["keepsRehearsal"] as? Bool == false)
            #expect(try ModelFile(contentsOf: folder.appending(path: "noisy.imprint")).labels == base.labels)
        }
    }

    @Test("inspect and the model card state that the training record of a merged model is that of its base model")
    func trainingRecord() throws {
        try withTemporaryFolder { folder in
            let record = TrainingRecord(
                .classifier(ClassifierHyperparameters()), trainingImages: ["bright": 40, "dark": 50],
                validationImages: ["bright": 10, "dark": 10],
                history: [
                    EpochMetrics(epoch: 1, loss: 0.5, accuracy: 0.99, validationAccuracy: 0.9, learningRate: 0.1)
                ])
            let digest = try brightnessModel(
                labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2), training: record
            ).write(to: folder.appending(path: "base.imprint"))
            try Personalization(
                baseDigest: digest, addedLabels: [],
                columns: [Personalization.Column(label: "dark", weights: [0.5, 0.5, 0.5], bias: 1)],
                record: Personalization.Record(examples: ["dark": 3])
            ).write(to: folder.appending(path: "one.delta"))
            let merge = try imprint(
                "merge", "base.imprint", "one.delta", "--output", "m.imprint", "--quiet", folder: folder)
            #expect(merge.status == 0, "\(merge.errors)")
            for (name, owner) in [("base", ""), ("m", "of the base model: ")] {
                let text = try imprint("inspect", "\(name).imprint", folder: folder).output
                #expect(text.contains("training     \(owner)90 photos, 1 epoch, seed "), "\(text)")
                #expect(text.contains("accuracy 90.0 % on the validation photos\n"), "\(text)")
                let isBase = owner.isEmpty
                let line = try #require(
                    try imprint("inspect", "\(name).imprint", "--json", folder: folder).lines.first)
                let training = try #require(line["training"] as? [String: Any])
                #expect(training["trainedModel"] as? String == (isBase ? nil : digest))
                let card = try imprint("inspect", "\(name).imprint", "--card", folder: folder).output
                #expect(card.contains("quantitativeAnalysis") == isBase)
                #expect(card.contains("imprint:trainedModel") == !isBase)
            }
        }
    }

    @Test("Similar labels of different users give a warning") func similarLabels() throws {
        try withTemporaryFolder { folder in
            try writeFiles(to: folder)
            let run = try imprint(
                "merge", "base.imprint", "one.delta", "similar.delta", "--output", "m", folder: folder)
            #expect(
                run.status == 0
                    && run.errors.contains(
                        "The labels \"one\" and \"One \" differ only in case, spaces, hyphens, underscores or Unicode form."
                    ),
                "\(run.errors)")
        }
    }

    @Test("The output with ε states that each file must be from a different user") func precondition() throws {
        try withTemporaryFolder { folder in
            try writeFiles(to: folder)
            let run = try imprint(
                "merge", "base.imprint", "one.delta", "two.delta", "--output", "m", "--clip", "0.5", "--noise", "1",
                folder: folder)
            #expect(run.status == 0 && run.errors.contains("ε = 4.377"), "\(run.errors)")
            #expect(run.errors.contains("requires that each file is from a different user"), "\(run.errors)")
        }
    }

    @Test(
        "Invalid files and options are errors, and no file is written",
        arguments: [
            (
                "base.imprint one.delta foreign.delta --output m", 1,
                "foreign.delta: the file was made for another model"
            ),
            ("one.delta two.delta --output m", 1, "is a personalization, not a model"),
            ("base.imprint one.delta --output nowhere/m", 1, "nowhere"),
            ("base.imprint one.delta --output ./one.delta", 64, "--output: ./one.delta: the file is a file to merge"),
            ("base.imprint one.delta --output base.imprint", 64, "--output: base.imprint: the file is the model"),
            ("base.imprint one.delta ./one.delta --output m", 64, "./one.delta is given twice"),
            (
                "base.imprint one.delta two.delta copy.delta --output m", 1,
                "copy.delta: the file holds the same changes as"
            ),
            ("base.imprint one.delta --output m --noise 1", 64, "Add --clip"),
            ("base.imprint one.delta --output m --seed 1", 64, "Add --noise"),
            ("base.imprint one.delta --output m --delta 1e-6", 64, "--delta sets the δ for which ε is printed"),
            ("base.imprint one.delta --output m --clip 1 --delta 1e-6", 64, "Add --noise"),
            ("base.imprint one.delta --output m --delta 2", 64, "--delta is 2, expected more than 0 and less than 1"),
            ("base.imprint one.delta --output m --clip 0", 64, "--clip is 0, expected more than 0"),
            ("base.imprint one.delta --output m --clip 1 --noise 0", 64, "--noise is 0, expected 0.001 to 1000000"),
        ])
    func refusals(arguments: String, status: Int32, message: String) throws {
        try withTemporaryFolder { folder in
            try writeFiles(to: folder)
            let before = try Data(contentsOf: folder.appending(path: "one.delta"))
            let run = try shell("$imprint merge \(arguments)", folder: folder)
            #expect(run.status == status && run.errors.contains(message), "\(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "m").path))
            #expect(try Data(contentsOf: folder.appending(path: "one.delta")) == before)
        }
    }
}
