internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

/// The options of classify for photos unlike the training photos.
struct NoveltyOptions: ParsableArguments {
    @Flag(
        help: "Also show labels for photos that are unlike the training photos, instead of \"none of these\".")
    var acceptAll = false

    /// Returns the verdict on a photo, or nil if the model has no novelty rule.
    func verdict(_ novelty: Float?, of classifier: ImageClassifier) -> NoveltyVerdict? {
        guard classifier.noveltyRule != nil else { return nil }
        return NoveltyVerdict(novelty: novelty, isRejected: !acceptAll && NoveltyRule.rejects(novelty))
    }
}

/// Whether a photo is unlike the training photos.
struct NoveltyVerdict: Encodable, Sendable {
    /// The novelty, more than 1 if the photo is unlike the training photos; `null` if the best label was added by a personalization.
    let novelty: Float?
    let isRejected: Bool

    private enum CodingKeys: String, CodingKey {
        case novelty
        case isRejected = "rejected"
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        // `null`, not absent, if it is unknown.
        try container.encode(novelty, forKey: .novelty)
        try container.encode(isRejected, forKey: .isRejected)
    }

    /// Returns the text for a rejected photo: "none of these, closest dog 61.0 %".
    static func text(closest: Classification?) -> String {
        let text = ImageFolder.rejectionText
        return closest.map { "\(text), closest \(shown($0.label)) \(Terminal.percent($0.confidence))" } ?? text
    }
}

/// The option of evaluate for photos of other subjects than the labels.
struct UnknownPhotosOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A folder of photos that show none of the labels; report the share of them that the model accepts.",
            valueName: "folder"))
    var unknown: String?

    func validate() throws { try requirePaths([unknown].compactMap { $0 }) }

    /// Checks that the model can reject unknown photos, and lists the photos before the evaluation of the others.
    /// - Returns: The unknown photos, or nil without the option.
    func photos(for classifier: ImageClassifier, _ model: String) throws -> [URL]? {
        guard let unknown else { return nil }
        guard classifier.model.head != .sigmoid else {
            throw ValidationError(
                "--unknown: \(model) is a multi-label model, which may predict no label at all. Expected a model that predicts one label per "
                    + "photo.")
        }
        guard classifier.noveltyRule != nil else {
            throw ValidationError(
                "--unknown: \(model) has no novelty rule, expected a classifier of whole photos that imprint train made with this version. "
                    + "Train it again.")
        }
        return try ImageFolder.images(in: URL(filePath: unknown))
    }

    /// Checks that the unknown photos are none of the labelled photos, which the model should accept.
    /// - Throws: `ValidationError` that names a labelled photo.
    func check(_ photos: [URL]?, _ labelled: any TrainingSource) throws {
        guard let unknown, let photos else { return }
        let locations = Set(photos.map { $0.resolvingSymlinksInPath().displayPath })
        let isUnknown = { (photo: TrainingPhoto) in locations.contains(photo.url.resolvingSymlinksInPath().displayPath)
        }
        guard let photo = labelled.items.first(where: isUnknown) else { return }
        throw ValidationError(
            "--unknown: \(unknown): the folder contains the labelled photo \(visible(photo.url.displayPath)), expected only photos that show "
                + "none of the labels. Name a folder of other photos.")
    }

    /// Measures how many of the unknown photos the model accepts, or returns nil without the option.
    func acceptance(of photos: [URL]?, by classifier: ImageClassifier, threads: Int) throws -> UnknownLine? {
        guard let unknown, let photos else { return nil }
        let acceptance = try classifier.acceptance(of: photos, threads: threads)
        for image in acceptance.skipped { Terminal.warn("Skipped: \(image.reason)") }
        guard acceptance.imageCount > 0 else {
            throw ImageError.missingImages(folder: URL(filePath: unknown), reason: "none of its photos can be read")
        }
        return UnknownLine(acceptance)
    }
}

/// The acceptance of unknown photos, as JSON.
struct UnknownLine: Encodable {
    let images: Int
    let accepted: Int
    let acceptedShare: Double
    let skipped: [SkippedLine]

    init(_ acceptance: NoveltyAcceptance) {
        images = acceptance.imageCount
        accepted = acceptance.acceptedCount
        acceptedShare = acceptance.share
        skipped = acceptance.skipped.map(SkippedLine.init)
    }

    /// A line of text.
    var text: String { "unknown photos: accepted \(accepted) of \(images) (\(Terminal.percent(acceptedShare)))" }
}

/// The novelty rule of a model, as JSON.
struct NoveltyLine: Encodable {
    let acceptance: Double
    let threshold: Float
    let images: Int

    init(_ rule: NoveltyRule) {
        acceptance = rule.acceptance
        threshold = rule.threshold
        images = rule.images
    }
}
