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
        commandName: "classify", abstract: "Classify photos and print the labels with the highest confidences.",
        discussion: """
            Examples:
              imprint classify m.imprint photo.jpg photos
              imprint classify m.imprint photos --threshold 0.8 --copy-to sorted
              find photos -name '*.jpg' | imprint classify m.imprint --files-from - --json
            """)

    @Argument(help: "The model file.")
    var model: String

    @OptionGroup(title: "Photos")
    var inputs: PhotoInputOptions

    @Option(
        help: ArgumentHelp(
            "The maximum number of labels to show for a photo. (default: 5; no limit with --threshold auto)",
            valueName: "count"))
    var top: Int?

    @Option(
        help: ArgumentHelp(
            "The minimum confidence to show, 0 to 1, or auto: the model's threshold for each label. (default: 0; auto for a multi-label "
                + "model from imprint train)",
            valueName: "number or auto"))
    var threshold: ThresholdArgument?

    @Option(
        help: ArgumentHelp(
            "Show only labels whose confidence gives at least this precision on the validation set, 0 to 1.",
            valueName: "share"))
    var minimumPrecision: Double?

    @Option(
        help: ArgumentHelp(
            "Show only labels whose confidence gives at least this recall on the validation set, 0 to 1; with --minimum-precision, both must "
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

    @OptionGroup(title: "Photos unlike the training photos")
    var noveltyOptions: NoveltyOptions

    @OptionGroup(title: "Model")
    var classifierOptions: ClassifierOptions

    @OptionGroup(title: "Output")
    var outputs: PhotoOutputOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + [categories].compactMap { $0 })
        if inputs.photos.isEmpty && inputs.filesFrom == nil {
            let url = URL(filePath: model)
            let isPhoto = isImage(url) || FileStatus(url)?.isFolder == true
            throw ValidationError(
                "\(visible(model)) is read as the model, and there are no photos. Name the model first and then photos, as in: imprint classify "
                    + (isPhoto ? "pets.imprint \(visible(model))" : "\(visible(model)) photo.jpg"))
        }
        try outputs.check(common)
        try require(top ?? 1, "--top", in: 1...1_000_000)
        try require(minimumPrecision ?? 0, "--minimum-precision", in: 0...1)
        try require(minimumRecall ?? 0, "--minimum-recall", in: 0...1)
        let threshold = try threshold?.threshold()
        if categories != nil, threshold == .perLabel || minimumPrecision != nil || minimumRecall != nil {
            throw ValidationError(
                "--categories: categories have no threshold, precision or recall. Leave these options out, or set --threshold to a number."
            )
        }
    }

    func run() throws {
        let photos = try inputs.open()
        // Photos are classified in parallel; a photo gets several threads only if there are more threads than photos.
        let workers = photos.workers(upTo: common.threadCount)
        let classifier = try classifierOptions.classifier(model, threads: common.threadCount / workers.count)
        let rule = ConfidenceRule(
            threshold: try threshold?.threshold() ?? defaultThreshold(classifier), minimumPrecision: minimumPrecision,
            minimumRecall: minimumRecall)
        try rule.check(classifier)
        if cropAndScale != nil, classifier.model.head.locatesObjects {
            throw ValidationError(
                "--crop-and-scale: \(model) is a detector, which has its own rule. Leave the option out.")
        }
        if boxes { try requireDetector(classifier, "--boxes: \(model)", otherwise: "leave out --boxes") }
        let categories = try categories.map { try self.categories($0, of: classifier) }
        let output = try outputs.open(
            PhotoFormat(
                noneText: ImageFolder.rejectionText, separator: ", ", hasBoxes: boxes,
                hasVerdicts: classifier.noveltyRule != nil),
            inputs: inputs, common: common)
        let limit = top ?? (rule.threshold == .perLabel ? classifier.labels.count : 5)
        try forEachPhoto(photos, workers, output, verb: "classifying") {
            ClassificationLine($0, hasBoxes: boxes)
        } classify: { photo in
            var (classifications, novelty) = try classifier.classifyWithNovelty(
                .file(photo.url), cropAndScale: cropAndScale)
            if let categories {
                classifications = classifications.rolledUp(into: categories, sumToOne: classifier.confidencesSumToOne)
            }
            return PhotoResult(
                file: photo.path, classifications: Array(classifications.filter(rule.accepts).prefix(limit)),
                verdict: noveltyOptions.verdict(novelty, of: classifier))
        }
    }

    /// The default of --threshold: the threshold of each label for a multi-label model, otherwise 0.
    private func defaultThreshold(_ classifier: ImageClassifier) -> ConfidenceRule.Threshold {
        let usesLabels =
            classifier.model.isMultiLabel && categories == nil && minimumPrecision == nil && minimumRecall == nil
        return usesLabels ? .perLabel : .confidence(0)
    }

    private func categories(_ text: String, of classifier: ImageClassifier) throws -> Categories {
        guard text == "auto" else {
            let categories = try Categories(
                contentsOf: URL(filePath: text), labels: classifier.model.labels, personalLabels: classifier.labels)
            warnAboutSimilarCategories(categories, labels: classifier.labels)
            return categories
        }
        guard let categories = classifier.model.categories else {
            throw ValidationError(
                "--categories auto: \(model) has no categories. Name a file of categories, or add them to the model with "
                    + "\(classifier.model.exportCommand(adding: "--categories FILE"))."
            )
        }
        return categories
    }
}

private struct ClassificationLine: Encodable {
    let file: String
    let classifications: [Classification]
    /// The bounding box of each classification, in the same order; `null` for a label without one.
    let boxes: [NormalizedRectangle?]?
    /// The keys `novelty` and `rejected`, if the model has a novelty rule.
    let verdict: NoveltyVerdict?

    init(_ result: PhotoResult, hasBoxes: Bool) {
        file = result.file
        classifications = result.classifications
        boxes = hasBoxes ? classifications.map(\.box) : nil
        verdict = result.verdict
    }

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
