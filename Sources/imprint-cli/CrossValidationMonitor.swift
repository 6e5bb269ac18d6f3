internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

/// Shows a cross-validation: a progress bar in a terminal, and a row or a JSON object for each fold.
struct CrossValidationMonitor {
    private let json: Bool
    private var started: CrossValidationStart?
    private var bar = ProgressBar()
    private var warned: Set<URL> = []
    private var hasHeader = false

    init(json: Bool) { self.json = json }

    /// Removes the progress bar before other lines.
    mutating func clear() { bar.clear() }

    mutating func show(_ event: CrossValidationEvent) throws {
        switch event {
        case .comparing(let done, let total): bar.draw("comparing", done: done, of: total)
        case .started(let start): show(start)
        case .training(let fold, let seed, let event): show(fold, seed, event)
        case .evaluating(let fold, let seed, let done, let total):
            bar.draw("\(name(fold, seed)) evaluating", done: done, of: total)
        case .fold(let fold): try show(fold)
        case .finished(let result): try show(result)
        }
    }

    private mutating func show(_ start: CrossValidationStart) {
        bar.clear()
        started = start
        let similar = start.images - start.groups
        Terminal.note(
            "Cross-validation of \(start.images) images of \(start.labels.count) labels (\(TextTable.list(start.labels))): \(start.folds) folds, "
                + (similar > 0
                    ? "\(start.groups) groups of near-duplicates and bursts, each in one fold."
                    : "no near-duplicates or bursts."))
        for image in start.skipped { warn("Skipped", image) }
    }

    private mutating func warn(_ verb: String, _ image: SkippedImage) {
        guard warned.insert(image.url).inserted else { return }
        bar.clear()
        Terminal.warn("\(verb): \(image.reason)")
    }

    private func name(_ fold: Int, _ seed: UInt64) -> String {
        let name = "fold \(fold)/\(started?.folds ?? fold)"
        return showsSeeds ? "seed \(seed) \(name)" : name
    }

    private var showsSeeds: Bool { (started?.seeds.count ?? 1) > 1 }

    private mutating func show(_ fold: Int, _ seed: UInt64, _ event: TrainingEvent) {
        let name = name(fold, seed)
        switch event {
        case .comparing(let done, let total): bar.draw("\(name) comparing", done: done, of: total)
        case .reading(let done, let total): bar.draw("\(name) reading", done: done, of: total)
        case .computingFeatures(let done, let total): bar.draw("\(name) features", done: done, of: total)
        case .searching(let done, let total): bar.draw("\(name) learning rate", done: done, of: total)
        case .batch(let batch):
            bar.draw(
                name,
                fraction: (Double(batch.epoch - 1) + Double(batch.imagesSeen) / Double(max(batch.imagesPerEpoch, 1)))
                    / Double(max(batch.epochs, 1)),
                "\(batch.epoch)/\(batch.epochs)", "accuracy \(Terminal.percent(batch.accuracy))")
        case .started(let start): for image in start.skipped { warn("Skipped", image) }
        case .unreadable(let image): warn("A photo has become unreadable", image)
        case .learningRate, .epoch, .checkpoint, .checkpointFailed, .finished: break
        }
    }

    private mutating func show(_ fold: CrossValidationFold) throws {
        bar.clear()
        for image in fold.evaluation.skipped { warn("Skipped", image) }
        if json {
            try Terminal.report(FoldLine(fold))
            return
        }
        if !hasHeader {
            try Terminal.reportText(
                row("fold", "photos", "accuracy", "95 % interval", "log loss", "ECE", "AUC", "time"))
        }
        hasHeader = true
        let evaluation = fold.evaluation
        try Terminal.reportText(
            row(
                showsSeeds ? "\(fold.seed)/\(fold.number)" : "\(fold.number)", "\(evaluation.results.count)",
                Terminal.percent(evaluation.accuracy), Self.text(evaluation.accuracyInterval),
                String(format: "%.4f", evaluation.logLoss), Terminal.percent(evaluation.calibrationError),
                evaluation.auc.map { String(format: "%.4f", $0) } ?? "–",
                fold.isKept ? "kept" : clockTime(fold.seconds)))
    }

