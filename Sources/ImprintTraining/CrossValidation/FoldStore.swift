internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// The folder of finished folds: the model and the predictions of each, and the settings of the cross-validation.
struct FoldStore {
    /// The file with the settings.
    static let settingsName = "cross-validation.json"
    /// The start of the names of the folds' files.
    private static let filePrefix = "seed-"
    /// The largest file that is read: enough for 40,000 photos with 1,000 labels.
    private static let maximumByteCount = 4 << 30

    private let folder: URL
    /// The lock of the folder, which other runs cannot use at the same time.
    private let lock: FileLock
    private let photos: any TrainingSource
    private let kind: ModelEvaluation.Kind
    /// The annotated photos by their file URLs, if detectors are evaluated on boxes.
    private let annotated: [URL: AnnotatedPhoto]
    /// The paths of the photos in their source, by their locations.
    private let paths: [URL: String]
    /// The indices of the photos by the bytes of their paths.
    private let indices: [[UInt8]: Int]

    /// Opens or creates the folder, and locks it.
    /// - Throws: `CrossValidationError.folderInUse` if another run uses the folder; `CrossValidationError.otherSettings` or
    ///   `CrossValidationError.otherInputs` if it has finished folds with other settings or other files; `CrossValidationError.unusableFold`
    ///   if their settings cannot be read; `FileError`.
    init(
        _ folder: URL, settings: [String: String], photos: any TrainingSource, kind: ModelEvaluation.Kind,
        annotations: BoxAnnotations? = nil
    ) throws {
        try AtomicFile.makeFolder(folder)
        guard let lock = try FileLock(folder: folder) else {
            throw CrossValidationError.folderInUse(folder: folder.displayPath)
        }
        (self.folder, self.lock) = (folder, lock)
        self.photos = photos
        self.kind = kind
        annotated = Dictionary(
            (annotations?.photos ?? []).map { ($0.url, $0) }, uniquingKeysWith: { first, _ in first })
        paths = photos.pathsByURL
        indices = photos.indicesByPath
        AtomicFile.removeUnfinished(in: folder)
        let file = folder.appending(path: Self.settingsName)
        // A run that ended before its first fold, such as one with too many folds, does not determine the settings.
        guard FileManager.default.fileExists(atPath: file.path), Self.hasFolds(folder) else {
            try AtomicFile.write(try Self.json(settings), to: file)
            return
        }
        let kept: [String: String] = try Self.read(file)
        if let error = Self.difference(settings, kept, folder: folder.displayPath) { throw error }
    }

    /// Returns the error about settings that differ from those of the folder, in words; nil if all are the same.
    private static func difference(
        _ settings: [String: String], _ kept: [String: String], folder: String
    ) -> CrossValidationError? {
        let names = Set(kept.keys).union(settings.keys).sorted().filter { kept[$0] != settings[$0] }
        for name in names {
            let (found, expected) = (settings[name].map(withoutDigests), kept[name].map(withoutDigests))
            guard found == expected else {
                return .otherSettings(
                    folder: folder, setting: name, found: found ?? "not set", expected: expected ?? "not set")
            }
        }
        // The setting of the network has the digest of the base model.
        let inputs = names.map { $0 == "network" ? "base model" : $0 }
        return inputs.isEmpty ? nil : .otherInputs(folder: folder, inputs: inputs)
    }

    /// Returns a finished fold, or nil if the folder does not have it.
    /// - Throws: `CrossValidationError.unusableFold` if its file cannot be read, or if it has other photos.
    func fold(_ split: CrossValidationRunner.Split) throws -> CrossValidationFold? {
        let file = file(split.number, split.seed, "json")
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        let kept: KeptFold = try Self.read(file)
        do throws(UnusableFold) {
            let results = try results(kept, split)
            let evaluation = try evaluation(kept, results, skipped: skippedPhotos(kept, split))
            return CrossValidationFold(
                number: split.number, seed: split.seed, result: evaluation, trainingImages: split.training.count,
                seconds: kept.seconds, wasRestored: true)
        } catch {
            throw Self.unusable(file, error.reason)
        }
    }

    /// Returns the damage to the model of a finished fold, as a sentence; nil if the model can be read, or if it was deleted.
    /// - Throws: `CrossValidationError.unusableFold` if the file is intact, but not a model that this version reads, so that it is not replaced.
    func damageOfModel(_ split: CrossValidationRunner.Split) throws -> String? {
        let file = file(split.number, split.seed, "imprint")
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        do {
            _ = try ModelFile(contentsOf: file)
            return nil
        } catch let error as ModelFileError {
            switch error.problem {
            case .damaged, .incomplete, .missingMetadata, .invalidMetadata, .invalidScales, .notFinite:
                return error.finding
            default: throw Self.unusable(file, finding: error.finding)
            }
        } catch let error as SafetensorsError {
            switch error.problem {
            case .outOfMemory: throw error
            case .otherKind: throw Self.unusable(file, finding: error.finding)
            default: return error.finding
            }
        }
    }

