internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// The top of a report: what the model is, how well it does, and where to find what.
struct ReportHead {
    let html: String

    init(
        _ weights: ModelFile, name: String, evaluation: Evaluation?, seconds: Double?,
        links: [(id: String, title: String)]
    ) {
        let record = weights.training
        let score = evaluation.map(Score.init) ?? record.flatMap { Score($0, weights.labels) }
        let number = score.map { score in
            """
            <div><p class="score">\(percent(score.accuracy))</p>
            <p>of \(score.photos) classified rightly<br>\
            <span class="more">\(percent(score.interval.lowerBound)) to \(percent(score.interval.upperBound)) with 95 % confidence</span></p></div>
            """
        }
        let facts = Self.facts(weights, evaluation, seconds: seconds).map {
            "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>"
        }
        let links = links.map { "<li><a href=\"#\($0.id)\">\(escaped($0.title))</a></li>" }
        let input = weights.preprocessing
        html = """
            <header>
            <p class="kind">Training report · \(escaped(weights.network.name)), \(input.width)x\(input.height) pixels</p>
            <h1>\(isolated(name))</h1>
            <div class="head">
            \(number ?? "")
            <dl>\(facts.joined())</dl>
            </div>
            <nav aria-label="Parts of this page"><ul>\(links.joined())</ul></nav>
            </header>
            """
    }

    private static func facts(
        _ weights: ModelFile, _ evaluation: Evaluation?, seconds: Double?
    ) -> [(String, String)] {
        var facts: [(String, String)] = []
        let counts = DataSection.counts(weights.training, weights.labels)
        let training = counts.reduce(0) { $0 + $1.images }
        let validation = counts.reduce(0) { $0 + $1.validationImages }
        if training > 0 { facts.append(("photos to train on", grouped(training))) }
        if validation > 0 { facts.append(("to validate on", grouped(validation))) }
        if let skipped = evaluation?.skipped.count, skipped > 0 {
            facts.append(("could not be read", grouped(skipped)))
        }
        if let history = weights.training?.history {
            facts.append(("epochs", "\(history.count)"))
            if let kept = weights.training?.kept { facts.append(("epoch kept", "\(kept.epoch)")) }
        }
        if let seconds { facts.append(("training took", clockTime(seconds))) }
        return facts
    }

    /// An accuracy and how much it says.
    private struct Score {
        let accuracy: Double
        let interval: ClosedRange<Double>
        /// On what it was measured.
        let photos: String

        init(_ evaluation: Evaluation) {
            let count = evaluation.results.count
            accuracy = evaluation.accuracy
            interval = evaluation.accuracyInterval
            photos = counted(count, "photo")
        }

        /// That of the epoch kept, on the photos held out or else on those trained on.
        init?(_ record: TrainingRecord, _ labels: [String]) {
            guard let share = record.accuracy.map(Double.init), (0...1).contains(share) else { return nil }
            let validates = record.kept?.validationAccuracy != nil
            let count = DataSection.counts(record, labels).reduce(0) {
                $0 + (validates ? $1.validationImages : $1.images)
            }
            accuracy = share
            interval = Evaluation.interval(hits: Int((share * Double(count)).rounded()), of: count)
            photos = counted(count, "photo") + (validates ? " of the validation set" : " of the training set")
        }
    }
}
