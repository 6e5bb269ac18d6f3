public import Foundation
public import Imprint
internal import ImprintCore
public import ImprintImages

/// How far the probabilities of two models of the same labels lie apart on the same images.
///
/// Differences are absolute ones, |p − q|, of the two probabilities that an image's label has: 0…1.
public struct Comparison: Sendable {
    /// One image and what the two models said.
    public struct Result: Hashable, Sendable {
        /// The file.
        public let url: URL
        /// The place in `Comparison.labels` of the label whose probabilities differ most.
        public let label: Int
        /// The probabilities of this label, the first model's and the second's.
        public let confidences: [Float]
        /// The mean difference over all labels.
        public let meanDifference: Double
        /// The place of the label that each model finds most probable, of equal ones the first.
        public let predicted: [Int]

        /// The greatest difference of a label's probabilities.
        public var maximumDifference: Double { abs(Double(confidences[0]) - Double(confidences[1])) }
        /// Whether both models find the same label most probable.
        public var agrees: Bool { predicted[0] == predicted[1] }

        /// Compares probabilities that are in the same order of labels.
        init(_ url: URL, _ first: [Float], _ second: [Float]) {
            let differences = zip(first, second).map { abs(Double($0) - Double($1)) }
            func highest<Value: Comparable>(_ values: [Value]) -> Int {
                values.indices.max { values[$0] < values[$1] } ?? 0
            }
            self.url = url
            label = highest(differences)
            confidences = [first[label], second[label]]
            meanDifference = differences.reduce(0, +) / Double(differences.count)
            predicted = [highest(first), highest(second)]
        }
    }

    /// The labels, in the order of the first model.
    public let labels: [String]
    /// What was said of each image that could be read, in the order of the images; one at least.
    public let results: [Result]
    /// The images that could not be read.
    public let skipped: [SkippedImage]

    /// The image with the greatest difference of a label's probabilities, of equal ones the first.
    public var mostDifferent: Result {
        results.reduce(results[0]) { $1.maximumDifference > $0.maximumDifference ? $1 : $0 }
    }

    /// The mean difference over all images and labels.
    public var meanDifference: Double { results.reduce(0) { $0 + $1.meanDifference } / Double(results.count) }

    /// The share of images of which both models find the same label most probable.
    public var topAgreement: Double { Double(results.count(where: \.agrees)) / Double(results.count) }
}

extension ImageClassifier {
    /// Classifies images with this model and another one, and compares their probabilities.
    ///
    /// Each prepares the images by its own rules. Images that cannot be read are skipped and listed.
    /// - Parameters:
    ///   - other: A model with the same labels, in any order.
    ///   - images: The files.
    ///   - threads: How many threads share the work; the results do not depend on it.
    ///   - onProgress: Told now and then how many images are done.
    /// - Throws: `ImprintError.labelsDiffer`, `ImageError.tooManyUnreadable` if more than half of the images, or all, cannot be read,
    ///   `ImprintError.noConfidence` where a model cannot be used.
    public func compare(
        with other: ImageClassifier, on images: [URL], threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> Comparison {
        // Where the other model has each label of this one.
        let places = Dictionary(uniqueKeysWithValues: other.labels.enumerated().map { ($1, $0) })
        let order = labels.compactMap { places[$0] }
        guard order.count == labels.count, labels.count == other.labels.count else {
            let own = Set(labels)
            throw ImprintError.labelsDiffer(
                first: labels.filter { places[$0] == nil }, second: other.labels.filter { !own.contains($0) })
        }
        let outcomes = try Workers(threads).parallelMap(images.count, onProgress: onProgress) {
            index throws -> Swift.Result<Comparison.Result, ImageError> in
            let image = images[index]
            do {
                let (first, second) = try (confidences(of: image), other.confidences(of: image))
                return .success(Comparison.Result(image, first, order.map { second[$0] }))
            } catch let error as ImageError {
                return .failure(error)
            }
        }
        var results: [Comparison.Result] = []
        var skipped: [SkippedImage] = []
        for (image, outcome) in zip(images, outcomes) {
            switch outcome {
            case .success(let result): results.append(result)
            case .failure(let error): skipped.append(SkippedImage(url: image, reason: error))
            }
        }
        guard !results.isEmpty, skipped.count <= results.count else {
            throw ImageError.tooManyUnreadable(images: images.count, skipped: skipped)
        }
        return Comparison(labels: labels, results: results, skipped: skipped)
    }
}
