extension ModelImporter {
    /// The names of the architectures of PyTorch checkpoints that Imprint knows, for `architecture`.
    public static var architectures: [String] { PyTorchArchitecture.names }

    /// Makes a model of a PyTorch checkpoint.
    ///
    /// - Throws: `ImportError.Problem` if the architecture is missing, unknown, or has other tensors.
    func readCheckpoint(_ checkpoint: PyTorchCheckpoint) throws -> ImportedModel {
        let known = Self.architectures.joined(separator: ", ")
        guard let name = architecture else {
            let fitting = fittingArchitectures(checkpoint.tensors)
            let advice =
                fitting.isEmpty
                ? "They fit none of \(known). Set the closest one to see the tensors that differ"
                : "They fit \(fitting.joined(separator: " or ")). Set this architecture"
            throw ImportError.Problem.missing(
                item: "architecture, only tensors", advice: advice, setting: .architecture)
        }
        guard let architecture = PyTorchArchitecture(named: name) else {
            throw ImportError.Problem.missing(
                item: "architecture that is named \(name.debugDescription)", advice: "Set one of \(known)",
                setting: .architecture)
        }
        let imported = try architecture.importModel(checkpoint.tensors, importer: self)
        return ImportedModel(model: imported.model, notes: checkpoint.notes + imported.notes)
    }

    /// Returns the names of the architectures whose import of these tensors succeeds.
    private func fittingArchitectures(_ tensors: StateDictionary) -> [String] {
        // Without the settings, which may be wrong for the right architecture.
        Self.architectures.filter { name in
            (try? PyTorchArchitecture(named: name)?.importModel(tensors, importer: ModelImporter())) != nil
        }
    }
}
