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

    /// A model, and an evaluation in which of every label the first `wrong` photos are given the label after.
    private func withRun<Result>(
        wrong: Int, _ body: (ModelFile, Evaluation, ImageFolder) throws -> Result
    ) throws -> Result {
        try withPictures(["left", "right", awkward], perLabel: 6) { folder in
            let weights = try train(folder, quickTraining(epochs: 2) { $0.validation = .fraction(0.3) })
            let images = try ImageFolder(at: folder)
            var seen: [Int: Int] = [:]
            let results = images.items.map { item in
                seen[item.label, default: 0] += 1
                let isWrong = (seen[item.label] ?? 0) <= wrong
                var confidences: [Float] = [0.1, 0.1, 0.1]
                confidences[(item.label + (isWrong ? 1 : 0)) % 3] = 0.8
                return Evaluation.Result(url: item.url, label: item.label, confidences: confidences)
            }
            return try body(weights, Evaluation(labels: weights.labels, results: results, skipped: []), images)
        }
    }

    private func count(_ part: String, in html: String) -> Int { html.components(separatedBy: part).count - 1 }

    @Test("The page has every part, escaped, and needs nothing else") func parts() throws {
        try withRun(wrong: 2) { weights, evaluation, images in
            let report = Report(
                weights, evaluation: evaluation, audit: Audit(images, workers: Workers(1)),
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
            // Each mistake as a photo and as a map.
            #expect(count("<img src=\"data:image/jpeg;base64,", in: html) == 12)
            for word in ["<script", "http:", "https:", "url(", "@import"] { #expect(!html.contains(word), "\(word)") }
            try withTemporaryFolder { folder in
                let file = folder.appending(path: "r.html")
                try report.write(to: file)
                #expect(try String(contentsOf: file, encoding: .utf8) == html)
            }
        }
    }

    @Test("A model alone has a page of what is known") func bare() throws {
        try withRun(wrong: 0) { weights, _, _ in
            let html = Report(weights).html
            #expect(html.contains("<section id=\"curves\"") && html.contains(" of the validation set"))
            for part in ["confusion", "reliability", "mistakes", "repeat"] { #expect(!html.contains("\"\(part)\"")) }
            let untrained = ModelFile(
                network: weights.network, parameters: weights.parameters, labels: weights.labels,
                preprocessing: weights.preprocessing)
            #expect(Report(untrained).html.contains("<section id=\"settings\""))
            #expect(!Report(untrained).html.contains("class=\"score\""))
        }
    }

    @Test("Without mistakes the page says so, and shows what was least certain") func noMistakes() throws {
        try withRun(wrong: 0) { weights, evaluation, _ in
            let html = Report(weights, evaluation: evaluation).html
            #expect(html.contains("Not one: all 18 photos"))
            #expect(count("<img ", in: html) == 24)
        }
    }

    @Test("At most 24 mistakes are shown, the surest") func manyMistakes() throws {
        try withRun(wrong: 6) { weights, evaluation, _ in
            let many = Evaluation(
                labels: evaluation.labels, results: evaluation.results + evaluation.results, skipped: [])
            let html = Report(weights, evaluation: many, workers: Workers(2)).html
            #expect(count("<img ", in: html) == 48 && html.contains("36 of 36 photos were classified wrongly"))
        }
    }

    @Test("A photo that is gone or damaged leaves a place that says why") func missing() throws {
        try withRun(wrong: 1) { weights, evaluation, _ in
            let wrong = evaluation.results.filter { $0.predicted != $0.label }
            try FileManager.default.removeItem(at: wrong[0].url)
            try Data("none".utf8).write(to: wrong[1].url)
            let html = Report(weights, evaluation: evaluation).html
            #expect(count("<img ", in: html) == 2 && count("class=\"missing\"", in: html) == 2)
            #expect(html.contains("cannot be read"))
        }
    }

    @Test("A model that cannot be used leaves places that say why") func unusable() throws {
        try withRun(wrong: 1) { weights, evaluation, _ in
            for entry in weights.parameters.layout.entries {
                weights.parameters[entry.name] = Array(repeating: 1e30, count: entry.parameter.count)
            }
            let html = Report(weights, evaluation: evaluation).html
            #expect(count("class=\"missing\"", in: html) == 3)
            #expect(html.contains(escapedForHTML("\(ImprintError.noConfidence(network: "logonet"))")))
        }
    }

    @Test("A record from a damaged file gives a page all the same") func hostileRecord() throws {
        try withRun(wrong: 1) { weights, evaluation, _ in
            var record = try #require(weights.training)
            for label in weights.labels {
                record.trainingImages[label] = .max
                record.validationImages[label] = label == "left" ? .min : .max
            }
            let numbers: [Float] = [.nan, .infinity, -.infinity, .greatestFiniteMagnitude, -1, .leastNonzeroMagnitude]
            record.history = zip([Int.max, .min, 0, -7, 1, 1], numbers).map { epoch, number in
                EpochMetrics(
                    epoch: epoch, loss: number, accuracy: number, validationLoss: number, validationAccuracy: number,
                    learningRate: number)
            }
            record.precisionRecall = [
                "left": [
                    .init(threshold: .nan, precision: .infinity, recall: -1),
                    .init(threshold: 1, precision: .nan, recall: 0),
                ]
            ]
            let damaged = ModelFile(
                network: weights.network, parameters: weights.parameters, labels: weights.labels,
                preprocessing: weights.preprocessing, training: record)
            for evaluation in [evaluation, nil] {
                #expect(Report(damaged, evaluation: evaluation).html.contains("<section id=\"settings\""))
            }
        }
    }

    @Test("Photos that could not be read are told") func skipped() throws {
        try withRun(wrong: 0) { weights, evaluation, _ in
            let file = URL(filePath: "/gone.jpg")
            let evaluation = Evaluation(
                labels: evaluation.labels, results: evaluation.results,
                skipped: [SkippedImage(url: file, reason: .unreadable(file: file, reason: "gone"))])
            #expect(Report(weights, evaluation: evaluation).html.contains("<dt>could not be read</dt><dd>1</dd>"))
        }
    }

    private func escapedForHTML(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }

    @Test("The same run gives the same page, whatever the number of threads") func deterministic() throws {
        try withRun(wrong: 2) { weights, evaluation, _ in
            let pages = [1, 3].map { Report(weights, evaluation: evaluation, workers: Workers($0)).html }
            #expect(pages[0] == pages[1])
        }
    }
}
