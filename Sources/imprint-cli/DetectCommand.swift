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
              imprint detect logo.imprint photos/*.jpg --json

            Boxes are relative to the upright photo: 0 to 1, with the origin in the upper left corner.
            """)

    @Argument(help: "The model file of a detector, from imprint train-detector.")
    var model: String

    @Argument(help: ArgumentHelp("The photos to search.", valueName: "file"))
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "The minimum confidence of a detection, 0 to 1, or auto: the model's threshold for each label. (default: auto, or 0.5 for a "
                + "label without a threshold)", valueName: "number or auto"))
    var threshold: ThresholdArgument?

    @Option(
        help: ArgumentHelp("A personalization of the model, from imprint personalize.", valueName: "file"))
    var personalization: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + files + [personalization].compactMap { $0 })
        _ = try threshold?.threshold()
    }

    func run() throws {
        let workers = Workers(min(common.threadCount, files.count))
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
        try forEachPhoto(files, workers) { file in
            try detector.classify(URL(filePath: file)).filter(isDetected).compactMap(Detection.init)
        } show: { file, detections in
            if common.json {
                try Terminal.emit(DetectionLine(file: file, detections: detections))
            } else {
                let found = detections.map {
                    "\(shown($0.label)) \(Terminal.percent($0.confidence)) at \(boxText($0.box))"
                }
                try Terminal.show("\(visible(file)): \(found.isEmpty ? "no logo" : found.joined(separator: "; "))")
            }
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
