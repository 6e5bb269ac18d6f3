public import Foundation
public import ImprintImages
public import ImprintNetwork

/// A complete model in one file: network, parameters, labels, preprocessing and training record.
///
/// On disk, it is a safetensors file (`*.imprint`); docs/reference/model-file.md specifies the format.
public struct ModelFile: Sendable {
    /// The newest format that this version of Imprint reads; it writes the oldest format that can store the model.
    public static let formatVersion = 5

    /// The storage of parameters.
    public enum Storage: String, Sendable, Codable, CaseIterable {
        /// 32-bit floating point, 4 bytes per value.
        case float32
        /// 16-bit floating point, rounded to nearest, 2 bytes per value.
        case float16
        /// 8-bit integers with a scale per output, 1 byte per value, for most weights of convolutions and dense layers.
        ///
        /// A quantized model (`Quantizer`) keeps its quantization only in this storage. The other tensors are float32. If `write(to:)` stores a
        /// quantized model without a given storage, they are as in the unquantized model: float32 or float16 (`ModelFile.storagePrecision`).
        case int8
    }

    /// The network.
    public let network: Network
    /// The parameters of the network.
    public let parameters: Parameters
    /// The label of each network output, in order; for a logo detector, the labels of the logos and one more, in any order.
    public let labels: [String]
    /// The conversion of an image to the network's input.
    public let preprocessing: Preprocessing
    /// The kind of the model, with the rules of a detector.
    public let head: ModelHead
    /// The training record; nil if it is unknown.
    public let training: TrainingRecord?
    /// The digest of the base model; nil if training started from random parameters.
    public let baseDigest: String?
    /// The replay features for personalization; nil if there are none.
    public let rehearsal: Rehearsal?
    /// The categories of the labels; nil if there are none.
    public var categories: Categories?
    /// The rule that rejects images unlike the training photos, or nil if there is none.
    public var noveltyRule: NoveltyRule?
    /// The version, the licence and the intended use; unknown for most models.
    public var details = ModelDetails()
    /// The precision in which `write(to:)` stores the parameters.
    public let storagePrecision: Safetensors.Precision
    /// The storage in the file that the model was read from; if it was not read from a file, the storage that corresponds to `storagePrecision`.
    public let storage: Storage
    /// The SHA-256 digest of the tensors in the file that the model was read from; nil if it was not read from a file.
    public let digest: String?
    /// The format of the file that the model was read from; nil if it was not read from a file.
    public let format: Int?

    /// Creates a model from its parts.
    init(
        _ network: Network, _ parameters: Parameters, _ labels: [String], _ preprocessing: Preprocessing,
        _ head: ModelHead, training: TrainingRecord? = nil, baseDigest: String? = nil, rehearsal: Rehearsal? = nil,
        categories: Categories?, storagePrecision: Safetensors.Precision
    ) {
        precondition(
            parameters.layout == ParameterLayout(network),
            "the parameters do not have the layout of the network \(network.name)"
        )
        self.network = network
        self.parameters = parameters
        self.labels = labels
        self.preprocessing = preprocessing
        self.head = head
        self.training = training
        self.baseDigest = baseDigest
        self.rehearsal = rehearsal
        self.categories = categories
        self.storagePrecision = storagePrecision
        storage = storagePrecision == .float16 ? .float16 : .float32
        digest = nil
        format = nil
    }