    /// Returns the stored predictions of each photo, after checking that they belong to the fold.
    private func results(
        _ kept: KeptFold, _ split: CrossValidationRunner.Split
    ) throws(UnusableFold) -> [MultiLabelEvaluation.Result] {
        let evaluated = Set(split.evaluated)
        var read: Set<Int> = []
        var results: [MultiLabelEvaluation.Result] = []
        for image in kept.images {
            guard let index = indices[Array(image.file.utf8)], evaluated.contains(index) else {
                throw UnusableFold(reason: "it has the photo \(image.file), which is not in this fold")
            }
            guard read.insert(index).inserted else {
                throw UnusableFold(reason: "it has the photo \(image.file) twice")
            }
            let labels = photos.items[index].labels.map { photos.labels[$0] }
            guard Set(image.trueLabels) == Set(labels) else {
                throw UnusableFold(
                    reason:
                        "the photo \(image.file) had \(Self.list(image.trueLabels)) and now has \(Self.list(labels))")
            }
            results.append(
                MultiLabelEvaluation.Result(
                    url: photos.items[index].url,
                    labels: kept.labels.indices.filter { image.trueLabels.contains(kept.labels[$0]) },
                    confidences: try image.confidences(in: kept.labels)))
        }
        guard Set(kept.labels).isSuperset(of: photos.labels), Set(kept.labels).count == kept.labels.count,
            !results.isEmpty
        else {
            throw UnusableFold(reason: "it has the labels \(kept.labels.joined(separator: ", "))")
        }
        return results
    }

    /// Returns the labels of a photo as text.
    private static func list(_ labels: [String]) -> String {
        switch labels.count {
        case 0: "no label"
        case 1: "the label \(labels[0])"
        default: "the labels \(labels.sorted().joined(separator: ", "))"
        }
    }

    /// Returns the photos of the fold without stored predictions.
    private func skippedPhotos(_ kept: KeptFold, _ split: CrossValidationRunner.Split) -> [SkippedImage] {
        let read = Set(kept.images.compactMap { indices[Array($0.file.utf8)] })
        return split.evaluated.filter { !read.contains($0) }.map { index in
            let url = photos.items[index].url
            return SkippedImage(
                url: url, reason: .unreadable(file: url, reason: "it was unreadable when the fold was evaluated"))
        }
    }

    /// Returns the evaluation of the stored predictions.
    private func evaluation(
        _ kept: KeptFold, _ results: [MultiLabelEvaluation.Result], skipped: [SkippedImage]
    ) throws(UnusableFold) -> ModelEvaluation {
        switch kind {
        case .singleLabel:
            let results = results.map {
                Evaluation.Result(url: $0.url, label: $0.labels[0], confidences: $0.confidences)
            }
            return .singleLabel(Evaluation(labels: kept.labels, results: results, skipped: skipped))
        case .multiLabel:
            return .multiLabel(
                MultiLabelEvaluation(
                    labels: kept.labels, thresholds: try kept.checkedThresholds(), results: results, skipped: skipped))
        case .detection:
            let thresholds = try kept.checkedThresholds()
            let metrics = DetectionMetrics(labels: kept.labels, predictions: try detections(kept, results))
            return .detection(DetectionEvaluation(metrics, thresholds: thresholds, skipped: skipped))
        }
    }

    /// Returns the stored detections in each photo.
    private func detections(
        _ kept: KeptFold, _ results: [MultiLabelEvaluation.Result]
    ) throws(UnusableFold) -> [DetectionMetrics.Prediction] {
        var predictions: [DetectionMetrics.Prediction] = []
        for (image, result) in zip(kept.images, results) {
            guard let photo = annotated[result.url], let detections = image.detections,
                detections.allSatisfy({ $0.isValid && kept.labels.contains($0.label) })
            else {
                throw UnusableFold(reason: "\(image.file) has no valid detections")
            }
            predictions.append((photo: photo, detections: detections))
        }
        return predictions
    }

