import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// `imprint inspect --card` and the details of a model.
@Suite struct ModelCardTests {
    /// Returns a model with all facts that a card can contain.
    private func completeModel() throws -> ModelFile {
        var hyperparameters = ClassifierHyperparameters()
        hyperparameters.epochs = 7
        let record = TrainingRecord(
            .classifier(hyperparameters), dataDigest: String(repeating: "ab", count: 32),
            trainingImages: ["bright": 40, "dark": 50], validationImages: ["bright": 10, "dark": 10],
            trainableLayers: .head,
            history: [EpochMetrics(epoch: 1, loss: 0.5, accuracy: 0.99, validationAccuracy: 0.9, learningRate: 0.1)],
            precisionRecall: [
                "bright": [
                    .init(threshold: 0.2, precision: 0.5, recall: 1), .init(threshold: 0.8, precision: 1, recall: 0.75),
                ]
            ], thresholds: ["bright": 0.6],
            calibration: Calibration(temperature: 1.5, errorBefore: 0.2, errorAfter: 0.05, images: 20))
        let plain = try brightnessModel(
            labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2), training: record)
        var model = ModelFile(
            network: plain.network, parameters: plain.parameters, labels: plain.labels,
            preprocessing: plain.preprocessing,
            training: record, baseDigest: String(repeating: "cd", count: 32))
        model.details = ModelDetails(version: 4, license: "Apache-2.0", intendedUse: "Sorting photos by brightness.")
        return model
    }

    private func card(_ file: String, _ folder: URL) throws -> (text: String, component: [String: Any]) {
        let run = try imprint("inspect", file, "--card", folder: folder)
        try #require(run.status == 0, "\(run.errors)")
        let document = try #require(JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
        #expect(document["bomFormat"] as? String == "CycloneDX" && document["specVersion"] as? String == "1.6")
        let metadata = try #require(document["metadata"] as? [String: Any])
        let tools = try #require((metadata["tools"] as? [String: [[String: String]]])?["components"])
        #expect(tools.count == 1 && tools[0]["name"] == "Imprint" && tools[0]["type"] == "application")
        #expect("\(tools[0]["version"] ?? "")\n" == (try imprint("--version").output))
        return (run.output, try #require(metadata["component"] as? [String: Any]))
    }

    @Test("A card contains the facts of the model file") func content() throws {
        try withTemporaryFolder { folder in
            try completeModel().write(to: folder.appending(path: "m.imprint"))
            let component = try card("m.imprint", folder).component
            #expect(component["type"] as? String == "machine-learning-model")
            #expect(component["name"] as? String == "m" && component["version"] as? String == "4")
            #expect((component["licenses"] as? [[String: [String: String]]]) == [["license": ["id": "Apache-2.0"]]])
            let digest = try shell("sha256sum m.imprint", folder: folder).output.prefix(64)
            let hashes = component["hashes"] as? [[String: String]]
            #expect(hashes == [["alg": "SHA-256", "content": String(digest)]])
            let pedigree = try #require(component["pedigree"] as? [String: [[String: Any]]])
            #expect(pedigree["ancestors"]?.first?["name"] as? String == "base model")
            let card = try #require(component["modelCard"] as? [String: Any])
            let considerations = card["considerations"] as? [String: [String]]
            #expect(considerations == ["useCases": ["Sorting photos by brightness."]])
            let analysis = try #require(card["quantitativeAnalysis"] as? [String: [[String: Any]]])
            let metrics = try #require(analysis["performanceMetrics"])
            #expect(
                metrics.map { $0["type"] as? String } == [
                    "accuracy", "expected calibration error", "precision", "recall",
                ])
            #expect(metrics.map { $0["value"] as? String } == ["0.9000", "0.0500", "1.0000", "0.7500"])
            // Wilson's interval of 18 of 20 photos.
            let interval = metrics[0]["confidenceInterval"] as? [String: String]
            #expect(interval == ["lowerBound": "0.6990", "upperBound": "0.9721"])
            let properties = try #require(card["properties"] as? [[String: String]])
            let values = Dictionary(properties.map { ($0["name"] ?? "", $0["value"] ?? "") }) { first, _ in first }
            #expect(values["imprint:hyperparameters.epochs"] == "7" && values["imprint:quantization"] == "none")
            #expect(values["imprint:trainableLayers"] == "head" && values["imprint:storage"] == "float32")
            let parameters = try #require(card["modelParameters"] as? [String: Any])
            #expect(parameters["task"] as? String == "image-classification")
            let datasets = try #require(parameters["datasets"] as? [[String: Any]])
            #expect(datasets.map { $0["name"] as? String } == ["training set", "validation set"])
            // The same model gives the same card, on one line with --json.
            let line = try imprint("inspect", "m.imprint", "--card", "--json", folder: folder)
            #expect(line.lines.count == 1 && line.output.split(separator: "\n").count == 1)
        }
    }

    @Test("A card leaves out unknown facts") func unknown() throws {
        try withTemporaryFolder { folder in
            let model = try brightnessModel(labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2))
            try model.write(to: folder.appending(path: "m.imprint"))
            let component = try card("m.imprint", folder).component
            for key in ["version", "licenses", "pedigree"] { #expect(component[key] == nil) }
            let parts = try #require(component["modelCard"] as? [String: Any])
            #expect(parts.keys.sorted() == ["modelParameters", "properties"])
        }
    }

    @Test(
        "A training record with invalid counts or accuracies does not prevent a card",
        arguments: [
            (.max, 0.5), (.min, 0.5), (10, 2), (10, -.infinity), (10, .nan), (.max, .greatestFiniteMagnitude),
        ] as [(Int, Float)])
    func hostileRecord(count: Int, accuracy: Float) throws {
        let record = TrainingRecord(
            .classifier(ClassifierHyperparameters()), trainingImages: ["bright": count, "dark": count],
            validationImages: ["bright": count, "dark": count],
            history: [
                EpochMetrics(epoch: 1, loss: 0.5, accuracy: accuracy, validationAccuracy: accuracy, learningRate: 0.1)
            ])
        let model = try brightnessModel(
            labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2), training: record)
        let card = String(decoding: try ModelCard(model, name: "m").json(isPretty: false), as: UTF8.self)
        #expect(card.contains(#""type":"accuracy""#) == (accuracy == 0.5))
    }

    @Test(
        "The card of a detector names the logos of its composites",
        arguments: [Float(0.4), 0])
    func composites(share: Float) throws {
        let names = share > 0 ? ["composites of the artwork"] : nil
        let network = try Network.logoDetector(logos: 1)
        var hyperparameters = DetectorHyperparameters()
        hyperparameters.phases = [
            DetectorPhase(
                steps: 1, learningRate: 0.1, composites: share, hardNegatives: 0, background: 1 - share, mined: 0,
                located: 0)
        ]
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["leaf", "other"],
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill),
            detector: DetectorHead(levels: [96], stride: 16, span: 44, logos: [.init(label: "leaf")]),
            training: TrainingRecord(.detector(hyperparameters)))
        let json = try ModelCard(model, name: "m").json()
        let document = try #require(JSONSerialization.jsonObject(with: json) as? [String: Any])
        var value: Any? = document
        for key in ["metadata", "component", "modelCard", "modelParameters", "datasets"] {
            value = (value as? [String: Any])?[key]
        }
        let datasets = value as? [[String: Any]]
        #expect(datasets?.map { $0["name"] as? String } == names)
        #expect(String(decoding: json, as: UTF8.self).contains(#""name" : "imprint:logo""#) == (names != nil))
    }

    @Test(
        "A licence is an identifier, an expression, or a name",
        arguments: [
            ("MIT", "license.id"), ("Apache-2.0 OR MIT", "expression"),
            ("Apache-2.0 WITH LLVM-exception AND MIT", "expression"), ("Our own terms", "license.name"),
            ("apache-2.0", "license.name"), ("MIT OR", "license.name"), ("MIT WITH MIT", "license.name"),
            ("MIT OR Ours", "license.name"),
        ])
    func license(text: String, kind: String) throws {
        var model = try brightnessModel(labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2))
        model.details.license = text
        let json = String(decoding: try ModelCard(model, name: "m").json(isPretty: false), as: UTF8.self)
        let value =
            kind == "expression"
            ? "{\"expression\":\"\(text)\"}" : "{\"license\":{\"\(kind.dropFirst(8))\":\"\(text)\"}}"
        #expect(json.contains("\"licenses\":[\(value)]"), "\(json)")
    }

    @Test(
        "Cards are valid CycloneDX 1.6 documents",
        .enabled(if: ReferenceSigner.python != nil, Comment(rawValue: ReferenceSigner.skipReason)))
    func valid() throws {
        try withTemporaryFolder { folder in
            try completeModel().write(to: folder.appending(path: "complete.imprint"))
            try brightnessModel(labels: ["\u{1B}[2J", "b\u{202E}"], weights: alternatingWeights(1, labels: 2))
                .write(to: folder.appending(path: "plain.imprint"))
            try writeRandomDetector(logos: ["crest"], to: folder.appending(path: "detector.imprint"))
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            let trained = try shell(
                """
                $imprint train photos --output trained.imprint --epochs 1 --input-size 16 --validation 0.25 \
                --model-version 2 --license 'Apache-2.0 OR MIT' --intended-use 'Tests' &&
                $imprint export trained.imprint --to imprint --precision int8 --output small.imprint
                """, folder: folder)
            try #require(trained.status == 0, "\(trained.errors)")
            let program = """
                import sys
                from cyclonedx.schema import SchemaVersion
                from cyclonedx.validation.json import JsonStrictValidator
                error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
                sys.exit(repr(error) if error else 0)
                """
            for name in ["complete", "plain", "detector", "trained", "small", "built-in"] {
                let text = try card(name == "built-in" ? name : "\(name).imprint", folder).text
                try Data(text.utf8).write(to: folder.appending(path: "card.json"))
                let run = try ReferenceSigner.runPython(["-c", program, "card.json"], folder: folder)
                #expect(run.status == 0, "\(name): \(run.errors)")
            }
            let trainedCard = try card("small.imprint", folder).component
            #expect(trainedCard["version"] as? String == "2")
        }
    }

    @Test("--card is wrong usage with --plan and for a personalization") func usage() throws {
        let run = try imprint("inspect", "built-in", "--card", "--plan")
        #expect(
            run.status == 64 && run.errors.contains("Expected --card or --plan, found both. Leave out one"),
            "\(run.errors)")
        let file = "Tests/ImprintTests/Fixtures/Version1/classifier-personalization.imprint"
        let other = try imprint("inspect", packageFolder.appending(path: file).path, "--card")
        #expect(other.status == 64 && other.errors.contains("which has no model card"), "\(other.errors)")
    }
}
