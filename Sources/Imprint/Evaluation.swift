public import Foundation
internal import ImprintCore
public import ImprintFormats
public import ImprintImages

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

    /// The precision–recall curve of every label that some image bears, at thresholds of 0, 0.05, … 0.95.
    ///
    /// A hit is an image with at least as much confidence in the label as the threshold; where nothing is one, there is no
    /// point.
    public var precisionRecall: [String: [TrainingRecord.PrecisionRecallPoint]] {
        var curves: [String: [TrainingRecord.PrecisionRecallPoint]] = [:]
        for (place, label) in labels.enumerated() {
            let positives = results.count { $0.label == place }
            guard positives > 0 else { continue }
            curves[label] = (0..<20).compactMap { step in
                let threshold = Double(step) / 20
                let hits = results.filter { $0.confidences[place] >= Float(threshold) }
                guard !hits.isEmpty else { return nil }
                let right = Double(hits.count { $0.label == place })
                return TrainingRecord.PrecisionRecallPoint(
                    threshold: threshold, precision: right / Double(hits.count), recall: right / Double(positives))
            }
        }
        return curves
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
    /// - Parameters:
    ///   - folder: The images.
    ///   - threads: How many threads share the work; the results do not depend on it.
    ///   - onProgress: Told now and then how many images are done.
    /// - Throws: `ImprintError.labelMismatch` for a label that the model does not know, `ImageError` where more than half
    ///   of the images, or all of a label, cannot be read, `ImprintError.noConfidence` where the model cannot be used.
    public func evaluate(
        on folder: ImageFolder, threads: Int = 1, onProgress: (Int) -> Void = { _ in }
    ) throws -> Evaluation {
        let unknown = folder.labels.filter { !labels.contains($0) }
        guard unknown.isEmpty else {
            throw ImprintError.labelMismatch(
                folder: folder.url.path(percentEncoded: false), unknown: unknown, labels: labels)
        }
        let outcomes = try Workers(threads).map(folder.items.count, onProgress: onProgress) {
            index throws(ImprintError) -> Swift.Result<[Float], ImageError> in
            let image = Result { () throws(ImageError) in try weights.preprocessing.prepare(folder.items[index].url) }
            switch image {
            case .success(let image): return .success(try confidences(prepared: image))
            case .failure(let error): return .failure(error)
            }
        }
        let places = folder.labels.map { label in labels.firstIndex(of: label) ?? 0 }
        var results: [Evaluation.Result] = []
        var skipped: [SkippedImage] = []
        var readable: [ImageFolder.Item] = []
        for (item, outcome) in zip(folder.items, outcomes) {
            switch outcome {
            case .success(let confidences):
                results.append(
                    Evaluation.Result(url: item.url, label: places[item.label], confidences: confidences))
                readable.append(item)
            case .failure(let error): skipped.append(SkippedImage(url: item.url, reason: error))
            }
        }
        try SkippedImage.checkEnoughIsLeft(
            of: folder.items, readable: readable, skipped: skipped, labels: folder.labels)
        return Evaluation(labels: labels, results: results, skipped: skipped)
    }
}
