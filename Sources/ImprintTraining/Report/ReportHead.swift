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
        let photos = RecordedPhotos(model)
        // The accuracy in a record that describes another model is not that of this one.
        let accuracy = record?.trainedModel == nil ? record?.accuracy : nil
        let score = singleLabel.map(Score.init) ?? photos.flatMap { Score(accuracy, $0) }
        let number =
            multiLabel.map(Self.score) ?? detection.map(Self.score)
            ?? score.map { score in
                """
                <div><p class="score">\(percent(score.accuracy))</p>
                <p>of \(score.photos)<br>\
                <span class="more">\(score.certainty)</span></p></div>
                """
            }
        let facts = Self.facts(
            record, photos, skipped: evaluation?.skipped ?? [], seconds: seconds
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
        _ record: TrainingRecord?, _ photos: RecordedPhotos?, skipped: [SkippedImage], seconds: Double?
    ) -> [(String, String)] {
        var facts: [(String, String)] = []
        let owner = record?.owner ?? ""
        if let photos {
            let prefix = photos.countsLabels ? "labels of " : ""
            if photos.training > 0 { facts.append(("\(prefix)training photos\(owner)", grouped(photos.training))) }
            if photos.validation > 0 {
                facts.append(("\(prefix)validation photos\(owner)", grouped(photos.validation)))
            }
        }
        if !skipped.isEmpty { facts.append(("unreadable photos", grouped(skipped.count))) }
        if let record {
            facts.append(("\(record.unit)s\(owner)", "\(record.history.count)"))
            if record.trainedModel == nil, let kept = record.bestEpochMetrics {
                facts.append(("\(record.unit) of the model", "\(kept.epoch)"))
            }
        }
        if let seconds { facts.append(("training time", clockTime(seconds))) }
        return facts
    }

    /// An accuracy.
    private struct Score {
        let accuracy: Double
        /// The confidence interval, or a note without one.
        let certainty: String
        /// The photos or labels of the accuracy, such as "60 photos of the validation set classified correctly".
        let photos: String

        init(_ evaluation: Evaluation) {
            accuracy = evaluation.accuracy
            certainty = Self.certainty(evaluation.accuracyInterval)
            photos = "\(groupedCount(evaluation.results.count, "photo")) classified correctly"
        }

        /// Creates the score of the model's epoch: on the validation set, or else on the training set.
        init?(_ recorded: Float?, _ photos: RecordedPhotos) {
            guard let accuracy = recorded.map(Double.init), (0...1).contains(accuracy) else { return nil }
            self.accuracy = accuracy
            let set = photos.accuracySet
            certainty =
                set == .validation
                ? photos.accuracyInterval(accuracy).map(Self.certainty) ?? ""
                : "The accuracy on other photos is unknown."
            let name = set == .validation ? "validation" : "training"
            if set == .composites {
                self.photos = "the composites of the artwork classified correctly"
            } else if photos.countsLabels {
                self.photos = "the labels of the \(name) photos decided correctly"
            } else if let count = photos.accuracyCount {
                self.photos = "\(groupedCount(count, "photo")) of the \(name) set classified correctly"
            } else {
                self.photos = "the photos of the \(name) set classified correctly"
            }
        }

        private static func certainty(_ interval: ClosedRange<Double>) -> String {
            "95 % confidence interval: \(percent(interval.lowerBound)) to \(percent(interval.upperBound))"
        }
    }
}
