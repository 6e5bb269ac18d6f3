package import Foundation
package import Imprint
internal import ImprintCore
package import ImprintImages

/// The differences between the probabilities of two models with the same labels, on the same images.
///
/// A difference is |p − q|, 0…1, of the probabilities of one label.
package struct Comparison: Sendable {
    /// The predictions of the two models for one image.
    package struct Result: Hashable, Sendable {
        /// The file.
        package let url: URL
        /// The index in `Comparison.labels` of the label with the largest difference.
        package let label: Int
        /// The probabilities of this label: of the first and of the second model.
        package let confidences: [Float]
        /// The mean difference over all labels.
        package let meanDifference: Double
        /// The index of the label that each model predicts; the first one of equal probabilities.
        package let predicted: [Int]

        /// The largest difference of all labels.
        package var maximumDifference: Double { abs(Double(confidences[0]) - Double(confidences[1])) }
        /// Whether both models predict the same label.
        package var agrees: Bool { predicted[0] == predicted[1] }

        /// Compares probabilities in the same order of labels.
        init(_ url: URL, _ first: [Float], _ second: [Float]) {
            let differences = zip(first, second).map { abs(Double($0) - Double($1)) }
            func indexOfMaximum<Value: Comparable>(_ values: [Value]) -> Int {
                values.indices.max { values[$0] < values[$1] } ?? 0
            }
            self.url = url
            label = indexOfMaximum(differences)
            confidences = [first[label], second[label]]
            meanDifference = differences.reduce(0, +) / Double(differences.count)
            predicted = [indexOfMaximum(first), indexOfMaximum(second)]
        }
    }

    /// The labels, in the order of the first model.
    package let labels: [String]
    /// The result of each readable image, in the order of the images; at least one.
    package let results: [Result]
    /// The images that could not be read.
    package let skipped: [SkippedImage]

    /// The result with the largest `maximumDifference`; the first one of equal results.
    package var mostDifferent: Result {
        results.reduce(results[0]) { $1.maximumDifference > $0.maximumDifference ? $1 : $0 }
    }

    /// The mean difference over all images and labels.
    package var meanDifference: Double { results.reduce(0) { $0 + $1.meanDifference } / Double(results.count) }

    /// The fraction of images for which both models predict the same label.
    package var topAgreement: Double { Double(results.count(where: \.agrees)) / Double(results.count) }
}

extension ImageClassifier {
    /// Classifies images with this model and another one, and compares their probabilities.
    ///
    /// Each model applies its own preprocessing. The comparison skips unreadable images, and lists them.
    /// - Parameters:
    ///   - other: A model with the same labels, in any order.
    ///   - images: The files.
    ///   - threads: The number of threads; the results do not depend on it.
    ///   - onProgress: Called from time to time with the number of finished images.
    /// - Throws: `ImprintError.labelsDiffer`, `ImageError.tooManyUnreadable` if more than half of the images, or all, cannot be read,
    ///   `ImprintError.nonFiniteOutput` if an output of a model is not finite.
    package func compare(
        with other: ImageClassifier, on images: [URL], threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> Comparison {
        let otherIndices = Dictionary(uniqueKeysWithValues: other.labels.enumerated().map { ($1, $0) })
        let order = labels.compactMap { otherIndices[$0] }
        guard order.count == labels.count, labels.count == other.labels.count else {
            let known = Set(labels)
            throw ImprintError.labelsDiffer(
                first: labels.filter { otherIndices[$0] == nil }, second: other.labels.filter { !known.contains($0) })
        }
        let outcomes = try Workers(threads).results(ofPhotos: images.count, onProgress: onProgress) {
            index throws -> Comparison.Result in
            let image = images[index]
            let (first, second) = try (confidences(of: image), other.confidences(of: image))
            return Comparison.Result(image, first, order.map { second[$0] })
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
