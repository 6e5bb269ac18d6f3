public import Foundation
public import Imprint
internal import ImprintCore
public import ImprintImages
internal import ImprintModel

/// The number of photos that a classifier's novelty rule accepts.
public struct NoveltyAcceptance: Sendable {
    /// The number of readable photos.
    public let imageCount: Int
    /// The number of photos with a novelty of at most 1, or predicted as a label that the rule does not know.
    public let acceptedCount: Int
    /// The photos that could not be read.
    public let skipped: [SkippedImage]

    /// The share of accepted photos, 0…1; 0 without photos.
    public var share: Double { imageCount == 0 ? 0 : Double(acceptedCount) / Double(imageCount) }
}

extension ImageClassifier {
    /// Counts the photos that the novelty rule accepts; for photos that show none of the labels, these are errors.
    ///
    /// Without a novelty rule, every photo is accepted.
    /// - Parameters:
    ///   - photos: The photos.
    ///   - threads: The number of threads, at least 1; the results do not depend on it.
    /// - Throws: `ImprintError.nonFiniteOutput` if an output of the model is not finite.
    public func acceptance(of photos: [URL], threads: Int = 1) throws -> NoveltyAcceptance {
        let outcomes = try Workers(threads).results(ofPhotos: photos.count) { index throws -> Bool in
            try !NoveltyRule.rejects(classifyWithNovelty(.file(photos[index])).novelty)
        }
        var (imageCount, acceptedCount) = (0, 0)
        var skipped: [SkippedImage] = []
        for (url, outcome) in zip(photos, outcomes) {
            switch outcome {
            case .success(let isAccepted):
                imageCount += 1
                acceptedCount += isAccepted ? 1 : 0
            case .failure(let error): skipped.append(SkippedImage(url: url, reason: error))
            }
        }
        return NoveltyAcceptance(imageCount: imageCount, acceptedCount: acceptedCount, skipped: skipped)
    }
}
