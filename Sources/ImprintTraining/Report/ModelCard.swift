public import Foundation
internal import ImprintCore
internal import ImprintImages
public import ImprintModel
internal import ImprintNetwork

/// A model card: a CycloneDX 1.6 document (ML-BOM) about a model, for inventories of software and data.
///
/// ```swift
/// let card = ModelCard(try ModelFile(contentsOf: file), name: "logo", sha256: digest)
/// try card.json().write(to: cardFile)
/// ```
///
/// It contains what the model file states: labels, preprocessing, the data and the result of training, hyperparameters, the base model, and the
/// version, licence and intended use of `ModelFile.details`. Facts that are unknown are absent. The document has no date and no serial number,
/// so equal models give equal documents.
///
/// Source: CycloneDX 1.6 (ECMA-424), `modelCard`.
public struct ModelCard: Sendable {
    private let document: Document

    /// Creates the card of a model.
    /// - Parameters:
    ///   - model: The model.
    ///   - name: The name of the model.
    ///   - sha256: The SHA-256 digest of the model file, as 64 hexadecimal digits; nil to leave it out.
    ///   - tool: The program that makes the card. The default is Imprint without a version.
    public init(_ model: ModelFile, name: String, sha256: String? = nil, tool: Tool = Tool()) {
        document = Document(
            metadata: .init(
                tools: .init(components: [tool]), component: Component(model, name: name, sha256: sha256)))
    }

    /// A program that makes cards.
    public struct Tool: Encodable, Hashable, Sendable {
        private let type = "application"
        /// The name of the program.
        public var name: String
        /// The version of the program; nil if it is unknown.
        public var version: String?

        /// Creates the description of a program.
        public init(name: String = "Imprint", version: String? = nil) { (self.name, self.version) = (name, version) }
    }

    /// Returns the JSON of the document.
    /// - Parameter isPretty: Whether it has several lines, with indentation.
    public func json(isPretty: Bool = true) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
        return try encoder.encode(document)
    }
}

private struct Document: Encodable {
    struct Metadata: Encodable {
        struct Tools: Encodable { let components: [ModelCard.Tool] }

        let tools: Tools
        let component: Component
    }

    let schema = "http://cyclonedx.org/schema/bom-1.6.schema.json"
    let bomFormat = "CycloneDX"
    let specVersion = "1.6"
    /// The number of the revision of the document.
    let version = 1
    let metadata: Metadata

    private enum CodingKeys: String, CodingKey {
        case schema = "$schema"
        case bomFormat, specVersion, version, metadata
    }
}

/// A name and a value that CycloneDX does not define.
private struct Property: Encodable {
    let name: String
    let value: String

    init(_ name: String, _ value: some CustomStringConvertible) {
        self.name = "imprint:\(name)"
        self.value = "\(value)"
    }
}

private struct Component: Encodable {
    struct Hash: Encodable {
        let alg = "SHA-256"
        let content: String
    }
    struct Pedigree: Encodable { let ancestors: [Component] }

    let type = "machine-learning-model"
    var reference: String?
    let name: String
    var version: String?
    var hashes: [Hash]?
    var licenses: [LicenseChoice]?
    var pedigree: Pedigree?
    var modelCard: Card?
    var properties: [Property]?

    private enum CodingKeys: String, CodingKey {
        case type
        case reference = "bom-ref"
        case name, version, hashes, licenses, pedigree, modelCard, properties
    }

    init(_ model: ModelFile, name: String, sha256: String?) {
        self.name = name
        reference = "model"
        version = model.details.version.map(String.init)
        hashes = sha256.map { [Hash(content: $0)] }
        licenses = model.details.license.map { [LicenseChoice($0)] }
        pedigree = model.baseDigest.map { Pedigree(ancestors: [Component(base: $0)]) }
        modelCard = Card(model)
        properties = model.digest.map { [Property("tensorDigest", $0)] }
    }

    /// Creates the description of a base model from the digest of its tensors.
    private init(base digest: String) {
        name = "base model"
        properties = [Property("tensorDigest", digest)]
    }
}

private struct LicenseChoice: Encodable {
    struct License: Encodable {
        var id: String?
        var name: String?
    }

    var license: License?
    var expression: String?

    /// Creates a choice from an SPDX identifier, an SPDX expression, or another text, which is the name of the licence.
    init(_ text: String) {
        if SPDX.identifiers.contains(text) {
            license = License(id: text)
        } else if SPDX.isExpression(text) {
            expression = text
        } else {
            license = License(name: text)
        }
    }
}

