public import Foundation
public import Imprint
package import ImprintCore
public import ImprintImages
public import ImprintSynthesis

/// Finds logos in photos from their artwork, without any training.
///
/// ```swift
/// let matcher = try ArtworkMatcher(["Logo": [try Artwork(contentsOf: logo)]])
/// for object in try matcher.detect(photo) {
///     print(object.label, object.confidence, object.box)
/// }
/// ```
///
/// The matcher draws each artwork, and parts of it, on plain backgrounds in several colours, rotations and tilts. It compares these views
/// with all positions of an image pyramid of the photo, by the normalized correlation of their `LocalFeatures`. The score of a logo is the
/// mean of the three highest correlations of its parts. The parts may be at different positions, so a logo may be bent or partly hidden.
/// This score belongs to the best match of the logo. The score of every other match is the mean of the three highest correlations near it.
///
/// A matcher is immutable, and any number of threads can use it at the same time; each needs about 350 MB. Creating it takes about half a
/// second for each artwork on one core. A trained detector (`DetectorTrainer`) is faster in use.
public final class ArtworkMatcher: Sendable {
    /// The labels of the logos, in alphabetical order.
    public let labels: [String]
    private let features: LocalFeatures
    private let matcher: TemplateMatcher
    /// The label of each artwork and its templates: first the whole logo, then parts of it.
    private let artworks: [(label: Int, templates: Range<Int>)]
    /// The region of the logo that each template shows.
    private let regions: [NormalizedRectangle]
    private let workers: Workers
    private let networks = IdlePool<AnySizeNetwork>()

    /// The memory for searching one photo: about 350 MB for the execution plans of a shape, and the scores.
    private static let bytesPerPhoto = 400_000_000

    /// Returns the number of photos to search at the same time, at least 1.
    /// - Parameters:
    ///   - limit: The maximum number.
    ///   - byteCount: The available memory.
    package static func parallelPhotos(upTo limit: Int, inMemory byteCount: Int) -> Int {
        max(1, min(limit, byteCount / bytesPerPhoto))
    }

    /// The number of pixels around a view, so that features near its edges are as accurate as in the middle of a photo.
    package static let border = 2 * LocalFeatures.stride
    /// The number of parts that count; the others may be hidden or too small.
    private static let countedParts = 3
    /// The largest ratio of the sides of a logo; a longer one has fewer than four rows or columns in its views.
    private static let longestRatio: Float = 32
    /// The maximum number of threads of the network; more threads do not make it faster for small images.
    private static let networkThreads = 4
    /// The calibration of EfficientNet-Lite0, as an estimate for features without a calibration.
    private static let estimate = MatchCalibration(midpoint: 0.397, width: 0.0325, growth: 0.0172)

    /// Creates a matcher.
    /// - Parameters:
    ///   - artwork: The artwork of each label: one or more variants of a logo. Labels without artwork are ignored.
    ///   - features: The features to compare; nil for those that come with Imprint.
    ///   - threads: The maximum number of threads for one photo, at least 1. The result does not depend on it.
    /// - Throws: `ArtworkError.tooLong` if a logo is longer than 32 to 1, `ImprintError.nonFiniteOutput` if a feature is not finite,
    ///   `ImprintError.unsupportedImageSize` if the network of the features accepts only one size, `ImprintError.outOfMemory`.
    public convenience init(_ artwork: [String: [Artwork]], features: LocalFeatures? = nil, threads: Int = 1) throws {
        let workers = Workers(threads)
        try self.init(artwork, features: features ?? .builtIn(), workers: workers, drawingWorkers: workers)
    }

