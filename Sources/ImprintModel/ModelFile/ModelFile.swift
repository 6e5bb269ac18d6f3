internal import CImprintKernels
public import Foundation
public import ImprintImages
public import ImprintNetwork

/// Everything that a classifier needs, as one file: network, parameters, labels, preprocessing and provenance.
///
/// On disk it is a safetensors file (`*.imprint`); docs/weights-file.md specifies it.
public struct ModelFile: Sendable {
    /// The newest format that this version reads; it writes the oldest that has what is to be stored.
    public static let formatVersion = 2

    /// How parameters are stored.
    public enum Storage: String, Sendable, Codable, CaseIterable {
        /// As they are, 4 bytes each.
        case float32
        /// Rounded to the nearest float16, 2 bytes each.
        case float16
        /// The weights of convolutions and dense layers rounded to whole multiples of a factor for each output, a byte each; the others
        /// as they are.
        case int8
    }

    /// The layers.
    public let network: Network
    /// The numbers of the layers.
    public let parameters: Parameters
    /// The name of each network output, in order; for a logo detector the labels of the logos and one more, in any order.
    public let labels: [String]
    /// How an image becomes the network's input.
    public let preprocessing: Preprocessing
    /// How the network's map of a picture becomes confidences; nil if the network gives one number a label.
    public let detector: DetectorHead?
    /// How the parameters were trained; nil if that is not known.
    public let training: TrainingRecord?
    /// The digest of the model file that these parameters were trained from; nil if they began at random.
    public let base: String?
    /// What keeps the model from forgetting while it is tuned to one person; nil if nothing does.
    public let rehearsal: Rehearsal?
    /// The groups that the labels roll up into; nil if there are none.
    public var categories: Categories?
    /// How `write(to:)` stores the parameters.
    public let precision: Safetensors.Precision
    /// How the file that this was read from stores the parameters; as `precision` where it was not read from one.
    public let storage: Storage
    /// The SHA-256 digest of the tensors in the file that this was read from; nil if it was not read from one.
    public let digest: String?
    /// The format of the file that this was read from; nil if it was not read from one.
    public let format: Int?

    /// Puts a classifier's parts together.
    /// - Parameters:
    ///   - parameters: laid out for `network`.
    ///   - labels: One for each network output, all different; for a logo detector one for each logo and one more.
    ///   - categories: groups of these labels.
    public init(
        network: Network, parameters: Parameters, labels: [String], preprocessing: Preprocessing,
        detector: DetectorHead? = nil, training: TrainingRecord? = nil, base: String? = nil,
        rehearsal: Rehearsal? = nil, categories: Categories? = nil, precision: Safetensors.Precision = .float32
    ) {
        precondition(
            parameters.layout == ParameterLayout(network),
            "the parameters belong to another network than \(network.name)"
        )
        self.network = network
        self.parameters = parameters
        self.labels = labels
        self.preprocessing = preprocessing
        self.detector = detector
        self.training = training
        self.base = base
        self.rehearsal = rehearsal
        self.categories = categories
        self.precision = precision
        storage = precision == .float16 ? .float16 : .float32
        digest = nil
        format = nil
    }
}

/// The keys of a model file's metadata.
private enum Key {
    static let format = "imprint.format"
    static let network = "imprint.network"
    static let labels = "imprint.labels"
    static let preprocessing = "imprint.preprocessing"
    static let detector = "imprint.spotting"
    static let training = "imprint.training"
    static let digest = "imprint.digest"
    static let checksum = "imprint.checksum"
    static let base = "imprint.base"
    static let rehearsal = "imprint.rehearsal"
    static let categories = "imprint.categories"
}

// MARK: Writing

extension ModelFile {
    /// Writes the file at `url`, which is replaced as `AtomicFile` does it.
    ///
    /// Equal content gives equal bytes.
    /// - Parameter storage: how the parameters are stored, as `precision` says if nil. What was read from a file of 8 bits is
    ///   written as float32, since it may have been trained further.
    /// - Returns: the digest of the tensors, to which a personalization is bound.
    /// - Throws: `ModelFileError` if labels and network do not match or a parameter is not finite,
    ///   `SafetensorsError` where a parameter is beyond float16, `FileError` where the file cannot be written.
    @discardableResult
    public func write(to url: URL, as storage: Storage? = nil) throws -> String {
        do {
            try checkFit(network, labels, preprocessing, detector)
            try checkCategories(categories, labels)
            for entry in parameters.layout.entries { try checkFinite(entry, of: parameters) }
            let tensors = tensors(as: storage)
            var texts = [
                Key.format: tensors.contains { $0.elementType == .int8 } ? "2" : "1",
                Key.network: try json(network),
                Key.labels: try json(labels),
                Key.preprocessing: try json(preprocessing),
            ]
            texts[Key.detector] = try detector.map(json)
            texts[Key.training] = try training.map(json)
            texts[Key.base] = base
            texts[Key.rehearsal] = try rehearsal.map { try json($0.labels) }
            texts[Key.categories] = try categories.map(json)
            if let problem = rehearsal?.problem(network, labels) {
                throw ModelFileError.Problem.invalidMetadata(key: Key.rehearsal, reason: problem)
            }
            // As the parameters lie in memory, so that a reader can map them.
            return try Safetensors.write(
                tensors, inOrder: true, to: url, checksumKey: Key.checksum
            ) { digest in texts.merging([Key.digest: digest]) { $1 } }
        } catch let problem as ModelFileError.Problem {
            throw ModelFileError(path: url.path, problem: problem)
        }
    }

