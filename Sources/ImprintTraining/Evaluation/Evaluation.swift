public import Foundation
public import Imprint
public import ImprintImages

/// The evaluation of a classifier on labelled images.
///
/// Metrics are 0…1; the metrics of a single label are one-vs-rest. They equal the values of scikit-learn's functions of the same names.
/// Undefined values, such as the recall of a label without images, are `nil`.
public struct Evaluation: Sendable {
    /// The prediction for one image.
    public struct Result: Hashable, Sendable {
        /// The file.
        public let url: URL
        /// The index of the true label in `labels`.
        public let label: Int
        /// The confidence of every label, 0…1, in the order of `labels`.
        public let confidences: [Float]

        /// Creates a result.
        public init(url: URL, label: Int, confidences: [Float]) {
            self.url = url
            self.label = label
            self.confidences = confidences
        }

        /// The index of the label with the highest confidence; the first one of equal confidences.
        public var predicted: Int { confidences.indices.max { confidences[$0] < confidences[$1] } ?? 0 }

        /// The confidence of the predicted label.
        var confidence: Float { confidences[predicted] }
        /// Whether the predicted label is the true one.
        public var isCorrect: Bool { predicted == label }

        /// Returns one classification per label, highest confidence first.
        /// - Parameter labels: The labels of the evaluation.
        public func classifications(labels: [String]) -> [Classification] {
            Classification.ranked(zip(labels, confidences).map { Classification(label: $0, confidence: $1) })
        }
    }

    /// The labels, in the order of the classifier's outputs.
    public let labels: [String]
    /// The result of each readable image, in the order of the folder.
    public let results: [Result]
    /// The images that could not be read.
    public let skipped: [SkippedImage]

    /// Creates an evaluation.
    /// - Parameters:
    ///   - labels: The labels, each only once, in the order of the classifier's outputs.
    ///   - results: The result of each readable image, with the index of a label and a confidence for each label.
    ///   - skipped: The images that could not be read.
    public init(labels: [String], results: [Result], skipped: [SkippedImage]) {
        self.labels = labels
        self.results = results
        self.skipped = skipped
    }

    /// The fraction of correctly classified images; 0 if there are no images.
    public var accuracy: Double { fraction { $0.isCorrect } }

    /// The 95 % confidence interval of the accuracy (Wilson, 1927); 0…1 if there are no images.
    ///
    /// For an accuracy p on n images, with z = 1.96, it is (p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n).
    public var accuracyInterval: ClosedRange<Double> {
        Self.interval(hits: results.count(where: \.isCorrect), of: results.count)
    }

    /// Returns the 95 % confidence interval of a proportion.
    static func interval(hits: Int, of total: Int) -> ClosedRange<Double> {
        guard total > 0 else { return 0...1 }
        let z = 1.959963984540054  // The 97.5 % quantile of the standard normal distribution.
        let (count, proportion) = (Double(total), Double(hits) / Double(total))
        let middle = proportion + z * z / (2 * count)
        let half = z * (proportion * (1 - proportion) / count + z * z / (4 * count * count)).squareRoot()
        let divisor = 1 + z * z / count
        // Rounding would miss the exact ends 0 and 1.
        return (hits == 0 ? 0 : (middle - half) / divisor)...(hits == total ? 1 : (middle + half) / divisor)
    }

    /// Returns the top-k accuracy: the fraction of images whose true label is among the `k` most confident labels.
    ///
    /// It is 0 if there are no images. Labels with equal confidences rank in the order of `labels`, as in `Result.predicted`.
    public func topAccuracy(_ k: Int) -> Double {
        precondition(k >= 1, "k is \(k), expected at least 1")
        return fraction { result in
            let confidence = result.confidences[result.label]
            let better = result.confidences.enumerated().count { index, other in
                other > confidence || (other == confidence && index < result.label)
            }
            return better < k
        }
    }

    /// The confusion matrix: the number of images of each true label (row) that were classified as each label (column).
    public var confusion: [[Int]] {
        var matrix = Array(repeating: Array(repeating: 0, count: labels.count), count: labels.count)
        for result in results { matrix[result.label][result.predicted] += 1 }
        return matrix
    }

    /// Returns the misclassified images with the highest confidence, at most `count`; equal ones keep the order of the folder.
    public func worstMistakes(_ count: Int) -> [Result] {
        precondition(count >= 0, "count is \(count), expected at least 0")
        return Array(results.filter { !$0.isCorrect }.sorted { $1.confidence < $0.confidence }.prefix(count))
    }

    /// Returns the images with the lowest confidence, at most `count`.
    func leastConfident(_ count: Int) -> [Result] {
        Array(results.sorted { $0.confidence < $1.confidence }.prefix(count))
    }

    private func fraction(_ isHit: (Result) -> Bool) -> Double {
        results.isEmpty ? 0 : Double(results.count(where: isHit)) / Double(results.count)
    }
}
