internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

/// Shows a cross-validation: a progress bar in a terminal, and a row or a JSON object for each fold.
struct CrossValidationMonitor {
    private let json: Bool
    private let startingPoint: String?
    private let logos: [String]?
    private var started: CrossValidationStart?
    private var bar = ProgressBar()
    private var warned: Set<URL> = []
    private var hasHeader = false
    /// The first error of writing results to standard output.
    private(set) var outputError: (any Error)?

    /// - Parameters:
    ///   - startingPoint: The base model or the network of a classifier, as a sentence; nil for a detector.
    ///   - logos: The labels of a detector's logos; nil for a classifier.
    init(json: Bool, startingPoint: String?, logos: [String]?) {
        self.json = json
        self.logos = logos
        self.startingPoint = startingPoint
    }

    /// Removes the progress bar before other lines.
    mutating func clear() { bar.clear() }

    /// Shows an event; the cross-validation continues if standard output cannot be written.
    mutating func show(_ event: CrossValidationEvent) {
        do {
            try print(event)
        } catch {
            outputError = outputError ?? error
        }
    }

    private mutating func print(_ event: CrossValidationEvent) throws {
        switch event {
        case .comparing(let done, let total): bar.draw("comparing", done: done, of: total)
        case .started(let start): show(start)
        case .training(let fold, let seed, let event): show(fold, seed, event)
        case .evaluating(let fold, let seed, let done, let total):
            bar.draw("\(name(fold, seed)) evaluating", done: done, of: total)
        case .damagedFold(let fold, let seed, let reason):
            bar.clear()
            Terminal.warn("Training \(name(fold, seed)) again, because its kept model cannot be read: \(reason)")
        case .fold(let fold): try show(fold)
        case .foldNotSaved(let fold, let seed, let error):
            bar.clear()
            Terminal.warn(
                "Error: \("\(error)".sentence) The cross-validation continues, but \(name(fold, seed)) is not kept.")
        case .finished(let result):
            bar.clear()
            try show(result)
        }
    }

    private mutating func show(_ start: CrossValidationStart) {
        bar.clear()
        started = start
        let similar = start.imageCount - start.groupCount
        Terminal.note(
            "Cross-validation of \(photoSummary(start.imageCount, start.labels, logos: logos)): "
                + "\(start.foldCount) folds, "
                + (similar > 0
                    ? "\(counted(start.groupCount, "group")) of near-duplicates and bursts, each in one fold."
                    : "no near-duplicates or bursts."))
        if let startingPoint { Terminal.note(startingPoint) }
        for image in start.skipped { warn("Skipped", image) }
    }

    private mutating func warn(_ verb: String, _ image: SkippedImage) {
        guard warned.insert(image.url).inserted else { return }
        bar.clear()
        Terminal.warn("\(verb): \(image.reason)")
    }

    private func name(_ fold: Int, _ seed: UInt64) -> String {
        let name = "fold \(fold)/\(started?.foldCount ?? fold)"
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
                name, fraction: batch.fractionOfRun, "\(batch.epoch)/\(batch.epochs)",
                "accuracy \(Terminal.percent(batch.accuracy))")
        case .scanning(let done, let total): bar.draw("\(name) scanning", done: done, of: total)
        case .started(let start): for image in start.skipped { warn("Skipped", image) }
        case .unreadable(let image): warn("A photo has become unreadable", image)
        case .learningRate, .epoch, .checkpoint, .checkpointFailed, .finished: break
        }
    }

    private mutating func show(_ fold: CrossValidationFold) throws {
        bar.clear()
        for image in fold.result.skipped { warn("Skipped", image) }
        if json {
            try reportLine(fold)
            return
        }
        if !hasHeader { try Terminal.reportText(CrossValidationTable.header(fold.result)) }
        hasHeader = true
        try Terminal.reportText(CrossValidationTable.row(fold, showsSeeds: showsSeeds))
    }

    private func show(_ result: CrossValidationResult) throws {
        // A run that is stopped while it compares the photos has no results.
        guard let started else { return }
        if json { return try reportLine(result, started) }
        if let text = CrossValidationTable.summary(result) { try Terminal.reportText(text) }
    }
}
