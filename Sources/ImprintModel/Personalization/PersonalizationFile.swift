internal import CImprintKernels
public import Foundation
internal import ImprintCore

/// The keys of a personalization's metadata.
private enum Key {
    static let base = "imprint.base"
    static let labels = "imprint.labels"
    static let columns = "imprint.columns"
    static let adapters = "imprint.factors"
    static let examples = "imprint.examples"
    static let digest = "imprint.digest"
    static let textDigest = "imprint.textDigest"
}

/// The names of the head's tensors; the names of low-rank adapters end in ".left" and ".right".
private enum TensorName {
    static let weights = "head.weight"
    static let biases = "head.bias"
}

extension Personalization {
    /// The metadata key of the format version, which identifies a personalization.
    static let formatKey = "imprint.personalization"

    /// Writes the file at `url` atomically.
    ///
    /// The format is a safetensors file of float16 values; equal content gives equal bytes. docs/reference/personalization-file.md specifies it.
    /// - Returns: The size of the file in bytes.
    /// - Throws: `ModelFileError` if a value is not finite or parts contradict each other, `FileError` if the file cannot be written.
    @discardableResult
    public func write(to url: URL) throws -> Int {
        do {
            try checkConsistency()
        } catch {
            throw ModelFileError(path: url.path, problem: error)
        }
        var metadata = [
            Self.formatKey: "\(Self.formatVersion)", Key.base: baseDigest, Key.labels: try json(addedLabels),
            Key.columns: try json(columns.map(\.label)), Key.examples: try json(record),
        ]
        if !adapters.isEmpty { metadata[Key.adapters] = try json(adapters.map(\.parameter)) }
        metadata[Key.textDigest] = textDigest(of: metadata)
        try Safetensors.write(tensors, as: .float16, to: url) { digest in
            metadata.merging([Key.digest: digest]) { $1 }
        }
        return try FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().path)[.size] as? Int ?? 0
    }

    private var tensors: [Safetensors.Tensor] {
        let channels = columns.first?.weights.count ?? 0
        var tensors = [
            // In the layout of the head: [channels, labels].
            Safetensors.Tensor(
                name: TensorName.weights, shape: [channels, columns.count],
                values: (0..<channels).flatMap { row in columns.map { $0.weights[row] } }),
            Safetensors.Tensor(name: TensorName.biases, shape: [columns.count], values: columns.map(\.bias)),
        ]
        for adapter in adapters {
            tensors.append(
                Safetensors.Tensor(
                    name: "\(adapter.parameter).left", shape: [adapter.left.count / adapter.rank, adapter.rank],
                    values: adapter.left))
            tensors.append(
                Safetensors.Tensor(
                    name: "\(adapter.parameter).right", shape: [adapter.rank, adapter.right.count / adapter.rank],
                    values: adapter.right))
        }
        return tensors
    }

    /// Checks the rules that do not depend on the base model: finite values, and one column per label, all of the same length.
    func checkConsistency() throws(ModelFileError.Problem) {
        let labels = columns.map(\.label)
        guard Set(addedLabels).isSubset(of: labels), Set(labels).count == labels.count,
            Set(addedLabels).count == addedLabels.count
        else {
            throw .invalidMetadata(key: Key.columns, reason: "an added label without a column, or a label twice")
        }
        guard Set(columns.map(\.weights.count)).count <= 1 else {
            throw .invalidMetadata(key: Key.columns, reason: "columns of different lengths")
        }
        guard Set(adapters.map(\.parameter)).count == adapters.count else {
            throw .invalidMetadata(key: Key.adapters, reason: "two adapters of one layer")
        }
        // The limit prevents an overflow of sums.
        let counts = [record.examples, record.corrections].flatMap(\.values)
        guard counts.allSatisfy({ (0...Int(Int32.max)).contains($0) }) else {
            throw .invalidMetadata(
                key: Key.examples, reason: "a number of photos is negative or beyond 32 bits")
        }
        for tensor in tensors where !tensor.values.allSatisfy(\.isFinite) { throw .notFinite(tensor: tensor.name) }
    }

    /// Whether the file at `url` is marked as a personalization; false if it cannot be read.
    public static func isPersonalization(at url: URL) -> Bool {
        (try? Safetensors.File(contentsOf: url))?.header.metadata[formatKey] != nil
    }

    /// Reads the file at `url` and checks everything that does not depend on the base model.
    /// - Throws: `ModelFileError` if it is not a complete personalization in a supported format, `SafetensorsError` if it is not a
    ///   safetensors file, `FileError` if it cannot be read.
    public init(contentsOf url: URL) throws {
        let file = try Safetensors.File(contentsOf: url)
        do {
            try self.init(file)
        } catch let problem as ModelFileError.Problem {
            throw ModelFileError(path: file.path, problem: problem)
        }
    }

    private init(_ file: Safetensors.File) throws {
        typealias Problem = ModelFileError.Problem
        let metadata = file.header.metadata
        guard let format = metadata[Self.formatKey] else {
            throw Problem.notAPersonalization(found: ModelFile.kind(of: metadata))
        }
        let newest = Self.formatVersion
        guard let version = Int(format), version > 0 else {
            throw Problem.unknownFormat(found: format, newest: newest)
        }
        guard version <= newest else { throw Problem.newerFormat(found: version, newest: newest) }
        let (expectedText, foundText) = (try text(Key.textDigest, in: metadata), textDigest(of: metadata))
        guard foundText == expectedText else { throw Problem.damaged(found: foundText, expected: expectedText) }
        let baseDigest = try text(Key.base, in: metadata)
        let added: [String] = try value(Key.labels, in: metadata)
        let labels: [String] = try value(Key.columns, in: metadata)
        let changed: [String] = metadata[Key.adapters] == nil ? [] : try value(Key.adapters, in: metadata)
        let record: Record = try value(Key.examples, in: metadata)
        let expected = try text(Key.digest, in: metadata)
        let found = try file.dataDigest()
        guard found == expected else { throw Problem.damaged(found: found, expected: expected) }

        // A search for each tensor would take quadratic time with a file of many adapters.
        let tensors = Dictionary(uniqueKeysWithValues: file.header.tensors.map { ($0.name, $0) })
        func matrix(_ name: String, _ axes: Int) throws -> (shape: [Int], values: [Float]) {
            guard let tensor = tensors[name], tensor.shape.count == axes else {
                throw Problem.invalidMetadata(key: name, reason: "there is no tensor of that name with \(axes) axes")
            }
            return (tensor.shape, try file.values(of: tensor))
        }
        let weights = try matrix(TensorName.weights, 2)
        let biases = try matrix(TensorName.biases, 1)
        guard weights.shape[1] == labels.count, biases.values.count == labels.count else {
            throw Problem.invalidMetadata(
                key: Key.columns,
                reason:
                    "\(counted(labels.count, "label")) for \(counted(weights.shape[1], "column")) and \(biases.values.count) biases"
            )
        }
        let others = tensors.count - 2
        guard others == 2 * changed.count else {
            throw Problem.invalidMetadata(
                key: Key.adapters,
                reason: "\(others) tensors besides the head's for \(changed.count) layers, expected two each")
        }
        let adapters = try changed.map { parameter in
            let (left, right) = (try matrix("\(parameter).left", 2), try matrix("\(parameter).right", 2))
            guard left.shape[1] == right.shape[0], (left.shape + right.shape).allSatisfy({ $0 >= 1 }) else {
                throw Problem.invalidMetadata(
                    key: parameter, reason: "adapter matrices of shapes \(left.shape) and \(right.shape)")
            }
            return LowRankAdapter(parameter: parameter, left: left.values, right: right.values, rank: left.shape[1])
        }
        let columns = labels.indices.map { index in
            Column(
                label: labels[index],
                weights: (0..<weights.shape[0]).map { weights.values[$0 * labels.count + index] },
                bias: biases.values[index])
        }
        self.init(
            baseDigest: baseDigest, addedLabels: added, columns: columns, adapters: adapters, record: record,
            path: file.path)
        try checkConsistency()
    }
}

/// Returns the values rounded to float16, to nearest, ties to even; values beyond its range become infinite.
func roundedToFloat16(_ values: [Float]) -> [Float] {
    var halves = [UInt16](repeating: 0, count: values.count)
    imprint_float32_to_float16(values, &halves, halves.count)
    var rounded = values
    imprint_float16_to_float32(halves, &rounded, halves.count)
    return rounded
}
