public import ImprintNetwork

/// The result of loading parameters into a network, tensor by tensor.
public struct LoadingReport: Sendable, Equatable, CustomStringConvertible {
    /// A tensor with different shapes in the source and the network.
    public struct Mismatch: Sendable, Equatable {
        /// The name of the tensor.
        public let name: String
        /// The shape in the source.
        public let found: [Int]
        /// The shape in the network.
        public let expected: [Int]
    }

    /// The tensors that were loaded.
    public let applied: [String]
    /// The tensors of the network that the source lacks; they keep their values.
    public let missing: [String]
    /// The tensors of the source that the network lacks.
    public let unused: [String]
    /// The tensors with a different shape in the source; they keep their values.
    public let mismatched: [Mismatch]

    /// Whether source and network have the same tensors in the same shapes.
    public var isComplete: Bool { missing.isEmpty && unused.isEmpty && mismatched.isEmpty }

    /// Compares the tensors of `layout` with those of a source.
    init(_ layout: ParameterLayout, source: [(name: String, shape: [Int])]) {
        let shapes = Dictionary(uniqueKeysWithValues: source.map { ($0.name, $0.shape) })
        var applied: [String] = []
        var missing: [String] = []
        var mismatched: [Mismatch] = []
        for entry in layout.entries {
            switch shapes[entry.name] {
            case nil: missing.append(entry.name)
            case entry.parameter.shape: applied.append(entry.name)
            case let found?:
                mismatched.append(Mismatch(name: entry.name, found: found, expected: entry.parameter.shape))
            }
        }
        self.applied = applied
        self.missing = missing
        self.mismatched = mismatched
        unused = source.map(\.name).filter { layout[$0] == nil }
    }

    /// One line with the counts, and one for each reason why tensors were not loaded.
    public var description: String {
        var lines = ["\(applied.count) of \(applied.count + missing.count + mismatched.count) tensors loaded"]
        if !missing.isEmpty { lines.append("missing in the file: \(missing.joined(separator: ", "))") }
        if !unused.isEmpty { lines.append("not in the network: \(unused.joined(separator: ", "))") }
        if !mismatched.isEmpty {
            let texts = mismatched.map { "\($0.name) \($0.found), expected \($0.expected)" }
            lines.append("with another shape: \(texts.joined(separator: "; "))")
        }
        return lines.joined(separator: "\n")
    }
}

extension Parameters {
    /// Copies every tensor of `source` with the same name and shape.
    ///
    /// This initializes a network for new labels with the parameters of a trained network (transfer learning).
    /// - Returns: The result for every tensor.
    @discardableResult
    public func load(from source: Parameters) -> LoadingReport {
        let report = LoadingReport(layout, source: source.layout.entries.map { ($0.name, $0.parameter.shape) })
        for entry in report.applied.compactMap({ layout[$0] }) {
            self[entry.name] = source[entry.name]
        }
        return report
    }

    /// Loads every tensor of `file` with the same name and shape.
    /// - Returns: The result for every tensor.
    /// - Throws: `SafetensorsError` if one of these tensors is not float32 or float16, `FileError` if the file cannot be read.
    @discardableResult
    package func load(from file: Safetensors.File) throws -> LoadingReport {
        let report = LoadingReport(layout, source: file.header.tensors.map { ($0.name, $0.shape) })
        for tensor in file.header.tensors {
            guard let entry = layout[tensor.name], entry.parameter.shape == tensor.shape else { continue }
            var checksum = Checksum()
            try withValues(of: entry) { try file.read(tensor, into: $0, checksum: &checksum) }
        }
        return report
    }
}
