public import ImprintNetwork

/// What became of every tensor when the numbers of one network were loaded into another.
public struct LoadingReport: Sendable, Equatable, CustomStringConvertible {
    /// A tensor that both sides have, in different shapes.
    public struct Mismatch: Sendable, Equatable {
        /// The tensor's name.
        public let name: String
        /// The shape in the source.
        public let found: [Int]
        /// The shape in the network that was loaded into.
        public let expected: [Int]
    }

    /// The tensors whose numbers were taken over.
    public let applied: [String]
    /// The tensors that the network has and the source does not; they keep their numbers.
    public let missing: [String]
    /// The tensors that the source has and the network does not.
    public let unused: [String]
    /// The tensors that have another shape in the source; they keep their numbers.
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

    /// One line with the counts, then one for each kind of tensor that was not taken over.
    public var description: String {
        var lines = ["\(applied.count) of \(applied.count + missing.count + mismatched.count) tensors loaded"]
        if !missing.isEmpty { lines.append("missing in the file: \(missing.joined(separator: ", "))") }
        if !unused.isEmpty { lines.append("not in the network: \(unused.joined(separator: ", "))") }
        if !mismatched.isEmpty {
            let texts = mismatched.map { "\($0.name) \($0.found), expected \($0.expected)" }
            lines.append("of another shape: \(texts.joined(separator: "; "))")
        }
        return lines.joined(separator: "\n")
    }
}

extension Parameters {
    /// Takes over the numbers of every tensor that `source` has by the same name and in the same shape.
    ///
    /// This is how a network for new labels starts from one that was trained for others.
    /// - Returns: what became of every tensor.
    @discardableResult
    public func load(from source: Parameters) -> LoadingReport {
        let report = LoadingReport(layout, source: source.layout.entries.map { ($0.name, $0.parameter.shape) })
        for entry in report.applied.compactMap({ layout[$0] }) {
            self[entry.name] = source[entry.name]
        }
        return report
    }

    /// Takes over the numbers of every tensor that `file` has by the same name and in the same shape.
    /// - Returns: what became of every tensor.
    /// - Throws: `SafetensorsError` if one of those is not float32 or float16, `FileError` where the file cannot be
    ///   read.
    @discardableResult
    public func load(from file: Safetensors.File) throws -> LoadingReport {
        let report = LoadingReport(layout, source: file.header.tensors.map { ($0.name, $0.shape) })
        for tensor in file.header.tensors {
            guard let entry = layout[tensor.name], entry.parameter.shape == tensor.shape else { continue }
            var checksum = Checksum()
            try withValues(of: entry) { try file.read(tensor, into: $0, checksum: &checksum) }
        }
        return report
    }
}
