internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The folder of finished folds: the model and the predictions of each, and the settings of the cross-validation.
struct FoldStore {
    /// The file with the settings.
    static let settingsName = "cross-validation.json"

    private let folder: URL
    private let photos: any TrainingSource
    /// The paths of the photos in their source, by their locations.
    private let paths: [URL: String]
    /// The indices of the photos by their paths.
    private let indices: [String: Int]

    /// Opens or creates the folder.
    /// - Throws: `CrossValidationError.otherSettings` if the folder has other settings; `CrossValidationError.unusableFold` if its settings
    ///   cannot be read; `FileError`.
    init(_ folder: URL, settings: [String: String], photos: any TrainingSource) throws {
        self.folder = folder
        self.photos = photos
        paths = photos.pathsByURL
        indices = Dictionary(photos.items.enumerated().map { (photos.path(of: $1), $0) }) { first, _ in first }
        try AtomicFile.makeFolder(folder)
        AtomicFile.removeUnfinished(in: folder)
        let file = folder.appending(path: Self.settingsName)
        guard FileManager.default.fileExists(atPath: file.path) else {
            try AtomicFile.write(try Self.json(settings), to: file)
            return
        }
        let kept: [String: String] = try Self.read(file)
        for name in Set(kept.keys).union(settings.keys).sorted() where kept[name] != settings[name] {
            throw CrossValidationError.otherSettings(
                folder: folder.displayPath, setting: name, found: settings[name] ?? "not set",
                expected: kept[name] ?? "not set")
        }
    }

    /// Returns a finished fold, or nil if the folder does not have it.
    /// - Throws: `CrossValidationError.unusableFold` if its file cannot be read, or if it has other photos.
    func fold(_ split: CrossValidationRunner.Split) throws -> CrossValidationFold? {
        let file = file(split.number, split.seed, "json")
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        let kept: KeptFold = try Self.read(file)
        let evaluated = Set(split.evaluated)
        var read: Set<Int> = []
        let results = try kept.images.map { image in
            guard let index = indices[image.file], evaluated.contains(index), read.insert(index).inserted,
                let label = kept.labels.firstIndex(of: image.label),
                photos.labels[photos.items[index].label] == image.label
            else {
                throw CrossValidationError.unusableFold(
                    file: file.displayPath, reason: "it has the photo \(image.file), which is not in this fold")
            }
            let confidences = Dictionary(image.classifications.map { ($0.label, $0.confidence) }) { first, _ in first }
            return Evaluation.Result(
                url: photos.items[index].url, label: label,
                confidences: try kept.labels.map { label in
                    guard let confidence = confidences[label], (0...1).contains(confidence) else {
                        throw CrossValidationError.unusableFold(
                            file: file.displayPath, reason: "\(image.file) has no confidence in \(label)")
                    }
                    return confidence
                })
        }
        guard Set(kept.labels).isSuperset(of: photos.labels), !results.isEmpty else {
            throw CrossValidationError.unusableFold(
                file: file.displayPath, reason: "it has the labels \(kept.labels.joined(separator: ", "))")
        }
        let skipped = split.evaluated.filter { !read.contains($0) }.map { index in
            let url = photos.items[index].url
            return SkippedImage(
                url: url, reason: .unreadable(file: url, reason: "it was unreadable when the fold was evaluated"))
        }
        return CrossValidationFold(
            number: split.number, seed: split.seed,
            evaluation: Evaluation(labels: kept.labels, results: results, skipped: skipped),
            trainingImages: split.training.count, seconds: kept.seconds, isKept: true)
    }

    /// Writes the model of a fold and then its predictions, whose file means that the fold is finished.
    func save(_ fold: CrossValidationFold, _ model: ModelFile) throws {
        try model.write(to: file(fold.number, fold.seed, "imprint"))
        let labels = fold.evaluation.labels
        let images = fold.evaluation.results.map { result in
            KeptFold.Image(
                file: paths[result.url] ?? result.url.displayPath, label: labels[result.label],
                correct: result.isCorrect,
                classifications: zip(labels, result.confidences).map { .init(label: $0, confidence: $1) })
        }
        let kept = KeptFold(seconds: fold.seconds, labels: labels, images: images)
        try AtomicFile.write(try Self.json(kept), to: file(fold.number, fold.seed, "json"))
    }

    private func file(_ number: Int, _ seed: UInt64, _ suffix: String) -> URL {
        folder.appending(path: "seed-\(seed)-fold-\(number).\(suffix)")
    }

    private static func json(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return Array(try encoder.encode(value)) + [UInt8(ascii: "\n")]
    }

    private static func read<Value: Decodable>(_ file: URL) throws -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(contentsOf: file))
        } catch {
            let reason = error is DecodingError ? "it is not JSON as Imprint writes it" : reason(of: error)
            throw CrossValidationError.unusableFold(file: file.displayPath, reason: reason)
        }
    }
}

/// The predictions of a finished fold as JSON.
private struct KeptFold: Codable {
    struct Image: Codable {
        struct Confidence: Codable {
            let label: String
            let confidence: Float
        }

        /// The path relative to the folder of photos, or as in the list.
        let file: String
        let label: String
        let correct: Bool
        /// The confidence in each label.
        let classifications: [Confidence]

        private enum CodingKeys: String, CodingKey {
            case file, label, correct
            case classifications = "observations"
        }
    }

    /// The training time in seconds.
    let seconds: Double
    /// The labels of the model, in the order of its outputs.
    let labels: [String]
    let images: [Image]
}