    /// Writes the model of a fold, then its predictions; the file of predictions shows that the fold is finished.
    func save(_ fold: CrossValidationFold, _ model: ModelFile) throws {
        try model.write(to: file(fold.number, fold.seed, "imprint"))
        let labels = fold.result.labels
        let detections = fold.detectionEvaluation?.metrics.predictions
        let images = fold.result.predictions.enumerated().map { index, photo in
            let names = photo.labels.map { labels[$0] }
            return KeptFold.Image(
                file: paths[photo.url] ?? photo.url.displayPath, label: kind == .singleLabel ? names[0] : nil,
                labels: kind == .singleLabel ? nil : names, correct: photo.labels == photo.predicted,
                classifications: zip(labels, photo.confidences).map { .init(label: $0, confidence: $1) },
                detections: detections?[index].detections)
        }
        let kept = KeptFold(
            seconds: fold.seconds, labels: labels,
            thresholds: fold.multiLabelEvaluation?.thresholds ?? fold.detectionEvaluation?.thresholds, images: images)
        try AtomicFile.write(try Self.json(kept), to: file(fold.number, fold.seed, "json"))
    }

    private func file(_ number: Int, _ seed: UInt64, _ suffix: String) -> URL {
        folder.appending(path: "\(Self.filePrefix)\(seed)-fold-\(number).\(suffix)")
    }

    /// Returns whether a folder may have finished folds; true if it cannot be listed.
    private static func hasFolds(_ folder: URL) -> Bool {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path) else { return true }
        return names.contains { $0.hasPrefix(filePrefix) && $0.hasSuffix(".json") }
    }

    private static func json(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return Array(try encoder.encode(value)) + [UInt8(ascii: "\n")]
    }

    private static func unusable(_ file: URL, _ reason: String) -> CrossValidationError {
        .unusableFold(file: file.displayPath, reason: reason)
    }

    /// Returns the error for a file, from a sentence that begins with its path.
    private static func unusable(_ file: URL, finding: String) -> CrossValidationError {
        let reason = finding.replacing("\(file.displayPath): ", with: "", maxReplacements: 1)
        return unusable(file, reason.hasSuffix(".") ? String(reason.dropLast()) : reason)
    }

    private static func read<Value: Decodable>(_ file: URL) throws -> Value {
        let contents: Data?
        do throws(FileError) {
            contents = try RegularFile(file.path).contents(limit: maximumByteCount)
        } catch {
            guard case .cannotRead(_, let reason) = error else { throw error }
            throw unusable(file, reason)
        }
        guard let bytes = contents else { throw unusable(file, "it has more than \(maximumByteCount) bytes") }
        guard let value = try? JSONDecoder().decode(Value.self, from: bytes) else {
            throw unusable(file, "it is not JSON as Imprint writes it")
        }
        return value
    }
}

/// The reason why the file of a fold cannot be used.
private struct UnusableFold: Error {
    let reason: String
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
        /// The label, or nil for a multi-label model.
        let label: String?
        /// The labels, or nil for a model with one label per photo.
        let labels: [String]?
        let correct: Bool
        /// The confidence in each label.
        let classifications: [Confidence]
        /// All detections of a detector, or nil for other models.
        let detections: [DetectedObject]?

        private enum CodingKeys: String, CodingKey {
            case file, label, labels, correct, detections
            case classifications = "observations"
        }

        var trueLabels: [String] { labels ?? label.map { [$0] } ?? [] }
    }

    /// The training time in seconds.
    let seconds: Double
    /// The labels of the model, in the order of its outputs.
    let labels: [String]
    /// The threshold of each label of a multi-label model or a detector, or nil for other models.
    let thresholds: [Double]?
    let images: [Image]
}

extension KeptFold {
    /// Returns the thresholds of a multi-label model or a detector.
    fileprivate func checkedThresholds() throws(UnusableFold) -> [Double] {
        guard let thresholds, thresholds.count == labels.count, thresholds.allSatisfy((0...1).contains) else {
            throw UnusableFold(reason: "it has no threshold for each label")
        }
        return thresholds
    }
}

extension KeptFold.Image {
    /// Returns the confidence in each label, in the order of `labels`.
    fileprivate func confidences(in labels: [String]) throws(UnusableFold) -> [Float] {
        let known = Dictionary(classifications.map { ($0.label, $0.confidence) }) { first, _ in first }
        var confidences: [Float] = []
        for label in labels {
            guard let confidence = known[label], (0...1).contains(confidence) else {
                throw UnusableFold(reason: "\(file) has no confidence in \(label)")
            }
            confidences.append(confidence)
        }
        return confidences
    }
}

extension DetectedObject {
    /// Whether the confidence and the box are in their ranges; a box that was clipped may have no area.
    fileprivate var isValid: Bool {
        // Comparisons with NaN are false.
        [confidence, box.x, box.y, box.width, box.height].allSatisfy { (value: Float) in
            (0...1).contains(value)
        }
    }
}