    /// The digest that the file of these parameters has when `write(to:)` writes it.
    /// - Throws: `SafetensorsError` if a parameter is beyond float16.
    public func tensorDigest() throws -> String {
        try Safetensors.digest(tensors(as: nil), path: "the model \(network.name)")
    }

    /// How numbers are stored that are not in 8 bits.
    private func floats(_ storage: Storage?) -> Safetensors.Precision {
        storage.map { $0 == .float16 ? .float16 : .float32 } ?? precision
    }

    private func tensors(as storage: Storage?) -> [TensorSource] {
        parameters.layout.entries.flatMap { entry in
            storage == .int8 && QuantizedWeights.suits(entry.parameter)
                ? QuantizedWeights.tensors(of: entry, in: parameters)
                : [TensorSource(entry, of: parameters, as: floats(storage))]
        } + (rehearsal.map { [TensorSource($0.tensor, as: floats(storage))] } ?? [])
    }
}

// MARK: Reading

/// How the metadata of one format becomes that of the next, by the older one's number.
///
/// Format 2 added tensors of 8 bits, and changed nothing of what format 1 has.
private let migrations: [Int: @Sendable ([String: String]) throws(ModelFileError.Problem) -> [String: String]] = [
    1: { metadata throws(ModelFileError.Problem) in metadata }
]

extension ModelFile {
    /// Reads the file at `url` and checks all of it.
    /// - Throws: `ModelFileError` if it is not a whole model file of a format known here, `SafetensorsError` where
    ///   it is not a safetensors file, `FileError` if it cannot be read.
    public init(contentsOf url: URL) throws { try self.init(checking: Safetensors.File(contentsOf: url)) }

    /// Reads a file that is in memory already, and checks all of it.
    /// - Parameter name: What errors call it.
    /// - Throws: `ModelFileError` and `SafetensorsError` as for a file at a URL.
    public init(_ bytes: [UInt8], named name: String) throws {
        try self.init(checking: Safetensors.File(bytes, named: name))
    }

    private init(checking file: Safetensors.File) throws {
        do {
            try self.init(file)
        } catch let problem as ModelFileError.Problem {
            throw ModelFileError(path: file.path, problem: problem)
        }
    }

    private init(_ file: Safetensors.File) throws {
        let texts = try migrated(file.header.metadata)
        network = try value(Key.network, in: texts)
        labels = try value(Key.labels, in: texts)
        preprocessing = try value(Key.preprocessing, in: texts)
        detector = texts[Key.detector] == nil ? nil : try value(Key.detector, in: texts) as DetectorHead
        training = texts[Key.training] == nil ? nil : try value(Key.training, in: texts) as TrainingRecord
        base = texts[Key.base]
        categories = texts[Key.categories] == nil ? nil : try value(Key.categories, in: texts) as Categories
        // Earlier versions wrote groups that are none.
        if categories?.names.isEmpty == true { categories = nil }
        try checkFit(network, labels, preprocessing, detector)
        try checkCategories(categories, labels)

        // The tensors' shapes agree with the length of the file, so after this comparison the parameters take no more
        // memory than the file has bytes (twice as many from float16, four times as many from 8 bits).
        let layout = ParameterLayout(network)
        // Without the photos' labels, features are a tensor like any other that does not belong there.
        var own = file.header.tensors.filter { texts[Key.rehearsal] == nil || $0.name != Rehearsal.tensorName }
        // Format 1 has no tensors of 8 bits, so factors are left over there.
        let isOldest = file.header.metadata[Key.format] == "1"
        let factorTensors = isOldest ? [:] : try QuantizedWeights.factorTensors(in: file.header)
        let factorNames = Set(factorTensors.values.map(\.name))
        own.removeAll { factorNames.contains($0.name) }
        let report = LoadingReport(layout, source: own.map { ($0.name, $0.shape) })
        guard report.isComplete else { throw ModelFileError.Problem.incomplete(report) }
        let expected = try text(Key.digest, in: texts)
        let isInt8 = !factorTensors.isEmpty
        precision = !isInt8 && own.contains { $0.elementType == .float16 } ? .float16 : .float32
        storage = isInt8 ? .int8 : precision == .float16 ? .float16 : .float32

        let mapped = file.mapped(layout)
        parameters = try mapped ?? Parameters(layout)
        let factors = try QuantizedWeights.factors(factorTensors, in: file)
        var checksum = Checksum()
        var notFinite: String?
        var features: (values: [Float], shape: [Int])?
        // In the order of the data; what is not the network's are factors and features.
        for tensor in file.header.tensors {
            if let entry = layout[tensor.name] {
                try parameters.withValues(of: entry) { values in
                    let isFinite: Bool
                    if mapped == nil {
                        try file.read(tensor, times: factors[tensor.name], into: values, checksum: &checksum)
                        isFinite = imprint_all_finite(values.baseAddress, values.count) != 0
                    } else {
                        isFinite = checksum.update(values)
                    }
                    if !isFinite { notFinite = notFinite ?? tensor.name }
                }
            } else {
                let values = try file.values(of: tensor, checksum: &checksum)
                if !factorNames.contains(tensor.name) { features = (values, tensor.shape) }
            }
        }
        if checksum.hexadecimal(digest: expected) != texts[Key.checksum] {
            let found = try file.dataDigest()
            guard found == expected else { throw ModelFileError.Problem.damaged(found: found, expected: expected) }
        }
        digest = expected
        format = file.header.metadata[Key.format].flatMap { Int($0) }
        if let notFinite { throw ModelFileError.Problem.notFinite(tensor: notFinite) }
        guard texts[Key.rehearsal] != nil else {
            rehearsal = nil
            return
        }
        let rehearsal = try Rehearsal(labels: value(Key.rehearsal, in: texts), features)
        if let problem = rehearsal.problem(network, labels) {
            throw ModelFileError.Problem.invalidMetadata(key: Key.rehearsal, reason: problem)
        }
        self.rehearsal = rehearsal
    }
}

