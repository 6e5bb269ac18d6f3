import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@Suite("Report") struct ReportTests {
    private let awkward = "<b>&\"x\" 猫 قطة"

    /// Calls `body` with a model, its photos, and an evaluation in which the first `wrong` photos of each label are misclassified.
    private func withRun<Result>(
        wrong: Int, _ body: (ModelFile, Evaluation, ImageFolder) throws -> Result
    ) throws -> Result {
        try withImages(["left", "right", awkward], perLabel: 6) { folder in
            let model = try train(folder, quickTraining(epochs: 2) { $0.validation = .fraction(0.3) })
            let images = try ImageFolder(at: folder)
            var counts: [Int: Int] = [:]
            let results = images.items.map { item in
                counts[item.label, default: 0] += 1
                let isWrong = (counts[item.label] ?? 0) <= wrong
                var confidences: [Float] = [0.1, 0.1, 0.1]
                confidences[(item.label + (isWrong ? 1 : 0)) % 3] = 0.8
                return Evaluation.Result(url: item.url, label: item.label, confidences: confidences)
            }
            return try body(model, Evaluation(labels: model.labels, results: results, skipped: []), images)
        }
    }

    private func count(_ part: String, in html: String) -> Int { html.components(separatedBy: part).count - 1 }

    @Test("The report has all sections, escapes text and loads no other resources") func parts() throws {
        try withRun(wrong: 2) { model, evaluation, images in
            let report = Report(
                model, evaluation: .singleLabel(evaluation), audit: Audit(images, workers: Workers(1)),
                command: "imprint train \"a b\" --output <m>", remark: "Not <quite>.", seconds: 61, workers: Workers(2))
            let html = report.html
            let parts = ["curves", "confusion", "labels", "reliability", "mistakes", "photos", "settings", "repeat"]
            for part in parts {
                #expect(html.contains("<section id=\"\(part)\"") && html.contains("href=\"#\(part)\""), "\(part)")
            }
            #expect(html.contains("66.7\u{a0}%") && html.contains("of 18 photos"))
            #expect(html.contains("<dd>1:01</dd>"))
            #expect(
                html.contains("<pre>imprint train &quot;a b&quot; --output &lt;m&gt;</pre>\n<p>Not &lt;quite&gt;.</p>"))
            #expect(html.contains("&lt;b&gt;&amp;&quot;x&quot; 猫 قطة"))
            #expect(!html.contains("<b>&"))
            // Each mistake is shown as a photo and as a saliency map.
            #expect(count("<img src=\"data:image/jpeg;base64,", in: html) == 12)
            for word in ["<script", "http:", "https:", "url(", "@import"] { #expect(!html.contains(word), "\(word)") }
            try withTemporaryFolder { folder in
                let file = folder.appending(path: "r.html")
                try report.write(to: file)
                #expect(try String(contentsOf: file, encoding: .utf8) == html)
            }
        }
    }

    @Test("The caption of the curves names the thresholds that the rings show") func rings() throws {
        try withRun(wrong: 2) { model, evaluation, _ in
            // The thresholds come from the validation set, and the curves from the evaluated photos.
            let trained = Report(model, evaluation: .singleLabel(evaluation)).html
            #expect(model.training?.thresholds != nil && trained.contains("The ring is the threshold of the model."))
            let imported = ModelFile(
                network: model.network, parameters: model.parameters, labels: model.labels,
                preprocessing: model.preprocessing)
            let html = Report(imported, evaluation: .singleLabel(evaluation)).html
            #expect(html.contains("The ring is the threshold with the highest F1."))
        }
    }

    @Test("A report without an evaluation has only the sections of the model") func modelOnly() throws {
        try withRun(wrong: 0) { model, _, _ in
            let html = Report(model).html
            #expect(html.contains("<section id=\"curves\"") && html.contains(" of the validation set"))
            #expect(html.contains("95 % confidence interval"))
            #expect(!html.contains("The accuracy on other photos is unknown."))
            for part in ["confusion", "reliability", "mistakes", "repeat"] { #expect(!html.contains("\"\(part)\"")) }
            let untrained = ModelFile(
                network: model.network, parameters: model.parameters, labels: model.labels,
                preprocessing: model.preprocessing)
            #expect(Report(untrained).html.contains("<section id=\"settings\""))
            #expect(!Report(untrained).html.contains("class=\"score\""))
        }
    }

    @Test("The report of a personalized classifier has the labels that the personalization adds") func personalized()
        throws
    {
        let base = try leftOrRightClassifier()
        let channels = try #require(base.model.network.headChannels)
        let personalization = Personalization(
            baseDigest: try base.model.identity, addedLabels: ["mine"],
            columns: [Personalization.Column(label: "mine", weights: Array(repeating: 0.01, count: channels), bias: 0)],
            record: Personalization.Record(examples: ["mine": 1]))
        let classifier = try base.personalized(with: personalization)
        var photos = InMemorySource(labels: ["left", "mine"])
        for (number, label) in photos.labels.enumerated() { try photos.append(testImage(number), labels: [label]) }
        let evaluation = try classifier.evaluate(on: photos)
        #expect(
            try Report(classifier, evaluation: .singleLabel(evaluation)).html.contains("logonet: left, right, mine"))
        #expect(try Report(base).html == Report(base.model).html)
    }

    @Test("The accuracy on training photos has no confidence interval") func withoutValidation() throws {
        try withImages(perLabel: 6) { folder in
            let html = Report(try train(folder, quickTraining(epochs: 1))).html
            #expect(html.contains(" of the training set") && !html.contains("95 % confidence interval"))
            #expect(html.contains("The accuracy on other photos is unknown."))
        }
    }

    @Test("The head of a multi-label model without an evaluation counts labels, because a photo may have several")
    func multiLabel() throws {
        var builder = NetworkBuilder(name: "several", input: TensorShape(height: 16, width: 16, channels: 3))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2))
        builder.add(Sigmoid())
        let network = try builder.network()
        var values = ClassifierHyperparameters()
        values.isMultiLabel = true
        let record = TrainingRecord(
            .classifier(values), trainingImages: ["a": 6, "b": 5], validationImages: ["a": 3, "b": 2],
            history: [EpochMetrics(epoch: 1, loss: 0.5, accuracy: 0.9, validationAccuracy: 0.75, learningRate: 0.1)])
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16), training: record)
        let html = Report(model).html
        #expect(html.contains("75.0\u{a0}%"))
        #expect(html.contains("<p>of the labels of the validation photos decided correctly<br>"))
        #expect(html.contains("<dt>labels of training photos</dt><dd>11</dd>"))
        #expect(html.contains("<dt>labels of validation photos</dt><dd>5</dd>"))
        #expect(!html.contains("95 % confidence interval") && !html.contains("is unknown"))
    }

    @Test("The report of a merged model states that its training record is that of the trained model")
    func mergedModel() throws {
        let network = try Network.named("logonet", labels: 2, inputSize: 16, width: 0.125)
        func html(trainedModel: String?) throws -> String {
            let record = TrainingRecord(
                .classifier(ClassifierHyperparameters()), trainingImages: ["a": 6, "b": 5],
                history: [EpochMetrics(epoch: 1, loss: 0.5, accuracy: 0.9, learningRate: 0.1)],
                trainedModel: trainedModel)
            return Report(
                ModelFile(
                    network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
                    preprocessing: Preprocessing(width: 16, height: 16), training: record)
            ).html
        }
        let (own, merged) = (try html(trainedModel: nil), try html(trainedModel: String(repeating: "0", count: 64)))
        #expect(own.contains("<p class=\"score\">") && !own.contains("of the trained model"))
        #expect(!merged.contains("<p class=\"score\">") && merged.contains("Training curves of the trained model"))
        #expect(merged.contains("<dt>training photos of the trained model</dt><dd>11</dd>"))
        #expect(merged.contains("<dt>epochs of the trained model</dt><dd>1</dd>"))
    }

    @Test("The settings contain every hyperparameter that the training used, and the found learning rate")
    func settings() throws {
        let network = try Network.named("logonet", labels: 2, inputSize: 16, width: 0.125)
        func rows(_ record: TrainingRecord) throws -> [String: String] {
            let html = Report(
                ModelFile(
                    network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
                    preprocessing: Preprocessing(width: 16, height: 16), training: record)
            ).html
            let matches = html.matches(of: #/<tr><th scope="row">([^<]*)</th><td>([^<]*)</td></tr>/#)
            return Dictionary(matches.map { (String($0.output.1), String($0.output.2)) }) { first, _ in first }
        }
        var values = ClassifierHyperparameters()
        values.learningRate = nil
        values.gradientClipping = 5
        values.augmentation = Augmentation([.noise, .flip])
        values.classWeights = .automatic
        values.validation = .fraction(0.25)
        values.seed = 7
        var classifier = try rows(TrainingRecord(.classifier(values), foundLearningRate: 0.013))
        for (name, value) in [
            ("training", "0 of 20 epochs"), ("learning rate", "0.013"), ("gradient clipping", "5.0"),
            ("EMA decay", "none"), ("augmentation", "flip,noise"), ("class weights", "auto"), ("calibrates", "yes"),
            ("validation", "fraction(0.25)"), ("schedule", "cosine(final: 0.01)"), ("seed", "7"),
        ] { #expect(classifier[name] == value, "\(name)") }
        #expect(classifier["fine tuning.layer decay"] == nil && classifier["trainable layers"] == nil)
        for property in Mirror(reflecting: values).children.compactMap(\.label) where property != "fineTuning" {
            let name = property.reduce(into: "") { $0 += $1.isUppercase ? " \($1.lowercased())" : String($1) }
            #expect(classifier[name.replacing("ema ", with: "EMA ")] != nil, "\(property)")
        }
        values.fineTuning.layerDecay = 0.25
        classifier = try rows(TrainingRecord(.classifier(values), trainableLayers: .all))
        #expect(classifier["fine tuning.layer decay"] == "0.25" && classifier["trainable layers"] == "all")

        var detectorValues = DetectorHyperparameters()
        detectorValues.phases = [
            DetectorPhase(
                steps: 10, learningRate: 0.5, composites: 0.5, hardNegatives: 0.25, background: 0.25, mined: 0,
                located: 0)
        ]
        let detector = try rows(TrainingRecord(.detector(detectorValues)))
        #expect(detector["training"] == "0 of 1 phase" && detector["optimizer.beta2"] == "0.99")
        #expect(
            detector["phases"]?.hasPrefix("steps 10, learning rate 0.5, composites 0.5, hard negatives 0.25") == true)
    }

    @Test("Without mistakes the report shows the least certain photos") func noMistakes() throws {
        try withRun(wrong: 0) { model, evaluation, _ in
            let html = Report(model, evaluation: .singleLabel(evaluation)).html
            #expect(html.contains("No mistakes: all 18 photos"))
            #expect(count("<img ", in: html) == 24)
        }
    }

    @Test("The report shows at most 24 mistakes, those with the highest confidence") func manyMistakes() throws {
        try withRun(wrong: 6) { model, evaluation, _ in
            let many = Evaluation(
                labels: evaluation.labels, results: evaluation.results + evaluation.results, skipped: [])
            let html = Report(model, evaluation: .singleLabel(many), workers: Workers(2)).html
            #expect(count("<img ", in: html) == 48 && html.contains("36 of 36 photos were misclassified"))
        }
    }

    @Test("The report shows the reason in place of a missing or damaged photo") func missing() throws {
        try withRun(wrong: 1) { model, evaluation, _ in
            let wrong = evaluation.results.filter { $0.predicted != $0.label }
            try FileManager.default.removeItem(at: wrong[0].url)
            try Data("none".utf8).write(to: wrong[1].url)
            let html = Report(model, evaluation: .singleLabel(evaluation)).html
            #expect(count("<img ", in: html) == 2 && count("class=\"missing\"", in: html) == 2)
            #expect(html.contains("cannot be read"))
        }
    }

    @Test("The report shows the reason in place of saliency maps that cannot be computed") func unusable() throws {
        try withRun(wrong: 1) { model, evaluation, _ in
            for entry in model.parameters.layout.entries {
                model.parameters[entry.name] = Array(repeating: 1e30, count: entry.parameter.count)
            }
            let html = Report(model, evaluation: .singleLabel(evaluation)).html
            #expect(count("class=\"missing\"", in: html) == 3)
            #expect(html.contains(escapedForHTML("\(ImprintError.nonFiniteOutput(network: "logonet"))")))
        }
    }

    @Test("A training record with invalid values does not prevent a report") func hostileRecord() throws {
        try withRun(wrong: 1) { model, evaluation, _ in
            var record = try #require(model.training)
            for label in model.labels {
                record.trainingImages[label] = .max
                record.validationImages[label] = label == "left" ? .min : .max
            }
            let values: [Float] = [.nan, .infinity, -.infinity, .greatestFiniteMagnitude, -1, .leastNonzeroMagnitude]
            record.history = zip([Int.max, .min, 0, -7, 1, 1], values).map { epoch, value in
                EpochMetrics(
                    epoch: epoch, loss: value, accuracy: value, validationLoss: value, validationAccuracy: value,
                    learningRate: value)
            }
            record.precisionRecall = [
                "left": [
                    .init(threshold: .nan, precision: .infinity, recall: -1),
                    .init(threshold: 1, precision: .nan, recall: 0),
                ]
            ]
            let damaged = ModelFile(
                network: model.network, parameters: model.parameters, labels: model.labels,
                preprocessing: model.preprocessing, training: record)
            for evaluation in [evaluation, nil] {
                let evaluation = evaluation.map(ModelEvaluation.singleLabel)
                #expect(Report(damaged, evaluation: evaluation).html.contains("<section id=\"settings\""))
            }
        }
    }

    @Test("The report contains the number of unreadable photos") func skipped() throws {
        try withRun(wrong: 0) { model, evaluation, _ in
            let file = URL(filePath: "/gone.jpg")
            let evaluation = Evaluation(
                labels: evaluation.labels, results: evaluation.results,
                skipped: [SkippedImage(url: file, reason: .unreadable(file: file, reason: "gone"))])
            #expect(
                Report(model, evaluation: .singleLabel(evaluation)).html.contains(
                    "<dt>unreadable photos</dt><dd>1</dd>"))
        }
    }

    @Test(
        "Names are escaped for HTML, also in front of a combining mark",
        arguments: [
            ("<b>&\"'", "&lt;b&gt;&amp;&quot;'"), ("\"\u{301} onload=\"x", "&quot;\u{301} onload=&quot;x"),
            ("<\u{338}&\u{308}>\u{20D2}", "&lt;\u{338}&amp;\u{308}&gt;\u{20D2}"), ("猫\r\n", "猫\r\n"),
        ])
    func escaping(name: String, html: String) { #expect(Array(escaped(name).utf8) == Array(html.utf8)) }

    private func escapedForHTML(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }

    @Test("The report is identical for any number of threads") func deterministic() throws {
        try withRun(wrong: 2) { model, evaluation, _ in
            let reports = [1, 3].map { Report(model, evaluation: .singleLabel(evaluation), workers: Workers($0)).html }
            #expect(reports[0] == reports[1])
        }
    }
}
