internal import ImprintNetwork

/// The agreement between the tensors of a checkpoint and the parameters of an architecture, by name and shape.
struct ArchitectureFit {
    let name: String
    /// The number of parameters that the checkpoint has.
    let matching: Int
    /// The number of parameters of the architecture.
    let expected: Int
    /// The number of tensors of the checkpoint that are not parameters of the architecture.
    let unknown: Int

    /// Whether the architecture can be imported from the checkpoint.
    var isComplete: Bool { matching == expected && unknown == 0 }

    /// The fraction of the tensors of the checkpoint or the architecture that both contain (Jaccard index), 0…1.
    private var similarity: Double { Double(matching) / Double(expected + unknown) }

    /// The smallest similarity of an architecture that an error suggests.
    private static let minimumSimilarity = 0.25

    /// Compares a checkpoint with all architectures.
    ///
    /// - Returns: The architectures that fit completely, otherwise the most similar ones; empty if none is similar.
    static func best(for tensors: StateDictionary) -> [ArchitectureFit] {
        let fits = PyTorchArchitecture.names.compactMap { PyTorchArchitecture(named: $0)?.fit(of: tensors) }
        let complete = fits.filter(\.isComplete)
        guard complete.isEmpty else { return complete }
        let maximum = fits.map(\.similarity).max() ?? 0
        return fits.filter { $0.similarity == maximum && maximum >= minimumSimilarity }
    }

    /// Returns a sentence about the architectures that fit best.
    static func text(of fits: [ArchitectureFit]) -> String {
        let names = fits.map(\.name).joined(separator: " or ")
        guard let first = fits.first, !first.isComplete else { return "Its tensors fit \(names)" }
        return "The closest architecture is \(names): the file has \(first.matching) of its \(first.expected) tensors"
            + (first.unknown > 0 ? " and \(first.unknown) unknown \(first.unknown == 1 ? "one" : "ones")" : "")
    }

    /// Returns the setting that solves the problem; nil if no architecture fits completely.
    static func setting(for fits: [ArchitectureFit]) -> ImportError.Setting? {
        let names = fits.filter(\.isComplete).map(\.name)
        return names.isEmpty ? nil : .architectures(names)
    }
}

extension PyTorchArchitecture {
    /// Compares names and shapes with those of a checkpoint, whose values are not read.
    ///
    /// - Returns: The result; nil if no library that has the architecture uses these names.
    fileprivate func fit(of tensors: StateDictionary) -> ArchitectureFit? {
        guard let source = try? PyTorchSource(of: tensors, for: self) else { return nil }
        let labels = (try? labelCount(tensors, source)) ?? 1
        guard let network = try? source.network(labels: labels, input: Size2D(source.inputSize)).logits() else {
            return nil
        }
        let state = PyTorchState(tensors, network: network, source: source)
        return ArchitectureFit(
            name: name, matching: state.matchingCount, expected: state.expected.count,
            unknown: state.unknownTensors.count)
    }
}

/// The tensors of a checkpoint do not match an architecture.
struct ArchitectureMismatch: Error {
    /// Something that the file lacks, or something unexpected that it contains.
    enum Finding {
        case lacks(String)
        case contains(String)
    }

    let finding: Finding
    /// The expected tensors, as a sentence without a full stop; empty if the finding names them.
    var expected = ""

    /// Returns the error, which suggests the architectures that fit best.
    func problem(_ tensors: StateDictionary, as architecture: String) -> ImportError.Problem {
        let fits = ArchitectureFit.best(for: tensors)
        let remedy =
            fits.isEmpty || fits.contains { $0.name == architecture }
            ? "Choose the architecture with which the checkpoint was saved" : ArchitectureFit.text(of: fits)
        let advice = expected.isEmpty ? remedy : "\(expected). \(remedy)"
        let setting = ArchitectureFit.setting(for: fits)
        return switch finding {
        case .lacks(let item): .missing(item: item, advice: advice, setting: setting)
        case .contains(let found): .unsuitableModel(found: found, advice: advice, setting: setting)
        }
    }
}