extension ModelFile {
    /// Whether the file at `url` says that it is a model file; false if it cannot be read.
    public static func isOne(_ url: URL) -> Bool {
        (try? Safetensors.File(contentsOf: url))?.header.metadata[Key.format] != nil
    }

    /// The kind of file that has this metadata, in words.
    static func kind(of metadata: [String: String]) -> String {
        if metadata[Key.format] != nil { return "a model" }
        if metadata[Personalization.formatKey] != nil { return "a personalization" }
        return metadata[Checkpoint.formatKey] != nil ? "the checkpoint of a run" : "a file of another program"
    }
}

/// The metadata in the newest format.
private func migrated(_ metadata: [String: String]) throws(ModelFileError.Problem) -> [String: String] {
    guard let format = metadata[Key.format] else {
        if metadata[Personalization.formatKey] != nil { throw .personalization }
        throw metadata[Checkpoint.formatKey] == nil ? .foreign : .checkpoint
    }
    guard let version = Int(format), version > 0 else { throw .unknownFormat(found: format) }
    guard version <= ModelFile.formatVersion else { throw .newerFormat(found: version) }
    var metadata = metadata
    for older in version..<ModelFile.formatVersion {
        guard let migrate = migrations[older] else { throw .unknownFormat(found: format) }
        metadata = try migrate(metadata)
    }
    return metadata
}

/// Checks that the categories are of these labels.
private func checkCategories(_ categories: Categories?, _ labels: [String]) throws(ModelFileError.Problem) {
    do throws(CategoriesError) {
        try categories?.check(labels: labels)
    } catch {
        throw .invalidMetadata(key: Key.categories, reason: error.reason)
    }
}

/// Checks that the labels name the network's outputs and that the preprocessing makes its input.
package func checkFit(
    _ network: Network, _ labels: [String], _ preprocessing: Preprocessing, _ detector: DetectorHead?
) throws(ModelFileError.Problem) {
    if let detector {
        // The same parameters must do for pictures of any size.
        let larger = TensorShape(
            height: 2 * network.input.height, width: 2 * network.input.width, channels: network.input.channels)
        let atLarger = try? Network(name: network.name, input: larger, nodes: network.nodes)
        guard preprocessing.channels == 3, atLarger.map(ParameterLayout.init) == ParameterLayout(network) else {
            throw .invalidMetadata(key: Key.detector, reason: "the network does not take colour pictures of any size")
        }
        if let problem = detector.problem(maps: network.output.channels, labels: labels) {
            throw .invalidMetadata(key: Key.detector, reason: problem)
        }
    } else {
        let outputs: Int
        do {
            outputs = try network.labelCount()
        } catch {
            throw .notAClassifier(error)
        }
        guard labels.count == outputs else { throw .labelCount(found: labels.count, outputs: outputs) }
    }
    var seen = Set<String>()
    for label in labels {
        guard seen.insert(label).inserted else { throw .duplicateLabel(label) }
    }
    if let problem = preprocessing.problem { throw .invalidMetadata(key: Key.preprocessing, reason: problem) }
    let image = TensorShape(height: preprocessing.height, width: preprocessing.width, channels: preprocessing.channels)
    guard image == network.input else { throw .inputShape(found: image, expected: network.input) }
}

package func checkFinite(
    _ entry: ParameterLayout.Entry, of parameters: Parameters
) throws(ModelFileError.Problem) {
    let isFinite = parameters.withValues(of: entry) { imprint_all_finite($0.baseAddress, $0.count) }
    guard isFinite != 0 else { throw .notFinite(tensor: entry.name) }
}

/// The text that stands under `key`.
func text(_ key: String, in texts: [String: String]) throws(ModelFileError.Problem) -> String {
    guard let text = texts[key] else { throw .missingMetadata(key: key) }
    return text
}