    /// Creates a matcher.
    /// - Parameters:
    ///   - workers: The threads for one photo.
    ///   - drawingWorkers: The threads that make the templates.
    package init(
        _ artwork: [String: [Artwork]], features: LocalFeatures, workers: Workers, drawingWorkers: Workers
    ) throws {
        self.features = features
        self.workers = workers
        labels = artwork.keys.filter { artwork[$0]?.isEmpty == false }.sorted()
        var views: [(views: ArtworkViews, part: ArtworkPart)] = []
        var artworks: [(label: Int, templates: Range<Int>)] = []
        for (label, name) in labels.enumerated() {
            for artwork in artwork[name] ?? [] {
                let drawn = ArtworkViews(artwork, cell: LocalFeatures.stride, seed: 0)
                let whole = drawn.parts[0]
                let ratio = max(whole.width, whole.height) / min(whole.width, whole.height)
                guard ratio <= Self.longestRatio else {
                    throw ArtworkError.tooLong(
                        name: artwork.name, ratio: Int(ratio.rounded(.up)), maximum: Int(Self.longestRatio))
                }
                artworks.append((label, views.count..<(views.count + drawn.parts.count)))
                views += drawn.parts.map { (drawn, $0) }
            }
        }
        self.artworks = artworks
        regions = views.map(\.part.region)
        let templates = try drawingWorkers.parallelMap(views.count) { index in
            let (views, part) = views[index]
            let network = features.extractor(plans: 1)
            return TemplateMatcher.Template(
                height: part.height, width: part.width,
                views: try (0..<ArtworkViews.count).map { view in
                    let output = try network.run(views.view(of: part, index: view, border: Self.border))
                    let maps = LocalFeatureMaps(
                        output, channels: features.channels, border: Self.border / LocalFeatures.stride)
                    guard maps.areFinite else { throw ImprintError.nonFiniteOutput(network: features.network.name) }
                    return maps
                })
        }
        matcher = TemplateMatcher(templates, channels: features.channels)
    }

    /// Returns how likely it is that the image in a file shows each logo.
    /// - Returns: One classification per label with the most likely box, by descending confidence; empty without artwork. If the confidence
    ///   is at least 0.5, the photo probably shows the logo; docs/results/logo-matching.md has the rate of false positives.
    /// - Throws: `ImageError` if the file cannot be read as an image, `ImprintError.nonFiniteOutput` if a feature is not finite,
    ///   `ImprintError.outOfMemory`.
    public func classify(_ url: URL) throws -> [Classification] { try classify(decode(url)) }

    /// Returns how likely an image in memory shows each logo.
    /// - Parameter image: The image, upright and in sRGB.
    /// - Returns: One classification per label with the most likely box, by descending confidence.
    /// - Throws: `ImprintError.nonFiniteOutput` if a feature is not finite, `ImprintError.outOfMemory`.
    public func classify(_ image: RasterImage) throws(ImprintError) -> [Classification] {
        classifications(try scores(in: image))
    }

    /// Finds all logos in the image in a file.
    /// - Parameters:
    ///   - url: A JPEG, PNG, WebP or HEIC file.
    ///   - minimumConfidence: The minimum confidence of an object, 0…1.
    /// - Returns: The objects by descending confidence: at most 100 of each label, with a confidence of at least 0.01. Two objects with similar
    ///   boxes are the same one, and only the more confident label is returned.
    /// - Throws: `ImageError` if the file cannot be read as an image, `ImprintError.invalidSetting` if the confidence is not within 0…1,
    ///   `ImprintError.nonFiniteOutput` if a feature is not finite, `ImprintError.outOfMemory`.
    public func detect(_ url: URL, minimumConfidence: Float = 0.5) throws -> [DetectedObject] {
        try detect(decode(url), minimumConfidence: minimumConfidence)
    }

    /// Finds all logos in an image in memory.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - minimumConfidence: The minimum confidence of an object, 0…1.
    /// - Returns: The objects by descending confidence: at most 100 of each label, with a confidence of at least 0.01. Two objects with similar
    ///   boxes are the same one, and only the more confident label is returned.
    /// - Throws: `ImprintError.invalidSetting` if the confidence is not within 0…1, `ImprintError.nonFiniteOutput` if a feature is not finite,
    ///   `ImprintError.outOfMemory`.
    public func detect(
        _ image: RasterImage, minimumConfidence: Float = 0.5
    ) throws(ImprintError) -> [DetectedObject] {
        guard (0...1).contains(minimumConfidence) else {
            throw .invalidSetting(name: "minimumConfidence", found: messageText(minimumConfidence), expected: "0 to 1")
        }
        return objects(try scores(in: image)).filter { $0.confidence >= minimumConfidence }
    }

