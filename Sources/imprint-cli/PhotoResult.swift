internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The result for a photo, as every output shows it.
struct PhotoResult: Sendable {
    /// The path of the photo.
    let file: String
    /// The classifications to show, best first; empty if the photo shows none of the labels.
    let classifications: [Classification]
    /// The verdict of the novelty rule, or nil if the model has no such rule.
    var verdict: NoveltyVerdict?
    /// The confidence that the photo shows each logo, by label; nil unless the logos are found from their artwork.
    var confidences: [String: Float]?

    /// Whether the novelty rule rejects the photo, because it is unlike the training photos.
    var isRejected: Bool { verdict?.isRejected == true }

    /// Returns the number of classifications with each label.
    func counts(of labels: [String]) -> [Int] {
        labels.map { label in classifications.count { $0.label == label } }
    }
}

/// The format in which a subcommand shows results.
struct PhotoFormat: Sendable {
    /// The text for a photo without classifications, which is also the name of its folder with --copy-to.
    let noneText: String
    /// The text between two classifications.
    let separator: String
    /// Whether results show bounding boxes.
    let hasBoxes: Bool
    /// Whether results have a verdict of the model's novelty rule.
    let hasVerdicts: Bool
    /// The labels whose numbers are shown instead of the classifications; nil to show the classifications.
    var countedLabels: [String]?

    /// Returns counts as text, "2 Crest, 1 Leaf"; nil if all are 0.
    static func text(counts: [Int], of labels: [String]) -> String? {
        let shownCounts = zip(counts, labels).filter { $0.0 > 0 }.map { "\($0.0) \(shown($0.1))" }
        return shownCounts.isEmpty ? nil : shownCounts.joined(separator: ", ")
    }

    /// Returns a result as a line of text.
    func text(_ result: PhotoResult) -> String {
        if let countedLabels {
            let counts = Self.text(counts: result.counts(of: countedLabels), of: countedLabels)
            return "\(visible(result.file)): \(counts ?? noneText)"
        }
        if result.isRejected {
            return "\(visible(result.file)): \(NoveltyVerdict.text(closest: result.classifications.first))"
        }
        let labels = result.classifications.map { classification in
            Self.caption(classification) + (hasBoxes ? classification.box.map { " at \(boxText($0))" } ?? "" : "")
        }
        return "\(visible(result.file)): \(labels.isEmpty ? noneText : labels.joined(separator: separator))"
    }

    /// Returns the annotation of a copy of the photo: its boxes, or else its best three labels below it.
    func annotation(_ result: PhotoResult) -> ImageAnnotation {
        if result.isRejected {
            return ImageAnnotation(captions: [NoveltyVerdict.text(closest: result.classifications.first)], boxes: [])
        }
        let boxes = result.classifications.compactMap { classification in
            hasBoxes ? classification.box.map { ImageAnnotation.Box($0, caption: Self.caption(classification)) } : nil
        }
        let others = result.classifications.filter { !hasBoxes || $0.box == nil }.prefix(3).map(Self.caption)
        return ImageAnnotation(captions: boxes.isEmpty && others.isEmpty ? [noneText] : Array(others), boxes: boxes)
    }

    private static func caption(_ classification: Classification) -> String {
        "\(shown(classification.label)) \(Terminal.percent(classification.confidence))"
    }
}

/// Formats a bounding box as left edge, upper edge and size: "x 12 %, y 34 %, 10 % x 8 %".
func boxText(_ box: NormalizedRectangle) -> String {
    func share(_ value: Float) -> String { String(format: "%.0f %%", value * 100) }
    return "x \(share(box.x)), y \(share(box.y)), \(share(box.width)) x \(share(box.height))"
}

/// A photo that cannot be processed; the subcommand continues with the other photos.
struct PhotoFailure: DescribedError {
    let description: String
}

/// The JSON line of a photo that cannot be processed.
struct PhotoFailureLine: Encodable {
    let file: String
    let error: String
}