    /// Returns a model with parameters that were trained or computed from the parameters of this model.
    /// - Parameters:
    ///   - parameters: The parameters, in the layout of `network`.
    ///   - network: The network; nil to keep the current one.
    ///   - addedLabels: The labels after those of this model, for the additional outputs of the head.
    ///   - baseDigest: The digest of the base model.
    ///   - rehearsal: The replay features for personalization.
    ///   - trainedModel: The digest of this model if its training record does not describe the new model; otherwise nil.
    package func with(
        _ parameters: Parameters, network: Network? = nil, addedLabels: [String] = [], baseDigest: String?,
        rehearsal: Rehearsal?, trainedModel: String? = nil
    ) -> ModelFile {
        let network = network ?? self.network
        var training = training
        // The record of a merged model already describes an earlier one.
        if training?.trainedModel == nil { training?.trainedModel = trainedModel }
        var model = ModelFile(
            network, parameters, labels + addedLabels, preprocessing, head.adding(labels: addedLabels, in: network),
            training: training, baseDigest: baseDigest, rehearsal: rehearsal, categories: categories,
            storagePrecision: storagePrecision)
        model.noveltyRule = noveltyRule
        model.details = details.derived
        return model
    }
}

extension ModelFile {
    /// Returns the minimum confidence of a detection of a label.
    ///
    /// It is the threshold in the detector head or, for a model of version 1, in the training record; 0.5 if training could not choose one.
    package func detectionThreshold(of label: String) -> Double {
        let logo = head.logos.first { $0.label == label }
        // Heads of version 1 have no thresholds and no box regression. In other records, the thresholds are for whole photos.
        let recorded = head.detector?.regressesBoxes == true ? nil : training?.thresholds?[label]
        return logo?.threshold ?? recorded ?? 0.5
    }
}

/// The keys of a model file's metadata.
package enum ModelFileKey {
    package static let format = "imprint.format"
    package static let network = "imprint.network"
    package static let labels = "imprint.labels"
    package static let preprocessing = "imprint.preprocessing"
    package static let detector = "imprint.spotting"
    package static let centerPoints = "imprint.centerPoints"
    package static let anchors = "imprint.anchors"
    package static let training = "imprint.training"
    package static let digest = "imprint.digest"
    package static let checksum = "imprint.checksum"
    package static let base = "imprint.base"
    package static let rehearsal = "imprint.rehearsal"
    package static let categories = "imprint.categories"
    package static let details = "imprint.details"
}

private typealias Key = ModelFileKey

// MARK: Writing

extension ModelFile {
    /// Writes the file at `url` atomically; equal content gives equal bytes.
    /// - Parameters:
    ///   - url: The file.
    ///   - storage: The storage of the parameters; nil for the storage that corresponds to `storagePrecision`, and int8 for a quantized model. With
    ///     nil, another model from an int8 file is written as float32, because it may have been trained further.
    /// - Returns: The digest of the tensors, which identifies the base model of a personalization.
    /// - Throws: `ModelFileError` if labels and network do not match or a parameter is not finite, `SafetensorsError` if a parameter is
    ///   beyond the range of float16, `FileError` if the file cannot be written.
    @discardableResult
    public func write(to url: URL, as storage: Storage? = nil) throws -> String {
        do {
            try checkFit(network, labels, preprocessing, head)
            try checkCategories(categories, labels)
            try checkTraining(training)
            for entry in parameters.layout.entries { try checkFinite(entry, of: parameters) }
            let tensors = tensors(as: storage)
            var metadata = [
                Key.format: format(of: tensors),
                Key.network: try json(network),
                Key.labels: try json(labels),
                Key.preprocessing: try json(preprocessing),
            ]
            metadata[Key.detector] = try detector.map(json)
            metadata[Key.centerPoints] = try centerPoints.map(json)
            metadata[Key.anchors] = try anchors.map(json)
            metadata[Key.training] = try training.map(json)
            metadata[Key.base] = baseDigest
            metadata[Key.rehearsal] = try rehearsal.map { try json($0.labels) }
            metadata[Key.categories] = try categories.map(json)
            try checkDetails(details)
            metadata[Key.details] = details == ModelDetails() ? nil : try json(details)
            try checkNovelty(noveltyRule, network, labels, head)
            metadata[NoveltyRule.key] = try noveltyRule.map(json)
            metadata[Quantization.key] = try quantization(in: storage).map { try json(StoredActivations($0)) }
            if let problem = rehearsal?.problem(network, labels) {
                throw ModelFileError.Problem.invalidMetadata(key: Key.rehearsal, reason: problem)
            }
            // In memory order, so that readers can map the parameters.
            return try Safetensors.write(
                tensors, inOrder: true, to: url, checksumKey: Key.checksum
            ) { digest in metadata.merging([Key.digest: digest]) { $1 } }
        } catch let problem as ModelFileError.Problem {
            throw ModelFileError(path: url.path, problem: problem)
        }
    }