    /// Returns both the classifications and the objects of a photo, which is compared only once.
    package func search(_ url: URL) throws -> (classifications: [Classification], objects: [DetectedObject]) {
        try search(decode(url))
    }

    /// Returns both the classifications and the objects of an image, which is compared only once.
    package func search(
        _ image: RasterImage
    ) throws(ImprintError) -> (classifications: [Classification], objects: [DetectedObject]) {
        let scores = try scores(in: image)
        return (classifications(scores), objects(scores))
    }

    /// Returns the score of each label and the box of the whole logo, in the order of the labels.
    package func matches(in image: RasterImage) throws(ImprintError) -> [TemplateMatcher.Match] {
        matches(try scores(in: image))
    }

    private func decode(_ url: URL) throws -> RasterImage {
        try ImageFile.decode(url, coveringShortSide: Self.shortSideToDecode)
    }

    private func confidence(_ score: Float) -> Float {
        (features.calibration ?? Self.estimate).confidence(score, logos: artworks.count)
    }

    private func scores(in image: RasterImage) throws(ImprintError) -> TemplateScores {
        try networks.withValue { () throws(ImprintError) in
            // The plans of one shape: a folder of photos usually has few shapes, and each takes about 350 MB.
            features.extractor(
                plans: TemplateMatcher.levels.count, threads: min(workers.count, Self.networkThreads))
        } _: { network throws(ImprintError) in
            try matcher.scores(
                in: image.flattenedOnWhite().converted(toChannels: 3), network, workers: workers)
        }
    }

    private func classifications(_ scores: TemplateScores) -> [Classification] {
        Classification.ranked(
            zip(labels, matches(scores)).map { label, match in
                Classification(label: label, confidence: confidence(match.score), box: match.box)
            })
    }

    /// Returns the best match of each label.
    ///
    /// Its score is the mean of the highest scores of its parts, which may be at any positions.
    private func matches(_ scores: TemplateScores) -> [TemplateMatcher.Match] {
        var best = labels.map { _ in TemplateMatcher.Match(score: -1, box: .all) }
        for (label, templates) in artworks {
            let parts = templates.map(scores.best)
            let score = Self.meanOfHighest(parts.map(\.score))
            if score > best[label].score { best[label] = TemplateMatcher.Match(score: score, box: parts[0].box) }
        }
        return best
    }

    /// Returns all objects by descending confidence.
    private func objects(_ scores: TemplateScores) -> [DetectedObject] {
        var found: [[TemplateMatcher.Match]] = labels.map { _ in [] }
        for (label, templates) in artworks {
            found[label] += scores.peaks(templates.lowerBound).map { peak in
                let near = templates.dropFirst().map { scores.highest($0, at: regions[$0], of: peak.box) }
                return TemplateMatcher.Match(
                    score: Self.meanOfHighest([peak.score] + near), box: peak.box.clippedToImage)
            }
        }
        for (label, best) in matches(scores).enumerated() {
            found[label].sort { $0.score > $1.score }
            // The best match has the score of the image: more parts of a bent logo may be visible than near their positions.
            if !found[label].isEmpty { found[label][0].score = best.score }
        }
        return ObjectPeaks.objects(
            zip(labels, found).map { label, matches in
                matches.map {
                    DetectedObject(label: label, confidence: confidence($0.score), box: $0.box)
                }
            })
    }

    private static func meanOfHighest(_ scores: [Float]) -> Float {
        let highest = scores.sorted(by: >).prefix(countedParts)
        return highest.reduce(0, +) / Float(highest.count)
    }

    /// The minimum short side of a photo to decode; of all images with as many pixels as the highest level, a square has the longest.
    private static var shortSideToDecode: Int {
        ImageFile.shortSideToDecode(covering: TemplateMatcher.levels.max() ?? 0)
    }
}