/// The licence expressions of SPDX.
private enum SPDX {
    /// The common identifiers of the SPDX License List for code, models and data.
    static let identifiers: Set = [
        "0BSD", "AGPL-3.0-only", "AGPL-3.0-or-later", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
        "CC-BY-4.0", "CC-BY-NC-4.0", "CC-BY-NC-ND-4.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0", "CC-BY-SA-4.0", "CC0-1.0",
        "CDLA-Permissive-1.0", "CDLA-Permissive-2.0", "CDLA-Sharing-1.0", "EPL-2.0", "EUPL-1.2", "GPL-2.0-only",
        "GPL-2.0-or-later", "GPL-3.0-only", "GPL-3.0-or-later", "ISC", "LGPL-2.1-only", "LGPL-2.1-or-later",
        "LGPL-3.0-only", "LGPL-3.0-or-later", "MIT", "MIT-0", "MPL-2.0", "ODbL-1.0", "ODC-By-1.0", "PDDL-1.0",
        "Unlicense", "Zlib",
    ]
    private static let exceptions: Set = [
        "Classpath-exception-2.0", "GCC-exception-3.1", "LLVM-exception", "Swift-exception",
    ]

    /// Returns whether a text combines common identifiers with AND, OR and WITH; parentheses are not supported.
    static func isExpression(_ text: String) -> Bool {
        let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count > 1, words.count % 2 == 1, identifiers.contains(words[0]) else { return false }
        return stride(from: 1, to: words.count, by: 2).allSatisfy { index in
            switch words[index] {
            case "AND", "OR": identifiers.contains(words[index + 1])
            // An exception belongs to one licence.
            case "WITH": exceptions.contains(words[index + 1]) && identifiers.contains(words[index - 1])
            default: false
            }
        }
    }
}

private struct Card: Encodable {
    struct Parameters: Encodable {
        struct Approach: Encodable { let type = "supervised" }
        struct Format: Encodable { let format: String }

        let approach: Approach?
        let task: String
        let architectureFamily = "convolutional neural network"
        let modelArchitecture: String
        let datasets: [Dataset]?
        let inputs: [Format]
        let outputs: [Format]
    }
    struct Dataset: Encodable {
        struct Contents: Encodable { let properties: [Property] }

        let type = "dataset"
        let name: String
        let contents: Contents
    }
    struct Analysis: Encodable { let performanceMetrics: [Metric] }
    struct Considerations: Encodable { let useCases: [String] }

    let modelParameters: Parameters
    let quantitativeAnalysis: Analysis?
    let considerations: Considerations?
    let properties: [Property]

    init(_ model: ModelFile) {
        let record = model.training
        let locatesObjects = model.head.locatesObjects
        modelParameters = Parameters(
            approach: record == nil ? nil : Parameters.Approach(),
            task: locatesObjects ? "object-detection" : "image-classification",
            modelArchitecture: model.network.name,
            datasets: record.flatMap { Self.datasets($0, logos: model.head.detector?.logos.map(\.label) ?? []) },
            inputs: [Parameters.Format(format: "image, \(model.network.input)")],
            outputs: [
                Parameters.Format(format: locatesObjects ? "bounding boxes with labels" : "a confidence for each label")
            ])
        var metrics: [Metric] = []
        // The metrics of a record that describes another model are not those of this one.
        if let record, record.trainedModel == nil, let photos = RecordedPhotos(model) {
            metrics = Metric.all(
                record, photos, isSingleLabel: model.head.confidencesSumToOne && !locatesObjects)
        }
        quantitativeAnalysis = metrics.isEmpty ? nil : Analysis(performanceMetrics: metrics)
        considerations = model.details.intendedUse.map { Considerations(useCases: [$0]) }
        let preprocessing = model.preprocessing
        properties =
            model.labels.map { Property("label", $0) } + [
                Property("parameters", model.parameters.layout.trainableCount),
                Property("storage", model.storage.rawValue),
                Property("quantization", model.parameters.quantization == nil ? "none" : "int8"),
                Property("preprocessing.cropAndScale", preprocessing.cropAndScale.rawValue),
                Property("preprocessing.mean", list(preprocessing.mean)),
                Property("preprocessing.scale", list(preprocessing.scale)),
            ] + (record.map(Self.hyperparameters) ?? [])
    }

