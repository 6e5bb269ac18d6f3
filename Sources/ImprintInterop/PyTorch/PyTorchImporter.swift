extension ModelImporter {
    /// The names of the architectures of PyTorch checkpoints that Imprint knows, for `architecture`.
    public static var architectures: [String] { PyTorchArchitecture.names }

    /// Makes a model from a PyTorch checkpoint.
    ///
    /// - Throws: `ImportError.Problem` if the architecture is missing or unknown, or does not match the tensors.
    func readCheckpoint(_ checkpoint: PyTorchCheckpoint) throws -> ImportedModel {
        let known = Self.architectures.joined(separator: ", ")
        guard let name = architecture else {
            let fits = ArchitectureFit.best(for: checkpoint.tensors)
            throw ImportError.Problem.missing(
                item: "architecture, only tensors",
                advice: fits.isEmpty ? "Its tensors fit none of \(known)" : ArchitectureFit.text(of: fits),
                setting: ArchitectureFit.setting(for: fits) ?? .architecture)
        }
        guard let architecture = PyTorchArchitecture(named: name) else {
            throw ImportError.Problem.missing(
                item: "architecture that is named \(name.debugDescription)", advice: "Set one of \(known)",
                setting: .architecture)
        }
        let imported = try architecture.importModel(checkpoint.tensors, importer: self)
        return ImportedModel(
            model: imported.model, notes: checkpoint.notes + imported.notes, headNotes: imported.headNotes)
    }
}
