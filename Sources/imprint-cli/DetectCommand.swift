internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

struct DetectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "detect", abstract: "Find logos in photos, with their bounding boxes.",
        discussion: """
            Examples:
              imprint detect logo.imprint photo.jpg
              imprint detect logo.imprint photos --annotate checked
              find photos -name '*.jpg' | imprint detect logo.imprint --files-from - --json

            Boxes are relative to the upright photo: 0 to 1, with the origin in the upper left corner.
            """)

    @Argument(help: "The model file of a detector, from imprint train-detector.")
    var model: String

    @OptionGroup var inputs: PhotoInputOptions

    @Option(
        help: ArgumentHelp(
            "The minimum confidence of a detection, 0 to 1, or auto: the model's threshold for each label. (default: auto, or 0.5 for a "
                + "label without a threshold)", valueName: "number or auto"))
    var threshold: ThresholdArgument?

    @Option(
        help: ArgumentHelp("A personalization of the model, from imprint personalize.", valueName: "file"))
    var personalization: String?

    @OptionGroup var outputs: PhotoOutputOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + [personalization].compactMap { $0 })
        try outputs.check(common)
        _ = try threshold?.threshold()
    }

    func run() throws {
        let photos = try inputs.open()
        let workers = photos.workers(upTo: common.threadCount)
        let detector = try ImageClassifier(
            contentsOf: URL(filePath: model), threads: common.threadCount / workers.count
        ).personalized(with: try personalization.map { try Personalization(contentsOf: URL(filePath: $0)) })
        guard detector.model.head.locatesObjects else {
            throw ValidationError(
                "\(model): the model classifies whole photos and has no boxes, expected a detector. Train one with "
                    + "imprint train-detector, or use imprint classify.")
        }
        let threshold = try threshold?.threshold()
        if let threshold { try ConfidenceRule(threshold: threshold).check(detector) }
        func isDetected(_ classification: Classification) -> Bool {
            if case .confidence(let minimum) = threshold { return classification.confidence >= minimum }
            return classification.reachesThreshold ?? (classification.confidence >= 0.5)
        }
        let output = try outputs.open(
            PhotoFormat(noneText: "no logo", separator: "; ", hasBoxes: true, hasVerdicts: false), inputs: inputs,
            common: common)
        try forEachPhoto(photos, workers, output, verb: "searching") {
            DetectionLine(file: $0.file, detections: $0.classifications.compactMap(Detection.init))
        } classify: { photo in
            (try detector.classify(photo).filter { isDetected($0) && $0.box != nil }, nil)
        }
    }
}

private struct Detection: Encodable {
    let label: String
    let confidence: Float
    let box: NormalizedRectangle

    init?(_ classification: Classification) {
        guard let box = classification.box else { return nil }
        (label, confidence, self.box) = (classification.label, classification.confidence, box)
    }
}

private struct DetectionLine: Encodable {
    let file: String
    let detections: [Detection]
}