    /// Returns the oldest format that can store the model with these tensors.
    private func format(of tensors: [TensorSource]) -> String {
        if tensors.contains(where: { Quantization.isInputScale($0.name) }) { return "5" }
        if anchors != nil { return "4" }
        if centerPoints != nil { return "3" }
        return tensors.contains { $0.elementType == .int8 } ? "2" : "1"
    }

    /// Returns the digest of the tensors that `write(to:)` writes.
    /// - Throws: `SafetensorsError` if a parameter is beyond the range of float16.
    public func tensorDigest() throws -> String {
        try Safetensors.digest(tensors(as: nil), path: "the model \(network.name)")
    }

    /// The digest of the tensors: of the file that the model was read from, or else of the file that would be written.
    /// - Throws: `SafetensorsError` if a parameter is beyond float16.
    public var identity: String { get throws { try digest ?? tensorDigest() } }

    /// Returns the precision of the tensors that are not stored as int8.
    private func floatPrecision(_ storage: Storage?) -> Safetensors.Precision {
        storage.map { $0 == .float16 ? .float16 : .float32 } ?? storagePrecision
    }

    private func tensors(as storage: Storage?) -> [TensorSource] {
        parameters.layout.entries.flatMap { entry in
            if let tensors = quantization(in: storage)?.tensors(of: entry, in: parameters) { return tensors }
            return storage == .int8 && QuantizedWeights.suits(entry.parameter)
                ? QuantizedWeights.tensors(of: entry, in: parameters)
                : [TensorSource(entry, of: parameters, as: floatPrecision(storage))]
        } + (rehearsal.map { [TensorSource($0.tensor, as: floatPrecision(storage))] } ?? [])
    }
}

// MARK: Reading

extension ModelFile {
    /// Reads and verifies the file at `url`, and maps float32 parameters into memory instead of copying them.
    ///
    /// Processes that use the same file share its memory. While the model exists, the file may be replaced (renamed over, or deleted), but
    /// not overwritten: if it is truncated, the system ends a process that reads the missing part. If other programs may overwrite it, use
    /// `init(copyingContentsOf:)`.
    /// - Throws: `ModelFileError` if it is not a complete model file in a supported format, `SafetensorsError` if it is not a safetensors
    ///   file, `FileError` if it cannot be read.
    public init(contentsOf url: URL) throws { try self.init(checking: Safetensors.File(contentsOf: url), maps: true) }

    /// Reads and verifies the file at `url`, and copies the parameters, so later changes to the file have no effect on the model.
    ///
    /// docs/reference/model-file.md compares the loading times of mapped and copied files.
    /// - Throws: The errors of `init(contentsOf:)`.
    public init(copyingContentsOf url: URL) throws { try self.init(checking: Safetensors.File(contentsOf: url)) }

    /// Reads and verifies the bytes of a model file.
    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - name: The name of the file in error messages.
    /// - Throws: `ModelFileError` and `SafetensorsError`, as for a file at a URL.
    public init(_ bytes: [UInt8], named name: String) throws {
        try self.init(checking: Safetensors.File(bytes, named: name))
    }

    private init(checking file: Safetensors.File, maps: Bool = false) throws {
        do {
            try self.init(file, maps: maps)
        } catch let problem as ModelFileError.Problem {
            throw ModelFileError(path: file.path, problem: problem)
        }
    }

