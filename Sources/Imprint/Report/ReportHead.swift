internal import Foundation
internal import ImprintFormats

/// The top of a report: what the model is, how well it does, and where to find what.
struct ReportHead {
    let html: String

    init(
        _ weights: WeightsFile, name: String, evaluation: Evaluation?, seconds: Double?,
        links: [(id: String, title: String)]
    ) {
        let record = weights.training
        let score = evaluation.map(Score.init) ?? record.flatMap(Score.init)
        let number = score.map { score in
            """
            <div><p class="score">\(percent(score.accuracy))</p>
            <p>of \(score.photos) classified rightly<br>\
            <span class="more">\(percent(score.interval.lowerBound)) to \(percent(score.interval.upperBound)) with 95 % confidence</span></p></div>
            """
        }
        let facts = Self.facts(record, seconds: seconds).map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }
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

    private static func facts(_ record: TrainingRecord?, seconds: Double?) -> [(String, String)] {
        guard let record else { return [] }
        var facts: [(String, String)] = []
        func sum(_ counts: [String: Int]) -> Int { counts.values.reduce(0, +) }
        let (training, validation) = (sum(record.trainingImages), sum(record.validationImages))
        if training > 0 { facts.append(("photos to train on", grouped(training))) }
        if validation > 0 { facts.append(("to validate on", grouped(validation))) }
        facts.append(("epochs", "\(record.history.count)"))
        if let best = TrainingCurves.bestEpoch(record.history) { facts.append(("best epoch", "\(best.epoch)")) }
        if let seconds { facts.append(("training took", duration(seconds))) }
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
            interval = ReportMeasures.wilsonInterval(
                hits: evaluation.results.count { $0.predicted == $0.label }, of: count)
            photos = counted(count, "photo")
        }

        /// That of the last epoch, on the photos kept back or else on those trained on.
        init?(_ record: TrainingRecord) {
            guard let share = record.accuracy.map(Double.init), share.isFinite else { return nil }
            let validates = record.history.last?.validationAccuracy != nil
            let count = (validates ? record.validationImages : record.trainingImages).values.reduce(0, +)
            accuracy = share
            interval = ReportMeasures.wilsonInterval(hits: Int((share * Double(count)).rounded()), of: count)
            photos = counted(count, "photo") + (validates ? " kept back" : " that it was trained on")
        }
    }
}
