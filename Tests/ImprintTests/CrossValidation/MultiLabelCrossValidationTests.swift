import Foundation
import Imprint
import ImprintImages
import ImprintModel
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Cross-validation of multi-label models", .timeLimit(.minutes(10))) struct MultiLabelCrossValidationTests {
    /// Returns the photos of a folder, in turn with the label "left", "right", both or none.
    private func photos(in folder: URL, labels: [String] = ["left", "right"]) throws -> InMemorySource {
        var source = InMemorySource(labels: labels)
        let files = try ImageFolder(at: folder)
        for (index, item) in files.items.enumerated() {
            let all = [["left"], ["right"], ["left", "right"], []][index % 4]
            try source.append(Data(contentsOf: item.url), labels: all, identifier: files.identifier(of: item))
        }
        return source
    }

    /// Noise images can resemble each other, so there are no groups of near-duplicates.
    private func run(
        _ photos: some TrainingSource, threads: Int = 1, epochs: Int = 1,
        change: (inout CrossValidation.Options) -> Void = { _ in },
        configure: (inout ClassifierConfiguration) -> Void = { _ in },
        onEvent: @escaping (CrossValidationEvent) -> Void = { _ in }, shouldStop: @escaping () -> Bool = { false }
    ) throws -> CrossValidationResult {
        var configuration = try quickTraining(epochs: epochs)
        configuration.keepsGroupsTogether = false
        configuration.threads = threads
        configure(&configuration)
        var options = CrossValidation.Options()
        options.folds = 2
        change(&options)
        return try CrossValidation(photos: photos, configuration: configuration, options: options).run(
            onEvent: onEvent, shouldStop: shouldStop)
    }

    private func predictions(_ result: CrossValidationResult) -> [String] {
        result.folds.flatMap { fold in
            fold.result.predictions.map {
                "\(fold.seed)/\(fold.number) \($0.url.relativePath) \($0.labels) \($0.predicted) \($0.confidences)"
            }
        }
    }

    @Test("Photos with several labels or none are predicted once per seed, by multi-label models of the other folds")
    func folds() throws {
        try withImages(perLabel: 8) { folder in
            let photos = try photos(in: folder)
            let result = try run(photos, change: { $0.seeds = [1, 2] })
            #expect(result.isComplete && result.folds.map(\.number) == [1, 2, 1, 2])
            #expect(result.evaluation == nil && result.metrics == nil)
            for seed in [UInt64(1), 2] {
                let folds = result.folds.filter { $0.seed == seed }.compactMap(\.multiLabelEvaluation)
                #expect(Set(folds.flatMap { $0.results.map(\.url) }).count == 16)
                #expect(folds.flatMap(\.results).count { $0.labels == [0, 1] } == 4)
                #expect(folds.flatMap(\.results).count(where: \.labels.isEmpty) == 4)
                // Each fold has about half of the eight photos of each label.
                #expect(folds.flatMap(\.perLabel).allSatisfy { (3...5).contains($0.count) })
            }
            let (pooled, metrics) = (
                try #require(result.multiLabelEvaluation), try #require(result.multiLabelMetrics)
            )
            #expect(pooled.results.count == 32 && pooled.thresholds.isEmpty)
            #expect(metrics.meanAveragePrecision?.interval.contains(metrics.meanAveragePrecision?.value ?? 0) == true)
            #expect(metrics.foldStandardDeviation != nil && metrics.seedStandardDeviation != nil)
            let page = Report(result, command: "imprint train photos.csv --folds 2").html
            #expect(page.contains("mean average precision (mAP) of 32 predictions") && page.contains("micro F1"))
            #expect(page.contains("Results by label") && !page.contains("Confusion matrix"))
        }
    }

    @Test("F1 uses the thresholds of each fold's model, and the average precision uses all confidences")
    func thresholds() throws {
        try withImages(perLabel: 16) { folder in
            let result = try run(try photos(in: folder), epochs: 3, configure: { $0.validation = .fraction(0.25) })
            let folds = try result.folds.map { try #require($0.multiLabelEvaluation) }
            #expect(Set(folds.map(\.thresholds)).count == 2, "the thresholds are measured on the validation sets")
            let metrics = try #require(result.multiLabelMetrics)
            var (hits, marked) = (0, 0)
            for fold in folds {
                for photo in fold.results {
                    let predicted = fold.labels.indices.filter {
                        Double(photo.confidences[$0]) >= fold.thresholds[$0]
                    }
                    hits += Set(predicted).intersection(photo.labels).count
                    marked += predicted.count + photo.labels.count
                }
            }
            #expect(abs(metrics.microF1.value - 2 * Double(hits) / Double(marked)) < 1e-12)
            let together = MultiLabelEvaluation(
                labels: folds[0].labels, results: folds.flatMap(\.results), skipped: [])
            let expected = try #require(together.meanAveragePrecision)
            #expect(abs((metrics.meanAveragePrecision?.value ?? -1) - expected) < 1e-12)
        }
    }

    @Test("Multi-label models are trained on photos with one label each if the configuration says so")
    func oneLabelEach() throws {
        try withImages(perLabel: 6) { folder in
            let result = try run(try ImageFolder(at: folder), configure: { $0.isMultiLabel = true })
            #expect(result.multiLabelEvaluation?.results.count == 12 && result.evaluation == nil)
        }
    }

    @Test("The folds and predictions do not depend on the number of threads") func determinism() throws {
        try withImages(perLabel: 6) { folder in
            let photos = try photos(in: folder)
            let (one, two) = (try run(photos), try run(photos, threads: 2))
            #expect(predictions(one) == predictions(two) && one.multiLabelMetrics == two.multiLabelMetrics)
        }
    }

    @Test("A second run reads the finished folds with their thresholds, and damaged ones are an error")
    func foldsFolder() throws {
        try withImages(perLabel: 16) { folder in
            try withTemporaryFolder { root in
                let kept = root.appending(path: "kept", directoryHint: .isDirectory)
                let photos = try photos(in: folder)
                func again() throws -> CrossValidationResult {
                    try run(
                        photos, change: { $0.foldsFolder = kept }, configure: { $0.validation = .fraction(0.25) })
                }
                let first = try again()
                let model = try ModelFile(contentsOf: kept.appending(path: "seed-0-fold-1.imprint"))
                let fold = try #require(first.folds[0].multiLabelEvaluation)
                #expect(model.training?.thresholds == fold.thresholdsByLabel)
                let file = kept.appending(path: "seed-0-fold-2.json")
                try FileManager.default.removeItem(at: file)
                let second = try again()
                #expect(second.folds.map(\.wasRestored) == [true, false] && predictions(second) == predictions(first))
                let third = try again()
                #expect(third.folds.allSatisfy(\.wasRestored) && predictions(third) == predictions(first))
                #expect(third.multiLabelMetrics == first.multiLabelMetrics)
                let text = try String(contentsOf: file, encoding: .utf8)
                for (part, other, reason) in [
                    ("\"thresholds\"", "\"others\"", "it has no threshold for each label"),
                    (
                        "\"labels\" : [\n        \"left\"\n      ]", "\"labels\" : []",
                        " had no label and now has the label left"
                    ),
                ] {
                    #expect(text.contains(part), "\(part)")
                    try Data(text.replacing(part, with: other).utf8).write(to: file)
                    let error = #expect(throws: CrossValidationError.self) { try again() }
                    let message = "\(try #require(error))"
                    #expect(message.contains("seed-0-fold-2.json is not a usable fold") && message.contains(reason))
                }
            }
        }
    }

    @Test("Finished folds of models with one label per photo are an error for multi-label models")
    func otherKind() throws {
        try withImages(perLabel: 6) { folder in
            try withTemporaryFolder { root in
                let photos = try ImageFolder(at: folder)
                func run(isMultiLabel: Bool) throws -> CrossValidationResult {
                    try self.run(
                        photos, change: { $0.foldsFolder = root.appending(path: "kept", directoryHint: .isDirectory) },
                        configure: { $0.isMultiLabel = isMultiLabel })
                }
                _ = try run(isMultiLabel: false)
                let error = #expect(throws: CrossValidationError.self) { try run(isMultiLabel: true) }
                let text = "\(try #require(error))"
                #expect(text.contains("another setting of several labels per photo: it was no and is now yes"))
            }
        }
    }

    @Test("A stopped run has the metrics of the finished folds, or none") func stop() throws {
        try withImages(perLabel: 6) { folder in
            let photos = try photos(in: folder)
            let none = try run(photos, shouldStop: { true })
            #expect(none.folds.isEmpty && none.multiLabelMetrics == nil && !none.isComplete)
            #expect(none.multiLabelEvaluation?.results.isEmpty == true)
            var finished = 0
            let one = try run(
                photos, onEvent: { if case .fold = $0 { finished += 1 } }, shouldStop: { finished == 1 })
            #expect(one.folds.count == 1 && !one.isComplete && one.multiLabelMetrics?.foldStandardDeviation == nil)
            #expect(one.multiLabelMetrics?.microF1.value == one.folds.first?.multiLabelEvaluation?.microF1)
            #expect(Report(one).html.contains("Cross-validation, incomplete"))
        }
    }

    @Test("A label in too few groups is an error that names it") func tooFewGroups() throws {
        try withImages(perLabel: 6) { folder in
            let photos = try photos(in: folder)
            #expect(throws: CrossValidationError.tooFewGroups(label: "left", groups: 1, photos: 6, folds: 2)) {
                let paths = photos.items.filter { $0.labels.contains(0) }.map(photos.identifier)
                _ = try run(photos, change: { $0.groups = [paths] })
            }
        }
    }
}