    private init(_ file: Safetensors.File, maps: Bool) throws {
        let metadata = file.header.metadata
        try checkFormat(of: metadata)
        network = try value(Key.network, in: metadata)
        labels = try value(Key.labels, in: metadata)
        preprocessing = try value(Key.preprocessing, in: metadata)
        head = try Self.readHead(metadata, of: network)
        training = metadata[Key.training] == nil ? nil : try value(Key.training, in: metadata) as TrainingRecord
        try checkTraining(training)
        baseDigest = metadata[Key.base]
        categories = metadata[Key.categories] == nil ? nil : try value(Key.categories, in: metadata) as Categories
        // Earlier versions wrote empty categories.
        if categories?.names.isEmpty == true { categories = nil }
        try checkFit(network, labels, preprocessing, head)
        try checkCategories(categories, labels)
        noveltyRule = metadata[NoveltyRule.key] == nil ? nil : try value(NoveltyRule.key, in: metadata) as NoveltyRule
        try checkNovelty(noveltyRule, network, labels, head)
        if metadata[Key.details] != nil { details = try value(Key.details, in: metadata) }
        try checkDetails(details)

        let tensors = try ModelFileTensors(of: file, network: network)
        storagePrecision = tensors.precision
        storage = tensors.storage
        let expected = try text(Key.digest, in: metadata)
        let (parameters, features) = try tensors.read(maps: maps, digest: expected)
        self.parameters = parameters
        digest = expected
        format = metadata[Key.format].flatMap { Int($0) }
        rehearsal = try Self.readRehearsal(metadata, features, of: network, labels)
    }

    /// Returns the head: the rules of a detector, or the head of a classifier.
    private static func readHead(_ metadata: [String: String], of network: Network) throws -> ModelHead {
        let kinds = [Key.detector, Key.centerPoints, Key.anchors].filter { metadata[$0] != nil }
        guard kinds.count < 2 else {
            throw ModelFileError.Problem.invalidMetadata(
                key: kinds[1], reason: "rules of two kinds of detectors, expected one of them")
        }
        switch kinds.first {
        case Key.detector?: return .detector(try value(Key.detector, in: metadata))
        case Key.centerPoints?: return .centerPoints(try value(Key.centerPoints, in: metadata))
        case Key.anchors?: return .anchors(try value(Key.anchors, in: metadata))
        default: return ModelHead(classifier: network)
        }
    }

    /// Returns the replay features; nil if the file has none.
    private static func readRehearsal(
        _ metadata: [String: String], _ features: ModelFileTensors.Features?, of network: Network, _ labels: [String]
    ) throws -> Rehearsal? {
        guard metadata[Key.rehearsal] != nil else { return nil }
        let rehearsal = try Rehearsal(labels: value(Key.rehearsal, in: metadata), features)
        if let problem = rehearsal.problem(network, labels) {
            throw ModelFileError.Problem.invalidMetadata(key: Key.rehearsal, reason: problem)
        }
        return rehearsal
    }
}

extension ModelFile {
    /// Whether the file at `url` is marked as a model file; false if it cannot be read.
    public static func isModelFile(at url: URL) -> Bool {
        (try? Safetensors.File(contentsOf: url))?.header.metadata[Key.format] != nil
    }

    /// Returns the kind of a file with this metadata, for error messages.
    static func kind(of metadata: [String: String]) -> String {
        if metadata[Key.format] != nil { return "a model" }
        if metadata[Personalization.formatKey] != nil { return "a personalization" }
        if metadata[FeatureCacheFile.formatKey] != nil { return "a feature cache" }
        return metadata[Checkpoint.formatKey] != nil ? "the checkpoint of a run" : "a file of another program"
    }
}

/// Returns the value of a metadata key.
func text(_ key: String, in metadata: [String: String]) throws(ModelFileError.Problem) -> String {
    guard let text = metadata[key] else { throw .missingMetadata(key: key) }
    return text
}
