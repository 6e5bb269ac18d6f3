internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

struct ClassifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "classify", abstract: "Classify photos and print the labels with the highest confidences.")

    @Argument(help: "The model file.")
    var model: String

    @Argument(help: ArgumentHelp("The photos to classify.", valueName: "file"))
    var files: [String]

    @Option(help: "The maximum number of labels to show for a photo.")
    var top = 5

    @Option(
        help: ArgumentHelp(
            "The minimum confidence to show, 0 to 1, or auto: the model's threshold for each label.",
            valueName: "number or auto"))
    var threshold = ThresholdArgument("0")

    @Option(
        help: ArgumentHelp(
            "Show only labels at a confidence with at least this precision on the validation set, 0 to 1.",
            valueName: "share"))
    var minimumPrecision: Double?

    @Option(
        help: ArgumentHelp(
            "Show only labels at a confidence with at least this recall on the validation set, 0 to 1; with --minimum-precision, both must "
                + "be reached.",
            valueName: "share"))
    var minimumRecall: Double?

    @Option(help: "How a photo is fitted into the network's input. (default: as in training)")
    var cropAndScale: CropAndScale?

    @Option(
        help: ArgumentHelp(
            "Show categories instead of labels: from a JSON file, {\"computer\": [\"laptop\", …], …}, or auto, those in the model.",
            valueName: "file or auto"))
    var categories: String?

    @Flag(help: "Also show the bounding box of each logo, for a detector; see imprint detect.")
    var boxes = false

    @OptionGroup var noveltyOptions: NoveltyOptions

    @OptionGroup var classifierOptions: ClassifierOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + files + [categories].compactMap { $0 })
        try require(top, "--top", in: 1...1_000_000)
        try require(minimumPrecision ?? 0, "--minimum-precision", in: 0...1)
        try require(minimumRecall ?? 0, "--minimum-recall", in: 0...1)
        let threshold = try threshold.threshold()
        if categories != nil, threshold == .perLabel || minimumPrecision != nil || minimumRecall != nil {
            throw ValidationError(
                "--categories: categories have no threshold, precision or recall; leave these options out, or set --threshold to a number."
            )
        }
    }

    func run() throws {
        // Photos are classified in parallel; a photo gets several threads only if there are more threads than photos.
        let workers = Workers(min(common.threadCount, files.count))
        let classifier = try classifierOptions.classifier(model, threads: common.threadCount / workers.count)
        let rule = ConfidenceRule(
            threshold: try threshold.threshold(), minimumPrecision: minimumPrecision, minimumRecall: minimumRecall)
        try rule.check(classifier)
        if boxes && !classifier.model.head.locatesObjects {
            throw ValidationError(
                "--boxes: \(model) classifies whole photos and has no boxes, expected a detector. Train one with imprint train-detector."
            )
        }
        let categories = try categories.map { try self.categories($0, of: classifier) }
        func classifications(_ file: String) throws -> ([Classification], NoveltyVerdict?) {
            var (classifications, novelty) = try classifier.classifyWithNovelty(
                .file(URL(filePath: file)), cropAndScale: cropAndScale)
            if let categories {
                classifications = classifications.rolledUp(into: categories, sumToOne: classifier.confidencesSumToOne)
            }
            return (
                Array(classifications.filter(rule.accepts).prefix(top)), noveltyOptions.verdict(novelty, of: classifier)
            )
        }
        try forEachPhoto(files, workers, compute: classifications) { try show($0, $1.0, $1.1) }
    }

    private func categories(_ text: String, of classifier: ImageClassifier) throws -> Categories {
        guard text == "auto" else {
            return try Categories(contentsOf: URL(filePath: text), labels: classifier.labels)
        }
        guard let categories = classifier.model.categories else {
            throw ValidationError(
                "--categories auto: \(model) has no categories; name a file of categories, or add them to the model with "
                    + "imprint export --to imprint --categories FILE."
            )
        }
        return categories
    }

    private func show(_ file: String, _ classifications: [Classification], _ verdict: NoveltyVerdict?) throws {
        if common.json {
            try Terminal.emit(
                ClassificationLine(
                    file: file, classifications: classifications, boxes: boxes ? classifications.map(\.box) : nil,
                    verdict: verdict))
        } else if verdict?.isRejected == true {
            try Terminal.show("\(visible(file)): \(NoveltyVerdict.text(closest: classifications.first))")
        } else {
            let labels = classifications.map { classification in
                "\(shown(classification.label)) \(Terminal.percent(classification.confidence))"
                    + (boxes ? classification.box.map { " at \(boxText($0))" } ?? "" : "")
            }
            try Terminal.show("\(visible(file)): \(labels.isEmpty ? "none of these" : labels.joined(separator: ", "))")
        }
    }
}

/// Formats a bounding box as left edge, upper edge and size: "x 12 %, y 34 %, 10 % x 8 %".
func boxText(_ box: NormalizedRectangle) -> String {
    func share(_ value: Float) -> String { String(format: "%.0f %%", value * 100) }
    return "x \(share(box.x)), y \(share(box.y)), \(share(box.width)) x \(share(box.height))"
}

private struct ClassificationLine: Encodable {
    let file: String
    let classifications: [Classification]
    /// The bounding box of each classification, in the same order; `null` for a label without one.
    let boxes: [NormalizedRectangle?]?
    /// The keys `novelty` and `rejected`, if the model has a novelty rule.
    let verdict: NoveltyVerdict?

    private enum CodingKeys: String, CodingKey {
        case file, boxes
        case classifications = "observations"
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(file, forKey: .file)
        try container.encodeIfPresent(boxes, forKey: .boxes)
        try container.encode(classifications, forKey: .classifications)
        try verdict?.encode(to: encoder)
    }
}

/// The minimum confidence as it was typed: a number, or "auto".
struct ThresholdArgument: ExpressibleByArgument {
    private let text: String

    init(_ text: String) { self.text = text }
    init?(argument: String) { text = argument }

    var defaultValueDescription: String { text }

    func threshold() throws -> ConfidenceRule.Threshold {
        if text == "auto" { return .perLabel }
        guard let number = Float(text), (0...1).contains(number) else {
            throw ValidationError("--threshold is \(text), expected a number from 0 to 1, or auto.")
        }
        return .confidence(number)
    }
}
