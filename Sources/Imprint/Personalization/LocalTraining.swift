internal import Foundation
internal import ImprintCore
package import ImprintImages
package import ImprintModel

/// The photos of one device in federated learning, whose features are extracted once and used in every round.
package final class LocalTraining: Sendable {
    private let base: ImageClassifier
    private let configuration: PersonalizationConfiguration
    private let examples: [Example]

    /// The number of readable photos.
    package var photoCount: Int { examples.count }
    /// The photos that cannot be read.
    package let skipped: [SkippedImage]

    /// Extracts the features of the photos in a folder with one sub-folder per label.
    /// - Throws:
    ///   - `ImprintError.unknownLabel` if the model does not have a label of the folder.
    ///   - `ImprintError` if a setting is out of range, the model cannot be personalized or the features exceed the memory limit.
    ///   - `ImageError` if more than half of the photos, or all photos of a label, cannot be read.
    package init(
        _ classifier: ImageClassifier, _ folder: ImageFolder, configuration: PersonalizationConfiguration
    ) throws {
        let session = try PersonalizationSession(classifier, configuration: configuration)
        let known = session.base.labels
        if let label = folder.labels.first(where: { !known.contains($0) }) {
            throw ImprintError.unknownLabel(label, known: known)
        }
        let items = folder.items
        let workers = Workers(configuration.isBackground ? 1 : configuration.threads)
        var (examples, readable, skipped): ([Example], [TrainingPhoto], [SkippedImage]) = ([], [], [])
        let chunkSize = 32 * workers.count
        // At least half of the photos must be readable.
        let fewestReadable = items.count - items.count / 2
        for start in stride(from: 0, to: items.count, by: chunkSize) {
            let chunk = Array(items[start..<min(start + chunkSize, items.count)])
            let outcomes = try workers.parallelMap(chunk.count) { index throws -> Result<Example, ImageError> in
                do {
                    return .success(
                        try session.example(.file(chunk[index].url), .isLabel(folder.labels[chunk[index].label])))
                } catch let error as ImageError {
                    return .failure(error)
                }
            }
            for (item, outcome) in zip(chunk, outcomes) {
                switch outcome {
                case .success(let example):
                    examples.append(example)
                    readable.append(item)
                case .failure(let reason): skipped.append(SkippedImage(url: item.url, reason: reason))
                }
            }
            // All examples have the same size. The other photos may be unreadable, and need no memory then.
            let size = examples.first?.byteCount ?? 0
            guard max(examples.count, fewestReadable) * size <= configuration.memoryLimit else {
                throw ImprintError.featuresExceedMemoryLimit(
                    byteCount: (items.count - skipped.count) * size, limit: configuration.memoryLimit)
            }
        }
        try SkippedImage.checkEnoughAreReadable(
            of: items, readable: readable, skipped: skipped, labels: folder.labels)
        base = session.base
        self.configuration = configuration
        self.skipped = skipped
        self.examples = examples
    }

    /// Trains on the photos, and returns the start with the trained change.
    package func train(from start: Personalization) throws -> Personalization {
        let data = PersonalizationSession.TrainingData(initial: start, examples: examples)
        return try PersonalizationTrainer(base, data, configuration).run(shouldStop: { false }) ?? start
    }

    /// Measures the accuracy, 0…1, and the mean loss −log p on the photos.
    package func evaluate(_ personalization: Personalization) throws -> (accuracy: Double, loss: Double) {
        let confidences = try base.runtime.confidences(blocks: configuration.blocks, with: personalization)
        var (correct, loss) = (0, 0.0)
        for example in examples {
            let scores = confidences(example.views[0])
            guard let label = base.labels.firstIndex(of: example.supervision.label) else { continue }
            if scores.indices.max(by: { scores[$0] < scores[$1] }) == label { correct += 1 }
            loss -= log(Double(max(scores[label], .leastNormalMagnitude)))
        }
        let count = Double(max(examples.count, 1))
        return (Double(correct) / count, loss / count)
    }
}

/// A change to the head of a model, as dense arrays in the layout of the head.
package struct HeadChange: Equatable, Sendable {
    /// The change to the weights, [channels, labels].
    package var weights: [Float]
    /// The change to the biases, [labels].
    package var biases: [Float]

    package init(weights: [Float], biases: [Float]) {
        self.weights = weights
        self.biases = biases
    }
}

extension ModelFile {
    /// The shape of a change to the head; nil if there is no head.
    package var headShape: (channels: Int, labels: [String])? { network.headChannels.map { ($0, headLabels) } }

    /// Returns a personalization that changes every label of the head, without photos in its record.
    package func personalization(_ change: HeadChange) throws -> Personalization {
        let labels = headLabels
        return Personalization(
            baseDigest: try identity, addedLabels: [],
            columns: labels.enumerated().map { index, label in
                Personalization.Column(
                    label: label,
                    weights: stride(from: index, to: change.weights.count, by: labels.count).map { change.weights[$0] },
                    bias: change.biases[index])
            }, record: Personalization.Record(examples: [:]))
    }

    /// Returns the change that a personalization makes to the labels of the head.
    package func headChange(_ personalization: Personalization) -> HeadChange {
        let labels = headLabels
        var change = HeadChange(
            weights: [Float](repeating: 0, count: (network.headChannels ?? 0) * labels.count),
            biases: [Float](repeating: 0, count: labels.count))
        for column in personalization.columns {
            guard let index = labels.firstIndex(of: column.label) else { continue }
            for (row, value) in column.weights.enumerated() { change.weights[row * labels.count + index] = value }
            change.biases[index] = column.bias
        }
        return change
    }
}