    private func show(_ result: CrossValidationResult) throws {
        if json {
            guard let started else { preconditionFailure("a cross-validation starts before it ends") }
            try Terminal.report(CrossValidationLine(result, started))
            return
        }
        guard let metrics = result.metrics else { return }
        let repeats = Set(result.folds.map(\.seed)).count
        try Terminal.reportText(
            row(
                "all", "\(result.evaluation.results.count)", Terminal.percent(metrics.accuracy.value),
                Self.text(metrics.accuracy.interval), String(format: "%.4f", metrics.logLoss.value),
                Terminal.percent(metrics.calibrationError.value),
                metrics.auc.map { String(format: "%.4f", $0.value) } ?? "–",
                clockTime(result.folds.reduce(0) { $0 + $1.seconds })))
        var lines = [
            "",
            "accuracy \(Terminal.percent(metrics.accuracy.value)) (95 % interval \(Self.text(metrics.accuracy.interval))), pooled over "
                + "\(result.folds.count) folds" + (repeats > 1 ? " of \(repeats) seeds" : "")
                + "; bootstrap over \(result.groups) groups of photos",
            String(format: "log loss %.4f (%@), ", metrics.logLoss.value, Self.number(metrics.logLoss.interval))
                + "ECE \(Terminal.percent(metrics.calibrationError.value)) (\(Self.text(metrics.calibrationError.interval)))"
                + (metrics.auc.map { String(format: ", AUC %.4f (%@)", $0.value, Self.number($0.interval)) } ?? ""),
        ]
        let deviations = [("folds", metrics.foldDeviation), ("seeds", metrics.seedDeviation)]
            .compactMap { name, value in value.map { "\(Terminal.percent($0)) over \(name)" } }
        if !deviations.isEmpty {
            lines.append("standard deviation of the accuracy: " + deviations.joined(separator: ", "))
        }
        try Terminal.reportText(lines.joined(separator: "\n"))
    }

    private static func text(_ interval: ClosedRange<Double>) -> String {
        String(format: "%.1f to %.1f %%", interval.lowerBound * 100, interval.upperBound * 100)
    }

    private static func number(_ interval: ClosedRange<Double>) -> String {
        String(format: "%.4f to %.4f", interval.lowerBound, interval.upperBound)
    }

    /// Formats a row of the table, which is 80 columns wide.
    private func row(_ cells: String...) -> String {
        zip(cells, [8, 8, 10, 17, 10, 9, 9, 9]).map { cell, width in
            String(repeating: " ", count: max(width - cell.count, 1)) + cell
        }.joined()
    }
}

private struct FoldLine: Encodable {
    let event = "fold"
    let seed: UInt64
    let fold: Int
    let images: Int
    let trainingImages: Int
    let accuracy: Double
    let accuracyInterval: [Double]
    let logLoss: Double
    let calibrationError: Double
    @NullIfMissing var auc: Double?
    let seconds: Double
    let kept: Bool

    init(_ fold: CrossValidationFold) {
        let evaluation = fold.evaluation
        seed = fold.seed
        self.fold = fold.number
        images = evaluation.results.count
        trainingImages = fold.trainingImages
        accuracy = evaluation.accuracy
        accuracyInterval = [evaluation.accuracyInterval.lowerBound, evaluation.accuracyInterval.upperBound]
        logLoss = evaluation.logLoss
        calibrationError = evaluation.calibrationError
        auc = evaluation.auc
        seconds = fold.seconds
        kept = fold.isKept
    }
}

private struct CrossValidationLine: Encodable {
    struct Metric: Encodable {
        let value: Double
        let interval: [Double]

        init(_ estimate: CrossValidationResult.Estimate) {
            value = estimate.value
            interval = [estimate.interval.lowerBound, estimate.interval.upperBound]
        }
    }

    let event = "crossValidation"
    let folds: Int
    let seeds: [UInt64]
    /// The number of finished folds of all seeds.
    let finishedFolds: Int
    let complete: Bool
    let images: Int
    let groups: Int
    @NullIfMissing var accuracy: Metric?
    @NullIfMissing var logLoss: Metric?
    @NullIfMissing var calibrationError: Metric?
    @NullIfMissing var auc: Metric?
    @NullIfMissing var foldDeviation: Double?
    @NullIfMissing var seedDeviation: Double?
    let labels: [String]
    let confusion: [[Int]]
    let perLabel: [Evaluation.LabelMetrics]
    let seconds: Double
    let skipped: [SkippedLine]

    init(_ result: CrossValidationResult, _ start: CrossValidationStart) {
        let (evaluation, metrics) = (result.evaluation, result.metrics)
        (folds, seeds) = (start.folds, start.seeds)
        finishedFolds = result.folds.count
        complete = result.isComplete
        images = evaluation.results.count
        groups = result.groups
        accuracy = (metrics?.accuracy).map(Metric.init)
        logLoss = (metrics?.logLoss).map(Metric.init)
        calibrationError = (metrics?.calibrationError).map(Metric.init)
        auc = (metrics?.auc).map(Metric.init)
        foldDeviation = metrics?.foldDeviation
        seedDeviation = metrics?.seedDeviation
        labels = evaluation.labels
        confusion = evaluation.confusion
        perLabel = evaluation.perLabel
        seconds = result.folds.reduce(0) { $0 + $1.seconds }
        skipped = evaluation.skipped.map(SkippedLine.init)
    }
}
