internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The header of a report: the model, its accuracy and the links to the sections.
struct ReportHead {
    let html: String

    init(
        _ model: ModelFile, kind: OutputFile.Page, name: String, evaluation: ModelEvaluation?, seconds: Double?,
        links: [(id: String, title: String)]
    ) {
        let record = model.training
        let (singleLabel, multiLabel, detection) = (
            evaluation?.singleLabel, evaluation?.multiLabel, evaluation?.detection
        )
        let score = singleLabel.map(Score.init) ?? record.flatMap { Score($0, model.labels) }
        let number =
            multiLabel.map(Self.score) ?? detection.map(Self.score)
            ?? score.map { score in
                """
                <div><p class="score">\(percent(score.accuracy))</p>
                <p>of \(score.photos) \(model.head == .sigmoid ? "and labels decided correctly" : "classified correctly")<br>\
                <span class="more">\(score.certainty)</span></p></div>
                """
            }
        let facts = Self.facts(
            model, skipped: evaluation?.skipped ?? [], seconds: seconds
        ).map {
            "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>"
        }
        let links = links.map { "<li><a href=\"#\($0.id)\">\(escaped($0.title))</a></li>" }
        let input = model.preprocessing
        html = """
            <header>
            <p class="kind">\(kind.title) · \(escaped(model.network.name)), \(input.width)x\(input.height) pixels</p>
            <h1>\(isolated(name))</h1>
            <div class="head">
            \(number ?? "")
            <dl>\(facts.joined())</dl>
            </div>
            <nav aria-label="Sections of this page"><ul>\(links.joined())</ul></nav>
            </header>
            """
    }

    /// Returns the mean average precision of a multi-label model.
    private static func score(_ evaluation: MultiLabelEvaluation) -> String {
        let interval = evaluation.meanAveragePrecisionInterval().map {
            "<span class=\"more\">95 % confidence interval: \(percent($0.lowerBound)) to \(percent($0.upperBound))</span>"
        }
        return """
            <div><p class="score">\(percent(evaluation.meanAveragePrecision))</p>
            <p>mean average precision (mAP) on \(groupedCount(evaluation.results.count, "photo"))<br>\(interval ?? "")</p></div>
            """
    }

    /// Returns the mean average precision of a detector.
    private static func score(_ evaluation: DetectionEvaluation) -> String {
        let metrics = evaluation.metrics
        let interval = metrics.meanAveragePrecision50Interval().map {
            "<br><span class=\"more\">95 % confidence interval: \(percent($0.lowerBound)) to \(percent($0.upperBound))</span>"
        }
        return """
            <div><p class="score">\(percent(metrics.meanAveragePrecision50))</p>
            <p>mean average precision (mAP@.5) of \(groupedCount(metrics.objectCount, "object")) in \
            \(groupedCount(metrics.photoCount, "photo"))\(interval ?? "")</p></div>
            """
    }

    private static func facts(
        _ model: ModelFile, skipped: [SkippedImage], seconds: Double?
    ) -> [(String, String)] {
        var facts: [(String, String)] = []
        let counts = DataSection.counts(model.training, model.labels)
        let training = counts.reduce(0) { $0 + $1.images }
        let validation = counts.reduce(0) { $0 + $1.validationImages }
        if training > 0 { facts.append(("training photos", grouped(training))) }
        if validation > 0 { facts.append(("validation photos", grouped(validation))) }
        if !skipped.isEmpty { facts.append(("unreadable photos", grouped(skipped.count))) }
        if let record = model.training {
            facts.append(("\(record.unit)s", "\(record.history.count)"))
            if let kept = record.kept { facts.append(("\(record.unit) of the model", "\(kept.epoch)")) }
        }
        if let seconds { facts.append(("training time", clockTime(seconds))) }
        return facts
    }

    /// An accuracy.
    private struct Score {
        let accuracy: Double
        /// The confidence interval of the accuracy on other photos; nil for the accuracy on training photos.
        let interval: ClosedRange<Double>?
        /// The confidence interval, or a note without one.
        var certainty: String {
            interval.map { "95 % confidence interval: \(percent($0.lowerBound)) to \(percent($0.upperBound))" }
                ?? "The accuracy on other photos is unknown."
        }
        /// The photos of the evaluation, such as "60 photos of the validation set".
        let photos: String

        init(_ evaluation: Evaluation) {
            let count = evaluation.results.count
            accuracy = evaluation.accuracy
            interval = evaluation.accuracyInterval
            photos = groupedCount(count, "photo")
        }

        /// Creates the score of the model's epoch: on the validation set, or else on the training set.
        init?(_ record: TrainingRecord, _ labels: [String]) {
            guard let accuracy = record.accuracy.map(Double.init), (0...1).contains(accuracy) else { return nil }
            let validates = record.keepsStart || record.kept?.validationAccuracy != nil
            let count = DataSection.counts(record, labels).reduce(0) {
                $0 + (validates ? $1.validationImages : $1.images)
            }
            self.accuracy = accuracy
            interval = validates ? Evaluation.interval(hits: Int((accuracy * Double(count)).rounded()), of: count) : nil
            photos = groupedCount(count, "photo") + (validates ? " of the validation set" : " of the training set")
        }
    }
}
