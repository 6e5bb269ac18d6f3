public import Foundation
public import Imprint
public import ImprintImages

/// How well a classifier does on labelled images.
///
/// Shares are 0…1. Scores of one label take it against all others. Values are those of scikit-learn's functions of the same
/// names on the same confidences; where a value has no meaning, as the recall of a label that no image bears, it is `nil`.
public struct Evaluation: Sendable {
    /// One image and what the classifier said.
    public struct Result: Hashable, Sendable {
        /// The file.
        public let url: URL
        /// The place of its true label in `labels`.
        public let label: Int
        /// The confidence in every label, 0…1, in the order of `labels`.
        public let confidences: [Float]

        /// Makes a result.
        public init(url: URL, label: Int, confidences: [Float]) {
            self.url = url
            self.label = label
            self.confidences = confidences
        }

        /// The place of the label with the highest confidence, of equal ones the first.
        public var predicted: Int { confidences.indices.max { confidences[$0] < confidences[$1] } ?? 0 }

        /// The confidence in that label.
        var confidence: Float { confidences[predicted] }
        /// Whether the label with the highest confidence is the true one.
        public var isCorrect: Bool { predicted == label }

        /// What was said, best first; one observation per label.
        /// - Parameter labels: Those of the evaluation.
        public func observations(labels: [String]) -> [Classification] {
            Classification.ranked(zip(labels, confidences).map { Classification(label: $0, confidence: $1) })
        }
    }

    /// The labels, in the order of the classifier's outputs.
    public let labels: [String]
    /// What was said of each image, in the order of the folder.
    public let results: [Result]
    /// The images that could not be read.
    public let skipped: [SkippedImage]

    /// Makes an evaluation of results.
    public init(labels: [String], results: [Result], skipped: [SkippedImage]) {
        self.labels = labels
        self.results = results
        self.skipped = skipped
    }

    /// The share of images whose best label is the true one; 0 if there are no images.
    public var accuracy: Double { share { $0.isCorrect } }

    /// The interval that the accuracy on images of the same kind lies in with a confidence of 95 %.
    ///
    /// For the share p of n images, with z = 1.96: (p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n) (Wilson, 1927). It is
    /// 0…1 if there are no images.
    public var accuracyInterval: ClosedRange<Double> {
        Self.interval(hits: results.count(where: \.isCorrect), of: results.count)
    }

    /// The same for any share.
    static func interval(hits: Int, of total: Int) -> ClosedRange<Double> {
        guard total > 0 else { return 0...1 }
        let z = 1.959963984540054  // 97.5 % of a normal distribution lie below.
        let (count, share) = (Double(total), Double(hits) / Double(total))
        let middle = share + z * z / (2 * count)
        let half = z * (share * (1 - share) / count + z * z / (4 * count * count)).squareRoot()
        let divisor = 1 + z * z / count
        // At the ends exactly, which rounding would miss.
        return (hits == 0 ? 0 : (middle - half) / divisor)...(hits == total ? 1 : (middle + half) / divisor)
    }

    /// The share of images whose true label is among the `k` best; 0 if there are no images.
    ///
    /// Of labels with equal confidences those that come first in `labels` are better, as in `Result.predicted`.
    public func topAccuracy(_ k: Int) -> Double {
        precondition(k >= 1, "at least the best label is looked at, not the \(k) best")
        return share { result in
            let confidence = result.confidences[result.label]
            let better = result.confidences.enumerated().count { place, other in
                other > confidence || (other == confidence && place < result.label)
            }
            return better < k
        }
    }

    /// How many images of each true label (row) were given each label (column).
    public var confusion: [[Int]] {
        var matrix = Array(repeating: Array(repeating: 0, count: labels.count), count: labels.count)
        for result in results { matrix[result.label][result.predicted] += 1 }
        return matrix
    }

    /// The wrong results of which the classifier was surest, at most `count`; of equally sure ones those first in the folder.
    public func worstMistakes(_ count: Int) -> [Result] {
        precondition(count >= 0, "there is no list of \(count) mistakes")
        return Array(results.filter { !$0.isCorrect }.sorted { $1.confidence < $0.confidence }.prefix(count))
    }

    /// The results of which the classifier was least sure, at most `count`.
    func leastCertain(_ count: Int) -> [Result] {
        Array(results.sorted { $0.confidence < $1.confidence }.prefix(count))
    }

    private func share(_ isHit: (Result) -> Bool) -> Double {
        results.isEmpty ? 0 : Double(results.count(where: isHit)) / Double(results.count)
    }
}
