public import Foundation
internal import ImprintCore
public import ImprintImages
internal import Synchronization

/// How well a classifier does on labelled images.
public struct Evaluation: Sendable {
    /// One image and what the classifier said.
    public struct Result: Sendable {
        /// The file.
        public let url: URL
        /// The place of its true label in `labels`.
        public let label: Int
        /// The confidence in every label, in the order of `labels`.
        public let confidences: [Float]

        /// Makes a result.
        public init(url: URL, label: Int, confidences: [Float]) {
            self.url = url
            self.label = label
            self.confidences = confidences
        }

        /// The place of the label with the highest confidence.
        public var predicted: Int { confidences.indices.max { confidences[$0] < confidences[$1] } ?? 0 }
    }

    /// How one label fared.
    public struct LabelMetrics: Codable, Hashable, Sendable {
        /// The label.
        public let label: String
        /// The share of images given this label that bear it; `nil` where none was given it.
        public let precision: Double?
        /// The share of images bearing this label that were given it; `nil` where none bears it.
        public let recall: Double?
        /// How many images bear it.
        public let count: Int

        private enum CodingKeys: String, CodingKey {
            case label, precision, recall, count
        }

        /// Writes all four keys, `null` where there is no value.
        public func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encode(label, forKey: .label)
            try values.encode(precision, forKey: .precision)
            try values.encode(recall, forKey: .recall)
            try values.encode(count, forKey: .count)
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

    /// The share of images whose best label is the true one; 0 where there are no images.
    public var accuracy: Double {
        results.isEmpty ? 0 : Double(results.count { $0.predicted == $0.label }) / Double(results.count)
    }

    /// How many images of each true label (row) were given each label (column).
    public var confusion: [[Int]] {
        var matrix = Array(repeating: Array(repeating: 0, count: labels.count), count: labels.count)
        for result in results { matrix[result.label][result.predicted] += 1 }
        return matrix
    }

    /// Precision and recall of every label.
    public var perLabel: [LabelMetrics] {
        let confusion = confusion
        return labels.indices.map { label in
            let right = confusion[label][label]
            let given = confusion.reduce(0) { $0 + $1[label] }
            let count = confusion[label].reduce(0, +)
            return LabelMetrics(
                label: labels[label], precision: given > 0 ? Double(right) / Double(given) : nil,
                recall: count > 0 ? Double(right) / Double(count) : nil, count: count)
        }
    }

    /// The area under the ROC curve for two labels; `nil` for other numbers of labels, or where a label has no images.
    ///
    /// It is the chance that an image of the second label is given more confidence in it than an image of the first, ties
    /// counting half (Mann and Whitney, 1947).
    public var auc: Double? {
        guard labels.count == 2 else { return nil }
        let sorted = results.sorted { $0.confidences[1] < $1.confidences[1] }
        let positives = sorted.count { $0.label == 1 }
        let negatives = sorted.count - positives
        guard positives > 0 && negatives > 0 else { return nil }
        var rankSum = 0.0
        var start = 0
        while start < sorted.count {
            var end = start
            while end < sorted.count && sorted[end].confidences[1] == sorted[start].confidences[1] { end += 1 }
            let meanRank = Double(start + 1 + end) / 2
            rankSum += meanRank * Double(sorted[start..<end].count { $0.label == 1 })
            start = end
        }
        let least = Double(positives) * Double(positives + 1) / 2
        return (rankSum - least) / (Double(positives) * Double(negatives))
    }
}

extension ImageClassifier {
    /// Classifies every image of a folder, one sub-folder per label, and compares with the labels.
    ///
    /// The folder need not have images of every label, but none of other labels. Images that cannot be read are skipped
    /// and listed.
    /// - Throws: `ImprintError.labelMismatch` for a label that the model does not know.
    public func evaluate(on folder: ImageFolder, threads: Int = 1) throws -> Evaluation {
        let unknown = folder.labels.filter { !labels.contains($0) }
        guard unknown.isEmpty else {
            throw ImprintError.labelMismatch(
                folder: folder.url.path(percentEncoded: false), unknown: unknown, labels: labels)
        }
        let places = folder.labels.map { label in labels.firstIndex(of: label) ?? 0 }
        let outcomes = Mutex([Outcome?](repeating: nil, count: folder.items.count))
        Workers(threads).forEach(folder.items.count) { index, _ in
            let outcome = outcome(of: folder.items[index], label: places[folder.items[index].label])
            outcomes.withLock { $0[index] = outcome }
        }
        var results: [Evaluation.Result] = []
        var skipped: [SkippedImage] = []
        for case .some(let outcome) in outcomes.withLock({ $0 }) {
            switch outcome {
            case .result(let result): results.append(result)
            case .skipped(let image): skipped.append(image)
            }
        }
        return Evaluation(labels: labels, results: results, skipped: skipped)
    }

    private enum Outcome: Sendable {
        case result(Evaluation.Result)
        case skipped(SkippedImage)
    }

    private func outcome(of item: ImageFolder.Item, label: Int) -> Outcome {
        do throws(ImageError) {
            let observations = try classify(item.url)
            let confidences = labels.map { label in observations.first { $0.label == label }?.confidence ?? 0 }
            return .result(Evaluation.Result(url: item.url, label: label, confidences: confidences))
        } catch {
            return .skipped(SkippedImage(url: item.url, reason: error))
        }
    }
}