    /// Returns the composites that a detector was trained with, the training and the validation set; nil if there are none.
    private static func datasets(_ record: TrainingRecord, logos: [String]) -> [Dataset]? {
        var composites: [Dataset] = []
        if case .detector(let detector) = record.hyperparameters,
            detector.phases?.contains(where: { $0.composites > 0 }) == true
        {
            let properties = logos.map { Property("logo", $0) }
            composites = [
                Dataset(name: "composites of the artwork", contents: Dataset.Contents(properties: properties))
            ]
        }
        let sets = [("training set", record.trainingImages), ("validation set", record.validationImages)]
        let photos = sets.filter { !$0.1.isEmpty }.map { name, images in
            let counts = images.sorted { precedes($0.key, $1.key) }.map { Property("images.\($0.key)", $0.value) }
            let digest = record.dataDigest.map { [Property("dataDigest", $0)] } ?? []
            return Dataset(name: name, contents: Dataset.Contents(properties: digest + counts))
        }
        let datasets = composites + photos
        return datasets.isEmpty ? nil : datasets
    }

    /// Returns the model that was trained, if it is another one, and the hyperparameters, with the keys of the training record.
    private static func hyperparameters(_ record: TrainingRecord) -> [Property] {
        let values: Data?
        switch record.hyperparameters {
        case .classifier(let classifier): values = try? JSONEncoder().encode(classifier)
        case .detector(let detector): values = try? JSONEncoder().encode(detector)
        }
        let object = values.flatMap { try? JSONDecoder().decode(JSONValue.self, from: $0) }
        let layers = record.trainableLayers.map { [Property("trainableLayers", $0.rawValue)] } ?? []
        let model = record.trainedModel.map { [Property("trainedModel", $0)] } ?? []
        return model + layers + (object?.properties(at: "hyperparameters") ?? [])
    }
}

private struct Metric: Encodable {
    struct Interval: Encodable {
        let lowerBound: String
        let upperBound: String
    }

    let type: String
    let value: String
    let slice: String
    var confidenceInterval: Interval?

    private init(_ type: String, _ value: Double, on slice: String, interval: ClosedRange<Double>? = nil) {
        (self.type, self.value, self.slice) = (type, fraction(value), slice)
        confidenceInterval = interval.map {
            Interval(lowerBound: fraction($0.lowerBound), upperBound: fraction($0.upperBound))
        }
    }

    /// Returns the metrics of a training record, without an accuracy that is out of range.
    /// - Parameters:
    ///   - photos: The photos of the record.
    ///   - isSingleLabel: Whether each photo has one label, so that the accuracy is a share of photos.
    static func all(_ record: TrainingRecord, _ photos: RecordedPhotos, isSingleLabel: Bool) -> [Metric] {
        let slice =
            switch photos.accuracySet {
            case .validation: "validation set"
            case .training: "training set"
            case .composites: "composites of the artwork"
            }
        var metrics: [Metric] = []
        if let accuracy = record.accuracy.map(Double.init), (0...1).contains(accuracy) {
            let interval = isSingleLabel ? photos.accuracyInterval(accuracy) : nil
            metrics.append(Metric("accuracy", accuracy, on: slice, interval: interval))
        }
        if let precision = record.bestEpochMetrics?.validationAveragePrecision, precision.isFinite {
            metrics.append(Metric("mAP@.5:.95", Double(precision), on: "validation set"))
        }
        if let calibration = record.calibration {
            metrics.append(Metric("expected calibration error", calibration.errorAfter, on: "validation set"))
        }
        for (label, threshold) in (record.thresholds ?? [:]).sorted(by: { precedes($0.key, $1.key) }) {
            let slice = "label \(label) in the validation set, confidence of at least \(fraction(threshold))"
            guard let point = record.precisionRecall[label]?.first(where: { $0.threshold >= threshold }) else {
                continue
            }
            metrics.append(Metric("precision", point.precision, on: slice))
            metrics.append(Metric("recall", point.recall, on: slice))
        }
        return metrics
    }
}

private func fraction(_ value: Double) -> String { String(format: "%.4f", value) }

private func list(_ values: [Float]) -> String { values.map { "\($0)" }.joined(separator: " ") }

extension JSONValue {
    /// Returns the single values with their paths, such as `hyperparameters.schedule.cosine.final`.
    fileprivate func properties(at path: String) -> [Property] {
        switch self {
        case .object(let members):
            members.sorted { precedes($0.key, $1.key) }.flatMap { $0.value.properties(at: "\(path).\($0.key)") }
        case .array(let elements): elements.enumerated().flatMap { $1.properties(at: "\(path).\($0)") }
        case .bool(let bool): [Property(path, bool)]
        case .unsigned(let integer): [Property(path, integer)]
        case .integer(let integer): [Property(path, integer)]
        case .number(let number): [Property(path, number)]
        case .string(let string): [Property(path, string)]
        case .null: []
        }
    }
}
